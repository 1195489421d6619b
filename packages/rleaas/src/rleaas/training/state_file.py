"""The state file of a checkpoint: what an exact resume needs beside the policy.

A zip of one JSON tree, one safetensors file and an npy file per array. Nothing in it is pickled, so
reading it runs no code.
"""

# What JSON and numpy give has no types of its own.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
import safetensors.torch
import torch
from numpy.lib import format as npy
from rlcore import ConfigurationError

from rleaas.training import archive_formats
from rleaas.training.whole_archive import whole_archive

FORMAT: Final = archive_formats.STATE_FORMAT
_TREE: Final = archive_formats.STATE_TREE
_TENSORS: Final = archive_formats.STATE_TENSORS
_MARK: Final = "$"
_TREE_LIMIT: Final = 512 * 1024 * 1024


def write_state(path: Path, parts: Mapping[str, object]) -> None:
    """Write what a trainer needs to go on exactly; the file appears as a whole or not at all.

    Args:
        path: where it is to be; what is there is replaced.
        parts: named parts such as `optimizer`, `replay`, `random`, `ledger`. Each is a tree of
            dicts (keys of any plain kind), lists, tuples, numbers, texts, bytes, None, torch
            tensors and numpy arrays: `optimizer.state_dict()` and
            `generator.bit_generator.state` can be given as they are.

    Raises:
        TypeError: something in it is of another kind; the message says where.
    """
    packed = _Packed()
    tree = {"format": FORMAT, "parts": {name: packed.put(one, name) for name, one in parts.items()}}
    text = json.dumps(tree, allow_nan=False)
    with whole_archive(path) as archive:
        archive.add(_TREE, text.encode(), pack=True)
        archive.add(_TENSORS, safetensors.torch.save(packed.tensors))
        for number, array in enumerate(packed.arrays):
            # Packed: most of a replay buffer is often not filled yet.
            with archive.member(_array_name(number), pack=True) as member:
                npy.write_array(member, array, allow_pickle=False)


def read_state(path: Path) -> dict[str, Any]:  # the tree that was written
    """The parts that were written; tensors are on the CPU.

    Raises:
        ConfigurationError: the file is no state file, or is damaged.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo(_TREE).file_size > _TREE_LIMIT:
                raise ValueError("its tree is too large")
            tree = json.loads(archive.read(_TREE))
            if tree["format"] != FORMAT:
                raise ValueError(f"its format is {tree['format']!r}, not {FORMAT!r}")
            opened = _Opened(archive, safetensors.torch.load(archive.read(_TENSORS)))
            return {name: opened.take(one) for name, one in tree["parts"].items()}
    except Exception as error:
        # Damaged bytes raise nearly anything, safetensors' own exceptions among it.
        raise ConfigurationError(
            f"{path.name!r} is not a readable training state: {type(error).__name__}: {error}",
            code="checkpoint_unreadable",
            hint="Resume from another checkpoint",
        ) from error


class _Packed:
    """A tree as JSON, with its tensors and arrays put aside."""

    def __init__(self) -> None:
        self.tensors: dict[str, torch.Tensor] = {}
        self.arrays: list[np.ndarray[Any, Any]] = []

    def put(self, value: object, where: str) -> object:
        if value is None or isinstance(value, bool | str):
            return value
        if isinstance(value, torch.Tensor):
            name = str(len(self.tensors))
            self.tensors[name] = value.detach().cpu().contiguous().clone()
            return {"$tensor": name}
        if isinstance(value, np.ndarray | np.generic):
            return self._array(value, where)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            plain = float(value)
            return plain if np.isfinite(plain) else {"$float": repr(plain)}
        if isinstance(value, bytes | bytearray):
            return {"$bytes": base64.b64encode(value).decode()}
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[object, object]", value), where)
        if isinstance(value, Sequence):
            found = cast("Sequence[object]", value)
            items = [self.put(one, f"{where}[{number}]") for number, one in enumerate(found)]
            return {"$tuple": items} if isinstance(value, tuple) else items
        raise TypeError(f"{where} of the state is a {type(value).__name__}, which cannot be kept")

    def _array(self, value: np.ndarray[Any, Any] | np.generic, where: str) -> object:
        array = np.asarray(value)
        if array.dtype.hasobject:
            raise TypeError(f"{where} of the state is an array of objects, which cannot be kept")
        self.arrays.append(array)
        kind = "$array" if isinstance(value, np.ndarray) else "$scalar"
        return {kind: len(self.arrays) - 1}

    def _mapping(self, value: Mapping[object, object], where: str) -> object:
        if all(isinstance(key, str) and not key.startswith(_MARK) for key in value):
            return {str(key): self.put(one, f"{where}.{key}") for key, one in value.items()}
        pairs = [
            [self.put(key, f"a key of {where}"), self.put(one, f"{where}[{key!r}]")]
            for key, one in value.items()
        ]
        return {"$pairs": pairs}


class _Opened:
    """The tree again."""

    def __init__(self, archive: zipfile.ZipFile, tensors: Mapping[str, torch.Tensor]) -> None:
        self._archive = archive
        self._tensors = tensors

    def take(self, value: Any) -> Any:  # what JSON can be
        if isinstance(value, list):
            return [self.take(one) for one in value]
        if not isinstance(value, dict):
            return value
        found = cast("dict[str, Any]", value)
        if len(found) == 1:
            kind, content = next(iter(found.items()))
            if kind.startswith(_MARK):
                return self._marked(kind, content)
        return {name: self.take(one) for name, one in found.items()}

    def _marked(self, kind: str, content: Any) -> Any:  # what JSON can be
        if kind == "$tensor":
            return self._tensors[content]
        if kind == "$tuple":
            return tuple(self.take(one) for one in content)
        if kind == "$pairs":
            return {self.take(key): self.take(one) for key, one in content}
        if kind == "$float":
            return float(content)
        if kind == "$bytes":
            return base64.b64decode(content)
        if kind not in ("$array", "$scalar"):
            raise ValueError(f"it has a value of unknown kind {kind!r}")
        with self._archive.open(_array_name(int(content))) as member:
            # Not from the member itself, which gives short reads.
            array = npy.read_array(io.BytesIO(member.read()), allow_pickle=False)
        return array[()] if kind == "$scalar" else array


def _array_name(number: int) -> str:
    return f"arrays/{number}.npy"
