import copy
import pickle
from collections.abc import Callable
from typing import Any, NoReturn, cast

import numpy as np
import pytest
from rlcore import ConfigurationError, InvalidValueError
from rlmesh.codec import NUMPY
from rlmesh.spaces import (
    Box,
    Dict,
    Discrete,
    Graph,
    GraphInstance,
    MultiBinary,
    MultiDiscrete,
    OneOf,
    Sequence,
    Space,
    Text,
    Tuple,
    UnsupportedSpaceError,
    needs_more_spaces,
    space_from_spec,
)

SPACES = [
    Box(-1, 1, (3,)),
    Box([0, -np.inf], [np.inf, 3], (2,), "float16"),
    Box(-1.7e308, 1.7e308, (4,), "float64"),
    Box(-(2**63), 2**63 - 1, (2,), "int64"),
    Box(0, 2**64 - 1, (2,), "uint64"),
    Box(0, 1, (8,), "bool"),
    Box(0, 1, (0,)),
    Box(0, 1, ()),
    Discrete(5, start=-2),
    MultiBinary((2, 3)),
    MultiDiscrete([[2, 3], [4, 5]], start=[[1, 0], [-1, 9]]),
    MultiDiscrete([2**63 - 1], start=[-(2**62)]),
    Text(5, min_length=0),
    Text(10, charset="cab"),
    Dict({"b": Discrete(2), "a": Tuple([Text(3), Box(-1, 1, (2, 2))])}),
    Tuple([]),
    Discrete(5, 2, "int16"),
    MultiDiscrete([200], "int8", start=[-100]),
    MultiBinary(3, "int8"),
    Sequence(Box(-1, 1, (2,))),
    Sequence(Dict({"a": Discrete(3), "b": Tuple([Text(2), MultiBinary(2)])}), stack=True),
    Graph(Box(-1, 1, (2,)), Discrete(3)),
    Graph(Discrete(4)),
    OneOf([Discrete(3), Box(-1, 1, (2,)), Sequence(Text(3))]),
]


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_a_copy_is_equal_and_has_the_same_hash(space: Space) -> None:
    twins = [pickle.loads(pickle.dumps(space)), copy.deepcopy(space), space.to_space()]
    if not isinstance(space, Sequence | Graph):  # these can hold spaces of their own kind
        twins.append(cast("Any", type(space))(space))
    for twin in twins:
        assert twin == space
        assert hash(twin) == hash(space)
        assert twin.to_dict() == space.to_dict()


@pytest.mark.parametrize("space", SPACES, ids=repr)
def test_samples_belong_and_repeat_with_the_seed(space: Space) -> None:
    space = space_from_spec(space, bridge=NUMPY)
    seed = space.seed()
    samples = [space.sample() for _ in range(20)]
    assert all(space.contains(sample) for sample in samples)
    assert space.seed(seed) == seed
    np.testing.assert_equal([space.sample() for _ in range(20)], samples)


def test_a_pickled_space_goes_on_with_the_same_samples() -> None:
    space = Box(0, 1, (3,))
    space.seed(1)
    space.sample()
    twin = pickle.loads(pickle.dumps(space))
    assert twin.sample() == space.sample()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Box(-1, 1, (3,)), Box(-1, 1, (3,), "float64")),
        (Box(-1, 1, (3,)), Box(-1, 2, (3,))),
        (Discrete(3), Discrete(3, start=1)),
        (MultiDiscrete([2, 2]), MultiDiscrete([2, 2], start=[0, 1])),
        (Text(5), Text(5, charset="ab")),
        (Dict({"a": Discrete(2)}), Dict({"b": Discrete(2)})),
        (Tuple([Discrete(2)]), Dict({"a": Discrete(2)})),
    ],
)
def test_different_spaces_are_unequal(one: Space, other: Space) -> None:
    assert one != other
    assert hash(one) != hash(other)


def test_equal_bounds_written_differently_are_equal() -> None:
    assert Box([-1, -1], [1, 1]) == Box(-1, 1, (2,))
    assert Box(0.0, 1, (2,)) == Box(-0.0, 1, (2,))
    assert Box("-inf", "inf", (2,)).bounds_kind == "unbounded"


def test_a_space_cannot_be_changed() -> None:
    space = Discrete(3)
    with pytest.raises(AttributeError, match="immutable"):
        space.n = 4
    with pytest.raises(ValueError, match="read-only"):
        Box(-1, 1, (2,)).low[0] = 3


@pytest.mark.parametrize(
    ("space", "details"),
    [
        (Box(-1, 1, (3,)), {"bounds_kind": "uniform", "low": -1.0, "high": 1.0}),
        (
            Box([0, 1], [2, 3]),
            {"bounds_kind": "elementwise", "low": [0.0, 1.0], "high": [2.0, 3.0]},
        ),
        (Box("-inf", "inf", (1,)), {"bounds_kind": "unbounded"}),
        (
            Box(0, 255, (2,), "uint8"),
            {"bounds_kind": "typed_uniform", "low": [0], "high": [255]},
        ),
        (Discrete(3, 1), {"n": 3, "start": 1}),
        (MultiBinary(4), {"size": 4}),
        (MultiBinary((2, 3)), {"dims": [2, 3]}),
        (MultiDiscrete([[2, 3]]), {"nvec": [[2, 3]]}),
        (Text(5, charset="ba"), {"min_length": 1, "max_length": 5, "charset": "ab"}),
        (
            Sequence(Discrete(3), stack=True),
            {"space": Discrete(3).to_dict(), "stack": True},
        ),
        (Graph(Discrete(3)), {"nodes": Discrete(3).to_dict(), "edges": None}),
        (OneOf([Discrete(3)]), {"spaces": [Discrete(3).to_dict()]}),
    ],
    ids=repr,
)
def test_the_dictionary_form_is_the_published_one(space: Space, details: dict[str, object]) -> None:
    form = space.to_dict()
    assert list(form) == ["kind", "shape", "dtype", "details"]
    assert form["details"] == details


@pytest.mark.parametrize(
    "make",
    [
        lambda: Box(1, -1, (2,)),
        lambda: Box(np.nan, 1, (2,)),
        lambda: Box(0, 256, (2,), "uint8"),
        lambda: Box(0.5, 2, (2,), "int32"),
        lambda: Box([0, 0, 0], 1, (2,)),
        lambda: Box("low", 1, (2,)),
        lambda: Box(0, 1, (-1,)),
        lambda: Box(0, 1, cast("Any", (2.5,))),
        lambda: Box(0, 1, (2,), "complex64"),
        lambda: Box(0, 1, (2**40, 2**40)),
        lambda: Discrete(0),
        lambda: Discrete(300, dtype="uint8"),
        lambda: Discrete(3, dtype="float32"),
        lambda: MultiDiscrete([3, 0]),
        lambda: MultiDiscrete([1.5]),
        lambda: MultiDiscrete([2, 2], start=[1]),
        lambda: MultiBinary(-1),
        lambda: Text(3, min_length=4),
        lambda: Text(-1),
        lambda: Text(3, charset="\ud800"),
        lambda: Dict({"": Discrete(2)}),
        lambda: Discrete(3).seed(-1),
    ],
)
def test_an_impossible_space_is_a_configuration_error(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()


@pytest.mark.parametrize(
    "make",
    [
        lambda: Dict(cast("Any", {1: Discrete(2)})),
        lambda: Dict(cast("Any", {"a": 3})),
        lambda: Tuple(cast("Any", ["x"])),
    ],
)
def test_a_child_that_is_no_space_is_a_type_error_of_ours(make: Callable[[], object]) -> None:
    with pytest.raises(UnsupportedSpaceError) as caught:
        make()
    assert isinstance(caught.value, TypeError)


@pytest.mark.parametrize(
    ("space", "value", "path"),
    [
        (Box(-1, 1, (2,)), [0, 2], "$"),
        (Box(-1, 1, (2,)), [0, np.nan], "$"),
        (Box(-1, 1, (2,)), [0], "$"),
        (Discrete(3), 3, "$"),
        (Discrete(3), True, None),
        (Discrete(3), 1.0, None),
        (Discrete(3), 1.5, "$"),
        (Discrete(3), np.array([2]), None),
        (Discrete(3), "1", "$"),
        (MultiBinary(2), [0, 2], "$"),
        (MultiDiscrete([2, 2], start=[1, 0]), [0, 0], "$"),
        (MultiDiscrete([2, 2], start=[1, 0]), [2, 1], None),
        (Text(2), "abc", "$"),
        (Text(2), "", "$"),
        (Text(2, charset="ab"), "c", "$"),
        (Text(2), 3, "$"),
        (Dict({"a": Discrete(2)}), {"a": 1, "more": 2}, None),
        (Dict({"a": Discrete(2)}), {}, "$.a"),
        (Dict({"a": Tuple([Discrete(2)])}), {"a": (2,)}, "$.a[0]"),
        (Dict({"a": Discrete(2)}), 3, "$"),
        (Tuple([Discrete(2)]), [1], None),
        (Tuple([Discrete(2)]), (1, 1), "$"),
        (Tuple([Discrete(2)]), 1, "$"),
    ],
)
def test_a_check_says_where_a_value_does_not_belong(
    space: Space, value: object, path: str | None
) -> None:
    assert space.contains(value) == (path is None)
    if path is not None:
        with pytest.raises(InvalidValueError) as caught:
            space.check(value)
        assert caught.value.path == path


def test_odd_values_are_simply_not_contained() -> None:
    class Hostile:
        def __array__(self) -> NoReturn:
            raise KeyError("no")

        def __repr__(self) -> NoReturn:
            raise KeyError("no")

    for space in SPACES:
        assert not space.contains(Hostile())
    assert not Box(-1, 1, (2,)).contains([[1], [1, 2]])
    assert not Box(-1, 1, (2,)).contains([None, None])
    assert not Box(-1, 1, (2,)).contains([1j, 0])


def test_samples_of_unrestricted_text_have_letters_and_digits_only() -> None:
    space = Text(10)
    space.seed(1)
    assert "".join(space.sample() for _ in range(100)).isalnum()
    assert space.contains("two words")


NODES = np.zeros((3, 2), np.float32)
LINKS = np.array([[0, 2]])
GRAPH = Graph(Box(-1, 1, (2,)), Discrete(3))


@pytest.mark.parametrize(
    ("space", "value", "path"),
    [
        (GRAPH, GraphInstance(NODES), None),
        (GRAPH, GraphInstance(NODES, [1], LINKS), None),
        (GRAPH, GraphInstance(NODES, np.array([1]), LINKS.astype(np.int32)), None),
        (GRAPH, GraphInstance(NODES[:0]), None),
        (GRAPH, (NODES, None, None), None),
        (GRAPH, NODES, "$"),
        (GRAPH, GraphInstance(None), "$.nodes"),
        (GRAPH, GraphInstance(NODES + 2), "$.nodes[0]"),
        (GRAPH, GraphInstance(NODES, [1]), "$"),
        (GRAPH, GraphInstance(NODES, None, LINKS), "$"),
        (GRAPH, GraphInstance(NODES, [1, 2], LINKS), "$.edge_links"),
        (GRAPH, GraphInstance(NODES, [1], [[0, 3]]), "$.edge_links"),
        (GRAPH, GraphInstance(NODES, [1], [[-1, 0]]), "$.edge_links"),
        (GRAPH, GraphInstance(NODES, [3], LINKS), "$.edges[0]"),
        (Graph(Discrete(3)), GraphInstance([0, 2]), None),
        (Graph(Discrete(3)), GraphInstance([0, 2], [1], LINKS), "$"),
        (Sequence(Discrete(3)), (), None),
        (Sequence(Discrete(3)), [1, 2], None),
        (Sequence(Discrete(3)), (1, 3), "$[1]"),
        (Sequence(Discrete(3)), 1, "$"),
        (Sequence(Discrete(3), stack=True), np.array([1, 2]), None),
        (Sequence(Discrete(3), stack=True), np.array([1, 3]), "$[1]"),
        (Sequence(Discrete(3), stack=True), 1, "$"),
        (Sequence(Dict({"a": Discrete(3)}), stack=True), {"a": [1]}, None),
        (Sequence(Dict({"a": Discrete(3)}), stack=True), {}, "$.a"),
        (
            Sequence(Tuple([Discrete(3), Discrete(3)]), stack=True),
            ([1], [1, 2]),
            "$",
        ),
        (OneOf([Discrete(3), Text(2)]), (1, "a"), None),
        (OneOf([Discrete(3), Text(2)]), (np.int64(0), 2), None),
        (OneOf([Discrete(3), Text(2)]), (0, "a"), "$[1]"),
        (OneOf([Discrete(3), Text(2)]), (2, "a"), "$[0]"),
        (OneOf([Discrete(3), Text(2)]), (0.5, 1), "$[0]"),
        (OneOf([Discrete(3), Text(2)]), 1, "$"),
    ],
)
def test_a_nested_value_is_checked_at_its_place(
    space: Space, value: object, path: str | None
) -> None:
    assert space.contains(value) == (path is None)
    assert (value in space) == (path is None)
    if path is not None:
        with pytest.raises(InvalidValueError) as caught:
            space.check(value)
        assert caught.value.path == path


def test_the_spaces_beyond_the_core_are_found_at_any_depth() -> None:
    for odd in (Sequence(Discrete(2)), GRAPH, OneOf([Discrete(2)])):
        assert needs_more_spaces(odd)
        assert needs_more_spaces(Dict({"a": Tuple([Discrete(2), odd])}))
    assert not needs_more_spaces(Dict({"a": Tuple([Discrete(2), Text(3)])}))


def test_an_alternative_needs_a_space() -> None:
    with pytest.raises(ConfigurationError):
        OneOf([])


def test_a_missing_attribute_points_to_gymnasiums_space() -> None:
    with pytest.raises(AttributeError, match=r"'is_np_flattenable'.*to_gymnasium_space\(\)"):
        _ = cast("Any", Box(-1, 1, (2,))).is_np_flattenable
    assert not hasattr(Discrete(2), "nvec")


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_out_of_range_is_an_overflow_as_well(seed: int) -> None:
    with pytest.raises(OverflowError, match=f"{seed} is not a seed"):
        Discrete(3).seed(seed)


@pytest.mark.parametrize("seed", ["a", 1.5, True])
def test_a_seed_that_is_no_integer_is_a_configuration_error(seed: Any) -> None:
    with pytest.raises(ConfigurationError, match="is not a seed"):
        Discrete(3).seed(seed)
