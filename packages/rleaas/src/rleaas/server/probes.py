"""Real requests to the URLs of deployments, bounded, and only to where they may go."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import httpx
from rlcore import InvalidRequestError

from rleaas.server.outbound import Destination, Outbound

SCHEMES: Final = frozenset({"http", "https"})
_LARGEST_REPLY: Final = 64 * 1024
_QUESTION_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: a status with the beginning of the body, or why nothing did."""

    status_code: int | None
    body: str = ""
    error: str | None = None


class Probes:
    """Asks URLs; redirects are not followed, and nothing of the surroundings' proxies is used.

    Args:
        outbound: which hosts may be reached.
    """

    def __init__(self, outbound: Outbound) -> None:
        self._outbound = outbound

    def get(self, url: str, timeout: float) -> Answer:
        """Ask for a page."""
        return self._ask("GET", url, timeout)

    def question(self, url: str, model: str, prompt: str, *, stream: bool) -> tuple[str, Answer]:
        """Ask a model one question, in the form that most servers of models understand.

        Returns:
            The URL that was asked, and the answer.
        """
        endpoint = _completions(url)
        body = {"model": model, "messages": [{"role": "user", "content": prompt}], "stream": stream}
        return endpoint, self._ask("POST", endpoint, _QUESTION_SECONDS, body)

    def _ask(
        self, method: str, url: str, timeout: float, body: Mapping[str, object] | None = None
    ) -> Answer:
        try:
            destination = self._outbound.permit(url, SCHEMES)
        except InvalidRequestError as error:
            return Answer(None, error=error.detail)
        deadline = time.monotonic() + timeout
        request = _at(destination, method, url, body, timeout)
        try:
            with httpx.Client(trust_env=False, timeout=timeout, follow_redirects=False) as http:
                response = http.send(request, stream=True)
                try:
                    return Answer(response.status_code, _beginning(response, deadline))
                finally:
                    response.close()
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            return Answer(None, error=str(error) or type(error).__name__)


def _at(
    destination: Destination,
    method: str,
    url: str,
    body: Mapping[str, object] | None,
    timeout: float,
) -> httpx.Request:
    """A request to the address that was looked at, under the name that was asked for."""
    parsed = httpx.URL(url)
    return httpx.Request(
        method,
        parsed.copy_with(host=destination.addresses[0]),
        json=body,
        headers={"Host": parsed.netloc.decode("ascii"), "User-Agent": "rleaas-probe"},
        extensions={
            "sni_hostname": destination.host,
            "timeout": httpx.Timeout(timeout).as_dict(),
        },
    )


def _beginning(response: httpx.Response, deadline: float) -> str:
    received = b""
    for chunk in response.iter_bytes(4096):
        received += chunk
        # Whoever sends a byte at a time is not waited for, either.
        if len(received) >= _LARGEST_REPLY or time.monotonic() > deadline:
            break
    return received[:_LARGEST_REPLY].decode("utf-8", "replace")


def _completions(url: str) -> str:
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    if path.endswith(("/completions", "/generate", "/chat")):
        return url
    suffix = "/chat/completions" if path.endswith("/v1") else "/v1/chat/completions"
    return parts._replace(path=path + suffix).geturl()


def parsed(text: str) -> object:
    """The body as JSON where it is, else as the text it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text
