"""What a check is asked for, and what it reports."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import gymnasium as gym
import pytest
from rlcore import ConfigurationError
from rlmesh.conformance import CHECKS, Report, Verdict, check

Quick: TypeAlias = Callable[..., Report]


def test_a_report_is_plain_data(quick: Quick) -> None:
    report = quick("CartPole-v1", skip=["processes"], seeds=[4, 5])

    said = json.loads(report.to_json())
    assert said["target"] == "CartPole-v1"
    assert said["environment"] == "CartPole-v1"
    assert said["digest"].startswith("sha256:")
    assert said["seeds"] == [4, 5]
    assert said["counts"]["failed"] == 0
    assert {one["name"] for one in said["checks"]} == {finding.name for finding in report}
    assert set(said["checks"][0]) == {"name", "verdict", "seen", "fix", "reproduce"}
    assert "0 failed" in str(report)


def test_checks_can_be_chosen_and_left_out() -> None:
    chosen = check("CartPole-v1", steps=5, only=["reward", "flags", "info"], skip=["info"])

    assert [finding.name for finding in chosen] == ["reward", "flags"]


def test_every_check_says_what_it_promises() -> None:
    assert all(one.promise.endswith(".") for one in CHECKS.values())


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"only": ["seed_honored"]}, "Did you mean seed_honoured"),
        ({"skip": ["xyzzy"]}, "There are contract, metadata"),
        ({"seeds": []}, "Give one at least"),
        ({"seeds": [-1]}, "from 0 to"),
        ({"seeds": [1, 1]}, "repeat"),
        ({"steps": 0}, "Play one step"),
        ({"timeout": 0}, "more than 0 seconds"),
        ({"timeout": float("nan")}, "more than 0 seconds"),
    ],
)
def test_arguments_that_make_no_sense_are_refused(arguments: Any, text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        check("CartPole-v1", **arguments)


@pytest.mark.parametrize("target", [None, 7, "", "no.such.module:Env", "NoSuch-v1"])
def test_what_names_no_environment_is_refused(target: Any) -> None:
    with pytest.raises(ConfigurationError):
        check(target)


def test_a_check_that_a_report_lacks_is_named(quick: Quick) -> None:
    report = quick("CartPole-v1", only=["reward"])

    with pytest.raises(ConfigurationError, match="has no check 'flags'"):
        _ = report["flags"]


def test_an_instance_is_the_callers_and_is_not_closed(quick: Quick) -> None:
    class Env(gym.Wrapper[Any, Any, Any, Any]):
        closed = 0

        def close(self) -> None:
            self.closed += 1
            super().close()

    env = Env(gym.make("CartPole-v1"))

    report = quick(env)

    assert report.conforms(), "\n".join(map(str, report.failed))
    assert env.closed == 0
    skipped = {finding.name for finding in report.of(Verdict.SKIPPED)}
    assert {"close", "made_again", "threads", "other_thread", "processes"} <= skipped
    assert env.reset(seed=1)[0].shape == (4,)


def test_something_that_makes_environments_is_checked(quick: Quick) -> None:
    class Factory:
        def make(self) -> Any:
            return gym.make("CartPole-v1")

    for target in (Factory(), Factory, Factory().make):
        report = quick(target, only=["plays", "made_again"])

        assert report.counts()["passed"] == 2
        assert report.environment == "CartPole-v1"


def test_an_id_that_a_module_registers_is_named_as_gymnasium_does(
    quick: Quick, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (
        "import gymnasium\n"
        "gymnasium.register('Registered-v3', 'gymnasium.envs.classic_control:CartPoleEnv')\n"
    )
    (tmp_path / "registering_envs.py").write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr("gymnasium.envs.registration.registry", {**gym.registry})

    report = quick("registering_envs:Registered-v3", only=["plays", "render"])

    assert report.environment == "Registered-v3"
    assert report.counts()["passed"] == 2
    with pytest.raises(ConfigurationError, match="or an id that the module registers"):
        check("registering_envs:Registered-v4")


class Drawn(gym.Wrapper[Any, Any, Any, Any]):
    """Declares frames, and cannot be made to give them."""

    def __init__(self) -> None:
        super().__init__(gym.make("CartPole-v1"))


def test_a_render_that_cannot_be_asked_for_is_skipped_with_the_reason(quick: Quick) -> None:
    made, borrowed = (quick(one, only=["render"])["render"] for one in (Drawn, Drawn()))

    assert made.verdict is Verdict.SKIPPED
    assert made.seen == "it declares rgb_array, and what makes it takes no render_mode"
    assert borrowed.seen == "it declares rgb_array, and was made without a render mode"


def test_the_warnings_of_the_caller_are_left_alone(quick: Quick) -> None:
    import warnings

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        quick("CartPole-v1", only=["reward"])
        warnings.warn("mine", stacklevel=1)

    assert [str(one.message) for one in caught] == ["mine"]
