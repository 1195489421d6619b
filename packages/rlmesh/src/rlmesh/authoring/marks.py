"""What the environments of a factory carry: its tags, its branch, its options, its framework."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from rlcore import EnvironmentException

from rlmesh.authoring.keys import BRANCH_KEY, ENV_RESET_OPTIONS_KEY, TAGS_KEY
from rlmesh.authoring.tags import tags_as_dict

if TYPE_CHECKING:
    from rlmesh.authoring.factory import EnvFactory

# Whoever steps an environment in this process sees whose arrays it takes.
FRAMEWORK_MARK: Final = "rlmesh_framework"


def mark(env: object, factory: type[EnvFactory], branch: Mapping[str, Any]) -> None:
    """Write into an environment, or each of a list, what its factory declares.

    Raises:
        EnvironmentException: it does not let itself be written into.
    """
    if isinstance(env, list | tuple):
        for lane in cast("Sequence[object]", env):
            mark(lane, factory, branch)
        return
    more: dict[str, Any] = {}
    tags = tags_as_dict(factory.tags_for(**branch) if branch else factory.tags)
    if tags is not None:
        more[TAGS_KEY] = tags
    if branch:
        more[BRANCH_KEY] = dict(branch)
    if factory.reset_options:
        more[ENV_RESET_OPTIONS_KEY] = list(factory.reset_options)
    try:
        if more:
            add_metadata(env, more)
        if factory.framework != "numpy":
            setattr(env, FRAMEWORK_MARK, factory.framework)
    except (AttributeError, TypeError) as error:
        raise EnvironmentException(
            f"{env!r}, which {factory.__qualname__} made, takes no attributes: {error}",
            operation="make",
            hint="Let it have `metadata` as an attribute of its own.",
        ) from error


def add_metadata(env: object, more: Mapping[str, object]) -> None:
    """Give an environment metadata of its own that has more in it; its class's stays as it is."""
    found: object = getattr(env, "metadata", None)
    own = dict(cast("Mapping[str, object]", found)) if isinstance(found, Mapping) else {}
    cast("Any", env).metadata = {**own, **more}


def framework_of(env: object) -> str | None:
    """Return whose arrays an environment takes, where its factory said so: `torch` or `jax`."""
    found: object = getattr(env, FRAMEWORK_MARK, None)
    return found if isinstance(found, str) else None
