"""`Model`: a policy that a run can drive, wrapped around one or written as a subclass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypeGuard, Unpack, cast

from rlcore import ConfigurationError

from rlmesh.backends.content import Content, content_of
from rlmesh.backends.frameworks import backend_of
from rlmesh.models.by_hand import call_by_hand
from rlmesh.models.context import PredictContext
from rlmesh.models.conversion import Backend
from rlmesh.models.corners import CORNERS, Corners, derive, overridden_corners, uniform
from rlmesh.models.horizon import checked_native_chunk
from rlmesh.models.predicting import ActionT, ObservationT, Predicting
from rlmesh.models.sentinels import NoAdapter, Sentinel
from rlmesh.models.serving import Serving
from rlmesh.models.signature import Predict, accepts_one
from rlmesh.values import Array
from rlmesh.values import Backend as ArrayBackend

if TYPE_CHECKING:
    from rlmesh.models.adapting import AdapterSpec
    from rlmesh.params import ParamSpec
    from rlmesh.runs.results import RunResult
    from rlmesh.runs.session import Session
    from rlmesh.runs.settings import RunArguments
    from rlmesh.specs import EnvContract


Source: TypeAlias = Callable[[Any], Any] | Callable[[Any, PredictContext], Any] | object
"""What a model can wrap; the functions are named so that a lambda's parameters have types."""


# Of a model's own attributes, what follows from the others or does not shape its actions.
_BESIDES = frozenset(
    {"name", "_corners", "_arrays", "_wrapped", "_episode_end_hook", "_close_hook", "_policy"}
)


class ModelTypeError(ConfigurationError, TypeError):
    """What was given as a model, or as a part of one, cannot be one."""

    default_code = "not_a_model"


class Model(Serving, Predicting[ObservationT, ActionT]):
    """A policy over native values: arrays arrive as `rlmesh.Tensor`.

    Wrap a predict callable or a policy object with a `predict` method (an instance, or a class
    that takes no arguments), or subclass and write `predict(self, observation)`, with a second
    parameter `context` where it is wanted, and `load(self)` for what happens once. In place of
    `predict`, or beside it, there may be `predict_chunk`, `predict_batch` and
    `predict_chunk_batch`. `rlmesh.numpy.Model` is the same over numpy arrays.

    Args:
        source: what to wrap; a subclass needs none.
        spec: None or `NO_ADAPTER`: observations and actions are used as they are. What has an
            `adapter_for` makes adapters between the model and its environments.
        name: what results call the model; by default the name of the class or function.
        digest: the content digest of what was loaded, kept in results. A journal takes two models
            with one digest for the same; without it, it compares their code and what they hold.
        on_episode_end: called when an episode ends, with its id where it takes an argument; a
            policy's `reset` is used when this is not given.
        on_close: called once by `close`; a policy's `close` is used when this is not given.
        deterministic: for policies whose `predict` has that parameter.
        trust_entrypoints: whether an adapter may import code that an environment names.

    Attributes:
        spec: as above; a subclass may set it.
        params: what `load` takes, where `from_config` should check more than its signature.
        workflow_edition: the edition of the protocol that the model was written for.
        device: where observations are put before they are predicted from; for torch and jax.
        allow_fusion: observations of different environments may share one `predict_batch`.
        native_chunk: how many actions each chunk holds, where that is always the same.

    Raises:
        ModelTypeError: there is nothing to predict with, or it is not callable.
    """

    backend: ClassVar[Backend] = "native"
    params: ClassVar[ParamSpec | None] = None
    workflow_edition: str | None = None
    device: object = None
    spec: NoAdapter | AdapterSpec | None = None
    name: str = ""
    digest: str | None = None
    allow_fusion: bool = True
    native_chunk: int | None = None
    trust_entrypoints: bool = False
    _deterministic: bool = True
    _episode_end_hook: Callable[..., object] | None = None
    _close_hook: Callable[..., object] | None = None
    _corners: Corners | None = None
    _policy: object = None
    _arrays: tuple[object, ArrayBackend] | None = None
    _wrapped: Mapping[str, Callable[..., Any]] = MappingProxyType({})

    def __init__(
        self,
        source: Source = None,
        *,
        spec: NoAdapter | AdapterSpec | None = None,
        name: str | None = None,
        digest: str | None = None,
        on_episode_end: Callable[..., object] | None = None,
        on_close: Callable[[], object] | None = None,
        deterministic: bool = True,
        trust_entrypoints: bool = False,
    ) -> None:
        self._deterministic = deterministic
        self._wrap(source, spec)
        self._episode_end_hook = on_episode_end or self._episode_end_hook
        self._close_hook = on_close or self._close_hook
        if digest is not None:
            self.digest = digest
        if name is not None:
            self.name = name
        if trust_entrypoints:
            self.trust_entrypoints = True
        self._derive()
        self.load()

    def __init_subclass__(cls, **kwargs: Any) -> None:  # Any: passed on to other bases
        super().__init_subclass__(**kwargs)
        if "reset" in cls.__dict__:
            raise ModelTypeError(
                f"{cls.__qualname__} defines 'reset', which no run ever calls",
                hint="name the method 'on_episode_end'",
            )
        if cls.params is not None and cls.load is not Model.load:
            from rlmesh.params import require_defaults

            require_defaults(cls.load, cls.params)

    @classmethod
    def from_config(cls, **config: Any) -> Self:  # Any: the subclass's own load parameters
        """Build a subclass and call its `load` with these arguments.

        They are checked against the class's `params` and the signature of `load` before.

        Raises:
            ModelTypeError: this is no subclass, or it has no `load` of its own.
            ParamError: `load` does not take these.
        """
        from rlmesh.params import bind_params

        if not overridden_corners(cls):
            raise ModelTypeError(
                f"{cls.__qualname__} has no way to predict",
                hint="from_config is for subclasses that define 'predict' and 'load'",
            )
        if cls.load is Model.load and config:
            raise ModelTypeError(f"{cls.__qualname__} has no 'load' that could take {config!r}")
        bound = bind_params(cls.load, cls.params, config)
        model = cls.__new__(cls)
        model._derive()
        model.load(**bound)
        return model

    @classmethod
    def describe(cls) -> dict[str, Any]:  # Any: JSON
        """Return what the class is, as plain data: `rlmesh.describe(cls)`."""
        from rlmesh._describe import describe

        return describe(cls, kind="model")

    def load(self, *args: Any, **kwargs: Any) -> None:  # Any: a subclass declares its own
        """Prepare what `predict` needs; called once by the constructor. Override it."""

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

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> Literal[False]:
        self.close()
        return False

    def run(self, env: object, **options: Unpack[RunArguments]) -> RunResult:
        """Evaluate this model on an environment: `rlmesh.run(self, env, ...)`, with its options."""
        from rlmesh.runs.run import run

        return run(self, env, **options)

    def session(
        self,
        env: object,
        *,
        instruction: str | None = None,
        close_env: bool = False,
        trust_entrypoints: bool | None = None,
        execution_horizon: int = 1,
        view: object = None,
        workflow_edition: str | None = None,
    ) -> Session:
        """Drive this model on an environment step by step: `rlmesh.session(self, env, ...)`."""
        from rlmesh.runs.session import session

        return session(
            self,
            env,
            instruction=instruction,
            close_env=close_env,
            trust_entrypoints=trust_entrypoints,
            execution_horizon=execution_horizon,
            view=view,
            workflow_edition=workflow_edition,
        )

    @property
    def corners(self) -> Corners:
        """The ways to predict as runs and servers call them."""
        return self._corners or self._derive()

    def content(self) -> Content:
        """Return what the model is made of, as it is now; by its `digest` where it has one."""
        if self.digest is not None:
            beside = _method(self._policy, "beside_its_file")
            known = beside() if beside is not None else None
            return content_of([type(self).__qualname__, self.digest, known])
        own = {name: value for name, value in vars(self).items() if name not in _BESIDES}
        return content_of({"class": type(self), "policy": self._policy, **own})

    def corners_for(self, contract: EnvContract | None) -> Corners:
        """Return the ways to predict on one kind of environment, for one run of it.

        A wrapped policy with a method `for_environment(contract)` gives the policy to use there,
        one that turns its outputs into actions of that space, say; nothing of it is kept here.

        Raises:
            ConfigurationError: the policy does not fit the environment.
        """
        make = None if contract is None else _method(self._policy, "for_environment")
        if make is None:
            return self.corners
        own = {name: getattr(self, name) for name in overridden_corners(type(self))}
        given = {**_corners_of(make(contract)), **own}
        made = derive(
            given,
            native=self.backend == "native",
            deterministic=self._deterministic,
            leaf=self.leaf,
        )
        return made or self.corners

    def leaf(self, array: Array) -> Any:  # Any: an array of the model's framework
        """Return an array of numbers as the model's framework has it, on the model's device."""
        if self.backend in ("native", "numpy"):
            return array
        if self._arrays is None or self._arrays[0] != self.device:
            self._arrays = (self.device, backend_of(self.backend, self.device))
        return self._arrays[1].owned(array)

    def prediction(self) -> Predict:
        """Return how a run calls this model: with an observation and its episode."""
        return self.corners.predict

    def end_episode(self, episode_id: str) -> None:
        """Tell the model that an episode ended, by the hook as it was written."""
        hook: Callable[..., object] = self.on_episode_end
        if accepts_one(hook):
            hook(episode_id)
        else:
            hook()

    def __repr__(self) -> str:
        return f"{type(self).__module__.split('.')[0]}.{type(self).__qualname__}({self.name!r})"

    def _wrap(self, source: object, spec: object) -> None:
        policy = source() if isinstance(source, type) and not is_model_class(source) else source
        if is_model(policy) or is_model_class(policy):
            raise ModelTypeError(f"{policy!r} is a Model already", hint="use it as it is")
        if policy is not None:
            self._policy = policy
            self._wrapped = _corners_of(policy)
            self._episode_end_hook = _method(policy, "reset")
            self._close_hook = _method(policy, "close")
            length = getattr(policy, "native_chunk", None)
            self.native_chunk = self.native_chunk if length is None else length
            self.name = self.name or _name_of(policy)
        found: object = self.spec if spec is None else spec
        if found is None:
            found = getattr(policy, "spec", None)
        if found is not None and not isinstance(found, Sentinel):
            if not callable(getattr(found, "adapter_for", None)):
                raise ModelTypeError(
                    f"spec is {found!r}",
                    hint="it can be None, rlmesh.NO_ADAPTER, or what has 'adapter_for(contract)'",
                )
        elif found is Sentinel.RANDOM_SAMPLE:
            raise ModelTypeError("spec is rlmesh.RANDOM_SAMPLE", hint="that is a model")
        self.spec = cast("NoAdapter | AdapterSpec | None", found)

    def _derive(self) -> Corners:
        """Find out, once, how this model predicts.

        Raises:
            ModelTypeError: it cannot, or what it says of its chunks cannot be.
        """
        kind = type(self)
        self.name = self.name or _name_of(kind)
        own = {
            name: cast("Callable[..., Any]", getattr(self, name))
            for name in overridden_corners(kind)
        }
        given = {**self._wrapped, **own}
        corners = derive(
            given,
            native=self.backend == "native",
            deterministic=self._deterministic,
            leaf=self.leaf,
        )
        if corners is None:
            raise ModelTypeError(
                f"{kind.__qualname__} has {', '.join(given)}, from which no 'predict' follows over "
                "native values"
                if given
                else "a Model needs something to predict with",
                hint="give it a callable or a policy, or subclass it and define 'predict'",
            )
        self.native_chunk = checked_native_chunk(self.native_chunk, owner=self.name)
        if self.native_chunk is not None and corners.predict_chunk is None:
            raise ModelTypeError(
                f"{self.name!r} has native_chunk={self.native_chunk} and predicts no chunks",
                hint="define 'predict_chunk', or leave native_chunk out",
            )
        self._corners = corners
        return corners

    def _inherited(
        self, name: str, observation: object, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:  # Any: see Predicting
        wrapped = self._wrapped.get(name)
        if wrapped is not None and (args or kwargs):
            return wrapped(observation, *args, **kwargs)
        if wrapped is not None:
            corner: Callable[..., Any] | None = uniform(
                name, wrapped, deterministic=self._deterministic
            )
        elif name in overridden_corners(type(self)):
            corner = None  # an author's `super().predict(...)`, with nothing behind it
        else:
            corner = getattr(self.corners, name)
        if corner is None:
            raise ModelTypeError(f"{type(self).__qualname__} has no {name!r} of its own to call")
        return call_by_hand(corner, name, observation, args, kwargs)


def is_model(candidate: object) -> TypeGuard[Model]:
    """Whether something is a model already."""
    return isinstance(candidate, Model)


def is_model_class(candidate: object) -> TypeGuard[type[Model]]:
    """Whether something is a class of models."""
    return isinstance(candidate, type) and issubclass(candidate, Model)


def _corners_of(policy: object) -> dict[str, Callable[..., Any]]:
    """Return what a policy predicts with, by name."""
    found = {name: _method(policy, name) for name in CORNERS}
    given = {name: method for name, method in found.items() if method is not None}
    if not given and callable(policy):
        given["predict"] = policy
    if not given:
        raise ModelTypeError(
            f"{policy!r} can neither be called nor has it a 'predict' method",
            hint="wrap a function observation -> action, or an object with 'predict'",
        )
    return given


def _method(policy: object, name: str) -> Callable[..., object] | None:
    found = None if inspect.isfunction(policy) else getattr(policy, name, None)
    return found if callable(found) else None


def _name_of(thing: object) -> str:
    name = getattr(thing, "__qualname__", None) or type(thing).__qualname__
    parts: Iterable[str] = str(name).split(".")
    return ".".join(part for part in parts if part != "<locals>")
