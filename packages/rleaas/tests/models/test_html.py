"""What notebooks show."""

from html.parser import HTMLParser

import pytest
from rleaas import Client
from rleaas.models import EndpointGrant, Environment, NewApiKey
from rleaas.models.html import LONGEST_TEXT, MOST_ROWS, Listing
from rleaas.testing import Answers, reply

HOSTILE = '<script>alert("1")</script>\'"&\u202e</td><img src=x onerror=y>'


class Tags(HTMLParser):
    """Notes the elements of a page and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append(tag)
        assert not attrs

    def handle_data(self, data: str) -> None:
        self.text += data


def env(name: str, **facts: object) -> Environment:
    return Environment.model_validate({"id": 1, "name": name, "status": "ready", **facts})


def page_of(thing: object) -> str:
    page = getattr(thing, "_repr_html_")()  # noqa: B009 - as notebooks do
    assert isinstance(page, str)
    return page


@pytest.mark.parametrize("what", ["record", "list", "handle"])
def test_hostile_names_are_text_in_a_notebook(what: str) -> None:
    answers = Answers({"GET /api/environments/E": reply(env(HOSTILE).to_dict())})
    with Client(base_url="http://localhost:1", transport=answers.transport) as client:
        handle = client.Environment.get("E")
    thing = {"record": env(HOSTILE), "list": Listing([env(HOSTILE)]), "handle": handle}[what]

    tags = Tags(page_of(thing))

    assert set(tags.found) <= {"table", "caption", "tr", "th", "td", "bdi"}
    assert HOSTILE in tags.text


def test_names_of_fields_are_escaped_too() -> None:
    assert "<b>" not in page_of(env("E", **{"<b>": 1}))


def test_secrets_are_not_shown() -> None:
    key = NewApiKey(id="1", key="rleaas_sk_very_secret")
    grant = EndpointGrant(
        address="tcp://h:1", token="very-secret", environment_name="E", contract_digest="d"
    )

    for page in (page_of(key), page_of(grant), page_of(Listing([key, grant]))):
        assert "very" not in page


def test_long_texts_and_lists_are_cut_and_say_so() -> None:
    assert f"{'x' * LONGEST_TEXT}…" in page_of(env("E", description="x" * 10_000))
    many = page_of(Listing([env("E")] * 1000))
    assert many.count("<tr>") == MOST_ROWS + 1
    assert f"Environment (1000, {MOST_ROWS} shown)" in many


def test_lists_of_calls_are_lists_that_a_notebook_shows() -> None:
    answers = Answers(
        {
            "GET /api/environments": reply([env("A").to_dict(), env("B").to_dict()]),
            "GET /api/training/jobs/j/logs": reply(["<i>line</i>"]),
            "GET /training/j": reply({"job_id": "j", "status": "running"}),
        }
    )
    with Client(base_url="http://localhost:1", transport=answers.transport) as client:
        listed = client.Environment.list()
        lines = client.TrainingJob.get("j").get_logs()

    assert isinstance(listed, list)
    assert Tags(page_of(listed)).text.startswith("EnvironmentResource (2)")
    assert "<bdi>A</bdi>" in page_of(listed)
    assert lines == ["<i>line</i>"]
    assert "<i>" not in page_of(lines)
    assert "record (0)" in page_of(Listing[object]([]))
