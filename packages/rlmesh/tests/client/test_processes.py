"""A client belongs to the process that made it."""

from __future__ import annotations

import copy
import gc
import os
import pickle
import re
import signal
from collections.abc import Callable
from typing import Any

import pytest
import rlmesh
from rlcore import SessionClosed
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer

Serve = Callable[..., EnvServer]
PATIENCE_SECONDS = 20
CLIENTS = (rlmesh.RemoteEnv, RemoteEnv)

# Python's warning, and that of jax where another test has loaded it: the children are short.
forks = pytest.mark.filterwarnings(
    "ignore:.*use of fork.*:DeprecationWarning", r"ignore:os.fork\(\) was called.*:RuntimeWarning"
)


def said_by_a_child(act: Callable[[], str]) -> str:
    """Return what `act` returns in a forked process; empty when it hangs there or fails."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(PATIENCE_SECONDS)
        try:
            os.write(writer, act().encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as words:
        said = words.read()
    os.waitpid(child, 0)
    return said


@forks
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("operation", "arguments"), [("reset", ()), ("step", (0,)), ("render", ()), ("shutdown", ())]
)
@pytest.mark.usefixtures("each_lane")
def test_a_client_used_after_a_fork_says_so_at_once(
    serve: Serve, factory: Any, client: Any, operation: str, arguments: tuple[int, ...]
) -> None:
    def act() -> str:
        try:
            getattr(env, operation)(*arguments)
        except SessionClosed as error:
            return str(error)
        return "it went through"

    with client(serve(factory())) as env:
        env.reset()
        said = said_by_a_child(act)
        assert "was made in another process. Make a new one" in said
        env.step(0)


@forks
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.usefixtures("each_lane")
def test_closing_and_dropping_it_in_a_forked_process_leaves_the_session_alone(
    serve: Serve, factory: Any, client: Any
) -> None:
    made = factory()
    env = client(serve(made))
    env.reset()

    def act() -> str:
        nonlocal env
        env.close()
        env.close()
        del env
        gc.collect()
        return "closed"

    assert said_by_a_child(act) == "closed"
    env.step(0)
    env.close()
    assert made.made[0].steps == 1


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("duplicate", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_client_that_is_pickled_or_copied_says_to_make_a_new_one(
    serve: Serve, factory: Any, client: Any, duplicate: Callable[[object], object]
) -> None:
    with client(serve(factory())) as env:
        with pytest.raises(TypeError, match=re.escape(f"RemoteEnv({env.address!r})")):
            duplicate(env)
        env.reset()
