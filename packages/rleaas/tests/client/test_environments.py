import json
from typing import Any, cast

import pytest
from rlcore import (
    ConfigurationError,
    ConflictError,
    EnvironmentFailed,
    EnvironmentNotFound,
    UnexpectedReply,
)
from rleaas._flow.wire import Reply, Request
from rleaas.models import Environment
from rleaas.resources.environment_handle import EnvironmentResource
from rleaas.resources.environments import EnvironmentsClient
from rleaas.testing import Offline, converse, reply

MISSING = reply({"detail": "Environment not found", "kind": "environment", "ref": "E"}, 404)


def record(**facts: object) -> dict[str, object]:
    return {"id": 3, "name": "E", "status": "ready", "version": 1, **facts}


def handle(driver: Offline | None = None, **facts: object) -> EnvironmentResource[Offline]:
    held = Environment.model_validate(record(**facts))
    return EnvironmentResource(Offline() if driver is None else driver, held)


def environments() -> EnvironmentsClient[Offline]:
    return EnvironmentsClient(Offline())


def body(request: Request) -> dict[str, Any]:
    return cast("dict[str, Any]", json.loads(json.dumps(request.json)))


def test_creating_needs_a_name_and_a_source_only() -> None:
    talk = converse(
        environments().create("E", source="gym://CartPole-v1"),
        [reply(record(status="registered"))],
    )

    assert talk.result.status == "registered"
    (request,) = talk.requests
    assert (request.method, request.path) == ("POST", "/api/custom-environments")
    assert request.headers == {"Idempotency-Key": "key-1"}
    assert body(request)["source"] == "gym://CartPole-v1"


def test_creating_in_the_published_form_sends_the_published_fields() -> None:
    talk = converse(
        environments().create(
            "E", "text", [{"name": "t"}], [{"name": "s"}], ["v"], ["sim"], "FinSim"
        ),
        [reply(record())],
    )

    assert body(talk.requests[0]) == {
        "name": "E",
        "description": "text",
        "tools": [{"name": "t"}],
        "scenarios": [{"name": "s"}],
        "verifiers": ["v"],
        "simulations": ["sim"],
        "owner": "",
        "sdk": "gradio",
        "compute": "cpu-basic",
        "license": "",
        "source": "custom",
        "vertical": "FinSim",
        "category": "FinSim",
        "domain": "finance",
    }


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"domain": "healthcare"}, ("MedSim", "healthcare")),
        ({"vertical": "ShipSim"}, ("ShipSim", None)),
        ({"vertical": "FinSim", "domain": "healthcare"}, ("FinSim", "healthcare")),
    ],
)
def test_vertical_and_domain_fill_each_other_in(
    given: dict[str, Any], sent: tuple[str, str | None]
) -> None:
    talk = converse(environments().create("E", **given), [reply(record())])

    fields = body(talk.requests[0])
    assert (fields["vertical"], fields.get("domain")) == sent


def test_the_word_created_is_not_taken_for_a_status() -> None:
    talk = converse(
        environments().create("E"),
        [reply({"status": "created", "name": "E"}), reply(record(status="provisioning"))],
    )

    assert talk.result.status == "provisioning"
    assert talk.requests[1].path == "/api/environments/E"


def test_a_list_is_read_to_its_last_page() -> None:
    talk = converse(
        environments().list(vertical="FinSim", offset=1),
        [
            reply({"environments": [record(id=1)], "cursor": "1"}),
            reply({"environments": [record(id=2)], "cursor": None}),
        ],
    )

    assert [one.id for one in talk.result] == [1, 2]
    assert [request.params for request in talk.requests] == [
        (("category", "FinSim"), ("offset", "1"), ("limit", "500")),
        (("category", "FinSim"), ("limit", "500"), ("cursor", "1")),
    ]


def test_a_list_ends_at_its_limit() -> None:
    talk = converse(
        environments().list(limit=2),
        [reply({"environments": [record(id=1), record(id=2)], "cursor": "2"})],
    )

    assert [one.id for one in talk.result] == [1, 2]


def test_a_page_that_leads_to_itself_is_unexpected() -> None:
    page = reply({"environments": [record()], "cursor": "1"})

    with pytest.raises(UnexpectedReply, match="leads back"):
        converse(environments().list(), [page, page])


def test_an_environment_is_named_by_name_id_record_or_handle() -> None:
    for given, name in (("E", "E"), (3, "3"), (0, "0"), (handle(), "E"), (handle().record, "E")):
        talk = converse(environments().get(given), [reply(record())])
        assert talk.requests[0].path == f"/api/environments/{name}"


def test_waiting_for_an_environment_that_does_not_exist_raises() -> None:
    with pytest.raises(EnvironmentNotFound) as caught:
        converse(handle().wait_until_ready(), [MISSING])

    assert caught.value.ref == "E"


def test_waiting_returns_the_handle_once_it_is_ready() -> None:
    driver = Offline()
    waited = handle(driver, status="registered")

    talk = converse(
        waited.wait_until_ready(),
        [reply(record(status="provisioning")), reply(record(contract_digest="sha256:1"))],
        driver.clock,
    )

    assert talk.result is waited
    assert waited.status == "ready"
    assert waited.identity is not None


@pytest.mark.parametrize("status", ["failed", "error", "FAILED"])
def test_an_environment_that_does_not_come_up_gives_its_reason(status: str) -> None:
    failed = reply(record(status=status, status_reason="no gym id 'X-v1'"))

    with pytest.raises(EnvironmentFailed, match="no gym id 'X-v1'") as caught:
        converse(handle().wait_until_ready(), [failed])

    assert caught.value.ref == "E"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"status": "registered", "source": None, "status_reason": "no source: none"}, "no source"),
        ({"status": "deprovisioned"}, "deprovisioned"),
    ],
)
def test_an_environment_that_waits_for_nothing_is_not_waited_for(
    fields: dict[str, object], says: str
) -> None:
    with pytest.raises(EnvironmentFailed, match=says):
        converse(handle().wait_until_ready(), [reply(record(**fields))])


def test_a_renamed_environment_is_followed() -> None:
    renamed = handle()

    talk = converse(renamed.update({}, "F"), [reply({}), reply(record(name="F"))])

    assert talk.result.name == "F"
    assert body(talk.requests[0]) == {"config": {}, "name": "F"}
    assert talk.requests[1].path == "/api/environments/F"


def test_deleting_needs_to_be_confirmed() -> None:
    with pytest.raises(ConfigurationError, match="confirm=True") as caught:
        converse(handle().delete(), [])
    assert caught.value.code == "not_confirmed"


def test_a_name_with_marks_in_it_deletes_nothing_else() -> None:
    talk = converse(
        environments().delete("prod#old", confirm=True),
        [reply({"status": "deleted"})],
    )

    assert talk.requests[0].path == "/api/custom-environments/prod%23old"


def test_an_environment_in_use_is_a_conflict() -> None:
    with pytest.raises(ConflictError, match="in use"):
        converse(
            handle().delete(confirm=True),
            [reply({"detail": "in use by job_1"}, 409)],
        )


def test_a_version_s_endpoint_is_asked_for_with_patience() -> None:
    grant = {"address": "tcp://h:1", "environment_name": "E", "contract_digest": "sha256:1"}

    talk = converse(handle().endpoint(2), [reply(grant)])

    (request,) = talk.requests
    assert request.params == (("version", "2"),)
    assert request.timeout is not None
    assert request.timeout > Offline().context.timeout


def test_a_handle_answers_like_the_dictionary_it_was() -> None:
    one = handle(owner="me")

    assert (one["status"], one["owner"], one.get("nothing", 1)) == ("ready", "me", 1)
    assert "owner" in one
    assert repr(one) == "<EnvironmentResource E@1 id=3 status='ready'>"


def test_a_conversation_leaves_no_answer_over() -> None:
    spare: list[Reply] = [reply(record()), reply(record())]

    with pytest.raises(AssertionError, match="ended before"):
        converse(environments().get("E"), spare)
