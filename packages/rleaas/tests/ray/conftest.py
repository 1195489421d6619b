"""A real Ray cluster of two nodes on this machine, shared by the tests of this folder."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from typing import Any

import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"


# A node that is silent for six seconds is lost; Ray's own patience is much longer.
_QUICK_TO_NOTICE = {
    "health_check_initial_delay_ms": 1000,
    "health_check_period_ms": 1000,
    "health_check_timeout_ms": 1000,
    "health_check_failure_threshold": 6,
}


class RayNodes:
    """The cluster: a head that has processors, and second nodes that can be lost."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster: Any = Cluster(
            initialize_head=True,
            head_node_args={
                "num_cpus": 4,
                "include_dashboard": True,
                "dashboard_host": "127.0.0.1",
                "dashboard_port": 0,
                "_system_config": _QUICK_TO_NOTICE,
            },
        )
        self.second: Any = None
        self.add_second()

    @property
    def address(self) -> str:
        return str(self.cluster.address)

    @property
    def dashboard(self) -> str:
        return f"http://{self.cluster.head_node.webui_url}"

    def add_second(self) -> None:
        """A node that jobs can ask for by its resource."""
        self.second = self.cluster.add_node(num_cpus=2, resources={"second": 2})
        self.cluster.wait_for_nodes()

    def lose_second(self) -> None:
        """Kill the second node, as a power cut would."""
        self.cluster.remove_node(self.second, allow_graceful=False)
        self.second = None


@pytest.fixture(scope="session")
def nodes() -> Generator[RayNodes]:
    logging.getLogger("ray").setLevel(logging.ERROR)
    try:
        nodes = RayNodes()
    except Exception as error:
        # Ray gives a node 30 seconds to come up, which is short on a machine that is busy.
        logging.getLogger(__name__).warning("once more: %s", error)
        nodes = RayNodes()
    try:
        yield nodes
    finally:
        nodes.cluster.shutdown()
