from pathlib import Path

import pytest
from rleaas.quickstart.curve import Curve, CurvePoint

RISING = Curve("PPO on X", [CurvePoint(100 * n, 4.0 * n) for n in range(1, 101)], good=475.0)


def test_the_terminal_curve_shows_title_and_extremes_in_plain_lines() -> None:
    drawn = RISING.in_terminal(width=70, height=15, colour=False)
    assert "\x1b" not in drawn
    assert "PPO on X" in drawn
    assert "400" in drawn
    assert max(map(len, drawn.splitlines())) <= 70


def test_the_terminal_curve_has_colours_where_they_are_wanted() -> None:
    assert "\x1b[" in RISING.in_terminal(width=70, colour=True)


def test_two_curves_do_not_mix() -> None:
    alone = RISING.in_terminal(width=70, colour=False)
    Curve("other", [CurvePoint(0, -9.0), CurvePoint(1, 9.0)], 0).in_terminal(width=30)
    assert RISING.in_terminal(width=70, colour=False) == alone


def test_the_picture_is_written_with_its_folder(tmp_path: Path) -> None:
    path = RISING.save_png(tmp_path / "new" / "curve.png")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_one_point_makes_no_curve(tmp_path: Path) -> None:
    short = Curve("short", [CurvePoint(1, 1.0)], 1.0)
    with pytest.raises(ValueError, match="1 points make no curve"):
        short.in_terminal(width=70)
    with pytest.raises(ValueError, match="1 points make no curve"):
        short.save_png(tmp_path / "curve.png")
    assert list(tmp_path.iterdir()) == []
