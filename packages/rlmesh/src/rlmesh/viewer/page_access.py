"""Who may look at the page and drive the run: programs of this machine, and the page itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

LOOPBACK: Final = "127.0.0.1"
_LOOPBACK_NAMES: Final = (LOOPBACK, "localhost", "::1")
_OWN_SITES: Final = ("same-origin", "none")


def refusal(path: str, header: Callable[[str], str | None]) -> str | None:
    """Return why a request is refused, or None for one that is fine.

    A browser says which page a request comes from, in headers that pages cannot change; another
    page must neither see frames nor skip episodes. A name that leads to this machine (DNS
    rebinding) is seen by the Host. Programs send none of these headers.

    Args:
        path: what is asked for.
        header: returns a header of the request by its name, or None.
    """
    host = header("Host")
    if host is None or not _is_loopback(host):
        return "the Host is no name of the loopback interface"
    origin = header("Origin")
    if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
        return "the request comes from another page"
    site = header("Sec-Fetch-Site")
    if site is None or site in _OWN_SITES:
        return None
    if path == "/" and header("Sec-Fetch-Mode") == "navigate":
        return None  # a link to the page, which shows it and does nothing
    return "the request comes from another page"


def _is_loopback(host: str) -> bool:
    try:
        return urlsplit(f"//{host}").hostname in _LOOPBACK_NAMES
    except ValueError:
        return False
