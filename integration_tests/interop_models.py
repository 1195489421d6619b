"""Models that either rlmesh serves, and what a client of one plays; only what both have is used."""

# mypy knows the files of this folder under other names than a script beside them does.
# Classes of models derive from either package's.
# mypy: disable-error-code="import-not-found, misc"

from collections.abc import Callable
from functools import partial
from typing import Any

import interop_envs as envs
import numpy as np
from interop_values import Seen, outcome, told

Open = Callable[..., Any]  # a session of either package
CHUNK = 3
CHOICES = 300  # of the space "Discrete"


def made_model(name: str, model_class: Any, ended: list[str]) -> Any:
    """What is served, as a model of either package."""

    class Chunked(model_class):
        native_chunk = CHUNK

        def predict_chunk(self, observation: Any) -> Any:
            return np.arange(CHUNK) + 10

    class Stumbling(model_class):
        def predict(self, observation: Any, context: Any) -> Any:
            if context["predict_index"] == 1:
                raise KeyError("the gripper")
            return 1

    class Told(model_class):
        def predict(self, observation: Any, context: Any) -> Any:
            if context["episode_seed"] is None:
                return context["predict_index"]
            return context["predict_seed"] % CHOICES

    class Batched(model_class):
        def predict_batch(self, observations: Any) -> Any:
            return np.asarray(observations)

    if name in FUNCTIONS:
        return model_class(FUNCTIONS[name], on_episode_end=ended.append)
    return {"Chunked": Chunked, "Stumbling": Stumbling, "Told": Told, "Batched": Batched}[name]()


def mirror(observation: Any) -> Any:
    """Give back what is seen."""
    return observation


def wrong(observation: Any) -> Any:
    """Do what cannot be done."""
    return -1


FUNCTIONS = {"Mirror": mirror, "Wrong": wrong}


def play_model(open_session: Open, kind: str) -> Seen:
    """Two episodes of a mirror: what the model does with what it sees."""
    space = envs.SPACES[kind]
    session = open_session(kind)
    seen: list[Seen] = []
    for seed in (7, 11):
        observation, _ = session.reset(seed=seed)
        for _ in range(envs.STEPS):
            action = session.predict(observation)
            seen.append(told(action, space))
            observation, *_ = session.step(action)
    session.close()
    return seen


def play_chunks(open_session: Open) -> Seen:
    """Two episodes of chunks that are longer than they are used."""
    session = open_session("Discrete", execution_horizon=2)
    seen: list[int] = []
    for seed in (1, 2):
        observation, _ = session.reset(seed=seed)
        for _ in range(3):
            seen.append(int(session.predict(observation)))
            observation, *_ = session.step(seen[-1])
    session.close()
    return seen


def play_contexts(open_session: Open) -> Seen:
    """What the model is told of two episodes, one of them seeded."""
    session = open_session("Discrete")
    seen: list[int] = []
    for seed in (7, None):
        observation, _ = session.reset(seed=seed)
        seen += [int(session.predict(observation)) for _ in range(3)]
    session.close()
    return seen


def play_failure(open_session: Open) -> Seen:
    """A prediction that raises; then another session."""
    session = open_session("Discrete")
    observation, _ = session.reset(seed=1)
    first = int(session.predict(observation))
    failure = outcome(partial(session.predict, observation))
    outcome(session.close)
    another = open_session("Discrete")
    observation, _ = another.reset(seed=2)
    after = int(another.predict(observation))
    another.close()
    return [first, failure, after]


def play_wrong_action(open_session: Open) -> Seen:
    """An answer that is no action."""
    session = open_session("Discrete")
    observation, _ = session.reset(seed=1)
    failure = outcome(partial(session.predict, observation))
    outcome(session.close)
    return failure


def play_two_sessions(open_session: Open) -> Seen:
    """Two sessions in turns; one leaves, and the other goes on."""
    first, second = open_session("Discrete"), open_session("Discrete")
    seen: list[int] = []
    observations = [session.reset(seed=7)[0] for session in (first, second)]
    for _ in range(2):
        seen += [
            int(session.predict(observation))
            for session, observation in zip((first, second), observations, strict=True)
        ]
    first.close()
    seen.append(int(second.predict(observations[1])))
    second.close()
    return seen


def play_run(sessions: Any) -> Seen:
    """What the package's own loop says of two episodes."""
    result = sessions.run("Discrete", [7, 11])
    return [[one.steps, one.reward, one.success] for one in result.episodes]


def play_gone(open_session: Open, stop: Callable[[], object]) -> Seen:
    """A server that goes away between two predictions."""
    session = open_session("Discrete")
    observation, _ = session.reset(seed=1)
    first = int(session.predict(observation))
    stop()
    failure = outcome(partial(session.predict, observation))
    outcome(session.close)
    return [first, failure]


MODEL_SCRIPTS: dict[str, Callable[..., Seen]] = {
    one.__name__: one
    for one in (
        play_model,
        play_chunks,
        play_contexts,
        play_failure,
        play_wrong_action,
        play_two_sessions,
        play_run,
    )
}
