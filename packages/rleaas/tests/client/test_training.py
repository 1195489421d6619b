from typing import Any

import pytest
from rlcore import (
    ConfigurationError,
    PlatformTimeout,
    TrainingJobCancelled,
    TrainingJobFailed,
    UnexpectedReply,
)
from rleaas._flow.wire import Reply
from rleaas.models import TrainingJob
from rleaas.resources.training import TrainingClient
from rleaas.resources.training_handle import TrainingJobResource
from rleaas.testing import Offline, converse, reply


def job(**facts: object) -> dict[str, object]:
    return {"job_id": "j", "status": "running", "environment_name": "E", **facts}


def handle(driver: Offline | None = None, **facts: object) -> TrainingJobResource[Offline]:
    record = TrainingJob.model_validate(job(**facts))
    return TrainingJobResource(Offline() if driver is None else driver, record)


def client() -> TrainingClient[Offline]:
    return TrainingClient(Offline())


def test_running_sends_the_published_fields_and_a_key() -> None:
    config = {"episodes": 20, "max_steps_per_episode": 50, "gamma": 0.9}

    talk = converse(
        client().run("my env", config=config, name="r", seed=7),
        [reply(job(status="pending"))],
    )

    (request,) = talk.requests
    assert request.path == "/train/my%20env"
    assert request.headers == {"Idempotency-Key": "key-1"}
    assert request.json == {
        "algorithm": "PPO",
        "num_episodes": 20,
        "max_steps": 50,
        "config": {"gamma": 0.9},
        "run_name": "r",
        "seed": 7,
    }
    assert config == {"episodes": 20, "max_steps_per_episode": 50, "gamma": 0.9}


def test_a_checked_config_can_be_run() -> None:
    config = client().configure_training("ppo", max_steps=9, simulation={"seed": 1})

    talk = converse(client().run("E", config=config), [reply(job())])

    assert talk.requests[0].json == {
        "algorithm": "PPO",
        "num_episodes": 100,
        "max_steps": 9,
        "config": {"simulation": {"seed": 1}},
    }


# defect: P-10
def test_the_settings_of_a_simulation_count_where_nothing_else_is_said() -> None:
    simulation = {"episode_settings": {"num_episodes": 7, "max_steps": 9}}

    alone = converse(client().run("E", config={"simulation": simulation}), [reply(job())])
    beside = converse(
        client().run("E", config={"simulation": simulation, "episodes": 8}), [reply(job())]
    )

    for talk, expected in ((alone, (7, 9)), (beside, (8, 9))):
        body = talk.requests[0].json
        assert isinstance(body, dict)
        assert (body["num_episodes"], body["max_steps"]) == expected


def test_the_caller_s_own_key_is_used() -> None:
    flow = client().run("E", idempotency_key="mine")

    assert converse(flow, [reply(job())]).requests[0].headers == {"Idempotency-Key": "mine"}


def test_environment_0_is_environment_0() -> None:
    talk = converse(client().run(env_id=0), [reply(job())])

    assert talk.requests[0].path == "/train/0"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "needs an environment"),
        ({"environment_name": ""}, "environment name"),
        ({"environment_name": "E", "algorithm": "PPPO"}, "'PPPO' is not an algorithm"),
        ({"environment_name": "E", "algorithm": None}, "None is not an algorithm"),
        ({"environment_name": "E", "num_episodes": 0}, "num_episodes"),
        ({"environment_name": "E", "config": {"episodes": True}}, "config.episodes"),
        ({"environment_name": "E", "config": {"max_steps": "5"}}, "config.max_steps"),
        ({"environment_name": "E", "num_episodes": 5, "config": {"episodes": 6}}, "contradicts"),
    ],
)
def test_a_job_that_cannot_be_is_refused_before_anything_is_sent(
    arguments: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        converse(client().run(**arguments), [])


@pytest.mark.parametrize(
    ("named", "advice"),
    [
        ("PPPO", "Did you mean 'PPO'?"),
        (
            None,
            "By the environment's actions: PPO, A2C, DQN, GRPO, A3C for Discrete; PPO, A2C, GRPO, "
            "A3C for MultiDiscrete; PPO, A2C, GRPO, A3C for MultiBinary; PPO, A2C, SAC, TD3, DDPG, "
            "GRPO, A3C for Box; SLM for Text",
        ),
    ],
)
def test_who_names_no_algorithm_is_told_which_takes_what(named: Any, advice: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        converse(client().run("E", algorithm=named), [])
    assert (caught.value.code, caught.value.hint) == ("unknown_algorithm", advice)


# defect: F-6
def test_waiting_shows_metrics_and_returns_the_handle() -> None:
    driver = Offline()
    seen: list[dict[str, object]] = []
    waited = handle(driver)
    running = job(progress=30, current_episode=300, num_episodes=1000, results={"avg_reward": 21.5})

    talk = converse(
        waited.wait_until_complete(on_progress=seen.append),
        [reply(running), reply(job(status="completed", progress=100))],
        driver.clock,
    )

    assert talk.result is waited
    assert seen[0] == {
        "job_id": "j",
        "status": "running",
        "current_episode": 300,
        "num_episodes": 1000,
        "progress": 30,
        "avg_reward": 21.5,
        "success_rate": None,
        "current_tier": None,
        "results": {"avg_reward": 21.5},
    }
    assert talk.shown[0] == ("training job 'j': running 30 % · episode 300/1000 · mean reward 21.5")


def test_a_failed_job_raises_with_the_server_s_reason() -> None:
    with pytest.raises(TrainingJobFailed, match="worker died: signal 9") as caught:
        converse(
            handle().wait_until_complete(),
            [reply(job(status="failed", error="worker died: signal 9", message="failed"))],
        )

    assert caught.value.job_id == "j"


def test_a_cancelled_job_is_not_complete() -> None:
    with pytest.raises(TrainingJobCancelled):
        converse(
            handle().wait_until_complete(),
            [reply(job(status="cancelled"))],
        )


CHECKPOINTS = [
    {"id": "c1", "episode": 10, "avg_reward": -0.5},
    {"id": "c2", "episode": 20, "avg_reward": None},
    {"id": "c3", "episode": 30, "avg_reward": -0.5, "success_rate": 0.1},
    {"id": "c4", "episode": 40, "avg_reward": -2},
]


def best(checkpoints: object, metric: str = "avg_reward", *, lowest: bool = False) -> str:
    flow = handle().get_best_checkpoint(metric, lowest=lowest)
    return converse(flow, [reply({"checkpoints": checkpoints})]).result.id


# defect: F-9
def test_the_best_checkpoint_is_scored_and_of_equals_the_longest_trained() -> None:
    assert best(CHECKPOINTS) == "c3"
    assert best(CHECKPOINTS, metric="success_rate") == "c3"
    assert best(CHECKPOINTS[3:]) == "c4"
    assert best(CHECKPOINTS, lowest=True) == "c4"


def test_any_figure_that_a_checkpoint_has_can_decide_which_is_the_best() -> None:
    measured: list[dict[str, object]] = [
        {"id": "c1", "episode": 1, "metrics": {"loss": 0.5}},
        {"id": "c2", "episode": 2, "metrics": {"loss": 0.2}},
        {"id": "c3", "episode": 3, "metrics": {}},
    ]
    assert best(measured, "loss") == "c1"
    assert best(measured, "loss", lowest=True) == "c2"


# defect: F-9
@pytest.mark.parametrize(
    ("checkpoints", "metric", "complaint"),
    [
        ([], "avg_reward", "has no checkpoints"),
        (CHECKPOINTS, "avg_rewrad", "no checkpoint .* has a score 'avg_rewrad'"),
        (CHECKPOINTS, "id", "no checkpoint .* has a score 'id'"),
        (CHECKPOINTS[1:2], "avg_reward", "no checkpoint .* has a score 'avg_reward'"),
    ],
)
def test_no_best_checkpoint_is_made_up(checkpoints: object, metric: str, complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        best(checkpoints, metric=metric)


# defect: F-7
# defect: F-8
def test_checkpoints_are_those_the_server_has_and_no_others() -> None:
    flow = handle(model_path="/m", model_metadata=None).list_checkpoints()

    assert converse(flow, [reply({"checkpoints": []})]).result == []


def page(*lines: str, cursor: int, done: bool = False) -> Reply:
    return reply({"lines": lines, "cursor": cursor, "done": done})


# defect: F-13
def test_a_followed_log_gives_every_line_once() -> None:
    driver = Offline()

    talk = converse(
        handle(driver).stream_logs(),
        [
            page("a", "a", cursor=4),
            page(cursor=4),
            page("b", cursor=6),
            page("c", cursor=8, done=True),
            reply(job(status="completed")),
        ],
        driver.clock,
    )

    assert talk.items == ["a", "a", "b", "c"]
    asked = [dict(request.params).get("cursor") for request in talk.requests[:4]]
    assert asked == [None, "4", "4", "6"]
    assert all(
        request.timeout == float(dict(request.params)["wait_seconds"]) + driver.context.timeout
        for request in talk.requests[1:4]
    )


def test_a_followed_log_of_a_failed_job_ends_with_its_failure() -> None:
    flow = handle().stream_logs()

    with pytest.raises(TrainingJobFailed, match="boom"):
        converse(flow, [page(cursor=0, done=True), reply(job(status="failed", error="boom"))])


def test_a_log_is_followed_until_the_deadline() -> None:
    driver = Offline()
    flow = handle(driver).stream_logs(poll_interval=1, timeout=1.5)

    with pytest.raises(PlatformTimeout, match=r"after 1\.5 s"):
        converse(flow, [page(cursor=0), page(cursor=0), page(cursor=0)], driver.clock)


def test_a_learning_curve_is_read_to_its_end() -> None:
    points = [{"episode": 1, "avg_reward": 1.0}, {"episode": 2, "avg_reward": 2.0}]

    talk = converse(
        handle().list_metrics(),
        [
            reply({"metrics": points[:1], "cursor": 7}),
            reply({"metrics": points[1:], "cursor": 9}),
            reply({"metrics": [], "cursor": 9}),
        ],
    )

    assert [point.avg_reward for point in talk.result] == [1.0, 2.0]


def test_a_learning_curve_that_leads_to_itself_is_unexpected() -> None:
    same = reply({"metrics": [{"episode": 1}], "cursor": 7})

    with pytest.raises(UnexpectedReply, match="lead back"):
        converse(handle().list_metrics(), [same, same])


# defect: F-14
def test_a_job_without_a_log_has_no_lines_after_one_question() -> None:
    talk = converse(handle().get_logs(limit=5), [reply([])])

    assert talk.result == []
    assert talk.requests[0].params == (("limit", "5"),)


def test_cancelling_tells_what_the_platform_says() -> None:
    talk = converse(
        handle().cancel(),
        [reply({"job_id": "j", "status": "cancelled"})],
    )

    assert talk.result["status"] == "cancelled"
    assert talk.requests[0].keyed
