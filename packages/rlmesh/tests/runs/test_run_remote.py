"""Runs against real servers, over real gRPC."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
import rlmesh
import rlmesh.numpy
from rlcore import (
    Endpoint,
    IdentityError,
    InvalidActionError,
    RunFailed,
    RunInterrupted,
    ServerUnreachable,
    register,
    unregister,
)
from rlmesh import EnvServer, RunResult

SEEDS = [3, 1, 4, 15]


def make() -> Any:
    return gym.make("CartPole-v1")


def balance(observation: Any) -> int:
    return int(observation[2] + observation[3] > 0)


BALANCE = rlmesh.numpy.Model(balance)
RIGHT = rlmesh.numpy.Model(lambda observation: 1)


@pytest.mark.parametrize("scheme", ["tcp", "unix"])
def test_a_run_by_address_agrees_with_a_local_one(scheme: str, tmp_path: Path) -> None:
    address = "tcp://127.0.0.1:0" if scheme == "tcp" else f"unix://{tmp_path}/env.sock"
    local = rlmesh.run(BALANCE, make(), seeds=SEEDS)

    with EnvServer(make, address) as server:
        remote = rlmesh.run(BALANCE, server.address, seeds=SEEDS)

    assert local.agrees_with(remote) == ()
    assert local.environment == remote.environment
    assert remote.coverage == (4, 4, 0)


@pytest.mark.parametrize("model", [BALANCE, rlmesh.RANDOM_SAMPLE])
def test_every_kind_of_target_gives_the_same_episodes(model: object) -> None:
    with EnvServer(make) as server:
        targets: dict[str, Any] = {
            "local": make(),
            "factory": make,
            "address": server.address,
            "server": server,
            "endpoint": Endpoint(server.address),
            "numpy handle": rlmesh.numpy.RemoteEnv(server.address),
            "native handle": rlmesh.RemoteEnv(server.address),
        }
        results = {
            name: rlmesh.run(
                model, env, seeds=SEEDS, max_episode_steps=60, close_env="handle" in name
            )
            for name, env in targets.items()
        }

    for name, result in results.items():
        assert results["local"].agrees_with(result) == (), name


def test_a_native_model_sees_the_same_locally_and_remotely() -> None:
    def balance_natively(observation: rlmesh.Tensor) -> int:
        return balance(np.asarray(observation))

    model = rlmesh.Model(balance_natively)
    with EnvServer(make) as server:
        remote = rlmesh.run(model, server.address, seeds=SEEDS)

    assert remote.agrees_with(rlmesh.run(model, make(), seeds=SEEDS)) == ()


def test_a_wrapped_handle_is_a_local_environment_with_a_remote_inside() -> None:
    with EnvServer(make) as server, rlmesh.numpy.RemoteEnv(server.address) as handle:
        result = rlmesh.run(BALANCE, gym.wrappers.TimeLimit(handle, 20), seeds=SEEDS)

        assert {episode.steps for episode in result.episodes} == {20}
        assert {episode.outcome for episode in result.episodes} == {"truncated"}


def crash(seed: int | None, step: int) -> None:
    if (seed, step) == (1, 2):
        raise ZeroDivisionError("torque")


def test_a_crash_on_the_server_costs_one_episode(corridor: Any) -> None:
    with EnvServer(lambda: corridor(on_step=crash)) as server:
        result = rlmesh.run(RIGHT, server.address, episodes=3)

    assert [e.outcome for e in result.episodes] == ["completed", "env_error", "completed"]
    assert "ZeroDivisionError: torque" in (result.episodes[1].error or "")


def test_local_and_remote_crashes_are_the_same_outcome(corridor: Any) -> None:
    local = rlmesh.run(RIGHT, corridor(on_step=crash), episodes=3)
    with EnvServer(lambda: corridor(on_step=crash)) as server:
        remote = rlmesh.run(RIGHT, server.address, episodes=3)

    assert local.agrees_with(remote) == ()


def test_an_action_outside_the_space_is_the_models_error_remotely_too() -> None:
    wrong = rlmesh.numpy.Model(lambda observation: 7)
    with EnvServer(make) as server, pytest.raises(InvalidActionError):
        rlmesh.run(wrong, server.address)


class StopsAt(rlmesh.RunHooks):
    """Does something at the second step of one episode."""

    def __init__(self, episode: int, act: Callable[[], object]) -> None:
        self._episode = episode
        self._act = act

    def on_step(self, event: rlmesh.StepEvent) -> None:
        if (event.episode, event.step) == (self._episode, 1):
            self._act()


def test_a_server_that_goes_away_leaves_the_finished_episodes(corridor: Any) -> None:
    with EnvServer(lambda: corridor(5)) as server, pytest.raises(RunFailed) as caught:
        rlmesh.run(RIGHT, server.address, episodes=4, hooks=StopsAt(2, server.shutdown))

    partial = caught.value.partial
    assert isinstance(partial, RunResult)
    outcomes = [episode.outcome.value for episode in partial.episodes]
    assert outcomes == ["completed", "completed", "infra_error"]
    assert partial.coverage == (4, 2, 1)
    assert server.address in str(caught.value)


def test_a_server_that_comes_back_is_dialled_again(corridor: Any) -> None:
    servers = [EnvServer(lambda: corridor(5))]
    servers[0].start()

    def restart() -> None:
        servers[0].shutdown()
        servers.append(EnvServer(lambda: corridor(5), servers[0].address))
        servers[1].start()

    try:
        result = rlmesh.run(RIGHT, servers[0].address, episodes=3, hooks=StopsAt(0, restart))
    finally:
        servers[-1].shutdown()

    outcomes = [episode.outcome.value for episode in result.episodes]
    assert outcomes == ["infra_error", "completed", "completed"]


def test_ctrl_c_ends_a_run_that_waits_for_a_server(corridor: Any) -> None:
    released = threading.Event()

    def hang(seed: int | None, step: int) -> None:
        if (seed, step) == (1, 2):
            os.kill(os.getpid(), signal.SIGINT)
            released.wait(30)

    with EnvServer(lambda: corridor(on_step=hang)) as server:
        with pytest.raises(KeyboardInterrupt) as caught:
            rlmesh.run(RIGHT, server.address, episodes=3)
        released.set()

    assert isinstance(caught.value, RunInterrupted)
    partial = caught.value.partial
    assert isinstance(partial, RunResult)
    assert [episode.outcome.value for episode in partial.episodes] == ["completed", "cancelled"]


def test_a_step_that_hangs_is_a_timeout_and_the_run_goes_on(corridor: Any) -> None:
    released = threading.Event()

    def hang(seed: int | None, step: int) -> None:
        if (seed, step) == (1, 2):
            released.wait(30)

    with EnvServer(lambda: corridor(on_step=hang)) as server:
        handle = rlmesh.numpy.RemoteEnv(server.address, request_timeout_seconds=0.5)
        result = rlmesh.run(RIGHT, handle, episodes=3, close_env=True)
        released.set()

    outcomes = [episode.outcome.value for episode in result.episodes]
    assert outcomes == ["completed", "timeout", "completed"]


def test_another_environment_at_the_same_address_is_not_mixed_in(corridor: Any) -> None:
    servers = [EnvServer(lambda: corridor(5))]
    servers[0].start()

    def replace() -> None:
        servers[0].shutdown()
        servers.append(EnvServer(make, servers[0].address))
        servers[1].start()

    try:
        with pytest.raises(
            RunFailed, match=r"the environment was .* and is now CartPole-v1"
        ) as caught:
            rlmesh.run(RIGHT, servers[0].address, episodes=3, hooks=StopsAt(0, replace))
    finally:
        servers[-1].shutdown()

    assert isinstance(caught.value.partial, RunResult)
    assert caught.value.partial.coverage.scored == 0


def test_an_environment_that_is_not_the_registered_one_is_not_run() -> None:
    with EnvServer(make) as server:
        endpoint = Endpoint(
            server.address, environment_name="X", contract_digest="sha256:" + "0" * 64
        )
        with pytest.raises(IdentityError):
            rlmesh.run(BALANCE, endpoint)


def test_the_registered_identity_is_in_the_result() -> None:
    with EnvServer(make) as server:
        endpoint = Endpoint(
            server.address,
            environment_name="CartPole-Prod",
            version=3,
            contract_digest=server.env_contract.digest,
        )
        result = rlmesh.run(BALANCE, endpoint)

    assert result.environment == rlmesh.EnvironmentIdentity(
        "CartPole-Prod", 3, server.env_contract.digest
    )


def test_an_address_of_a_registered_scheme_is_resolved() -> None:
    with EnvServer(make) as server:
        here = Endpoint(
            server.address,
            environment_name="CartPole-Prod",
            version=3,
            contract_digest=server.env_contract.digest,
        )

        def lookup(uri: str, *, timeout: float | None) -> Endpoint:
            assert uri == "memory://CartPole-Prod@3"
            return here

        register("memory", lookup)
        try:
            result = rlmesh.run(BALANCE, "memory://CartPole-Prod@3", seeds=[1])
        finally:
            unregister("memory")

    assert str(result.environment).startswith("CartPole-Prod@3 (sha256:")


def test_a_handle_whose_environment_was_replaced_ends_the_run_with_what_was_finished(
    corridor: Any,
) -> None:
    servers = [EnvServer(lambda: corridor(5))]
    servers[0].start()
    expected = Endpoint(servers[0].address, contract_digest=servers[0].env_contract.digest)

    def replace() -> None:
        servers[0].shutdown()
        servers.append(EnvServer(make, servers[0].address))
        servers[1].start()

    try:
        handle = rlmesh.numpy.RemoteEnv(expected)
        with pytest.raises(IdentityError) as caught:
            rlmesh.run(RIGHT, handle, episodes=4, hooks=StopsAt(1, replace), close_env=True)
    finally:
        servers[-1].shutdown()

    partial = caught.value.__dict__["partial"]
    assert isinstance(partial, RunResult)
    assert partial.coverage.scored == 1


def test_an_endpoint_that_now_serves_another_environment_ends_the_run(corridor: Any) -> None:
    servers = [EnvServer(lambda: corridor(5))]
    servers[0].start()
    expected = Endpoint(servers[0].address, contract_digest=servers[0].env_contract.digest)

    def replace() -> None:
        servers[0].shutdown()
        servers.append(EnvServer(make, servers[0].address))
        servers[1].start()

    try:
        with pytest.raises(IdentityError) as caught:
            rlmesh.run(RIGHT, expected, episodes=4, hooks=StopsAt(1, replace))
    finally:
        servers[-1].shutdown()

    partial = caught.value.__dict__["partial"]
    assert isinstance(partial, RunResult)
    assert partial.coverage == (4, 1, 1)


def test_closing_by_address_shuts_the_server_down_where_that_is_allowed() -> None:
    with EnvServer(make, options=rlmesh.ServeOptions(allow_remote_shutdown=True)) as server:
        rlmesh.run(BALANCE, server.address, max_episode_steps=5, close_env=True)
        assert server.wait(10)

    with EnvServer(make) as server:
        rlmesh.run(BALANCE, server.address, max_episode_steps=5, close_env=True)
        assert not server.wait(0.1)


def test_a_model_runs_and_opens_sessions_itself() -> None:
    with EnvServer(make) as server:
        result = BALANCE.run(server.address, seeds=[3], max_episode_steps=5)
        with BALANCE.session(server.address) as driven:
            driven.reset(seed=3)

    assert result.total_steps == 5


def test_nothing_at_the_address_is_an_error_that_names_it() -> None:
    with EnvServer(make) as server:
        address = server.address
    with pytest.raises(ServerUnreachable, match=address):
        rlmesh.run(BALANCE, address)


def test_a_session_drives_a_remote_environment() -> None:
    with EnvServer(make) as server, rlmesh.session(BALANCE, server.address) as driven:
        observation, _ = driven.reset(seed=3)
        steps = 0
        while not driven.done:
            observation, *_ = driven.step(driven.predict(observation))
            steps += 1

    assert steps == rlmesh.run(BALANCE, make(), seeds=[3]).total_steps
