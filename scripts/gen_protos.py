# /// script
# requires-python = "==3.11.*"
# dependencies = [
#     # The oldest compiler: its code runs on protobuf 4.25 to 7, that of newer ones does not.
#     "grpcio-tools==1.62.3",
#     "setuptools<81", # grpcio-tools 1.62 imports pkg_resources, which is gone from 81 on
#     "mypy-protobuf==3.6.0", # typed messages for pyright and mypy strict
# ]
# ///
"""Compile the wire protos into the generated modules beside them.

Run with `uv run --no-project scripts/gen_protos.py`; `--check` changes nothing and fails when the
committed modules are not what the protos compile to. The pins above are the script's own, so that
the old compiler never limits the protobuf that the workspace runs on.
"""

import argparse
import filecmp
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[1] / "packages" / "rlmesh" / "src"
WIRE = SOURCE / "rlmesh" / "wire"


def compile_into(folder: Path) -> list[Path]:
    """Compile every proto below `folder` and return the paths written, relative to it."""
    protos = sorted(str(path.relative_to(SOURCE)) for path in WIRE.rglob("*.proto"))
    command = [sys.executable, "-m", "grpc_tools.protoc", f"-I{SOURCE}"]
    outputs = [f"--python_out={folder}", f"--mypy_out=quiet:{folder}"]
    subprocess.run([*command, *outputs, *protos], check=True)
    return sorted(path.relative_to(folder) for path in folder.rglob("*_pb2.py*"))


def main() -> None:
    """Write or check the generated modules."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only, change nothing")
    check = parser.parse_args().check
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        fresh = compile_into(folder)
        committed = sorted(path.relative_to(SOURCE) for path in WIRE.rglob("*_pb2.py*"))
        if check:
            stale = sorted(set(fresh) ^ set(committed))
            _, differ, unreadable = filecmp.cmpfiles(
                folder, SOURCE, [str(p) for p in fresh if p in set(committed)], shallow=False
            )
            stale += [Path(p) for p in (*differ, *unreadable)]
            if stale:
                names = "\n  ".join(map(str, stale))
                sys.exit(f"error: not what the protos compile to, run `make protos`:\n  {names}")
            return
        for path in set(committed) - set(fresh):
            (SOURCE / path).unlink()
        for path in fresh:
            shutil.copyfile(folder / path, SOURCE / path)


if __name__ == "__main__":
    main()
