"""The digest of a served contract, and what differs between two."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import cast

from rlcore.errors import ConfigurationError

Plain = None | bool | int | float | str | list["Plain"] | dict[str, "Plain"]


def contract_digest(contract: Mapping[str, object]) -> str:
    """Return `sha256:` and the hexadecimal digest of the contract's canonical JSON.

    Canonical means: keys sorted, tuples as lists, bytes as `{"__bytes__": hex}`, and numbers that
    JSON has no form for as the texts `nan`, `inf` and `-inf`. Equal contracts have equal digests
    on every machine.

    Raises:
        ConfigurationError: a value in it has no canonical form.
    """
    text = json.dumps(
        _canonical(contract, ""),
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=True,
        allow_nan=False,
    )
    return f"sha256:{hashlib.sha256(text.encode('ascii')).hexdigest()}"


def contract_differences(
    expected: Mapping[str, object], actual: Mapping[str, object]
) -> tuple[str, ...]:
    """Return the sorted dotted paths at which two contracts differ; none when digests are equal."""
    found: list[str] = []
    _compare(_canonical(expected, ""), _canonical(actual, ""), "", found)
    return tuple(sorted(found))


def _canonical(value: object, path: str) -> Plain:
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray):
        return {"__bytes__": bytes(value).hex()}
    if isinstance(value, Mapping):
        return _canonical_mapping(cast("Mapping[object, object]", value), path)
    if isinstance(value, Sequence):
        items = cast("Sequence[object]", value)
        return [_canonical(item, f"{path}[{index}]") for index, item in enumerate(items)]
    raise ConfigurationError(
        f"a contract cannot hold a {type(value).__name__} (at {path or 'its root'!r})",
        hint="Use None, booleans, numbers, text, bytes, lists and mappings.",
    )


def _canonical_mapping(value: Mapping[object, object], path: str) -> dict[str, Plain]:
    plain: dict[str, Plain] = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise ConfigurationError(
                f"a contract cannot hold the key {key!r} (at {path or 'its root'!r})",
                hint="Use text as keys.",
            )
        plain[key] = _canonical(item, f"{path}.{key}" if path else key)
    return plain


def _compare(expected: Plain, actual: Plain, path: str, found: list[str]) -> None:
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected.keys() | actual.keys():
            below = f"{path}.{key}" if path else key
            if key in expected and key in actual:
                _compare(expected[key], actual[key], below, found)
            else:
                found.append(below)
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, (left, right) in enumerate(zip(expected, actual, strict=True)):
            _compare(left, right, f"{path}[{index}]", found)
    elif repr(expected) != repr(actual):
        # By their text, as the digest sees them: in Python 1, 1.0 and True are equal, in JSON not.
        found.append(path)
