"""Command lines that are wrong: one line on stderr, and exit code 2."""

from __future__ import annotations

import argparse
from typing import NoReturn

from rlcore.errors import ConfigurationError


class Misuse(ConfigurationError):
    """A command line is wrong."""

    default_code = "usage"


class Parser(argparse.ArgumentParser):
    """A parser that says what is wrong in one line, where argparse first prints every option."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and exit with 2."""
        text = " ".join(message.split())
        self.exit(2, f"{self.prog}: error: {text} (see {self.prog} --help)\n")
