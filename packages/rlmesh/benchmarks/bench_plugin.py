"""rlmesh as a plug-in of the stepping benchmark in `../shared/bench`.

python bench.py --plugin packages/rlmesh/benchmarks/bench_plugin.py:tcp,unix \
    --plugin-python .venv/bin/python --peers rlmesh-tcp,rlmesh-unix --envs noop,cartpole,image
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer

if TYPE_CHECKING:

    def make_env(name: str) -> Any:
        """Return an environment; the benchmark's own module has it."""
else:
    from envs import make_env


def serve(env_name: str, address: str) -> None:
    """Serve until the process is killed."""
    EnvServer(make_env(env_name), address).serve()


def connect(address: str, env_name: str) -> RemoteEnv:
    """Return a client of the served environment."""
    return RemoteEnv(address)
