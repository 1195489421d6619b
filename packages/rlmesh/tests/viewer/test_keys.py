import pytest
from rlmesh.viewer.keys import typed


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"", []),
        (b"q", ["quit"]),
        (b"\x1b", ["escape"]),
        (b"\x03", ["interrupt"]),
        (b"\x04", ["quit"]),
        (b"n", ["skip"]),
        (b" ", ["pause"]),
        (b"s.", ["step", "step"]),
        (b"\t", ["right"]),
        (b"\x1b[C\x1b[D", ["right", "left"]),
        (b"\x1bOC\x1bOD", ["right", "left"]),
        (b"0189", ["1", "8", "9"]),
        (b"xyz\r\n", []),
        (b"\x1b[A\x1b[3~\x1b[1;5Cn", ["skip"]),
        (b"\x1bq", []),
        (b"\x1b\x1b", []),
        (b"\x1b[", []),
        (b"\x1bO", []),
        ("nä✓".encode(), ["skip"]),
        (b"\xff\xfe\x00", []),
    ],
)
def test_what_is_typed_is_understood(data: bytes, keys: list[str]) -> None:
    assert typed(data) == keys
