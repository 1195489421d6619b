"""What is checked of a served environment."""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable
from typing import Any, TypeAlias

import gymnasium as gym
import pytest
from gymnasium.vector import SyncVectorEnv
from rlcore import AccessDenied, Endpoint, Error, ServerUnreachable, SessionBusy
from rlmesh import EnvServer, RemoteEnv, ServeOptions
from rlmesh.codec import compile_codec
from rlmesh.conformance import Report, Verdict
from rlmesh.conformance.dialling import dial as really_dial
from rlmesh.conformance.subject import Env
from rlmesh.spaces import Box, Space

Quick: TypeAlias = Callable[..., Report]


def cartpole() -> Any:
    return gym.make("CartPole-v1")


class Ends(gym.Wrapper[Any, Any, Any, Any]):
    def __init__(self) -> None:
        super().__init__(cartpole())

    def step(self, action: Any) -> Any:
        os._exit(3)


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


def test_a_contract_that_changes_between_dials_fails_digest_stable(
    quick: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    later: Any = cartpole()
    later.unwrapped.metadata = {**later.metadata, "level": 2}
    with EnvServer(cartpole) as one, EnvServer(later) as other:
        servers = itertools.chain([one], itertools.repeat(other))

        def dial(address: object, **options: Any) -> Env:
            return really_dial(next(servers).address, **options)

        monkeypatch.setattr("rlmesh.conformance.dialling.dial", dial)
        report = quick(one.address, only=["digest_stable", "reward"])

    assert [finding.name for finding in report.failed] == ["digest_stable"]
    assert one.env_contract.digest in report["digest_stable"].seen
    assert other.env_contract.digest in report["digest_stable"].seen


def test_values_that_change_on_the_wire_fail_values_survive(
    quick: Quick, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Lossy:
        def __init__(self, space: Space, **options: Any) -> None:
            self._codec = compile_codec(space, **options)
            self.encode = self._codec.encode

        def decode(self, leaves: Any) -> Any:
            value = self._codec.decode(leaves)
            return value.round(3) if isinstance(self._codec.space, Box) else value

    # The check's own codecs only: what came over the wire was exact.
    monkeypatch.setattr("rlmesh.conformance.traffic.compile_codec", Lossy)
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
        report = quick(server.address, timeout=4.0)
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
    assert f"({__file__}:" in report["plays"].seen
    assert report["plays"].fix.startswith("Mend what raised.")


def test_a_served_environment_that_ends_its_process_is_told_so(quick: Quick) -> None:
    with EnvServer(Ends, options=ServeOptions(isolation="process")) as server:
        report = quick(server.address, only=["plays", "reward", "seed_honoured"])

    assert "exit code 3" in report["plays"].seen
    assert report["plays"].fix.startswith("Its process ended")
    assert report["reward"].verdict is Verdict.SKIPPED, "no reward was seen"
    assert report["seed_honoured"].verdict is Verdict.SKIPPED, "no step was seen"


def test_what_the_wire_hides_is_skipped(quick: Quick) -> None:
    class Env(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            observation, *rest = super().step(action)
            return observation.astype("float64"), *rest

    with EnvServer(lambda: Env(cartpole())) as server:
        report = quick(server.address)

    assert report.conforms(strict=True), "\n".join(map(str, report.of(Verdict.NOTED)))
    for check in ("answers", "observation_kept", "flags", "info"):
        assert report[check].verdict is Verdict.SKIPPED, str(report[check])
        assert "not visible over the wire" in report[check].seen
    assert "not visible over the wire" in report["observations"].seen


@pytest.mark.parametrize(
    ("part", "value", "check"),
    [
        (1, float("nan"), "reward"),
        (2, 1, "flags"),
        (4, "fell", "info"),
        (0, None, "observations"),
    ],
)
def test_what_a_server_refuses_fails_the_check_that_is_about_it(
    part: int, value: object, check: str, quick: Quick
) -> None:
    class Env(gym.Wrapper[Any, Any, Any, Any]):
        def step(self, action: Any) -> Any:
            answer: list[Any] = [*super().step(action)]
            answer[part] = value
            return tuple(answer)

    with EnvServer(lambda: Env(cartpole())) as server:
        report = quick(server.address, only=["plays", "reward", "flags", "info", "observations"])

    assert {finding.name for finding in report.failed} == {"plays", check}
    assert report["plays"].fix.endswith(f"see {check}.")


def test_an_environment_that_cannot_be_made_is_an_error_and_no_finding(quick: Quick) -> None:
    def broken() -> Any:
        raise OSError("no level")

    with pytest.raises(Error, match="no level"):
        quick(broken)


def test_a_server_that_lets_nobody_in_is_an_error_and_no_finding(quick: Quick) -> None:
    with EnvServer(cartpole()) as server, RemoteEnv(server.address) as other:
        other.reset(seed=0)

        with pytest.raises(SessionBusy):
            quick(server.address, timeout=2.0)


def test_a_full_server_lets_one_client_of_the_check_in(quick: Quick) -> None:
    with EnvServer(cartpole, options=ServeOptions(max_sessions=1)) as server:
        report = quick(server.address, timeout=4.0)

    assert report.conforms(), "\n".join(map(str, report.failed))
    assert report["threads"].verdict is Verdict.SKIPPED


LANES: dict[str, Callable[[], Any]] = {
    "next step": lambda: SyncVectorEnv([cartpole] * 2, autoreset_mode="NextStep"),
    "same step": lambda: SyncVectorEnv([cartpole] * 2, autoreset_mode="SameStep"),
    "disabled": lambda: SyncVectorEnv([cartpole] * 2, autoreset_mode="Disabled"),
    "a list": lambda: [cartpole(), cartpole()],
}


@pytest.mark.parametrize("make", LANES.values(), ids=LANES.keys())
def test_served_lanes_conform_in_every_autoreset_mode(
    make: Callable[[], Any], quick: Quick
) -> None:
    with EnvServer(make()) as server:
        report = quick(server.address)

    assert report.conforms(), "\n".join(map(str, report.failed))
    for check in ("autoreset", "lane_seeds", "values_survive", "digest_stable", "latency"):
        assert report[check].verdict is Verdict.PASSED, str(report[check])
    mode = server.env_contract.autoreset_mode
    assert (report["final_values"].verdict is Verdict.PASSED) == (mode == "same_step")
    assert (report["partial_reset"].verdict is Verdict.PASSED) == (mode == "disabled")


def test_served_lanes_of_a_factory_conform_side_by_side(quick: Quick) -> None:
    with EnvServer(lambda: SyncVectorEnv([cartpole] * 2)) as server:
        report = quick(server.address)

    assert report.conforms(), "\n".join(map(str, report.failed))
    assert report["threads"].verdict is Verdict.PASSED


def test_a_server_that_asks_for_a_token_is_shown_one(quick: Quick) -> None:
    with EnvServer(cartpole, token="open sesame") as server:
        with pytest.raises(AccessDenied):
            quick(server.address)
        report = quick(server.address, connect={"token": "open sesame"})

    assert report.conforms(), "\n".join(map(str, report.failed))
