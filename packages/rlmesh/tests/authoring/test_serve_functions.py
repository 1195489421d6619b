"""`rlmesh.serve` as a module: its functions serve until the process is told to stop."""

import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import rlmesh.serve
from rlmesh import RemoteModel
from rlmesh.models.sources import given_model
from rlmesh.numpy import Model, RemoteEnv
from rlmesh.params import ParamError

START = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, "")
import rlmesh.serve, authored
try:
    rlmesh.serve.{call}
except KeyboardInterrupt:
    pass
"""


def always(observation: object) -> int:
    return 0


@pytest.fixture
def serving(author_folder: Path, tmp_path: Path) -> Any:
    """Run a script that serves at a socket, and stop it after what is done with the address."""

    def serve(call: str, use: Callable[[str], None]) -> None:
        place = f"unix://{folder}/s.sock"
        script = START.format(call=call.replace("AT", repr(place)))
        process = subprocess.Popen([sys.executable, "-c", script], cwd=author_folder)
        try:
            use(place)
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 0

    import tempfile

    with tempfile.TemporaryDirectory(prefix="rlm") as folder:
        yield serve


@pytest.mark.parametrize("source", ["authored.Lines", "authored.Lines()", "'authored:Lines'"])
def test_environments_are_served_by_a_function(
    serving: Any, author_log: Callable[[], list[str]], source: str
) -> None:
    def use(address: str) -> None:
        with RemoteEnv(address, wait_for_server_seconds=30) as env:
            assert env.reset()[0].shape == (2,)

    serving(f"serve_env({source}, AT, size=2)", use)

    assert author_log()[0] == "prepared"
    assert author_log()[-1] == "factory closed"


@pytest.mark.parametrize("source", ["authored.Policy", "'authored:Policy'"])
def test_models_are_served_by_a_function(serving: Any, source: str) -> None:
    def use(address: str) -> None:
        import gymnasium

        model = RemoteModel(address, wait_for_server_seconds=30)
        result = rlmesh.run(model, gymnasium.make("CartPole-v1"), seeds=[1])
        assert result.episodes[0].steps > 0

    serving(f"serve_model({source}, AT, binding={{'path': 'y'}})", use)


def test_what_a_program_has_becomes_a_model(authored: Any) -> None:
    made = Model(lambda observation: 0)

    assert given_model(made, {}) is made
    assert isinstance(given_model(authored.Policy, {"path": "z"}), authored.Policy)
    assert isinstance(given_model(always, {}), Model)
    with pytest.raises(ParamError, match="path: expected str, got int"):
        rlmesh.serve.serve_model(authored.Policy, binding={"path": 3})
    with pytest.raises(rlmesh.ConfigurationError, match="takes no keyword arguments"):
        given_model(made, {"path": "z"})
    with pytest.raises(rlmesh.ConfigurationError, match="is no model"):
        rlmesh.serve.serve_model(authored.Lines())
