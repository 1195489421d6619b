"""Numbers that follow from an episode's seed and place, the same on every machine."""

from collections.abc import Mapping

from rlmesh.authoring.keys import ENV_RESET_OPTIONS_KEY, TRIAL_INDEX_OPTION

__all__ = ["ENV_RESET_OPTIONS_KEY", "TRIAL_INDEX_OPTION", "predict_seed", "trial_index"]

_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = (1 << 64) - 1


def predict_seed(episode_seed: int, predict_index: int) -> int:
    """Return the seed in [0, 2**32) of one prediction of one episode.

    Raises:
        OverflowError: the seed is not a signed, or the index not an unsigned, 64-bit number.
    """
    data = (
        episode_seed.to_bytes(8, "little", signed=True)
        + b"\xfe"
        + predict_index.to_bytes(8, "little")
    )
    digest = _OFFSET
    for byte in data:
        digest = ((digest ^ byte) * _PRIME) & _MASK
    return digest & 0xFFFFFFFF


def trial_index(options: Mapping[str, object] | None) -> int | None:
    """Return the trial number among reset options, or None where there is none."""
    value = None if options is None else options.get(TRIAL_INDEX_OPTION)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value)
