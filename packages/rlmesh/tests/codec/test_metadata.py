import datetime
import enum
import math
from collections import ChainMap, Counter, UserDict
from dataclasses import dataclass
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, NamedTuple, cast

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rlmesh.codec import (
    InvalidMetadataError,
    decode_meta,
    encode_meta,
    encode_meta_lenient,
    sanitize_metadata,
)
from rlmesh.values import Tensor
from rlmesh.wire.env.v1.env_pb2 import EpisodeMetadata, JoinResponse, StepResponse
from rlmesh.wire.spaces.v1.spaces_pb2 import MetaMap, MetaNull, MetaValue


class Point(NamedTuple):
    x: int
    y: str


class Colour(enum.Enum):
    RED = 3
    ODD = (1j).conjugate


@dataclass
class Pose:
    x: float
    name: str


@pytest.mark.parametrize(
    ("value", "content"),
    [
        (None, ""),
        (True, "2001"),
        (5, "0805"),
        (-1, "08ffffffffffffffffff01"),
        (1.5, "11000000000000f83f"),
        ("x", "1a0178"),
        (np.str_("x"), "1a0178"),
        (b"x", "2a0178"),
        ([], "3200"),
        (np.zeros(0), "3200"),
        ({}, "3a00"),
    ],
    ids=repr,
)
def test_values_are_the_published_bytes(value: object, content: str) -> None:
    assert encode_meta({"k": value}).entries["k"].SerializeToString().hex() == content


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        ((1, [2, (3,)]), [1, [2, [3]]]),
        (np.arange(4, dtype="f4").reshape(2, 2), [[0.0, 1.0], [2.0, 3.0]]),
        (np.array(3), 3),
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3),
        (np.bool_(True), True),
        (np.longdouble(0.5), 0.5),
        (Tensor(b"\1\2", [2], "uint8"), [1, 2]),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), [97, 98]),
        (Point(1, "a"), {"x": 1, "y": "a"}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (UserDict(a=1), {"a": 1}),
        (ChainMap({"a": 1}), {"a": 1}),
        (Colour.RED, 3),
        (Colour.ODD, "ODD"),
        (2**63 - 1, 2**63 - 1),
    ],
)
def test_equal_values_of_other_types_arrive_as_pythons_own(value: object, meaning: object) -> None:
    decoded = decode_meta(encode_meta({"k": value}))["k"]
    assert decoded == meaning
    assert type(decoded) is type(meaning)


def test_none_is_read_in_both_forms() -> None:
    message = MetaMap(entries={"a": MetaValue(), "b": MetaValue(null=MetaNull())})
    assert decode_meta(message) == {"a": None, "b": None}


TEXTS = st.text("aé\U0001f600$.[0]\0", max_size=5)
PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | TEXTS
    | st.binary(max_size=9),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(TEXTS, children, max_size=3),
    max_leaves=8,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(TEXTS, PLAIN, max_size=3))
def test_what_the_vocabulary_holds_comes_back(metadata: dict[str, Any]) -> None:
    message = MetaMap.FromString(encode_meta(metadata).SerializeToString())
    assert decode_meta(message) == metadata
    assert sanitize_metadata(metadata) == metadata


def test_nan_comes_back() -> None:
    assert math.isnan(decode_meta(encode_meta({"k": math.nan}))["k"])


def nested(depth: int, leaf: object, *, lists: bool = False) -> dict[str, object]:
    value = leaf
    for _ in range(depth):
        value = [value] if lists else {"k": value}
    return {"k": value}


class Silent:
    pass


class Hostile:
    def __str__(self) -> str:
        raise KeyError("no")

    def __float__(self) -> float:
        raise KeyError("no")

    def tolist(self) -> object:
        raise KeyError("no")


ODD: list[tuple[object, object]] = [
    (2**63, str(2**63)),
    (1 + 2j, "(1+2j)"),
    ({3, 1, 2}, [1, 2, 3]),
    (datetime.date(2026, 1, 2), "2026-01-02"),
    (Pose(0.5, "a"), {"x": 0.5, "name": "a"}),
    (Fraction(1, 2), 0.5),
    (PurePosixPath("/a/b"), "/a/b"),
    ("\ud800", "\\ud800"),
    (np.array([2**63], np.uint64), [str(2**63)]),
    ([1, {2}], [1, [2]]),
    ({1: "a"}, {"1": "a"}),
    (range(3), "range(0, 3)"),
]


@pytest.mark.parametrize(("value", "kept"), ODD, ids=lambda item: ascii(item))
def test_an_odd_value_is_refused_strictly_and_carried_leniently(
    value: object, kept: object
) -> None:
    with pytest.raises(InvalidMetadataError) as caught:
        encode_meta({"k": value})
    assert isinstance(caught.value, TypeError)
    assert caught.value.path.startswith("$.k")
    assert "sanitize_metadata" in str(caught.value)
    assert "_Refused" not in str(caught.value)
    message, changed = encode_meta_lenient({"k": value, "fine": 1})
    assert decode_meta(message) == {"k": kept, "fine": 1}
    assert changed
    assert all(path.startswith("$.k") for path in changed)
    assert sanitize_metadata({"k": value}) == {"k": kept}


def test_keys_of_the_same_text_are_both_kept() -> None:
    message, changed = encode_meta_lenient({"1": "text", 1: "number"})
    assert decode_meta(message) == {"1": "text", "1 (int)": "number"}
    assert changed == ["$.1 (int)"]


@pytest.mark.parametrize("value", [Silent(), Silent, len, str.upper, iter([1]), Hostile()])
def test_an_object_without_a_text_of_its_own_is_its_name(value: object) -> None:
    text = sanitize_metadata({"k": value})["k"]
    assert text.startswith("<")
    assert "0x" not in text


@pytest.mark.parametrize("info", [[], [1, 2], "text", 3])
def test_an_info_that_is_no_mapping_is_carried_under_a_key(info: object) -> None:
    message, changed = encode_meta_lenient(info)
    assert (decode_meta(message), changed) == ({"info": info}, ["$"])
    with pytest.raises(InvalidMetadataError):
        sanitize_metadata(cast("Any", info))


def test_no_info_is_an_empty_one() -> None:
    assert encode_meta_lenient(None) == (MetaMap(), [])


def test_a_value_within_itself_is_an_error_or_a_word() -> None:
    loop: dict[str, object] = {"a": 1}
    loop["self"] = [loop]
    with pytest.raises(InvalidMetadataError):
        encode_meta({"k": loop})
    with pytest.raises(InvalidMetadataError) as caught:
        sanitize_metadata({"k": loop})
    assert caught.value.path == "$.k.self[0]"
    message, changed = encode_meta_lenient({"k": loop})
    assert decode_meta(message) == {"k": {"a": 1, "self": ["<itself>"]}}
    assert changed == ["$.k.self[0]"]


@pytest.mark.parametrize("lists", [False, True])
def test_the_deepest_metadata_arrives_and_deeper_is_cut(lists: bool) -> None:
    depth = next(d for d in range(1, 99) if not _fits(nested(d, 1, lists=lists))) - 1
    assert depth > 25
    message = JoinResponse(
        step=StepResponse(
            completed_episodes=[
                EpisodeMetadata(final_info=encode_meta(nested(depth, 1, lists=lists)))
            ]
        )
    )
    assert JoinResponse.FromString(message.SerializeToString()) == message
    cut, changed = encode_meta_lenient(nested(60, 1, lists=lists))
    assert MetaMap.FromString(cut.SerializeToString()) == cut
    assert len(changed) == 1


def _fits(metadata: dict[str, object]) -> bool:
    try:
        encode_meta(metadata)
    except InvalidMetadataError:
        return False
    return True


def test_the_same_object_twice_is_no_cycle() -> None:
    shared = [1]
    assert sanitize_metadata({"a": shared, "b": shared, "odd": {1}}) == {
        "a": [1],
        "b": [1],
        "odd": [1],
    }


MILLION = 1_000_000


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.zeros(39 * MILLION), "<ndarray of shape [39000000] and type float64: too large>"),
        (Tensor(bytes(2 * MILLION), [2, MILLION], "uint8"), "<Tensor of shape [2, 1000000] and"),
        ([0] * (MILLION + 1), "<list of 1000001 elements: too large>"),
        (dict.fromkeys(range(MILLION + 1)), "<dict of 1000001 elements: too large>"),
        (memoryview(bytes(MILLION + 1)), "<memoryview of 1000001 bytes: too large>"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_too_large_for_an_info_is_carried_as_its_description(
    value: object, text: str
) -> None:
    message, changed = encode_meta_lenient({"x": value, "fine": [1]})
    decoded = decode_meta(message)
    assert decoded["x"].startswith(text)
    assert (decoded["fine"], changed) == ([1], ["$.x"])


def test_an_info_too_large_as_a_whole_keeps_what_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for room in ("elements", "metadata"):
        monkeypatch.setattr(f"rlmesh.codec.{room}.LIMIT", 12)
    part = np.zeros(4, np.int8)
    message, changed = encode_meta_lenient({"a": part, "b": {"c": part}, "d": part, "e": 1})
    decoded = decode_meta(message)
    assert changed == ["$.d"]
    assert decoded == {
        "a": [0] * 4,
        "b": {"c": [0] * 4},
        "d": "<ndarray of shape [4] and type int8: too large>",
        "e": 1,
    }
    message, changed = encode_meta_lenient(dict.fromkeys("abcdefghijklm", 0))
    assert decode_meta(message) == {"info": "<dict of 13 elements: too large>"}
    assert changed == ["$"]


class HostileMapping(UserDict[str, object]):
    def __iter__(self) -> Any:
        raise RuntimeError("gone")


def test_a_mapping_that_cannot_be_read_does_not_end_an_episode() -> None:
    message, changed = encode_meta_lenient(HostileMapping(a=1))
    assert list(decode_meta(message)) == ["info"]
    assert changed == ["$"]
    message, changed = encode_meta_lenient({"k": HostileMapping(a=1), "fine": 1})
    assert decode_meta(message)["fine"] == 1
    assert changed == ["$.k"]
