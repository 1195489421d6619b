import pytest
from rlcore import UnexpectedReply
from rleaas._flow import messages
from rleaas._flow.messages import Message, Messages

STREAM = (
    "retry: 250\r\nid: 3\r\n\r\n: still here\n\nid: 4\nevent: done\ndata: one\ndata:two\n\n"
    "data: \u00e9\n\nevent: empty\n\nunknown: x\ndata\n\n"
).encode()


def heard(parser: Messages) -> list[Message]:
    found: list[Message] = []
    while (message := parser.next()) is not None:
        found.append(message)
    return found


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_messages_are_the_same_however_the_bytes_are_cut(size: int) -> None:
    parser = Messages()
    found: list[Message] = []
    for start in range(0, len(STREAM), size):
        parser.feed(STREAM[start : start + size])
        found += heard(parser)

    assert found == [
        Message("one\ntwo", "done", "4"),
        Message("\u00e9", "message", "4"),
        Message("", "message", "4"),
    ]
    assert (parser.last_id, parser.retry) == ("4", 0.25)


def test_half_a_message_of_a_broken_connection_is_forgotten_and_the_cursor_is_kept() -> None:
    parser = Messages()
    parser.feed(b"id: 7\ndata: whole\n\ndata: half")
    parser.forget()
    parser.feed(b"data: next\n\n")

    assert [one.data for one in heard(parser)] == ["whole", "next"]
    assert parser.last_id == "7"


def test_a_message_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "LARGEST", 100)
    one_line, many_lines = Messages(), Messages()

    with pytest.raises(UnexpectedReply, match="longer than 100 bytes"):
        one_line.feed(b"data: " + b"x" * 200)
    with pytest.raises(UnexpectedReply, match="longer than 100 bytes"):
        many_lines.feed(b"data: xxxxxxxxxx\n" * 50)


def test_what_is_not_text_and_odd_fields_do_no_harm() -> None:
    parser = Messages()
    parser.feed(b"id: a\0b\nretry: soon\nretry: 99999999999999\ndata: \xff\n\n")

    assert [one.data for one in heard(parser)] == ["\ufffd"]
    assert (parser.last_id, parser.retry) == (None, 30.0)
