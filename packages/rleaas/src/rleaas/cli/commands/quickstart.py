"""`rleaas quickstart`."""

from __future__ import annotations

import signal
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from rleaas.cli.console import print_json, stderr, stdout
from rleaas.cli.failures import FAILURE
from rleaas.cli.options import AsJson, Key, ProfileName, connect
from rleaas.quickstart.plan import DEFAULT_EPISODES, DEFAULT_OUT, Plan
from rleaas.quickstart.vertical_plan import EPISODES, SEEDS, VerticalPlan

if TYPE_CHECKING:
    from rleaas.quickstart.report import Findings
    from rleaas.quickstart.vertical import Compliance


def quickstart(
    vertical: Annotated[
        str | None,
        typer.Option(
            "--vertical",
            metavar="NAME",
            help="Train an agent in a built-in world instead, such as FinSim.",
        ),
    ] = None,
    episodes: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Stop training after so many, even if it is not good "
            f"[{DEFAULT_EPISODES}; in a world {EPISODES}].",
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(
            min=1, help=f"How many seeds to evaluate on [50; in a world {SEEDS} a scenario]."
        ),
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", file_okay=False, help="For the curve and the report."),
    ] = DEFAULT_OUT,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            file_okay=False,
            help="The embedded server's records and checkpoints [OUT/data].",
        ),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the embedded server running until Ctrl-C.")
    ] = False,
    base_url: Annotated[
        str | None,
        typer.Option("--base-url", metavar="URL", help="Use this running server instead."),
    ] = None,
    api_key: Key = None,
    profile: ProfileName = None,
    as_json: AsJson = False,
) -> int:
    """Register CartPole-v1, train PPO on it, evaluate it, and run it here under the same identity.

    With --vertical: let a random agent play the world's held-out suite, train GRPO on its other
    scenarios, and let the trained agent play that suite.

    Starts a server of its own on a free port, unless --base-url names one. Exits with 1 if
    anything fails, or if platform and local results differ.
    """
    from rleaas.quickstart.journey import conclude, travel
    from rleaas.quickstart.needs import NEEDED_FOR_WORLDS, check_installed
    from rleaas.quickstart.platform import platform
    from rleaas.quickstart.shown import Shown
    from rleaas.quickstart.vertical import conclude_through, travel_through
    from rleaas.sims.catalogue import vertical_of

    shown = Shown(stderr() if as_json else stdout())
    plan: Plan | VerticalPlan
    if vertical is None:
        check_installed()
        plan = Plan(
            episodes=episodes or DEFAULT_EPISODES,
            seeds=tuple(range(seeds or 50)),
            out=out,
            data=data,
            base_url=base_url,
        )
    else:
        check_installed(NEEDED_FOR_WORLDS)
        plan = VerticalPlan(
            vertical=vertical_of(vertical).name,
            episodes=episodes or EPISODES,
            seeds=seeds or SEEDS,
            out=out,
            data=data,
            base_url=base_url,
        )
    with terminated_like_interrupted():
        shown.chapter("Start a server" if base_url is None else "Use a running server")
        with platform(plan) as url, connect(url, api_key, profile) as client:
            where = "" if base_url is not None else f", data in {plan.data_folder}"
            shown.tell(f"{url}{where}")
            findings: Findings | Compliance
            if isinstance(plan, VerticalPlan):
                findings = travel_through(client, plan, shown)
                conclude_through(findings, shown)
            else:
                findings = travel(client, plan, shown)
                conclude(findings, shown)
            if as_json:
                print_json(findings.to_dict())
            if keep and base_url is None:
                shown.tell(f"still serving at {url}; Ctrl-C ends it")
                _until_interrupted()
    return FAILURE if findings.shortcomings else 0


@contextmanager
def terminated_like_interrupted() -> Generator[None]:
    """Let SIGTERM and a closed terminal clean up in the way that Ctrl-C does."""

    def interrupt(_signal: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    for number in before:
        signal.signal(number, interrupt)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _until_interrupted() -> None:
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        return
