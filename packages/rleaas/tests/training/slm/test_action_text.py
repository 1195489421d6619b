from gymnasium import spaces
from rleaas.training.slm.action_text import fitted

LETTERS = spaces.Text(5, min_length=2, charset="abcdef ")


def test_a_text_of_the_space_comes_back_as_it_is() -> None:
    assert fitted("dead b", spaces.Text(6, charset="abde ")) == "dead b"


def test_what_the_space_does_not_have_is_left_out() -> None:
    assert fitted("b\u00e9e{}f", LETTERS) == "bef"


def test_a_long_text_is_cut_and_a_short_one_filled() -> None:
    assert fitted("abcdefab", LETTERS) == "abcde"
    assert fitted("", LETTERS) == "  "
    assert fitted("", spaces.Text(3, min_length=2, charset="xy")) == "xx"
    assert LETTERS.contains(fitted("", LETTERS))
