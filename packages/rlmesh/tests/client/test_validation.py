"""Values out of range: what servers do about them, and what clients cast."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import jax.numpy as typed_jnp
import numpy as np
import pytest
import rlmesh
import rlmesh.numpy
import torch
from gymnasium import spaces
from rlcore import EnvironmentException, InvalidActionError
from rlmesh.server.validation import POLICY_VARIABLE, WARNING_KEY, policy_named

jnp: Any = typed_jnp  # Any: checkers cannot read the types of most of jax
Serve = Callable[..., rlmesh.EnvServer]
BOX = spaces.Box(-1, 1, (2,), np.float32)


class Loose(gymnasium.Env[Any, Any]):
    """Observes its action, twice as large."""

    def __init__(self, action_space: Any = None) -> None:
        self.action_space = action_space or BOX
        self.observation_space = spaces.Dict(
            {"twice": spaces.Box(-1, 1, (2,), np.float32), "word": spaces.Text(3)}
        )
        self.actions: list[Any] = []
        self.word = "ok"

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        return {"twice": np.zeros(2), "word": self.word}, {"kept": 1}

    def step(self, action: Any) -> Any:
        self.actions.append(action)
        twice = 2 * action if self.action_space == BOX else [0, 0]
        return {"twice": twice, "word": self.word}, 0.0, False, False, {"kept": 2}


def test_what_is_out_of_range_is_delivered_and_reported_once_in_a_session(serve: Serve) -> None:
    env = Loose()
    with rlmesh.numpy.RemoteEnv(serve(env).address) as client:
        _, info = client.reset()
        assert info["kept"] == 1
        assert WARNING_KEY not in info

        observation, *_, info = client.step([3, 0])

        assert observation["twice"].tolist() == [6, 0]
        assert env.actions[0].tolist() == [3, 0]
        assert info["kept"] == 2
        assert info[WARNING_KEY] == [
            {
                "kind": "observation",
                "path": "$.twice",
                "detail": "holds 6.0 at [0], outside -1.0 to 1.0",
            },
            {"kind": "action", "path": "$", "detail": "holds 3.0 at [0], outside -1.0 to 1.0"},
        ]
        env.word = "longer"
        (warning,) = client.step([3, 0])[-1][WARNING_KEY]
        assert (warning["kind"], warning["path"]) == ("observation", "$.word")
        assert WARNING_KEY not in client.step([3, 0])[-1]
        assert WARNING_KEY not in client.reset()[1]


def test_the_next_session_is_told_again(serve: Serve) -> None:
    server = serve(Loose())
    for _ in range(2):
        with rlmesh.RemoteEnv(server.address) as client:
            client.reset()
            assert client.step([3, 0])[-1][WARNING_KEY][-1]["kind"] == "action"


def test_a_reset_reports_its_observation(serve: Serve) -> None:
    env = Loose()
    env.word = "longer"
    with rlmesh.RemoteEnv(serve(env).address) as client:
        (warning,) = client.reset()[1][WARNING_KEY]

    assert warning["path"] == "$.word"


def test_a_strict_server_refuses_the_action_and_the_session_goes_on(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(POLICY_VARIABLE, "strict")
    env = Loose()
    with rlmesh.numpy.RemoteEnv(serve(env).address) as client:
        client.reset()
        with pytest.raises(ValueError, match=r"action at \$ holds 3.0") as caught:
            client.step([3, 0])
        assert isinstance(caught.value, InvalidActionError)
        assert env.actions == []

        observation, *_ = client.step([0.25, 0])
        assert observation["twice"].tolist() == [0.5, 0]


def test_a_strict_server_blames_the_environment_for_its_observation(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(POLICY_VARIABLE, "strict")
    with rlmesh.numpy.RemoteEnv(serve(Loose()).address) as client:
        client.reset()
        with pytest.raises(EnvironmentException, match=r"observation at \$.twice holds 2.0"):
            client.step([1, 0])
        client.reset()  # a new session
        client.step([0.5, 0])


def test_a_server_that_is_told_not_to_look_says_nothing(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(POLICY_VARIABLE, "off")
    with rlmesh.numpy.RemoteEnv(serve(Loose()).address) as client:
        client.reset()
        observation, *_, info = client.step([3, 0])

    assert observation["twice"].tolist() == [6, 0]
    assert WARNING_KEY not in info


def test_a_wrong_form_is_refused_whatever_the_policy(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(POLICY_VARIABLE, "off")
    with rlmesh.numpy.RemoteEnv(serve(Loose()).address) as client:
        client.reset()
        for action in ([1, 2, 3], [np.nan, 0], "up"):
            with pytest.raises(InvalidActionError):
                client.step(action)


def test_what_was_refused_does_not_count_as_reported(serve: Serve) -> None:
    with rlmesh.numpy.RemoteEnv(
        serve(Loose(spaces.Box(-1, 1, (2,), np.float64))).address
    ) as client:
        client.reset()
        with pytest.raises(InvalidActionError):
            client.step([np.nan, 0])
        assert client.step([3, 0])[-1][WARNING_KEY][-1]["kind"] == "action"


@pytest.mark.parametrize(
    ("said", "policy"),
    [(None, "warn"), ("", "warn"), ("sometimes", "warn"), (" STRICT ", "strict"), ("off", "off")],
)
def test_an_unknown_policy_warns(said: str | None, policy: str) -> None:
    assert policy_named(said) == policy


CASTS: list[tuple[Any, Any, Any]] = [
    (spaces.Box(-9, 9, (2,), np.float32), np.array([1.5, 2.0]), [1.5, 2]),
    (spaces.Box(-9, 9, (2,), np.float32), np.array([1, 2], np.int8), [1, 2]),
    (spaces.Box(-9, 9, (2,), np.int32), np.array([1.0, 2.0]), [1, 2]),
    (spaces.Box(0, 9, (2,), np.uint8), torch.tensor([1, 2]), [1, 2]),
    (spaces.Box(0, 9, (2,), np.float64), jnp.array([1, 2]), [1, 2]),
    (spaces.MultiBinary(2), np.array([True, False]), [1, 0]),
    (spaces.MultiBinary(2), np.array([1, 0], np.int8), [1, 0]),
    (spaces.MultiDiscrete([3, 3]), torch.tensor([1.0, 2.0]), [1, 2]),
    (spaces.Discrete(3), np.int32(2), 2),
    (spaces.Discrete(3), np.array([2]), 2),
    (spaces.Discrete(3), torch.tensor(2), 2),
    (spaces.Discrete(3), torch.tensor([2.0]), 2),
    (spaces.Discrete(3), jnp.array(2), 2),
    (spaces.Discrete(3), True, 1),
    (spaces.Discrete(3), torch.tensor(True), 1),
    (spaces.Discrete(3), 2.0, 2),
]


@pytest.mark.parametrize(("space", "action", "arrived"), CASTS)
def test_actions_are_cast_where_nothing_is_lost(
    serve: Serve, space: Any, action: Any, arrived: Any
) -> None:
    env = Loose(space)
    with rlmesh.numpy.RemoteEnv(serve(env).address) as client:
        client.reset()
        client.step(action)

    assert np.asarray(env.actions[0]).tolist() == arrived
    assert env.actions[0] in space


@pytest.mark.parametrize(
    ("space", "action"),
    [
        (spaces.Box(-9, 9, (2,), np.int32), np.array([1.5, 2.0])),
        (spaces.Box(0, 9, (2,), np.uint8), np.array([-1, 0])),
        (spaces.Box(-9, 9, (2,), np.float32), np.array([1e300, 0])),
        (spaces.Discrete(3), torch.tensor([0.5])),
        (spaces.Discrete(3), torch.tensor([1, 2])),
        (spaces.MultiBinary(2), np.array([2, 0])),
    ],
)
def test_actions_are_refused_where_something_would_be_lost(
    serve: Serve, space: Any, action: Any
) -> None:
    with rlmesh.numpy.RemoteEnv(serve(Loose(space)).address) as client:
        client.reset()
        with pytest.raises(InvalidActionError):
            client.step(action)


TREE = spaces.Dict(
    {
        "box": spaces.Box(-9, 9, (2,), np.float32),
        "both": spaces.Tuple([spaces.Discrete(3), spaces.MultiBinary(2)]),
        "word": spaces.Text(4),
    }
)
EXACT: dict[str, Any] = {
    "box": np.ones(2, np.float32),
    "both": (1, np.ones(2, np.uint8)),
    "word": "up",
}


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"box": np.ones(2)}, "$.box"),
        ({"box": torch.ones(2, dtype=torch.float64)}, "$.box"),
        ({"box": jnp.ones(2, jnp.int32)}, "$.box"),
        ({"box": [1, 2.0]}, "$.box"),
        ({"box": rlmesh.Tensor(bytes(2), [2], "int8")}, "$.box"),
        ({"both": (np.int32(1), EXACT["both"][1])}, "$.both[0]"),
        ({"both": (True, EXACT["both"][1])}, "$.both[0]"),
        ({"both": (1, np.ones(2, np.bool_))}, "$.both[1]"),
    ],
)
def test_strict_dtypes_refuse_every_cast(serve: Serve, change: Any, path: str) -> None:
    env = Loose(TREE)
    with rlmesh.numpy.RemoteEnv(serve(env).address, strict_dtypes=True) as client:
        client.reset()
        with pytest.raises(InvalidActionError, match="strict_dtypes") as caught:
            client.step({**EXACT, **change})
        assert caught.value.path == path
        assert env.actions == []


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"box": torch.ones(2)},
        {"box": jnp.ones(2)},
        {"box": [1.0, 2.0]},
        {"box": rlmesh.Tensor(bytes(8), [2], "float32")},
        {"both": [np.int64(1), torch.ones(2, dtype=torch.uint8)]},
        {"both": (1, np.ones(2, np.int8))},
    ],
)
def test_strict_dtypes_take_what_is_exact(serve: Serve, change: Any) -> None:
    env = Loose(TREE)
    with rlmesh.numpy.RemoteEnv(serve(env).address, strict_dtypes=True) as client:
        client.reset()
        client.step({**EXACT, **change})

    assert len(env.actions) == 1
