"""A tool that somebody's HTTP endpoint runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Final
from urllib.parse import quote, urlencode, urlsplit

from rlcore import Secret

from rleaas.sims.state import Json
from rleaas.sims.tool import INVALID_ARGUMENTS, Refused
from rleaas.sims.user_tools.exchange import LARGEST_REPLY, Reply, Request, ask
from rleaas.sims.user_tools.shapes import array_of, object_of, wrong

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE")
KEYS: Final = ("url", "method", "timeout_seconds", "token", "addresses", "refused")
SECONDS: Final = 5.0
MOST_SECONDS: Final = 30.0
_WITHOUT_BODY: Final = frozenset({"GET", "DELETE"})
_SAID: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a tool's calls go.

    Arguments that the URL names in braces go into its path. The others are the query of a GET or
    DELETE, and the JSON body of what has one.

    Attributes:
        tool: the tool's name.
        url: with scheme and host.
        method: of HTTP.
        seconds: how long one call may take as a whole.
        token: what it is asked with, as a bearer; it is in no result.
        addresses: where the host is, when that was looked at already.
        refused: why it must not be asked.
    """

    tool: str
    url: str
    method: str = "POST"
    seconds: float = SECONDS
    token: Secret | None = None
    addresses: tuple[str, ...] = ()
    refused: str | None = None

    def call(self, arguments: Mapping[str, Json]) -> dict[str, Json]:
        """Ask the endpoint, once.

        Raises:
            Refused: it did not answer with a result; nothing is known of what it did.
        """
        if self.refused is not None:
            raise Refused("endpoint_not_allowed", f"{self.tool}: {self.refused}")
        return self._result(ask(self._request(arguments)))

    def _request(self, arguments: Mapping[str, Json]) -> Request:
        in_path = {name for _, name, _, _ in Formatter().parse(self.url) if name}
        path = {name: self._in_path(name, arguments) for name in in_path}
        rest = {name: value for name, value in arguments.items() if name not in in_path}
        url, content = self.url.format(**path), None
        headers = {} if self.token is None else {"authorization": f"Bearer {self.token.reveal()}"}
        if self.method not in _WITHOUT_BODY:
            content = json.dumps(rest).encode()
            headers["content-type"] = "application/json"
        elif rest:
            pairs = {name: _texts(value) for name, value in rest.items()}
            url += ("&" if urlsplit(url).query else "?") + urlencode(pairs, doseq=True)
        return Request(
            method=self.method,
            url=url,
            headers=headers,
            content=content,
            addresses=self.addresses,
            seconds=self.seconds,
        )

    def _in_path(self, name: str, arguments: Mapping[str, Json]) -> str:
        text = _text(arguments.get(name, ""))
        # A server may take these for a way to another of its paths.
        if text in ("", ".", ".."):
            raise Refused(
                INVALID_ARGUMENTS, f"{self.tool}: arguments.{name} is part of a path, not {text!r}"
            )
        return quote(text, safe="")

    def _result(self, reply: Reply) -> dict[str, Json]:
        if reply.timed_out:
            raise Refused("endpoint_timeout", f"{self.tool}: {reply.error}")
        if reply.status is None or (reply.error is not None and not reply.complete):
            raise Refused("endpoint_unreachable", f"{self.tool}: {self._hidden(str(reply.error))}")
        said = self._hidden(reply.body.decode("utf-8", "replace"))
        if not 200 <= reply.status < 300:
            raise Refused(
                "endpoint_refused",
                f"{self.tool}: the endpoint answered with status {reply.status}: {said[:_SAID]}",
            )
        if not reply.complete:
            raise Refused(
                "endpoint_reply_too_large",
                f"{self.tool}: the endpoint's reply is larger than {LARGEST_REPLY} bytes",
            )
        if not said.strip():
            return {}
        try:
            value: Json = json.loads(said, parse_constant=_no_number)
        except (ValueError, RecursionError) as error:
            raise Refused(
                "endpoint_reply_invalid", f"{self.tool}: the endpoint's reply is no JSON: {error}"
            ) from error
        found = object_of(value)
        return {"value": value} if found is None else dict(found)

    def _hidden(self, text: str) -> str:
        secret = "" if self.token is None else self.token.reveal()
        return text.replace(secret, "***") if secret else text


def read_endpoint(tool: str, given: object) -> Endpoint:
    """The endpoint that a tool's record describes.

    Raises:
        ConfigurationError: it cannot be used; the message says what is wrong.
    """
    said = object_of(given)
    if said is None:
        raise wrong(tool, "endpoint is an object with a url")
    unknown = sorted(set(said) - set(KEYS))
    if unknown:
        raise wrong(tool, f"endpoint has no {unknown[0]!r}; it has {', '.join(KEYS[:4])}")
    method = str(said.get("method") or "POST").upper()
    if method not in METHODS:
        raise wrong(tool, f"endpoint.method is one of {', '.join(METHODS)}, not {method!r}")
    seconds = said.get("timeout_seconds")
    seconds = SECONDS if seconds is None else seconds
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not 0 < seconds <= MOST_SECONDS:
        raise wrong(tool, f"endpoint.timeout_seconds is above 0, and {MOST_SECONDS:g} at most")
    token = said.get("token")
    if token is not None and not _is_token(token):
        raise wrong(tool, "endpoint.token is a text of printable ASCII characters without spaces")
    return Endpoint(
        tool=tool,
        url=require_url(tool, said.get("url")),
        method=method,
        seconds=float(seconds),
        token=Secret(token) if token else None,
        addresses=tuple(said.get("addresses") or ()),
        refused=said.get("refused"),
    )


def require_url(tool: str, url: object) -> str:
    """The URL, if it can be asked.

    Raises:
        ConfigurationError: it cannot.
    """
    if not isinstance(url, str) or len(url) > 2_000:
        raise wrong(tool, "endpoint.url is a text of up to 2,000 characters")
    try:
        parts = urlsplit(url)
        port = parts.port
        fields = [field for field in Formatter().parse(url) if field[1] is not None]
    except ValueError as error:
        raise wrong(tool, f"endpoint.url {url!r} cannot be read: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        raise wrong(tool, f"endpoint.url is an http or https URL with a host, not {url!r}")
    if parts.username is not None or parts.password is not None:
        raise wrong(tool, "endpoint.url has a password in it: give it as endpoint.token")
    if not all((name or "").isidentifier() and not (spec or how) for _, name, spec, how in fields):
        raise wrong(tool, f"in endpoint.url {url!r}, braces hold the name of an argument")
    if "{" in f"{parts.scheme}{parts.netloc}":
        raise wrong(tool, "arguments may be in the path of endpoint.url, and in its query only")
    return url


def _is_token(token: object) -> bool:
    return isinstance(token, str) and token.isascii() and token.isprintable() and " " not in token


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _texts(value: Json) -> Json:
    parts = array_of(value)
    return _text(value) if parts is None else [_text(part) for part in parts]


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")
