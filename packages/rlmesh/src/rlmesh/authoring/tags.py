"""What a factory says its environments mean: tags, and which of several contracts one has.

Tags are whatever has `to_dict`, such as `EnvTags` of the adapters, or a mapping of the same form.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from rlcore import ConfigurationError

from rlmesh.params import Keywords, Param, ParamError, ParamSpec, keywords_of

if TYPE_CHECKING:
    from rlmesh.authoring.factory import EnvFactory

BRANCH_LIMIT: Final = 8


class FactoryTypeError(ConfigurationError, TypeError):
    """A class of factories contradicts itself; it is not created."""

    default_code = "not_a_factory"


def tags_as_dict(tags: object) -> dict[str, Any] | None:  # Any: JSON
    """Return tags as metadata has them; None for none.

    Raises:
        FactoryTypeError: they are neither a mapping nor have `to_dict`.
    """
    if tags is None:
        return None
    to_dict = getattr(tags, "to_dict", None)
    content: object = to_dict() if callable(to_dict) else tags
    if not isinstance(content, Mapping):
        raise FactoryTypeError(
            f"tags are {tags!r}",
            hint="Give EnvTags, or a mapping of the form that its to_dict has.",
        )
    return dict(cast("Mapping[str, Any]", content))


def branch_of(factory: type[EnvFactory], kwargs: Mapping[str, object]) -> dict[str, Any]:
    """Return the values of the parameters that select the contract, where there are such.

    Raises:
        ParamError: one is not among its choices.
    """
    signature = keywords_of(factory.make)
    branch: dict[str, Any] = {}
    for name in factory.tag_params:
        value = kwargs.get(name, signature.keywords[name].default)
        param = _param(factory, name)
        if param is not None:
            branch[name] = param.checked(value)
    return branch


def branches(factory: type[EnvFactory]) -> list[dict[str, Any]]:
    """Return each choice of the parameters that select the contract; the defaults come first."""
    if not factory.tag_params:
        return []
    choices = [_choices(factory, name) for name in factory.tag_params]
    all_of_them = [
        dict(zip(factory.tag_params, chosen, strict=True)) for chosen in itertools.product(*choices)
    ]
    default = branch_of(factory, {})
    return [default, *(branch for branch in all_of_them if branch != default)]


def require_sound_tags(factory: type[EnvFactory], *, overridden: bool) -> None:
    """Check what a class says of its tags, when it is created.

    Args:
        factory: the class.
        overridden: whether it, or a base of its author's, has a `tags_for` of its own.

    Raises:
        FactoryTypeError: a parameter that selects tags is not declared with choices and a default
            among them; there are too many choices; the tags of the default choice are others than
            `tags`; some choices have tags and others none; or nothing would call `tags_for`.
    """
    name_of = factory.__qualname__
    tags_as_dict(factory.tags)
    if not factory.tag_params:
        if overridden:
            raise FactoryTypeError(
                f"{name_of} overrides tags_for() and has no tag_params, so that nothing calls it",
                hint="Name the parameters that it depends on in tag_params, or set tags.",
            )
        return
    signature = keywords_of(factory.make)
    for name in factory.tag_params:
        _require_discriminant(factory, name, signature)
    count = 1
    for name in factory.tag_params:
        count *= len(_choices(factory, name))
    if count > BRANCH_LIMIT:
        raise FactoryTypeError(
            f"{name_of}.tag_params select among {count} contracts, more than {BRANCH_LIMIT}",
            hint="Leave out parameters that do not change what observations and actions mean.",
        )
    found = [_tags_for(factory, branch) for branch in branches(factory)]
    missing = [tags is None for tags in found]
    if any(missing) and not all(missing):
        raise FactoryTypeError(
            f"{name_of}.tags_for gives tags for some choices of {factory.tag_params} and none for "
            "others"
        )
    if tags_as_dict(factory.tags) != found[0] and factory.tags is not None:
        raise FactoryTypeError(
            f"{name_of}.tags differ from what tags_for gives for the defaults",
            hint="Let tags be those of the default choice.",
        )


def _require_discriminant(factory: type[EnvFactory], name: str, signature: Keywords) -> None:
    where = f"{factory.__qualname__}.tag_params names {name!r}"
    param = _param(factory, name)
    if param is None:
        raise FactoryTypeError(f"{where}, which params does not declare")
    if not param.choices:
        raise FactoryTypeError(
            f"{where}, which has no choices", hint="There have to be finitely many contracts."
        )
    keyword = signature.keywords.get(name)
    if keyword is None or keyword.required:
        raise FactoryTypeError(f"{where}, for which make() has no default")
    try:
        param.checked(keyword.default)
    except ParamError as error:
        raise FactoryTypeError(f"{where}, and make() has a default for it: {error}") from error


def _tags_for(factory: type[EnvFactory], branch: Mapping[str, Any]) -> dict[str, Any] | None:
    try:
        tags: object = factory.tags_for(**branch)
    except Exception as error:
        raise FactoryTypeError(
            f"{factory.__qualname__}.tags_for(**{dict(branch)!r}) raised "
            f"{type(error).__name__}: {error}"
        ) from error
    return tags_as_dict(tags)


def _param(factory: type[EnvFactory], name: str) -> Param | None:
    spec: ParamSpec | None = factory.params
    return None if spec is None else spec.named(name)


def _choices(factory: type[EnvFactory], name: str) -> Sequence[object]:
    param = _param(factory, name)
    return () if param is None else param.choices or ()
