"""`python -m rlmesh` is the `rlmesh` command."""

import sys

from rlmesh.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
