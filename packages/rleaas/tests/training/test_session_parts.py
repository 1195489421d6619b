import json
import math
import pickle
import time
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from rlcore import ConfigurationError, Error, RLEaaSError
from rleaas.training.curriculum import validate_curriculum
from rleaas.training.guarded import GuardedEnv
from rleaas.training.rewards import function
from rleaas.training.rewards.spec import validate_reward_fn
from rleaas.training.session_parts import SessionParts
from rleaas.training.session_state import SessionState
from rleaas.training.stop_switch import StopOverdue
from rleaas.verify import Definition
from rleaas.verify.definition import to_json

TOOLS = ("verify_identity", "run_aml_check", "submit_transfer")
SUITE: dict[str, object] = {
    "scenarios": [
        {"id": "scen_easy", "tier": 1, "max_steps": 3, "available_tools": list(TOOLS)},
        {"id": "scen_easy_2", "tier": 1},
        {"id": "scen_hard", "tier": 3, "context_injection": {"amount": 5}},
    ]
}


STOPPED = (
    "def reward(step):\n"
    "    from rleaas.training.stop_switch import StopOverdue\n"
    "    raise StopOverdue\n"
)


class Bank(gymnasium.Env[Any, Any]):
    """Four steps; each calls the tool of the action, and the info tells the balance."""

    def __init__(self, *, says_success: bool | None = None) -> None:
        self.observation_space = spaces.Box(-10, 10, (2,), np.float32)
        self.action_space = spaces.Discrete(3)
        self.metadata = {"action_names": list(TOOLS)}
        self.options: list[dict[str, Any] | None] = []
        self._says_success = says_success
        self._left = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.options.append(options)
        self._left = 4
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._left -= 1
        info: dict[str, Any] = {"balance": np.float64(self._left * 100)}
        if self._says_success is not None and self._left == 0:
            info["is_success"] = self._says_success
        return np.array([self._left, 0.5], np.float32), 1.0, self._left == 0, False, info


class Nested(Bank):
    """What it says has arrays within objects, pairs and graphs."""

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        graph = spaces.GraphInstance(np.ones(2), None, None)
        seen = {"seen": np.ones(2), "pair": (np.ones(2), 1), "graph": graph}
        return seen, 0.0, False, False, {"inner": {"list": [1]}}


def parts(*, max_steps: int = 100, **given: Any) -> SessionParts:
    return SessionParts.of(max_steps=max_steps, **given)


def rule(condition: str, **policy: object) -> dict[str, object]:
    definition = Definition(
        type="rule_based", id="v1", logic={"conditions": [condition]}, failure_policy=policy
    )
    return {"weights": {"v1": 2.0}, "definitions": [to_json(definition)]}


def play(env: gymnasium.Env[Any, Any], *actions: int, seed: int = 1) -> list[tuple[float, Any]]:
    """Rewards and infos of an episode's steps."""
    env.reset(seed=seed)
    seen: list[tuple[float, Any]] = []
    for action in actions:
        _, reward, terminated, truncated, info = env.step(action)
        seen.append((float(reward), info))
        if terminated or truncated:
            break
    return seen


def play_on(env: GuardedEnv) -> None:
    while not any(env.step(0)[2:4]):
        pass


def test_an_expression_says_what_a_step_is_worth() -> None:
    text = "reward * 2 - observation[0] + step + 10 * terminated + 100 * episode + action"
    env = parts(reward=validate_reward_fn(text)).wrap(Bank())

    first, second = (play(env, 0, 0, 0, 1) for _ in range(2))

    # Observations count down 3, 2, 1, 0 while steps count 1 to 4.
    assert [reward for reward, _ in first] == [100.0, 102.0, 104.0, 117.0]
    assert [reward for reward, _ in second] == [200.0, 202.0, 204.0, 217.0]
    assert first[-1][1]["given_return"] == 4.0


def test_a_function_is_called_with_what_its_parameters_name() -> None:
    code = (
        "calls = []\n"
        "def reward(observation, info, *, terminated, seed):\n"
        "    calls.append(1)\n"
        "    return info['balance'] + observation[1] + len(calls) + (seed if terminated else 0)\n"
    )
    spec = validate_reward_fn({"path": "rewards/bank.py", "source": code})
    env = pickle.loads(pickle.dumps(parts(reward=spec))).wrap(Bank())

    assert [reward for reward, _ in play(env, 0, 0, 0, 0, seed=7)] == [301.5, 202.5, 103.5, 11.5]


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("1 / (step - 2)", "reward expression failed in episode 1 with seed 5, step 2: division"),
        ("info.missing", "there is no 'missing'"),
        ("1e308 * 10", "it said inf, which is no finite number"),
        ("'much'", "it said 'much', which is no number"),
        (
            "def reward(info):\n    x = 1\n    return x + info['gone']\n",
            "step 1: KeyError: 'gone' (<reward_fn>, line 3)",
        ),
        ("def reward(step): return float('nan')", "it said nan, which is no finite number"),
        ("def reward(step): return None", "it said None, which is no number"),
        ("import nowhere\ndef reward(step): return 1", "No module named 'nowhere'"),
        (
            "import sys\ndef reward(step):\n    if step == 2:\n        sys.exit(0)\n    return 1\n",
            "in episode 1 with seed 5, step 2: SystemExit: 0 (<reward_fn>, line 4)",
        ),
        ("def reward(step):\n    raise GeneratorExit", "GeneratorExit:  (<reward_fn>, line 2)"),
        (
            "import sys\nsys.exit('no')\ndef reward(step): return 1",
            "SystemExit: no (<reward_fn>, li",
        ),
        ("raise SystemError('no')\ndef reward(step): return 1", "(<reward_fn>, line 1)"),
    ],
)
def test_a_reward_that_fails_names_line_episode_seed_and_step(source: str, said: str) -> None:
    with pytest.raises(RLEaaSError) as caught:
        play(parts(reward=validate_reward_fn(source)).wrap(Bank()), 0, 0, 0, 0, seed=5)

    assert said in str(caught.value)
    assert caught.value.code == "reward_failed"


@pytest.mark.parametrize(
    "body",
    [
        "    while True: pass\n",
        "    import time; time.sleep(60)\n",
        "    try:\n        while True: pass\n    except Exception: pass\n",
    ],
)
def test_a_function_that_does_not_return_is_interrupted(
    body: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(function, "CALL_SECONDS", 0.2)
    env = parts(reward=validate_reward_fn(f"def reward(step):\n{body}")).wrap(Bank())
    began = time.monotonic()

    with pytest.raises(RLEaaSError, match=r"did not return within 0.2 s \(<reward_fn>, line \d"):
        play(env, 0)
    assert time.monotonic() - began < 10


def test_the_jobs_own_stop_ends_a_reward_function_as_a_stop() -> None:
    with pytest.raises(StopOverdue):
        play(parts(reward=validate_reward_fn(STOPPED)).wrap(Bank()), 0)


def test_what_a_reward_function_changes_is_only_its_own_copy() -> None:
    source = (
        "def reward(observation, action, info):\n"
        "    observation['seen'][:] = 7\n"
        "    observation['pair'][0][:] = 7\n"
        "    observation['graph'].nodes[:] = 7\n"
        "    action[0][:] = 7\n"
        "    info['inner']['list'].append(7)\n"
        "    info.clear()\n"
        "    return 1\n"
    )
    nested = Nested()
    env = parts(reward=validate_reward_fn(source)).wrap(nested)
    env.reset(seed=1)
    action = (np.ones(2), 1)

    observation, _, _, _, info = env.step(action)

    arrays = (observation["seen"], observation["pair"][0], observation["graph"].nodes, action[0])
    assert [array.tolist() for array in arrays] == [[1.0, 1.0]] * 4
    assert info["inner"] == {"list": [1]}


def test_a_curriculum_that_has_nothing_to_advance_over_is_refused() -> None:
    settings = validate_curriculum(True)
    bank = Bank()

    with pytest.raises(ConfigurationError, match="no tiers to advance over") as caught:
        parts(curriculum=settings).wrap(bank)
    assert caught.value.code == "curriculum_without_tiers"
    parts(curriculum=settings, scenarios=SUITE).wrap(bank)
    bank.metadata["takes_tiers"] = True
    env = parts(curriculum=settings).wrap(bank)
    env.reset(seed=1)
    assert bank.options[-1] == {"tier": 1}


def test_success_is_told_by_the_environments_own_return_under_another_reward() -> None:
    env = gymnasium.make("CartPole-v1", max_episode_steps=500)
    shaped = parts(reward=validate_reward_fn("1000")).wrap(env)

    info = play(shaped, *[0] * 500)[-1][1]

    # CartPole falls over in about ten steps; its specification calls 475 solved.
    assert info["given_return"] < 20
    assert info["is_success"] is False


def test_verifiers_add_their_weighted_reward_at_the_end_alone() -> None:
    env = parts(verifiers=rule("'run_aml_check' in trajectory.tool_calls")).wrap(Bank())

    good, bad = play(env, 0, 1, 2, 2), play(env, 0, 0, 2, 2)

    assert [reward for reward, _ in good] == [1.0, 1.0, 1.0, 3.0]
    assert [reward for reward, _ in bad] == [1.0, 1.0, 1.0, 1.0]
    assert good[-1][1]["verifier_scores"] == {"v1": 1.0}
    assert (good[-1][1]["composite_verifier_score"], good[-1][1]["is_success"]) == (1.0, True)
    assert (bad[-1][1]["composite_verifier_score"], bad[-1][1]["is_success"]) == (0.0, False)
    assert "verifier_scores" not in good[0][1]


def test_verifiers_judge_an_episode_that_the_jobs_cap_ended() -> None:
    env = parts(verifiers=rule("trajectory.truncated and balance == 200"), max_steps=2).wrap(Bank())

    assert play(env, 0, 0, 0)[-1][1]["verifier_scores"] == {"v1": 1.0}


@pytest.mark.parametrize(
    ("policy", "says", "success", "last"),
    [
        ({}, True, True, 1.0),
        ({"hard_fail": True}, True, False, 1.0),
        ({"penalty": -3.0}, False, False, -5.0),
    ],
)
def test_a_failed_verifier_costs_what_its_policy_says(
    policy: dict[str, object], says: bool, success: bool, last: float
) -> None:
    env = parts(verifiers=rule("1 > 2", **policy)).wrap(Bank(says_success=says))

    reward, info = play(env, 0, 0, 0, 0)[-1]

    assert (reward, info["is_success"]) == (last, success)


def test_failures_are_told_a_few_times() -> None:
    told: list[str] = []
    env = parts(verifiers=rule("1 > 2")).wrap(Bank(), tell=told.append)

    for _ in range(15):
        play(env, 0, 0, 0, 0)

    assert len(told) == 10
    assert "verifier v1 failed an episode: 0 of 1 conditions hold" in told[0]


def test_a_scenario_follows_from_the_seed_and_is_handed_to_the_reset() -> None:
    bank = Bank()
    env = parts(scenarios=SUITE).wrap(bank)

    first = [play(env, 0, 0, 0, 0, seed=seed)[-1][1]["scenario_id"] for seed in range(30)]
    second = [play(env, 0, 0, 0, 0, seed=seed)[-1][1]["scenario_id"] for seed in range(30)]

    assert first == second
    assert set(first) == {"scen_easy", "scen_easy_2", "scen_hard"}
    handed = bank.options[first.index("scen_hard")]
    assert handed is not None
    assert (handed["tier"], handed["scenario"]["context_injection"]) == (3, {"amount": 5})


def test_a_scenarios_own_cap_ends_its_episodes() -> None:
    env = parts(scenarios={"scenarios": [{"id": "s", "tier": 1, "max_steps": 3}]}).wrap(Bank())

    assert len(play(env, 0, 0, 0, 0)) == 3


def test_a_tier_that_is_mastered_is_left_for_the_next_that_the_suite_has() -> None:
    settings = validate_curriculum({"tier_1_mastery_threshold": 0.75, "window": 4})
    given = parts(
        scenarios=SUITE,
        curriculum=settings,
        verifiers=rule("'run_aml_check' in trajectory.tool_calls"),
    )
    bank = Bank()
    env = given.wrap(bank)
    assert given.curriculum is not None

    # Two of four, then three of the last four.
    for action in (0, 0, 1, 1, 1, 0):
        play(env, 0, action, 0, 0)
    assert given.curriculum.tier == 3

    (advance,) = given.curriculum.news()
    assert advance.to_dict() == {
        "from_tier": 1,
        "current_tier": 3,
        "success_rate": 0.75,
        "threshold": 0.75,
        "window": 4,
    }
    assert given.curriculum.news() == []


def test_a_number_that_nobody_stepped_is_not_used_up() -> None:
    env = parts(reward=validate_reward_fn("episode")).wrap(Bank())
    env.reset(seed=1)
    env.reset(seed=1)

    assert play(env, 0, 0, 0, 0)[-1][0] == 1.0
    assert play(env, 0, 0, 0, 0)[-1][0] == 2.0


def test_a_session_goes_on_in_the_middle_of_its_episode_and_of_its_tier() -> None:
    def session() -> tuple[SessionParts, Bank, GuardedEnv]:
        given = parts(
            scenarios=SUITE,
            curriculum=validate_curriculum({"tier_1_mastery_threshold": 0.5, "window": 2}),
            reward=validate_reward_fn("100 * episode + step"),
        )
        bank = Bank(says_success=True)
        env = GuardedEnv(given.wrap(bank), name="Bank", max_steps=100, seed=7, session=0)
        return given, bank, env

    given, bank, env = session()
    env.reset()
    for _ in range(3):
        play_on(env)
        env.reset()
    env.step(0)
    assert given.curriculum is not None
    saved = json.loads(json.dumps(env.state().to_json()))
    wanted = [env.step(0)[1] for _ in range(3)]

    again, other, restored = session()
    _, exact = restored.restore(SessionState.from_json(saved))

    assert exact
    assert [restored.step(0)[1] for _ in range(3)] == wanted == [402.0, 403.0, 404.0]
    assert other.options == bank.options[-1:]
    assert again.curriculum is not None
    assert again.curriculum.get_state() == given.curriculum.get_state()
    assert again.curriculum.tier == 3


def test_verifiers_that_did_not_come_along_are_missed() -> None:
    given = parts(verifiers={"weights": {"v2": 1.0}, "definitions": []})

    with pytest.raises(ConfigurationError, match="'v2' did not come along"):
        given.wrap(Bank())


@pytest.mark.parametrize("scenarios", [{"scenarios": []}, {"scenarios": [{"id": "a"}]}, {"a": 1}])
def test_scenarios_that_are_none_are_refused(scenarios: dict[str, object]) -> None:
    with pytest.raises(Error):
        parts(scenarios=scenarios)


def test_a_reward_is_the_same_number_that_python_would_say() -> None:
    text = "exp(-abs(observation[0])) if not terminated else 0.5 * (reward + step)"
    env = parts(reward=validate_reward_fn(text)).wrap(Bank())

    rewards = [reward for reward, _ in play(env, 0, 0, 0, 0)]

    assert rewards == pytest.approx([math.exp(-3), math.exp(-2), math.exp(-1), 2.5])


def test_a_job_that_asks_for_nothing_steps_the_environment_itself() -> None:
    env = Bank()

    assert parts().wrap(env) is env
