"""What a server of models answers to whom: the rules of published servers, one by one."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pytest
from rlmesh.numpy import Model
from rlmesh.wire.model.v1 import model_pb2 as pb

Raw = Callable[[Any], Any]  # Any, in this file: fixtures' classes, and messages
INVALID, UNSUPPORTED, INTERNAL = 2, 5, 10
EPISODE = ("ep", 7)


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


def test_a_route_is_resolved_and_asked(serve: Serve, raw: Raw) -> None:
    client = raw(serve(two))

    assert not client.resolve().resolve_adapter.HasField("native_chunk")
    assert client.predict(EPISODE) == [[2]]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"context": None}, "no context"),
        ({"context": pb.AdapterContext(session_id="s")}, "no env_id"),
        ({"env_spec": None}, "no env_spec"),
        ({"selected_workflow_edition": "2099.01"}, "2099.01"),
    ],
)
def test_a_resolve_that_cannot_be_is_an_invalid_request(
    serve: Serve, raw: Raw, messages: Any, change: dict[str, Any], says: str
) -> None:
    client = raw(serve(two))
    request = messages.resolving()
    for name, value in change.items():
        request.ClearField(name)
        if isinstance(value, str):
            setattr(request, name, value)
        elif value is not None:
            getattr(request, name).CopyFrom(value)

    error = client.ask(resolve_adapter=request).error

    assert error.code == INVALID
    assert says in error.message
    assert client.resolve().HasField("resolve_adapter"), "the stream goes on"


def test_a_spec_without_actions_or_with_a_broken_space_is_an_invalid_request(
    serve: Serve, raw: Raw, messages: Any
) -> None:
    client = raw(serve(two))
    without, broken = messages.resolving(), messages.resolving()
    without.env_spec.ClearField("action_space")
    broken.env_spec.action_space.discrete.n = -1

    assert client.ask(resolve_adapter=without).error.code == INVALID
    assert client.ask(resolve_adapter=broken).error.code == INVALID


@pytest.mark.parametrize("edition", ["", "2026.06", " 2026.06 ", "2026.06-rc"])
def test_editions_that_this_build_runs_are_taken(serve: Serve, raw: Raw, edition: str) -> None:
    answer = raw(serve(two)).resolve(selected_workflow_edition=edition)

    assert answer.HasField("resolve_adapter")


def test_a_model_may_be_asked_without_observations(serve: Serve, raw: Raw, messages: Any) -> None:
    client = raw(serve(lambda observation: 3 if observation is None else 0))
    blind = messages.resolving()
    blind.env_spec.ClearField("observation_space")
    request = messages.asking(EPISODE)
    request.ClearField("observation")

    assert client.ask(resolve_adapter=blind).HasField("resolve_adapter")
    assert messages.actions_of(client.ask(predict=request)) == [[3]]


@pytest.mark.parametrize(("horizon", "refused"), [(0, False), (1024, False), (1025, True)])
def test_a_horizon_has_a_limit(serve: Serve, raw: Raw, horizon: int, refused: bool) -> None:
    answer = raw(serve(two)).resolve(execution_horizon=horizon)

    assert answer.HasField("error") is refused
    if refused:
        assert answer.error.code == INTERNAL


def test_a_native_chunk_is_told_and_bounds_the_horizon(serve: Serve, raw: Raw) -> None:
    class Chunked(Model[Any, Any]):
        native_chunk = 3

        def predict_chunk(self, observation: Any, execution_horizon: int) -> Any:
            return np.arange(3)

    client = raw(serve(Chunked()))

    assert client.resolve(execution_horizon=2).resolve_adapter.native_chunk == 3
    assert client.predict(EPISODE) == [[0], [1]]
    assert client.resolve(execution_horizon=4).error.code == INTERNAL


SPOILED: list[tuple[Callable[[Any], object], str]] = [
    (lambda ask: ask.ClearField("context"), "no context"),
    (lambda ask: ask.context.ClearField("request_id"), "no request_id"),
    (lambda ask: ask.ClearField("episode_info"), "no episode"),
    (lambda ask: setattr(ask.episode_info[0], "episode_id", " "), "blank"),
    (lambda ask: ask.episode_info.add(episode_id="ep"), "twice"),
    (lambda ask: ask.observation.leaves.append(b""), "leaves of"),
    (lambda ask: ask.observation.leaves.__setitem__(0, b"\0" * 15), "15"),
    (lambda ask: setattr(ask.context, "env_id", "other"), "no route"),
]


@pytest.mark.parametrize(("spoil", "says"), SPOILED)
def test_a_predict_that_cannot_be_is_refused_and_the_stream_goes_on(
    serve: Serve, raw: Raw, messages: Any, spoil: Callable[[Any], object], says: str
) -> None:
    client = raw(serve(two))
    client.resolve()
    request = messages.asking(EPISODE)
    spoil(request)

    error = client.ask(predict=request).error

    assert error.code == INTERNAL
    assert says in error.message
    assert client.predict(EPISODE) == [[2]]


def test_what_a_model_raises_is_told_with_its_class_and_traceback(serve: Serve, raw: Raw) -> None:
    def stumble(observation: Any) -> int:
        raise KeyError("the gripper")

    client = raw(serve(stumble))
    client.resolve()

    error = client.predict(EPISODE)

    assert (error.code, error.is_recoverable) == (INTERNAL, False)
    assert error.message == "internal error: KeyError: 'the gripper'"
    assert "in stumble" in error.debug_info
    assert client.predict(EPISODE).message == error.message, "the stream goes on"


def test_a_model_that_wants_to_exit_is_a_failure_of_the_model(serve: Serve, raw: Raw) -> None:
    def leave(observation: Any) -> int:
        raise SystemExit(3)

    client = raw(serve(leave))
    client.resolve()

    assert client.predict(EPISODE).message == "internal error: SystemExit: 3"
    assert client.predict(EPISODE).code == INTERNAL


@pytest.mark.parametrize("action", [5, -1, "left", None, [1, 2], float("nan")])
def test_an_answer_that_is_no_action_is_refused(serve: Serve, raw: Raw, action: object) -> None:
    client = raw(serve(lambda observation: action))
    client.resolve()

    assert client.predict(EPISODE).code == INTERNAL


def test_observations_are_not_checked_for_nan_and_bounds(serve: Serve, raw: Raw) -> None:
    client = raw(serve(lambda observation: int(np.isnan(observation).all() or observation[0] > 99)))
    client.resolve()

    assert client.predict(EPISODE, x=float("nan")) == [[1]]
    assert client.predict(EPISODE, x=1e6) == [[1]]


def test_a_request_for_nothing_is_unsupported(serve: Serve, raw: Raw) -> None:
    client = raw(serve(two))

    assert client.ask().error.code == UNSUPPORTED
    assert client.resolve().HasField("resolve_adapter")


@pytest.mark.parametrize("kind", ["reset_adapter", "release_adapter"])
def test_resets_and_releases_need_a_name(serve: Serve, raw: Raw, kind: str) -> None:
    client = raw(serve(two))
    made: dict[str, Any] = {
        "reset_adapter": pb.ResetAdapterRequest,
        "release_adapter": pb.ReleaseAdapterRequest,
    }
    nameless = made[kind](context=pb.AdapterContext(session_id="s"))

    assert client.ask(**{kind: made[kind]()}).error.code == INVALID
    assert client.ask(**{kind: nameless}).error.code == INVALID


def test_a_release_may_be_repeated_and_ends_the_route(
    serve: Serve, raw: Raw, messages: Any
) -> None:
    client = raw(serve(two))
    client.resolve()
    release = pb.ReleaseAdapterRequest(context=messages.context("e"), reason="done")

    assert client.ask(release_adapter=release).HasField("release_adapter")
    assert client.ask(release_adapter=release).HasField("release_adapter")
    assert "no route" in client.predict(EPISODE).message


def test_grouped_predicts_are_answered_in_order_and_a_bad_one_fails_alone(
    serve: Serve, raw: Raw, messages: Any
) -> None:
    client = raw(serve(lambda observation: int(observation[0])))
    client.resolve("a")
    client.resolve("b")
    ask = messages.asking
    groups = [
        ask(EPISODE, env_id="a", x=1),
        ask(EPISODE, env_id="nobody"),
        ask(EPISODE, ("other", None), env_id="b", x=2),
        ask(EPISODE, env_id="a", x=3),
    ]

    answer = client.ask(grouped_predict=pb.GroupedPredictRequest(groups=groups)).grouped_predict

    found = [
        result.error.code
        if result.HasField("error")
        else [np.frombuffer(one.leaves[0], "<i8").tolist() for one in result.response.actions]
        for result in answer.results
    ]
    assert found == [[[1]], INTERNAL, [[2, 2]], [[3]]]
    assert not client.ask(grouped_predict=pb.GroupedPredictRequest()).grouped_predict.results


def test_answers_carry_the_times_of_their_parts(serve: Serve, raw: Raw, messages: Any) -> None:
    client = raw(serve(two))
    client.resolve()

    answer = client.ask(predict=messages.asking(EPISODE))

    parts = [answer.decode_ns, answer.user_ns, answer.encode_ns, answer.queue_ns]
    assert all(part > 0 for part in parts)
    assert sum(parts) <= answer.endpoint_total_ns
    assert answer.held_episodes == 1
    assert answer.HasField("in_flight")
    assert answer.predict.context.env_id == "e"


def test_bytes_that_are_no_message_end_the_stream_with_a_reason(serve: Serve, raw: Raw) -> None:
    server = serve(two)
    client = raw(server)
    client.send_bytes(b"\xff\xff\xff")

    with pytest.raises(Exception, match="not a request of this protocol") as caught:
        client.take()

    assert "ProtocolException" in "".join(traceback.format_exception_only(caught.value))
    assert raw(server).resolve().HasField("resolve_adapter"), "other clients go on"
