import pytest
from rlcore import CheckpointNotFound, ConfigurationError, ConflictError
from rleaas import Client, RolloutComparison
from rleaas.server.routes import comparisons

from .conftest import Running, Start

CHECKPOINTS: list[tuple[str, dict[str, object]]] = [
    ("checkpoint", {"episode": 1, "avg_reward": 1, "content": "a"}),
    ("checkpoint", {"episode": 2, "avg_reward": 2, "content": "b"}),
    ("completed", {}),
]


def episode(reward: float) -> tuple[str, dict[str, object]]:
    facts: dict[str, object] = {
        "index": 0,
        "seed": 0,
        "steps": 1,
        "reward": reward,
        "outcome": "completed",
    }
    return "episode", facts


@pytest.fixture
def trained(start: Start) -> tuple[Running, str, str]:
    """A server with two checkpoints."""
    running = start(plan=CHECKPOINTS)
    running.ready()
    job_id = running.train()
    assert running.finished("training", job_id) == "completed"
    running.server.stop()
    return running, f"ckpt_{job_id}_1", f"ckpt_{job_id}_2"


def restarted(start: Start, reward: float) -> Running:
    results = {"overall_score": reward, "mean_return": reward}
    return start(plan=[episode(reward), ("completed", {"results": results})])


def compared(running: Running, *checkpoints: str, **settings: object) -> dict[str, object]:
    body = {"agent_checkpoints": checkpoints, "comparison": True, **settings}
    return running.ok(running.http.post("/api/rollouts", json=body))


# defect: P-3
def test_two_checkpoints_are_played_on_the_same_seeds_and_compared(
    start: Start, trained: tuple[Running, str, str]
) -> None:
    _, first, second = trained
    running = restarted(start, 3.0)
    with Client(base_url=running.server.url) as client:
        found = client.Evaluation.compare([first, second])
        played = client.Evaluation.list()

    assert isinstance(found, RolloutComparison)
    assert (found.delta, found.winner, found.environment_name) == (0.0, "tie", "CartPole")
    assert found.baseline["agent_checkpoint_id"] == first
    assert found.trained["agent_checkpoint_id"] == second
    assert len(played) == 2
    assert played[0].record.seeds == played[1].record.seeds


def test_what_was_played_already_is_not_played_again(
    start: Start, trained: tuple[Running, str, str]
) -> None:
    _, first, second = trained
    worse = restarted(start, 1.0)
    body = {"agent_checkpoint_id": first, "seeds": [0]}
    made = str(worse.ok(worse.http.post("/api/evaluations", json=body))["id"])
    assert worse.finished("evaluation", made) == "completed"
    worse.server.stop()
    better = restarted(start, 5.0)

    told = compared(better, first, second, seeds=[0])
    again = compared(better, first, second, seeds=[0])

    assert (told["delta"], told["winner"]) == (4.0, "inconclusive")
    assert told["baseline"] == again["baseline"]
    assert better.ok(better.http.get("/api/evaluations"))["count"] == 2


def test_an_evaluation_that_failed_is_named(
    start: Start, trained: tuple[Running, str, str]
) -> None:
    _, first, second = trained
    running = start(plan=[("failed", {"error": "the simulator is gone"})])
    with (
        Client(base_url=running.server.url) as client,
        pytest.raises(ConflictError, match="the simulator is gone") as caught,
    ):
        client.Evaluation.compare([first, second])
    assert caught.value.code == "evaluation_not_comparable"


def test_evaluations_that_take_longer_go_on(
    start: Start, trained: tuple[Running, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, first, second = trained
    monkeypatch.setattr(comparisons, "PATIENCE", 0.1)
    running = start(plan=[("until_cancelled", {})])
    body = {"agent_checkpoints": [first, second], "comparison": True}

    reply = running.http.post("/api/rollouts", json=body)
    again = running.http.post("/api/rollouts", json=body)

    assert (reply.status_code, reply.json()["code"]) == (409, "evaluations_unfinished")
    assert again.status_code == 409
    page = running.ok(running.http.get("/api/evaluations"))
    assert page["count"] == 2
    for one in running.listed(page, "evaluations"):
        running.ok(running.http.post(f"/api/evaluations/{one['id']}/cancel"))


def test_what_is_no_comparison_is_refused(platform: Running) -> None:
    with Client(base_url=platform.server.url) as client:
        for wrong in ([], ["a"], ["a", "b", "c"]):
            with pytest.raises(ConfigurationError, match="two checkpoints"):
                client.Evaluation.compare(wrong)
        with pytest.raises(ConfigurationError, match="environment"):
            client.Evaluation.compare(baseline_id="a", trained_id="b")
        with pytest.raises(CheckpointNotFound):
            client.Evaluation.compare(["a", "b"])
    reply = platform.http.post("/api/rollouts", json={"comparison": True})
    assert (reply.status_code, reply.json()["code"]) == (422, "invalid_comparison")
