import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import gymnasium
import httpx
import pytest
import rlcore
from rlcore import Backoff, Endpoint, IdentityError
from rleaas.evaluation.rollouts import RolloutReader
from rleaas.evaluation.worker import evaluate_checkpoint
from rleaas.pytest_plugin import ServeEnvironment
from rleaas.training.reporter import Pace, Reporter
from rleaas.training.stop_switch import StopSwitch
from rleaas.training.worker import train
from rleaas.training.worker_process import attempt

CONFIG = {"seed": 3, "n_steps": 16, "num_envs": 2, "n_epochs": 1, "checkpoint_interval": 4}


class Platform:
    """The worker API over one environment server that really serves."""

    def __init__(self, digest: str) -> None:
        self.environment = {"name": "Pole", "version": 2, "contract_digest": digest}
        self.assignment: dict[str, object] = {}
        self.reports: list[dict[str, Any]] = []
        self.files: dict[str, bytes] = {}
        self.facts: dict[str, dict[str, str]] = {}
        self.cancel_after: str | None = None

    def __call__(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        if path.endswith("/assignment"):
            return httpx.Response(200, json={"environment": self.environment, **self.assignment})
        if path.endswith("/reports"):
            self.reports += json.loads(request.content)["reports"]
            return httpx.Response(200, json={"cancel_requested": self._cancelled()})
        if request.method == "PUT":
            name = path.partition("/checkpoints/")[2] or "rollouts"
            self.files[name] = request.content
            self.facts[name] = {
                **dict(request.url.params),
                "sha256": request.headers["x-content-sha256"],
            }
            return httpx.Response(200, json={})
        name = path.split("/checkpoints/")[1].removesuffix("/file")
        return httpx.Response(200, content=self.files[name])

    def do(self, work: Any, **assignment: object) -> int:
        self.assignment = {"id": "job_1", **assignment}
        self.reports.clear()
        client = httpx.Client(base_url="http://server", transport=httpx.MockTransport(self))
        switch = StopSwitch()
        pace = Pace(flush=0.01, backoff=Backoff(first=0.001, cap=0.01))
        reporter = Reporter(
            client, "training", "job_1", pace=pace, on_stop=lambda: switch.request("a cancel")
        )
        try:
            return attempt(work, reporter, switch)
        finally:
            switch.disarm()

    def train(self, **changes: object) -> int:
        request = {"algorithm": "PPO", "num_episodes": 10, "max_steps": 50, "config": CONFIG}
        return self.do(train, **{**request, **changes})

    def evaluate(self, checkpoint: str, **changes: object) -> int:
        stored = {
            "id": checkpoint,
            "sha256": self.facts[checkpoint]["sha256"],
            "algorithm": "PPO",
            **changes,
        }
        return self.do(evaluate_checkpoint, checkpoint=stored, seeds=[5, 6])

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [report["data"] for report in self.reports if report["type"] == kind]

    def lines(self) -> list[str]:
        return [data["line"] for data in self.of("log")]

    def _cancelled(self) -> bool:
        return any(report["type"] == self.cancel_after for report in self.reports)


class Breaking(gymnasium.Wrapper[Any, Any, Any, Any]):
    """CartPole whose pole breaks at the fifth step of an episode."""

    left = 5

    def reset(self, **options: Any) -> tuple[Any, dict[str, Any]]:
        self.left = 5
        return super().reset(**options)

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.left -= 1
        if not self.left:
            raise RuntimeError("the pole broke")
        return super().step(action)


@pytest.fixture
def platform(
    request: pytest.FixtureRequest, rlmesh_env_server: ServeEnvironment
) -> Iterator[Platform]:
    server = rlmesh_env_server(getattr(request, "param", "CartPole-v1"))
    made = Platform(server.env_contract.digest)

    def resolve(uri: str, *, timeout: float | None) -> Endpoint:
        assert uri == "rleaas://Pole@2"
        return Endpoint(
            server.address,
            environment_name="Pole",
            version=2,
            contract_digest=str(made.environment["contract_digest"]),
        )

    rlcore.register("rleaas", resolve)
    yield made
    rlcore.unregister("rleaas")


def test_a_job_trains_through_rlmesh_and_leaves_verified_checkpoints(platform: Platform) -> None:
    assert platform.train() == 0

    episodes = [data["episode"] for data in platform.of("metric") if "episode_reward" in data]
    assert episodes == list(range(1, 11))
    assert platform.of("completed")[0]["results"]["current_episode"] == 10
    policies = [name for name in platform.files if not name.endswith("/state")]
    assert policies == ["ckpt_job_1_4", "ckpt_job_1_8", "ckpt_job_1_10"]
    assert platform.facts["ckpt_job_1_10"]["label"] == "final"


@pytest.mark.parametrize(("n_steps", "updated"), [(16, True), (1000, False)])
def test_a_training_without_an_update_says_that_it_learned_nothing(
    platform: Platform, n_steps: int, updated: bool
) -> None:
    platform.train(num_episodes=2, config={**CONFIG, "n_steps": n_steps, "batch_size": 16})

    results = platform.of("completed")[0]["results"]
    assert (results["updates"] > 0) is updated
    assert any("was never updated" in line for line in platform.lines()) is not updated


def test_without_a_seed_one_is_drawn_and_told(platform: Platform) -> None:
    assert platform.train(config={**CONFIG, "seed": None}) == 0

    seed = platform.of("completed")[0]["results"]["seed"]
    assert any(f"seed {seed}" in data["line"] for data in platform.of("log"))


def test_a_checkpoint_is_evaluated_on_the_asked_seeds(platform: Platform, tmp_path: Path) -> None:
    platform.train()

    assert platform.evaluate("ckpt_job_1_10") == 0
    assert [data["seed"] for data in platform.of("episode")] == [5, 6]
    results = platform.of("completed")[0]["results"]
    assert (results["asked"], results["scored"]) == (2, 2)
    assert results["checkpoint_sha256"] == platform.facts["ckpt_job_1_10"]["sha256"]
    (tmp_path / "rollouts.parquet").write_bytes(platform.files["rollouts"])
    kept = list(RolloutReader(tmp_path / "rollouts.parquet"))
    assert [(one.seed, one.outcome) for one in kept] == [
        (data["seed"], data["outcome"]) for data in platform.of("episode")
    ]


def test_a_job_starts_from_the_checkpoint_of_another(platform: Platform) -> None:
    platform.train()
    stored = platform.facts["ckpt_job_1_10"]["sha256"]
    resume = {"id": "ckpt_job_1_10", "sha256": stored, "algorithm": "PPO", "episode": 10}

    assert platform.train(resume=resume) == 0
    assert any("weights of ckpt_job_1_10.zip" in data["line"] for data in platform.of("log"))
    assert platform.of("started")[0]["episode"] == 0
    assert platform.of("metric")[0]["episode"] == 1


def test_a_job_that_is_started_again_counts_on(platform: Platform) -> None:
    platform.train()
    resume = {
        "id": "ckpt_job_1_8",
        "sha256": platform.facts["ckpt_job_1_8"]["sha256"],
        "state_sha256": platform.facts["ckpt_job_1_8/state"]["sha256"],
        "algorithm": "PPO",
        "episode": 8,
        "timestep": int(platform.facts["ckpt_job_1_8"]["timestep"]),
        "same_job": True,
    }

    assert platform.train(resume=resume, attempt=2) == 0
    started = platform.of("started")[0]
    assert (started["attempt"], started["episode"]) == (2, 8)
    episodes = [data["episode"] for data in platform.of("metric") if "episode_reward" in data]
    assert episodes == [9, 10]


def test_speed_multiplies_the_rate_of_an_environment_that_is_paced(platform: Platform) -> None:
    contract = {"metadata": {"steps_per_second": 200}}
    config = {**CONFIG, "num_envs": 1, "simulation": {"speed": 2.0}}

    assert platform.train(config=config, contract=contract, num_episodes=2, max_steps=20) == 0

    assert "each session steps at most 400 times a second" in platform.lines()
    results = platform.of("completed")[0]["results"]
    # Two episodes have two first steps, which wait for nobody.
    assert results["wall_seconds"] >= (results["total_steps"] - 2) / 400


def test_speed_changes_nothing_where_nothing_is_paced_and_the_log_says_so(
    platform: Platform,
) -> None:
    contract = {"metadata": {"render_fps": 50}}
    config = {**CONFIG, "simulation": {"speed": 2.0}}

    assert platform.train(config=config, contract=contract, warnings=["a"], num_episodes=2) == 0

    assert any("simulation.speed 2 changes nothing" in line for line in platform.lines())
    assert "warning: a" in platform.lines()


@pytest.mark.parametrize(
    ("quota", "said"),
    [({"max_timesteps": 60}, "max_timesteps 60"), ({"max_wall_seconds": 0.001}, "0.001")],
)
def test_a_quota_that_is_used_up_fails_the_job_with_a_checkpoint(
    platform: Platform, quota: dict[str, object], said: str
) -> None:
    config = {**CONFIG, "compute_quota": quota, "checkpoint_interval": 1000}

    assert platform.train(config=config, num_episodes=1000) == 1

    failed = platform.of("failed")[0]
    assert failed["failure_reason"] == "quota_exceeded"
    assert said in failed["error"]
    assert [facts["label"] for facts in platform.facts.values() if "label" in facts] == ["last"]


# Training is short: enough for several updates of the policy, which the later episodes show.
@pytest.mark.parametrize(
    ("algorithm", "config"),
    [
        ("PPO", CONFIG),
        ("A2C", {"num_envs": 2, "n_steps": 16}),
    ],
)
def test_the_same_request_and_seed_give_the_same_learning_curve(
    platform: Platform, algorithm: str, config: dict[str, object]
) -> None:
    def curve(seed: int) -> list[tuple[int, float]]:
        changes = {"algorithm": algorithm, "config": {**config, "seed": seed}, "num_episodes": 24}
        assert platform.train(**changes) == 0
        points = [data for data in platform.of("metric") if "episode_reward" in data]
        return [(data["timestep"], data["episode_reward"]) for data in points]

    first = curve(3)

    assert curve(3) == first
    assert curve(4) != first


def test_a_reward_expression_is_what_is_learned_from(platform: Platform) -> None:
    config = {**CONFIG, "reward_fn": "reward * 2"}

    assert platform.train(config=config) == 0

    points = [data for data in platform.of("metric") if "episode_reward" in data]
    assert [data["episode_reward"] for data in points] == [
        2.0 * data["episode_length"] for data in points
    ]


def test_a_file_that_was_changed_on_the_way_is_never_loaded(platform: Platform) -> None:
    platform.train()
    platform.files["ckpt_job_1_10"] += b"\0"

    assert platform.evaluate("ckpt_job_1_10") == 1
    assert platform.of("failed")[0]["type"] == "CheckpointCorrupted"


def test_a_cancel_ends_the_job_with_a_last_checkpoint(platform: Platform) -> None:
    platform.cancel_after = "metric"

    assert platform.train(num_episodes=10**6) == 0
    assert platform.of("cancelled")[0]["results"]["stopped_by"] == "cancelled"
    assert list(platform.facts.values())[-1]["label"] == "last"


def test_a_job_on_another_environment_fails_by_its_identity(platform: Platform) -> None:
    platform.environment["contract_digest"] = "sha256:" + "0" * 64

    assert platform.train() == 1
    assert platform.of("failed")[0]["type"] == IdentityError.__name__


def test_a_config_that_does_not_validate_fails_by_name(platform: Platform) -> None:
    assert platform.train(config={"learning_rat": 1}) == 1
    assert "learning_rat" in platform.of("failed")[0]["error"]


def test_an_assignment_of_another_shape_fails(platform: Platform) -> None:
    assert platform.train(num_episodes="many") == 1
    assert platform.of("failed")[0]["type"] == "UnexpectedReply"


@pytest.mark.parametrize(
    "platform", [lambda: Breaking(gymnasium.make("CartPole-v1"))], indirect=True
)
def test_an_environment_that_raises_fails_the_job_with_its_own_traceback(
    platform: Platform,
) -> None:
    assert platform.train() == 1

    failed = platform.of("failed")[0]
    assert failed["type"] == "EnvironmentException"
    assert "the pole broke" in failed["error"]
    assert "line" in failed["traceback"]


def test_a_reward_function_that_raises_fails_the_job_with_its_file_line_and_moment(
    platform: Platform,
) -> None:
    source = "def reward(info, step):\n    if step == 2:\n        return info['gone']\n    return 0"
    reward = {"path": "rewards/pole.py", "source": source}

    assert platform.train(config={**CONFIG, "reward_fn": reward}) == 1

    (failure,) = platform.of("failed")
    assert failure["failure_reason"] == "reward_failed"
    assert "failed in episode 1 with seed" in failure["error"]
    assert "step 2: KeyError: 'gone' (rewards/pole.py, line 3)" in failure["error"]
    assert "return info['gone']" in failure["traceback"]


def test_rewards_and_verdicts_are_in_the_record_of_each_episode(platform: Platform) -> None:
    verifier = {
        "id": "steady",
        "type": "rule_based",
        "logic": {"conditions": ["trajectory.length >= 12"], "reward_on_fail": -1.0},
    }
    judged = {"weights": {"steady": 100.0}, "definitions": [verifier]}

    config = {**CONFIG, "reward_fn": "reward / 1000"}
    assert platform.train(config=config, verifiers=judged) == 0

    told = [data for data in platform.of("metric") if "episode_reward" in data]
    assert len(told) == 10
    for data in told:
        held = data["episode_length"] >= 12
        extra = 100.0 if held else -100.0
        assert data["episode_reward"] == pytest.approx(data["episode_length"] / 1000 + extra)
        assert data["verifier_scores"] == {"steady": float(held)}


@pytest.mark.parametrize(
    ("algorithm", "learning_rate"), [("GRPO", 1e30), ("PPO", 1e4), ("A2C", 1e4)]
)
def test_a_policy_that_collapses_raises_an_alert_and_the_log_says_so(
    platform: Platform, algorithm: str, learning_rate: float
) -> None:
    config = {"seed": 2, "learning_rate": learning_rate, "num_envs": 2}
    contract = {"action_space": {"kind": "discrete"}}

    platform.train(algorithm=algorithm, num_episodes=160, config=config, contract=contract)

    (alert,) = platform.of("alert")
    assert (alert["kind"], alert["threshold"]) == ("reward_collapse_alert", "policy_entropy")
    assert alert["value"] < 1e-3
    assert any("the policy has collapsed" in one["line"] for one in platform.of("log"))
