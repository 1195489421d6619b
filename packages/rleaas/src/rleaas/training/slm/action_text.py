"""Makes what a model said an action of the environment's Text space."""

from __future__ import annotations

from gymnasium import spaces


def fitted(text: str, space: spaces.Text) -> str:
    """The text without characters that the space does not have, cut and filled to its lengths.

    A text of the space comes back as it is.
    """
    allowed = space.character_set
    kept = "".join(character for character in text if character in allowed)[: space.max_length]
    missing = space.min_length - len(kept)
    if missing > 0:
        filler = " " if " " in allowed else min(allowed)
        kept += filler * missing
    return kept
