"""What a client tells: hooks, logs, progress; and that none of it has a secret."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from types import ModuleType, SimpleNamespace

import pytest
from rleaas import AsyncClient, Client
from rleaas._drivers.progress import NotebookBar, progress_for_people
from rleaas._drivers.terminal import ProgressLine, bar, printable
from rleaas._flow.wire import Reply, Request, Show
from rleaas.testing import Answers, reply

KEY = "rleaas_sk_very_secret"
NEW_KEY = {"id": "1", "key": "rleaas_sk_another_secret"}


def answers() -> Answers:
    def job(status: str, done: int) -> Reply:
        return reply({"job_id": "j", "status": status, "progress": done})

    return Answers(
        {
            "GET /api": [
                reply({}, 503),
                reply({"status": "ok"}, headers={"x-request-id": "req_7"}),
            ],
            "POST /api/keys": reply(NEW_KEY),
            "GET /training/j": [job("running", 10), job("running", 50), job("completed", 100)],
        }
    )


def test_hooks_hear_of_every_attempt_and_of_no_credential() -> None:
    asked: list[Request] = []
    told: list[tuple[Request, Reply, float]] = []
    with Client(
        KEY,
        "http://localhost:1",
        transport=answers().transport,
        on_request=asked.append,
        on_reply=lambda request, answer, seconds: told.append((request, answer, seconds)),
    ) as client:
        client.ping()

    assert [str(one) for one in asked] == ["GET /api", "GET /api"]
    assert [one.status for _, one, _ in told] == [503, 200]
    assert told[1][1].request_id == "req_7"
    assert all(seconds >= 0 for _, _, seconds in told)
    assert KEY not in repr(asked) + repr(told)


@pytest.mark.anyio
async def test_awaited_hooks_hear_the_same() -> None:
    asked: list[Request] = []
    told: list[int] = []
    async with AsyncClient(
        base_url="http://localhost:1",
        transport=answers().transport,
        on_request=asked.append,
        on_reply=lambda _, one, __: told.append(one.status),
    ) as client:
        await client.ping()

    assert (len(asked), told) == (2, [503, 200])


def test_what_a_hook_raises_is_raised() -> None:
    def forbid(request: Request) -> None:
        raise PermissionError(str(request))

    with (
        Client(
            base_url="http://localhost:1", transport=answers().transport, on_request=forbid
        ) as client,
        pytest.raises(PermissionError, match="GET /api"),
    ):
        client.ping()


def test_no_secret_is_in_logs_or_reprs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with Client(KEY, "http://localhost:1", transport=answers().transport) as client:
        client.ping()
        made = client.Keys.create("ci")
        shown = [repr(client), repr(client.settings), str(client.settings), repr(made)]

    assert "GET /api -> 200" in caplog.text
    assert "request req_7" in caplog.text
    for text in (caplog.text, *shown):
        assert "very_secret" not in text
        assert "another_secret" not in text


class Bars:
    """Notes what it is told to show."""

    def __init__(self) -> None:
        self.shown: list[Show] = []
        self.closed = 0

    def show(self, step: Show) -> None:
        self.shown.append(step)

    def close(self) -> None:
        self.closed += 1


def test_progress_is_shown_by_whoever_the_caller_says() -> None:
    bars = Bars()
    with Client(
        base_url="http://localhost:1", transport=answers().transport, progress=lambda: bars
    ) as client:
        client.TrainingJob.get("j").wait_until_complete(poll_interval=0.001)

    assert [one.fraction for one in bars.shown] == [0.5, 1.0]
    assert bars.closed == 1


@pytest.mark.anyio
async def test_awaited_progress_is_shown_by_whoever_the_caller_says() -> None:
    bars = Bars()
    async with AsyncClient(
        base_url="http://localhost:1", transport=answers().transport, progress=lambda: bars
    ) as client:
        job = await client.TrainingJob.get("j")
        await job.wait_until_complete(poll_interval=0.001)

    assert ([one.fraction for one in bars.shown], bars.closed) == ([0.5, 1.0], 1)


def test_a_terminal_shows_a_bar_on_one_line_and_obeys_no_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    line = ProgressLine()
    line.show(Show("job 'a\x1b[2J\nb'", fraction=0.5))
    line.close()

    written = capsys.readouterr().err.removeprefix("\r\x1b[2K")
    assert written.startswith("[##########----------] job 'a [2J b'")
    assert written.count("\n") == 1
    assert "\x1b" not in written


@pytest.mark.parametrize(("fraction", "full"), [(-1, 0), (0, 0), (0.51, 10), (1, 20), (7, 20)])
def test_a_bar_has_one_length(fraction: float, full: int) -> None:
    assert (bar(fraction).count("#"), len(bar(fraction))) == (full, 22)


def test_a_terminal_without_our_letters_gets_others() -> None:
    assert printable("é · ✓", "ascii") == "? ? ?"


def test_a_notebook_gets_one_bar_that_is_drawn_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[str] = []

    def note(picture: dict[str, str], **_: object) -> SimpleNamespace:
        drawn.append(picture["text/html"])
        return SimpleNamespace(update=note)

    def module(name: str, **fields: Callable[..., object]) -> None:
        made = ModuleType(name)
        for field, value in fields.items():
            setattr(made, field, value)
        monkeypatch.setitem(sys.modules, name, made)

    module("ipykernel")
    module("IPython.display", display=note)
    module("IPython.core.getipython", get_ipython=lambda: object())
    progress = progress_for_people()
    progress.show(Show("<b>job</b>", elapsed="0:01", fraction=0.25))
    progress.show(Show("done"))
    progress.close()

    assert isinstance(progress, NotebookBar)
    assert drawn[0].startswith('<div><progress value="0.2500" max="1">')
    assert "&lt;b&gt;job&lt;/b&gt; · 0:01" in drawn[0]
    assert drawn[1] == "<div>done</div>"


def test_outside_a_notebook_progress_is_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "ipykernel", raising=False)

    assert isinstance(progress_for_people(), ProgressLine)
