from collections.abc import Callable

import pytest
from rlcore import ConfigurationError, Error, boundary
from rlcore.errors import AddressError

Mapping = dict[type[BaseException], Callable[[BaseException], Error]]
REPLACE_ALL: Mapping = {Exception: lambda error: Error(f"replaced {error!r}")}


def test_a_foreign_failure_becomes_ours_and_keeps_its_cause() -> None:
    mapping: Mapping = {KeyError: lambda error: ConfigurationError(f"bad: {error}")}
    with pytest.raises(ConfigurationError, match="bad: 3") as caught, boundary("reading", mapping):
        raise KeyError(3)
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__notes__ == ["while reading"]


def test_the_nearest_class_decides() -> None:
    mapping: Mapping = {
        LookupError: lambda error: Error(f"far: {error!r}"),
        KeyError: lambda error: Error(f"near: {error!r}"),
    }
    with pytest.raises(Error, match="near"), boundary("x", mapping):
        raise KeyError(1)
    with pytest.raises(Error, match="far"), boundary("x", mapping):
        raise IndexError(1)


def test_an_error_of_ours_passes_unchanged() -> None:
    ours = AddressError("x")
    with pytest.raises(AddressError) as caught, boundary("x", REPLACE_ALL):
        raise ours
    assert caught.value is ours


def test_what_no_entry_names_passes_unchanged() -> None:
    with pytest.raises(ZeroDivisionError), boundary("x", {KeyError: lambda error: Error("no")}):
        raise ZeroDivisionError


def test_a_block_without_failure_gives_its_value() -> None:
    with boundary("x", REPLACE_ALL):
        value = 1
    assert value == 1
