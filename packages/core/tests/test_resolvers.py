from importlib.metadata import EntryPoint, EntryPoints

import pytest
from rlcore import (
    AddressError,
    ConfigurationError,
    Endpoint,
    register,
    resolve,
    schemes,
    unregister,
)
from rlcore import resolvers as room


def shout(uri: str, *, timeout: float | None) -> Endpoint:
    return Endpoint("tcp://127.0.0.1:1", environment_name=uri, expires_at=timeout)


def stumble(uri: str, *, timeout: float | None) -> Endpoint:
    raise ConfigurationError(f"cannot resolve {uri!r} in {timeout}")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    points = EntryPoints(
        [
            EntryPoint("Loud", f"{__name__}:shout", room.GROUP),
            EntryPoint("gone", "no_such_package:resolve", room.GROUP),
            EntryPoint("halved", "json:no_such_name", room.GROUP),
            EntryPoint("flat", "sys:maxsize", room.GROUP),
        ]
    )
    monkeypatch.setattr(room, "_installed", lambda: points)
    monkeypatch.setattr(EntryPoint, "load", load)


def load(point: EntryPoint) -> object:
    # Tests are not importable by name; every other entry point is loaded for real.
    return shout if point.attr == "shout" else original_load(point)


original_load = EntryPoint.load


def test_an_address_is_resolved_by_what_is_installed_for_its_scheme() -> None:
    assert resolve("loud://a", timeout=3.0) == Endpoint(
        "tcp://127.0.0.1:1", environment_name="loud://a", expires_at=3.0
    )


def test_a_registered_resolver_goes_before_an_installed_one() -> None:
    register("LOUD", stumble)
    try:
        with pytest.raises(ConfigurationError, match="cannot resolve"):
            resolve("Loud://a")
    finally:
        unregister("loud")
    assert resolve("loud://a").environment_name == "loud://a"


def test_the_schemes_that_can_be_resolved_are_known() -> None:
    register("mine", shout)
    try:
        assert schemes() == ("flat", "gone", "halved", "loud", "mine")
    finally:
        unregister("mine")
    assert "mine" not in schemes()


@pytest.mark.parametrize("address", ["CartPole", "", "://x"])
def test_an_address_without_a_scheme_is_refused(address: str) -> None:
    with pytest.raises(AddressError, match="has no scheme"):
        resolve(address)


def test_an_unknown_scheme_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(AddressError, match=r"'ftp' of 'ftp://a' \(resolvable: flat, gone"):
        resolve("ftp://a")


def test_a_scheme_of_ours_that_is_not_installed_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(room, "_installed", lambda: EntryPoints())

    with pytest.raises(AddressError, match=r"resolvable: none.*pip install \"rleaas\[mesh\]\""):
        resolve("rleaas://CartPole")


@pytest.mark.parametrize("scheme", ["gone", "halved"])
def test_a_resolver_that_cannot_be_loaded_is_a_configuration_error(scheme: str) -> None:
    with pytest.raises(
        ConfigurationError, match=f"resolver of '{scheme}' cannot be loaded"
    ) as caught:
        resolve(f"{scheme}://a")
    assert caught.value.__cause__ is not None


def test_a_resolver_that_is_no_function_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="is not callable"):
        resolve("flat://a")
