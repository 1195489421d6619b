"""What all clients of several lanes have in common, whatever their values are."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Literal, NoReturn, Self

from rlcore import EnvironmentIdentity

from rlmesh.client.arguments import not_copied
from rlmesh.client.options import ConnectOptions, open_link
from rlmesh.client.rendering import rendered
from rlmesh.client.vector_link import VectorLink
from rlmesh.codec import Backend
from rlmesh.spaces import SpaceSpec
from rlmesh.specs import EnvContract


class VectorHandle:
    """A client of all lanes that are served at one address."""

    def __init__(self, address: object, options: ConnectOptions, backend: Backend) -> None:
        link = open_link(address, options, backend, many=True)
        self._backend = backend
        self._lanes = VectorLink(link, backend, strict_dtypes=options.get("strict_dtypes", False))
        self._link = link
        self.num_envs = self._lanes.lanes
        # A client that is dropped without close() gives its session back all the same.
        weakref.finalize(self, link.wires.hang_up)

    @property
    def address(self) -> str:
        """The address that was dialled."""
        return str(self._link.wires.dialled.connection.address)

    @property
    def env_id(self) -> str:
        """The id of this client's session."""
        return self._link.session_id

    @property
    def is_taken(self) -> bool:
        """Whether somebody else was driving the server's one environment when this one connected.

        It then is refused by `reset` until the other has left. A server of a factory, which makes
        an environment for each client, is never taken.
        """
        return self._link.is_taken

    @property
    def env_contract(self) -> EnvContract:
        """What the server promises about the environments."""
        return self._link.contract

    @property
    def identity(self) -> EnvironmentIdentity:
        """Which environment this is: by its registered name where that was dialled."""
        return self._link.identity

    @property
    def episode_ids(self) -> tuple[str, ...]:
        """The id of each lane's episode; empty before the first reset."""
        return self._lanes.episode_ids

    @property
    def observation_space_spec(self) -> SpaceSpec:
        """What a lane's observations are, as plain data."""
        return self._link.contract.observation_space.spec

    @property
    def action_space_spec(self) -> SpaceSpec:
        """What a lane's actions are, as plain data."""
        return self._link.contract.action_space.spec

    @property
    def selected_workflow_edition(self) -> str:
        """The workflow edition that both sides agreed on."""
        return self._link.wires.dialled.edition

    def with_timeout(self, seconds: float | None) -> AbstractContextManager[None]:
        """Let calls within a `with` block take so long; None: no limit.

        ```python
        with env.with_timeout(0.5):
            env.step(action)
        ```

        After a `CallTimeout` the episode is over, as nobody knows what became of the step; `reset`
        starts again in a new session, and the server ends the old one once its step returns.

        Raises:
            ConfigurationError: it is no number of seconds.
        """
        return self._link.with_timeout(seconds)

    def shutdown(self, reason: str = "owner shutdown") -> bool:
        """Ask the server to stop; False when it does not let clients do that."""
        return self._link.shutdown(reason)

    def close(self, **kwargs: object) -> None:
        """Leave; the server goes on. A second call does nothing.

        Args:
            **kwargs: what gymnasium's own vector environments take; there is nothing for it here.
        """
        self._link.close()

    def _frame(self, lane: int) -> Any:  # Any: the backend's array
        """Return a lane's frame, text, or list of either, or None when there is none."""
        return rendered(self._link.render(lane), self._backend.owned)

    def _frames(self, lanes: Sequence[int]) -> tuple[Any, ...]:  # Any: as above
        return tuple([self._frame(lane) for lane in lanes])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> Literal[False]:
        self.close()
        return False

    def __reduce__(self) -> NoReturn:
        raise not_copied(self, self.address)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.identity}, num_envs={self.num_envs}, "
            f"address={self.address!r})"
        )

    __str__ = __repr__
