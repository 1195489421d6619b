"""pass@k: how likely one of k attempts at a task succeeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from rlcore import ConfigurationError

ATTEMPTS: Final = (1, 2, 5, 10)


def pass_at_k(attempts: int, successes: int, k: int) -> float:
    """Return the unbiased estimate of the chance that one of k attempts succeeds.

    It is 1 - C(n - c, k) / C(n, k), as a product: Chen et al. (2021), "Evaluating Large Language
    Models Trained on Code".

    Args:
        attempts: how many were made (n).
        successes: how many of them succeeded (c).
        k: how many one would make; at most n.

    Raises:
        ConfigurationError: there are not that many attempts, or more successes than attempts.
    """
    if not 0 <= successes <= attempts or not 1 <= k <= attempts:
        raise ConfigurationError(
            f"pass@{k} of {successes} successes in {attempts} attempts is no chance",
            hint="Give 0 <= successes <= attempts and 1 <= k <= attempts",
        )
    if attempts - successes < k:
        return 1.0
    return 1.0 - prod(1.0 - k / i for i in range(attempts - successes + 1, attempts + 1))


def over_tasks(passes: Mapping[str, Sequence[bool]]) -> dict[str, float]:
    """Return the mean of pass@k over tasks, for each k that every task has attempts for.

    Args:
        passes: of each task, whether its attempts passed.
    """
    fewest = min(map(len, passes.values()), default=0)
    return {
        str(k): sum(pass_at_k(len(one), sum(one), k) for one in passes.values()) / len(passes)
        for k in ATTEMPTS
        if k <= fewest
    }
