"""Bytes of chance and of bad will: the server lives, and its good clients notice nothing."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pytest
from rlcore import Error, ProtocolException
from rlmesh import ServeOptions
from rlmesh.numpy import Model
from rlmesh.wire.model.v1 import model_pb2 as pb

# Any, in this file: fixtures' classes, and messages.
Raw = Callable[[Any], Any]
Bound = Callable[..., Any]
ONES = np.ones(4, np.float32)
ROUNDS = 150


class Serve(Protocol):
    """The fixture that serves a model, or a function as one."""

    def __call__(
        self, model: Callable[[Any], Any] | Model[Any, Any], /, *arguments: Any, **options: Any
    ) -> Any: ...


def two(observation: Any) -> int:
    return 2


@pytest.fixture
def good(serve: Serve, bound: Bound) -> tuple[Any, Callable[[], None]]:
    """A server, and what a good client does there between attacks."""
    server = serve(two, options=ServeOptions(max_message_bytes=1 << 20, max_sessions=8))
    policy = bound(server)
    episode = policy.begin("good", 1)

    def play() -> None:
        assert policy.predict(ONES, episode) == 2

    return server, play


def damaged(data: bytes, chance: random.Random) -> bytes:
    """The bytes with a few changed, cut off, doubled or put elsewhere."""
    whole = bytearray(data)
    for _ in range(chance.randint(1, 5)):
        at = chance.randrange(len(whole) + 1)
        match chance.randrange(4):
            case 0 if at < len(whole):
                whole[at] = chance.randrange(256)
            case 1:
                del whole[at:]
            case 2:
                whole[at:at] = chance.randbytes(chance.randrange(20))
            case _:
                del whole[at : at + chance.randrange(6)]
    return bytes(whole)


def requests(messages: Any, chance: random.Random) -> list[bytes]:
    """Well formed requests of every kind, in an order of chance."""
    asking, resolving, context = messages.asking, messages.resolving, messages.context
    env_id = chance.choice(["e", "f", "", "ü" * 99])
    kinds: list[dict[str, Any]] = [
        {"resolve_adapter": resolving(env_id)},
        {"resolve_adapter": resolving(env_id, execution_horizon=chance.choice([0, 2, 2**31]))},
        {"predict": asking(("a", 1), env_id=env_id)},
        {"predict": asking(*[(str(row), None) for row in range(chance.randrange(5))])},
        {"grouped_predict": pb.GroupedPredictRequest(groups=[asking(("b", 2))] * 3)},
        {
            "reset_adapter": pb.ResetAdapterRequest(
                context=context(env_id), episode_ids=["a", "", "a"]
            )
        },
        {"release_adapter": pb.ReleaseAdapterRequest(context=context(env_id))},
        {},
    ]
    chance.shuffle(kinds)
    return [
        pb.JoinRequest(request_id=str(number), **kind).SerializeToString()
        for number, kind in enumerate(kinds)
    ]


def test_requests_in_any_order_are_each_answered_once(
    good: tuple[Any, Callable[[], None]], raw: Raw, messages: Any
) -> None:
    server, play = good
    chance = random.Random(7)
    for _ in range(20):
        client = raw(server)
        sent = requests(messages, chance)
        for data in sent:
            client.send_bytes(data)
        answered = sorted(client.take().request_id for _ in sent)
        assert answered == sorted(str(number) for number in range(len(sent)))
        client.leave()
        play()


def test_damaged_requests_are_answered_or_end_their_own_stream(
    good: tuple[Any, Callable[[], None]], raw: Raw, messages: Any, eventually: Any
) -> None:
    server, play = good
    chance = random.Random(11)
    for number in range(ROUNDS):
        client = raw(server)
        for data in requests(messages, chance)[:3]:
            client.send_bytes(damaged(data, chance))
        # Whatever was meant as a request gets an answer, or the stream a reason for its end.
        with contextlib.suppress(ProtocolException):
            client.take()
        client.leave()
        if number % 10 == 0:
            play()
    play()
    eventually(lambda: server.inspect()["places_taken"] == 1)


def test_what_is_larger_than_a_message_may_be_ends_its_own_stream(
    good: tuple[Any, Callable[[], None]], raw: Raw, messages: Any
) -> None:
    server, play = good
    client = raw(server)
    client.resolve()
    request = messages.asking(("a", 1))
    request.observation.leaves.append(bytes(2 << 20))
    client.send(predict=request)

    with pytest.raises(Error, match="too large"):
        client.take()
    play()


def test_a_spec_that_promises_too_much_is_refused_before_it_is_built(
    good: tuple[Any, Callable[[], None]], raw: Raw, messages: Any
) -> None:
    server, play = good
    client = raw(server)
    huge = messages.resolving()
    huge.env_spec.observation_space.shape[:] = [1 << 40]

    assert client.ask(resolve_adapter=huge).error.code == 2
    assert client.resolve().HasField("resolve_adapter"), "the stream goes on"
    play()


def test_clients_that_vanish_at_any_moment_leave_nothing(
    good: tuple[Any, Callable[[], None]], raw: Raw, messages: Any, eventually: Any
) -> None:
    server, play = good
    before = threading.active_count()
    for number in range(30):
        client = raw(server)
        client.send(resolve_adapter=messages.resolving("e"))
        for row in range(number % 7):
            client.send(predict=messages.asking((str(row), row)))
        client.leave()
    play()

    eventually(lambda: server.inspect()["places_taken"] == 1)
    eventually(lambda: threading.active_count() <= before + 3)
