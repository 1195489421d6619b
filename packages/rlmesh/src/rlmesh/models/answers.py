"""What a model answered, held against what the environment can be stepped with."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, Unpack, cast

import numpy as np
from rlcore import InvalidActionError, InvalidValueError
from rlcore.errors import CommonFacts

from rlmesh.codec import NUMPY, compile_codec
from rlmesh.codec.batch import compile_batch_codec
from rlmesh.models.context import EpisodeContext
from rlmesh.spaces import Dict, Space, Tuple
from rlmesh.spaces.box import Box
from rlmesh.spaces.coerce import shown
from rlmesh.spaces.discrete import Discrete
from rlmesh.specs import UNKNOWN_ID, EnvContract
from rlmesh.values import DTYPES

# Any, in this room: whatever a model makes.
Fits: TypeAlias = Callable[[Any], bool]


class PredictionError(InvalidActionError):
    """A model's answer is no action of the environment; the environment was not stepped.

    Attributes:
        model: the model's name.
        environment: the environment's id, where it is known.
        episode_id: the episode.
        seed: its seed.
        step: which step of the episode the answer was for, from 1.
        space: the action space, as text.
        action: the answer, as text that may be cut off.
        observation: the types and shapes that the model was given.
    """

    default_code = "invalid_prediction"

    def __init__(
        self,
        message: str,
        *,
        path: str = "$",
        model: str | None = None,
        environment: str | None = None,
        episode_id: str | None = None,
        seed: int | None = None,
        step: int | None = None,
        space: str | None = None,
        action: str | None = None,
        observation: str | None = None,
        **common: Unpack[CommonFacts],
    ) -> None:
        super().__init__(message, path=path, **common)
        self.model = model
        self.environment = environment
        self.episode_id = episode_id
        self.seed = seed
        self.step = step
        self.space = space
        self.action = action
        self.observation = observation


class Answers:
    """Refuses what is no action, in words about the model.

    It asks for the form of the space, as the wire does: shapes, types that can be cast without
    loss, numbers that exist in a discrete space, no NaN; and for no infinity where a Box has a
    bound. Finite numbers beyond the bounds are the environment's to clip or to refuse: many clip
    them, and their policies count on it.
    """

    def __init__(self, model: str, contract: EnvContract | None) -> None:
        self._model = model
        self._space: Space | None = None
        self._environment: str | None = None
        self.fits: Fits = _is_something
        self._write: Callable[[Any], object] = _nothing
        self._write_many: Callable[[Any, int], object] = _nothing_of_many
        self._finite: Callable[[Any, int | None], None] = _nothing_infinite
        if contract is not None:
            space = contract.action_space
            self._space = space
            self._environment = None if contract.id == UNKNOWN_ID else contract.id
            self.fits = surely_fits(space)
            one = compile_codec(space, backend=NUMPY, strict_nan=True)
            many = compile_batch_codec(space, backend=NUMPY, strict_nan=True)
            self._write, self._write_many = one.encode, many.encode
            if has_bounds(space):
                self._finite = lambda written, lanes: require_finite(
                    space, one.decode(written) if lanes is None else many.decode(written, lanes)
                )

    def check(
        self, action: object, observation: object, episode: EpisodeContext, step: int
    ) -> None:
        """Do nothing for an action.

        Raises:
            PredictionError: it is none.
        """
        if self.fits(action):
            return
        try:
            if action is None and self._space is None:
                raise InvalidActionError("there is no action: it is None")
            self._finite(self._write(action), None)
        except InvalidValueError as error:
            raise self.refusal(error, action, observation, episode, step) from error

    def check_batch(
        self, actions: object, observations: object, episodes: Sequence[EpisodeContext], step: int
    ) -> None:
        """Do nothing for an action of each episode.

        Raises:
            PredictionError: they are none.
        """
        try:
            if actions is None:
                raise InvalidActionError("there are no actions: it is None")
            self._finite(self._write_many(actions, len(episodes)), len(episodes))
        except InvalidValueError as error:
            raise self.refusal(error, actions, observations, episodes[0], step) from error

    def refusal(
        self,
        error: InvalidValueError,
        answer: object,
        observation: object,
        episode: EpisodeContext,
        step: int,
    ) -> PredictionError:
        """Return the error that says whose fault it is, where, and what was expected."""
        given, space = summary(observation), None if self._space is None else repr(self._space)
        whose = "the environment" if self._environment is None else repr(self._environment)
        expected = "" if space is None else f" The action space is {space}."
        return PredictionError(
            f"the model {self._model!r} answered with what {whose} cannot be stepped with, at step "
            f"{step} of the episode with seed {episode.seed}: {error.message}. "
            f"It was given {given} and answered {shown(answer)}.{expected}",
            path=error.path,
            hint="The model is wrong here, not the environment: change what its predict returns.",
            model=self._model,
            environment=self._environment,
            episode_id=episode.episode_id,
            seed=episode.seed,
            step=step,
            space=space,
            action=shown(answer),
            observation=given,
        )


def has_bounds(space: Space) -> bool:
    """Tell whether a space has numbers that can be infinite, and a bound that says they are not."""
    match space:
        case Box():
            bounds = np.concatenate([np.ravel(space.low), np.ravel(space.high)])
            return DTYPES[space.dtype].kind == "f" and bool(np.isfinite(bounds).any())
        case Dict():
            return any(map(has_bounds, space.values()))
        case Tuple():
            return any(map(has_bounds, space))
        case _:
            return False


def require_finite(space: Space, action: Any, path: str = "$") -> None:
    """Do nothing for an action, or a batch of them, that is finite where the space has bounds.

    Raises:
        InvalidActionError: it is not.
    """
    match space:
        case Box() if has_bounds(space):
            beyond = (action == np.inf) & np.isfinite(space.high)
            beyond |= (action == -np.inf) & np.isfinite(space.low)
            if beyond.any():
                raise InvalidActionError("it has infinities, where the space has bounds", path=path)
        case Dict():
            for key, part in space.items():
                require_finite(part, action[key], f"{path}.{key}")
        case Tuple():
            for place, part in enumerate(space):
                require_finite(part, action[place], f"{path}[{place}]")
        case _:
            return


def surely_fits(space: Space) -> Fits:
    """Return a quick test that accepts what is in form as it stands, and leaves the rest open."""
    if isinstance(space, Box):
        return _box_fits(space)
    if isinstance(space, Discrete):
        return _discrete_fits(space)
    return lambda action: False


def _box_fits(space: Box) -> Fits:
    dtype, shape = DTYPES[space.dtype], tuple(space.shape)
    if dtype.kind != "f":
        return lambda action: (
            type(action) is np.ndarray and action.dtype is dtype and action.shape == shape
        )
    return lambda action: (
        type(action) is np.ndarray
        and action.dtype is dtype
        and action.shape == shape
        and bool(np.isfinite(action).all())
    )


def _discrete_fits(space: Discrete) -> Fits:
    low, high = int(space.start), int(space.start + space.n - 1)
    integers: Final = (int, np.int64, np.int32)
    return lambda action: type(action) in integers and low <= action <= high


def _is_something(action: object) -> bool:
    return action is not None


def _nothing(action: object) -> None:
    """Accept everything: the environment has no contract to hold it against."""


def _nothing_infinite(written: object, lanes: int | None) -> None:
    """Accept everything: there are no bounds."""


def _nothing_of_many(actions: object, lanes: int) -> None:
    """Accept everything, as above."""


def summary(value: object) -> str:
    """Return the types and shapes of a value's leaves, such as `{'rgb': uint8[8, 8, 3]}`."""
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return "{" + ", ".join(f"{key!r}: {summary(item)}" for key, item in items) + "}"
    if isinstance(value, tuple | list):
        parts = cast("Sequence[object]", value)
        shown_parts = ", ".join(summary(item) for item in parts[:_SHOWN_ITEMS])
        more = ", ..." if len(parts) > _SHOWN_ITEMS else ""
        return f"({shown_parts}{more})" if isinstance(value, tuple) else f"[{shown_parts}{more}]"
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return type(value).__name__
    return f"{dtype}{list(shape)}"


_SHOWN_ITEMS: Final = 8
