from typing import Any

import jax
import numpy as np
import pytest
import torch
from rlmesh import Tensor, spaces
from rlmesh.runs.pictures import PictureForm, picture, picture_form, tiled

RED, GREEN = (200, 0, 0), (0, 100, 0)


def plain(colour: tuple[int, int, int], height: int = 8, width: int = 10) -> Any:
    return np.full((height, width, 3), colour, np.uint8)


def level(value: object, form: PictureForm | None = None) -> list[int]:
    """The first pixel."""
    made = picture(value, form)
    assert made is not None
    assert made.dtype == np.uint8
    assert made.flags.c_contiguous
    return [int(part) for part in made[0, 0]]


@pytest.mark.parametrize(
    ("space", "form"),
    [
        (spaces.Box(0, 255, (24, 32, 3), "uint8"), PictureForm("hwc", (0.0, 255.0))),
        (spaces.Box(0, 255, (24, 32, 1), "uint8"), PictureForm("hwc", (0.0, 255.0))),
        (spaces.Box(0, 255, (24, 32, 4), "uint8"), PictureForm("hwc", (0.0, 255.0))),
        (spaces.Box(0, 255, (3, 24, 32), "uint8"), PictureForm("chw", (0.0, 255.0))),
        (spaces.Box(0, 255, (4, 84, 84), "uint8"), PictureForm("chw", (0.0, 255.0))),
        (spaces.Box(0, 255, (84, 84), "uint8"), PictureForm("hw", (0.0, 255.0))),
        (spaces.Box(0.0, 1.0, (24, 32, 3)), PictureForm("hwc", (0.0, 1.0))),
        (spaces.Box(-1.0, 1.0, (3, 24, 32)), PictureForm("chw", (-1.0, 1.0))),
        (spaces.Box(0, 255, (7, 7, 3), "uint8"), None),
        (spaces.Box(0, 255, (24, 32, 2), "uint8"), None),
        (spaces.Box(0, 255, (210,), "uint8"), None),
        (spaces.Box(0, 9, (24, 32, 3), "int64"), None),
        (spaces.Box(float("-inf"), float("inf"), (24, 32, 3)), None),
        (spaces.Discrete(3), None),
    ],
)
def test_a_space_that_looks_like_an_image_says_how_it_is_read(
    space: spaces.Space, form: PictureForm | None
) -> None:
    assert picture_form(space) == form


def test_a_picture_is_a_copy() -> None:
    frame = plain(RED)
    made = picture(frame)
    frame[:] = 0
    assert made is not None
    assert made.tolist() == plain(RED).tolist()


@pytest.mark.parametrize(
    "frame",
    [
        plain(RED),
        np.dstack([plain(RED), np.full((8, 10), 7, np.uint8)]),
        torch.tensor(plain(RED)),
        jax.device_put(plain(RED)),  # pyright: ignore[reportUnknownMemberType]  # jax's own
        Tensor.over(plain(RED)),
        plain(RED)[::-1, ::-1],
    ],
    ids=["rgb", "rgba", "torch", "jax", "tensor", "view"],
)
def test_frames_of_every_framework_are_pictures(frame: object) -> None:
    assert level(frame) == list(RED)


def test_grey_is_shown_in_three_channels() -> None:
    assert level(np.full((8, 10), 42, np.uint8)) == [42, 42, 42]
    assert level(np.full((8, 10, 1), 42, np.uint8)) == [42, 42, 42]


def test_channels_first_are_turned_and_of_a_stack_the_newest_is_shown() -> None:
    form = PictureForm("chw", (0.0, 255.0))
    assert level(plain(RED).transpose(2, 0, 1), form) == list(RED)
    stack = np.stack([np.full((9, 10), n, np.uint8) for n in (1, 2, 3, 4)])
    assert level(stack, form) == [4, 4, 4]


@pytest.mark.parametrize(
    ("values", "pixels"),
    [
        ((0.0, 0.5, 1.0), (0, 128, 255)),
        ((-1.0, 0.0, 1.0), (0, 128, 255)),
        ((-10.0, 0.0, 30.0), (0, 64, 255)),
        ((0.0, float("nan"), 1.0), (0, 0, 255)),
        ((0.0, float("inf"), 1.0), (0, 255, 255)),
        ((float("nan"), float("nan"), float("nan")), (0, 0, 0)),
    ],
)
@pytest.mark.filterwarnings("error")
def test_floats_are_scaled_from_the_range_that_they_are_in(
    values: tuple[float, ...], pixels: tuple[int, ...]
) -> None:
    frame = np.zeros((8, 8, 3), np.float32)
    frame[:] = values
    assert level(frame) == list(pixels)


def test_known_bounds_scale_every_picture_in_the_same_way() -> None:
    form = PictureForm("hwc", (-1.0, 1.0))
    assert level(np.full((8, 8, 3), 0.5, np.float64), form) == [191, 191, 191]
    assert level(np.full((8, 8, 3), 3.0, np.float64), form) == [255, 255, 255]


def test_wide_integers_are_scaled_and_booleans_are_black_and_white() -> None:
    deep = np.zeros((8, 8, 3), np.uint16)
    deep[:] = (0, 1000, 4000)
    assert level(deep) == [0, 64, 255]
    assert level(np.array([[True]])) == [255, 255, 255]


@pytest.mark.parametrize(
    "value",
    [
        np.zeros(3),
        np.zeros((2, 2, 2)),
        np.zeros((2, 2, 2, 2)),
        np.zeros((0, 5, 3), np.uint8),
        np.array([["a"]]),
        np.zeros((4, 4, 3), np.complex64),
        "no array",
        None,
    ],
)
def test_what_is_no_picture_is_none(value: object) -> None:
    assert picture(value) is None


def test_several_pictures_are_a_grid_and_missing_ones_are_black() -> None:
    grid = tiled([plain(RED), None, plain(GREEN), plain(RED, 4, 5), plain(GREEN)])
    assert grid is not None
    assert grid.shape == (24, 20, 3)
    cells = grid.reshape(3, 8, 2, 10, 3).transpose(0, 2, 1, 3, 4).reshape(6, 8, 10, 3)
    assert [tuple(map(int, cell[0, 0])) for cell in cells] == [
        RED,
        (0, 0, 0),
        GREEN,
        RED,
        GREEN,
        (0, 0, 0),
    ]
    assert cells[3, :4, :5].tolist() == plain(RED, 4, 5).tolist()
    assert not cells[3, 4:].any()


def test_one_picture_is_no_grid_and_none_is_none() -> None:
    one = plain(RED)
    assert tiled([one]) is one
    assert tiled([None, None]) is None
    assert tiled([]) is None
