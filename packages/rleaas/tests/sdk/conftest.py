"""One server, which all conversations of a session are held with."""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from rleaas.server.local import LocalServer
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState

from ..server.conftest import (  # noqa: TID252 - the stand-ins of the server's own tests
    IMPATIENT,
    FakeMesh,
    export_command,
    worker_command,
)
from .colours import COLOURS, Colour

PLAN: Sequence[tuple[str, dict[str, object]]] = (
    ("started", {}),
    ("log", {"line": "one"}),
    ("metric", {"episode": 1, "avg_reward": 1.0, "episode_reward": 1.0}),
    ("checkpoint", {"episode": 1, "avg_reward": 1.0, "content": "weights"}),
    ("log", {"line": "two"}),
    ("completed", {}),
)

EVALUATION: Sequence[tuple[str, dict[str, object]]] = (
    ("started", {}),
    *(
        (
            "episode",
            {
                "index": index,
                "seed": index,
                "steps": 4,
                "reward": 2.0 * index,
                "outcome": "completed",
                "success": None,
            },
        )
        for index in range(2)
    ),
    ("completed", {"results": {"mean_return": 1.0, "overall_score": 1.0}}),
)


def served(
    data: Path,
    *,
    port: int = 0,
    mesh: FakeMesh | None = None,
    plan: Sequence[tuple[str, dict[str, object]]] = PLAN,
    api_key: str | None = None,
) -> LocalServer:
    """Return a server whose environments are stand-ins and whose workers follow a plan."""
    stand_in = FakeMesh() if mesh is None else mesh

    def make_state(settings: ServerSettings) -> ServerState:
        return ServerState(
            settings,
            launcher=stand_in,
            inspect=stand_in.inspect,
            command=lambda kind, job_id, url: worker_command(
                EVALUATION if kind == "evaluation" else plan
            )(kind, job_id, url),
            patience=IMPATIENT,
            export=export_command,
        )

    return LocalServer(data, port, api_key=api_key, make_state=make_state)


@pytest.fixture(scope="session")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    with served(tmp_path_factory.mktemp("platform")) as server:
        yield server


@pytest.fixture(params=COLOURS)
def colour(request: pytest.FixtureRequest, platform: LocalServer) -> Colour:
    return Colour(str(request.param), platform.url)


@pytest.fixture
def name() -> str:
    """A name that no other conversation has used."""
    return f"Env {secrets.token_hex(4)}/é"
