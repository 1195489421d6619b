"""What an environment is, told without anybody stepping it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from rlmesh.authoring.binding import jsonable
from rlmesh.authoring.envelope import (
    DescribeTypeError,
    envelope,
    envelope_text,
    failure,
    first_variant,
    subject_of,
)
from rlmesh.authoring.factory import EnvFactory
from rlmesh.authoring.keys import DESCRIBE_METADATA_KEY, TAGS_KEY
from rlmesh.authoring.tags import branch_of, branches, tags_as_dict
from rlmesh.params import ParamSpec, keywords_of
from rlmesh.server.environments import close_env
from rlmesh.server.factories import instance_of, opened
from rlmesh.specs import EnvContract, contract_of


def describe_env(
    described: object,
    *,
    generated_at: str | None = None,
    edition: str | None = None,
    served: EnvContract | None = None,
) -> dict[str, Any]:  # Any: JSON
    """Return the description of what makes environments.

    One is made, with the defaults or the first variant, and closed again; what fails becomes an
    `error` in the description.

    Args:
        described: an `EnvFactory` (class or instance), any object or class with `make`, a function,
            or `module:attribute`.
        generated_at: when, as RFC 3339.
        edition: the workflow edition that is declared.
        served: what was made already; then nothing is made here.

    Raises:
        ConfigurationError: the text names nothing, or the time is none.
        DescribeTypeError: it cannot make environments.
    """
    subject = subject_of(described)
    thing = subject.thing
    function = make_of(thing)
    if function is None:
        raise DescribeTypeError(
            f"{thing!r} makes no environments", hint="Give a class with make(), or a function."
        )
    holder = _class_of(thing)
    factory = holder if issubclass(holder, EnvFactory) else None
    return envelope(
        "env",
        subject,
        _own(thing, factory, function, served),
        function=function,
        spec=spec_of(holder),
        generated_at=generated_at,
        edition=edition,
    )


def served_description(factory: type[EnvFactory], contract: EnvContract) -> dict[str, str]:
    """Return what the clients of a factory's server are told about it."""
    return {DESCRIBE_METADATA_KEY: envelope_text(describe_env(factory, served=contract))}


def make_of(thing: object) -> Callable[..., object] | None:
    """Return the function that makes environments, as a class has it."""
    if isinstance(thing, FunctionType):
        return thing
    holder = _class_of(thing)
    make = getattr(holder, "make", None)
    return make if callable(make) else None


def spec_of(holder: type) -> ParamSpec | None:
    """Return the parameters that a class declares."""
    found: object = getattr(holder, "params", None)
    return found if isinstance(found, ParamSpec) else None


def space_spec(contract: EnvContract) -> dict[str, Any]:
    """Return the spaces of a contract as descriptions have them; infinite bounds are null."""
    found: dict[str, Any] = {
        "observation_space": jsonable(contract.observation_space.to_dict()),
        "action_space": jsonable(contract.action_space.to_dict()),
    }
    if contract.num_envs > 1:
        found["num_envs"] = contract.num_envs
    return found


def _own(
    thing: object,
    factory: type[EnvFactory] | None,
    function: Callable[..., object],
    served: EnvContract | None,
) -> dict[str, Any]:
    own: dict[str, Any] = {}
    if served is not None:
        own["env_spec"] = space_spec(served)
        tags = (served.metadata or {}).get(TAGS_KEY)
        own["env_tags"] = jsonable(tags)
        return own
    # The branches are made in the same life of the factory as the default.
    try:
        source = instance_of(thing)
        with opened(source):
            own["env_spec"], own["env_tags"] = _made(thing, source, factory, function)
            if factory is not None and factory.tag_params:
                own["env_contracts"] = {
                    "discriminants": list(factory.tag_params),
                    "branches": [_branch(source, factory, branch) for branch in branches(factory)],
                }
    except (Exception, SystemExit) as error:  # the badge says it
        # What was made before the factory's own end failed is told as well.
        own["env_spec"] = {**own.get("env_spec", {}), **failure(error)}
        own.setdefault("env_tags", _class_tags(thing))
    return own


def _made(
    thing: object,
    source: object,
    factory: type[EnvFactory] | None,
    function: Callable[..., object],
) -> tuple[dict[str, Any], Any]:
    kwargs: Mapping[str, object] = {}
    if any(keyword.required for keyword in keywords_of(function).keywords.values()):
        kwargs = first_variant(_class_of(thing)) or {}
    try:
        spec, tags = _spec_of_made(source, kwargs)
    except (Exception, SystemExit) as error:  # the badge says it
        return failure(error), _class_tags(thing)
    if factory is not None:
        return spec, _class_tags(thing)
    return spec, tags


def _branch(source: object, factory: type[EnvFactory], branch: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "params": jsonable(branch),
        "default": branch == branch_of(factory, {}),
    }
    try:
        found["env_tags"] = jsonable(tags_as_dict(factory.tags_for(**branch)))
    except (Exception, SystemExit) as error:  # the badge says it
        found["env_tags"] = {"error": str(error)}
    try:
        found["env_spec"] = _spec_of_made(source, branch)[0]
    except (Exception, SystemExit) as error:  # the badge says it
        found["env_spec"] = failure(error)
    return found


def _spec_of_made(source: object, kwargs: Mapping[str, object]) -> tuple[dict[str, Any], Any]:
    maker: Any = getattr(source, "made_by", source)  # Any: the author's own
    make = maker if isinstance(maker, FunctionType) else maker.make
    env = make(**kwargs)
    if env is None:
        name = getattr(maker, "__qualname__", type(maker).__qualname__)
        raise DescribeTypeError(f"{name} made no environment: it returned None")
    try:
        contract = contract_of(env)
        return space_spec(contract), jsonable((contract.metadata or {}).get(TAGS_KEY))
    finally:
        close_env(env)


def _class_of(thing: Any) -> type[object]:  # Any: narrowing leaves a class of unknown parameters
    return thing if isinstance(thing, type) else type(thing)


def _class_tags(thing: object) -> Any:  # Any: JSON
    holder = _class_of(thing)
    try:
        if issubclass(holder, EnvFactory):
            default = branch_of(holder, {})
            tags: object = holder.tags_for(**default) if default else holder.tags
        else:
            tags = getattr(holder, "tags", None)
        return jsonable(tags_as_dict(tags))
    except (Exception, SystemExit) as error:  # the badge says it
        return {"error": str(error)}
