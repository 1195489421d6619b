from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import VectorEnv
from rlmesh.protocol.lane_infos import in_columns, in_rows, lane_of, restored, rows_of

Infos = Sequence[dict[str, Any]]

# gymnasium 1.4's own layout is the reference.
CASES: dict[str, Infos] = {
    "nothing": [{}, {}, {}],
    "numbers": [{"a": 1}, {"a": 2}, {}],
    "kinds of number": [{"i": 1, "f": 0.5, "b": True, "n": np.float32(2)}] * 2,
    "numpy's bool": [{"b": np.True_}, {"b": np.False_}],
    "text": [{"t": "one"}, {}, {"t": "three"}],
    "arrays": [{}, {"a": np.arange(4, dtype=np.int16).reshape(2, 2)}],
    "dictionaries": [{"d": {"x": 1, "y": {"z": "deep"}}}, {"d": {"x": 2}}],
    "lists and None": [{"l": [1, 2], "n": None}, {"l": [], "n": None}],
    "last observations": [{}, {"final_obs": np.ones(2), "final_info": {"r": 1.5}}],
    "last observations of dictionaries": [{"final_obs": {"a": 1}}, {"final_obs": {"a": 2}}],
}


def gymnasiums(infos: Infos) -> dict[str, Any]:
    vector: Any = VectorEnv()
    vector.num_envs = len(infos)
    columns: dict[str, Any] = {}
    for lane, info in enumerate(infos):
        columns = vector._add_info(columns, info, lane)
    return columns


@pytest.mark.parametrize("name", CASES)
def test_columns_are_laid_out_as_gymnasium_does(name: str) -> None:
    columns = in_columns(CASES[name])
    theirs = gymnasiums(CASES[name])
    assert data_equivalence(columns, theirs), f"{columns} is not {theirs}"


@pytest.mark.parametrize("name", CASES)
def test_a_lane_has_its_own_info_in_the_columns(name: str) -> None:
    infos = CASES[name]
    columns = in_columns(infos)
    for lane, info in enumerate(infos):
        np.testing.assert_equal(lane_of(columns, lane, len(infos)), info)


def test_a_column_has_the_type_that_holds_all_of_its_numbers() -> None:
    columns = in_columns([{"a": 1}, {"a": 0.5}])
    assert columns["a"].tolist() == [1.0, 0.5]


def test_what_fits_no_array_keeps_its_place_as_an_object() -> None:
    columns = in_columns([{"a": np.zeros(2)}, {"a": np.zeros(3)}, {"a": "none"}])
    assert [type(cell) for cell in columns["a"]] == [np.ndarray, np.ndarray, str]
    mixed = in_columns([{"a": {"x": 1}}, {"a": 7}])
    assert mixed["a"][1] == 7
    assert in_columns([{"a": 7}, {"a": {"x": 1}}])["a"].tolist() == [7, {"x": 1}]


def test_an_info_without_masks_is_taken_apart_by_its_length() -> None:
    info = {"success": [True, False], "level": 3, "episode": {"r": np.array([1.0, 2.0])}}
    assert lane_of(info, 1, 2) == {"success": False, "episode": {"r": 2.0}}


def test_rows_are_the_lanes_infos_and_a_single_lane_is_its_own() -> None:
    rows = in_rows([{"a": 1}, {}], [True, False])
    assert rows == {"final_info": [{"a": 1}, {}], "_final_info": [True, False]}
    assert rows_of(rows, 2) == [{"a": 1}, {}]
    assert in_rows([{"a": 1}], [False]) == {"a": 1}


NO_ROWS: list[dict[str, Any]] = [
    {},
    {"final_info": [{}]},
    {"final_info": {"a": [1, 2]}},
    {"final_info": [1, 2]},
]


@pytest.mark.parametrize("info", NO_ROWS)
def test_what_is_not_laid_out_in_rows_is_not_taken_for_it(info: dict[str, Any]) -> None:
    assert rows_of(info, 2) is None


@pytest.mark.parametrize("name", CASES)
def test_columns_that_kept_their_types_are_restored_after_travelling(name: str) -> None:
    columns = in_columns(CASES[name])
    travelled = objects_as_lists(columns)
    whole = restored(travelled, len(CASES[name]), exact=True)
    assert data_equivalence(whole, columns), f"{whole} is not {columns}"


def test_lists_of_numbers_become_arrays_where_types_were_lost() -> None:
    whole = restored(
        {"a": [1, 2], "_a": [True, False], "t": ["x", None], "_t": [True, False], "free": [1, 2]},
        2,
        exact=False,
    )
    assert whole["a"].dtype == np.int64
    assert whole["_a"].dtype == np.bool_
    assert whole["t"].tolist() == ["x", None]
    assert whole["free"] == [1, 2]


def test_nested_lists_of_numbers_become_arrays_of_their_shape() -> None:
    inner = {"m": [[1, 2], [3, 4]], "ragged": [[1], [2, 3]]}
    whole = restored({"d": inner, "_d": [True, True]}, 2, exact=False)
    assert whole["d"]["m"].shape == (2, 2)
    assert whole["d"]["ragged"].tolist() == [[1], [2, 3]]


def objects_as_lists(value: Any) -> Any:
    """What metadata makes of arrays of objects on the way."""
    if value.__class__ is dict:
        return {key: objects_as_lists(part) for key, part in value.items()}
    if value.__class__ is np.ndarray and value.dtype.kind == "O":
        return list(value)
    return value
