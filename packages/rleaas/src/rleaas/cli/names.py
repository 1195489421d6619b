"""The names that a server knows, for completion in shells and as suggestions for wrong ones."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import typer
from rlcore import Error, NotFoundError

from rleaas.cli.options import connect

if TYPE_CHECKING:
    from rleaas import Client

MOST = 200
"""How many names are looked at, where the platform gives them in pages."""

COMPLETION_SECONDS = 2.0

# Completion puts a name on the command line as it is, zsh even evaluates it, and a name is what
# some teammate made of it. No shell reads anything but itself in these.
_LITERAL = re.compile(r"\w[\w./:@+-]*")


def _environments(client: Client) -> list[str]:
    return [one.name for one in client.Environment.list(limit=MOST)]


def _tools(client: Client) -> list[str]:
    return [name for one in client.Tools.list() for name in (one.id, one.name)]


def _agents(client: Client) -> list[str]:
    return [one.id for one in client.Agent.list()]


def _verifiers(client: Client) -> list[str]:
    return [one.id for one in client.Verifier.list()]


def _scenarios(client: Client) -> list[str]:
    return [one.id for one in client.Scenario.list()]


def _suites(client: Client) -> list[str]:
    return [one.id for one in client.ScenarioSuite.list()]


def _jobs(client: Client) -> list[str]:
    return [one.job_id for one in client.TrainingJob.list(limit=MOST)]


def _evaluations(client: Client) -> list[str]:
    return [one.id for one in client.Evaluation.list(limit=MOST)]


def _deployments(client: Client) -> list[str]:
    return [one.id for one in client.Deployment.list()]


def _keys(client: Client) -> list[str]:
    return [one.id for one in client.Keys.list()]


def _webhooks(client: Client) -> list[str]:
    return [one.id for one in client.Webhook.list()]


def _data_assets(client: Client) -> list[str]:
    return [one.id for one in client.DataAsset.list()]


def _organisations(client: Client) -> list[str]:
    return [one.name for one in client.Organisation.list()]


def _library(client: Client) -> list[str]:
    return [one.id for one in client.Scenario.library(limit=MOST)]


def _questions(client: Client) -> list[str]:
    return [str(one["name"]) for one in client.Metrics.list_agent_tools()]


_NAMES: Mapping[str, Callable[[Client], list[str]]] = {
    "environment": _environments,
    "tool": _tools,
    "agent": _agents,
    "verifier": _verifiers,
    "scenario": _scenarios,
    "suite": _suites,
    "training_job": _jobs,
    "evaluation": _evaluations,
    "deployment": _deployments,
    "api_key": _keys,
    "webhook": _webhooks,
    "data_asset": _data_assets,
    "organisation": _organisations,
    "library": _library,
    "question": _questions,
}


def completion(kind: str) -> Callable[[typer.Context, str], list[str]]:
    """Return what completes an argument to a name of this kind; nothing where no server answers.

    Names that a shell would not take literally, as one word, are not offered.
    """

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        given: Mapping[str, str | None] = ctx.params
        try:
            with connect(
                given.get("base_url"),
                given.get("api_key"),
                given.get("profile"),
                timeout=COMPLETION_SECONDS,
                retries=1,
                quiet=True,
            ) as client:
                found = _NAMES[kind](client)
        except Error:
            # A shell that completes has no place for an error; the command itself will say it.
            return []
        return [name for name in found if name.startswith(incomplete) and _LITERAL.fullmatch(name)]

    return complete


def suggest(client: Client, error: NotFoundError) -> str | None:
    """Return the names nearest to one that is not there, as a hint; None where there are none."""
    if error.kind not in _NAMES or not error.ref:
        return None
    try:
        found = _NAMES[error.kind](client)
    except Error:
        # What was asked for failed already; that is what has to be told.
        return None
    by_folded = {name.casefold(): name for name in found}
    asked = error.ref.rpartition("@")[0] or error.ref
    near = difflib.get_close_matches(asked.casefold(), by_folded, n=3, cutoff=0.6)
    if not near:
        return None
    return f"did you mean {' or '.join(repr(by_folded[name]) for name in near)}?"
