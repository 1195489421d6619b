"""What a server needs of a model, whichever kind of model it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rlmesh.backends.content import Content
    from rlmesh.backends.frameworks import FrameworkName
    from rlmesh.specs import EnvContract

# Any, in this room: what the model's environments and the model itself make.


class ServedRoute(Protocol):
    """A model bound to one kind of environment, for one client; observations are NumPy values.

    All of it is called in the thread of the model's driver, one call at a time.
    """

    def begin(self, episode_id: str, seed: int | None) -> object:
        """Return what is kept for an episode, at its first prediction."""
        ...

    def predict(self, observation: Any, episode: Any) -> Sequence[Any]:
        """Return the actions for one observation: one, or as many as fit into the horizon."""
        ...

    def predict_batch(self, observations: Any, episodes: Sequence[Any]) -> Sequence[Any]:
        """Return batches of actions over time, for a batched observation of several episodes."""
        ...

    def mark(self, episodes: Sequence[Any]) -> Any:
        """Return where these episodes are, before a prediction that may have to be made again."""
        ...

    def rewind(self, episodes: Sequence[Any], mark: Any) -> None:
        """Put episodes back to where they were."""
        ...

    def end(self, episode_id: str, episode: Any | None) -> None:
        """Tell the model that an episode is over; None: it never predicted in it."""
        ...


class ServedModel(Protocol):
    """A model that can be served."""

    @property
    def name(self) -> str:
        """What it is called."""
        ...

    @property
    def digest(self) -> str | None:
        """The digest of its content."""
        ...

    @property
    def content(self) -> Content | None:
        """What it is made of, where that is known."""
        ...

    @property
    def framework(self) -> FrameworkName:
        """Whose values its observations are given in."""
        ...

    @property
    def corners(self) -> tuple[str, ...]:
        """Which ways to predict it has of its own."""
        ...

    @property
    def native_chunk(self) -> int | None:
        """How many actions it makes at a time, where it says so."""
        ...

    @property
    def takes_batches(self) -> bool:
        """Whether several rows go into one call."""
        ...

    @property
    def allows_fusion(self) -> bool:
        """Whether rows of different clients may go into one call."""
        ...

    def resolve(
        self, contract: EnvContract, *, horizon: int, instruction: str | None
    ) -> ServedRoute:
        """Return the model bound to a kind of environment.

        Raises:
            Error: the model does not fit it.
        """
        ...

    def close(self) -> None:
        """Release what the model holds."""
        ...
