"""What commands do with an author's module: each runs as a process of its own."""

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import rlmesh
from rlmesh._bootstrap import sandbox_env
from rlmesh._cli import serve_env
from rlmesh._serving import load_env, load_env_entrypoint
from rlmesh.numpy import RemoteEnv, RemoteVectorEnv
from rlmesh.params import ParamError

Command = Callable[..., subprocess.CompletedProcess[str]]
Log = Callable[[], list[str]]


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder with a path that leaves room for a socket's name."""
    with tempfile.TemporaryDirectory(prefix="rlm") as folder:
        yield Path(folder)


@contextmanager
def served(
    folder: Path, *arguments: str, **variables: str
) -> Generator[tuple[str, subprocess.Popen[bytes]]]:
    """A server command with a ready descriptor, and the address that it wrote there."""
    reader, writer = os.pipe()
    process = subprocess.Popen(
        [sys.executable, "-m", *arguments, "--ready-fd", str(writer)],
        cwd=folder,
        env={**os.environ, **variables},
        pass_fds=[writer],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    os.close(writer)
    try:
        with open(reader, encoding="utf-8") as ready:  # noqa: PTH123 - a descriptor
            address = ready.readline().strip()
        yield address, process
    finally:
        process.kill()
        process.communicate()


def test_a_factory_is_served_by_its_name_with_parameters_that_are_checked(
    author_folder: Path, author_log: Log
) -> None:
    command = ("rlmesh", "serve", "authored:Lines", "--port", "0")
    with (
        served(author_folder, *command, "--kwargs-json", '{"size": 4.0}') as (address, process),
        RemoteEnv(address) as env,
    ):
        link: Any = env
        extra = link._link.wires.dialled.welcome.peer.extra
        assert env.reset()[0].shape == (4,)
        assert env.metadata["rlmesh.params.v1.binding"]["binding"] == {"size": 4}
        assert json.loads(extra[rlmesh.DESCRIBE_METADATA_KEY])["kind"] == "env"
        phases = [float(extra[f"rlmesh.startup.{phase}_ms"])
                  for phase in ("process", "imports", "env", "listen")]  # fmt: skip
        assert phases == sorted(phases)
        assert phases[0] > 0
        env.close()
        process.terminate()
        assert process.wait(20) == 0

    assert author_log()[0] == "prepared"
    assert author_log()[-1] == "factory closed"


def test_a_wrong_parameter_on_the_command_line_is_one_line(command: Command) -> None:
    wrong = ("--kwargs-json", '{"sise": 4}')
    done = command("rlmesh", "serve", "authored:Lines", "--port", "0", *wrong)

    assert done.returncode == 1
    assert done.stderr == ("error: Lines.make has no parameter 'sise'. Did you mean 'size'?\n")


def test_a_shared_environment_of_a_factory_is_prepared_and_closed_too(
    author_folder: Path, author_log: Log
) -> None:
    command = ("rlmesh", "serve", "authored:Lines", "--port", "0", "--shared")
    with served(author_folder, *command) as (address, process):
        with RemoteEnv(address) as env:
            env.reset()
        process.terminate()
        assert process.wait(20) == 0

    assert author_log() == ["prepared", "made 3", "closed", "factory closed"]


def test_describe_prints_the_envelope_alone_on_the_standard_output(command: Command) -> None:
    done = command("rlmesh", "describe", "authored:Lines", "--json")

    assert done.returncode == 0
    found = json.loads(done.stdout)
    assert found["target"] == {"entrypoint": "authored:Lines", "qualname": "authored:Lines"}
    assert "the author's module speaks" in done.stderr
    labelled = command("rlmesh", "describe", "authored:Lines", "--label")
    assert labelled.stdout == f"dev.rlmesh.describe={done.stdout}"


def test_describe_says_in_one_line_what_has_no_description(command: Command) -> None:
    done = command("rlmesh", "describe", "authored:nothing")

    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("error: 'authored:nothing': <module 'authored'")


@pytest.mark.slow
def test_check_looks_at_the_description_of_a_factory_and_plays_it(command: Command) -> None:
    done = command("rlmesh", "check", "authored:Lines", "--steps", "5", "--json", "-")

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    [described] = found["descriptions"]
    assert described["target"] == "authored:Lines"
    assert described["failed"] == []
    assert any("declares no tags" in line for line in described["warnings"])
    assert any(line.startswith("variants: huge: size: 100 is") for line in described["warnings"])
    assert described["passed"][0] == "env_spec: spaces read"
    assert len(found["reports"]) == 1


def test_check_of_a_model_looks_at_its_description_only(command: Command) -> None:
    done = command("rlmesh", "check", "authored:Policy")

    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0] == "authored:Policy as it is described"
    assert lines[1].startswith("warn  model_spec: authored:Policy declares no spec on the class")


@pytest.mark.slow
def test_the_checks_of_descriptions_are_a_command_with_buckets(
    command: Command, tmp_path: Path
) -> None:
    broken = command("rlmesh._describe", "--check-entrypoint", "authored:Broken", "--json")
    absent = command("rlmesh._describe", "--check-entrypoint", "authored:Absent", "--json")

    assert (broken.returncode, absent.returncode) == (1, 0)
    assert json.loads(broken.stdout)["failed"] == ["env_spec: ValueError: the level is missing"]
    assert json.loads(absent.stdout)["not_checked"] == [
        "env_spec: FileNotFoundError: assets/level.bin"
    ]
    label = command("rlmesh._describe", "authored:Lines", "--label").stdout.partition("=")
    labels = tmp_path / "labels.json"
    labels.write_text(json.dumps({label[0]: label[2]}))
    read = command("rlmesh._describe", "--check-labels", str(labels))
    assert read.returncode == 0
    assert "ok    env_spec: spaces read" in read.stdout.splitlines()
    labels.write_text("{}")
    unread = command("rlmesh._describe", "--check-labels", str(labels))
    assert (unread.returncode, unread.stdout) == (1, "")
    image = command("rlmesh._describe", "--check", "some/image")
    assert image.returncode == 1
    assert "this build drives no containers" in image.stderr
    assert command("rlmesh._describe").returncode == 2


def test_the_command_of_programs_serves_at_a_socket_of_its_own(
    author_folder: Path, short_folder: Path
) -> None:
    command = ("rlmesh._cli.serve_env", "--entrypoint", "authored:Lines", "--transport", "unix")
    with (
        served(author_folder, *command, XDG_RUNTIME_DIR=str(short_folder)) as (address, process),
        RemoteEnv(address) as env,
    ):
        path = Path(address.removeprefix("unix://"))
        assert path.name.startswith("authored-Lines-")
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert env.reset()[0].shape == (3,)
        env.close()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 0


def test_the_command_of_programs_serves_gymnasiums_ids_as_lanes(author_folder: Path) -> None:
    command = ("rlmesh._cli.serve_env", "--env", "CartPole-v1", "--num-envs", "2")
    more = (
        "--vectorization-mode",
        "sync",
        "--package",
        "authored",
        "--workflow-edition",
        "2026.06",
    )
    with (
        served(author_folder, *command, *more, "--workflow-edition", "2026.06") as (address, _),
        RemoteVectorEnv(address) as envs,
    ):
        assert envs.num_envs == 2
        assert address.startswith("tcp://127.0.0.1:")


@pytest.mark.parametrize(
    ("arguments", "code", "reason"),
    [
        (["--env", "NoSuch-v0"], 1, "NoSuch-v0"),
        (["--env", "CartPole-v1", "--package", "no_such_package"], 1, "no_such_package"),
        (["--env", "CartPole-v1", "--transport", "tcp", "--address", "unix:///x"], 2, "beside"),
        (["--env", "CartPole-v1", "--transport", "unix", "--address", "tcp://x:1"], 2, "beside"),
        ([], 2, "--entrypoint"),
    ],
)
def test_the_command_of_programs_says_what_is_wrong(
    arguments: list[str], code: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        found = serve_env.main(arguments)
    except SystemExit as misuse:
        found = int(misuse.code or 0)

    assert found == code
    assert reason in capsys.readouterr().err


def test_the_folder_of_sockets_has_to_be_the_users_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    open_folder = serve_env.socket_path("x").parent
    open_folder.chmod(0o755)

    with pytest.raises(rlmesh.RLMeshException, match="is not a folder of this user's alone"):
        serve_env.socket_path("x")


@contextmanager
def contained(folder: Path, short: Path, spec: dict[str, Any]) -> Generator[str]:
    """A container's entry point, as far as it goes without a container; at a socket."""
    place = f"unix://{short}/box.sock"
    process = subprocess.Popen(
        [sys.executable, "-m", "rlmesh._bootstrap.sandbox_env"],
        cwd=folder,
        env={
            **os.environ,
            "RLMESH_BOOTSTRAP_JSON": json.dumps({"spec": spec}),
            "RLMESH_ADDRESS": place,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines = iter(process.stdout.readline, "")
        assert any(line.startswith("serving ") for line in lines)
        yield place
    finally:
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_a_container_serves_the_factory_or_the_id_of_its_specification(
    author_folder: Path, short_folder: Path
) -> None:
    spec: dict[str, Any] = {
        "kind": "factory",
        "entrypoint": "authored:Lines",
        "kwargs": {"size": 2},
    }
    with contained(author_folder, short_folder, spec) as address, RemoteEnv(address) as env:
        assert env.reset()[0].shape == (2,)
    spec = {"kind": "gym", "env_id": "CartPole-v1", "imports": ["authored"], "num_envs": 2}
    with contained(author_folder, short_folder, spec) as address, RemoteVectorEnv(address) as envs:
        assert envs.num_envs == 2


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('{"spec": {"kind": "hf", "suite": "x"}}', "Hugging Face hub are not served by this build"),
        ('{"spec": {"kind": "vm"}}', "the kind of environment is 'vm'"),
        ('{"spec": {"kind": "gym"}}', "env_id of the spec is None"),
        ('{"spec": {"kind": "gym", "env_id": "X", "task": 1}}', "has no 'task'"),
        ('{"spec": {"kind": "gym", "env_id": "X", "kwargs": 1}}', "kwargs of the spec is 1"),
        ('{"spec": 3}', "has no object under 'spec'"),
        ("{", "holds no JSON"),
        (None, "nothing says what to serve"),
    ],
)
def test_a_container_says_what_is_wrong_with_its_specification(
    content: str | None,
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if content is not None:
        monkeypatch.setenv("RLMESH_BOOTSTRAP_JSON", content)

    assert sandbox_env.main([]) == 1
    assert reason in capsys.readouterr().err


def test_a_container_reads_a_file_and_is_reachable_from_outside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    def serve(arguments: list[str], *, prog: str) -> int:
        asked.append(arguments)
        return 0

    monkeypatch.setattr(sandbox_env, "serve", serve)
    file = tmp_path / "spec.json"
    file.write_text('{"spec": {"kind": "gym", "env_id": "X", "vectorization_mode": "sync"}}')

    assert sandbox_env.main([str(file)]) == 0
    assert sandbox_env.main([str(file), "more"]) == 1
    assert sandbox_env.main([str(tmp_path / "none.json")]) == 1
    assert "cannot be read" in capsys.readouterr().err
    assert asked == [
        ["gym://X", "--host", "0.0.0.0", "--port", "50051", "--allow-insecure",
         "--num-envs", "1", "--vectorization-mode", "sync"]
    ]  # fmt: skip


def test_loaders_make_what_a_name_stands_for(authored: Any, author_log: Log) -> None:
    env = load_env_entrypoint("authored:Lines", kwargs={"size": 2})
    lanes = load_env_entrypoint("authored:plain", num_envs=2, kwargs={"size": 1})
    vector = load_env("CartPole-v1", packages=["authored"], num_envs=3, vectorization_mode="sync")
    try:
        assert env.observation_space.shape == (2,)
        assert [lane.observation_space.shape for lane in lanes] == [(1,), (1,)]
        assert vector.num_envs == 3
    finally:
        vector.close()
    assert author_log() == ["prepared", "made 2", "made 1", "made 1"]
    with pytest.raises(ParamError, match="size: 10 is more than 9"):
        load_env_entrypoint("authored:Lines", kwargs={"size": 10})
    with pytest.raises(rlmesh.ConfigurationError, match="no_such_package"):
        load_env("CartPole-v1", packages=["no_such_package"])
