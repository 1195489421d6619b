"""What an environment is given reaches the process that serves it."""

import json
from pathlib import Path

import pytest
from rleaas import Client

from .conftest import Start

# An environment that has as many actions as its data has lines, and tells its tools.
MODULE = """
import json, os
import gymnasium
from gymnasium import spaces

def make():
    with open(os.environ["RLEAAS_ENVIRONMENT_FILE"]) as file:
        told = json.load(file)
    return Env(told)

class Env(gymnasium.Env):
    def __init__(self, told):
        self.told = told
        with open(told["data"][0]["path"]) as file:
            self.lines = file.read().split()
        self.observation_space = spaces.Discrete(2)
        self.action_space = spaces.Discrete(len(self.lines))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {"told": json.dumps(self.told), "last": self.lines[-1]}

    def step(self, action):
        return 0, 0.0, True, False, {}
"""


@pytest.mark.slow
def test_an_environment_finds_its_data_its_config_and_its_tools(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "given_of_test.py").write_text(MODULE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    running = start(real=True)
    with Client(base_url=running.server.url) as client:
        asset = client.DataAsset.upload(b"a\nb\nc\n", "lines.txt", "text/plain")
        env = client.Environment.create("E")
        client.Tools.register(env, "pay")
        env.configure_tools(tool_names=["pay"], approval_mode="block")
        env.attach_data(asset, {"as": "lines"})
        source = "python://given_of_test:make"
        env = client.Environment.create("E", source=source, config={"size": 3})
        env.wait_until_ready(timeout=50)
        with env.connect() as remote:
            _, info = remote.reset(seed=1)
            assert getattr(remote.action_space, "n", None) == 3

    told = json.loads(str(info["told"]))
    assert info["last"] == "c"
    assert told["config"] == {"size": 3}
    assert told["tool_access"] == {
        "access_pattern": None,
        "tool_names": ["pay"],
        "approval_mode": "block",
    }
    (given,) = told["data"]
    assert (given["name"], given["sha256"]) == ("lines.txt", asset.sha256)
    assert given["injection_config"] == {"as": "lines"}
    (file,) = (tmp_path / "data" / "logs" / "environments").glob("*.json")
    assert file.stat().st_mode & 0o077 == 0
