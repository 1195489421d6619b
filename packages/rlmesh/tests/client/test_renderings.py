"""What environments draw beside a single frame, over a real server."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Callable
from typing import Any, cast

import gymnasium
import numpy as np
import pytest
import rlmesh
import rlmesh.numpy
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv
from rlcore import ProtocolException
from rlmesh.backends.frameworks import backend_of
from rlmesh.client import rendering
from rlmesh.protocol.messages import RenderAnswer, Request
from rlmesh.server.codecs import Codecs
from rlmesh.server.conversation import Conversation
from rlmesh.server.environments import environments_of
from rlmesh.transport import client_wire, server_wire
from rlmesh.transport.png import encode_png

Serve = Callable[..., rlmesh.EnvServer]
FRAMES = [np.full((2, 3, 3), shade, np.uint8) for shade in (1, 2)]


class Drawing(gymnasium.Env[Any, Any]):
    """Draws what it is told to."""

    observation_space = action_space = spaces.Discrete(2)

    def __init__(self, drawn: Any, render_mode: str = "ansi") -> None:
        self.metadata = {"render_modes": [render_mode]}
        self.render_mode = render_mode
        self.drawn = drawn

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return 0, {}

    def step(self, action: Any) -> Any:
        return 0, 0.0, False, False, {}

    def render(self) -> Any:
        return self.drawn


def plain(drawn: Any) -> Any:
    if isinstance(drawn, list | tuple):
        return [plain(one) for one in cast("list[Any]", drawn)]
    return np.asarray(drawn).tolist()


@pytest.mark.parametrize("transport", ["lane", "grpc"])
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a\nb \N{SNOWMAN}", "a\nb \N{SNOWMAN}"),
        ("", ""),
        (io.StringIO("a board"), "a board"),
        (FRAMES, FRAMES),
        (tuple(FRAMES), FRAMES),
        ([], []),
        (["first", ""], ["first", ""]),
    ],
)
def test_texts_and_lists_arrive_as_they_were_drawn(
    serve: Serve, transport: str, given: Any, expected: Any
) -> None:
    server = serve(Drawing(given), options=rlmesh.ServeOptions(lanes=transport == "lane"))
    with rlmesh.numpy.RemoteEnv(server.address) as env:
        env.reset()
        drawn = env.render()
    assert type(drawn) is type(expected)
    assert plain(drawn) == plain(expected)
    if expected is FRAMES:
        assert [frame.dtype for frame in drawn] == [np.uint8, np.uint8]


def test_frames_that_a_wrapper_kept_are_given_once(serve: Serve) -> None:
    kept = gymnasium.wrappers.RenderCollection(Drawing(FRAMES[1], "rgb_array"))
    with rlmesh.numpy.RemoteEnv(serve(kept).address) as env:
        assert env.render_mode == "rgb_array_list"
        env.reset()
        env.step(0)
        assert plain(env.render()) == plain([FRAMES[1], FRAMES[1]])
        assert env.render() == []


def test_a_text_comes_to_clients_without_arrays_too(serve: Serve) -> None:
    with rlmesh.RemoteEnv(serve(Drawing("a board")).address) as env:
        assert env.render() == "a board"
    with rlmesh.RemoteEnv(serve(Drawing(FRAMES)).address) as env:
        assert [type(frame) for frame in env.render()] == [rlmesh.Tensor, rlmesh.Tensor]


@pytest.mark.parametrize("many", [list, SyncVectorEnv])
def test_every_lane_draws_its_own(serve: Serve, many: Any) -> None:
    envs = [Drawing("left"), Drawing("right")]
    source = many([lambda env=env: env for env in envs] if many is SyncVectorEnv else envs)
    with rlmesh.numpy.RemoteVectorEnv(serve(source).address) as env:
        env.reset()
        assert env.render() == ("left", "right")
        assert env.render(env_index=1) == "right"


def test_lanes_keep_their_frames(serve: Serve) -> None:
    server = serve([Drawing(FRAMES), Drawing(FRAMES[:1])])
    with rlmesh.numpy.RemoteVectorEnv(server.address) as env:
        env.reset()
        assert plain(env.render()) == plain([FRAMES, FRAMES[:1]])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"board": 1}, "None instead: dict$"),
        (np.zeros((2, 2, 7)), r"None instead: ndarray of shape \(2, 2, 7\)$"),
        (["text", FRAMES[0]], "None instead: list with str in it$"),
    ],
)
def test_what_cannot_travel_is_none_and_the_log_says_so_once(
    serve: Serve, caplog: pytest.LogCaptureFixture, given: Any, said: str
) -> None:
    with rlmesh.numpy.RemoteEnv(serve(Drawing(given)).address) as env:
        env.reset()
        with caplog.at_level(logging.WARNING, "rlmesh.server"):
            assert env.render() is None
            assert env.render() is None
    assert len(caplog.messages) == 1
    assert re.search(said, caplog.messages[0])


@pytest.mark.parametrize("given", ["a board", FRAMES])
def test_clients_that_did_not_say_they_know_them_get_none(
    caplog: pytest.LogCaptureFixture, given: Any
) -> None:
    environments = environments_of(Drawing(given), close_at_end=True, backend=backend_of("numpy"))
    conversation = Conversation(environments, Codecs(environments), on_close=lambda _: None)
    answer, _ = conversation.answer(Request("render", "1"))
    conversation.close()
    assert isinstance(answer, RenderAnswer)
    assert answer.drawn is None
    written, _ = server_wire.write_answer("1", answer)
    assert client_wire.read_render(written, "1") is None
    assert "which the client does not know" in caplog.text


def test_frames_that_unpack_to_too_much_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rendering, "LARGEST_LIST", 250)
    frame = encode_png(np.zeros((10, 10), np.uint8))
    with pytest.raises(ProtocolException, match="the first 3 of 20 frames have 300 bytes"):
        rendering.rendered([frame] * 20, lambda pixels: pixels)
