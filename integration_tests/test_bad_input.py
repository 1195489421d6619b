"""Bad input, end to end: each failure names the thing and what next, and the server stays up."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import httpx
import numpy as np
import pytest
import rlmesh
from rlcore import (
    BindError,
    CallTimeout,
    CheckpointNotFound,
    ConfigurationError,
    EnvironmentException,
    EnvironmentFailed,
    EnvironmentNotFound,
    EvaluationNotFound,
    InvalidActionError,
    InvalidRequestError,
    PlatformUnreachable,
    ServerUnreachable,
    TrainingJobNotFound,
    TransportError,
)
from rleaas import Client
from rleaas.cli.main import main
from rlmesh.numpy import RemoteEnv

if TYPE_CHECKING:
    from rleaas import Blocking, EnvironmentResource
    from rleaas.server.local import LocalServer

    from integration_tests.conftest import Commands

pytestmark = pytest.mark.timeout(120)

Create = Callable[[str], "EnvironmentResource[Blocking]"]


@pytest.fixture(autouse=True)
def _the_server_stays_up(client: Client) -> Iterator[None]:
    yield
    assert client.ping()


@pytest.fixture
def create(client: Client) -> Create:
    """Register one of the test worlds under its own name."""

    def make(world: str) -> EnvironmentResource[Blocking]:
        return client.Environment.create(world, source=f"python://worlds:{world}")

    return make


def test_an_unknown_gym_id_fails_the_environment_and_names_the_id(client: Client) -> None:
    environment = client.Environment.create("Unknown-Id", source="gym://CartPoll-v1")
    with pytest.raises(EnvironmentFailed, match="CartPoll-v1") as caught:
        environment.wait_until_ready(timeout=90)
    assert caught.value.hint
    with pytest.raises(EnvironmentFailed, match="CartPoll-v1"):
        environment.connect()


def test_a_factory_that_raises_fails_the_environment_with_its_own_words(create: Create) -> None:
    with pytest.raises(EnvironmentFailed, match=r"RuntimeError.*licence has run out"):
        create("refusing").wait_until_ready(timeout=90)


def test_the_command_line_tells_why_an_environment_failed(rleaas: Commands) -> None:
    told = rleaas("env", "create", "Cli-Unknown", "--source", "gym://CartPoll-v1")
    assert told.returncode == 1
    assert told.stderr.startswith("error: Environment 'Cli-Unknown")
    assert "CartPoll-v1" in told.stderr
    assert "Traceback" not in told.stderr
    assert "failed" in rleaas("env", "get", "Cli-Unknown").stdout


def test_a_taken_port_is_named_by_both_planes(rleaas: Commands, tmp_path: object) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        told = rleaas("serve", "--port", str(port), "--data", str(tmp_path))
        assert told.returncode != 0
        assert told.stderr.startswith("error: ")
        assert str(port) in told.stderr
        assert "Traceback" not in told.stderr
        with pytest.raises(BindError, match=str(port)):
            rlmesh.EnvServer(rlmesh_line(), f"tcp://127.0.0.1:{port}")


def rlmesh_line() -> object:
    import gymnasium

    return gymnasium.make("CartPole-v1")


def test_a_server_that_is_not_running_is_unreachable_by_its_address() -> None:
    nobody = Client(base_url="http://127.0.0.1:9", retries=1)
    with nobody, pytest.raises(PlatformUnreachable, match=r"127\.0\.0\.1:9"):
        nobody.ping()
    with pytest.raises(ServerUnreachable, match=r"127\.0\.0\.1:9"):
        RemoteEnv("tcp://127.0.0.1:9", connect_timeout_seconds=1)


@pytest.mark.parametrize(
    "action",
    [
        np.zeros(3, np.float32),
        np.zeros((2, 1), np.float32),
        [0.0],
        np.array([0.0, np.nan], np.float32),
        np.array(["a", "b"]),
        {"push": 1.0},
        None,
    ],
    ids=["arity", "shape", "short list", "NaN", "dtype", "mapping", "None"],
)
def test_an_action_outside_its_space_is_refused_and_the_episode_goes_on(
    create: Create, action: object
) -> None:
    environment = create("Pushing").wait_until_ready(timeout=90)
    with environment.connect() as env:
        env.reset(seed=1)
        with pytest.raises(InvalidActionError) as caught:
            env.step(action)
        assert "$" in caught.value.path
        assert isinstance(caught.value, ValueError)
        observation, *_ = env.step(np.zeros(2, np.float32))
        assert observation.shape == (2,)


@pytest.mark.parametrize("action", [2, -1, 0.5, "left", float("nan")])
def test_a_choice_that_is_not_there_is_refused(create: Create, action: object) -> None:
    environment = create("Line").wait_until_ready(timeout=90)
    with environment.connect() as env:
        env.reset(seed=1)
        with pytest.raises(InvalidActionError):
            env.step(action)
        env.step(1)


def test_a_crash_in_a_step_arrives_whole_and_the_session_can_reset(create: Create) -> None:
    environment = create("Crashing").wait_until_ready(timeout=90)
    with environment.connect() as env:
        for _ in range(2):
            env.reset(seed=11)
            env.step(0)
            env.step(0)
            with pytest.raises(EnvironmentException) as caught:
                env.step(0)
            error = caught.value
            assert error.remote_type == "ZeroDivisionError"
            assert "the third step divides by zero" in str(error)
            assert "worlds.py" in (error.remote_traceback or "")
            assert (error.operation, error.seed, error.step) == ("step", 11, 3)


def test_a_process_that_dies_in_a_step_is_a_transport_failure_and_comes_back(
    create: Create,
) -> None:
    environment = create("Dying").wait_until_ready(timeout=90)
    with environment.connect() as env:
        env.reset(seed=1)
        env.step(0)
        env.step(0)
        with pytest.raises(TransportError):
            env.step(0)
    with environment.connect() as again:
        again.reset(seed=1)
        again.step(0)


def test_a_hang_in_a_step_ends_with_the_callers_patience(create: Create) -> None:
    environment = create("Hanging").wait_until_ready(timeout=90)
    with environment.connect(request_timeout_seconds=1.0) as env:
        env.reset(seed=1)
        env.step(0)
        env.step(0)
        with pytest.raises(CallTimeout) as caught:
            env.step(0)
        assert caught.value.operation == "step"
    with environment.connect() as again:
        assert again.reset(seed=2)[0].shape == (2,)


def test_failures_of_the_environment_are_outcomes_of_an_evaluation_never_scores(
    create: Create,
) -> None:
    environment = create("Crashing").wait_until_ready(timeout=90)
    env = environment.connect()
    result = rlmesh.run(rlmesh.Model(lambda _: 1), env, seeds=[1, 2], close_env=True)
    assert [str(episode.outcome) for episode in result.episodes] == ["env_error", "env_error"]
    assert [episode.reward for episode in result.episodes] == [None, None]
    assert (result.coverage.scored, result.coverage.failed) == (0, 2)


def test_unknown_ids_are_not_found_by_kind_and_reference(client: Client) -> None:
    with pytest.raises(EnvironmentNotFound) as environment:
        client.Environment.get("nowhere")
    assert environment.value.ref == "nowhere"
    with pytest.raises(EnvironmentNotFound):
        client.TrainingJob.run(environment_name="nowhere", algorithm="PPO")
    with pytest.raises(TrainingJobNotFound) as job:
        client.TrainingJob.get("job_nothing")
    assert job.value.job_id == "job_nothing"
    with pytest.raises(TrainingJobNotFound):
        client.TrainingJob.cancel("job_nothing")
    with pytest.raises(EvaluationNotFound):
        client.Evaluation.get_report("eval_nothing")
    with pytest.raises(CheckpointNotFound):
        client.Evaluation.run("ckpt_nothing", seeds=[1])


@pytest.mark.parametrize(
    "command",
    [
        ("env", "get", "nowhere"),
        ("env", "endpoint", "nowhere"),
        ("job", "start", "nowhere"),
        ("job", "status", "job_nothing"),
        ("job", "logs", "job_nothing"),
        ("job", "cancel", "job_nothing"),
        ("job", "checkpoints", "job_nothing"),
        ("eval", "run", "ckpt_nothing"),
        ("eval", "report", "eval_nothing"),
    ],
    ids=" ".join,
)
def test_the_command_line_says_not_found_with_3_and_where_to_look(
    command: tuple[str, ...], server: LocalServer, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--base-url", server.url]) == 3
    told = capfd.readouterr()
    assert told.out == ""
    assert told.err.startswith("error: ")
    assert "nothing" in told.err or "nowhere" in told.err
    assert "\nhint: " in told.err


@pytest.mark.parametrize("name", ["a#b", "a?b", "..", "", " ", "a\nb"])
def test_a_name_that_no_path_can_carry_is_refused_or_not_found_but_never_another_thing(
    client: Client, name: str
) -> None:
    with pytest.raises((ConfigurationError, InvalidRequestError)):
        client.Environment.create(name, source="gym://CartPole-v1")
    with pytest.raises((ConfigurationError, EnvironmentNotFound, InvalidRequestError)):
        client.Environment.get(name)


def test_a_uri_that_names_no_environment_is_refused(client: Client) -> None:
    for uri in ("rleaas://a#b", "rleaas://", "rleaas://x@0", "rleaas://x@two"):
        with pytest.raises(ConfigurationError, match=r"rleaas://|environment"):
            RemoteEnv(uri)


@pytest.mark.parametrize("body", [b"{not json", b"", b"[1, 2]", b'"text"', b"\xff\xfe"])
@pytest.mark.parametrize(
    "path", ["/api/custom-environments", "/train/anything", "/api/evaluations"]
)
def test_a_body_that_is_not_a_json_object_is_told_so(
    server: LocalServer, path: str, body: bytes
) -> None:
    answer = httpx.post(
        server.url + path, content=body, headers={"content-type": "application/json"}
    )
    assert answer.status_code in (400, 422)
    problem = answer.json()
    assert problem["detail"]
    assert problem["code"] in ("invalid_json", "invalid_request")
    assert problem["request_id"] == answer.headers["x-request-id"]


def test_a_typo_in_a_training_config_is_refused_with_the_nearest_key(
    client: Client, create: Create, rleaas: Commands
) -> None:
    environment = create("Line").wait_until_ready(timeout=90)
    with pytest.raises((ConfigurationError, InvalidRequestError), match="learning_rat") as caught:
        client.TrainingJob.run(
            environment_name=environment.name, algorithm="PPO", config={"learning_rat": 0.1}
        )
    assert "learning_rate" in str(caught.value)

    told = rleaas("job", "start", environment.name, "--config", "gama=0.9")
    assert told.returncode == 2
    assert "'gama'" in told.stderr
    assert "'gamma'" in told.stderr
    assert "Traceback" not in told.stderr


@pytest.mark.parametrize(
    ("algorithm", "config"),
    [
        ("DQN", {"n_epochs": 3}),
        ("PPO", {"gamma": 1.5}),
        ("PPO", {"gamma": "high"}),
        ("PPO", {"batch_size": 0}),
        ("PPO", {"reward_fn": "my_rewards.py"}),
        ("PPO", {"episodes": 0}),
    ],
    ids=json.dumps,
)
def test_what_cannot_be_trained_is_refused_before_a_job_exists(
    client: Client, create: Create, algorithm: str, config: dict[str, object]
) -> None:
    environment = create("Line").wait_until_ready(timeout=90)
    before = len(client.TrainingJob.list())
    with pytest.raises((ConfigurationError, InvalidRequestError)) as caught:
        client.TrainingJob.run(
            environment_name=environment.name, algorithm=algorithm, config=config
        )
    assert algorithm in str(caught.value) or any(key in str(caught.value) for key in config)
    assert len(client.TrainingJob.list()) == before
