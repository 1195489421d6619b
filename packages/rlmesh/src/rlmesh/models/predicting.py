"""The methods of a model that its author may write, and that anybody may call by hand."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, Generic, cast

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    ObservationT = TypeVar("ObservationT", default=Any)
    ActionT = TypeVar("ActionT", default=Any)
else:
    # Defaults of type variables exist for type checkers only before Python 3.13.
    from typing import TypeVar

    ObservationT = TypeVar("ObservationT")
    ActionT = TypeVar("ActionT")

# Any, in this room: batches and chunks of whatever, and parameters that an author may leave out.


class Predicting(Generic[ObservationT, ActionT]):
    """Four ways to predict; those that are not written follow from those that are."""

    def predict(self, observation: ObservationT, /, *args: Any, **kwargs: Any) -> ActionT:
        """Return the action for an observation.

        Override it as `predict(self, observation)`, with a second parameter `context` where it is
        wanted, or wrap something that has it.
        """
        return cast("ActionT", self._inherited("predict", observation, args, kwargs))

    def predict_chunk(self, observation: ObservationT, /, *args: Any, **kwargs: Any) -> Any:
        """Return the next actions for an observation, along the first axis of each array.

        Override it with any of the parameters `execution_horizon`, how many will be used, and
        `context`.
        """
        return self._inherited("predict_chunk", observation, args, kwargs)

    def predict_batch(self, observations: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return a batch of actions for a batch of observations, one of each of several episodes.

        Arrays hold the episodes along their first axis; over native values, observations are a
        list. The actions may be a list as well. Override it with a parameter `contexts`, a list in
        the order of the rows, where it is wanted.
        """
        return self._inherited("predict_batch", observations, args, kwargs)

    def predict_chunk_batch(self, observations: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Return a batch of chunks for a batch of observations: arrays `[episodes, actions, ...]`.

        Override it with any of the parameters `execution_horizon` and `contexts`.
        """
        return self._inherited("predict_chunk_batch", observations, args, kwargs)

    @abstractmethod
    def _inherited(
        self, name: str, observation: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Predict in a way that was not overridden."""
