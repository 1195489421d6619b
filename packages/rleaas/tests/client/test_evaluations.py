from typing import Any

import pytest
from rlcore import ConfigurationError, EvaluationCancelled, EvaluationFailed, EvaluationNotFound
from rleaas.models import Evaluation
from rleaas.resources.evaluation_handle import EvaluationJobResource
from rleaas.resources.evaluations import EvaluationClient
from rleaas.testing import Offline, converse, reply


def evaluation(**facts: object) -> dict[str, object]:
    return {"id": "e", "status": "running", "environment_name": "E", "seeds": [0, 1], **facts}


def handle() -> EvaluationJobResource[Offline]:
    return EvaluationJobResource(Offline(), Evaluation.model_validate(evaluation()))


def client() -> EvaluationClient[Offline]:
    return EvaluationClient(Offline())


def test_an_evaluation_is_started_by_checkpoint_alone() -> None:
    talk = converse(
        client().run("c1", seeds=range(2), success_threshold=475),
        [reply(evaluation())],
    )

    (request,) = talk.requests
    assert (request.method, request.path) == ("POST", "/api/evaluations")
    assert request.keyed
    assert request.json == {
        "agent_checkpoint_id": "c1",
        "purpose": "evaluation",
        "seeds": [0, 1],
        "success_threshold": 475,
    }
    assert talk.result.environment == "E"


def test_a_published_config_says_the_same_as_keywords() -> None:
    talk = converse(
        client().run("c1", config={"num_episodes": 5, "max_steps": 9}),
        [reply(evaluation())],
    )

    assert talk.requests[0].json == {
        "agent_checkpoint_id": "c1",
        "purpose": "evaluation",
        "episodes": 5,
        "max_episode_steps": 9,
    }


@pytest.mark.parametrize("seeds", ["12", 3, [1.9], [True], ["1"], [None], b"12"])
@pytest.mark.parametrize("in_config", [False, True])
def test_seeds_are_whole_numbers_and_nothing_is_made_one(seeds: Any, in_config: bool) -> None:
    given: dict[str, Any] = {"config": {"seeds": seeds}} if in_config else {"seeds": seeds}

    with pytest.raises(ConfigurationError, match="seed"):
        converse(client().run("c1", **given), [reply(evaluation())])


# defect: F-21
@pytest.mark.parametrize(
    ("config", "complaint"),
    [
        ({"purpose": "training"}, "unknown key 'purpose'"),
        ({"agent_checkpoint_id": "other"}, "unknown key 'agent_checkpoint_id'"),
        ({"episodes": 6}, "Say it once"),
    ],
)
def test_a_config_cannot_overwrite_what_was_said(config: dict[str, object], complaint: str) -> None:
    with pytest.raises(ConfigurationError, match=complaint):
        converse(client().run("c1", episodes=5, config=config), [])


# defect: F-4
def test_waiting_returns_the_report_found_by_id_alone() -> None:
    talk = converse(
        handle().wait_until_complete(),
        [
            reply(evaluation(episodes_done=1)),
            reply(evaluation(status="completed", episodes_done=2)),
            reply(evaluation(status="completed", asked=2, scored=2, mean_return=9.5)),
        ],
    )

    assert talk.result.mean_return == 9.5
    assert [request.path for request in talk.requests] == [
        "/api/evaluations/e",
        "/api/evaluations/e",
        "/api/evaluations/e/report",
    ]
    assert talk.shown[0] == "evaluation 'e': running · episode 1/2"


# defect: F-3
@pytest.mark.parametrize("status", ["failed", "FAILED", "error"])
def test_a_failed_evaluation_raises_its_reason(status: str) -> None:
    with pytest.raises(EvaluationFailed, match="environment is gone"):
        converse(
            handle().wait_until_complete(),
            [reply(evaluation(status=status, error="environment is gone"))],
        )


def test_a_cancelled_evaluation_is_not_complete() -> None:
    with pytest.raises(EvaluationCancelled):
        converse(
            handle().wait_until_complete(),
            [reply(evaluation(status="cancelled"))],
        )


# defect: F-5
def test_the_report_of_an_unknown_evaluation_is_an_error_and_not_a_list() -> None:
    with pytest.raises(EvaluationNotFound) as caught:
        converse(client().get_report("nope"), [reply({"detail": "none"}, 404)])

    assert caught.value.evaluation_id == "nope"


def test_the_report_of_another_environment_is_not_the_one_asked_for() -> None:
    with pytest.raises(ConfigurationError, match="ran on environment 'E', not on 'F'"):
        converse(client().get_report("e", "F"), [reply(evaluation())])


# defect: P-3
def test_evaluations_are_listed() -> None:
    flow = client().list()

    assert [one.id for one in converse(flow, [reply({"evaluations": [evaluation()]})]).result] == [
        "e"
    ]


def test_an_unusable_argument_is_told_with_the_class_that_the_caller_has() -> None:
    nonsense: Any = 5

    with pytest.raises(ConfigurationError, match=r"^EvaluationClient\.compare cannot use an arg"):
        converse(client().compare(nonsense), [])


def stored(number: int) -> dict[str, object]:
    return {"id": f"roll_{number}", "status": "completed", "environment_name": "E"}


def test_rollouts_are_asked_for_page_by_page_until_one_is_not_full() -> None:
    pages = [[stored(one) for one in range(500)], [stored(one) for one in range(500, 503)]]
    talk = converse(client().list_rollouts("E"), [reply({"rollouts": one}) for one in pages])

    assert [dict(one.params) for one in talk.requests] == [
        {"limit": "500", "offset": "0"},
        {"limit": "500", "offset": "500"},
    ]
    assert [one.id for one in talk.result] == [f"roll_{one}" for one in range(503)]


def test_a_server_without_pages_is_asked_twice_at_most() -> None:
    everything = {"rollouts": [stored(one) for one in range(500)]}
    assert len(converse(client().list_rollouts(), [reply(everything)] * 2).result) == 500
    more = {"rollouts": [stored(one) for one in range(700)]}
    assert len(converse(client().list_rollouts(), [reply(more)]).result) == 700


def test_no_more_rollouts_are_asked_for_than_are_wanted() -> None:
    talk = converse(client().list_rollouts("E", 2), [reply({"rollouts": [stored(1), stored(2)]})])

    assert [dict(one.params)["limit"] for one in talk.requests] == ["2"]
    with pytest.raises(ConfigurationError, match="limit"):
        converse(client().list_rollouts("E", 0), [])
