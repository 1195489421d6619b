"""Many clients of one model: whose routes and episodes are whose, and what waits for what."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pytest
from rlmesh import ServeOptions, SessionBusy
from rlmesh.numpy import Model
from rlmesh.wire.model.v1 import model_pb2 as pb

Raw = Callable[[Any], Any]  # Any, in this file: fixtures' classes, and messages
Eventually = Callable[[Callable[[], object]], None]
EPISODE = ("ep", 7)
# The published table for seed 7.
SEEDS_OF_7 = [915059860, 1098514101]


class Serve(Protocol):
    """The fixture that serves a model, or a function as one."""

    def __call__(
        self,
        model: Callable[[Any], Any] | Callable[[Any, Any], Any] | Model[Any, Any],
        /,
        *arguments: Any,
        **options: Any,
    ) -> Any: ...


def two(observation: Any) -> int:
    return 2


def test_a_client_that_closes_leaves_the_routes_of_the_others(serve: Serve, raw: Raw) -> None:
    server = serve(two)
    first, second = raw(server), raw(server)
    first.resolve()
    second.resolve()

    assert first.ask(close=pb.CloseParticipantRequest(reason="bye")).HasField("close")

    assert second.predict(EPISODE) == [[2]]


def test_after_a_close_the_stream_ends(serve: Serve, raw: Raw) -> None:
    client = raw(serve(two))
    client.ask(close=pb.CloseParticipantRequest())

    with pytest.raises(ConnectionError, match="ended the session"):
        client.take()


def test_another_stream_can_use_a_route_while_its_owner_is_there(
    serve: Serve, raw: Raw, eventually: Eventually
) -> None:
    server = serve(two)
    owner, guest = raw(server), raw(server)
    owner.resolve()

    assert guest.predict(EPISODE) == [[2]]
    owner.leave()
    eventually(lambda: server.inspect()["places_taken"] == 1)
    assert "no route" in guest.predict(EPISODE).message


def test_two_clients_that_chose_the_same_name_do_not_share_a_route(
    serve: Serve, raw: Raw, messages: Any
) -> None:
    server = serve(lambda observation: len(observation))
    mine, theirs = raw(server), raw(server)
    mine.resolve()
    theirs.ask(resolve_adapter=messages.resolving())

    assert mine.predict(EPISODE) == [[4]]
    mine.ask(release_adapter=pb.ReleaseAdapterRequest(context=messages.context("e")))
    assert theirs.predict(EPISODE) == [[4]]


def test_an_episode_ends_for_the_model_when_it_is_reset(
    serve: Serve, raw: Raw, messages: Any
) -> None:
    ended: list[str] = []
    client = raw(serve(Model(two, on_episode_end=ended.append)))
    client.resolve()
    client.predict(("a", 1), ("b", 2))

    reset = pb.ResetAdapterRequest(context=messages.context("e"), episode_ids=["a", "never seen"])
    assert client.ask(reset_adapter=reset).HasField("reset_adapter")
    assert ended == ["a", "never seen"]
    empty = pb.ResetAdapterRequest(context=messages.context("e"))
    assert client.ask(reset_adapter=empty).HasField("reset_adapter")
    assert ended == ["a", "never seen"]


@pytest.mark.parametrize("leaving", ["release", "close", "vanish"])
def test_episodes_that_are_open_end_with_their_client(
    serve: Serve, raw: Raw, messages: Any, eventually: Eventually, leaving: str
) -> None:
    ended: list[str] = []
    server = serve(Model(two, on_episode_end=ended.append))
    client, other = raw(server), raw(server)
    client.resolve()
    other.resolve("f")
    client.predict(("a", 1), ("b", 2))
    other.predict(("c", 3), env_id="f")

    if leaving == "release":
        client.ask(release_adapter=pb.ReleaseAdapterRequest(context=messages.context("e")))
    elif leaving == "close":
        client.ask(close=pb.CloseParticipantRequest())
    else:
        client.leave()

    eventually(lambda: len(ended) == 2)
    assert ended == ["a", "b"]
    assert other.predict(("c", 3), env_id="f") == [[2]]


def test_a_hook_that_raises_is_told_to_the_one_who_ended_the_episode(
    serve: Serve, raw: Raw, messages: Any
) -> None:
    def stumble(episode_id: str) -> None:
        raise OSError("disk full")

    client = raw(serve(Model(two, on_episode_end=stumble)))
    client.resolve()
    client.predict(EPISODE)

    reset = pb.ResetAdapterRequest(context=messages.context("e"), episode_ids=["ep"])
    assert client.ask(reset_adapter=reset).error.message == "internal error: OSError: disk full"
    assert client.predict(EPISODE) == [[2]]


def test_contexts_count_and_seed_the_predictions_of_each_episode(serve: Serve, raw: Raw) -> None:
    seen: list[Any] = []

    def policy(observation: Any, context: Any) -> int:
        context["state"].setdefault("calls", []).append(1)
        seen.append({**context, "state": len(context["state"]["calls"])})
        return 0

    client = raw(serve(policy))
    client.resolve()
    client.predict(EPISODE)
    client.predict(("ep", 8))  # a seed that was seen first stays
    client.predict(("other", None))

    assert [one["predict_seed"] for one in seen] == [*SEEDS_OF_7, None]
    assert [one["predict_index"] for one in seen] == [0, 1, 0]
    assert [one["episode_id"] for one in seen] == ["ep", "ep", "other"]
    assert [one["episode_seed"] for one in seen] == [7, 7, None]
    assert [one["state"] for one in seen] == [1, 2, 1]


def test_rows_of_a_model_for_single_observations_keep_their_own_contexts(
    serve: Serve, raw: Raw
) -> None:
    def policy(observation: Any, context: Any) -> Any:
        assert observation.shape == (4,)
        return {"a": 1, "b": 2}[context["episode_id"]] + context["predict_index"]

    client = raw(serve(policy))
    client.resolve()

    assert client.predict(("a", 0), ("b", 0)) == [[1, 2]]
    assert client.predict(("b", 0), ("a", 0)) == [[3, 2]]


def test_rows_reach_a_model_with_a_batched_corner_in_one_call(serve: Serve, raw: Raw) -> None:
    shapes: list[tuple[int, ...]] = []

    class Batched(Model[Any, Any]):
        def predict_batch(self, observations: Any) -> Any:
            shapes.append(observations.shape)
            return np.arange(len(observations))

    client = raw(serve(Batched()))
    client.resolve()

    assert client.predict(("a", 0), ("b", 0), ("c", 0)) == [[0, 1, 2]]
    assert client.predict(("a", 0)) == [[0]]
    assert shapes == [(3, 4), (1, 4)]


def test_requests_under_way_are_answered_in_order_and_a_resolve_overtakes(
    serve: Serve, raw: Raw, messages: Any, gate: threading.Event
) -> None:
    def patient(observation: Any) -> int:
        assert gate.wait(20)
        return int(observation[0])

    client = raw(serve(patient))
    client.resolve()
    asked = [client.send(predict=messages.asking(EPISODE, x=number)) for number in range(3)]

    other = client.send(resolve_adapter=messages.resolving("other"))
    assert client.take().request_id == other
    again = client.send(resolve_adapter=messages.resolving("e"))  # waits for what was asked of it
    gate.set()

    answers = [client.take() for _ in range(4)]
    assert [answer.request_id for answer in answers] == [*asked, again]
    assert [messages.actions_of(answer) for answer in answers[:3]] == [[[0]], [[1]], [[2]]]


def test_what_was_asked_is_answered_though_the_client_has_said_all(
    serve: Serve, raw: Raw, messages: Any
) -> None:
    client = raw(serve(two))
    client.resolve()
    for _ in range(40):  # more than may be under way
        client.send(predict=messages.asking(EPISODE))
    client.send(close=pb.CloseParticipantRequest())

    answers = [client.take() for _ in range(41)]
    assert all(messages.actions_of(answer) == [[2]] for answer in answers[:40])
    assert answers[40].HasField("close")


def test_a_model_is_called_in_one_thread_and_never_twice_at_once(serve: Serve, raw: Raw) -> None:
    threads: set[int] = set()
    inside, overlaps = [0], [0]

    def policy(observation: Any) -> int:
        inside[0] += 1
        overlaps[0] += inside[0] > 1
        threads.add(threading.get_ident())
        threading.Event().wait(0.001)
        inside[0] -= 1
        return 1

    server = serve(policy)
    answers: list[Any] = []

    def play(number: int) -> None:
        client = raw(server)
        client.resolve(f"env {number}")
        answers.extend(client.predict(EPISODE, env_id=f"env {number}") for _ in range(10))

    players = [threading.Thread(target=play, args=(number,)) for number in range(6)]
    for player in players:
        player.start()
    for player in players:
        player.join(20)

    assert answers == [[[1]]] * 60
    assert (len(threads), overlaps) == (1, [0])


def test_one_client_too_many_is_told_so(serve: Serve, raw: Raw) -> None:
    server = serve(two, options=ServeOptions(max_sessions=1))
    raw(server).resolve()

    with pytest.raises(SessionBusy, match="1 clients already"):
        raw(server).resolve()


# Fusion


class Adding(Model[Any, Any]):
    """Waits for its first call to be let go; remembers what it was given."""

    def load(self) -> None:
        self.batches: list[int] = []
        self.indices: list[list[int]] = []
        self.first_is_here, self.go_on = threading.Event(), threading.Event()

    def predict_batch(self, observations: Any, contexts: Any) -> Any:
        self.batches.append(len(observations))
        self.indices.append([context["predict_index"] for context in contexts])
        if not self.first_is_here.is_set():
            self.first_is_here.set()
            assert self.go_on.wait(20)
        if (observations > 9).any() and len(observations) > 1:
            raise ValueError("together it is too much")
        return observations[:, 0].astype(int)


def together(
    serve: Serve, raw: Raw, messages: Any, model: Adding, numbers: list[float]
) -> list[Any]:
    """What clients are answered whose observations wait while another is predicted from."""
    server = serve(model)
    clients = [raw(server) for _ in range(len(numbers) + 1)]
    for number, client in enumerate(clients):
        client.resolve(f"env {number}")
    clients[0].send(predict=messages.asking(EPISODE, env_id="env 0"))
    assert model.first_is_here.wait(20)
    for number, (x, client) in enumerate(zip(numbers, clients[1:], strict=True), start=1):
        client.send(predict=messages.asking(EPISODE, env_id=f"env {number}", x=x))
    # All of them have arrived once they are under way.
    deadline = threading.Event()
    while sum(one["in_progress"] for one in server.inspect()["sessions"]) < len(clients):
        deadline.wait(0.005)
    model.go_on.set()
    return [messages.actions_of(client.take()) for client in clients[1:]]


def test_observations_of_several_clients_that_wait_go_into_one_call(
    serve: Serve, raw: Raw, messages: Any
) -> None:
    model = Adding()

    assert together(serve, raw, messages, model, [1, 2, 3]) == [[[1]], [[2]], [[3]]]
    assert model.batches == [1, 3]


def test_a_model_that_does_not_allow_it_gets_them_one_by_one(
    serve: Serve, raw: Raw, messages: Any
) -> None:
    model = Adding()
    model.allow_fusion = False

    assert together(serve, raw, messages, model, [1, 2]) == [[[1]], [[2]]]
    assert model.batches == [1, 1, 1]


def test_what_fails_together_is_tried_alone_with_the_same_contexts(
    serve: Serve, raw: Raw, messages: Any
) -> None:
    model = Adding()

    first, second = together(serve, raw, messages, model, [1, 10])

    assert first == [[1]]
    assert second.code == 10  # ten is no action of five
    assert model.batches == [1, 2, 1, 1]
    assert model.indices == [[0], [0, 0], [0], [0]]
