"""What every client of a served environment can tell of it, and how it is left."""

from __future__ import annotations

import weakref
from contextlib import AbstractContextManager
from typing import Literal, NoReturn, Self

from rlcore import EnvironmentIdentity

from rlmesh.client.arguments import not_copied
from rlmesh.client.link import EnvLink
from rlmesh.protocol.messages import Timing
from rlmesh.spaces import SpaceSpec
from rlmesh.specs import EnvContract


class Handle:
    """A client at the end of a link, whatever its values are and however many lanes it drives."""

    _link: EnvLink

    def _hold(self, link: EnvLink) -> None:
        self._link = link
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
        """What the server promises about the environment."""
        return self._link.contract

    @property
    def identity(self) -> EnvironmentIdentity:
        """Which environment this is: by its registered name where that was dialled."""
        return self._link.identity

    @property
    def observation_space_spec(self) -> SpaceSpec:
        """What one environment's observations are, as plain data."""
        return self._link.contract.observation_space.spec

    @property
    def action_space_spec(self) -> SpaceSpec:
        """What one environment's actions are, as plain data."""
        return self._link.contract.action_space.spec

    @property
    def selected_workflow_edition(self) -> str:
        """The workflow edition that both sides agreed on."""
        return self._link.wires.dialled.edition

    @property
    def last_timing(self) -> Timing | None:
        """How long the server had the last step, and its environment, in nanoseconds.

        None before the first step, and where the server does not tell.
        """
        link = self._link
        return Timing(link.served_ns, link.user_ns or None) if link.served_ns else None

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

    def close(self) -> None:
        """Leave, within two seconds; the server goes on. A second call does nothing."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> Literal[False]:
        self.close()
        return False

    def __reduce__(self) -> NoReturn:
        raise not_copied(self, self.address)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.identity}, address={self.address!r})"

    __str__ = __repr__
