import base64
import re
import zlib

import numpy as np
import pytest
from rlmesh.transport.png import decode_png
from rlmesh.viewer.cells import blocks, fitted, iterm2, kitty, kitty_gone, resized, terminal_kind


@pytest.mark.parametrize(
    ("environ", "kind"),
    [
        ({}, "blocks"),
        ({"TERM": "xterm-256color"}, "blocks"),
        ({"TERM": "xterm-kitty"}, "kitty"),
        ({"KITTY_WINDOW_ID": "1", "TERM": "xterm"}, "kitty"),
        ({"TERM": "xterm-ghostty"}, "kitty"),
        ({"TERM_PROGRAM": "ghostty"}, "kitty"),
        ({"TERM_PROGRAM": "iTerm.app"}, "iterm2"),
        ({"TERM_PROGRAM": "WezTerm"}, "iterm2"),
        ({"LC_TERMINAL": "iTerm2"}, "iterm2"),
        ({"KITTY_WINDOW_ID": "1", "TMUX": "/tmp/tmux"}, "blocks"),
        ({"TERM_PROGRAM": "iTerm.app", "TERM": "screen-256color"}, "blocks"),
    ],
)
def test_a_terminal_is_known_by_its_variables(environ: dict[str, str], kind: str) -> None:
    assert terminal_kind(environ) == kind


@pytest.mark.parametrize(
    ("size", "columns", "rows", "cell", "found"),
    [
        ((600, 400), 80, 21, None, (63, 21)),
        ((400, 600), 80, 21, None, (28, 21)),
        ((1000, 10), 80, 21, None, (80, 1)),
        ((10, 1000), 80, 21, None, (1, 21)),
        ((64, 64), 80, 21, (10, 20), (42, 21)),
        ((64, 64), 80, 80, (16, 16), (80, 80)),
    ],
)
def test_a_picture_keeps_its_proportions(
    size: tuple[int, int],
    columns: int,
    rows: int,
    cell: tuple[int, int] | None,
    found: tuple[int, int],
) -> None:
    assert fitted(size, columns, rows, cell) == found


def test_half_blocks_show_two_pixels_in_a_cell() -> None:
    picture = np.array(
        [
            [[255, 0, 0], [0, 255, 0]],
            [[0, 0, 255], [255, 255, 255]],
            [[1, 2, 3], [40, 50, 60]],
            [[0, 0, 0], [9, 99, 199]],
        ],
        np.uint8,
    )
    lines = blocks(picture, 2, 2)
    assert lines[0].decode() == (
        "\x1b[38;2;255;000;000;48;2;000;000;255m▀\x1b[38;2;000;255;000;48;2;255;255;255m▀\x1b[0m"
    )
    assert lines[1].decode() == (
        "\x1b[38;2;001;002;003;48;2;000;000;000m▀\x1b[38;2;040;050;060;48;2;009;099;199m▀\x1b[0m"
    )


def test_a_smaller_size_is_the_mean_and_a_larger_one_repeats() -> None:
    ramp = np.array([[[shade] * 3 for shade in range(0, 240, 10)]], np.uint8)
    assert resized(ramp, 6, 1)[0, :, 0].tolist() == [15, 55, 95, 135, 175, 215]
    assert resized(ramp, 48, 2)[1, :4, 0].tolist() == [0, 0, 10, 10]
    assert resized(ramp, 24, 1) is ramp


@pytest.mark.parametrize("size", [(7, 5), (100, 61), (1, 1)])
def test_any_size_is_reached(size: tuple[int, int]) -> None:
    picture = np.random.default_rng(0).integers(0, 256, (48, 64, 3), np.uint8)
    assert resized(picture, *size).shape == (size[1], size[0], 3)


def test_kitty_is_sent_the_pixels_in_pieces_and_answers_nothing() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    drawn = kitty(picture, 40, 15)
    parts = re.findall(rb"\x1b_G([^;]*);([^\x1b]*)\x1b\\", drawn)
    assert b"".join(b"\x1b_G%s;%s\x1b\\" % part for part in parts) == drawn
    keys = [dict(pair.split(b"=") for pair in head.split(b",") if pair) for head, _ in parts]
    assert (keys[0][b"s"], keys[0][b"v"], keys[0][b"c"], keys[0][b"r"]) == (
        b"80",
        b"60",
        b"40",
        b"15",
    )
    assert [key[b"m"] for key in keys] == [b"1"] * (len(parts) - 1) + [b"0"]
    assert all(key[b"q"] == b"2" for key in keys)
    assert all(len(data) <= 4096 for _, data in parts)
    pixels = zlib.decompress(base64.b64decode(b"".join(data for _, data in parts)))
    assert pixels == picture.tobytes()
    assert b"d=I" in kitty_gone()


def test_iterm2_is_sent_a_file() -> None:
    picture = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
    match = re.fullmatch(rb"\x1b\]1337;File=([^:]*):([^\x07]*)\x07", iterm2(picture, 40, 15))
    assert match is not None
    file = base64.b64decode(match[2])
    assert match[1].split(b";") == [
        b"inline=1",
        b"size=%d" % len(file),
        b"width=40",
        b"height=15",
        b"preserveAspectRatio=0",
    ]
    assert np.array_equal(decode_png(file), picture)
