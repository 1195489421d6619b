from pathlib import Path

import pytest
from rlcore import AddressError
from rlmesh.transport.addresses import (
    TcpAddress,
    UnixAddress,
    parse_bind,
    parse_dial,
    speaks,
)


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        (None, "tcp://127.0.0.1:0"),
        ("0", "tcp://127.0.0.1:0"),
        ("5555", "tcp://127.0.0.1:5555"),
        ("127.0.0.1:1", "tcp://127.0.0.1:1"),
        (" tcp://localhost:2 ", "tcp://127.0.0.1:2"),
        (":3", "tcp://127.0.0.1:3"),
        ("0.0.0.0:4", "tcp://0.0.0.0:4"),
        ("::1:5", "tcp://[::1]:5"),
        ("[::1]:6", "tcp://[::1]:6"),
        ("unix:///tmp/a.sock", "unix:///tmp/a.sock"),
    ],
)
def test_addresses_to_serve_at(text: str | None, bound: str) -> None:
    assert str(parse_bind(text)) == bound


def test_a_relative_socket_path_is_from_the_working_folder() -> None:
    assert parse_bind("unix://a.sock") == UnixAddress(str(Path.cwd() / "a.sock"))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "tcp://",
        "http://a:1",
        "https://a:1",
        "grpc://a:1",
        "TCP://a:1",
        "UNIX:///a",
        "localhost",
        "a:b",
        "a:70000",
        "a:-1",
        "unix:/path",
        "/path",
        "unix://",
        "a b:1",
        "[::1:2",
        "x::y:1",
        "a:1/path",
    ],
)
def test_what_cannot_be_served_at(text: str) -> None:
    with pytest.raises(AddressError):
        parse_bind(text)


@pytest.mark.parametrize(
    ("text", "dialled"),
    [
        ("host:1", "tcp://host:1"),
        ("tcp://host:1", "tcp://host:1"),
        ("http://host:1", "tcp://host:1"),
        ("http://host:1/", "tcp://host:1"),
        ("[::1]:1", "tcp://[::1]:1"),
        ("user:pw@host:1", "tcp://host:1"),
        (" host:1 ", "tcp://host:1"),
        ("unix:///tmp/a", "unix:///tmp/a"),
    ],
)
def test_addresses_to_dial(text: str, dialled: str) -> None:
    assert str(parse_dial(text)) == dialled


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "1",
        "host",
        ":1",
        "host:0",
        "https://h:1",
        "TCP://h:1",
        "h:1/x",
        "unix:/p",
        "/p",
        "unix://",
    ],
)
def test_what_cannot_be_dialled(text: str | None) -> None:
    with pytest.raises(AddressError):
        parse_dial(text)


def test_parts_make_an_address() -> None:
    assert parse_bind(host="0.0.0.0", port=1) == TcpAddress("0.0.0.0", 1)
    assert parse_bind(host="127.0.0.1") == TcpAddress("127.0.0.1", 0)
    assert parse_bind(port=7) == TcpAddress("127.0.0.1", 7)
    assert parse_bind(path="/tmp/x", transport="unix") == UnixAddress("/tmp/x")
    assert parse_bind(transport="tcp") == TcpAddress("127.0.0.1", 0)


@pytest.mark.parametrize(
    "parts",
    [
        {"address": "a:1", "host": "a"},
        {"address": "a:1", "transport": "tcp"},
        {"path": "/x", "port": 1},
        {"path": "/x", "transport": "tcp"},
        {"transport": "unix"},
        {"transport": "udp"},
        {"port": 70000},
        {"port": -1},
    ],
)
def test_parts_that_contradict_each_other_are_refused(parts: dict[str, object]) -> None:
    with pytest.raises(AddressError):
        parse_bind(**parts)  # type: ignore[arg-type]  # the mistakes of untyped callers


@pytest.mark.parametrize("port", ["80", 1.5, True])
def test_a_port_that_is_no_whole_number_is_a_type_error(port: object) -> None:
    with pytest.raises(TypeError):
        parse_bind(port=port)  # type: ignore[arg-type]  # the mistake of untyped callers


def test_a_host_to_dial_needs_a_port() -> None:
    with pytest.raises(AddressError, match="port"):
        parse_dial(host="somewhere")


def test_a_socket_path_that_no_system_takes_is_refused() -> None:
    with pytest.raises(AddressError, match="longer"):
        parse_bind(f"unix:///{'x' * 200}")


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("127.0.0.1:1", False),
        ("[::1]:1", False),
        ("127.1:1", False),
        ("[::ffff:127.0.0.1]:1", False),
        ("[::ffff:10.0.0.1]:1", True),
        ("10.1:1", True),
        ("unix:///tmp/a", False),
        ("0.0.0.0:1", True),
        ("[::]:1", True),
        ("10.0.0.1:1", True),
        ("example.org:1", True),
    ],
)
def test_what_other_machines_can_reach_is_public(text: str, public: bool) -> None:
    assert parse_bind(text).is_public is public


@pytest.mark.parametrize(
    ("text", "ours"),
    [("a:1", True), ("tcp://a:1", True), ("unix:///a", True), ("rleaas://Name@3", False)],
)
def test_other_schemes_are_left_to_resolvers(text: str, ours: bool) -> None:
    assert speaks(text) is ours
