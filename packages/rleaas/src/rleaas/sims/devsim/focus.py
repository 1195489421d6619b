"""Schemas of identifiers, and what each tool suggests for the ticket in focus."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from rleaas.sims.devsim import case as _case
from rleaas.sims.state import Json, State
from rleaas.sims.tool import arguments_schema

Suggest = Callable[[State], Mapping[str, Json]]

_PREFIXES = {
    "ticket": "tic",
    "change": "chg",
    "service": "svc",
    "incident": "inc",
    "flag": "flg",
    "secret": "sec",
    "reviewer": "eng",
}


def identifier(what: str) -> dict[str, Json]:
    """The schema of an id."""
    prefix = _PREFIXES[what]
    return {
        "type": "string",
        "pattern": f"^{prefix}_[0-9]{{1,9}}$",
        "description": f"id of the {what}, such as {prefix}_12",
    }


def takes(what: str) -> dict[str, Json]:
    """The parameters of a tool that takes an id and nothing else."""
    return arguments_schema(**{f"{what}_id": identifier(what)})


def choice(*values: str, description: str) -> dict[str, Json]:
    """The schema of one of several words."""
    return {"type": "string", "enum": list(values), "description": description}


def of_focus(what: str) -> Suggest:
    """Suggests the id of this kind that the ticket in focus has; else one that nothing has."""
    key = f"{what}_id"
    nothing = f"{_PREFIXES[what]}_0" if what != "service" else "svc_999"

    def suggest(state: State) -> Mapping[str, Json]:
        return {key: _case.focus(state)[what] or nothing}

    return suggest


def ticket_in_focus(state: State) -> Mapping[str, Json]:
    """Suggests the ticket in focus."""
    return {"ticket_id": _case.focus(state)["id"]}
