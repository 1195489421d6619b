import pytest
from rlcore.printable import printable, printable_lines


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("CartPole-v1", "CartPole-v1"),
        ("größe → 3 µs", "größe → 3 µs"),
        ("\x1b]0;pwned\x07", "\\x1b]0;pwned\\x07"),
        ("\x9b31m", "\\x9b31m"),
        ("one\r\ntwo\tthree", "one\\r\\ntwo\\tthree"),
        ("a\u2028b", "a\\u2028b"),
        ("abc\u202etxt.exe", "abc\\u202etxt.exe"),
        ("\udc80", "\\udc80"),
        ("👩\u200d🚀", "👩\u200d🚀"),
        (3, "3"),
    ],
)
def test_controls_are_escaped_and_letters_are_not(text: object, shown: str) -> None:
    assert printable(text) == shown


def test_lines_stay_lines_where_they_may() -> None:
    assert printable_lines("one\n\x1b[2Jtwo\r\n") == "one\n\\x1b[2Jtwo\\r\n"
