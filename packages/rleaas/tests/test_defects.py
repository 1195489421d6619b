"""The defects of the published client, each with the tests that show it gone.

A test says so by a comment above it, or in it: `# defect: F-1`. The table is in the names of the
tests here, and is printed where one fails.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PLACES = ("packages/core/tests", "packages/rleaas/tests", "integration_tests")
COMMENT = re.compile(r"^\s*# defect: (\S+)$")
TEST = re.compile(r"^\s*(?:async )?def (test_\w+)")

DEFECTS = {
    "F-1": "a wait for an environment that is not there says ready",
    "F-2": "waits for jobs swallow every error",
    "F-3": "a failed evaluation returns like a good one",
    "F-4": "an evaluation without an environment is not found again",
    "F-5": "a report without an environment is that of everything",
    "F-6": "the current episode is the percentage",
    "F-7": "a checkpoint is made up",
    "F-8": "null metadata crashes the list of checkpoints",
    "F-9": "an unscored or misspelt best checkpoint",
    "F-10": "deadlines are not kept",
    "F-11": "a status in capitals is not understood",
    "F-12": "what a callback raises is swallowed",
    "F-13": "lines of a log are lost and fetched again and again",
    "F-14": "an empty log is asked for three times",
    "F-15": "every error is an empty list of rollouts",
    "F-16": "a renamed environment keeps its old name",
    "F-17": "a refresh leaves most fields as they were",
    "F-18": "a deployment forgets what was wished for",
    "F-19": "disabling twice enables",
    "F-20": "tools are missed by their category",
    "F-21": "a config overwrites what an evaluation is of",
    "F-22": "empty values cannot be sent",
    "F-23": "environment 0 is another one",
    "F-24": "created is taken for a lifecycle",
    "A-1": "fields of agents are never sent",
    "A-2": "exports are not downloaded",
    "A-3": "a CSV of the audit log is JSON",
    "A-4": "one thing is looked for in the list of all",
    "A-5": "a strange answer is an empty list",
    "A-6": "a reward function is accepted, and never arrives",
    "A-7": "what the documentation speaks of does not exist",
    "T-1": "a repeated POST makes another one",
    "T-2": "transient answers are not retried",
    "T-3": "mistakes in the settings are retried",
    "T-4": "redirects and empty answers are taken for records",
    "T-5": "what is missing is guessed from words",
    "T-6": "errors without a common base and their facts",
    "T-7": "the reason of a refused key is lost",
    "T-8": "what retries means",
    "T-9": "nothing says who asks, and nothing can be set for a call",
    "T-10": "long polls race with the timeout",
    "S-1": "names change the route",
    "S-2": "values of queries are not escaped",
    "S-3": "tokens are sent twice, and keys over plain HTTP",
    "S-4": "webhooks and keys without secrets, lists, scopes or ends",
    "X-1": "asynchronous clients with synchronous resources",
    "X-2": "results that nobody asked a server for",
    "X-3": "awaited waits block",
    "P-1": "the README does not run",
    "P-2": "one route for scenarios, suites and the library",
    "P-3": "one route for evaluations, comparisons and rollouts",
    "P-4": "lists without pages",
    "P-5": "models that disagree with the wire",
    "P-6": "no types, licence, command or examples",
    "P-7": "nonsense is sent",
    "P-8": "ids and names that surprise",
    "P-9": "things are named in four ways",
    "P-10": "settings of episodes that are ignored, dropped or kept",
    "P-11": "operations that are missing",
    "L-1": "a key for a local server",
    "L-2": "a file for every command, and tracebacks",
    "L-3": "errors on standard output",
    "L-4": "options in one place only",
    "L-5": "one setting silently beats another in the file",
    "L-6": "jobs start before the next one is looked at",
    "L-7": "waiting exits with 0 whatever happened",
    "L-8": "limits of logs are hints",
    "L-9": "how to choose an entry of the file is not said",
}


def marks(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield each number that a comment names, with the test that it belongs to."""
    waiting: list[str] = []
    within: str | None = None
    for line in text.splitlines():
        if found := COMMENT.match(line):
            if line.startswith(" "):
                yield found[1], within
            else:
                waiting.append(found[1])
        elif found := TEST.match(line):
            within = found[1]
            yield from ((number, within) for number in waiting)
            waiting = []
        elif waiting and re.match(r"(?:async )?def |class |[A-Z_]+\b.*=", line):
            break
    yield from ((number, None) for number in waiting)


def collected() -> list[tuple[str, str, str | None]]:
    """Return number, file and test of every comment."""
    return [
        (number, str(path.relative_to(ROOT)), test)
        for place in PLACES
        for path in sorted((ROOT / place).rglob("test_*.py"))
        if path != Path(__file__)
        for number, test in marks(path.read_text(encoding="utf-8"))
    ]


@pytest.fixture(scope="module")
def comments() -> list[tuple[str, str, str | None]]:
    return collected()


def test_every_comment_names_a_defect_and_belongs_to_a_test(
    comments: list[tuple[str, str, str | None]],
) -> None:
    assert [one for one in comments if one[0] not in DEFECTS or one[2] is None] == []


@pytest.mark.parametrize("number", DEFECTS)
def test_a_defect_is_shown_to_be_gone(
    number: str, comments: list[tuple[str, str, str | None]]
) -> None:
    shown_by = [f"{path}::{test}" for one, path, test in comments if one == number]
    assert shown_by, f"no test has `# defect: {number}`: {DEFECTS[number]}"


def test_all_of_them_are_in_the_table() -> None:
    counted = {letter: sum(one.startswith(letter) for one in DEFECTS) for letter in "FATSXPL"}
    assert counted == {"F": 24, "A": 7, "T": 10, "S": 4, "X": 3, "P": 11, "L": 9}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# defect: F-1\ndef test_a(): ...", [("F-1", "test_a")]),
        ("# defect: F-1\n@mark\nasync def test_a(): ...", [("F-1", "test_a")]),
        ("def test_a():\n    # defect: F-2\n    ...", [("F-2", "test_a")]),
        ("# defect: F-1\ndef helper(): ...\ndef test_a(): ...", [("F-1", None)]),
        ("# defect: F-1", [("F-1", None)]),
    ],
)
def test_a_comment_belongs_to_the_test_below_or_around_it(
    text: str, expected: list[tuple[str, str | None]]
) -> None:
    assert list(marks(text)) == expected
