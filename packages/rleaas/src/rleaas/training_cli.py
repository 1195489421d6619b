"""`python -m rleaas.training_cli`: starts the trainings of a config.json and looks after them."""

from __future__ import annotations

import sys

from rleaas.cli.training.program import main

__all__ = ["main"]

if __name__ == "__main__":
    sys.exit(main())
