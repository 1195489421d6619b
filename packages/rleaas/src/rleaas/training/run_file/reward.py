"""The reward function that an entry names: a file beside it, or code in its own words."""

from __future__ import annotations

from pathlib import Path
from typing import Final, cast

from rleaas.training import config_rules as rules
from rleaas.training.run_file.positions import Position
from rleaas.training.run_file.problems import Findings

PYTHON: Final = ".py"


def check_reward(key: str, value: object) -> dict[str, str]:
    """The reward function as `{"path": …}` or `{"inline": …}`.

    Raises:
        ConfigurationError: it is in none of the published forms.
    """
    if isinstance(value, str):
        return _from_text(key, value)
    if not isinstance(value, dict):
        raise rules.bad(key, value, "must be a path, an expression, or an object with one of them")
    given = rules.mapping(key, cast("object", value))
    kind, told = given.get("type"), given.get("value")
    if isinstance(kind, str) and kind.strip() in ("path", "inline") and _said(told):
        return {kind.strip(): cast("str", told).strip()}
    for name in given:
        if name not in ("path", "inline", "type", "value"):
            raise rules.unknown(name, key, ("path", "inline", "type", "value"))
    forms = {name: given[name] for name in ("path", "inline") if _said(given.get(name))}
    if len(forms) != 1:
        raise rules.bad(key, given, "must have either a `path` or an `inline`")
    return {name: cast("str", told).strip() for name, told in forms.items()}


def reward_from(
    value: object, folder: Path | None, at: Position, path: str, found: Findings
) -> dict[str, str]:
    """Return the reward function with its file where it really lies; a missing one is noted.

    Args:
        value: what the entry says.
        folder: that of the config.json; None leaves paths as they are.
        at: where the entry says it.
        path: of the entry.
        found: what notes the problem.
    """
    reward = check_reward("reward_fn", value)
    if "path" not in reward or folder is None:
        return reward
    file = (folder / Path(reward["path"]).expanduser()).resolve()
    if not file.is_file():
        found.refuse(
            f"{path}.reward_fn",
            at,
            f"there is no file {reward['path']!r} in {str(folder)!r}",
            "A path counts from the directory of the config file.",
        )
    return {"path": str(file)}


def _from_text(key: str, value: str) -> dict[str, str]:
    told = value.strip()
    if not told:
        raise rules.bad(key, value, "must not be blank")
    one_word = len(told.split()) == 1
    return {"path": told} if one_word and told.endswith(PYTHON) else {"inline": told}


def _said(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
