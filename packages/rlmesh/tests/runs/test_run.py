import pickle
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from rlcore import ConfigurationError, InvalidActionError
from rlmesh import EnvServer
from rlmesh.models.context import PredictContext
from rlmesh.models.model import Model, ModelTypeError
from rlmesh.models.numpy_model import Model as NumpyModel
from rlmesh.models.sentinels import RANDOM_SAMPLE
from rlmesh.runs.hooks import RunContext, RunHooks, StepEvent
from rlmesh.runs.outcomes import Outcome
from rlmesh.runs.progress import RunProgress
from rlmesh.runs.results import EpisodeResult, RunResult
from rlmesh.runs.run import run
from rlmesh.runs.session import session
from rlmesh.runs.targets import TargetTypeError
from rlmesh.specs import contract_of
from rlmesh.values import Tensor

RIGHT = NumpyModel(lambda observation: 1, name="right")


def balance(observation: Any) -> int:
    return int(observation[2] + observation[3] > 0)


def test_a_run_equals_the_loop_written_by_hand() -> None:
    expected: list[tuple[int, float]] = []
    env = gym.make("CartPole-v1")
    for seed in (3, 4, 5):
        observation, _ = env.reset(seed=seed)
        steps, total, done = 0, 0.0, False
        while not done:
            observation, reward, terminated, truncated, _ = env.step(balance(observation))
            steps, total, done = steps + 1, total + float(reward), terminated or truncated
        expected.append((steps, total))

    result = run(NumpyModel(balance), env, seeds=[3, 4, 5])

    assert [(episode.steps, episode.reward) for episode in result.episodes] == expected
    assert result.seeds == (3, 4, 5)


def test_a_time_limit_of_the_environment_truncates() -> None:
    env = gym.make("CartPole-v1", max_episode_steps=50)

    result = run(NumpyModel(balance), env, episodes=1, success_threshold=50)

    episode = result.episodes[0]
    assert (episode.steps, episode.truncated, episode.terminated) == (50, True, False)
    assert episode.outcome is Outcome.SUCCESS


def test_every_episode_is_reset_with_its_seed(corridor: Any) -> None:
    env = corridor()

    result = run(RIGHT, env, episodes=3, seed=20)

    assert env.seeds == [20, 21, 22]
    assert result.seeds == (20, 21, 22)
    assert env.closed == 0


def test_a_given_environment_is_closed_only_on_request(corridor: Any) -> None:
    env = corridor()
    run(RIGHT, env, close_env=True)
    assert env.closed == 1


def test_the_result_says_what_was_run(corridor: Any) -> None:
    env = gym.make("CartPole-v1")

    result = run(NumpyModel(balance, digest="sha256:abc"), env, seeds=[1])

    assert result.environment is not None
    assert (result.environment.name, result.environment.version) == ("CartPole-v1", None)
    assert result.environment.contract_digest == contract_of(env).digest
    assert (result.model, result.model_digest) == ("balance", "sha256:abc")
    assert {"python", "rlmesh", "rlcore", "numpy", "gymnasium"} <= result.package_versions.keys()
    assert result.started_at is not None
    assert result.finished_at is not None
    assert result.started_at <= result.finished_at
    assert pickle.loads(pickle.dumps(result)) == result
    assert RunResult.from_dict(result.to_dict()) == result


def test_timings_are_means_per_step(corridor: Any) -> None:
    episode = run(RIGHT, corridor(5)).episodes[0]

    assert episode.predict_ms is not None
    assert episode.step_ms is not None
    assert 0 < (episode.predict_ms + episode.step_ms) * episode.steps <= episode.duration_s * 1000


def test_a_step_limit_truncates(corridor: Any) -> None:
    episode = run(RIGHT, corridor(10), max_episode_steps=4).episodes[0]

    assert (episode.steps, episode.truncated, episode.outcome) == (4, True, Outcome.TRUNCATED)


def test_ending_on_the_last_allowed_step_is_not_cut_off(corridor: Any) -> None:
    episode = run(RIGHT, corridor(4), max_episode_steps=4).episodes[0]

    assert (episode.terminated, episode.truncated) == (True, False)
    assert episode.outcome is Outcome.COMPLETED


def test_a_time_limit_truncates(corridor: Any) -> None:
    stay = NumpyModel(lambda observation: 0)

    episode = run(stay, corridor(10), max_episode_seconds=0.05).episodes[0]

    assert episode.outcome is Outcome.TRUNCATED
    assert 0.05 <= episode.duration_s < 5


@pytest.mark.parametrize("key", ["is_success", "success", "task_success"])
def test_the_last_info_decides_success(corridor: Any, key: str) -> None:
    solved = run(RIGHT, corridor(info={key: np.bool_(True)})).episodes[0]
    missed = run(RIGHT, corridor(info={key: False})).episodes[0]

    assert (solved.success, solved.outcome) == (True, Outcome.SUCCESS)
    assert (missed.success, missed.outcome) == (False, Outcome.FAILURE)


def test_a_criterion_overrules_the_info(corridor: Any) -> None:
    env = corridor(3, info={"success": False})

    assert run(RIGHT, env, success=lambda episode: episode.steps == 3).success_rate == 1.0
    assert run(RIGHT, env, success_threshold=3.1).success_rate == 0.0


def test_two_criteria_are_refused(corridor: Any) -> None:
    with pytest.raises(ConfigurationError, match="both success and success_threshold"):
        run(RIGHT, corridor(), success=lambda episode: True, success_threshold=1)


def test_random_samples_are_the_same_for_the_same_seeds_in_any_order() -> None:
    one = run(RANDOM_SAMPLE, gym.make("CartPole-v1"), seeds=[5, 6, 7])
    two = run(RANDOM_SAMPLE, gym.make("CartPole-v1"), seeds=[7, 6, 5])

    assert one.model == "RANDOM_SAMPLE"
    assert [e.steps for e in one.episodes] == [e.steps for e in reversed(two.episodes)]
    assert (
        len({e.steps for e in run(RANDOM_SAMPLE, gym.make("CartPole-v1"), episodes=9).episodes}) > 1
    )


def test_random_samples_leave_the_environments_own_generator_alone() -> None:
    env = gym.make("CartPole-v1")
    env.action_space.seed(1)
    untouched = gym.make("CartPole-v1")
    untouched.action_space.seed(1)

    run(RANDOM_SAMPLE, env, episodes=2)

    ahead = [env.action_space.sample() for _ in range(20)]
    assert ahead == [untouched.action_space.sample() for _ in range(20)]


@pytest.mark.parametrize("env_id", ["Pendulum-v1", "Taxi-v4", "Blackjack-v1", "Acrobot-v1"])
def test_random_samples_fit_every_kind_of_space(env_id: str) -> None:
    result = run(RANDOM_SAMPLE, gym.make(env_id), episodes=3, max_episode_steps=20)

    assert result.coverage == (3, 3, 0)


def test_native_models_see_tensors_and_numpy_models_arrays(corridor: Any) -> None:
    seen: list[type] = []

    def watch(observation: object) -> int:
        seen.append(type(observation))
        return 1

    run(Model(watch), corridor(1))
    run(NumpyModel(watch), corridor(1))

    assert seen == [Tensor, np.ndarray]


@pytest.mark.parametrize(
    "action", [1, np.int64(1), np.array(1), Tensor(b"\x01", [], "uint8"), 1.0, True]
)
def test_an_action_arrives_as_the_environment_wants_it(corridor: Any, action: object) -> None:
    env = corridor(2)

    assert run(NumpyModel(lambda observation: action), env).mean_reward == 2.0
    assert {type(action) for action in env.actions} == {int}


@pytest.mark.parametrize("action", [7, -1, 0.5, "right", None, np.array([1, 1]), float("nan")])
def test_an_action_outside_the_space_is_the_models_error(corridor: Any, action: object) -> None:
    env = corridor()

    with pytest.raises(InvalidActionError) as caught:
        run(NumpyModel(lambda observation: action), env)

    assert caught.value.path == "$"
    assert env.steps == 0


def test_actions_of_the_wrong_shape_or_type_are_named_for_boxes_too() -> None:
    for action in ([0.0, 0.0], [float("nan")], "left"):
        with pytest.raises(InvalidActionError):
            run(NumpyModel(lambda observation, action=action: action), gym.make("Pendulum-v1"))
    doubles = NumpyModel(lambda observation: np.zeros(1, np.float64))
    assert run(doubles, gym.make("Pendulum-v1")).coverage.scored == 1


class Loaded(NumpyModel):
    made: list["Loaded"] = []  # noqa: RUF012 - counted across instances

    def load(self) -> None:
        self.closed = False
        self.ended: list[str] = []
        self.made.append(self)

    def predict(self, observation: Any, context: PredictContext) -> int:
        assert context["predict_index"] == int(observation[0])
        return 1

    def on_episode_end(self, episode_id: str) -> None:
        self.ended.append(episode_id)

    def close(self) -> None:
        self.closed = True


def test_a_model_class_is_made_for_the_run_and_closed(corridor: Any) -> None:
    result = run(Loaded, corridor(), episodes=2)

    model = Loaded.made[-1]
    assert result.coverage.scored == 2
    assert model.closed
    assert len(set(model.ended)) == 2


def test_a_given_model_stays_open(corridor: Any) -> None:
    model = Loaded()
    run(model, corridor())
    assert not model.closed


def test_a_bare_function_is_refused_with_the_remedy(corridor: Any) -> None:
    with pytest.raises(ModelTypeError, match=r"rlmesh\.numpy\.Model"):
        run(balance, corridor())


def test_a_factory_makes_the_environment_and_the_run_closes_it(corridor: Any) -> None:
    made: list[Any] = []

    class Factory:
        def prepare(self) -> None:
            made.clear()

        def make(self) -> object:
            made.append(corridor())
            return made[-1]

    run(RIGHT, Factory())
    run(RIGHT, Factory().make)
    run(RIGHT, corridor)

    assert [env.closed for env in made] == [1, 1]


@pytest.mark.parametrize("target", [None, 3, [1, 2], object()])
def test_what_is_no_environment_is_refused(target: object) -> None:
    with pytest.raises(TargetTypeError, match="is not an environment") as caught:
        run(RIGHT, target)

    assert isinstance(caught.value, TypeError)


def test_no_episodes_open_nothing() -> None:
    result = run(RIGHT, "tcp://127.0.0.1:1", episodes=0)

    assert result.coverage == (0, 0, 0)


class Odd(gym.Space[Any]):
    """A space of a kind that nobody else knows."""


def test_an_environment_without_words_for_its_space_runs_without_identity(corridor: Any) -> None:
    env = corridor()
    env.observation_space = Odd()

    result = run(RIGHT, env)

    assert result.coverage.scored == 1
    assert result.environment is None
    assert "Odd" in result.advisories[0]


def test_trials_reach_environments_that_declare_them(corridor: Any) -> None:
    plain = corridor()
    declaring = corridor()
    declaring.metadata = {"rlmesh.env.v1.reset_options": ["trial_index"]}

    run(RIGHT, plain, episodes=2, trial_index_base=10)
    result = run(RIGHT, declaring, episodes=2, trial_index_base=10)

    assert plain.options == [None, None]
    assert declaring.options == [{"trial_index": 10}, {"trial_index": 11}]
    assert [episode.trial for episode in result.episodes] == [10, 11]


class Diary(RunHooks):
    def __init__(self) -> None:
        self.entries: list[object] = []
        self.events: list[StepEvent] = []

    def on_run_start(self, context: RunContext) -> None:
        assert context.contract is not None
        self.entries.append(("start", context.num_envs))

    def on_episode_start(self, *, episode: int, seed: int) -> None:
        self.entries.append(("episode", episode, seed))

    def on_step(self, event: StepEvent) -> None:
        self.events.append(event)

    def on_episode_end(self, result: EpisodeResult) -> None:
        self.entries.append(("ended", result.index))

    def on_run_end(self, result: RunResult) -> None:
        self.entries.append(("end", result.num_episodes))


def test_hooks_see_the_run_in_order(corridor: Any) -> None:
    diary, told, shown = Diary(), list[EpisodeResult](), list[RunProgress]()

    result = run(
        RIGHT, corridor(2), seeds=[8, 9], hooks=diary, on_episode=told.append, progress=shown.append
    )

    assert diary.entries == [
        ("start", 1),
        ("episode", 0, 8),
        ("ended", 0),
        ("episode", 1, 9),
        ("ended", 1),
        ("end", 2),
    ]
    first, second = diary.events[:2]
    assert (first.step, first.observation[0], first.action, first.terminated) == (0, 0.0, 1, False)
    assert (second.step, second.observation[0], second.reward, second.terminated) == (
        1,
        1.0,
        1.0,
        True,
    )
    assert tuple(told) == result.episodes
    assert [item.done for item in shown] == [1, 2]


def test_one_model_can_be_in_two_runs_at_once(corridor: Any) -> None:
    inner: list[RunResult] = []

    class Nested(RunHooks):
        def on_step(self, event: StepEvent) -> None:
            if not inner:
                inner.append(run(model, corridor(3), seeds=[1]))

    model = Loaded()
    outer = run(model, corridor(5), seeds=[2], hooks=Nested())

    assert (outer.episodes[0].steps, inner[0].episodes[0].steps) == (5, 3)


def test_a_vector_environment_of_another_kind_is_refused(corridor: Any) -> None:
    env = corridor()
    env.num_envs = 2

    with pytest.raises(TargetTypeError, match="2 environments at once"):
        run(RIGHT, env)


def test_a_factory_that_makes_no_environment_is_refused() -> None:
    with pytest.raises(TargetTypeError, match="has no reset and step"):
        run(RIGHT, object)


def test_a_model_class_is_closed_when_the_environment_cannot_be_opened() -> None:
    with pytest.raises(TargetTypeError):
        run(Loaded, None)

    assert Loaded.made[-1].closed


def test_random_samples_of_a_space_without_words_are_refused(corridor: Any) -> None:
    env = corridor()
    env.action_space = Odd()

    with pytest.raises(ConfigurationError, match=r"RANDOM_SAMPLE cannot sample .*Odd"):
        run(RANDOM_SAMPLE, lambda: env)
    assert env.closed == 1


def camera_shy(observation: Any) -> int:
    raise KeyError("camera")


def test_an_error_of_the_model_names_the_parts_of_the_observation() -> None:
    class Camera(gym.Env[Any, Any]):
        observation_space = gym.spaces.Dict(
            {"pixels": gym.spaces.Box(0, 255, (2, 2), np.uint8), "task": gym.spaces.Text(5)}
        )
        action_space = gym.spaces.Discrete(2)

        def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
            return {"pixels": np.zeros((2, 2), np.uint8), "task": "a"}, {}

    with pytest.raises(KeyError) as caught:
        run(NumpyModel(camera_shy), Camera())

    assert caught.value.__notes__ == [
        "camera_shy was predicting for {'pixels': uint8[2, 2], 'task': str}"
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_failures", -1),
        ("max_failures", "x"),
        ("on_episode", 5),
        ("hooks", 5),
        ("success", 5),
        ("success_threshold", "x"),
        ("success_threshold", np.zeros(2)),
        ("success_threshold", float("nan")),
        ("max_episode_seconds", "x"),
        ("max_episode_seconds", float("nan")),
        ("progress", "x"),
    ],
)
def test_a_wrong_argument_is_refused_before_anything_is_opened(name: str, value: Any) -> None:
    made: list[object] = []
    wrong: dict[str, Any] = {name: value}

    with pytest.raises(ConfigurationError, match=f"^{name} is "):
        run(RIGHT, lambda: made.append(1), **wrong)
    with (
        session(RIGHT, lambda: made.append(1)) as driven,
        pytest.raises(ConfigurationError, match=f"^{name} is "),
    ):
        driven.run(**wrong)
    assert made == []


class Speaker(gym.Env[Any, Any]):
    """Takes text of gymnasium's default characters, and nothing else."""

    observation_space = gym.spaces.Discrete(2)
    action_space = gym.spaces.Text(10)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        self.steps = 0
        return 0, {}

    def step(self, action: Any) -> Any:
        assert action in gym.spaces.Text(10)
        self.steps += 1
        return 0, float(sum(map(ord, action))), self.steps == 20, False, {}


def test_random_text_is_legal_and_the_same_on_both_sides() -> None:
    local = run(RANDOM_SAMPLE, Speaker(), episodes=2)
    with EnvServer(Speaker) as server:
        remote = run(RANDOM_SAMPLE, server.address, episodes=2)

    assert local.coverage == (2, 2, 0)
    assert local.agrees_with(remote) == ()
