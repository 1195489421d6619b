"""Whether anybody is connected to a process, as the kernel tells it."""

from pathlib import Path

_ESTABLISHED = "01"
_CONNECTED = "03"


def has_connections(group: int, proc: Path = Path("/proc")) -> bool | None:
    """Whether a process of the group holds a connection; None where the kernel does not tell."""
    if not (proc / "net" / "tcp").exists():
        return None
    held = _sockets(group, proc)
    return bool(held & (_tcp(proc / "net" / "tcp") | _tcp(proc / "net" / "tcp6") | _unix(proc)))


def _sockets(group: int, proc: Path) -> set[str]:
    found: set[str] = set()
    for process in proc.iterdir():
        if process.name.isdecimal() and _group_of(process) == group:
            found |= _sockets_of(process)
    return found


def _group_of(process: Path) -> int | None:
    try:
        stat = (process / "stat").read_text("utf-8", "replace")
    except OSError:
        return None  # it has ended
    return int(stat.rpartition(")")[2].split()[2])


def _sockets_of(process: Path) -> set[str]:
    found: set[str] = set()
    try:
        for descriptor in (process / "fd").iterdir():
            target = str(descriptor.readlink())
            if target.startswith("socket:["):
                found.add(target.removeprefix("socket:[").removesuffix("]"))
    except OSError:
        return found  # it has ended, or closed the descriptor meanwhile
    return found


def _tcp(table: Path) -> set[str]:
    rows = _rows(table)
    return {row[9] for row in rows if len(row) > 9 and row[3] == _ESTABLISHED}


def _unix(proc: Path) -> set[str]:
    # Those with a path are the ends that a listener accepted.
    rows = _rows(proc / "net" / "unix")
    return {row[6] for row in rows if len(row) > 7 and row[5] == _CONNECTED}


def _rows(table: Path) -> list[list[str]]:
    if not table.exists():
        return []
    return [line.split() for line in table.read_text("utf-8", "replace").splitlines()[1:]]
