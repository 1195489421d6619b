"""The scenarios that the verticals ship, and the suites of them that every organisation has."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

from rleaas.sims.catalogue import VERTICALS
from rleaas.sims.scenario import EVALUATION, TRAINING, Scenario, Split

JsonObject = dict[str, object]
BUILT_IN: Final = "built-in"
LIBRARY: Final = "library"
BASED_ON: Final = "based_on"
"""The key of a scenario's `context_injection` with the library's scenario that it is a copy of."""
VERSION: Final = 1
"""What this release ships; a release that changes a scenario counts it up."""
_IDS: Final = {("FinSim", EVALUATION): "suite_eval_01"}
_PREFIX: Final = {EVALUATION: "suite_eval_", TRAINING: "suite_train_"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltInSuite:
    """All scenarios of a vertical for one purpose, under an id that is the same everywhere."""

    id: str
    name: str
    purpose: Split
    vertical: str
    scenarios: tuple[Scenario, ...]

    @property
    def scenario_ids(self) -> list[str]:
        """The ids of its scenarios, in their order."""
        return [one.id for one in self.scenarios]

    @property
    def digest(self) -> str:
        """The digest of all that its scenarios are."""
        return _digest([_content(one) for one in self.scenarios])


@cache
def suites() -> tuple[BuiltInSuite, ...]:
    """The built-in suites: of each vertical one to evaluate on, and one to train on."""
    return tuple(
        BuiltInSuite(
            id=_IDS.get((name, purpose), f"{_PREFIX[purpose]}{name.lower()}"),
            name=f"{name} {purpose}",
            purpose=purpose,
            vertical=name,
            scenarios=tuple(one for one in VERTICALS[name].scenarios if one.split == purpose),
        )
        for name in VERTICALS
        for purpose in (EVALUATION, TRAINING)
    )


def suite(suite_id: str) -> BuiltInSuite | None:
    """The built-in suite with this id."""
    return next((one for one in suites() if one.id == suite_id), None)


def find(library_id: str) -> Scenario | None:
    """The scenario of the library with this id."""
    return _by_id().get(library_id)


def ids() -> Iterable[str]:
    """The ids of the library's scenarios."""
    return _by_id().keys()


def chosen(
    *,
    vertical: str | None = None,
    tiers: Sequence[int] = (),
    domain: str | None = None,
    tags: Iterable[str] = (),
) -> Iterator[Scenario]:
    """The scenarios of the library for which all of this holds; case makes no difference."""
    wanted = {one.lower() for one in tags}
    for one in _by_id().values():
        if (
            (vertical is None or one.vertical.lower() == vertical.lower())
            and (not tiers or one.tier in tiers)
            and (domain is None or one.domain.lower() == domain.lower())
            and wanted <= {tag.lower() for tag in one.tags}
        ):
            yield one


def held_out_case(vertical: str, scenario_id: str, tier: int) -> Scenario:
    """What evaluations play for a scenario that names no case: one of its tier that is held out.

    The same one for the same id.
    """
    cases = [one for one in chosen(vertical=vertical, tiers=(tier,)) if one.split == EVALUATION]
    drawn = hashlib.sha256(scenario_id.encode()).digest()
    return cases[int.from_bytes(drawn[:8], "big") % len(cases)]


def entry(one: Scenario) -> JsonObject:
    """A scenario of the library as clients read it.

    `avg_completion_steps` is how many calls its reference solution takes.
    """
    return {
        "id": one.id,
        "title": one.title,
        "name": one.title,
        "vertical": one.vertical,
        "tier": one.tier,
        "domain": one.domain,
        "tags": list(one.tags),
        "task_prompt": one.prompt,
        "max_steps": one.max_steps,
        "available_tools": list(one.tools),
        "avg_completion_steps": len(one.reference),
        "success_criteria": dict(one.success),
        "purpose": one.split,
        "source": LIBRARY,
        "version": VERSION,
        "content_sha256": _digest(_content(one)),
    }


def as_played(one: Scenario) -> JsonObject:
    """A scenario of the library as an environment is told of it."""
    return {
        "id": one.id,
        "name": one.title,
        "tier": one.tier,
        "version": VERSION,
        "task_prompt": one.prompt,
        "max_steps": one.max_steps,
        "available_tools": list(one.tools),
        "context_injection": {BASED_ON: one.id},
    }


@cache
def _by_id() -> dict[str, Scenario]:
    return {one.id: one for name in VERTICALS for one in VERTICALS[name].scenarios}


def _content(one: Scenario) -> JsonObject:
    return {
        "id": one.id,
        "tier": one.tier,
        "prompt": one.prompt,
        "setup": dict(one.setup),
        "tools": list(one.tools),
        "max_steps": one.max_steps,
        "success": dict(one.success),
    }


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
