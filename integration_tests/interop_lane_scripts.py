"""What a client of several lanes plays, under either rlmesh, and what it then has seen."""

# mypy knows the files of this folder under other names than a script beside them does.
# mypy: disable-error-code="import-not-found"

import time
from collections.abc import Callable
from typing import Any

import interop_envs as envs
import numpy as np
from interop_values import Seen, apart, batched, known, outcome, plain, sampled, told, typed

Dial = Callable[..., Any]  # gives either package's client, or a local environment
PATIENCE_SECONDS = 10.0


def play_lanes(dial: Dial, kind: str, steps: int, resets: int) -> Seen:
    """Episodes of several mirrors beside each other: all but the infos, lane by lane."""
    env, space = dial(), envs.SPACES[kind]
    script = sampled(space, envs.LANES * steps)
    seen: list[Seen] = []
    for number in range(resets):
        observations, _ = env.reset(seed=[10 * number + lane for lane in range(envs.LANES)])
        seen.append([told(one, space) for one in apart(observations, space, envs.LANES)])
        for step in range(steps):
            actions = script[envs.LANES * step : envs.LANES * (step + 1)]
            observations, *outcome_, _ = env.step(batched(actions, space))
            lanes = [told(one, space) for one in apart(observations, space, envs.LANES)]
            seen.append([lanes, *(plain(np.asarray(one)) for one in outcome_)])
    env.close()
    return seen


def lane_ends(dial: Dial, steps: int) -> Seen:
    """Lanes whose episodes end apart: observations, rewards and flags of every step."""
    env = dial()
    seen = [plain(np.asarray(env.reset(seed=[10, 20, 30])[0]))]
    for step in range(steps):
        outcome_ = env.step(np.array([1, 2, step % 3]))[:4]
        seen.append([plain(np.asarray(one)) for one in outcome_])
    env.close()
    return seen


def lane_seeds(dial: Dial) -> Seen:
    """The seeds that lanes see: one for each, one number for all, and none."""
    env = dial()
    asked: tuple[object, ...] = ([4, 5, 6], 7, None)
    seen = [plain(np.asarray(env.reset(seed=one)[0])[:, 0]) for one in asked]
    env.close()
    return seen


def lane_infos(dial: Dial) -> Seen:
    """The infos of a reset, and of a step in which the first lane ends."""
    env = dial()
    seen = [known(env.reset(seed=[4, 5, 6])[1])]
    seen += [known(env.step(np.array([1, 2, 3]))[4]) for _ in range(2)]
    env.close()
    return seen


def lane_frames(dial: Dial) -> Seen:
    """Each lane's frame, by a new client: a frame that fails may end the session."""
    seen: list[Seen] = []
    for lane in range(envs.LANES):
        env = dial()
        env.reset(seed=[1, 2, 3])
        seen.append(outcome(lambda: typed(env.render(env_index=lane))))  # noqa: B023 - called here
        env.close()
    return seen


def lane_failure(dial: Dial) -> Seen:
    """A lane that raises; then another client."""
    env = dial()
    env.reset(seed=[1, 2, 3])
    seen = [outcome(lambda: env.step(np.array([1, 8, 1])))]
    env.close()
    another = dial()
    seen.append(plain(np.asarray(another.reset(seed=[7, 8, 9])[0])))
    another.close()
    return seen


def lane_arity(dial: Dial) -> Seen:
    """Actions for another number of lanes than there are; the session goes on."""
    env = dial()
    env.reset(seed=[1, 2, 3])
    seen = [outcome(lambda: env.step(np.array([1, 1])))]
    seen.append(plain(np.asarray(env.step(np.array([1, 1, 1]))[1])))
    env.close()
    return seen


def lane_options(dial: Dial) -> Seen:
    """Options, and none, as every lane gets them."""
    env = dial()
    seen = [plain(np.asarray(env.reset(options=one)[0])[:, 0]) for one in ({"base": 42}, {}, None)]
    env.close()
    return seen


def lane_mask(dial: Dial) -> Seen:
    """Lanes of which some are reset, and go on."""
    env = dial()
    env.reset(seed=[10, 20, 30])
    env.step(np.array([1, 1, 1]))
    mask = {"reset_mask": np.array([True, False, False])}
    seen = [outcome(lambda: plain(np.asarray(env.reset(options=mask)[0])[:, 1]))]
    seen.append(outcome(lambda: plain(np.asarray(env.step(np.array([1, 1, 1]))[0])[:, 1])))
    env.close()
    return seen


def lane_shutdown(dial: Dial) -> Seen:
    """A client of several lanes that asks the server to stop."""
    env = dial()
    env.reset(seed=[1, 2, 3])
    seen = outcome(lambda: env.shutdown("the test is over"))
    env.close()
    return seen


def lane_timeout(dial: Dial) -> Seen:
    """A step that takes longer than the client waits; then the client again."""
    env = dial(request_timeout_seconds=0.15)
    env.reset(seed=[1, 2, 3])
    seen = [outcome(lambda: env.step(np.array([1, envs.Counting.SLEEP, 1])))]
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        found = outcome(lambda: plain(np.asarray(env.reset(seed=[7, 8, 9])[0])))
        if "raised" not in found or time.monotonic() > end:
            break
    env.close()
    return [*seen, found]


def lane_too_early(dial: Dial) -> Seen:
    """A step without episodes; then a reset."""
    env = dial()
    seen = [
        outcome(lambda: plain(np.asarray(env.step(np.array([1, 1, 1]))[1]))),
        outcome(lambda: plain(np.asarray(env.reset(seed=[7, 8, 9])[0]))),
    ]
    env.close()
    return seen


def warnings(dial: Dial, lanes: int) -> Seen:
    """What an info says of an action, and an observation, beyond their bounds; 0: no lanes."""
    env = dial()
    env.reset()
    action = np.full((lanes, 2, 3) if lanes else (2, 3), 0.0, np.float32)
    action[(0, 0, 0)[: action.ndim]] = 5.0
    info: Any = env.step(action)[4]
    env.close()
    return outcome(lambda: plain(info))
