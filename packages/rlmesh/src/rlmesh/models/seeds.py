"""Numbers that follow from an episode's seed and place, the same on every machine."""

from collections.abc import Mapping

from rlmesh.authoring.keys import ENV_RESET_OPTIONS_KEY, TRIAL_INDEX_OPTION

__all__ = ["ENV_RESET_OPTIONS_KEY", "TRIAL_INDEX_OPTION", "predict_seed", "trial_index"]

_OFFSET = 0xCBF29CE484222325
_PRIME = 0x100000001B3
_MASK = (1 << 64) - 1
_SEVEN_TIMES = pow(_PRIME, 7, 1 << 64)


def predict_seed(episode_seed: int, predict_index: int) -> int:
    """Return the seed in [0, 2**32) of one prediction of one episode.

    Raises:
        OverflowError: the seed is not a signed, or the index not an unsigned, 64-bit number.
    """
    return seed_after(seed_prefix(episode_seed), predict_index)


def seed_prefix(episode_seed: int) -> int:
    """Return what the seeds of an episode's predictions have in common.

    Raises:
        OverflowError: the seed is not a signed 64-bit number.
    """
    return _digest(_OFFSET, episode_seed.to_bytes(8, "little", signed=True) + b"\xfe")


def seed_after(prefix: int, predict_index: int) -> int:
    """Return the seed of one prediction, from what its episode's have in common.

    Raises:
        OverflowError: the index is not an unsigned 64-bit number.
    """
    if 0 <= predict_index < 1 << 16:  # after two bytes there are zeros, which only multiply
        first = (prefix ^ predict_index & 255) * _PRIME
        return ((first ^ predict_index >> 8) * _SEVEN_TIMES) & 0xFFFFFFFF
    return _digest(prefix, predict_index.to_bytes(8, "little")) & 0xFFFFFFFF


def _digest(digest: int, data: bytes) -> int:
    for byte in data:
        digest = ((digest ^ byte) * _PRIME) & _MASK
    return digest


def trial_index(options: Mapping[str, object] | None) -> int | None:
    """Return the trial number among reset options, or None where there is none."""
    value = None if options is None else options.get(TRIAL_INDEX_OPTION)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value)
