"""The script that is the main program: processes that it starts run it again, under another name.

They do so to know what it defines. Where it starts a server with processes of its own without
asking `if __name__ == "__main__":`, each of them would start one more.
"""

from __future__ import annotations

import sys
from typing import Final

from rlcore import ConfigurationError

# What `multiprocessing` calls the main program in the processes that run it again.
AGAIN: Final = "__mp_main__"
ADVICE: Final = 'Put what starts the server under `if __name__ == "__main__":`.'


class UnguardedScript(ConfigurationError):
    """A server was about to be started by a process that the server's script started."""

    default_code = "unguarded_script"

    def __init__(self) -> None:
        super().__init__(
            "a process for an environment runs the script that serves it again, and the script "
            "starts its server there once more",
            hint=ADVICE,
        )


def require_first_run() -> None:
    """Do nothing where the main program runs for the first time, or has been read already.

    Raises:
        UnguardedScript: it is being run again, by a process that it started.
    """
    again = sys.modules.get(AGAIN)
    # Once it has been read, it stands under both names.
    if again is not None and sys.modules.get("__main__") is not again:
        raise UnguardedScript
