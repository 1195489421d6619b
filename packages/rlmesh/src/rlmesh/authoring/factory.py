"""`EnvFactory`: how people write environments that others make, serve, run and describe."""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, cast, final

from rlcore import ConfigurationError

from rlmesh.authoring.bound import BoundFactory
from rlmesh.authoring.keys import RESET_OPTIONS
from rlmesh.authoring.marks import mark
from rlmesh.authoring.tags import FactoryTypeError, branch_of, require_sound_tags
from rlmesh.backends.frameworks import FrameworkName
from rlmesh.params import ParamSpec, bind_params, require_defaults
from rlmesh.protocol.editions import declared_edition

if TYPE_CHECKING:
    from rlmesh.server.env_server import EnvServer
    from rlmesh.server.options import ServeOptions


class EnvFactory(ABC):
    """Makes environments with parameters that can be checked, listed and described beforehand.

    Subclass it and write `make`; its keywords are the parameters. What `make` returns is an
    environment as gymnasium knows them; its `metadata` gains what the class declares here. An
    instance can be served (`serve`, `start`, `EnvServer`), run (`rlmesh.run(model, factory)`),
    and named on command lines (`rlmesh serve module:Class`); a class can too, where it takes no
    arguments. Whoever uses one calls `prepare` before the first `make` and `close` at the end; a
    direct call of `make` does neither.

    Attributes:
        tags: what observations and actions mean: `EnvTags`, a mapping of its form, or None.
        params: the parameters of `make`, or None: they are passed as they are.
        tag_params: the names of parameters that select among several contracts; see `tags_for`.
        reset_options: options that `reset` is to be given: `trial_index` is the one there is.
        workflow_edition: the edition that the environments were written for.
        framework: whose arrays actions arrive as.

    Raises:
        FactoryTypeError: when a subclass is created that contradicts itself.
        ParamError: when a subclass is created whose `make` has a default that a parameter forbids.
    """

    tags: ClassVar[object] = None
    params: ClassVar[ParamSpec | None] = None
    tag_params: ClassVar[tuple[str, ...]] = ()
    reset_options: ClassVar[tuple[str, ...]] = ()
    workflow_edition: ClassVar[str | None] = None
    framework: ClassVar[FrameworkName] = "numpy"

    def __init_subclass__(cls, **kwargs: Any) -> None:  # Any: passed on to other bases
        super().__init_subclass__(**kwargs)
        for name in ("serve", "start", "with_params"):
            if name in cls.__dict__:
                raise FactoryTypeError(f"{cls.__qualname__} overrides {name}(), which is final")
        if "make" in cls.__dict__ and not _is_abstract(cls.make):
            setattr(cls, "make", _wrapped(cls.make))  # noqa: B010 - types see it as written
        if _is_abstract(cls.make):
            return
        _require_sound(cls)
        require_defaults(cls.make, cls.params)
        theirs = any("tags_for" in base.__dict__ for base in _written_by_authors(cls))
        require_sound_tags(cls, overridden=theirs)

    @abstractmethod
    def make(self, *args: Any, **kwargs: Any) -> Any:  # Any: a subclass names its own
        """Return a new environment. Override it with the parameters as keywords."""

    def prepare(self) -> None:  # noqa: B027 - an author may need none
        """Get ready to make environments; called once, before the first. Override it."""

    def close(self) -> None:  # noqa: B027 - an author may need none
        """Release what `prepare` took; called once, after the last has gone. Override it."""

    @classmethod
    def tags_for(cls, **params: Any) -> object:  # Any: the author's own
        """Return the tags for a choice of `tag_params`. Override it where there are such."""
        return cls.tags

    @classmethod
    def describe(cls) -> dict[str, Any]:  # Any: JSON
        """Return the description of the class: `rlmesh.describe(cls)`."""
        from rlmesh.authoring.describe_env import describe_env

        return describe_env(cls)

    @final
    def with_params(self, **make_kwargs: Any) -> BoundFactory:  # Any: the parameters of `make`
        """Return a factory of environments with these parameters, for whoever makes them.

        Raises:
            ParamError: one of them cannot be what it was given as, is missing or unknown.
        """
        return BoundFactory(self, self.checked_params(make_kwargs))

    @final
    def checked_params(self, make_kwargs: Mapping[str, object]) -> dict[str, Any]:
        """Return these parameters as `make` gets them.

        Raises:
            ParamError: one of them cannot be what it was given as, is missing or unknown.
        """
        cls = type(self)
        bound = bind_params(
            cls.make, cls.params, make_kwargs, check_annotated=cls.params is not None
        )
        branch_of(cls, bound)
        return bound

    @final
    def start(
        self,
        address: str | None = None,
        *,
        num_envs: int = 1,
        vectorization_mode: str | None = None,
        framework: str | None = None,
        device: object = None,
        workflow_edition: str | None = None,
        options: ServeOptions | None = None,
        **make_kwargs: Any,  # Any: the parameters of `make`
    ) -> EnvServer:
        """Serve in the background and return the server, which is to be shut down.

        Each client gets an environment of its own; `EnvServer(factory.with_params(...))` takes
        everything else that a server can be told.

        Args:
            address: where; by default a free port on the loopback interface.
            num_envs: how many environments each client gets, as lanes.
            vectorization_mode: what steps them: `lanes`, or gymnasium's `sync` and `async`, whose
                lanes begin each episode by themselves with the seed `base + ordinal`.
            framework: whose arrays actions arrive as, instead of the class's.
            device: where they are put.
            workflow_edition: the edition, instead of the class's.
            options: limits of the server.
            **make_kwargs: what each environment is made with.

        Raises:
            ParamError: a parameter is not what it can be; nothing was made.
            Error: it cannot be served.
        """
        server = self._server(
            address, num_envs, vectorization_mode, framework, device, workflow_edition, options,
            make_kwargs,
        )  # fmt: skip
        server.start()
        return server

    @final
    def serve(
        self,
        address: str | None = None,
        *,
        num_envs: int = 1,
        vectorization_mode: str | None = None,
        framework: str | None = None,
        device: object = None,
        workflow_edition: str | None = None,
        options: ServeOptions | None = None,
        **make_kwargs: Any,  # Any: the parameters of `make`
    ) -> None:
        """Serve until Ctrl-C; the arguments are those of `start`.

        Raises:
            ParamError: a parameter is not what it can be; nothing was made.
            KeyboardInterrupt: Ctrl-C, after the server has shut down.
        """
        self._server(
            address, num_envs, vectorization_mode, framework, device, workflow_edition, options,
            make_kwargs,
        ).serve()  # fmt: skip

    def _server(
        self,
        address: str | None,
        num_envs: int,
        vectorization_mode: str | None,
        framework: str | None,
        device: object,
        workflow_edition: str | None,
        options: ServeOptions | None,
        make_kwargs: Mapping[str, object],
    ) -> EnvServer:
        from rlmesh.server.env_server import EnvServer

        return EnvServer(
            self.with_params(**make_kwargs),
            address,
            options=options,
            num_envs=None if num_envs == 1 and vectorization_mode is None else num_envs,
            vectorization_mode=vectorization_mode,
            framework=framework,
            device=device,
            workflow_edition=workflow_edition,
        )


def _require_sound(cls: type[EnvFactory]) -> None:
    name_of = cls.__qualname__
    spec: object = getattr(cls, "params")  # noqa: B009 - authors without types
    if spec is not None and not isinstance(spec, ParamSpec):
        raise FactoryTypeError(f"{name_of}.params is {spec!r}", hint="Give ParamSpec(Param(...)).")
    for name in ("tag_params", "reset_options"):
        names: object = getattr(cls, name)
        if isinstance(names, str) or not isinstance(names, tuple | list):
            raise FactoryTypeError(f"{name_of}.{name} is {names!r}", hint="Give a tuple of names.")
        setattr(cls, name, tuple(cast("tuple[str, ...]", names)))
    unknown = [name for name in cls.reset_options if name not in RESET_OPTIONS]
    if unknown:
        raise FactoryTypeError(
            f"{name_of}.reset_options has {unknown}, which nothing delivers",
            hint=f"There is {', '.join(map(repr, RESET_OPTIONS))}.",
        )
    try:
        declared_edition(cls.workflow_edition)
    except ConfigurationError as error:
        raise FactoryTypeError(f"{name_of}: {error}") from error


def _written_by_authors(cls: type[EnvFactory]) -> list[type]:
    return [base for base in cls.__mro__ if base is not EnvFactory]


def _is_abstract(method: object) -> bool:
    return bool(getattr(method, "__isabstractmethod__", False))


def _wrapped(written: Callable[..., object]) -> Callable[..., object]:
    """Return `make` as it is called: checked before, and with marks on what it made."""
    signature = inspect.signature(written)

    @functools.wraps(written)
    def make(self: EnvFactory, /, *args: Any, **kwargs: Any) -> object:  # Any: as written
        cls = type(self)
        if cls.make is not make:
            # The class's own make calls this one; it does what there is to do.
            return written(self, *args, **kwargs)
        if args:
            given = signature.bind_partial(self, *args).arguments
            named = dict(list(given.items())[1:])
            twice = sorted(named.keys() & kwargs.keys())
            if len(given) <= len(args) or twice:
                return written(self, *args, **kwargs)  # which says what is wrong, in Python's words
            kwargs = {**named, **kwargs}
        kwargs = self.checked_params(kwargs)
        env = written(self, **kwargs)
        mark(env, cls, branch_of(cls, kwargs))
        return env

    return make
