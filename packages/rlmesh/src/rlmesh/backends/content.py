"""What a function, a policy or a factory is made of, as a digest: to know it again another day.

Compared are the code of functions and classes with what it refers to, values, arrays and weights.
Libraries are known by name: their versions are told elsewhere. Code is compared as this Python
compiles it, so another version of Python makes another digest.
"""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import inspect
import logging
import random
import re
import sys
import threading
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import PurePath
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, cast

import numpy as np

# Any, in this room: whatever somebody made.

_DEEPEST: Final = 80
_MOST: Final = 200_000  # values; more is data, and takes too long
_OURS: Final = ("rlmesh", "rlcore")
_LOCKS: Final = type(threading.Lock()) | type(threading.RLock())
_PLAIN: Final = (bool, int, float, complex, str, bytes, bytearray, range, type(None), type(...))
_TOLD: Final = 4


@dataclass(frozen=True, slots=True)
class Content:
    """What something is made of.

    Attributes:
        digest: `sha256:` and the digest of all that can be compared.
        unseen: where there are things that cannot.
    """

    digest: str
    unseen: tuple[str, ...] = ()

    @property
    def gaps(self) -> str:
        """What cannot be compared, in a few words."""
        more = len(self.unseen) - _TOLD
        shown = ", ".join(self.unseen[:_TOLD])
        return f"{shown} and {more} more" if more > 0 else shown


def content_of(thing: object, *, unseen: Iterable[str] = ()) -> Content:
    """Return what something is made of.

    Args:
        thing: a function, a class, an object, or values.
        unseen: what is known to be left out of it.
    """
    walk = _Walk()
    walk.see(thing, "")
    return Content(f"sha256:{walk.hash.hexdigest()}", (*unseen, *dict.fromkeys(walk.unseen)))


class _Walk:
    def __init__(self) -> None:
        self.hash = hashlib.sha256()
        self.unseen: list[str] = []
        self._known: dict[int, int] = {}
        self._kept: list[object] = []  # so that no id is used twice
        self._depth = 0
        self._count = 0

    def see(self, value: Any, where: str) -> None:
        """Take a value into the digest; `where` says where it was found."""
        self._count += 1
        if self._depth >= _DEEPEST or self._count > _MOST:
            self._miss(value, where)
            return
        self._depth += 1
        try:
            self._see(value, where)
        finally:
            self._depth -= 1

    def _put(self, kind: str, *parts: object) -> None:
        for part in (kind, *parts):
            data = part if isinstance(part, bytes) else repr(part).encode(errors="surrogatepass")
            self.hash.update(len(data).to_bytes(8, "big"))
            self.hash.update(data)

    def _miss(self, value: object, where: str) -> None:
        name = type(value).__qualname__
        self._put("unseen", name)
        self.unseen.append(f"{where.lstrip('.')} ({name})" if where else name)

    def _see(self, value: Any, where: str) -> None:
        if isinstance(value, _PLAIN) and not isinstance(value, enum.Enum):
            self._put(type(value).__name__, value)
            return
        if self._is_simple(value):
            return
        if isinstance(value, tuple | frozenset):
            self._container(value, where)  # which of them are one object is Python's affair
            return
        if id(value) in self._known:
            self._put("again", self._known[id(value)])
            return
        self._known[id(value)] = len(self._known)
        self._kept.append(value)
        if isinstance(value, FunctionType):
            self._function(value, where)
        elif isinstance(value, MethodType):
            self._parts("method", (value.__func__, value.__self__), where)
        elif isinstance(value, functools.partial):
            self._partial(value, where)
        elif isinstance(value, type):
            self._class(value, where)
        elif isinstance(value, Mapping | AbstractSet | Sequence):
            self._container(value, where)
        else:
            self._object(value, where)

    def _partial(self, value: Any, where: str) -> None:
        self._parts("partial", (value.func, value.args, value.keywords), where)

    def _parts(self, kind: str, parts: tuple[Any, ...], where: str) -> None:
        self._put(kind)
        for part in parts:
            self.see(part, where)

    def _container(self, value: Any, where: str) -> None:
        self._put("container", _name(value.__class__), len(value))
        if _is(value, AbstractSet):
            self._put("set", sorted(content_of(item).digest for item in value))
        elif _is(value, Mapping):
            for key, item in list(value.items()):
                self.see(key, where)
                self.see(item, f"{where}.{key}")
        else:
            for at, item in enumerate(list(value)):
                self.see(item, f"{where}[{at}]")

    def _is_simple(self, value: Any) -> bool:
        told = _simple(value)
        if told is not None:
            self._put(*told)
        elif isinstance(value, np.ndarray):
            self._array(value)
        else:
            return False
        return True

    def _array(self, value: Any) -> None:
        if value.dtype.hasobject:
            self._put("array", value.shape)
            self.see(value.tolist(), "")
        else:
            self._put("array", str(value.dtype), value.shape)
            self.hash.update(np.ascontiguousarray(value).tobytes())

    def _function(self, value: FunctionType, where: str) -> None:
        library = _is_library(value.__module__)
        self._put("function", f"{value.__module__}:{value.__qualname__}" if library else "")
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            try:
                content = cell.cell_contents
            except ValueError:  # not set yet
                self._put("empty")
                continue
            self.see(content, f"{where}.{name}")
        self.see(value.__defaults__, where)
        self.see(value.__kwdefaults__, where)
        if library:
            return
        self._code(value.__code__)
        for name in sorted(set(_globals_of(value.__code__))):
            self._put("global", name)
            if name in value.__globals__:
                self.see(value.__globals__[name], f"{where}.{name}")

    def _code(self, code: CodeType) -> None:
        self._put("code", code.co_code, code.co_exceptiontable, code.co_names)
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._code(constant)
            else:
                self.see(constant, "")

    def _class(self, value: type, where: str) -> None:
        self._put("class", _name(value))
        if _is_library(value.__module__):
            return
        for base in value.__bases__:
            self.see(base, where)
        for name, member in sorted(vars(value).items()):
            found = _member(member)
            is_code = bool(found)
            if (name.startswith("__") and not is_code) or name.startswith("_abc_"):
                continue
            if not is_code and inspect.isdatadescriptor(member):
                continue  # a slot
            self._put("member", name)
            for part in found or (member,):
                self.see(part, f"{where}.{name}")

    def _object(self, value: Any, where: str) -> None:
        kind: type = value.__class__
        if self._tensor(value):
            return
        if isinstance(value, np.random.Generator):
            self._put("generator")
            self.see(value.bit_generator.state, where)
            return
        if isinstance(value, random.Random):
            self._put("random", value.getstate())
            return
        if _is_fleeting(value) or _is_standard(kind.__module__):
            self._miss(value, where)
            return
        if callable(getattr(value, "reset", None)) and callable(getattr(value, "step", None)):
            self._miss(value, where)  # an environment, which is never twice the same
            return
        # Arrays of other libraries say so.
        if hasattr(value, "__array__") and hasattr(value, "dtype"):
            self._array(np.asarray(value))
            return
        self.see(kind, where)
        attributes = _attributes(value)
        if attributes is None:
            self._miss(value, where)
            return
        self._put("object", len(attributes))
        for name, item in attributes.items():
            self._put("attribute", name)
            self.see(item, f"{where}.{name}")

    def _tensor(self, value: Any) -> bool:
        torch: Any = sys.modules.get("torch")
        if torch is None:
            return False
        if isinstance(value, torch.Tensor):
            plain = value.detach().to("cpu").contiguous()
            self._put("tensor", str(value.dtype), tuple(value.shape))
            self.hash.update(plain.reshape(-1).view(torch.uint8).numpy().tobytes())
        elif isinstance(value, torch.jit.ScriptModule):
            self._put("script", str(getattr(value, "graph", None)))
            self.see(value.state_dict(), "")
        elif isinstance(value, torch.device | torch.dtype):
            self._put("torch", str(value))
        elif isinstance(value, torch.Generator):
            self.see(value.get_state(), "")
        else:
            return False
        return True


def _is(value: object, kind: type) -> bool:
    """Ask as `isinstance` does; what a type checker would make of the answer helps nobody here."""
    return isinstance(value, kind)


def _simple(value: Any) -> tuple[str, *tuple[object, ...]] | None:
    """Return what is told of a value that holds no others."""
    if isinstance(value, ModuleType | BuiltinFunctionType | np.ufunc):
        return "name", getattr(value, "__module__", None), value.__name__
    if isinstance(value, enum.Enum):
        return "enum", _name(type(value)), value.name
    if isinstance(value, PurePath):
        return "path", str(value)
    if _is(value, re.Pattern):
        return "pattern", value.pattern, value.flags
    if isinstance(value, np.dtype | np.generic):
        number = cast("Any", value)
        return "number", str(getattr(number, "dtype", "")), repr(number)
    if isinstance(value, logging.Logger | _LOCKS):
        return ("holds nothing",)
    return None


def _is_fleeting(value: Any) -> bool:
    return isinstance(value, BaseException | weakref.ref)


def _attributes(value: Any) -> dict[str, Any] | None:
    """Return the attributes of an object, or None where it keeps what it holds elsewhere."""
    slots = [
        name
        for kind in cast("type", value.__class__).__mro__
        for name in _texts(vars(kind).get("__slots__", ()))
        if name not in ("__dict__", "__weakref__") and hasattr(value, name)
    ]
    if not hasattr(value, "__dict__"):
        return {name: getattr(value, name) for name in slots} if slots else None
    return {**vars(value), **{name: getattr(value, name) for name in slots}}


def _texts(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(str(name) for name in value)


def _member(member: Any) -> tuple[Any, ...]:
    """Return the functions that a member of a class is made of."""
    if isinstance(member, FunctionType):
        return (member,)
    if isinstance(member, property):
        return tuple(part for part in (member.fget, member.fset, member.fdel) if part)
    if isinstance(member, staticmethod | classmethod | functools.cached_property):
        found = cast("Any", member)
        return (getattr(found, "__func__", None) or found.func,)
    return ()


def _globals_of(code: CodeType) -> Iterator[str]:
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            yield str(instruction.argval)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)


def _name(kind: type) -> str:
    # What is run as a script and imported by a worker is the same.
    return f"{kind.__module__}:{kind.__qualname__}"


def _is_standard(module: str | None) -> bool:
    return (module or "").partition(".")[0] in sys.stdlib_module_names


@functools.cache
def _is_library(module: str | None) -> bool:
    """Tell whether a module is installed, and not somebody's own."""
    root = (module or "").partition(".")[0]
    if root == "__main__":
        return False
    if root in _OURS or root in sys.stdlib_module_names:
        return True
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return any(part in ("site-packages", "dist-packages") for part in PurePath(file).parts)
