import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlmesh.params import (
    PARAM_METADATA_KEY,
    MissingParamError,
    Param,
    ParamError,
    ParamSpec,
    UnknownParamError,
    Vector,
    bind_params,
    require_defaults,
)


def make(
    size: int,
    mode: str = "plain",
    goal: tuple[float, ...] = (1.0, 0.0),
    speed: float = 0.5,
    label: object = None,
    extra: int = 2,
    maybe: "int | None" = None,
    open_one: Any = 3,
) -> None: ...


SPEC = ParamSpec(
    Param("size", int, minimum=0, maximum=10, step=2),
    Param("mode", "enum", choices=("plain", "steep")),
    Param("goal", Vector(2, unit=True)),
    Param("speed", float),
    Param("label", "a label"),
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()


def bound(**values: object) -> dict[str, Any]:
    return bind_params(make, SPEC, {"size": 2, **values})


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"size": 4.0}, {"size": 4}),
        ({"size": np.int64(4)}, {"size": 4}),
        ({"speed": 3}, {"speed": 3.0}),
        ({"speed": np.float32(0.5)}, {"speed": 0.5}),
        ({"goal": [0, 1]}, {"goal": (0.0, 1.0)}),
        ({"goal": (0.6, 0.8005)}, {"goal": (0.6, 0.8005)}),
        ({"mode": "steep"}, {"mode": "steep"}),
        ({"label": object}, {"label": object}),
        ({"extra": 3.0}, {"extra": 3}),
        ({"maybe": 3.0}, {"maybe": 3}),
        ({"maybe": None}, {"maybe": None}),
        ({"open_one": "x"}, {"open_one": "x"}),
    ],
)
def test_a_value_arrives_as_its_parameter_has_it(
    values: dict[str, object], expected: dict[str, object]
) -> None:
    found = bound(**values)

    assert found == {"size": 2, **expected}
    assert [type(value) for value in found.values()] == [
        type(value) for value in {"size": 2, **expected}.values()
    ]


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"size": True}, "size: expected int, got bool"),
        ({"size": "4"}, "size: expected int, got str"),
        ({"size": 1.5}, "size: expected int, got 1.5"),
        ({"size": math.inf}, "size: expected int, got inf"),
        ({"size": -2}, "size: -2 is less than 0"),
        ({"size": 12}, "size: 12 is more than 10"),
        ({"size": 3}, "size: 3 is no multiple of 2"),
        ({"size": None}, "size: expected int, got NoneType"),
        ({"mode": "steeb"}, r"mode: 'steeb' is not one of \['plain', 'steep'\]. Did you mean"),
        ({"goal": [1]}, "goal: expected a 2-vector, got length 1"),
        ({"goal": [1, 1]}, "goal: expected a vector of length 1, got one of length 1.414"),
        ({"goal": [math.nan, 0]}, "goal: expected a finite float, got nan"),
        ({"goal": 3}, "goal: expected a 2-vector, got int"),
        ({"speed": True}, "speed: expected float, got bool"),
        ({"speed": math.inf}, "speed: expected a finite float, got inf"),
        ({"speed": 10**400}, "speed: expected a float, got an int that is too large"),
        ({"extra": "x"}, "extra: expected int, got str"),
        ({"maybe": "x"}, "maybe: expected int, got str"),
    ],
)
def test_a_value_that_a_parameter_cannot_have_is_refused_by_name(
    values: dict[str, object], reason: str
) -> None:
    with pytest.raises(ParamError, match=reason) as caught:
        bound(**values)

    assert isinstance(caught.value, ValueError)
    assert caught.value.code == "param"


def test_true_is_not_the_choice_1() -> None:
    spec = ParamSpec(Param("level", "enum", choices=(1, 2)))

    def load(level: object = 1) -> None: ...

    assert bind_params(load, spec, {"level": 1.0}) == {"level": 1.0}
    with pytest.raises(ParamError, match=r"level: True is not one of \[1, 2\]"):
        bind_params(load, spec, {"level": True})


def test_what_is_missing_is_named_with_its_description() -> None:
    spec = ParamSpec(Param("path", description="a checkpoint"))

    def load(path: str) -> None: ...

    with pytest.raises(MissingParamError, match=r"'path'.* It is: a checkpoint") as caught:
        bind_params(load, spec, {})

    assert caught.value.name == "path"


def test_what_is_unknown_is_named_with_what_is_near() -> None:
    with pytest.raises(UnknownParamError, match=r"'sizes', 'zz'. Did you mean 'size'\?") as caught:
        bound(sizes=3, zz=1)

    assert caught.value.names == ["sizes", "zz"]
    assert pickle.loads(pickle.dumps(caught.value)).names == ["sizes", "zz"]


def test_a_function_without_parameters_says_that_it_has_none() -> None:
    with pytest.raises(UnknownParamError, match="It has none"):
        bind_params(lambda: None, None, {"n": 1})


def test_others_pass_to_a_function_with_more_keywords_only_where_they_may() -> None:
    def load(n: int = 1, **more: object) -> None: ...

    param = Param("n", int)

    passing = bind_params(load, ParamSpec(param, extra="passthrough"), {"other": 3})
    assert passing == {"other": 3}
    with pytest.raises(UnknownParamError, match="'other'"):
        bind_params(load, ParamSpec(param), {"other": 3})
    with pytest.raises(UnknownParamError, match="'size_'"):
        bind_params(make, ParamSpec(extra="passthrough"), {"size": 1, "size_": 3})


def test_self_is_no_parameter_of_a_method() -> None:
    class Factory:
        def make(self, n: int = 1) -> None: ...

    assert bind_params(Factory.make, None, {"n": 2}) == {"n": 2}
    assert bind_params(Factory().make, None, {"n": 2}) == {"n": 2}
    with pytest.raises(UnknownParamError, match="'self'"):
        bind_params(Factory.make, None, {"self": 2})


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        (list[int], [1, 2.0], [1, 2]),
        ("list[int]", (1, 2), [1, 2]),
        ("list", ["a", 1], ["a", 1]),
        (list, [None], [None]),
        (int | None, 2.0, 2),
        (int | None, None, None),
        ("Optional[float]", 1, 1.0),
        ("list[int] | None", None, None),
        (list[list[int]], [[1.0]], [[1]]),
        (bytes, "whatever", "whatever"),
    ],
)
def test_optional_and_list_types_are_checked_within(
    declared: object, value: object, expected: object
) -> None:
    assert Param("x", declared).checked(value) == expected


def test_a_wrong_item_is_told_by_its_place() -> None:
    with pytest.raises(ParamError, match="sizes: item 1: expected int, got str"):
        Param("sizes", list[int]).checked([1, "2"])
    with pytest.raises(ParamError, match=r"sizes: expected list\[int\], got int"):
        Param("sizes", list[int]).checked(3)


def test_ranges_and_choices_are_for_each_item() -> None:
    sizes = Param("sizes", list[int] | None, minimum=1)
    assert sizes.checked(None) is None
    with pytest.raises(ParamError, match="sizes: 0 is less than 1"):
        sizes.checked([1, 0])
    with pytest.raises(ParamError, match="names: 'c' is not one of"):
        Param("names", list[str], choices=("a", "b")).checked(["a", "c"])


def test_steps_are_counted_from_the_minimum_and_forgive_rounding() -> None:
    rate = Param("rate", float, minimum=0.05, step=0.1)

    assert rate.checked(0.05 + 3 * 0.1) == pytest.approx(0.35)
    with pytest.raises(ParamError, match=r"0\.3 is no multiple of 0\.1 from 0\.05"):
        rate.checked(0.3)


@pytest.mark.parametrize(
    ("declaration", "reason"),
    [
        ({"name": "not a name"}, "is named 'not a name'"),
        ({"name": "n", "type": "enum"}, "enum without choices"),
        ({"name": "n", "type": str, "minimum": 1}, "is no number"),
        ({"name": "n", "type": int, "minimum": 3, "maximum": 1}, "ranges from 3 to 1"),
        ({"name": "n", "type": int, "step": 0}, "step of the parameter 'n' is 0"),
        ({"name": "n", "type": int, "maximum": "3"}, "maximum of the parameter 'n' is '3'"),
        ({"name": "n", "type": int, "maximum": math.nan}, "is nan, no number"),
    ],
)
def test_a_declaration_that_contradicts_itself_is_refused(
    declaration: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ParamError, match=reason):
        Param(**declaration)


def test_a_specification_that_contradicts_itself_is_refused() -> None:
    with pytest.raises(ParamError, match="'n' is declared twice"):
        ParamSpec(Param("n"), Param("n"))
    with pytest.raises(ParamError, match="extra is 'maybe'"):
        ParamSpec(extra="maybe")  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ParamError, match="'n' is not a Param"):
        ParamSpec("n")  # type: ignore[arg-type]  # the point of the test
    with pytest.raises(ValueError, match="dim of a Vector is 0"):
        Vector(0)


def test_declarations_are_values() -> None:
    assert Param("n", int) == Param("n", int)
    assert ParamSpec(Param("n")) == ParamSpec(Param("n"))
    assert Vector(3) == Vector(3, unit=False)
    assert PARAM_METADATA_KEY == "rlmesh.params.v1.binding"


def test_defaults_have_to_be_what_is_declared() -> None:
    def load(n: int = 7, mode: str | None = None) -> None: ...

    require_defaults(load, ParamSpec(Param("n", int), Param("mode", "enum", choices=("a",))))
    require_defaults(load, None)
    with pytest.raises(ParamError, match=r"default of a parameter of .*load.*n: 7 is more than 5"):
        require_defaults(load, ParamSpec(Param("n", int, maximum=5)))


def test_a_parameter_that_cannot_be_passed_is_warned_of_and_refused() -> None:
    def load(n: int = 7) -> None: ...

    def load_all(n: int = 7, **more: object) -> None: ...

    spec = ParamSpec(Param("m", int))
    with pytest.warns(UserWarning, match="'m' is declared, and .*load does not take it"):
        require_defaults(load, spec)
    with pytest.raises(ParamError, match=r"m: it is declared, and .*load does not take it"):
        bind_params(load, spec, {"m": 1})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        require_defaults(load_all, spec)
    assert bind_params(load_all, spec, {"m": 1.0}) == {"m": 1}


@given(SCALARS)
def test_an_int_is_what_is_integral_and_no_bool(value: Any) -> None:
    integral = not isinstance(value, bool) and (
        isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    )
    param = Param("n", int)
    if integral:
        assert param.checked(value) == value
        assert type(param.checked(value)) is int
    else:
        with pytest.raises(ParamError, match="n: expected int"):
            param.checked(value)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(1, 7), st.integers(-120, 120))
def test_a_range_has_what_counting_from_its_minimum_reaches(
    low: int, width: int, step: int, value: int
) -> None:
    high = low + abs(width)
    param = Param("n", int, minimum=low, maximum=high, step=step)
    if value in range(low, high + 1, step):
        assert param.checked(value) == value
    else:
        with pytest.raises(ParamError):
            param.checked(value)


@given(st.dictionaries(st.sampled_from(["size", "mode", "goal", "speed", "zz"]), SCALARS))
def test_binding_gives_what_binds_again_or_one_of_its_errors(values: dict[str, object]) -> None:
    try:
        once = bind_params(make, SPEC, values)
    except ParamError:
        return
    assert bind_params(make, SPEC, once) == once
    assert set(once) == set(values)
