"""`Variant`: one entry of a factory's catalogue."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from rlcore import ConfigurationError


class VariantTypeError(ConfigurationError, TypeError):
    """What was given as a variant's parameters is no mapping."""

    default_code = "not_a_variant"


class Variant:
    """A named choice of parameters, for catalogues (`EnvFactory.enumerate_variants`).

    Args:
        id: its name in the catalogue.
        params: what to make the environment, or load the model, with.
        **metadata: anything else that is to be told about it.

    Raises:
        VariantTypeError: the parameters are no mapping.
    """

    __slots__ = ("id", "metadata", "params")
    __hash__ = None  # type: ignore[assignment]  # it holds dicts

    def __init__(self, id: str, params: Mapping[str, object], /, **metadata: object) -> None:
        if not isinstance(cast("object", params), Mapping):
            raise VariantTypeError(
                f"the parameters of the variant {id!r} are {params!r}, no mapping",
                hint='Write Variant("small", {"size": 3}).',
            )
        self.id = id
        self.params: dict[str, Any] = dict(params)  # Any: values of the author's own
        self.metadata: dict[str, Any] = dict(metadata)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Variant):
            return NotImplemented
        return (self.id, self.params, self.metadata) == (other.id, other.params, other.metadata)

    def __repr__(self) -> str:
        more = "".join(f", {name}={value!r}" for name, value in self.metadata.items())
        return f"Variant({self.id!r}, {self.params!r}{more})"
