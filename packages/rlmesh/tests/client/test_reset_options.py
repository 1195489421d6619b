"""What becomes of a reset's options that cannot travel as they are."""

import dataclasses
import datetime
import logging
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
import rlmesh
from rlmesh.numpy import RemoteEnv, RemoteVectorEnv

Serve = Callable[..., Any]


@dataclasses.dataclass
class Task:
    name: str


def test_odd_options_reach_the_environment_simplified_and_are_told_of_once(
    serve: Serve, scripted: Any, each_lane: str, caplog: pytest.LogCaptureFixture
) -> None:
    deep: Any = 0
    for _ in range(60):
        deep = [deep]
    options: dict[Any, Any] = {
        "set": {2, 1},
        "task": Task("lift"),
        "when": datetime.datetime(2026, 1, 2, 3, 4, 5),
        "price": Decimal("0.5"),
        "big": 2**64,
        "complex": np.array([1 + 2j]),
        "deep": deep,
        "call": lambda: None,
        1: "a",
        None: "b",
    }
    inner = scripted()
    with RemoteEnv(serve(inner).address) as env, caplog.at_level(logging.WARNING):
        env.reset(options=options)
        env.reset(options=options)
    (_, arrived), again = inner.resets
    assert again == (None, arrived)
    assert isinstance(arrived.pop("deep"), list)
    assert arrived.pop("call").startswith("<function")
    assert arrived == {
        "set": [1, 2],
        "task": {"name": "lift"},
        "when": "2026-01-02T03:04:05",
        "price": 0.5,
        "big": str(2**64),
        "complex": ["(1+2j)"],
        "1": "a",
        "None": "b",
    }
    told = [message for message in caplog.messages if message.startswith("reset options")]
    assert len(told) == 1


@pytest.mark.parametrize("options", [3, "level", [("level", 3)]])
def test_options_that_are_no_mapping_are_refused_by_name(
    options: Any, serve: Serve, scripted: Any
) -> None:
    inner = scripted()
    address = serve(inner).address
    with RemoteEnv(address) as env, RemoteVectorEnv(address) as lanes:
        for client in (env, lanes):
            with pytest.raises(rlmesh.InvalidMetadataError, match="options of a reset") as caught:
                client.reset(options=options)
            assert isinstance(caught.value, TypeError)
    assert inner.resets == []
