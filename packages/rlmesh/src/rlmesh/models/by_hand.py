"""Predictions outside any run, as a user makes them: `model.predict(observation)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from rlmesh.models.batching import count_of
from rlmesh.models.context import EpisodeContext, GivenContext, PredictContext
from rlmesh.models.signature import HORIZON

# Any, in this room: what observations and actions are depends on the environment.


def call_by_hand(
    corner: Callable[..., Any],
    name: str,
    observation: object,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> Any:
    """Call one of `Corners` with the arguments that its method takes.

    After the observation these are, for chunks, how many actions are wanted, and then the context,
    or the contexts of a batch. Without them one action is wanted, of an episode without a name.
    """
    rest = list(args)
    horizon: tuple[object, ...] = ()
    if "chunk" in name:
        horizon = (rest.pop(0) if rest else kwargs.get(HORIZON, 1),)
    given = rest.pop(0) if rest else kwargs.get("contexts", kwargs.get("context"))
    if not name.endswith("batch"):
        return corner(observation, *horizon, _episode(given))
    if given is None:
        given = [None] * (count_of(observation) or 0)
    return corner(observation, *horizon, [_episode(each) for each in given])


def _episode(given: object) -> EpisodeContext:
    if given is None:
        return EpisodeContext("", None)
    return GivenContext(cast("PredictContext", given))
