"""`Model`: a policy that a run can drive, wrapped around one or written as a subclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Self, TypeAlias, TypeGuard, cast

from rlcore import ConfigurationError

from rlmesh.models.context import EpisodeContext, PredictContext
from rlmesh.models.conversion import Backend
from rlmesh.models.sentinels import NoAdapter, Sentinel
from rlmesh.models.signature import Predict, accepts_one, prediction

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from rlmesh.runs.results import RunResult
    from rlmesh.runs.session import Session

    ObservationT = TypeVar("ObservationT", default=Any)
    ActionT = TypeVar("ActionT", default=Any)
else:
    # Defaults of type variables exist for type checkers only before Python 3.13.
    from typing import TypeVar

    ObservationT = TypeVar("ObservationT")
    ActionT = TypeVar("ActionT")


Source: TypeAlias = Callable[[Any], Any] | Callable[[Any, PredictContext], Any] | object
"""What a model can wrap; the functions are named so that a lambda's parameters have types."""


class ModelTypeError(ConfigurationError, TypeError):
    """What was given as a model, or as a part of one, cannot be one."""

    default_code = "not_a_model"


class Model(Generic[ObservationT, ActionT]):
    """A policy over native values: arrays arrive as `rlmesh.Tensor`.

    Wrap a predict callable or a policy object with a `predict` method (an instance, or a class
    that takes no arguments), or subclass and write `predict(self, observation)`, with a second
    parameter `context` where it is wanted, and `load(self)` for what happens once.
    `rlmesh.numpy.Model` is the same over numpy arrays.

    Args:
        source: what to wrap; a subclass needs none.
        spec: None or `NO_ADAPTER`: observations and actions are used as they are.
        name: what results call the model; by default the name of the class or function.
        digest: the content digest of what was loaded, kept in results.
        on_episode_end: called when an episode ends, with its id where it takes an argument; a
            policy's `reset` is used when this is not given.
        on_close: called once by `close`; a policy's `close` is used when this is not given.
        deterministic: for policies whose `predict` has that parameter.

    Raises:
        ModelTypeError: there is nothing to predict with, or it is not callable.
    """

    backend: ClassVar[Backend] = "native"
    device: object = None
    spec: NoAdapter | None = None
    name: str
    digest: str | None = None
    _close_hook: Callable[..., object] | None

    def __init__(
        self,
        source: Source = None,
        *,
        spec: NoAdapter | None = None,
        name: str | None = None,
        digest: str | None = None,
        on_episode_end: Callable[..., object] | None = None,
        on_close: Callable[[], object] | None = None,
        deterministic: bool = True,
    ) -> None:
        self._prepare(
            source,
            spec=spec,
            name=name,
            digest=digest,
            on_episode_end=on_episode_end,
            on_close=on_close,
            deterministic=deterministic,
        )
        self.load()

    def __init_subclass__(cls, **kwargs: Any) -> None:  # Any: passed on to other bases
        super().__init_subclass__(**kwargs)
        if "reset" in cls.__dict__:
            raise ModelTypeError(
                f"{cls.__qualname__} defines 'reset', which no run ever calls",
                hint="name the method 'on_episode_end'",
            )

    @classmethod
    def from_config(cls, **config: Any) -> Self:  # Any: the subclass's own load parameters
        """Build a subclass and call its `load` with these arguments.

        Raises:
            ModelTypeError: the class has no `load` of its own, or it does not take these.
        """
        if cls.load is Model.load and config:
            raise ModelTypeError(f"{cls.__qualname__} has no 'load' that could take {config!r}")
        model = cls.__new__(cls)
        model._prepare(None)
        try:
            inspect.signature(model.load).bind(**config)
        except TypeError as error:
            raise ModelTypeError(f"{cls.__qualname__}.load: {error}") from error
        model.load(**config)
        return model

    def load(self, *args: Any, **kwargs: Any) -> None:  # Any: a subclass declares its own
        """Prepare what `predict` needs; called once by the constructor. Override it."""

    def predict(
        self, observation: ObservationT, /, *args: Any, **kwargs: Any
    ) -> ActionT:  # Any: a subclass may or may not take a context
        """Return the action for an observation. Override it, or wrap something that has it."""
        if self._source is None:
            raise ModelTypeError(f"{type(self).__qualname__} has no 'predict' of its own")
        if args or kwargs:
            return cast("ActionT", self._source(observation, *args, **kwargs))
        return cast("ActionT", self.prediction()(observation, EpisodeContext("", None)))

    def on_episode_end(self, *args: Any, **kwargs: Any) -> object:  # Any: or none
        """Forget what belongs to an episode. Override it as `(self, episode_id)` or `(self)`."""
        hook = self._episode_end_hook
        if hook is None:
            return None
        return hook(*args, **kwargs) if accepts_one(hook) else hook()

    def close(self) -> None:
        """Release what the model holds; runs never close a model that was given to them."""
        hook, self._close_hook = self._close_hook, None
        if hook is not None:
            hook()

    def run(self, env: object, **options: Any) -> RunResult:  # Any: those of `rlmesh.run`
        """Evaluate this model on an environment: `rlmesh.run(self, env, ...)`."""
        from rlmesh.runs.run import run

        return run(self, env, **options)

    def session(self, env: object, *, close_env: bool = False) -> Session:
        """Drive this model on an environment step by step: `rlmesh.session(self, env)`."""
        from rlmesh.runs.session import session

        return session(self, env, close_env=close_env)

    def prediction(self) -> Predict:
        """Return how a run calls this model: with an observation and its episode."""
        overridden = type(self).predict is not Model.predict
        call = self.predict if overridden or self._source is None else self._source
        return prediction(call, deterministic=self._deterministic)

    def end_episode(self, episode_id: str) -> None:
        """Tell the model that an episode ended, by the hook as it was written."""
        hook: Callable[..., object] = self.on_episode_end
        if accepts_one(hook):
            hook(episode_id)
        else:
            hook()

    def __repr__(self) -> str:
        return f"{type(self).__module__.split('.')[0]}.{type(self).__qualname__}({self.name!r})"

    def _prepare(
        self,
        source: object,
        *,
        spec: NoAdapter | None = None,
        name: str | None = None,
        digest: str | None = None,
        on_episode_end: Callable[..., object] | None = None,
        on_close: Callable[[], object] | None = None,
        deterministic: bool = True,
    ) -> None:
        if spec not in (None, Sentinel.NO_ADAPTER):
            raise ModelTypeError(
                f"spec is {spec!r}", hint="this version takes None or rlmesh.NO_ADAPTER"
            )
        policy = source() if isinstance(source, type) and not is_model_class(source) else source
        self._source = _callable_of(policy, wanted=type(self).predict is Model.predict)
        self._deterministic = deterministic
        self._episode_end_hook = on_episode_end or _method(policy, "reset")
        self._close_hook = on_close or _method(policy, "close")
        if spec is not None:
            self.spec = spec
        if digest is not None:
            self.digest = digest
        given = name or getattr(self, "name", None)
        self.name = given or _name_of(type(self) if policy is None else policy)


def _callable_of(policy: object, *, wanted: bool) -> Callable[..., Any] | None:
    if policy is None:
        if wanted:
            raise ModelTypeError(
                "a Model needs something to predict with",
                hint="give it a callable or a policy, or subclass it and define 'predict'",
            )
        return None
    if is_model(policy) or is_model_class(policy):
        raise ModelTypeError(f"{policy!r} is a Model already", hint="use it as it is")
    for candidate in (_method(policy, "predict"), policy):
        if callable(candidate):
            return candidate
    raise ModelTypeError(
        f"{policy!r} can neither be called nor has it a 'predict' method",
        hint="wrap a function observation -> action, or an object with 'predict'",
    )


def is_model(candidate: object) -> TypeGuard[Model]:
    """Whether something is a model already."""
    return isinstance(candidate, Model)


def is_model_class(candidate: object) -> TypeGuard[type[Model]]:
    """Whether something is a class of models."""
    return isinstance(candidate, type) and issubclass(candidate, Model)


def _method(policy: object, name: str) -> Callable[..., object] | None:
    found = None if inspect.isfunction(policy) else getattr(policy, name, None)
    return found if callable(found) else None


def _name_of(thing: object) -> str:
    name = getattr(thing, "__qualname__", None) or type(thing).__qualname__
    parts: Iterable[str] = str(name).split(".")
    return ".".join(part for part in parts if part != "<locals>")
