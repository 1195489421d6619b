import math
import time
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rlcore import ExpressionError
from rleaas.verify import Expression, Trajectory

NAMES: Mapping[str, object] = {
    "x": 3,
    "speed": 2.5,
    "word": "wire",
    "items": [1, 2, 3],
    "deep": {"inner": {"amount": 10}, "keys with blanks": 1},
    "nothing": None,
}


def value(text: str) -> object:
    return Expression(text).evaluate(NAMES)


def refusal(text: str) -> ExpressionError | None:
    try:
        value(text)
    except ExpressionError as error:
        return error
    return None


# The grammar of Python that ours shares, over whole numbers, so that Python itself is the judge.
NUMBERS = st.integers(-50, 50).map(str) | st.sampled_from(["x", "speed", "0.5", "1e3", "True"])


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(
        inner,
        st.sampled_from(
            ["+", "-", "*", "/", "//", "%", "<", "<=", ">", ">=", "==", "!=", "and", "or"]
        ),
        inner,
    ).map(" ".join)
    return st.one_of(
        two,
        inner.map("({})".format),
        inner.map("-{}".format),
        inner.map("not {}".format).map("({})".format),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} if {t[1]} else {t[2]})"),
        st.tuples(inner, inner, inner).map(lambda t: f"({t[0]} < {t[1]} <= {t[2]})"),
        st.tuples(inner, inner).map(lambda t: f"max({t[0]}, {t[1]})"),
        st.tuples(inner, inner).map(lambda t: f"({t[0]} in [{t[1]}, 1, 2])"),
        st.tuples(inner, st.integers(0, 3)).map(lambda t: f"({t[0]}) ** {t[1]}"),
        inner.map("abs({})".format),
    )


@settings(max_examples=300, deadline=None)
@given(st.recursive(NUMBERS, _joined, max_leaves=8))
def test_a_formula_has_the_value_that_python_gives_it(text: str) -> None:
    try:
        wanted = eval(text, {"__builtins__": {"max": max, "abs": abs}}, dict(NAMES))
    except (ZeroDivisionError, OverflowError, SyntaxError):
        with pytest.raises(ExpressionError):
            value(text)
        return
    if isinstance(wanted, int) and abs(wanted) >= 2**1024:
        # Our numbers end where floating-point numbers do.
        with pytest.raises(ExpressionError, match="the number is too large"):
            value(text)
        return
    found = value(text)
    assert found == wanted or (math.isnan(wanted) and math.isnan(found))  # type: ignore[arg-type]
    assert type(found) is type(wanted)


WORDS = (
    "x|items|word|deep|1|0|999999999|1e999|'a'|\"|'|(|)|[|]|.|,|:|**|*|%|//|+|-|<|in|NOT|and|OR|if|"
    "else|for|lambda|__class__|__globals__|mro|format|join|len(|sum(|max(|round(|=|{|}|f'{x}'|@|\\|"
    "é|\x00|is|none|#|_"
)


@settings(max_examples=500, deadline=None)
@given(
    st.lists(st.sampled_from(WORDS.split("|")), max_size=14).map(" ".join) | st.text(max_size=60)
)
def test_any_text_has_a_value_or_is_refused_with_our_error(text: str) -> None:
    error = refusal(text)

    if error is not None:
        assert error.code in ("invalid_expression", "expression_failed")
        assert error.position is None or 0 <= error.position <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "().__class__.__bases__[0].__subclasses__()",
        "word.__class__",
        "word.format(x)",
        "'{0.__class__}'.format(x)",
        "'%s' % word",
        "items.append(1)",
        "trajectory.names",
        "trajectory.of",
        "trajectory.__dict__",
        "len.__self__",
        "getattr(word, 'upper')",
        "__import__('os')",
        "[a for a in items]",
        "lambda: 1",
        "(y := 1)",
        "f'{x}'",
        "open('/etc/passwd')",
        "deep['__class__']",
        "x.real",
    ],
)
def test_no_attribute_of_a_python_object_can_be_reached(text: str) -> None:
    names = {**NAMES, "trajectory": Trajectory.of([{"tool": "a"}])}

    with pytest.raises(ExpressionError):
        Expression(text).evaluate(names)


@pytest.mark.parametrize(
    "text",
    [
        "9 ** 9 ** 9",
        "10.0 ** 400",
        "0 ** -1",
        "(-8) ** 0.5",
        "'a' * 10 ** 9",
        "[0] * 10 ** 9",
        "10 ** 9 * [0]",
        "[[0]] * 2",
        "exp(1000)",
        "sqrt(-1)",
        "log(0)",
        "floor(1e999)",
        "1 % 0",
        "*".join(["9" * 300] * 8),
        "9" * 400,
        "round(x, 10 ** 6)",
        "mean([])",
        "max([])",
        "items < 3",
        "items[3]",
        "deep.amount",
        "unknown",
        "number('12a')",
    ],
)
def test_what_has_no_value_fails_and_names_the_place(text: str) -> None:
    with pytest.raises(ExpressionError) as caught:
        value(text)

    assert caught.value.position is not None
    assert str(caught.value).splitlines()[-1].endswith("^")


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("'wire' in word AND NOT x > 3", True),
        ("x > 3 OR speed >= 2.5", True),
        ("not x == 3 or items[-1] == 3", True),
        ("deep.inner.amount + deep['keys with blanks']", 11),
        ("items[1:]", [2, 3]),
        ("nothing is none and x is not null", True),
        ("x in (1, 2, 3)", True),
        ("count(items, 2) + index(items, 3) + len(word)", 7),
        ("get(deep, 'missing', 5) + get(items, 0)", 6),
        ("clip(x, 0, 2) + sign(-speed)", 1),
        ("any([x > 5, x < 5]) and all(items)", True),
        ("mean(items) + norm([3, 4])", 7.0),
        ("starts_with(lower('WIRE'), 'wi') and ends_with(word, 're')", True),
        ("'it\\'s' == \"it's\"", True),
        ("number('1.5') + round(2.567, 1)", 4.1),
        ("-2 ** 2", -4),
        ("min(4, 2, 3)", 2),
    ],
)
def test_the_language_means_what_it_says(text: str, wanted: object) -> None:
    assert value(text) == wanted


@pytest.mark.parametrize(
    ("text", "reason", "place"),
    [
        ("'aml' in ", "expected a value, found the end", 9),
        ("x = 3", "'=' compares nothing here", 2),
        ("x >", "expected a value, found the end", 3),
        ("(x + 1", "expected ',' or ')', found the end", 6),
        ("lenn(items)", "there is no function 'lenn'", 0),
        ("x ==\n  ) 1", "expected a value, found ')'", 7),
        ("'open", "this text has no closing quote", 0),
        ("len()", "len(x) takes 1 argument, not 0", 0),
        ("x y", "expected an operator or the end, found 'y'", 2),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_caret_under_the_place(
    text: str, reason: str, place: int
) -> None:
    with pytest.raises(ExpressionError) as caught:
        Expression(text)

    line = text[:place].rpartition("\n")[2]
    assert (caught.value.reason, caught.value.position) == (reason, place)
    assert str(caught.value).splitlines()[2] == "  " + " " * len(line) + "^"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "x" * 5_000,
        "(" * 100 + "1" + ")" * 100,
        "-" * 100 + "1",
        "+".join(["x"] * 1_500),
        "not " * 100 + "x",
        "deep" + ".a" * 60,
        "2" + " ** 2" * 60,
        "x if x else " * 60 + "x",
    ],
)
def test_what_is_too_long_or_too_deep_is_refused_before_it_runs(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"at most|more than|is empty"):
        Expression(text)


def test_an_evaluation_looks_at_a_bounded_number_of_items() -> None:
    names = {"many": list(range(100_000))}
    text = " + ".join(["sum(many)"] * 30)

    with pytest.raises(ExpressionError, match="looks at more than 2000000 items"):
        Expression(text).evaluate(names)


def test_values_nested_without_end_are_our_error() -> None:
    left: list[object] = []
    right: list[object] = []
    for _ in range(100_000):
        left, right = [left], [right]

    with pytest.raises(ExpressionError, match="nested too deep"):
        Expression("left == right").evaluate({"left": left, "right": right})


HUGE = [0] * 600_000
NESTED = [[0] * 1_000 for _ in range(600)]


# A comparison in C that nothing counted held the interpreter for minutes.
@pytest.mark.parametrize(
    "text",
    [
        f"a in [{','.join(['b'] * 900)}]",
        f"count([{','.join(['b'] * 900)}], a) > 1",
        f"index([{','.join(['b'] * 900)}], a) > 1",
        f"min([{','.join(['b'] * 900)}]) == a",
        " and ".join(["[a] == [b] or [a] == [b]"] * 60),
        " and ".join(["a <= b"] * 100),
        " and ".join(["{x} == {x}".format(x="nested")] * 100),
        " and ".join(["nested[0] + nested[0] * 3 != nested"] * 50 + ["max(nested) != 0"] * 50),
        " or ".join(["o == p"] * 100),
        " or ".join(["long + 'x' == ''"] * 100),
    ],
)
def test_comparing_nested_values_ends_at_the_limit_of_work_within_a_second(text: str) -> None:
    names: dict[str, object] = {
        "a": HUGE,
        "b": [*HUGE[:-1], 1],
        "nested": NESTED,
        "o": {"x": HUGE},
        "p": {"x": [*HUGE[:-1], 1]},
        "long": "y" * 90_000,
    }
    began = time.process_time()

    with pytest.raises(ExpressionError, match="looks at more than 2000000 items"):
        Expression(text).evaluate(names)

    assert time.process_time() - began < 1


def test_a_comparison_costs_what_its_smaller_side_has() -> None:
    names: dict[str, object] = {
        "many": list(range(1_500_000)),
        "nested": [NESTED],
        "o": {"x": HUGE},
    }
    text = " or ".join(["many == [1, 2]", "nested == []", "o == 3", "3 in many", "o in [1, 2]"] * 9)

    with pytest.raises(ExpressionError, match="looks at more"):  # `3 in many`, the second time
        Expression(text.replace("3 in many", "-1 in many")).evaluate(names)
    assert Expression(text.replace("3 in many", "none")).evaluate(names) is False


@pytest.mark.parametrize("text", ["reward * 1e999", "1e400 > 0", "-1e309"])
def test_a_number_beyond_all_floats_is_refused_where_it_stands(text: str) -> None:
    with pytest.raises(ExpressionError, match="is not finite"):
        Expression(text)
