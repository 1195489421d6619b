import io

from rich.console import Console
from rleaas.quickstart.shown import Shown


def test_without_a_terminal_progress_is_one_line_every_few_seconds() -> None:
    told = io.StringIO()
    times = iter([0.0, 1.0, 5.5, 6.0, 11.0])
    shown = Shown(Console(file=told, width=100), clock=lambda: next(times))
    with shown.bar("training", 100) as bar:
        for done in (10, 20, 30, 40):
            bar.show(done, "mean return 21.0")
    assert told.getvalue().splitlines() == [
        "   training 20/100 mean return 21.0",
        "   training 40/100 mean return 21.0",
    ]


def test_without_a_terminal_a_line_that_says_nothing_new_is_not_repeated() -> None:
    told = io.StringIO()
    times = iter([0.0, 5.5, 11.0, 16.5])
    shown = Shown(Console(file=told, width=100), clock=lambda: next(times))
    with shown.bar("random agent", 95) as bar:
        for done in (0, 0, 12):
            bar.show(done)
    assert told.getvalue().splitlines() == ["   random agent 0/95", "   random agent 12/95"]


def test_on_a_terminal_progress_is_a_bar_that_goes_away() -> None:
    told = io.StringIO()
    console = Console(file=told, width=100, force_terminal=True)
    with Shown(console).bar("training", 100) as bar:
        bar.show(37, "mean return 21.0")
    assert "37/100" in told.getvalue()
    assert "mean return 21.0" in told.getvalue()


def test_chapters_are_numbered() -> None:
    told = io.StringIO()
    shown = Shown(Console(file=told, width=100))
    shown.chapter("Register")
    shown.tell("ready")
    shown.chapter("Train")
    assert told.getvalue() == "\n1. Register\n   ready\n\n2. Train\n"
