"""Real requests to the URLs of deployments, bounded, and only to where they may go."""

import json
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from rlcore import InvalidRequestError

from rleaas.server.dialling import Answer, ask
from rleaas.server.outbound import Outbound

SCHEMES: Final = frozenset({"http", "https"})
_QUESTION_SECONDS: Final = 20.0


class Probes:
    """Asks URLs of deployments.

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
        headers = {"user-agent": "rleaas-probe"}
        if body is None:
            return ask(destination, method, url, seconds=timeout, headers=headers)
        headers["content-type"] = "application/json"
        content = json.dumps(body).encode()
        return ask(destination, method, url, seconds=timeout, headers=headers, content=content)


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
