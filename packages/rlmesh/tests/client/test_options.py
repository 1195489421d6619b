"""What a client can be told about connecting, and what it makes of nonsense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import rlmesh
from rlcore import Bearer, ConfigurationError, Secret
from rlmesh.numpy import RemoteEnv
from rlmesh.server.env_server import EnvServer

Serve = Callable[..., EnvServer]
CLIENTS = (rlmesh.RemoteEnv, RemoteEnv)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("tokn", "Did you mean token="),
        ("expected_digst", "Did you mean expected_digest="),
        ("request_timeout", "Did you mean request_timeout_seconds="),
        ("zzz", "The options are connect_timeout_seconds, "),
    ],
)
def test_an_unknown_option_is_refused_and_the_nearest_named(
    client: Any, name: str, meant: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"no option '{name}'. {meant}"):
        client("127.0.0.1:1", **{name: 5})


@pytest.mark.parametrize("text", ["geheim-é", "secret\n", " secret", "secret ", "sec\tret"])
def test_a_token_that_no_header_can_carry_is_refused_without_telling_it(text: str) -> None:
    ways: tuple[Any, ...] = ({"token": text}, {"credential": Bearer(Secret(text))})
    for options in ways:
        with pytest.raises(ConfigurationError, match="visible ASCII") as caught:
            RemoteEnv("127.0.0.1:1", **options)
        assert text.strip() not in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [
        {"token": 5},
        {"token": b"secret"},
        {"credential": "secret"},
        {"request_timeout_seconds": "5"},
        {"connect_timeout_seconds": True},
        {"connect_timeout_seconds": float("nan")},
        {"wait_for_server_seconds": None},
        {"wait_for_server_seconds": 1j},
        {"on_queue_position": 5},
        {"tls": ""},
        {"reconnect": "no"},
        {"strict_dtypes": 1},
        {"queue_timeout_seconds": True},
        {"expected_digest": 5},
        {"workflow_edition": 5},
    ],
)
def test_an_option_of_another_type_is_refused_by_name(options: Any) -> None:
    with pytest.raises(ConfigurationError, match=next(iter(options))) as caught:
        RemoteEnv("127.0.0.1:1", **options)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("seconds", [1e12, 10**400, np.int64(3)], ids=["float", "int", "numpy"])
def test_the_longest_of_time_limits_is_still_one(
    serve: Serve, factory: Any, seconds: float
) -> None:
    server = serve(factory())
    with RemoteEnv(
        server,
        connect_timeout_seconds=seconds,
        request_timeout_seconds=seconds,
        wait_for_server_seconds=seconds,
    ) as env:
        env.reset()
        env.step(0)
