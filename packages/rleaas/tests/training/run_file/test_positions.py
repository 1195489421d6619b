"""JSON is read as the library reads it, and every value knows where it stood."""

import json
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rleaas.training.run_file.positions import DEEPEST, Node, NotJson, Position, parse

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=10,
)


def nodes(node: Node) -> Iterator[Node]:
    yield node
    for inner in (*node.members.values(), *node.items):
        yield from nodes(inner)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(VALUES, st.sampled_from([None, 1, 3]))
def test_every_value_is_read_and_stands_where_its_position_says(
    value: object, indent: int | None
) -> None:
    text = json.dumps(value, indent=indent)
    lines = text.split("\n")

    root = parse(text).root

    assert root.value == value
    for node in nodes(root):
        before = "\n".join(lines[: node.at.line - 1])
        offset = len(before) + (node.at.line > 1) + node.at.column - 1
        assert json.JSONDecoder().raw_decode(text, offset)[0] == node.value
        for key, at in node.keys.items():
            assert lines[at.line - 1][at.column - 1 :].startswith(json.dumps(key))


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.text(alphabet='{}[]":,0123456789.eE+-truefalsn \n\\/u#', max_size=40))
def test_what_the_library_refuses_is_refused_and_nothing_else(text: str) -> None:
    try:
        expected: object = json.loads(text)
    except ValueError:
        with pytest.raises(NotJson):
            parse(text)
    else:
        assert parse(text).root.value == expected


@pytest.mark.parametrize(
    ("text", "message", "at"),
    [
        ("", "the file is empty", (1, 1)),
        ('{\n  "a": 1,\n}', "a comma before '}' is one too many", (3, 1)),
        ('{"a": 1\n "b": 2}', "a comma is missing", (2, 2)),
        ('{"a" 1}', "the colon after the key 'a' is missing", (1, 6)),
        ("{'a': 1}", "a key in double quotes is missing", (1, 2)),
        ("{\"a\": 'x'}", "texts are written in double quotes", (1, 7)),
        ('{"a": [1, 2', "an array that begins in line 1 has no end", (1, 12)),
        ('{"a": "x', "a text has no closing quote", (1, 7)),
        ('{"a": NaN}', "NaN is no JSON number", (1, 7)),
        ('{"a": 01}', "'01' is no value", (1, 7)),
        ("{\n// why\n}", "a key in double quotes is missing", (2, 1)),
        ("// why\n{}", "JSON has no comments", (1, 1)),
        ("{} {}", "there is more after the end of the value", (1, 4)),
    ],
)
def test_what_is_wrong_is_said_where_it_is(text: str, message: str, at: tuple[int, int]) -> None:
    with pytest.raises(NotJson) as refused:
        parse(text)

    assert (str(refused.value), refused.value.at) == (message, Position(*at))


def test_a_key_that_is_there_twice_is_found() -> None:
    parsed = parse('{"a": {"b": 1,\n "b": 2}}')

    assert parsed.repeated == [("a.b", Position(2, 2))]


def test_nesting_without_an_end_is_refused_and_breaks_nothing() -> None:
    with pytest.raises(NotJson, match=f"deeper than {DEEPEST}"):
        parse("[" * 100_000)
