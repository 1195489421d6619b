"""What a client can be told about connecting, and what it makes of nonsense."""

from __future__ import annotations

from typing import Any

import pytest
import rlmesh
from rlcore import ConfigurationError
from rlmesh.numpy import RemoteEnv

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
