"""What a verifier may judge by, and what it says of an episode; pure."""

from collections.abc import Mapping

from rleaas.verify import Definition, check
from rleaas.verify.definition import BUILT
from rleaas.verify.policy import WORST_PENALTY, read_policy

__all__ = ["HUMAN_EVALUATION", "WORST_PENALTY", "is_built", "require_policy", "require_sound"]

HUMAN_EVALUATION = "human_evaluation"


def require_policy(given: Mapping[str, object]) -> None:
    """Refuse a failure policy that the engine would not read.

    Raises:
        ConfigurationError: a key is unknown, with the nearest one, or a value is wrong.
    """
    read_policy(given, "verifier")


def require_sound(
    *,
    kind: str,
    logic: Mapping[str, object],
    failure_policy: Mapping[str, object],
    verifier_id: str,
    name: str,
) -> None:
    """Refuse logic that could not judge; what has no conditions yet may be completed later.

    Raises:
        ExpressionError: a condition cannot be read; a caret shows where.
        ConfigurationError: another part is wrong.
    """
    check(
        Definition(type=kind, logic=logic, failure_policy=failure_policy, id=verifier_id, name=name)
    )


def is_built(kind: str) -> bool:
    """Whether this build can judge by verifiers of this type."""
    return kind in BUILT
