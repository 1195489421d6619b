import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlcore import ConfigurationError
from rleaas import Client
from rleaas._flow.request import path, post, query, segment
from rleaas._flow.wire import Reply
from rleaas.testing import Answers, reply

NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(
    lambda text: bool(text.strip()) and text not in (".", "..")
)


@given(NAMES)
def test_an_escaped_name_is_one_segment_that_decodes_to_itself(name: str) -> None:
    request = httpx.Request("GET", "http://host" + path("/api/{}/end", name))

    raw = request.url.raw_path.decode()
    assert raw == f"/api/{segment(name)}/end"
    assert raw.count("/") == 3
    assert request.url.path == f"/api/{name}/end"
    assert request.url.fragment == ""
    assert request.url.query == b""


@given(NAMES)
def test_the_client_asks_for_exactly_the_name_it_was_given(name: str) -> None:
    asked: list[httpx.Request] = []

    def handler(request: httpx.Request) -> Reply:
        asked.append(request)
        return reply({"id": 1, "name": name, "status": "ready"})

    answers = Answers({f"GET /api/environments/{segment(name)}": handler})
    with Client(base_url="http://host", transport=answers.transport) as client:
        assert client.Environment.get(name).name == name
    assert [request.url.path for request in asked] == [f"/api/environments/{name}"]


@pytest.mark.parametrize("name", ["", "  ", ".", "..", "\ud800", True])
def test_what_cannot_be_a_segment_is_refused(name: str) -> None:
    with pytest.raises(ConfigurationError, match="environment name"):
        segment(name, "environment name")


def test_a_query_has_no_holes() -> None:
    found = query({"limit": 0, "cursor": "", "status": None, "refresh": True, "name": "a&b"})

    assert found == (("limit", "0"), ("cursor", ""), ("refresh", "true"), ("name", "a&b"))


def test_a_post_carries_its_key_and_may_be_repeated() -> None:
    request = post("/train/x", {}, key="k1")

    assert request.headers == {"Idempotency-Key": "k1"}
    assert request.repeatable


@pytest.mark.parametrize("key", ["", " ", "line\nbreak", "schlüssel"])
def test_a_key_that_is_no_header_is_refused(key: str) -> None:
    with pytest.raises(ConfigurationError, match="idempotency key"):
        post("/train/x", {}, key=key)


@pytest.mark.parametrize(
    ("what", "says"),
    [("environment name", "is not an environment name"), ("job id", "is not a job id")],
)
def test_a_refused_reference_has_the_right_article(what: str, says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        segment("", what)
