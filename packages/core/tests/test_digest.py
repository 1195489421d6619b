import hashlib
import json
from collections.abc import Mapping
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlcore import ConfigurationError, contract_differences, contract_digest

leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=True, allow_infinity=True)
    | st.text()
    | st.binary()
)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)
contracts = st.dictionaries(st.text(), values, max_size=5)


def shuffled(value: object) -> object:
    if isinstance(value, dict):
        table = cast("dict[str, object]", value)
        return {key: shuffled(table[key]) for key in reversed(table)}
    if isinstance(value, list):
        return tuple(shuffled(item) for item in cast("list[object]", value))
    return value


@given(contracts)
def test_order_of_keys_and_kind_of_sequence_do_not_change_a_digest(
    contract: dict[str, object],
) -> None:
    other = cast("dict[str, object]", shuffled(contract))

    assert contract_digest(other) == contract_digest(contract)
    assert contract_differences(contract, other) == ()


@given(contracts, contracts)
def test_differences_are_named_exactly_when_digests_differ(
    left: dict[str, object], right: dict[str, object]
) -> None:
    same = contract_digest(left) == contract_digest(right)

    assert (contract_differences(left, right) == ()) is same
    assert contract_differences(left, right) == contract_differences(right, left)


def test_a_digest_is_the_sha256_of_the_canonical_json() -> None:
    contract = {"b": [1, 2.5, None], "a": "Größe"}
    text = json.dumps(contract, sort_keys=True, separators=(",", ":"))

    assert contract_digest(contract) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"a": True}),
        ({"a": 0.0}, {"a": -0.0}),
        ({"a": None}, {}),
        ({"a": "1"}, {"a": 1}),
    ],
)
def test_values_that_look_alike_have_different_digests(
    left: Mapping[str, object], right: Mapping[str, object]
) -> None:
    assert contract_digest(left) != contract_digest(right)


def test_numbers_without_a_json_form_have_one_text_each() -> None:
    assert contract_digest({"a": float("nan")}) == contract_digest({"a": "nan"})
    assert contract_digest({"a": [float("inf"), -float("inf")]}) == contract_digest(
        {"a": ["inf", "-inf"]}
    )


def test_bytes_are_written_as_hexadecimal() -> None:
    assert contract_digest({"a": b"\x00\xff"}) == contract_digest({"a": {"__bytes__": "00ff"}})


def test_a_difference_is_named_by_its_dotted_path() -> None:
    expected = {"space": {"shape": [4], "high": [1.0, 2.0]}, "id": "a", "gone": 1}
    actual = {"space": {"shape": [4, 1], "high": [1.0, 3.0]}, "id": "a", "new": 1}

    assert contract_differences(expected, actual) == ("gone", "new", "space.high[1]", "space.shape")


@pytest.mark.parametrize(
    ("contract", "path"),
    [({"a": {"b": object()}}, "a.b"), ({"a": [0, {1, 2}]}, r"a\[1\]"), ({"a": {1: 2}}, "'a'")],
)
def test_a_value_without_canonical_form_is_refused_with_its_path(
    contract: Mapping[str, object], path: str
) -> None:
    with pytest.raises(ConfigurationError, match=path):
        contract_digest(contract)


def test_a_bad_key_at_the_root_is_refused() -> None:
    contract = cast("dict[str, object]", {3: 1})

    with pytest.raises(ConfigurationError, match="its root"):
        contract_digest(contract)
