"""What strangers say at a lane in words is understood, or refused in one way."""

import json

import pytest
from rlmesh.transport.frames import HEAD, OPEN, Frame, Garbled


def frame_of(body: bytes) -> Frame:
    return Frame(memoryview(bytearray(HEAD.pack(len(body), OPEN, 0, 0, 0, 0, 0) + body)))


def test_a_note_is_read() -> None:
    assert frame_of(b'{"secret": "x", "n": [1, null]}').note() == {"secret": "x", "n": [1, None]}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b"\xff",
        b"[" * 60_000,
        b'{"secret":' * 6_000,
        json.dumps({"secret": "\ud800"}).encode(),
        json.dumps({"headers": {"\udfff": "x"}}).encode(),
        b"1" * 5_000,
    ],
    ids=["empty", "list", "bytes", "deep list", "deep object", "half", "half a name", "digits"],
)
def test_any_other_bytes_are_garbled(body: bytes) -> None:
    with pytest.raises(Garbled):
        frame_of(body).note()
