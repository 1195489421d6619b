"""What environments and models are made with: declared, described, and checked before anything is.

A `ParamSpec` names the parameters of `EnvFactory.make` or `Model.load`; what is given is checked
against it and against the signature before the function is called. Defaults stand in the signature.
"""

from __future__ import annotations

import difflib
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from types import FunctionType
from typing import Any, Final, Literal, Unpack, cast

from rlcore import ConfigurationError
from rlcore.errors import CommonFacts

from rlmesh.param_kinds import (
    Kind,
    Mismatch,
    Vector,
    kind_of,
    optional_scalar,
)

__all__ = [
    "PARAM_METADATA_KEY",
    "MissingParamError",
    "Param",
    "ParamError",
    "ParamSpec",
    "UnknownParamError",
    "Vector",
    "bind_params",
    "require_defaults",
]

PARAM_METADATA_KEY: Final = "rlmesh.params.v1.binding"
EXTRAS: Final = ("forbid", "passthrough")


class ParamError(ConfigurationError):
    """A parameter cannot be what it was given as, or cannot be declared so; nothing was made."""

    default_code = "param"


class MissingParamError(ParamError):
    """A parameter without a default was not given.

    Attributes:
        name: of the parameter.
    """

    default_code = "missing_param"

    def __init__(self, message: str, *, name: str, **common: Unpack[CommonFacts]) -> None:
        super().__init__(message, **common)
        self.name = name


class UnknownParamError(ParamError):
    """Parameters were given that nothing takes; the hint names the nearest that are taken.

    Attributes:
        names: of the parameters.
    """

    default_code = "unknown_param"

    def __init__(self, message: str, *, names: list[str], **common: Unpack[CommonFacts]) -> None:
        super().__init__(message, **common)
        self.names = names


@dataclass(frozen=True)
class Param:
    """One parameter.

    Attributes:
        name: the keyword of the function.
        type: `int`, `float`, `str`, `bool`, or their names; `"enum"`, which is one of the choices;
            `Vector(dim)`; `list[int]` and the like; one of these `| None`; any other text is a
            label for people, and such values are not checked.
        choices: what it can be; each item of a list.
        description: for people.
        group: what it is shown with.
        minimum: the least that a number may be, also those in a list or vector.
        maximum: the most.
        step: numbers are so far apart, counted from the minimum, or from 0.

    Raises:
        ParamError: the declaration contradicts itself.
    """

    name: str
    type: object = "str"
    choices: tuple[Any, ...] | None = None  # Any: values of the author's own
    description: str = ""
    group: str | None = None
    _: KW_ONLY
    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(cast("object", self.name), str) or not self.name.isidentifier():
            raise ParamError(f"a parameter is named {self.name!r}", hint="Name a keyword.")
        if self.choices is not None:
            object.__setattr__(self, "choices", tuple(self.choices))
        kind = self.kind
        if kind.label == "enum" and not self.choices:
            raise ParamError(
                f"the parameter {self.name!r} is an enum without choices", hint="Give choices=(…)."
            )
        limits = (self.minimum, self.maximum, self.step)
        if any(limit is not None for limit in limits):
            if not kind.numeric:
                raise ParamError(
                    f"the parameter {self.name!r} is no number ({kind.label}) and has a range",
                    hint="minimum, maximum and step are for int, float, and lists of them.",
                )
            self._require_sound_range()
        for choice in self.choices or ():
            self._require_possible(choice)

    @property
    def kind(self) -> Kind:
        """What its type means."""
        return kind_of(self.type)

    def checked(self, value: object) -> object:
        """Return the value as the function gets it: an int for 2.0, a tuple for a vector's list.

        Raises:
            ParamError: the parameter cannot be that.
        """
        try:
            value = self.kind.checked(value)
        except Mismatch as error:
            raise ParamError(f"{self.name}: {error}", hint=self._wanted()) from error
        for item in self.kind.items(value):
            self._require_choice(item)
            self._require_in_range(item)
        return value

    def _require_choice(self, item: object) -> None:
        if self.choices is None or any(_same(item, choice) for choice in self.choices):
            return
        near = difflib.get_close_matches(str(item), map(str, self.choices), n=1)
        raise ParamError(
            f"{self.name}: {item!r} is not one of {list(self.choices)}",
            hint=f"Did you mean {near[0]!r}?" if near else None,
        )

    def _require_in_range(self, item: object) -> None:
        if not self.kind.numeric:
            return
        number = cast("float", item)  # or an int, which is compared as one: exactly
        if self.minimum is not None and number < self.minimum:
            raise ParamError(f"{self.name}: {_brief(item)} is less than {self.minimum!r}")
        if self.maximum is not None and number > self.maximum:
            raise ParamError(f"{self.name}: {_brief(item)} is more than {self.maximum!r}")
        if self.step is not None and not _on_grid(number, self.minimum or 0, self.step):
            start = f" from {self.minimum!r}" if self.minimum else ""
            raise ParamError(f"{self.name}: {_brief(item)} is no multiple of {self.step!r}{start}")

    def _require_possible(self, choice: object) -> None:
        if choice is None and self.kind.items(None) == ():
            return
        try:
            self._require_in_range(self.kind.leaf.checked(choice))
        except (Mismatch, ParamError) as error:
            raise ParamError(
                f"the parameter {self.name!r} has a choice that it cannot be: {error}"
            ) from error

    def _require_sound_range(self) -> None:
        for name in ("minimum", "maximum", "step"):
            limit: object = getattr(self, name)
            if limit is None:
                continue
            number = not isinstance(limit, bool) and isinstance(limit, int | float)
            finite = isinstance(limit, int) or (number and math.isfinite(cast("float", limit)))
            if not number or not finite:
                raise ParamError(f"{name} of the parameter {self.name!r} is {limit!r}, no number")
        if self.step is not None and self.step <= 0:
            raise ParamError(f"step of the parameter {self.name!r} is {self.step!r}, not positive")
        low, high = self.minimum, self.maximum
        if low is not None and high is not None and low > high:
            raise ParamError(f"the parameter {self.name!r} ranges from {low!r} to {high!r}")

    def _wanted(self) -> str | None:
        return None if not self.description else f"It is: {self.description}"


@dataclass(frozen=True, init=False)
class ParamSpec:
    """The parameters of a function.

    Args:
        *params: the parameters.
        extra: what happens to others: `forbid`, or `passthrough` to a function with `**kwargs`.
            What the signature names is never another, declared or not.

    Raises:
        ParamError: two have one name, or `extra` is neither.
    """

    params: tuple[Param, ...]
    extra: Literal["forbid", "passthrough"]

    def __init__(self, *params: Param, extra: Literal["forbid", "passthrough"] = "forbid") -> None:
        for param in params:
            if not isinstance(cast("object", param), Param):
                raise ParamError(f"{param!r} is not a Param", hint='Write Param("name", int).')
        names = [param.name for param in params]
        for name in names:
            if names.count(name) > 1:
                raise ParamError(f"the parameter {name!r} is declared twice")
        if extra not in EXTRAS:
            raise ParamError(f"extra is {extra!r}", hint=f"It can be {' or '.join(EXTRAS)}.")
        object.__setattr__(self, "params", params)
        object.__setattr__(self, "extra", extra)

    def named(self, name: str) -> Param | None:
        """Return the parameter of that name."""
        return next((param for param in self.params if param.name == name), None)


def bind_params(
    signature_owner: Callable[..., object],
    spec: ParamSpec | None,
    given: Mapping[str, object],
    *,
    check_annotated: bool = True,
) -> dict[str, Any]:  # Any: values of the author's own
    """Return the keyword arguments to call a function with; what was not given is left out.

    Args:
        signature_owner: the function, as it is called, or as its class has it (with `self`).
        spec: its declared parameters; None: there are none.
        given: what to call it with.
        check_annotated: whether keywords that are not declared are checked where they are
            annotated as `int`, `float`, `str` or `bool`, or one of these `| None`.

    Raises:
        UnknownParamError: nothing takes one of them.
        MissingParamError: one without a default is not given.
        ParamError: a value is not what its parameter can be.
    """
    signature = keywords_of(signature_owner)
    name_of = getattr(signature_owner, "__qualname__", repr(signature_owner))
    _require_known(name_of, signature, spec, given)
    bound: dict[str, Any] = {}
    for name, value in given.items():
        param = None if spec is None else spec.named(name)
        keyword = signature.keywords.get(name)
        if value is None and keyword is not None and keyword.default is None:
            bound[name] = None  # its default, said aloud
        elif param is not None:
            if keyword is None and not signature.takes_more:
                raise ParamError(
                    f"{name}: it is declared, and {name_of} does not take it",
                    hint="Add it to the signature.",
                )
            bound[name] = param.checked(value)
        elif check_annotated and keyword is not None:
            bound[name] = Param(name, keyword.annotated.label).checked(value)
        else:
            bound[name] = value
    for name, keyword in signature.keywords.items():
        if keyword.required and name not in given:
            raise MissingParamError(
                f"{name_of} needs the parameter {name!r}",
                name=name,
                hint=_described(spec, name),
            )
    return bound


def require_defaults(signature_owner: Callable[..., object], spec: ParamSpec | None) -> None:
    """Check the defaults of a function against its parameters; for the creation of classes.

    A default of None is taken for "not given". Warns of parameters that the function cannot get.

    Raises:
        ParamError: a default is not what its parameter can be.
    """
    if spec is None:
        return
    signature = keywords_of(signature_owner)
    name_of = getattr(signature_owner, "__qualname__", repr(signature_owner))
    for param in spec.params:
        keyword = signature.keywords.get(param.name)
        if keyword is None:
            if not signature.takes_more:
                warnings.warn(
                    f"the parameter {param.name!r} is declared, and {name_of} does not take it",
                    stacklevel=3,
                )
        elif not keyword.required and keyword.default is not None:
            try:
                param.checked(keyword.default)
            except ParamError as error:
                raise ParamError(
                    f"the default of a parameter of {name_of} is not what it declares: "
                    f"{error.message}",
                    hint=error.hint,
                ) from error


@dataclass(frozen=True)
class Keyword:
    """A keyword of a function.

    Attributes:
        default: its default; `inspect.Parameter.empty` for none.
        annotated: what its annotation means, where values can be checked against it.
        annotation: the annotation; `inspect.Parameter.empty` for none.
    """

    default: object
    annotated: Kind
    annotation: object

    @property
    def required(self) -> bool:
        """Whether it has to be given."""
        return self.default is inspect.Parameter.empty


@dataclass(frozen=True)
class Keywords:
    """The keywords of a function, and whether it takes others."""

    keywords: Mapping[str, Keyword]
    takes_more: bool


def keywords_of(function: Callable[..., object]) -> Keywords:
    """Return the keywords of a function; a method's `self` is none."""
    parameters = list(inspect.signature(function).parameters.values())
    if isinstance(function, FunctionType) and parameters and _is_bound(function, parameters[0]):
        del parameters[0]
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL)
    found: dict[str, Keyword] = {}
    takes_more = False
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            takes_more = True
        elif parameter.kind not in by_position:
            annotated = optional_scalar(parameter.annotation)
            found[parameter.name] = Keyword(parameter.default, annotated, parameter.annotation)
    return Keywords(found, takes_more)


def _is_bound(function: FunctionType, first: inspect.Parameter) -> bool:
    """Tell whether a function, as its class has it, gets its instance by the first parameter."""
    if first.name == "self":
        return True
    *classes, name = function.__qualname__.split(".")
    owner: object = sys.modules.get(function.__module__)
    if "<locals>" in classes:  # nothing leads to its class, and methods are said to be in one
        return classes[-1] != "<locals>"
    for part in classes:
        owner = getattr(owner, part, None)
    return isinstance(owner, type) and vars(owner).get(name) is function


def _require_known(
    name_of: str, signature: Keywords, spec: ParamSpec | None, given: Mapping[str, object]
) -> None:
    declared = () if spec is None else [param.name for param in spec.params]
    known = dict.fromkeys([*declared, *signature.keywords])
    passes = signature.takes_more and (spec is None or spec.extra == "passthrough")
    unknown = [] if passes else [name for name in given if name not in known]
    if unknown:
        names = ", ".join(map(repr, unknown))
        raise UnknownParamError(
            f"{name_of} has no parameter {names}", names=unknown, hint=_nearest(unknown, known)
        )


def _nearest(unknown: Iterable[str], known: Iterable[str]) -> str:
    names = list(known)
    near = [match for name in unknown for match in difflib.get_close_matches(name, names, n=1)]
    if near:
        return f"Did you mean {', '.join(map(repr, dict.fromkeys(near)))}?"
    return f"It has {', '.join(map(repr, names))}." if names else "It has none."


def _described(spec: ParamSpec | None, name: str) -> str | None:
    param = None if spec is None else spec.named(name)
    return None if param is None or not param.description else f"It is: {param.description}"


def _on_grid(number: float, start: float, step: float) -> bool:
    steps = Fraction(number) - Fraction(start), Fraction(step)
    apart = abs(steps[0] - round(steps[0] / steps[1]) * steps[1])
    # 0.1 * 3 is not 0.3, and is meant by it: as far apart as rounding brings floats, and no ints.
    if isinstance(number, int) and isinstance(start, int) and isinstance(step, int):
        return apart == 0
    largest = min(max(abs(number), abs(start)), sys.float_info.max)
    return apart <= 16 * Fraction(math.ulp(largest))


def _brief(item: object) -> str:
    if isinstance(item, int) and abs(item) >= 10**30:
        return f"an integer of {item.bit_length()} bits"
    return repr(item)


def _same(value: object, choice: object) -> bool:
    # True == 1, and the one is never meant by the other.
    return isinstance(value, bool) == isinstance(choice, bool) and value == choice
