"""What may be said of tools, verifiers, scenarios, suites and agents; pure."""

import secrets
from collections.abc import Mapping
from typing import Final, Literal, get_args

VerifierType = Literal[
    "rule_based", "trajectory_based", "llm_judge", "composite", "python", "human_evaluation"
]
VERIFIER_TYPES: Final[tuple[str, ...]] = get_args(VerifierType)
SuitePurpose = Literal["training", "evaluation"]
AgentFramework = Literal["openai_compatible", "anthropic", "custom"]
VerifierStatus = Literal["active", "disabled"]

ACTIVE: Final = "active"
DISABLED: Final = "disabled"
LONGEST_ID: Final = 200

# What the server alone says; a record that is sent back as it was read may have it.
_SERVERS_OWN: Final = frozenset({"created_at", "updated_at", "version", "environment_name"})


def id_problem(text: str) -> str | None:
    """Say why the text cannot be an id; None when it can."""
    if not text or text != text.strip():
        return f"{text!r} is empty or begins or ends with a blank"
    if len(text) > LONGEST_ID:
        return f"an id has up to {LONGEST_ID} characters, this one has {len(text)}"
    if not text.isprintable() or text in (".", ".."):
        return f"{text!r} cannot be written in a path"
    return None


def text_problem(text: str) -> str | None:
    """Say why the text cannot be stored; None when it can."""
    return "it holds a NUL character" if "\0" in text else None


def verifier_type(given: object) -> object:
    """A verifier type in its one spelling: `rule-based` is `rule_based`."""
    return given.strip().lower().replace("-", "_") if isinstance(given, str) else given


def new_id(prefix: str) -> str:
    """An id that nobody has."""
    return f"{prefix}_{secrets.token_hex(8)}"


def verifier_prefix(kind: str) -> str:
    """How ids of verifiers of this type begin."""
    return f"verif_{kind[:4].rstrip('_')}"


def merged(details: Mapping[str, object], given: Mapping[str, object]) -> dict[str, object]:
    """Free fields with those given laid over them; what is null is taken away."""
    whole = {**details, **{key: given[key] for key in given if key not in _SERVERS_OWN}}
    return {key: value for key, value in whole.items() if value is not None}


def version_number(tag: str) -> int | None:
    """The number in a version tag such as `v2`; None when it is none."""
    digits = tag.strip().lower().removeprefix("v")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 10 else None
