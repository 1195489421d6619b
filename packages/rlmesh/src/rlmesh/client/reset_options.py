"""What a reset's options become before they travel."""

from __future__ import annotations

from collections.abc import Mapping

from rlcore.log import logger

from rlmesh.codec.metadata import InvalidMetadataError, made_to_fit
from rlmesh.codec.simplified import Simplified
from rlmesh.spaces.coerce import shown

log = logger("rlmesh", "client")


class ResetOptions:
    """Makes one client's options fit, and warns of what had to be simplified for that."""

    def __init__(self) -> None:
        self._simplified = Simplified("reset options", log)

    def fitting(
        self, options: Mapping[str, object] | None, *, tensors: bool
    ) -> Mapping[str, object] | None:
        """Return the options as the server can be told them.

        Args:
            options: whatever the caller gave.
            tensors: whether the server reads arrays as they are.
        """
        if options is None:
            return None
        fitting, simplified = made_to_fit(options, tensors=tensors)
        self._simplified.note(simplified)
        return fitting


def check_options(options: object) -> None:
    """Do nothing for a mapping, or None.

    Raises:
        InvalidMetadataError: the options of a reset are something else.
    """
    if options is not None and not isinstance(options, Mapping):
        raise InvalidMetadataError(
            f"the options of a reset are {shown(options)}, which is no mapping",
            hint="Give a dictionary, or None.",
        )
