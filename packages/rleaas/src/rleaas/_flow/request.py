"""Building requests: escaped paths, queries without holes, idempotency keys."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from rlcore import ConfigurationError

from rleaas._flow.wire import NO_BODY, Request

_NO_NUMBERS = (float("inf"), float("-inf"))

Query = Mapping[str, str | int | float | bool | None]


def _with_article(what: str) -> str:
    return f"{'an' if what[0] in 'aeiou' else 'a'} {what}"


def segment(value: str | int, what: str = "id") -> str:
    """Escape a name or id, so that it stays one segment of a path.

    Raises:
        ConfigurationError: it is empty, or a dot segment that every HTTP library would resolve.
    """
    text = str(value)
    if isinstance(value, bool) or not text.strip():
        raise ConfigurationError(
            f"{value!r} is not {_with_article(what)}",
            hint=f"Pass the {what} of something that exists.",
        )
    if text in (".", ".."):
        raise ConfigurationError(
            f"{value!r} cannot be {_with_article(what)}",
            hint="It would change the path of the request.",
        )
    try:
        return quote(text, safe="")
    except UnicodeEncodeError as error:
        raise ConfigurationError(
            f"the {what} {value!r} is not text", hint="It holds half of a surrogate pair."
        ) from error


def path(template: str, *values: str | int, what: str = "id") -> str:
    """Fill a template's `{}` with escaped segments."""
    return template.format(*(segment(value, what) for value in values))


def query(params: Query | None) -> tuple[tuple[str, str], ...]:
    """Return the parameters that are not None, as text.

    Raises:
        ConfigurationError: one is no text, number or truth value, or a text that cannot be sent.
    """
    return tuple(
        (name, _text(name, value)) for name, value in (params or {}).items() if value is not None
    )


def get(
    path: str,
    params: Query | None = None,
    *,
    timeout: float | None = None,
    kind: str | None = None,
    ref: str | int | None = None,
) -> Request:
    """Return a GET request."""
    return Request(
        method="GET",
        path=path,
        params=query(params),
        timeout=timeout,
        kind=kind,
        ref=None if ref is None else str(ref),
    )


def post(
    path: str,
    json: object = NO_BODY,
    *,
    key: str,
    kind: str | None = None,
    ref: str | int | None = None,
    timeout: float | None = None,
    params: Query | None = None,
) -> Request:
    """Return a POST request that carries an idempotency key."""
    if not key.strip() or not key.isascii() or not key.isprintable():
        raise ConfigurationError(
            f"{key!r} is not an idempotency key", hint="Use printable ASCII, such as a UUID."
        )
    return Request(
        method="POST",
        path=path,
        params=query(params),
        json=json,
        headers={"Idempotency-Key": key},
        keyed=True,
        kind=kind,
        ref=None if ref is None else str(ref),
        timeout=timeout,
    )


def _text(name: str, value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float) or value in _NO_NUMBERS or value != value:
        raise ConfigurationError(
            f"{name} {value!r} cannot be sent", hint="Pass a text or a number."
        )
    try:
        text = str(value)
        text.encode()
    except ValueError as error:
        raise ConfigurationError(
            f"{name} {type(value).__name__} cannot be sent: {error}"
        ) from error
    return text
