"""What is checked of a served environment."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
import numpy as np
import pytest
from rlcore import Endpoint, Error, ServerUnreachable
from rlmesh import EnvServer
from rlmesh.codec import compile_codec
from rlmesh.conformance import Report, Verdict
from rlmesh.spaces import Box, Space

Quick: TypeAlias = Callable[..., Report]


def cartpole() -> Any:
    return gym.make("CartPole-v1")


def _text(server: EnvServer) -> object:
    return server.address


def _endpoint(server: EnvServer) -> object:
    return Endpoint(server.address)


def _itself(server: EnvServer) -> object:
    return server


@pytest.mark.parametrize("form", [_text, _endpoint, _itself])
def test_a_server_is_named_in_any_form(form: Callable[[EnvServer], object], quick: Quick) -> None:
    with EnvServer(cartpole) as server:
        report = quick(form(server))

    assert report.conforms(), "\n".join(map(str, report.failed))
    assert report.target == server.address
    assert report.environment == "CartPole-v1"
    assert report["latency"].seen.startswith("p50 ")
    assert {"other_thread", "processes", "autoreset"}.isdisjoint(one.name for one in report)


def test_a_server_of_one_instance_lets_one_client_in(quick: Quick) -> None:
    with EnvServer(cartpole()) as server:
        report = quick(server.address)

    assert report.conforms(), "\n".join(map(str, report.failed))
    assert report["threads"].verdict is Verdict.SKIPPED
    assert "one client" in report["threads"].seen
    assert report["made_again"].verdict is Verdict.PASSED


def test_a_contract_that_changes_between_dials_fails_digest_stable(quick: Quick) -> None:
    class Growing(gym.Wrapper[Any, Any, Any, Any]):
        def __init__(self, size: int) -> None:
            super().__init__(cartpole())
            self.metadata = {**self.metadata, "level": size}

    sizes = itertools.count()
    with EnvServer(Growing(next(sizes))) as first, EnvServer(Growing(next(sizes))) as second:
        addresses = iter([first.address, *[second.address] * 9])

        class Moving:
            @property
            def address(self) -> str:
                return next(addresses)

        report = quick(_Names(Moving()), only=["digest_stable", "reward"])

    assert [finding.name for finding in report.failed] == ["digest_stable"]
    assert first.env_contract.digest in report["digest_stable"].seen


class _Names:
    """Is dialled as whatever address the other one has at the time."""

    def __init__(self, moving: Any) -> None:
        self._moving = moving
        self._asked = 0

    @property
    def address(self) -> str:
        # Twice while it is found out what it is; then once for each dial.
        self._asked += 1
        return "tcp://127.0.0.1:1" if self._asked <= 2 else str(self._moving.address)


def test_values_that_change_on_the_wire_fail_values_survive(
    quick: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lossy:
        def __init__(self, space: Space, **options: Any) -> None:
            self._codec = compile_codec(space, **options)
            self.encode = self._codec.encode

        def decode(self, leaves: Any) -> Any:
            value = self._codec.decode(leaves)
            rounded: Any = np.round(value, 3)
            return rounded if isinstance(self._codec.space, Box) else value

    # The check's own codecs only: what came over the wire was exact.
    monkeypatch.setattr("rlmesh.conformance.lives.compile_codec", Lossy)
    with EnvServer(cartpole) as server:
        report = quick(server.address)

    assert [finding.name for finding in report.failed] == ["values_survive"]
    assert "the observation of the reset was" in report["values_survive"].seen


def test_nobody_at_an_address_is_an_error_and_no_finding(quick: Quick) -> None:
    with pytest.raises(ServerUnreachable):
        quick("tcp://127.0.0.1:1")


def test_a_served_environment_that_hangs_fails_in_time(quick: Quick, gate: threading.Event) -> None:
    class Env(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            gate.wait(30)
            return super().step(action)

    with EnvServer(lambda: Env(cartpole())) as server:
        report = quick(server.address, timeout=1.0)
        gate.set()

    assert [finding.name for finding in report.failed] == ["in_time"]
    assert "step 1 after reset(seed=0)" in report["in_time"].seen


def test_a_served_environment_that_raises_fails_plays_with_its_own_words(quick: Quick) -> None:
    class Env(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            if action == 1:
                raise OSError("the motor is stuck")
            return super().step(action)

    with EnvServer(lambda: Env(cartpole())) as server:
        report = quick(server.address)

    assert "plays" in {finding.name for finding in report.failed}
    assert "the motor is stuck" in report["plays"].seen


def test_an_environment_that_cannot_be_made_is_an_error_and_no_finding(quick: Quick) -> None:
    def broken() -> Any:
        raise OSError("no level")

    with pytest.raises(Error, match="no level"):
        quick(broken)
