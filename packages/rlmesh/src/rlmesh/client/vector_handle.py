"""What all clients of several lanes have in common, whatever their values are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlmesh.client.handle import Handle
from rlmesh.client.options import ConnectOptions, open_link
from rlmesh.client.rendering import rendered
from rlmesh.client.vector_link import VectorLink
from rlmesh.codec import Backend


class VectorHandle(Handle):
    """A client of all lanes that are served at one address."""

    def __init__(self, address: object, options: ConnectOptions, backend: Backend) -> None:
        link = open_link(address, options, backend, many=True)
        self._backend = backend
        self._lanes = VectorLink(link, backend, strict_dtypes=options.get("strict_dtypes", False))
        self.num_envs = self._lanes.lanes
        self._hold(link)

    @property
    def episode_ids(self) -> tuple[str, ...]:
        """The id of each lane's episode; empty before the first reset."""
        return self._lanes.episode_ids

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

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.identity}, num_envs={self.num_envs}, "
            f"address={self.address!r})"
        )

    __str__ = __repr__
