"""Goes over all callables of the published rleaas against a server, and prints a table as JSON.

`python interop_rleaas_script.py URL KEY FOLDER`, by the interpreter that has it.
"""

# mypy knows the files of this folder under other names than a script beside them does.
# mypy: disable-error-code="import-not-found"

import inspect
import json
import sys
from pathlib import Path

import interop_rleaas_catalogue
import interop_rleaas_environments
import interop_rleaas_jobs
import interop_rleaas_operations
from interop_rleaas_surface import CLIENTS, HANDLES, SUB_CLIENTS
from interop_rleaas_world import Neighbours, World, published, verdicts

ROOMS = (
    interop_rleaas_environments,
    interop_rleaas_catalogue,
    interop_rleaas_jobs,
    interop_rleaas_operations,
)


def introspected() -> list[str]:
    """Every public callable of the package that is installed, as it tells itself."""
    found: list[str] = []
    for owner in (*SUB_CLIENTS.values(), *HANDLES, *CLIENTS):
        kind: type[object] = getattr(published, owner)
        found += [
            f"{owner}.{name}"
            for name, member in vars(kind).items()
            if not name.startswith("_") and inspect.isfunction(member)
        ]
    return found


def main(url: str, key: str, folder: Path) -> None:
    neighbours = Neighbours(folder)
    with published.Client(api_key=key, base_url=url) as client:
        rows = verdicts(World(url, key, folder, client, neighbours))
    neighbours.close()
    told = {"version": published.__version__, "callables": introspected(), "rows": rows}
    sys.stdout.write(json.dumps(told) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
