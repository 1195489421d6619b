"""Verifiers of the database as the engine takes them, with what they consist of."""

from collections.abc import Callable, Mapping

from rlcore import ConfigurationError, VerifierNotFound
from sqlalchemy.orm import Session

from rleaas.server.rules.catalogue import ACTIVE
from rleaas.server.store import catalogue, verifiers
from rleaas.server.store.tables import JsonObject, VerifierRow
from rleaas.server.store.verifiers import definition_of_row
from rleaas.verify import Definition, Means, judge_of
from rleaas.verify.definition import to_json
from rleaas.verify.means import NO_MEANS


def finder(
    session: Session, found: dict[str, Definition] | None = None
) -> Callable[..., Definition]:
    """What finds components by their id; it keeps what it found in `found`.

    The finder raises `VerifierNotFound`.
    """
    kept = {} if found is None else found

    def find(verifier_id: str) -> Definition:
        if verifier_id not in kept:
            row = catalogue.by_id(session, VerifierRow, verifier_id)
            if row is None:
                raise VerifierNotFound(verifier_id)
            kept[verifier_id] = definition_of_row(row)
        return kept[verifier_id]

    return find


def weighted(session: Session, weights: Mapping[str, float], means: Means = NO_MEANS) -> JsonObject:
    """The verifiers of a job, as they are now: their weights, and every definition they need.

    A name will do for an id; the answer has ids.

    Raises:
        VerifierNotFound: there is no such verifier, or a composite's component is gone.
        ConfigurationError: one is disabled or incomplete, or of a type that is not built
            (`not_available`), or needs what `means` do not have.
    """
    found: dict[str, Definition] = {}
    find = finder(session, found)
    named: dict[str, float] = {}
    for reference, weight in weights.items():
        row = verifiers.find(session, reference)
        if row.id in named:
            raise ConfigurationError(f"verifier {row.id!r} is named twice", hint="Name it once")
        if row.status != ACTIVE:
            raise ConfigurationError(
                f"verifier {row.id!r} is disabled",
                code="verifier_disabled",
                hint="Enable it, or leave it out",
            )
        named[row.id] = weight
        judge_of(find(row.id), find, means=means)
    return {"weights": named, "definitions": [to_json(one) for one in found.values()]}
