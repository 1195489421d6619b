"""A factory with its parameters: what servers and runs make environments with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from rlmesh.authoring.marks import add_metadata
from rlmesh.params import PARAM_METADATA_KEY

if TYPE_CHECKING:
    from rlmesh.authoring.factory import EnvFactory
    from rlmesh.specs import EnvContract


class BoundFactory:
    """Makes environments with parameters that were checked; it can be sent to other processes.

    Args:
        factory: what makes them.
        binding: the parameters, as `make` gets them.

    Attributes:
        made_by: the factory.
        binding: the parameters that were given.
    """

    def __init__(self, factory: EnvFactory, binding: Mapping[str, Any]) -> None:
        self.made_by = factory
        self.binding: dict[str, Any] = dict(binding)  # Any: values of the author's own
        # Failures are told under this name.
        self.__qualname__: str = type(factory).__qualname__

    def make(self) -> Any:  # Any: an environment
        """Return a new environment, whose metadata says what it was made with.

        Raises:
            Exception: what the author's `make` raises.
        """
        from rlmesh.authoring.binding import binding_record

        env: object = self.made_by.make(**self.binding)
        if self.made_by.params is not None:
            record = {PARAM_METADATA_KEY: binding_record(type(self.made_by), self.binding)}
            several = isinstance(env, list | tuple)
            for lane in cast("Sequence[object]", env) if several else [env]:
                add_metadata(lane, record)
        return env

    def make_lane(self) -> Any:  # Any: an environment
        """Return a new environment for gymnasium's vector environments, wherever its lane lives."""
        from rlmesh.authoring.vector_lane import vector_lane

        return vector_lane(self)

    def prepare(self) -> None:
        """Prepare the factory."""
        self.made_by.prepare()

    def close(self) -> None:
        """Close the factory."""
        self.made_by.close()

    def peer_extra(self, contract: EnvContract) -> dict[str, str]:
        """Return what clients are told at the handshake: what is served, described."""
        from rlmesh.authoring.describe_env import served_description

        return served_description(type(self.made_by), contract)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.binding.items())
        return f"{type(self.made_by).__qualname__}({given})"
