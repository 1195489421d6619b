from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlcore import (
    AddressError,
    ConfigurationError,
    Endpoint,
    EnvironmentIdentity,
    EnvironmentURI,
)

names = st.text(min_size=1, max_size=30).filter(
    lambda text: text == text.strip() and text.isprintable() and not set(text) & set("/#?")
)
versions = st.none() | st.integers(min_value=1)


@given(names, versions)
def test_a_uri_reads_back_as_it_was_written(name: str, version: int | None) -> None:
    uri = EnvironmentURI(name, version)

    assert EnvironmentURI.parse(str(uri)) == uri


@given(st.text())
def test_any_text_is_a_uri_or_a_configuration_error(text: str) -> None:
    try:
        uri = EnvironmentURI.parse(text)
    except ConfigurationError:
        return
    assert EnvironmentURI.parse(str(uri)) == uri


@pytest.mark.parametrize(
    ("text", "name", "version"),
    [
        ("rleaas://CartPole-Prod@3", "CartPole-Prod", 3),
        ("rleaas://CartPole-Prod", "CartPole-Prod", None),
        (" RLEaaS://CartPole ", "CartPole", None),
        ("rleaas://Cart%20Pole%40home", "Cart Pole@home", None),
        ("rleaas://Größe", "Größe", None),
    ],
)
def test_a_uri_names_an_environment(text: str, name: str, version: int | None) -> None:
    assert EnvironmentURI.parse(text) == EnvironmentURI(name, version)


@pytest.mark.parametrize(
    "text",
    [
        "CartPole",
        "tcp://CartPole",
        "rleaas:CartPole",
        "rleaas://CartPole@",
        "rleaas://CartPole@0",
        "rleaas://CartPole@03",
        "rleaas://CartPole@-1",
        "rleaas://CartPole@latest",
        "rleaas://CartPole@\N{ARABIC-INDIC DIGIT THREE}",
        "rleaas://CartPole@" + "9" * 5000,
        "rleaas://100%",
        "rleaas://%FF",
    ],
)
def test_what_is_no_environment_uri_is_an_address_error_that_shows_it(text: str) -> None:
    with pytest.raises(AddressError) as caught:
        EnvironmentURI.parse(text)
    assert repr(text) in str(caught.value)


@pytest.mark.parametrize("thing", [5, None, b"rleaas://CartPole"])
def test_what_is_no_text_is_no_environment_uri(thing: Any) -> None:
    with pytest.raises(AddressError, match="is not an environment URI"):
        EnvironmentURI.parse(thing)


@pytest.mark.parametrize(
    "text",
    ["rleaas://", "rleaas://@1", "rleaas://a%23b", "rleaas://a#b", "rleaas://a?b"],
)
def test_a_name_that_cannot_be_in_a_path_is_refused(text: str) -> None:
    with pytest.raises(ConfigurationError):
        EnvironmentURI.parse(text)


@pytest.mark.parametrize("name", ["", "  ", " a", "a ", "a#b", "a?b", "a\nb", "\ud800"])
def test_a_bad_name_cannot_be_put_into_a_uri(name: str) -> None:
    with pytest.raises(ConfigurationError):
        EnvironmentURI(name)


@pytest.mark.parametrize(
    "text", ["rleaas://team/Cart Pöle@2", "rleaas://team%2FCart%20P%C3%B6le@2"]
)
def test_a_name_may_have_slashes_blanks_and_any_letters(text: str) -> None:
    uri = EnvironmentURI.parse(text)

    assert uri == EnvironmentURI("team/Cart Pöle", 2)
    assert str(uri) == "rleaas://team%2FCart%20P%C3%B6le@2"


@pytest.mark.parametrize("version", [0, -1, True])
def test_a_bad_version_cannot_be_put_into_a_uri(version: int) -> None:
    with pytest.raises(ConfigurationError, match="whole number from 1"):
        EnvironmentURI("CartPole", version)


def test_an_identity_shows_name_version_and_the_start_of_the_digest() -> None:
    identity = EnvironmentIdentity("CartPole-Prod", 3, "sha256:12ab" + "0" * 60)

    assert str(identity) == "CartPole-Prod@3 (sha256:12ab00000000…)"
    assert identity.to_dict() == {
        "name": "CartPole-Prod",
        "version": 3,
        "contract_digest": "sha256:12ab" + "0" * 60,
    }


def test_an_identity_without_a_version_shows_none() -> None:
    assert str(EnvironmentIdentity("cp", None, "sha256:ab")) == "cp (sha256:ab…)"


def test_an_endpoint_from_a_registry_has_an_identity() -> None:
    endpoint = Endpoint(
        "tcp://127.0.0.1:1", environment_name="cp", version=2, contract_digest="sha256:ab"
    )

    assert endpoint.identity == EnvironmentIdentity("cp", 2, "sha256:ab")


@pytest.mark.parametrize(
    "endpoint",
    [
        Endpoint("tcp://a:1"),
        Endpoint("tcp://a:1", environment_name="cp"),
        Endpoint("tcp://a:1", contract_digest="d"),
    ],
)
def test_an_endpoint_from_nowhere_has_no_identity(endpoint: Endpoint) -> None:
    assert endpoint.identity is None


def test_an_endpoint_expires_at_its_moment() -> None:
    endpoint = Endpoint("tcp://a:1", expires_at=100.0)

    assert not endpoint.expired(99.9)
    assert endpoint.expired(100.0)
    assert not Endpoint("tcp://a:1").expired(1e12)


def test_the_registered_contract_is_not_part_of_what_an_endpoint_is() -> None:
    assert Endpoint("tcp://a:1", contract={"id": "x"}) == Endpoint("tcp://a:1")
    assert "contract=" not in repr(Endpoint("tcp://a:1", contract={"id": "x"}))
