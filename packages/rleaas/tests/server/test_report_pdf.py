from __future__ import annotations

import re
import zlib
from datetime import UTC, datetime

import pytest
from rleaas.server.report_pdf import as_pdf

MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)


def text_of(content: bytes) -> str:
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.DOTALL)
    shown = b"".join(zlib.decompress(one) for one in streams if one[:1] == b"x")
    return b" ".join(re.findall(rb"\((.*?)\) Tj", shown)).decode("latin-1")


def report(**fields: object) -> dict[str, object]:
    return {"id": "eval_1", "status": "completed", "environment": "E", **fields}


def test_letters_that_the_font_lacks_are_told_as_escapes_and_control_characters_are_gone() -> None:
    told = text_of(as_pdf([report(name="中 Zürich\x07\n)")], made=MADE, episodes=True))
    assert r"\\u4e2d Zürich" in told
    assert "\x07" not in told


def test_no_evaluations_make_a_page_that_says_so() -> None:
    content = as_pdf([], made=MADE, episodes=True)
    assert "evaluations 0" in text_of(content)
    assert "2026-03-01T12:00:00+00:00" in text_of(content)


@pytest.mark.parametrize(
    ("fields", "shown"),
    [
        ({"mean_return": 2.5, "return_interval": [1.0, 4.0]}, "2.5 [1, 4] \\(95 %\\)"),
        ({"mean_return": 2.5, "return_interval": None}, "2.5"),
        ({"mean_return": None}, "eval_1"),
    ],
)
def test_an_average_comes_with_its_interval(fields: dict[str, object], shown: str) -> None:
    told = text_of(as_pdf([report(**fields)], made=MADE, episodes=False))
    assert shown in told
    assert ("mean return" in told) == (fields["mean_return"] is not None)


def test_thousands_of_episodes_are_all_there() -> None:
    episodes = [{"index": i, "seed": i, "outcome": "success", "reward": 1.0} for i in range(3000)]
    told = text_of(as_pdf([report(episodes=episodes)], made=MADE, episodes=True))
    assert told.count("success") == 3000 + 1


def test_tiers_scenarios_and_verifiers_have_their_figures() -> None:
    told = text_of(
        as_pdf(
            [
                report(
                    overall_score=0.5,
                    score_interval=[0.25, 0.75],
                    warnings=["AML was never audited"],
                    tier_results=[{"tier": 2, "scored": 4, "pass_rate": 0.75}],
                    scenario_results=[{"scenario_id": "wire_1", "mean_score": 0.5}],
                    verifier_breakdown={"ver_1": {"name": "AML", "version": 3, "audited": False}},
                    costs={"steps": 12},
                )
            ],
            made=MADE,
            episodes=False,
        )
    )
    for text in ("0.5 [0.25, 0.75]", "AML was never audited", "tier 2", "75.0 %", "wire_1"):
        assert text in told
    assert "version 3, audited: no" in told
    assert "steps 12" in told
