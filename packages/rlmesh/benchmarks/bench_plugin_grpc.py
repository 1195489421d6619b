"""rlmesh by gRPC; see `bench_plugin.py`."""

from functools import partial

import bench_plugin
from bench_plugin import serve

__all__ = ["connect", "serve"]

connect = partial(bench_plugin.connect, lane="grpc")
