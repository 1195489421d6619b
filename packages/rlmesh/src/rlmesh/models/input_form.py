"""How a network wants its observations: in batches, one at a time, or without a batch axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from rlcore import ConfigurationError

from rlmesh.spaces import Dict, Space
from rlmesh.specs import EnvContract

Shape = tuple[int | None, ...]
"""The declared shape of an input; None where it may vary."""


class InputForm(Enum):
    """What goes into one call."""

    BATCH = "a batch of any size"
    ONE_ROW = "a batch of one"
    BARE = "one observation, without an axis for the batch"


def form_of(shapes: Mapping[str, Shape] | None, space: Space | None, model: str) -> InputForm:
    """Return what a network takes, told by the shapes of its inputs and the observation space.

    Args:
        shapes: of its inputs, by name; None where it does not declare any.
        space: the environment's observation space; None before that is known.
        model: its name, for errors.

    Raises:
        ConfigurationError: it takes batches of another size, or observations of another shape.
    """
    if not shapes:
        return InputForm.BATCH
    forms = {
        _form(name, shape, None if space is None else _part(space, name, len(shapes)), model)
        for name, shape in shapes.items()
    }
    if len(forms) > 1:
        raise ConfigurationError(
            f"the inputs of {model!r} differ in how they are batched: {dict(shapes)}",
            hint="Export it with one axis for the batch, in front of every input.",
        )
    return forms.pop()


def names_for(contract: EnvContract, names: Sequence[str], model: str) -> None:
    """Do nothing where the observations have what the inputs are called.

    Raises:
        ConfigurationError: they have not.
    """
    space = contract.observation_space
    if isinstance(space, Dict):
        missing = [name for name in names if name not in space]
        if missing and not (len(names) == 1 and len(space) == 1):
            raise ConfigurationError(
                f"{model!r} takes {missing}, and {contract.id!r} observes {list(space)}",
                hint="Name the inputs as the observations are named.",
            )
    elif len(names) != 1:
        raise ConfigurationError(
            f"{model!r} takes {list(names)}, and {contract.id!r} has one unnamed observation",
            hint="Export it with one input.",
        )


def _part(space: Space, name: str, count: int) -> Space | None:
    if not isinstance(space, Dict):
        return space
    if name in space:
        return space[name]
    return next(iter(space.values())) if count == 1 and len(space) == 1 else None


def _form(name: str, shape: Shape, space: Space | None, model: str) -> InputForm:
    first = shape[0] if shape else None
    if space is None:
        return InputForm.BARE if not shape else _batched(name, first, model)
    wanted = tuple(space.shape)
    if len(shape) == len(wanted) and _fits(shape, wanted):
        return InputForm.BARE
    if len(shape) != len(wanted) + 1 or not _fits(shape[1:], wanted):
        raise ConfigurationError(
            f"the input {name!r} of {model!r} has the shape {list(shape)}, and observations have "
            f"{list(wanted)}",
            hint="An input has the shape of an observation, after an axis for the batch.",
        )
    return _batched(name, first, model)


def _batched(name: str, first: int | None, model: str) -> InputForm:
    if first is None:
        return InputForm.BATCH
    if first == 1:
        return InputForm.ONE_ROW
    raise ConfigurationError(
        f"the input {name!r} of {model!r} takes batches of {first} only",
        hint="Export it with a batch of one, or with a dynamic axis for the batch.",
    )


def _fits(shape: Shape, wanted: tuple[int, ...]) -> bool:
    return all(mine is None or mine == given for mine, given in zip(shape, wanted, strict=True))
