"""What a replay plays on, by default: what the bundle says, as far as a bundle is to be trusted."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from rlcore import BundleError, ConfigurationError, MissingDependencyError

from rlmesh.recorder.recipe import REMADE, wrappers_of
from rlmesh.recorder.records import WorkloadRecord
from rlmesh.recorder.tagged import from_tagged

_GYM: Final = "gym://"
# What turns an argument into a module to import or a file to read. The two bridges of gymnasium to
# older versions import whatever their argument says.
_LEADING_OUT: Final = (":", "/", "\\")
_BRIDGES: Final = "GymV2"


def source_of(workload: WorkloadRecord, *, trusted: bool) -> object:
    """Return what a workload was recorded on, as `rlmesh.run` takes it.

    Args:
        workload: of a bundle.
        trusted: whether the bundle may name code of any module, a file, or an address. Otherwise
            it may name environments that gymnasium has registered here.

    Raises:
        ConfigurationError: the bundle does not say it exactly, or says what needs trust.
        BundleError: what it says is damaged.
    """
    recorded: object = workload.details.get("replay") or {}
    if not isinstance(recorded, dict):
        raise BundleError("the bundle does not say in any known form what it was recorded on")
    says = cast("dict[str, Any]", recorded)  # Any: JSON, checked below
    if "gymnasium" in says:
        return _of_gymnasium(says["gymnasium"], trusted=trusted)
    if "source" not in says:
        raise ConfigurationError(
            f"the bundle does not say exactly what {workload.env!r} is made from",
            hint="Name it: env=… or --env SOURCE.",
        )
    source: object = says["source"]
    given: object = says.get("kwargs") or {}
    if not isinstance(source, str) or not isinstance(given, dict):
        raise BundleError("the bundle does not say in any known form what it was recorded on")
    kwargs = cast("dict[str, object]", given)
    if not trusted:
        _require_harmless(source.removeprefix(_GYM), kwargs)
    if not kwargs:
        return source
    from rlmesh.server.sources import load_factory

    return load_factory(source, kwargs)


def _require_harmless(name: str, kwargs: Mapping[str, object]) -> None:
    if ":" in name or name.startswith(_BRIDGES) or any(map(_leads_out, kwargs.values())):
        made_with = f", made with {dict(kwargs)!r:.200}" if kwargs else ""
        raise ConfigurationError(
            f"the bundle says that it was recorded on {name!r:.200}{made_with}, which may run any "
            "code, read any file or dial anybody",
            code="untrusted",
            hint="Name the environment yourself (env=… or --env SOURCE), or trust whoever made the "
            "bundle (trust_source=True or --trust-source).",
        )


def _leads_out(value: object) -> bool:
    if isinstance(value, Mapping):
        entries = cast("Mapping[object, object]", value)
        return any(map(_leads_out, (*entries, *entries.values())))
    if isinstance(value, list | tuple):
        return any(map(_leads_out, cast("list[object]", value)))
    return isinstance(value, str) and any(sign in value for sign in _LEADING_OUT)


def _of_gymnasium(says: Any, *, trusted: bool) -> Callable[[], object]:  # Any: JSON
    try:
        name = says["id"]
        kwargs = {str(key): from_tagged(value) for key, value in says["kwargs"].items()}
        wrappers = [
            (wrapper, {str(key): from_tagged(value) for key, value in arguments.items()})
            for wrapper, arguments in says["wrappers"]
        ]
        known = isinstance(name, str) and all(wrapper in REMADE for wrapper, _ in wrappers)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise BundleError(f"the bundle does not say what it was recorded on: {error!r}") from error
    if not known:
        raise BundleError(f"the bundle was recorded on what nobody can make again: {says!r}")
    if not trusted:
        _require_harmless(name, kwargs)
    try:
        import gymnasium
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            f"{name!r} is an environment of gymnasium, which is not installed",
            hint='Install it: pip install "rlmesh[gymnasium]"',
        ) from error
    try:
        spec = copy.deepcopy(gymnasium.spec(name))
    except gymnasium.error.Error as error:
        raise ConfigurationError(
            f"gymnasium has no environment {name!r} here: {error}",
            code="unknown_environment",
            hint="Name it with the module that registers it: env=… or --env MODULE:ID.",
        ) from error
    # The bare environment; its wrappers follow one by one, in the order in which they were.
    spec.kwargs, spec.max_episode_steps, spec.additional_wrappers = kwargs, None, ()
    spec.disable_env_checker = True

    def make() -> object:
        env: Any = gymnasium.make(spec)  # Any: generic
        there = wrappers_of(env)
        recorded = says["wrappers"]
        if there is None or recorded[: len(there)] != there:
            raise ConfigurationError(
                f"{name!r} has other wrappers than it had: {there} and not {recorded}",
                hint="Name the environment: env=… or --env SOURCE.",
            )
        for wrapper, arguments in wrappers[len(there) :]:
            env = getattr(gymnasium.wrappers, wrapper)(env, **arguments)
        return env

    make.__qualname__ = f"gymnasium.make({name!r})"
    return make
