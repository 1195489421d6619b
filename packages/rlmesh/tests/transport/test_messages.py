"""The bytes of whole messages, against the ones observed of the published package."""

from rlmesh.protocol.episodes import Episode
from rlmesh.transport import client_wire, server_wire
from rlmesh.transport.server_wire import StepAnswer, Timing
from rlmesh.wire.env.v1 import env_pb2

OBSERVATION = bytes.fromhex("0000003f000080bf0000803e")


def test_a_configure_request_is_byte_for_byte_the_published_one() -> None:
    assert client_wire.write_configure("c", "2026.06").hex() == "2a016332090a07323032362e3036"


def test_a_reset_request_is_byte_for_byte_the_published_one() -> None:
    request = client_wire.write_reset("r", seed=7, options=None, timeout_ms=0, episode_id="ep1")
    assert request.hex() == "0a080a01072a036570312a0172"


def test_a_step_request_is_byte_for_byte_the_published_one() -> None:
    action = (2).to_bytes(8, "little")
    request = client_wire.write_step("s", [action], timeout_ms=0, episode_id="ep1")
    assert request.hex() == "12110a0a0a08020000000000000022036570312a0173"


def test_a_configure_response_is_the_published_one_but_for_the_order_of_fields() -> None:
    published = bytes.fromhex("3a002a016330fb13")
    ours = server_wire.write_configured("c", Timing(2555))
    assert env_pb2.JoinResponse.FromString(ours) == env_pb2.JoinResponse.FromString(published)


def test_a_reset_response_begins_as_the_published_one() -> None:
    reply, odd = server_wire.write_reset("r", [OBSERVATION], {}, Timing(1))
    assert reply.hex().startswith("0a120a0e0a0c0000003f000080bf0000803e1200")
    assert odd == []
    assert client_wire.read_reset(reply, "r") == ([OBSERVATION], {})


def test_a_step_response_has_the_published_body() -> None:
    episode = Episode("s", None, 0, steps=1, reward=1.5, terminated=True)
    info = {"k": 7, "n": None}
    answer = StepAnswer([OBSERVATION], 1.5, True, False, info, (), (), episode)
    reply, _ = server_wire.write_step("s", answer, Timing(1))
    body = reply.hex()
    for part in (
        "0a0e0a0c0000003f000080bf0000803e",
        "1208000000000000f83f",
        "1a0101",
        "220100",
    ):
        assert part in body
    read = client_wire.read_step(reply, "s")
    assert (read.reward, read.terminated, read.truncated) == (1.5, True, False)
    assert read.info == {"k": 7, "n": None, "completed_episodes": 1}


def test_values_without_leaves_are_values_all_the_same() -> None:
    request = client_wire.write_step("s", [], timeout_ms=0, episode_id="e")
    action = server_wire.read_request(request).action
    assert action is not None
    assert list(action) == []
    reply, _ = server_wire.write_step("s", nothing({}), Timing(1))
    assert reply[2:4] == b"\x0a\x00"


def nothing(info: dict[str, object] | None) -> StepAnswer:
    return StepAnswer([], 0.0, False, False, info, (), (), None)


def test_an_empty_info_is_not_a_missing_one() -> None:
    some, _ = server_wire.write_step("s", nothing({}), Timing(1))
    none, _ = server_wire.write_step("s", nothing(None), Timing(1))
    assert len(some) == len(none) + len(b"\x2a\x00")
