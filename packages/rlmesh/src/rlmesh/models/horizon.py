"""How many actions of a chunk are used, and how far ahead the next one is predicted."""

from __future__ import annotations

import operator
import warnings

from rlcore import ConfigurationError

from rlmesh.models.chunks import LONGEST


def checked_horizon(horizon: object) -> int:
    """Return an execution horizon.

    Raises:
        ConfigurationError: it is no whole number from 1 to 1024.
    """
    number = _whole(horizon, "execution_horizon")
    if not 1 <= number <= LONGEST:
        raise ConfigurationError(
            f"execution_horizon is {number}", hint=f"It can be 1 to {LONGEST}."
        )
    return number


def checked_lead(lead: object) -> int:
    """Return how many actions before its end a chunk is followed up.

    Raises:
        ConfigurationError: it is no whole number from 0 on.
    """
    number = _whole(lead, "prefetch_lead")
    if number < 0:
        raise ConfigurationError(f"prefetch_lead is {number}", hint="It can be 0 or more.")
    return number


def refuse_lead(lead: int, model: str) -> None:
    """Do nothing for 0.

    Raises:
        ConfigurationError: there is nothing that this model could predict ahead.
    """
    if lead:
        raise ConfigurationError(
            f"prefetch_lead is {lead}, and {model} predicts no chunks", hint="Leave it out."
        )


def refuse_instruction(instruction: str | None, model: str) -> None:
    """Do nothing for None.

    Raises:
        ConfigurationError: the model cannot be told what to do.
    """
    if instruction is not None:
        raise ConfigurationError(
            f"instruction is {instruction!r}, and {model!r} cannot be given one",
            hint="Put it into the environment's observations.",
        )


def tell_of_instruction(instruction: str | None, model: str) -> None:
    """Warn that an instruction has no effect on a model without a spec that has a place for it."""
    if instruction is not None:
        warnings.warn(
            f"instruction={instruction!r} has no effect: {model!r} has no spec with a place for it",
            UserWarning,
            stacklevel=3,
        )


def usable_horizon(horizon: int, *, model: str, chunks: bool, native_chunk: int | None) -> int:
    """Return the horizon that a model is driven with: 1 for one that predicts no chunks.

    A UserWarning tells of one that has no effect.

    Raises:
        ConfigurationError: the model's chunks are shorter.
    """
    if horizon > 1 and not chunks:
        warnings.warn(
            f"{model!r} predicts no chunks, so execution_horizon={horizon} has no effect: it is "
            "asked for every action",
            UserWarning,
            stacklevel=2,
        )
        return 1
    if native_chunk is not None and horizon > native_chunk:
        raise ConfigurationError(
            f"execution_horizon is {horizon}, and the chunks of {model!r} hold {native_chunk}",
            hint=f"Ask for at most {native_chunk}.",
        )
    return horizon


def usable_lead(lead: int, *, model: str, chunks: bool) -> int:
    """Return the lead that a model is driven with: 0 for one that predicts no chunks.

    A UserWarning tells of one that has no effect: actions would be for observations gone by.
    """
    if lead and not chunks:
        warnings.warn(
            f"{model!r} predicts no chunks, so prefetch_lead={lead} has no effect: it is asked "
            "for every action when that is needed",
            UserWarning,
            stacklevel=3,
        )
        return 0
    return lead


def checked_native_chunk(length: object, *, owner: str) -> int | None:
    """Return how many actions a model's chunks always hold; None where they may vary.

    Raises:
        ConfigurationError: it is no length of a chunk.
    """
    if length is None:
        return None
    number = _whole(length, f"native_chunk of {owner}")
    if not 1 <= number <= LONGEST:
        raise ConfigurationError(
            f"native_chunk of {owner} is {number}", hint=f"It can be 1 to {LONGEST}."
        )
    return number


def _whole(value: object, name: str) -> int:
    try:
        if isinstance(value, bool):
            raise TypeError("a bool is no number here")
        return operator.index(value)  # type: ignore[arg-type]  # the question itself
    except TypeError as error:
        raise ConfigurationError(
            f"{name} is {value!r}", hint="Give it as a whole number."
        ) from error
