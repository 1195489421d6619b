"""What several environments said travels as one info."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlcore import ProtocolException
from rlmesh.codec.metadata import decode_meta, encode_meta
from rlmesh.protocol.faults import Fault, FaultCode
from rlmesh.protocol.opening import Opening, new_opening, read_opening
from rlmesh.protocol.several import FAULTS, INFOS, in_one, of_each

FAULT_OF_ANY = st.builds(
    Fault,
    st.sampled_from([int(code) for code in FaultCode]),
    st.text(st.characters(codec="utf-8")),
    recoverable=st.booleans(),
    debug_info=st.text(st.characters(codec="utf-8")),
)
VALUE = st.integers(-(2**63), 2**63 - 1) | st.booleans() | st.text(st.characters(codec="utf-8"))
INFO = st.dictionaries(st.text(st.characters(codec="utf-8"), min_size=1, max_size=5), VALUE)


@given(st.lists(INFO | FAULT_OF_ANY, min_size=1, max_size=6))
def test_each_hears_what_it_said_after_the_way(told: list[Any]) -> None:
    travelled = decode_meta(encode_meta(in_one(told)))
    assert of_each(travelled, len(told)) == told


def test_nothing_to_tell_takes_no_room() -> None:
    assert in_one([{}, {}, {}]) == {}
    assert of_each({}, 2) == [{}, {}]


def test_what_the_server_adds_is_told_to_the_first() -> None:
    assert of_each({"warning": 1, INFOS: [{"a": 1}, {}]}, 2) == [{"a": 1, "warning": 1}, {}]


@given(
    st.recursive(
        VALUE | st.none(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=3), inner),
        max_leaves=12,
    ),
    st.sampled_from([INFOS, FAULTS]),
)
def test_what_is_told_in_no_known_form_is_refused_or_read(value: Any, key: str) -> None:
    try:
        told = of_each({key: value}, 3)
    except ProtocolException:
        return
    assert len(told) == 3


@pytest.mark.parametrize("count", [1, 8, 4096])
def test_an_opening_says_how_many_environments_it_is_for(count: int) -> None:
    opening = new_opening(frozenset({"rlmesh.env.resume.v1"}), None, count)
    read = read_opening(dict(opening.headers()))
    assert (read, read.places) == (opening, count)


def test_an_opening_for_whatever_is_served_says_nothing_of_it() -> None:
    assert "rlmesh-num-envs" not in dict(new_opening(frozenset(), None).headers())
    assert (read_opening({}).num_envs, Opening().places) == (0, 1)


@pytest.mark.parametrize("text", ["0", "-1", "4097", "999999999999", "two", "", "1.0", "²", " 3"])
def test_an_opening_for_no_number_of_environments_is_refused(text: str) -> None:
    with pytest.raises(ProtocolException, match="rlmesh-num-envs"):
        read_opening({"rlmesh-num-envs": text})
