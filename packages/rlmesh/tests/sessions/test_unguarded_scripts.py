"""Scripts that serve with processes of their own: those run the script again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import gymnasium
from rlmesh import EnvServer, ServeOptions
from rlmesh.numpy import RemoteVectorEnv

def cart_pole():
    return gymnasium.make("CartPole-v1")

def serve():
    print("serving", flush=True)
    with EnvServer(cart_pole, num_envs=2, {arguments}) as server:
        with RemoteVectorEnv(server.address) as env:
            env.reset(seed=1)
            print("stepped", env.step([0, 1])[1].tolist(), flush=True)

{call}
"""
ARGUMENTS = ('vectorization_mode="async"', 'options=ServeOptions(isolation="process")')
GUARD = 'if __name__ == "__main__":'


def run(folder: Path, arguments: str, call: str) -> subprocess.CompletedProcess[str]:
    script = folder / "script.py"
    script.write_text(SCRIPT.format(arguments=arguments, call=call))
    return subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=50, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_an_unguarded_script_is_told_what_to_do(tmp_path: Path, arguments: str) -> None:
    done = run(tmp_path, arguments, "serve()")

    last = done.stderr.splitlines()[-1]
    assert last.startswith("rlmesh.server." if "isolation" in arguments else "rlcore.")
    assert last.endswith(f"Put what starts the server under `{GUARD}`.")
    assert "has finished its bootstrapping phase" not in done.stderr
    # Once by itself, and once in each process that was to have an environment.
    assert done.stdout.count("serving") <= 3
    assert "stepped" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_a_guarded_script_serves(tmp_path: Path, arguments: str) -> None:
    done = run(tmp_path, arguments, f"{GUARD}\n    serve()")

    assert done.stdout == "serving\nstepped [1.0, 1.0]\n", done.stderr
