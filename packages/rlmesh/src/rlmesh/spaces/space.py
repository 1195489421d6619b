"""What every space is: a frozen description of values, with a generator of examples."""

from __future__ import annotations

import operator
import secrets
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, TypeAlias

import numpy as np
from rlcore import ConfigurationError, InvalidValueError, UnsupportedError

from rlmesh.spaces.coerce import shown
from rlmesh.values import NATIVE, Backend

if TYPE_CHECKING:
    from gymnasium.spaces import Space as GymnasiumSpace


class UnsupportedSpaceError(UnsupportedError, TypeError):
    """A space of a kind that this protocol has no words for."""

    default_code = "unsupported_space"


class SeedRangeError(ConfigurationError, OverflowError):
    """A seed that is no unsigned 64-bit integer."""


class Space(ABC):
    """The set of values that an observation or an action can be.

    Spaces are immutable, compare and hash by what they describe, and pickle. The generator behind
    `sample` is each instance's own and no part of its value.

    Attributes:
        kind: `box`, `discrete`, `multi_binary`, `multi_discrete`, `text`, `dict`, `tuple`,
            `sequence`, `graph` or `one_of`.
    """

    __slots__ = ("_backend", "_facts", "_generator")
    kind: ClassVar[str]
    _facts: tuple[object, ...]
    _backend: Backend
    _generator: np.random.Generator | None

    def _settle(self, *facts: object, **slots: object) -> None:
        """Fix the slots; `facts` are what equality and the hash are about."""
        for name, value in slots.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_facts", (self.kind, *facts))
        object.__setattr__(self, "_backend", NATIVE)
        object.__setattr__(self, "_generator", None)

    @property
    @abstractmethod
    def shape(self) -> list[int]:
        """The dimensions; empty for numbers, text and containers."""

    @property
    @abstractmethod
    def dtype(self) -> str:
        """The name of the element type."""

    @abstractmethod
    def draw(
        self, generator: np.random.Generator, backend: Backend
    ) -> Any:  # Any: by kind and backend
        """Return an example made with this generator, its arrays in the backend's type."""

    @abstractmethod
    def check(self, value: object, path: str = "$") -> None:
        """Do nothing for a value of this space.

        Raises:
            InvalidValueError: the value is not of this space; `path` says where.
        """

    @abstractmethod
    def _details(self) -> dict[str, object]: ...

    @abstractmethod
    def _arguments(self) -> tuple[object, ...]: ...

    @property
    def spec(self) -> SpaceSpec:
        """The description, without this instance's generator: here, a space is its description."""
        return self.to_space()

    def to_space(self) -> Self:
        """Return an equal space with a generator of its own."""
        return type(self)(*self._arguments())

    def using(self, backend: Backend) -> Self:
        """Return an equal space whose samples hold this backend's arrays."""
        space = self.to_space()
        object.__setattr__(space, "_backend", backend)
        return space

    def seed(self, seed: int | None = None) -> int:
        """Start the generator of samples again, from a fresh seed unless one is given.

        Returns:
            The seed, which gives the same samples again.

        Raises:
            ConfigurationError: the seed is no integer, or not an unsigned 64-bit one, which is an
                OverflowError as well.
        """
        if seed is None:
            seed = secrets.randbits(64)
        what = f"{shown(seed)} is not a seed: seeds are unsigned 64-bit integers"
        if isinstance(seed, bool):
            raise ConfigurationError(what)
        try:
            seed = operator.index(seed)
        except TypeError as error:
            raise ConfigurationError(what) from error
        if not 0 <= seed < 2**64:
            raise SeedRangeError(what)
        object.__setattr__(self, "_generator", np.random.default_rng(seed))
        return seed

    def sample(self) -> Any:  # Any: by kind and backend
        """Return an example, the next from this instance's generator."""
        if self._generator is None:
            self.seed()
        assert self._generator is not None  # seed() made it
        return self.draw(self._generator, self._backend)

    def contains(self, value: object) -> bool:
        """Return whether the value is one of this space; odd values are not."""
        try:
            self.check(value)
        except InvalidValueError:
            return False
        return True

    def __contains__(self, value: object) -> bool:
        return self.contains(value)

    def to_gymnasium_space(self) -> GymnasiumSpace[Any]:  # Any: gymnasium's own element type
        """Return the same space as gymnasium describes it.

        Raises:
            MissingDependencyError: gymnasium is not installed.
        """
        from rlmesh.spaces.gymnasium_spaces import to_gymnasium_space

        return to_gymnasium_space(self)

    def to_gym_space(self) -> GymnasiumSpace[Any]:  # Any: as above
        """Return the same space as gymnasium describes it."""
        return self.to_gymnasium_space()

    def to_dict(self) -> dict[str, object]:
        """Return the description as plain lists, dicts and numbers."""
        return {
            "kind": self.kind,
            "shape": self.shape,
            "dtype": self.dtype,
            "details": self._details(),
        }

    def __getattr__(self, name: str) -> NoReturn:
        hint = "to_gymnasium_space() returns gymnasium's space, which may have it."
        raise AttributeError(f"{type(self).__name__} spaces have no attribute {name!r}: {hint}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Space):
            return NotImplemented
        return self._facts == other._facts

    def __hash__(self) -> int:
        return hash(self._facts)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"spaces are immutable: {name!r} of {self!r} cannot be set")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"spaces are immutable: {name!r} of {self!r} cannot be deleted")

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self._arguments(), (self._backend, self._generator)

    def __setstate__(self, state: tuple[Backend, np.random.Generator | None]) -> None:
        object.__setattr__(self, "_backend", state[0])
        object.__setattr__(self, "_generator", state[1])


SpaceSpec: TypeAlias = Space


def space_from_spec(spec: SpaceSpec, *, bridge: Backend | None = None) -> Space:
    """Return a space of its own for a description, its samples in the bridge's arrays."""
    return spec.to_space() if bridge is None else spec.using(bridge)
