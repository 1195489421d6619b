"""`python -m rleaas.training`: the same as `python -m rleaas.training_cli`."""

from __future__ import annotations

import sys

from rleaas.training_cli import main

if __name__ == "__main__":
    sys.exit(main(prog="python -m rleaas.training"))
