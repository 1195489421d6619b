"""rlmesh as a plug-in of the stepping benchmark in `../shared/bench`, by the lane it takes itself.

On one machine that is the local lane, whichever address is dialled; `bench_plugin_lane.py` takes
the second TCP port, and `bench_plugin_grpc.py` takes gRPC.

python bench.py --plugin packages/rlmesh/benchmarks/bench_plugin.py:tcp,unix \
    --plugin-python .venv/bin/python --peers rlmesh-tcp,rlmesh-unix --envs noop,cartpole,image
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

# Each process imports its own side only, as servers do; the harness measures their start.
if TYPE_CHECKING or "serve" in sys.argv:
    from rlmesh.server.env_server import EnvServer
if TYPE_CHECKING or "drive" in sys.argv:
    from rlmesh.numpy import RemoteEnv, RemoteVectorEnv

if TYPE_CHECKING:
    from rlmesh.client.lanes import LaneChoice

    def make_env(name: str) -> Any:
        """Return an environment; the benchmark's own module has it."""

    def is_vector(name: str) -> bool:
        """Tell whether it steps many at once."""
        ...
else:
    from envs import is_vector, make_env


def serve(env_name: str, address: str) -> None:
    """Serve until the process is killed."""
    EnvServer(make_env(env_name), address).serve()


def connect(
    address: str, env_name: str, *, lane: LaneChoice = "auto"
) -> RemoteEnv | RemoteVectorEnv:
    """Return a client of the served environment."""
    kind = RemoteVectorEnv if is_vector(env_name) else RemoteEnv
    return kind(address, lane=lane)
