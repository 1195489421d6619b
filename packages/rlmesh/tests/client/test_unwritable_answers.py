"""What a client hears where its server cannot write an answer."""

from collections.abc import Callable
from typing import Any

import gymnasium
import pytest
import rlmesh.transport.server_wire
from rlcore import EnvironmentException
from rlmesh.client.lanes import LaneChoice
from rlmesh.numpy import RemoteEnv

Serve = Callable[..., Any]


class Telling(gymnasium.Env[Any, Any]):
    observation_space = action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        return 0, {"told": 1}

    def step(self, action: Any) -> Any:
        return 0, 0.0, False, False, {"told": 1}


@pytest.mark.parametrize("operation", ["reset", "step"])
@pytest.mark.parametrize("lane", ["local", "tcp", "grpc"])
def test_an_answer_that_cannot_be_written_is_a_fault_with_its_traceback(
    lane: LaneChoice,
    operation: str,
    serve: Serve,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("no words for this")

    server = serve(Telling)
    with RemoteEnv(server.address, lane=lane) as env:
        env.reset()
        with monkeypatch.context() as patched:
            patched.setattr(rlmesh.transport.server_wire, "encode_meta_lenient", fails)
            with pytest.raises(EnvironmentException, match="RuntimeError: no words") as caught:
                env.reset() if operation == "reset" else env.step(env.action_space.sample())
        assert "in fails" in (caught.value.remote_traceback or "")
        env.reset()
        env.step(env.action_space.sample())
