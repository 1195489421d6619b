"""Asking a served environment for its contract."""

import time
from typing import cast

from rlcore import ANONYMOUS, Bearer, Credential, Endpoint, Secret, mint_token

from rleaas.server.rules.json_values import plain
from rleaas.server.store.tables import JsonObject

_TOKEN_SECONDS = 300.0


def served_contract(address: str, key: Secret | None, timeout: float) -> JsonObject:
    """Dial the address, read the contract in the handshake, and leave again.

    Raises:
        rlcore.RLMeshException: nothing answers there, or it does not speak our protocol.
    """
    # The data plane is loaded when the first environment comes up, not when the server starts.
    from rlmesh import RemoteEnv

    credential: Credential = ANONYMOUS
    if key is not None:
        token = mint_token(key, subject="control plane", expires_at=time.time() + _TOKEN_SECONDS)
        credential = Bearer(Secret(token))
    env = RemoteEnv(Endpoint(address, credential=credential), connect_timeout_seconds=timeout)
    try:
        return cast("JsonObject", plain(env.env_contract.to_dict()))
    finally:
        env.close()
