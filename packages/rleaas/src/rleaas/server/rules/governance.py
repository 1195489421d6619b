"""How data is governed: what a configuration may say, what is masked, when somebody is warned."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, cast

from rlcore import ConfigurationError, InvalidRequestError

from rleaas.server.rules.json_values import number, problem_with
from rleaas.training.kept_checkpoints import validate_kept

Config = dict[str, object]

AVG_REWARD_DROP: Final = "avg_reward_drop"
PASS_RATE_MIN: Final = "pass_rate_min"
COMPLIANCE_FAIL_RATE_MAX: Final = "compliance_fail_rate_max"
THRESHOLDS: Final = (AVG_REWARD_DROP, PASS_RATE_MIN, COMPLIANCE_FAIL_RATE_MAX)
MASK: Final = "[masked]"
DEFAULTS: Final[Mapping[str, object]] = {
    "data_retention_days": None,
    "pii_fields": [],
    "alert_thresholds": {},
    "compliance_tags": [],
}
_MOST_DAYS: Final = 36_500
_FLAGS: Final = ("stop_on_alert", "compliance_hard_stop", "human_in_the_loop")
_LISTS: Final = ("pii_fields", "compliance_tags")
KEPT: Final = "checkpoint_retention"
_SETTINGS: Final = (*DEFAULTS, *_FLAGS, KEPT, "max_risk_threshold", "override_actions")
_MOST_NAMES: Final = 200
_LONGEST_NAME: Final = 200


@dataclass(frozen=True, slots=True)
class Alert:
    """A threshold that was crossed, and by which figure."""

    threshold: str
    limit: float
    value: float


def merged(before: Mapping[str, object], given: Mapping[str, object]) -> Config:
    """The configuration after one more call of configure; None takes a setting back.

    Raises:
        InvalidRequestError: a setting cannot be used; it is named.
    """
    for name, value in given.items():
        if name not in _SETTINGS:
            raise _unusable(f"{_told(name)} is no setting; there are {', '.join(_SETTINGS)}")
        if value is not None:
            _check(name, value)
    after = {**before, **given}
    old, new = before.get("alert_thresholds"), given.get("alert_thresholds")
    if isinstance(old, dict) and isinstance(new, dict):
        both = {**cast("Config", old), **cast("Config", new)}
        after["alert_thresholds"] = {key: one for key, one in both.items() if one is not None}
    return {name: value for name, value in after.items() if value is not None}


def effective(platform: Mapping[str, object], own: Mapping[str, object]) -> Config:
    """What holds for an environment: its own settings before the platform's.

    Lists are joined, as an environment cannot unmask what the platform masks.
    """
    result: Config = {**DEFAULTS, **platform, **own}
    for name in _LISTS:
        result[name] = list(dict.fromkeys([*texts(platform.get(name)), *texts(own.get(name))]))
    kept = {**_object(platform.get(KEPT)), **_object(own.get(KEPT))}
    if kept:
        result[KEPT] = kept
    result["alert_thresholds"] = {
        **_object(platform.get("alert_thresholds")),
        **_object(own.get("alert_thresholds")),
    }
    return result


def masked(value: object, fields: Sequence[str]) -> object:
    """The value with a mask in place of every field of these names, at any depth."""
    if not fields:
        return value
    return _masked(value, frozenset(name.casefold() for name in fields))


def alerts_of_training(config: Mapping[str, object], best: float, now: float) -> list[Alert]:
    """What the mean reward of a running job raises, after a best one of this height."""
    limit = number(_object(config.get("alert_thresholds")).get(AVG_REWARD_DROP))
    if limit is None or best - now < limit:
        return []
    return [Alert(AVG_REWARD_DROP, limit, best - now)]


def alerts_of_result(
    config: Mapping[str, object], pass_rate: float | None, fail_rate: float | None
) -> list[Alert]:
    """What the result of an evaluation, or of a finished training, raises."""
    thresholds = _object(config.get("alert_thresholds"))
    least, most = (number(thresholds.get(name)) for name in THRESHOLDS[1:])
    found: list[Alert] = []
    if least is not None and pass_rate is not None and pass_rate < least:
        found.append(Alert(PASS_RATE_MIN, least, pass_rate))
    if most is not None and fail_rate is not None and fail_rate > most:
        found.append(Alert(COMPLIANCE_FAIL_RATE_MAX, most, fail_rate))
    return found


def unchecked(config: Mapping[str, object], fail_rate: float | None) -> list[str]:
    """What could not be held against a threshold of this configuration, in words."""
    most = number(_object(config.get("alert_thresholds")).get(COMPLIANCE_FAIL_RATE_MAX))
    if most is None or fail_rate is not None:
        return []
    tags = ", ".join(texts(config.get("compliance_tags"))) or "none are configured"
    return [
        f"the alert threshold {COMPLIANCE_FAIL_RATE_MAX} was not checked: no verdict is of a "
        f"compliance verifier, or has one of governance's compliance_tags ({tags})"
    ]


def stops(config: Mapping[str, object], alert: Alert) -> bool:
    """Whether this alert ends the job that raised it."""
    hard = config.get("compliance_hard_stop") is True
    return config.get("stop_on_alert") is True or (
        hard and alert.threshold == COMPLIANCE_FAIL_RATE_MAX
    )


def compliance_fail_rate(
    results: Sequence[Mapping[str, object]], tags: Sequence[str]
) -> float | None:
    """The share of compliance checks that failed; None: there were none.

    A verifier's result is one when its type is `compliance`, or it has one of the tags.
    """
    wanted = {tag.casefold() for tag in tags}
    checks = [
        one
        for one in results
        if one.get("type") in ("compliance", "compliance_check")
        or wanted & {tag.casefold() for tag in texts(one.get("compliance_tags"))}
    ]
    if not checks:
        return None
    return sum(1 for one in checks if one.get("passed") is False) / len(checks)


def texts(value: object) -> list[str]:
    """The texts in a list; none where it is not one."""
    if not isinstance(value, list):
        return []
    return [one for one in cast("list[object]", value) if isinstance(one, str)]


def _masked(value: object, names: frozenset[str]) -> object:
    if isinstance(value, Mapping):
        return {
            key: MASK if str(key).casefold() in names else _masked(one, names)
            for key, one in cast("Mapping[object, object]", value).items()
        }
    if isinstance(value, list | tuple):
        return [_masked(one, names) for one in cast("Sequence[object]", value)]
    return value


def _object(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _check(name: str, value: object) -> None:
    problem = problem_with(value, name)
    if problem:
        raise _unusable(problem)
    if name == "data_retention_days":
        if isinstance(value, bool) or not isinstance(value, int) or not 0 < value <= _MOST_DAYS:
            raise _unusable(
                f"{name} is {_told(value)}, not a number of days from 1 to {_MOST_DAYS}"
            )
    elif name in _LISTS:
        _check_names(name, value)
    elif name == "alert_thresholds":
        _check_thresholds(value)
    elif name == KEPT:
        _check_kept(value)
    elif name == "max_risk_threshold":
        _check_number(name, value, most=1.0)
    elif name == "override_actions":
        _check_actions(value)
    elif not isinstance(value, bool):
        raise _unusable(f"{name} is {_told(value)}, not true or false")


def _check_kept(value: object) -> None:
    try:
        validate_kept(KEPT, value)
    except ConfigurationError as error:
        raise _unusable(error.message) from error


def _check_actions(value: object) -> None:
    actions = _object(value)
    if actions != value or not all(isinstance(one, str) for one in actions.values()):
        raise _unusable(f"override_actions is {_told(value)}, not an object of texts")


def _check_names(name: str, value: object) -> None:
    names = texts(value)
    if names != value:
        raise _unusable(f"{name} is {_told(value)}, not a list of names")
    if len(names) > _MOST_NAMES:
        raise _unusable(f"{name} has {len(names)} names, more than {_MOST_NAMES}")
    for one in names:
        if not one.strip() or len(one) > _LONGEST_NAME:
            raise _unusable(f"{name} has the name {_told(one)}; 1 to {_LONGEST_NAME} letters do")


def _check_number(name: str, value: object, *, most: float | None) -> None:
    found = number(value)
    if found is None:
        raise _unusable(f"{name} is {_told(value)}, not a number")
    if found < 0 or (most is not None and found > most):
        raise _unusable(f"{name} is {found:g}, not " + (f"0 to {most:g}" if most else "0 or more"))


def _check_thresholds(value: object) -> None:
    if not isinstance(value, dict):
        raise _unusable(f"alert_thresholds is {_told(value)}, not an object of numbers")
    for name, limit in cast("Config", value).items():
        if name not in THRESHOLDS:
            raise _unusable(f"alert_thresholds.{name} is none of {', '.join(THRESHOLDS)}")
        if limit is not None:
            # All but the first are shares.
            most = None if name == AVG_REWARD_DROP else 1.0
            _check_number(f"alert_thresholds.{name}", limit, most=most)


def _told(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}..."


def _unusable(what: str) -> InvalidRequestError:
    return InvalidRequestError(what, status_code=422, code="invalid_governance")
