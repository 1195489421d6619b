"""What an author's code does wrong while it is described is told, within a bounded time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest
from rlcore import EnvironmentException
from rlmesh import RANDOM_SAMPLE, EnvFactory, Param, ParamSpec
from rlmesh._describe import describe
from rlmesh.numpy import Model
from rlmesh.params import ParamError
from rlmesh.runs.run import run
from rlmesh.server.env_server import EnvServer

MODULE = """
import os, sys, threading
import rlmesh

class Leaves(rlmesh.EnvFactory):
    def make(self):
        sys.exit(0)

class Vanishes(rlmesh.EnvFactory):
    def make(self):
        os._exit(0)

class Waits(rlmesh.EnvFactory):
    def make(self):
        threading.Event().wait()

class Neither:
    pass
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "odd.py").write_text(MODULE)
    (tmp_path / "leaving.py").write_text("raise SystemExit(0)")
    return tmp_path


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rlmesh", "describe", *arguments],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if name != "RLMESH_PYTHON"},
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )


def test_a_make_that_exits_stands_in_the_description(folder: Path) -> None:
    done = command(folder, "odd:Leaves")

    assert done.returncode == 0
    assert json.loads(done.stdout)["env_spec"]["error_type"] == "SystemExit"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("odd:Vanishes",), "ended the interpreter before it was described"),
        (("odd:Waits", "--timeout", "4"), "was not described within 4 s"),
        (("leaving:X",), "cannot be imported: SystemExit"),
        (("odd:Neither",), "--kind env or --kind model"),
        (("odd:Neither", "--kind", "env"), "makes no environments"),
    ],
    ids=["vanishes", "waits", "import", "neither", "kind"],
)
def test_what_cannot_be_described_is_an_error(
    arguments: tuple[str, ...], told: str, folder: Path
) -> None:
    done = command(folder, *arguments)

    assert (done.returncode, done.stdout) == (1, "")
    assert told in " ".join(done.stderr.split())


def test_a_make_that_returns_nothing_is_named() -> None:
    class Empty(EnvFactory):
        def make(self) -> Any:
            return None

    told = describe(Empty)["env_spec"]["error"]

    assert "Empty" in told
    assert "made no environment: it returned None" in told


def test_a_factory_whose_end_fails_is_told_beside_what_it_made() -> None:
    class Stuck(EnvFactory):
        def make(self) -> Any:
            return gymnasium.make("CartPole-v1")

        def close(self) -> None:
            raise OSError("the simulator does not stop")

    spec = describe(Stuck)["env_spec"]

    assert "action_space" in spec
    assert (spec["error"], spec["error_type"]) == ("the simulator does not stop", "OSError")


def test_a_default_of_load_has_to_be_what_is_declared() -> None:
    with pytest.raises(ParamError, match="the default of a parameter of"):

        class Deep(Model):  # pyright: ignore[reportUnusedClass]  # its making is refused
            params = ParamSpec(Param("depth", int, minimum=1))

            def load(self, depth: int = 0) -> None: ...
            def predict(self, observation: Any) -> Any:
                return 0


@pytest.mark.parametrize(
    ("param", "value"),
    [
        (Param("n", int, step=2), 10**9 + 1),
        (Param("n", int, step=2), 2**60 + 1),
        (Param("n", float, step=1), 1e9 + 0.5),
        (Param("n", int, maximum=2**53), 2**53 + 1),
        (Param("n", int, minimum=-(2**53)), -(2**53) - 1),
        (Param("n", int, maximum=5), 10**400),
        (Param("n", int, step=0.5, maximum=3), 10**400),
        (Param("n", int, step=7), 10**400),
    ],
    ids=str,
)
def test_integers_are_compared_as_integers(param: Param, value: object) -> None:
    with pytest.raises(ParamError):
        param.checked(value)


def test_floats_are_compared_as_far_as_floats_are_exact() -> None:
    tenths = Param("n", float, step=0.1, minimum=0.1)

    assert tenths.checked(0.1 * 3) == pytest.approx(0.3)
    assert tenths.checked(sum([0.1] * 10)) == pytest.approx(1)
    assert Param("n", int, step=3).checked(3 * 10**400) == 3 * 10**400
    with pytest.raises(ParamError, match="no multiple"):
        tenths.checked(0.3001)


@pytest.mark.parametrize(
    ("kind", "choices", "limits"),
    [
        (int, (1, "two"), {}),
        (int, (1, 9), {"maximum": 5}),
        ("list[int]", (1, 2.5), {}),
        (float, (0.1, 0.25), {"step": 0.1}),
        (str, ("a", None), {}),
    ],
    ids=str,
)
def test_a_choice_that_the_parameter_cannot_be_is_refused(
    kind: object, choices: tuple[object, ...], limits: Any
) -> None:
    with pytest.raises(ParamError, match="has a choice that it cannot be"):
        Param("n", kind, choices, **limits)
    assert Param("n", "int|None", (1, None)).checked(None) is None


def test_errors_call_a_factory_as_its_author_does() -> None:
    class Broken(EnvFactory):
        def make(self) -> Any:
            raise OSError("no display")

    with pytest.raises(EnvironmentException, match=r"Broken\.make raised OSError"):
        run(RANDOM_SAMPLE, Broken, seeds=[1], progress=False)
    with pytest.raises(EnvironmentException, match=r"Broken\.make could not make"):
        EnvServer(Broken, "tcp://127.0.0.1:0")
