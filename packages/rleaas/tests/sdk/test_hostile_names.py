"""Names that are not plain words: kept as they are, or refused; they never reach something else."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from typing import Any

import pytest
from rlcore import ConfigurationError, ConflictError, Error
from rleaas import AsyncClient

from .colours import Colour

Make = Callable[[str], Any]
Find = Callable[[str], Any]
NAMES = [
    "two words",
    "a/b",
    "a/../b",
    "../../etc/passwd",
    "..",
    ".",
    "a?b=c",
    "a#b",
    "a%2Fb",
    "a%b",
    "a&b=c;d",
    "a\\b",
    "é漢字🙂",
    "e\u0301",
    "\u202eabc",
    "a\x00b",
    "a\nb",
    "a\x1b[2J",
    "\x7f",
    "<script>",
    "' OR 1=1 --",
    "a@3",
    "7",
    "",
    " ",
    "\ud800",
    "x" * 400,
    "x" * 100_000,
]


def resources(client: AsyncClient) -> list[tuple[Make, Find]]:
    def agent(name: str) -> Any:
        return client.Agent.register(name)

    def verifier(name: str) -> Any:
        return client.Verifier.create(name, "rule_based")

    def scenario(name: str) -> Any:
        return client.Scenario.create(name)

    def suite(name: str) -> Any:
        return client.ScenarioSuite.create(name, [])

    def tool(name: str) -> Any:
        return client.Tools.register(None, name)

    def environment(name: str) -> Any:
        return client.Environment.create(name)

    return [
        (agent, client.Agent.get),
        (verifier, client.Verifier.get),
        (scenario, client.Scenario.get),
        (suite, client.ScenarioSuite.get),
        (tool, client.Tools.get),
        (environment, client.Environment.get),
    ]


# In one colour: what names become is the server's and the flows', which all colours share.
@pytest.mark.parametrize("colour", ["trio"], indirect=True)
def test_a_hostile_name_is_kept_or_refused_by_every_resource(colour: Colour) -> None:
    async def conversation(client: AsyncClient) -> list[str]:
        wrong: list[str] = []
        for text in NAMES:
            for make, find in resources(client):
                try:
                    made = await make(text)
                except Error:
                    continue
                # Names of environments are compared as people see them.
                same = unicodedata.normalize("NFC", made["name"]) == unicodedata.normalize(
                    "NFC", text
                )
                if not same or not await _found(find, text, made["name"]):
                    wrong.append(f"{make.__name__} {text[:50]!r}")
        return wrong

    assert colour.play(conversation, retries=1) == []


async def _found(find: Find, text: str, name: str) -> bool:
    try:
        return bool((await find(text))["name"] == name)
    except ConfigurationError:
        return text in ("..", ".")  # no path can have them; an id finds it
    except ConflictError as error:
        return error.code == "ambiguous_name"  # another colour has made it too


@pytest.mark.parametrize("method", ["get", "delete"])
def test_a_hostile_id_finds_nothing_and_deletes_nothing(colour: Colour, method: str) -> None:
    async def conversation(client: AsyncClient) -> int | None:
        kept = await client.Scenario.create("kept")
        for text in (
            "../scenarios",
            f"../scenarios/{kept.id}",
            f"{kept.id}?x",
            f"{kept.id}/..",
            ".",
        ):
            for resource in (client.Scenario, client.Verifier, client.ScenarioSuite, client.Tools):
                with pytest.raises(Error):
                    await getattr(resource, method)(text)
        return (await client.Scenario.get(kept.id)).tier

    assert colour.play(conversation, retries=1) == 1
