"""Factories that are served: what clients get, and what is called when."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rlmesh
from rlcore import EnvironmentException
from rlmesh import EnvServer, ServeOptions
from rlmesh.numpy import RemoteEnv, RemoteVectorEnv
from rlmesh.params import ParamError
from rlmesh.server.factories import begin, end, opened
from rlmesh.server.sources import load_factory

Log = Callable[[], list[str]]
OPTIONS_KEY, BINDING_KEY = rlmesh.ENV_RESET_OPTIONS_KEY, "rlmesh.params.v1.binding"


def derived(base: Any, **body: Any) -> Any:
    return type("Derived", (base,), body)


def raising(error: Exception) -> Callable[..., Any]:
    def method(self: object, size: int = 3, mode: str = "plain") -> Any:
        raise error

    return method


def test_a_started_factory_serves_what_it_was_asked_for_and_is_closed_at_the_end(
    authored: Any, author_log: Log
) -> None:
    server = authored.Lines().start(size=2.0)
    try:
        with RemoteEnv(server.address) as env:
            observation, info = env.reset(seed=1, options={"trial_index": 4})
            metadata = env.metadata
        assert observation.shape == (2,)
        assert info["options"] == {"trial_index": 4}
        assert metadata[OPTIONS_KEY] == ["trial_index"]
        assert metadata[BINDING_KEY]["binding"] == {"size": 2}
        assert "factory closed" not in author_log()
    finally:
        server.shutdown()

    made = ["made 2", "closed"]
    assert author_log() == ["prepared", *made, *made, "factory closed"]


def test_a_class_of_factories_is_served_as_it_is(authored: Any, author_log: Log) -> None:
    with EnvServer(authored.Lines) as server, RemoteEnv(server) as env:
        assert env.reset()[0].shape == (3,)
        assert env.metadata[BINDING_KEY]["binding"] == {}

    assert author_log()[0] == "prepared"
    assert author_log()[-1] == "factory closed"


def test_every_client_gets_an_environment_of_its_own_of_one_prepared_factory(
    authored: Any, author_log: Log
) -> None:
    with authored.Lines().start() as server, RemoteEnv(server) as one, RemoteEnv(server) as other:
        one.reset()
        other.reset()
        one.step(0)
        assert one.step(0)[2]
        assert not other.step(0)[2]

    assert author_log().count("prepared") == 1
    assert author_log().count("made 3") == 3
    assert author_log().count("factory closed") == 1


def test_a_wrong_parameter_starts_nothing(authored: Any, author_log: Log) -> None:
    with pytest.raises(ParamError, match="size: 10 is more than 9"):
        authored.Lines().start(size=10)
    with pytest.raises(ParamError, match="size: 10 is more than 9"):
        load_factory("authored:Lines", {"size": 10})

    assert author_log() == []


def test_a_factory_that_cannot_make_is_closed_again(authored: Any, author_log: Log) -> None:
    failing = derived(authored.Lines, make=raising(ValueError("no level")))
    with pytest.raises(EnvironmentException, match="no level"):
        failing().start()

    assert author_log() == ["prepared", "factory closed"]


def test_what_prepare_and_close_raise_is_a_typed_failure_that_names_them(authored: Any) -> None:
    unprepared = derived(authored.Lines, prepare=raising(OSError("no disk")))
    with pytest.raises(EnvironmentException, match=r"prepare of the factory .*no disk") as caught:
        unprepared().start()
    assert caught.value.operation == "prepare"

    unclosed = derived(authored.Lines, close=raising(OSError("stuck")))
    server = unclosed().start()
    with pytest.raises(EnvironmentException, match=r"close of the factory .*stuck") as caught:
        server.shutdown()
    assert caught.value.operation == "close"


def test_two_servers_of_one_factory_share_one_preparation(authored: Any, author_log: Log) -> None:
    factory = authored.Lines()
    with factory.start():
        with factory.start():
            pass
        assert "factory closed" not in author_log()

    assert author_log().count("prepared") == 1
    assert author_log().count("factory closed") == 1


def test_a_factory_whose_preparation_failed_can_be_prepared_again() -> None:
    class Stubborn:
        tries = 0

        def prepare(self) -> None:
            self.tries += 1
            if self.tries == 1:
                raise OSError("not yet")

        def make(self) -> None: ...

    factory = Stubborn()
    with pytest.raises(EnvironmentException, match="not yet"):
        begin(factory)
    with opened(factory):
        assert factory.tries == 2
    end(factory)  # nobody uses it any more: nothing happens


def test_a_server_with_processes_prepares_in_each_of_them(authored: Any, author_log: Log) -> None:
    options = ServeOptions(isolation="process")
    with EnvServer(authored.Lines().with_params(size=2), options=options) as server:
        assert "prepared" in author_log()
        with RemoteEnv(server) as one, RemoteEnv(server) as other:
            one.reset()
            other.reset()
            assert one.metadata[BINDING_KEY]["binding"] == {"size": 2}

    log = author_log()
    assert log.count("prepared") == log.count("factory closed") == 2
    assert log.index("prepared") < log.index("made 2")


def test_lanes_are_made_one_by_one_and_keep_their_metadata(authored: Any, author_log: Log) -> None:
    with authored.Lines().start(num_envs=2, size=1) as server, RemoteVectorEnv(server) as envs:
        observations, _ = envs.reset(seed=3)
        assert observations.shape == (2, 1)
        assert envs.metadata[OPTIONS_KEY] == ["trial_index"]

    assert author_log().count("prepared") == author_log().count("factory closed") == 1


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_lanes_of_gymnasium_go_on_with_seeds_that_are_told(
    authored: Any, author_log: Log, mode: str
) -> None:
    server = authored.Lines().start(num_envs=2, vectorization_mode=mode, length=1)
    with server, RemoteVectorEnv(server) as envs:
        _, infos = envs.reset(seed=[10, 20])
        seeded = [list(infos["seeded"])]
        for _ in range(4):
            _, _, over, _, infos = envs.step(np.array([0, 0]))
            if not over.any():
                seeded.append(list(infos["seeded"]))
                assert list(infos["seed"]) == list(infos["seeded"])
        assert seeded == [[10, 20], [11, 21], [12, 22]]

    log = author_log()
    assert log.count("prepared") == log.count("factory closed") >= 1


def test_lanes_of_gymnasium_are_untagged(authored: Any) -> None:
    tagged = derived(authored.Lines, tags={"observation": {}, "action": {}})
    key = "rlmesh.adapters.v1.env_tags"
    with tagged().start(num_envs=2) as server, RemoteVectorEnv(server) as envs:
        assert key in envs.metadata
    with (
        tagged().start(num_envs=2, vectorization_mode="sync") as server,
        RemoteVectorEnv(server) as envs,
    ):
        assert key not in envs.metadata


def test_a_lane_of_gymnasium_has_to_be_gymnasiums() -> None:
    class Duck:
        observation_space = action_space = None

        def reset(self) -> None: ...
        def step(self) -> None: ...

    class Ducks(rlmesh.EnvFactory):
        def make(self) -> Duck:
            return Duck()

    with pytest.raises(EnvironmentException, match=r"Ducks\(\) made .*no gymnasium\.Env"):
        Ducks().start(num_envs=2, vectorization_mode="sync")


@pytest.mark.parametrize("name", ["torch", "jax"])
@pytest.mark.parametrize("mode", [None, "lanes", "sync"])
def test_actions_arrive_in_the_framework_of_the_factory(
    authored: Any, name: str, mode: str | None
) -> None:
    import gymnasium
    from gymnasium import spaces

    room: Any = getattr(rlmesh, name)
    library: Any = pytest.importorskip(name)
    arrays: Any = library.Tensor if name == "torch" else library.Array
    seen: list[bool] = []

    class Env(gymnasium.Env[Any, Any]):
        observation_space = spaces.Box(-1, 1, (2,), np.float32)
        action_space = spaces.Box(-1, 1, (2,), np.float32)

        def reset(self, **_: Any) -> tuple[Any, dict[str, Any]]:
            return np.zeros(2, np.float32), {}

        def step(self, action: Any) -> tuple[Any, Any, Any, bool, dict[str, Any]]:
            seen.append(isinstance(action, arrays))
            doubled = action * 2
            return doubled, doubled.sum(), doubled.sum() > 9, False, {}

    def make(self: object) -> Env:
        return Env()

    factory: Any = type("Theirs", (room.EnvFactory,), {"make": make})()
    stepped: Any
    if mode is None:
        with factory.start() as server, RemoteEnv(server) as env:
            env.reset()
            stepped = env.step(np.array([0.25, 0.5], np.float32))
            assert (stepped[0].tolist(), stepped[1]) == ([0.5, 1.0], 1.5)
    else:
        with (
            factory.start(num_envs=2, vectorization_mode=mode) as server,
            RemoteVectorEnv(server) as envs,
        ):
            envs.reset()
            stepped = envs.step(np.array([[0.25, 0.5], [0, 0.25]], np.float32))
            assert stepped[0].tolist() == [[0.5, 1.0], [0.0, 0.5]]
            assert stepped[1].tolist() == [1.5, 0.5]
    assert seen
    assert all(seen)


def test_clients_are_told_what_is_served_at_the_handshake(authored: Any) -> None:
    import json

    env: Any  # looked into: no public name shows what a peer says of itself
    with authored.Lines().start() as server, RemoteEnv(server) as env:
        extra = env._link.wires.dialled.welcome.peer.extra

    told = json.loads(extra[rlmesh.DESCRIBE_METADATA_KEY])
    described = rlmesh.describe(authored.Lines)
    assert told == described


def test_a_declared_edition_is_the_servers(authored: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(rlmesh.ConfigurationError, match="'1999'"):
        authored.Lines().start(workflow_edition="1999")
    with authored.Lines().start() as server:
        assert server.options.workflow_edition == "2026.06"
    monkeypatch.setenv("RLMESH_WORKFLOW_EDITION", "")
    with authored.Lines().start() as server:
        assert server.options.workflow_edition is None
