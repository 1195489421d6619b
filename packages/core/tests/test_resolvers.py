import subprocess
import sys
from pathlib import Path

import pytest
import rlcore
from rlcore import (
    AddressError,
    ConfigurationError,
    Endpoint,
    register,
    resolve,
    schemes,
    unregister,
)

MODULE = """
from rlcore import Endpoint

def resolve(uri, *, timeout):
    return Endpoint("tcp://127.0.0.1:1", environment_name=uri, expires_at=timeout)
"""
ENTRY_POINTS = """
[rlcore.resolvers]
Loud = loud_resolver:resolve
gone = no_such_package:resolve
halved = loud_resolver:no_such_name
flat = sys:maxsize
"""


def stumble(uri: str, *, timeout: float | None) -> Endpoint:
    raise ConfigurationError(f"cannot resolve {uri!r} in {timeout}")


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    about = tmp_path / "loud_resolver-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: loud-resolver\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(ENTRY_POINTS)
    (tmp_path / "loud_resolver.py").write_text(MODULE)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])


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
    register("mine", stumble)
    try:
        assert {"flat", "gone", "halved", "loud", "mine"} <= set(schemes())
        assert list(schemes()) == sorted(schemes())
    finally:
        unregister("mine")
    assert "mine" not in schemes()


@pytest.mark.parametrize("address", ["CartPole", "", "://x"])
def test_an_address_without_a_scheme_is_refused(address: str) -> None:
    with pytest.raises(AddressError, match="has no scheme"):
        resolve(address)


def test_an_unknown_scheme_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(AddressError, match=r"'ftp' of 'ftp://a' \(resolvable: .*loud"):
        resolve("ftp://a")


def test_a_scheme_of_ours_that_is_not_installed_says_what_to_install() -> None:
    # Without site packages nothing but the standard library and rlcore itself is installed.
    code = (
        "import rlcore\ntry: rlcore.resolve('rleaas://CartPole')\nexcept ValueError as e: print(e)"
    )
    source = str(Path(rlcore.__file__).parents[1])

    said = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {source!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert "(resolvable: none)" in said
    assert 'pip install "rleaas[mesh]"' in said


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
