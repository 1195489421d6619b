"""A check that is quick, and a gate for what hangs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rlmesh.conformance import Report, check


@pytest.fixture
def quick() -> Callable[..., Report]:
    """Check with few steps."""

    def run(target: object, **options: Any) -> Report:
        chosen: dict[str, Any] = {"steps": 60, "timeout": 20.0, **options}
        return check(target, **chosen)

    return run


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a hanging environment waits for; opened at the end of the test."""
    event = threading.Event()
    yield event
    event.set()
