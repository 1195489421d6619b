"""Lists of environments, and vector environments, as servers drive them."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from rlcore import (
    ConfigurationError,
    EnvironmentException,
    InvalidActionError,
    InvalidObservationError,
    UnsupportedError,
)
from rlmesh.client.vector_link import VectorLink
from rlmesh.numpy import RemoteEnv, RemoteVectorEnv
from rlmesh.server.env_server import EnvServer
from rlmesh.specs import AutoresetMode as Mode

Serve = Callable[..., EnvServer]
ZEROS = np.zeros((3, 2, 3), np.float32)


@pytest.fixture
def lanes(wanderer: Any) -> list[Any]:
    return [wanderer() for _ in range(3)]


def test_one_seed_is_counted_up_over_the_lanes(lanes: list[Any], serve: Serve) -> None:
    with RemoteVectorEnv(serve(lanes).address) as env:
        env.reset(seed=40)
        env.reset(seed=[7, 5, 3])
        env.reset()
    assert [[seed for seed, _ in lane.resets] for lane in lanes] == [
        [40, 7, None],
        [41, 5, None],
        [42, 3, None],
    ]


@pytest.mark.parametrize("seed", [[1, 2], [1, 2, 3, 4], (), np.array([[1], [2], [3]])])
def test_seeds_that_are_not_one_for_each_lane_reach_nobody(
    seed: Any, lanes: list[Any], serve: Serve
) -> None:
    with RemoteVectorEnv(serve(lanes).address) as env:
        with pytest.raises(ValueError, match=r"seeds are (given|an array of shape \(3, 1\))"):
            env.reset(seed=seed)
        env.reset(seed=[None, None, None])
    assert [lane.resets for lane in lanes] == [[(None, None)]] * 3


@pytest.mark.parametrize(
    ("seed", "expected"),
    [
        ([1, None, 3], [1, None, 3]),
        (range(4, 7), [4, 5, 6]),
        (np.array([9, 8, 7], np.uint8), [9, 8, 7]),
        (np.array(2), [2, 3, 4]),
    ],
)
def test_seeds_are_given_in_every_form_that_gymnasium_takes(
    seed: Any, expected: list[int | None], lanes: list[Any], serve: Serve
) -> None:
    with RemoteVectorEnv(serve(lanes).address) as env:
        env.reset(seed=seed)
    assert [lane.resets for lane in lanes] == [[(one, None)] for one in expected]


def test_a_seed_that_cannot_be_counted_up_over_the_lanes_is_refused_before_it_travels(
    lanes: list[Any], serve: Serve
) -> None:
    with RemoteVectorEnv(serve(lanes).address) as env:
        with pytest.raises(OverflowError, match=str(2**63)):
            env.reset(seed=2**63 - 2)
        env.reset(seed=2**63 - 3)
    assert [lane.resets[0][0] for lane in lanes] == [2**63 - 3, 2**63 - 2, 2**63 - 1]


def test_seeds_of_some_lanes_only_are_refused_where_the_server_has_no_words_for_them(
    lanes: list[Any], serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    with RemoteVectorEnv(serve(lanes).address) as env:
        monkeypatch.setattr(VectorLink, "_is_ours", False)  # as of a published server
        with pytest.raises(UnsupportedError, match="for some of the lanes"):
            env.reset(seed=[1, None, 3])
    assert [lane.resets for lane in lanes] == [[]] * 3


def test_options_reach_every_lane_as_a_dictionary_of_its_own(
    lanes: list[Any], serve: Serve
) -> None:
    with RemoteVectorEnv(serve(lanes).address) as env:
        env.reset(options={"level": 3})
    given = [lane.resets[0][1] for lane in lanes]
    assert given == [{"level": 3}] * 3
    assert len({id(options) for options in given}) == 3


def test_a_mask_resets_its_lanes_and_leaves_the_others_where_they_are(
    lanes: list[Any], serve: Serve
) -> None:
    with RemoteVectorEnv(serve(lanes).address) as env:
        env.reset(seed=0)
        before, *_ = env.step(ZEROS)
        ids = env.episode_ids
        mask = np.array([False, True, False])
        after, info = env.reset(seed=10, options={"reset_mask": mask, "level": 1})
        assert [np.array_equal(before[lane], after[lane]) for lane in range(3)] == [
            True,
            False,
            True,
        ]
        assert info["_start"].tolist() == [False, True, False]
        assert [a == b for a, b in zip(ids, env.episode_ids, strict=True)] == [True, False, True]
    assert [len(lane.resets) for lane in lanes] == [1, 2, 1]
    assert lanes[1].resets[1] == (11, {"level": 1})


@pytest.mark.parametrize(
    "mask", [[True], [0, 1, 0], [False] * 3, np.ones((3, 1), bool), "all", None]
)
def test_a_mask_that_is_not_a_flag_for_each_lane_is_refused(
    mask: Any, lanes: list[Any], serve: Serve
) -> None:
    with RemoteVectorEnv(serve(lanes).address) as env:
        env.reset()
        with pytest.raises(ConfigurationError, match="reset_mask"):
            env.reset(options={"reset_mask": mask})


def test_a_lane_that_raises_is_named_and_the_next_reset_starts_over(
    lanes: list[Any], serve: Serve
) -> None:
    lanes[1].raises_at = 1
    with RemoteVectorEnv(serve(lanes).address) as env:
        env.reset(seed=0)
        with pytest.raises(
            EnvironmentException, match=r"lane 1 failed.*the arm is stuck"
        ) as caught:
            env.step(ZEROS)
        assert caught.value.remote_type == "RuntimeError"
        assert caught.value.remote_traceback is not None
        assert "the arm is stuck" in caught.value.remote_traceback
        assert [lane.steps for lane in lanes] == [1, 1, 0]  # those before it have been stepped
        lanes[1].raises_at = -1
        env.reset(seed=0)
        env.step(ZEROS)


def test_an_observation_outside_its_space_is_told_with_its_lane(
    lanes: list[Any], serve: Serve
) -> None:
    with RemoteVectorEnv(serve(lanes).address) as env:
        lanes[2]._observation = lambda: np.zeros(5, np.float32)
        with pytest.raises(EnvironmentException, match="in lane 2") as caught:
            env.reset()
    assert caught.value.remote_type == InvalidObservationError.__name__


def test_each_lane_is_drawn_by_itself(lanes: list[Any], serve: Serve) -> None:
    with RemoteVectorEnv(serve(lanes).address) as env:
        env.reset()
        assert not env.closed
        lanes[2].steps = 9
        frames = env.render()
        assert [int(frame[0, 0, 0]) for frame in frames] == [0, 0, 9]
        assert env.render(env_index=2).shape == (4, 6, 3)
        with pytest.raises(InvalidActionError, match="lane 3"):
            env.render(env_index=3)
        env.step(ZEROS)
    assert env.closed


def test_a_vector_environment_is_drawn_lane_by_lane(wanderer: Any, serve: Serve) -> None:
    vector: Any = SyncVectorEnv([wanderer] * 2)
    with RemoteVectorEnv(serve(vector).address) as env:
        env.reset()
        vector.envs[1].steps = 7
        assert [int(frame[0, 0, 0]) for frame in env.render()] == [0, 7]
        with pytest.raises(InvalidActionError, match="lane 2"):
            env.render(env_index=2)
        env.reset()


def test_what_is_not_drawn_gives_no_frames(wanderer: Any, serve: Serve) -> None:
    vector = SyncVectorEnv([wanderer] * 2)
    vector.render_mode = None
    with RemoteVectorEnv(serve(vector).address) as env:
        env.reset()
        assert env.render() == (None, None)


def test_a_finished_lane_of_a_disabled_vector_environment_has_to_be_reset_first(
    wanderer: Any, serve: Serve
) -> None:
    make = partial(wanderer, longest=2)
    vector = SyncVectorEnv([make] * 2, autoreset_mode=AutoresetMode.DISABLED)
    with RemoteVectorEnv(serve(vector).address) as env:
        env.reset(seed=0)
        env.step(ZEROS[:2])
        env.step(ZEROS[:2])
        with pytest.raises(EnvironmentException, match="reset_mask") as caught:
            env.step(ZEROS[:2])
        assert caught.value.code == "not_ready"
        env.reset(options={"reset_mask": np.array([True, True])})
        env.step(ZEROS[:2])


def test_a_mask_that_the_server_refuses_leaves_the_episodes_running(
    wanderer: Any, serve: Serve
) -> None:
    class Whole(SyncVectorEnv[Any, Any]):
        """Not one of gymnasium's own, as far as a server can see."""

        @property
        def unwrapped(self) -> Any:
            return None

    with RemoteVectorEnv(serve(Whole([wanderer] * 2)).address) as env:
        env.reset(seed=0)
        env.step(ZEROS[:2])
        with pytest.raises(UnsupportedError, match="some of its lanes"):
            env.reset(options={"reset_mask": np.array([True, False])})
        env.step(ZEROS[:2])


def test_a_step_before_the_first_reset_is_refused_here(lanes: list[Any], serve: Serve) -> None:
    with (
        RemoteVectorEnv(serve(lanes).address) as env,
        pytest.raises(EnvironmentException, match="no running episode"),
    ):
        env.step(ZEROS)


def test_a_client_of_one_environment_is_told_who_drives_several(
    lanes: list[Any], serve: Serve
) -> None:
    address = serve(lanes).address
    with pytest.raises(ConfigurationError, match=r"3 environments.*RemoteVectorEnv"):
        RemoteEnv(address)


def test_one_environment_is_driven_as_one_lane(wanderer: Any, serve: Serve) -> None:
    with RemoteVectorEnv(serve(wanderer()).address) as env:
        observations, info = env.reset(seed=3)
        assert env.num_envs == 1
        assert observations.shape == (1, 2, 3)
        assert info["_start"].tolist() == [True]
        _, rewards, terminated, truncated, info = env.step(ZEROS[:1])
        assert (rewards.tolist(), terminated.tolist(), truncated.tolist()) == (
            [0.5],
            [False],
            [False],
        )
        assert info["odd"].tolist() == ["after 1"]


@pytest.mark.parametrize("mode", AutoresetMode)
def test_a_vector_environment_of_one_lane_is_a_single_environment(
    mode: AutoresetMode, wanderer: Any, serve: Serve
) -> None:
    here = wanderer("dict")
    vector = SyncVectorEnv([partial(wanderer, "dict")], autoreset_mode=mode)
    server = serve(vector)
    assert server.env_contract.num_envs == 1
    assert server.env_contract.autoreset_mode is Mode.DISABLED
    assert "autoreset_mode" not in (server.env_contract.metadata or {})
    with RemoteEnv(server.address) as env:
        for seed in (5, None):
            np.testing.assert_equal(env.reset(seed=seed), here.reset(seed=seed))
            over = False
            while not over:
                action = here.action_space.sample()
                ours, theirs = env.step(action), here.step(action)
                np.testing.assert_equal(ours[:4], theirs[:4])
                assert ours[4]["step"] == theirs[4]["step"]
                over = theirs[2] or theirs[3]
        frame = env.render()
        assert frame is not None
        assert frame.shape == (4, 6, 3)


def one_in_a_list(make: Callable[..., Any]) -> object:
    return [SyncVectorEnv([make])]


def two_kinds(make: Callable[..., Any]) -> object:
    return [make(), make("text")]


def a_number(make: Callable[..., Any]) -> object:
    return [make(), 7]


def none_at_all(make: Callable[..., Any]) -> object:
    return []


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (none_at_all, "empty list"),
        (two_kinds, "in lane 1 has another contract"),
        (a_number, "in lane 1, 7 is not an environment"),
        (one_in_a_list, "steps several environments at once"),
    ],
)
def test_a_list_that_is_no_set_of_lanes_is_not_served(
    source: Any, message: str, wanderer: Any
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        EnvServer(source(wanderer))


def test_all_lanes_of_a_list_are_closed_with_the_server(lanes: list[Any]) -> None:
    with EnvServer(lanes):
        pass
    assert [lane.closed for lane in lanes] == [1, 1, 1]


@pytest.mark.parametrize("mode", ["lanes", "sync"])
def test_a_factory_makes_as_many_lanes_as_are_asked_for_each_client(
    mode: str, wanderer: Any, serve: Serve
) -> None:
    made: list[Any] = []

    def make() -> Any:
        made.append(wanderer())
        return made[-1]

    address = serve(make, num_envs=3, vectorization_mode=mode).address
    with RemoteVectorEnv(address) as one, RemoteVectorEnv(address) as other:
        assert (one.num_envs, other.num_envs) == (3, 3)
        one.reset()
        other.reset()
        assert len([env for env in made if env.resets]) == 6
    assert one.spec is not None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_envs": 0}, "num_envs is 0"),
        ({"vectorization_mode": "sync"}, "num_envs is not given"),
        ({"num_envs": 2, "vectorization_mode": "threads"}, "vectorization_mode is 'threads'"),
        ({"num_envs": 2, "vectorization_mode": "vector_entry_point"}, "gymnasium's ids"),
        ({"num_envs": 2, "autoreset_mode": "sometimes"}, "autoreset_mode is 'sometimes'"),
    ],
)
def test_a_wish_that_cannot_be_met_is_named(
    options: dict[str, Any], message: str, wanderer: Any
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        EnvServer(wanderer, **options)


def test_an_environment_that_is_there_cannot_be_multiplied(wanderer: Any) -> None:
    with pytest.raises(ConfigurationError, match="is one environment"):
        EnvServer(wanderer(), num_envs=2)
    with pytest.raises(ConfigurationError, match="list of 1 environments"):
        EnvServer([wanderer()], num_envs=2)
