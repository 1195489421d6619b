"""What a server can be told, and what it makes of nonsense."""

from __future__ import annotations

from typing import Any

import gymnasium
import pytest
from rlcore import ConfigurationError
from rlmesh.server.env_server import EnvServer
from rlmesh.server.options import ServeOptions


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_sessions", 1.5),
        ("max_sessions", True),
        ("max_sessions", "4"),
        ("max_sessions", 0),
        ("max_message_bytes", 2000.0),
        ("max_message_bytes", "2000"),
        ("lane_port", 1.5),
        ("lane_port", "9"),
        ("lane_port", 65536),
        ("lease_seconds", "5"),
        ("lease_seconds", True),
        ("lease_seconds", float("nan")),
        ("lease_seconds", 0.05),
        ("idle_timeout_seconds", "5"),
        ("drain_timeout_seconds", True),
        ("close_timeout_seconds", 0),
        ("env_start_seconds", None),
        ("lanes", "no"),
        ("inspectable", "x"),
        ("allow_remote_shutdown", 1),
        ("isolation", []),
        ("workflow_edition", 5),
    ],
)
def test_an_option_that_cannot_be_is_refused_by_name(name: str, value: Any) -> None:
    options: dict[str, Any] = {name: value}
    with pytest.raises(ConfigurationError, match=name):
        ServeOptions(**options)


@pytest.mark.parametrize("port", ["9", 1.5, True, -1])
def test_a_metrics_port_that_is_none_is_refused_by_name(port: Any) -> None:
    with pytest.raises(ConfigurationError, match="metrics_port"):
        EnvServer(lambda: gymnasium.make("CartPole-v1"), metrics_port=port)


def test_a_lane_port_without_lanes_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="lane_port is 9 and lanes is False"):
        ServeOptions(lanes=False, lane_port=9)
