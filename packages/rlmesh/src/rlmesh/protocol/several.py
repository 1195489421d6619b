"""What the infos of a session with several environments say: one of each, or why it failed.

A step of several environments is one message; where one of them fails, the others' outcomes count.
So a failure travels in the place of that environment's info, and its observation, reward and flags
mean nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias, cast

from rlcore import ProtocolException

from rlmesh.protocol.faults import Fault

INFOS: Final = "rlmesh.several.infos"
FAULTS: Final = "rlmesh.several.faults"

Info: TypeAlias = Mapping[str, object]
_NOTHING: Final[Info] = {}
Told: TypeAlias = dict[str, object] | Fault


def in_one(told: Sequence[Info | Fault]) -> dict[str, object]:
    """Return the infos and failures of several environments as one info; empty for empty infos."""
    faults = {str(place): _said(one) for place, one in enumerate(told) if isinstance(one, Fault)}
    infos = [_NOTHING if isinstance(one, Fault) else one for one in told]
    whole: dict[str, object] = {}
    if any(infos):
        whole[INFOS] = infos
    if faults:
        whole[FAULTS] = faults
    return whole


def of_each(info: Info, count: int) -> list[Told]:
    """Return what `in_one` put together; what else is in the info belongs to the first.

    Raises:
        ProtocolException: it is not about so many environments, or not of this form.
    """
    infos = _infos(info.get(INFOS), count)
    told: list[Told] = [dict(one) for one in infos]
    rest = {key: value for key, value in info.items() if key not in (INFOS, FAULTS)}
    told[0] = {**infos[0], **rest}
    for place, said in _faults(info.get(FAULTS)).items():
        if place not in {str(number) for number in range(count)}:
            raise ProtocolException(f"a failure of environment {place!r} of {count}")
        told[int(place)] = _fault(said)
    return told


def _infos(found: object, count: int) -> Sequence[Info]:
    if found is None:
        return [_NOTHING] * count
    kind = type(found).__name__
    rows: list[object] = list(cast("list[object]", found)) if isinstance(found, list) else []
    if len(rows) != count or not all(isinstance(row, Mapping) for row in rows):
        raise ProtocolException(f"the infos of {count} environments are a {kind}")
    return cast("list[Info]", rows)


def _faults(found: object) -> Info:
    if found is None:
        return {}
    kind = type(found).__name__
    if not isinstance(found, Mapping):
        raise ProtocolException(f"the failures of environments are a {kind}")
    return cast("Info", found)


def _said(fault: Fault) -> Info:
    return {
        "code": int(fault.code),
        "message": fault.message,
        "recoverable": fault.recoverable,
        "debug_info": fault.debug_info,
    }


def _fault(said: object) -> Fault:
    kind = type(said).__name__
    if isinstance(said, Mapping):
        facts = cast("Info", said)
        code, message = facts.get("code"), facts.get("message")
        recoverable, debug_info = facts.get("recoverable"), facts.get("debug_info")
        if (
            isinstance(code, int)
            and isinstance(message, str)
            and isinstance(recoverable, bool)
            and isinstance(debug_info, str)
        ):
            return Fault(code, message, recoverable=recoverable, debug_info=debug_info)
    raise ProtocolException(f"the failure of an environment is told as a {kind}")
