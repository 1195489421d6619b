"""The bytes of whole messages, against the ones observed of the published package."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rlmesh.protocol.episodes import Episode
from rlmesh.protocol.messages import CompletedEpisode, Configured, ResetAnswer, StepAnswer, Timing
from rlmesh.transport import client_wire
from rlmesh.transport.server_wire import ServerWire, read_request
from rlmesh.transport.step_bytes import StepReader, read_step_answer
from rlmesh.wire.env.v1 import env_pb2

OBSERVATION = bytes.fromhex("0000003f000080bf0000803e")


def test_a_configure_request_is_byte_for_byte_the_published_one() -> None:
    assert client_wire.write_configure("c", "2026.06").hex() == "2a016332090a07323032362e3036"


def test_a_reset_request_is_byte_for_byte_the_published_one() -> None:
    request = client_wire.write_reset(
        "r", seeds=(7,), options=None, timeout_ms=0, episode_ids=("ep1",)
    )
    assert request.hex() == "0a080a01072a036570312a0172"


def test_a_step_request_is_byte_for_byte_the_published_one() -> None:
    action = (2).to_bytes(8, "little")
    request = client_wire.write_step("s", [action], timeout_ms=0, episode_ids=("ep1",))
    assert request.hex() == "12110a0a0a08020000000000000022036570312a0173"


def test_a_configure_response_is_the_published_one_but_for_the_order_of_fields() -> None:
    published = bytes.fromhex("3a002a016330fb13")
    ours, _ = ServerWire().write("c", Configured(Timing(2555)))
    assert env_pb2.JoinResponse.FromString(ours) == env_pb2.JoinResponse.FromString(published)


def test_a_reset_response_begins_as_the_published_one() -> None:
    reply, odd = ServerWire().write("r", ResetAnswer([OBSERVATION], {}, Timing(1)))
    assert reply.hex().startswith("0a120a0e0a0c0000003f000080bf0000803e1200")
    assert list(odd) == []
    read = client_wire.read_reset(reply, "r")
    assert (list(read.leaves), read.info) == ([OBSERVATION], {})


def test_a_step_response_has_the_published_body() -> None:
    episode = Episode("s", None, 0, steps=1, reward=1.5, terminated=True)
    info = {"k": 7, "n": None}
    completed = [CompletedEpisode(episode, info)]
    answer = StepAnswer([OBSERVATION], (1.5,), b"\1", b"\0", info, Timing(1), (), completed)
    reply, _ = ServerWire().write("s", answer)
    body = reply.hex()
    for part in (
        "0a0e0a0c0000003f000080bf0000803e",
        "1208000000000000f83f",
        "1a0101",
        "220100",
    ):
        assert part in body
    read = client_wire.read_step(reply, "s", 1)
    assert (list(read.rewards), read.terminated, read.truncated) == ([1.5], b"\1", b"\0")
    assert (read.info, list(read.completed)) == (info, ["s"])


def test_values_without_leaves_are_values_all_the_same() -> None:
    request = client_wire.write_step("s", [], timeout_ms=0, episode_ids=("e",))
    for action in (ServerWire().read(request).action, read_request(request).action):
        assert action is not None
        assert list(action) == []
    reply, _ = ServerWire().write("s", nothing({}))
    assert reply[2:4] == b"\x0a\x00"


def nothing(info: dict[str, object] | None) -> StepAnswer:
    return StepAnswer([], (0.0,), b"\0", b"\0", info, Timing(1))


def test_an_empty_info_is_not_a_missing_one() -> None:
    some, _ = ServerWire().write("s", nothing({}))
    none, _ = ServerWire().write("s", nothing(None))
    assert len(some) == len(none) + len(b"\x2a\x00")


leaves = st.lists(st.binary(max_size=700) | st.integers(0, 70_000).map(bytes), max_size=4)
lane_numbers = st.lists(st.integers(0, 2**32 - 1), max_size=4).map(tuple)
names = st.lists(st.text(max_size=40), max_size=4).map(tuple)


@given(leaves, lane_numbers, names, st.integers(0, 2**40), st.text(max_size=200))
def test_a_step_written_by_hand_is_what_protobuf_reads(
    action: list[bytes], lanes: tuple[int, ...], ids: tuple[str, ...], limit: int, name: str
) -> None:
    written = client_wire.write_step(name, action, timeout_ms=limit, lanes=lanes, episode_ids=ids)
    expected = env_pb2.JoinRequest(request_id=name)
    expected.step.action.SetInParent()
    expected.step.action.leaves.extend(action)
    expected.step.timeout_ms = limit
    expected.step.env_indices.extend(lanes)
    expected.step.episode_ids.extend(ids)
    assert env_pb2.JoinRequest.FromString(written) == expected
    for data in (written, expected.SerializeToString()):
        read = ServerWire().read(data)
        assert read.action is not None
        assert [bytes(leaf) for leaf in read.action] == action
        assert (tuple(read.lanes), tuple(read.episode_ids)) == (lanes, ids)
        assert (read.timeout_ms, read.request_id) == (limit, name)


@given(
    leaves,
    st.lists(
        st.tuples(st.floats(allow_nan=False), st.booleans(), st.booleans()), min_size=1, max_size=5
    ),
    st.none() | st.dictionaries(st.text(max_size=5), st.integers(-5, 5), max_size=3),
    st.lists(st.text(max_size=9), max_size=2),
    st.text(max_size=200),
)
def test_a_steps_answer_written_by_hand_is_what_protobuf_reads(
    observation: list[bytes],
    outcomes: list[tuple[float, bool, bool]],
    info: dict[str, object] | None,
    episodes: list[str],
    name: str,
) -> None:
    rewards = tuple(reward for reward, _, _ in outcomes)
    terminated = bytes(flag for _, flag, _ in outcomes)
    truncated = bytes(flag for _, _, flag in outcomes)
    completed = [CompletedEpisode(Episode(episode, 7, 1)) for episode in episodes]
    answer = StepAnswer(
        observation, rewards, terminated, truncated, info, Timing(2**33, 77), (), completed
    )
    written, _ = ServerWire().write(name, answer)
    message = env_pb2.JoinResponse.FromString(written)
    assert list(message.step.observation.leaves) == observation
    assert list(message.step.rewards) == list(rewards)
    assert (message.step.terminated_mask, message.step.truncated_mask) == (terminated, truncated)
    assert message.step.HasField("infos") == (info is not None)
    assert (message.request_id, message.endpoint_total_ns, message.user_ns) == (name, 2**33, 77)
    for data in (written, message.SerializeToString()):
        read = client_wire.read_step(data, name, len(outcomes))
        assert [bytes(leaf) for leaf in read.leaves] == observation
        assert list(read.rewards) == list(rewards)
        assert (read.terminated, read.truncated) == (terminated, truncated)
        assert (read.info, list(read.completed)) == (info or {}, episodes)


@given(st.binary(max_size=200))
def test_bytes_that_are_no_step_are_left_to_the_general_reader(data: bytes) -> None:
    for prefix in (b"", b"\x12\x11\x0a\x0a\x0a\x08"):
        StepReader().read(prefix + data)
        read_step_answer(prefix + data, "s", 1)


@given(st.integers(0, 60), leaves)
def test_a_step_that_was_cut_off_is_never_read_as_a_whole_one(
    cut: int, action: list[bytes]
) -> None:
    whole = client_wire.write_step("s", action, timeout_ms=0, episode_ids=("ep1",))
    if 0 < cut < len(whole):
        assert StepReader().read(whole[:-cut]) is None
