import json
from collections.abc import Iterator
from typing import Any

import gymnasium
import httpx
import pytest
import rlcore
from rlcore import Backoff, Endpoint, IdentityError
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
            name = path.rsplit("/", 1)[1]
            self.files[name] = request.content
            self.facts[name] = {
                **dict(request.url.params),
                "sha256": request.headers["x-content-sha256"],
            }
            return httpx.Response(200, json={})
        return httpx.Response(200, content=self.files[path.split("/")[3]])

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
    assert list(platform.files) == ["ckpt_job_1_4", "ckpt_job_1_8", "ckpt_job_1_10"]
    assert platform.facts["ckpt_job_1_10"]["label"] == "final"


def test_a_checkpoint_is_evaluated_on_the_asked_seeds(platform: Platform) -> None:
    platform.train()

    assert platform.evaluate("ckpt_job_1_10") == 0
    assert [data["seed"] for data in platform.of("episode")] == [5, 6]
    results = platform.of("completed")[0]["results"]
    assert (results["asked"], results["scored"]) == (2, 2)
    assert results["checkpoint_sha256"] == platform.facts["ckpt_job_1_10"]["sha256"]


def test_a_job_resumes_from_a_stored_checkpoint(platform: Platform) -> None:
    platform.train()
    stored = platform.facts["ckpt_job_1_10"]["sha256"]
    resume = {"id": "ckpt_job_1_10", "sha256": stored, "algorithm": "PPO"}

    assert platform.train(resume=resume) == 0
    assert "resumed from ckpt_job_1_10.zip" in [data["line"] for data in platform.of("log")]


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
