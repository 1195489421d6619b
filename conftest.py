"""What tests of several packages share: a real browser."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import ConsoleMessage, Error, Page, Request

_LOCAL_HOSTS = ("", "127.0.0.1", "localhost")


@pytest.fixture
def browser_page() -> Iterator[Page]:
    """A page of a headless Chromium of its own; a test without one fails.

    At the end of the test, it fails where the page logged an error, raised, or asked a host that
    is not this machine.
    """
    from playwright.sync_api import sync_playwright  # it takes a while, and most tests have no page

    found = subprocess.run(
        [Path(__file__).parent / "scripts" / "browser", "--find"],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        pytest.fail(found.stderr)
    wrong: list[str] = []

    def heard(message: ConsoleMessage) -> None:
        # A page asks once more before it hears that its server has ended.
        ended = "ERR_CONNECTION_REFUSED" in message.text
        if message.type in ("error", "warning") and not ended:
            wrong.append(f"{message.type}: {message.text}")

    def raised(error: Error) -> None:
        wrong.append(f"raised: {error}")

    def asked(request: Request) -> None:
        if urlsplit(request.url).hostname not in (None, *_LOCAL_HOSTS):
            wrong.append(f"asked: {request.url}")

    # For each test: while it runs, playwright's loop is the thread's, and asyncio has none.
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found.stdout.strip(), args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        page = browser.new_context(viewport={"width": 1280, "height": 860}).new_page()
        page.set_default_timeout(15_000)
        page.on("console", heard)
        page.on("pageerror", raised)
        page.on("request", asked)
        yield page
        browser.close()
    assert not wrong, "\n".join(wrong)
