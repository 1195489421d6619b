"""How a noun's commands are declared: each says what is its own, the rest is said here once."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, ParamSpec, get_type_hints

import typer
from rlcore import NotFoundError

from rleaas.cli.console import (
    Column,
    print_facts,
    print_json,
    print_json_line,
    print_records,
    record_of,
    say,
)
from rleaas.cli.names import suggest
from rleaas.cli.options import AsJson, BaseUrl, Key, ProfileName, connect

if TYPE_CHECKING:
    from rleaas import Client

P = ParamSpec("P")
Verb = Callable[Concatenate["Asked", P], int | None]

_SHARED: Mapping[str, object] = {
    "base_url": BaseUrl,
    "api_key": Key,
    "profile": ProfileName,
    "as_json": AsJson,
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One run of a command: the client it asks, and who reads what it prints."""

    client: Client
    as_json: bool

    def rows(self, found: Sequence[object], columns: Sequence[Column], *, empty: str) -> None:
        """Print records as a table, or as a JSON list."""
        if self.as_json:
            print_json([record_of(one) for one in found])
            return
        print_records(found, columns, empty=empty)

    def facts(self, found: object, columns: Sequence[Column]) -> None:
        """Print one record, a fact per line, or as a JSON object."""
        if self.as_json:
            print_json(record_of(found))
            return
        print_facts(facts_of(found, columns))

    def done(self, answer: object, sentence: str) -> None:
        """Print what was done, or the platform's answer as JSON."""
        if self.as_json:
            print_json(record_of(answer))
            return
        say(sentence)

    def stream(self, items: Iterable[object], told: Callable[[object], str]) -> None:
        """Print each item as it comes: a line for people, or a JSON object on a line."""
        for item in items:
            if self.as_json:
                print_json_line(record_of(item))
            else:
                say(told(item))
                # Whoever reads it over a pipe follows as well.
                sys.stdout.flush()


def facts_of(found: object, columns: Sequence[Column]) -> dict[str, object]:
    """Return what the columns say of a record, by their titles."""
    return {column.title: column.value(found) for column in columns}


def command(
    app: typer.Typer, name: str, *examples: str, panel: str | None = None
) -> Callable[[Verb[P]], Verb[P]]:
    """Add a verb to a noun; its function gets an `Asked` and what is its own.

    The options that name the server and `--json` are added, the client is opened and closed, and a
    name that is not there gets the nearest ones as a hint.

    Args:
        app: the noun.
        name: the verb.
        examples: what a call looks like, without `rleaas` and the noun.
        panel: where a listing of the commands has it.
    """

    def decorate(verb: Verb[P]) -> Verb[P]:
        hints = get_type_hints(verb, include_extras=True)
        own = [
            parameter.replace(annotation=hints[parameter.name], kind=inspect.Parameter.KEYWORD_ONLY)
            for parameter in [*inspect.signature(verb).parameters.values()][1:]
        ]
        shared = [
            inspect.Parameter(
                option,
                inspect.Parameter.KEYWORD_ONLY,
                default=False if option == "as_json" else None,
                annotation=annotation,
            )
            for option, annotation in _SHARED.items()
        ]

        def run(
            base_url: str | None,
            api_key: str | None,
            profile: str | None,
            as_json: bool,
            *args: P.args,
            **kwargs: P.kwargs,
        ) -> int | None:
            with connect(base_url, api_key, profile) as client:
                try:
                    return verb(Asked(client, as_json), *args, **kwargs)
                except NotFoundError as error:
                    error.hint = error.hint or suggest(client, error)
                    raise

        signature = inspect.Signature([*own, *shared])
        # Typer reads the options of a function from these two.
        run.__dict__["__signature__"] = signature
        run.__annotations__ = {one.name: one.annotation for one in signature.parameters.values()}
        app.command(
            name,
            help=inspect.getdoc(verb),
            epilog=_examples(app, examples),
            rich_help_panel=panel,
        )(run)
        return verb

    return decorate


def _examples(app: typer.Typer, examples: Sequence[str]) -> str:
    noun = "" if app.info.name == "rleaas" else f"{app.info.name} "
    lines = [f"`rleaas {noun}{example}`" for example in examples]
    return f"Example: {lines[0]}" if len(lines) == 1 else "Examples: " + " · ".join(lines)
