"""What happened in one episode, step by step: written while it is played, read lazily."""

from __future__ import annotations

import json
from array import array
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final, Self, cast

import numpy as np
from numpy.typing import NDArray
from rlcore import BundleError

from rlmesh.recorder.columns import Array, Json, ValueColumn
from rlmesh.recorder.digests import DIGEST_BYTES, digest_of
from rlmesh.recorder.npz import Npz, write_npz
from rlmesh.recorder.tagged import from_tagged

if TYPE_CHECKING:
    from rlmesh.runs.hooks import StepEvent

TRAJECTORY_SCHEMA: Final = "rlmesh.trajectory.v1"
_LAYOUT: Final = "layout"


class TrajectoryWriter:
    """Takes the steps of an episode as they happen, in bounded memory.

    Args:
        folder: where what does not fit into memory goes.
        observations: whether to keep the observations themselves, not their digests only.
        info_keys: which entries of the infos to keep, where they are there.
    """

    def __init__(self, folder: Path, *, observations: bool, info_keys: Sequence[str]) -> None:
        self._actions = ValueColumn("action", folder)
        self._observations = ValueColumn("observation", folder) if observations else None
        self._infos = {key: ValueColumn(f"info/{key}", folder) for key in info_keys}
        self._rewards = array("d")
        self._terminated = bytearray()
        self._truncated = bytearray()
        self._cut = bytearray()
        self._predict_ms = array("f")
        self._step_ms = array("f")
        self._digests = bytearray()

    @property
    def steps(self) -> int:
        """How many steps there are so far."""
        return len(self._rewards)

    def add(self, event: StepEvent, following: object) -> None:
        """Append a step.

        Args:
            event: the step.
            following: what was observed after it.

        Raises:
            OSError: the disk does not take it.
        """
        if not self._digests:
            self._observe(event.observation)
        self._actions.add(event.action)
        self._observe(following)
        self._rewards.append(event.reward)
        self._terminated.append(event.terminated)
        self._truncated.append(event.truncated)
        self._cut.append(event.cut)
        self._predict_ms.append(event.predict_ms)
        self._step_ms.append(event.step_ms)
        for key, column in self._infos.items():
            column.add(event.info.get(key))

    def _observe(self, observation: object) -> None:
        self._digests += digest_of(observation)
        if self._observations is not None:
            self._observations.add(observation)

    def write(self, target: Path) -> None:
        """Write what was taken as an npz file.

        Raises:
            OSError: the disk does not take it.
        """
        columns = self.columns()
        layout = {
            "schema": TRAJECTORY_SCHEMA,
            "steps": self.steps,
            "columns": {column.name: column.layout() for column in columns},
        }
        packed = np.frombuffer(json.dumps(layout).encode(), np.uint8)
        members = [
            (member, len(member.spool) // member.row_bytes if member.row_bytes else column.count)
            for column in columns
            for member in column.members()
        ]
        write_npz(target, members, {_LAYOUT: packed, **self.series()})

    def columns(self) -> list[ValueColumn]:
        """Return the columns of values: actions, infos, and observations where they are kept."""
        kept = [] if self._observations is None else [self._observations]
        return [self._actions, *self._infos.values(), *kept]

    def series(self) -> dict[str, Array]:
        """Return what has the same form in every trajectory."""
        return {
            "reward": np.frombuffer(self._rewards, "<f8"),
            "terminated": np.frombuffer(self._terminated, "|b1"),
            "truncated": np.frombuffer(self._truncated, "|b1"),
            "cut": np.frombuffer(self._cut, "|b1"),
            "predict_ms": np.frombuffer(self._predict_ms, "<f4"),
            "step_ms": np.frombuffer(self._step_ms, "<f4"),
            "observation_digest": np.frombuffer(self._digests, np.uint8).reshape(-1, DIGEST_BYTES),
        }

    def close(self) -> None:
        """Let go of memory and files."""
        for column in self.columns():
            column.close()


class Trajectory:
    """The steps of one recorded episode; arrays are read when they are asked for.

    Step t, counted from 0, was taken with `action(t)` in the state that `observation(t)` shows; it
    gave `rewards[t]`, and `observation(t + 1)`. A context manager.

    Attributes:
        steps: how many there are.
        rewards: float64 [steps].
        terminated: bool [steps].
        truncated: bool [steps], true as well where the run cut the episode off.
        cut: bool [steps], true only where the run did, and not the environment.
        predict_ms: float32 [steps], milliseconds.
        step_ms: float32 [steps], milliseconds.
        digests: a digest of each observation, as hexadecimal text, [steps + 1].

    Raises:
        BundleError: the file is damaged, or not a trajectory.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._name = name
        self._npz = Npz(file, name)
        self._file = file
        try:
            layout: Json = json.loads(self._npz.array(_LAYOUT).tobytes())
            if layout["schema"] != TRAJECTORY_SCHEMA:
                raise BundleError(f"{name!r} is of schema {layout['schema']!r}", path=name)
            self.steps = int(layout["steps"])
            self._columns: dict[str, Json | None] = dict(layout["columns"])
        except (ArithmeticError, ValueError, LookupError, TypeError, BundleError) as error:
            self.close()
            if isinstance(error, BundleError):
                raise
            raise BundleError(f"{name!r} is no trajectory file: {error}", path=name) from error

    @property
    def rewards(self) -> NDArray[np.float64]:
        """The reward of each step."""
        return self._series("reward", "<f8")

    @property
    def terminated(self) -> NDArray[np.bool_]:
        """Whether each step ended the episode by itself."""
        return self._series("terminated", "|b1")

    @property
    def truncated(self) -> NDArray[np.bool_]:
        """Whether the episode was cut off after each step, by the environment or the run."""
        return self._series("truncated", "|b1")

    @property
    def cut(self) -> NDArray[np.bool_]:
        """Whether the run, and not the environment, cut the episode off after each step."""
        return self._series("cut", "|b1")

    @property
    def predict_ms(self) -> NDArray[np.float32]:
        """How long each prediction took."""
        return self._series("predict_ms", "<f4")

    @property
    def step_ms(self) -> NDArray[np.float32]:
        """How long each step of the environment took."""
        return self._series("step_ms", "<f4")

    @property
    def digests(self) -> tuple[str, ...]:
        """The digest of each observation, from the reset's to the last step's."""
        found = self._npz.array("observation_digest")
        if found.dtype != np.uint8 or found.shape != (self.steps + 1, DIGEST_BYTES):
            raise BundleError(f"{self._name!r} has odd digests: {found.shape}", path=self._name)
        return tuple(bytes(row).hex() for row in found)

    @property
    def actions(self) -> Any:  # Any: by the action space
        """The actions: a tree like one action, with arrays [steps, ...] as its leaves.

        A list of actions where their form changes from step to step.
        """
        return self._stacked("action")

    @property
    def observations(self) -> Any:  # Any: by the observation space
        """The observations, [steps + 1, ...], likewise; None where they were not kept."""
        return self._stacked("observation")

    @property
    def infos(self) -> dict[str, Any]:  # Any: whatever an environment tells
        """The kept entries of the infos, [steps, ...] each, by key."""
        return {
            name.removeprefix("info/"): self._stacked(name)
            for name in self._columns
            if name.startswith("info/")
        }

    def action(self, step: int) -> Any:  # Any: by the action space
        """Return the action of one step, as the environment got it; arrays are NumPy's.

        Raises:
            IndexError: there is no such step.
        """
        return self._at("action", step)

    def observation(self, step: int) -> Any:  # Any: by the observation space
        """Return what was observed before one step, or at last; None where it was not kept.

        Raises:
            IndexError: there is no such step.
        """
        return self._at("observation", step)

    def close(self) -> None:
        """Let go of the file; what was read stays."""
        self._npz.close()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Trajectory {self._name!r}: {self.steps} steps>"

    def _series(self, name: str, dtype: str) -> NDArray[Any]:  # Any: as the callers say
        found = self._npz.array(name)
        if found.dtype != np.dtype(dtype) or found.shape != (self.steps,):
            raise BundleError(f"{self._name!r} has odd {name!r}: {found.shape}", path=self._name)
        return found

    def _stacked(self, name: str) -> object:
        layout = self._columns.get(name)
        return None if layout is None else self._read(lambda: self._tree(layout))

    def _at(self, name: str, step: int) -> object:
        layout = self._columns.get(name)
        count = self.steps + 1 if name == "observation" else self.steps
        if not 0 <= step < count:
            raise IndexError(f"{self._name!r} has no step {step}: there are {self.steps}")
        return None if layout is None else self._read(lambda: self._value(layout, step))

    def _read(self, read: Any) -> object:  # Any: a function that walks a layout from a file
        try:
            return cast("object", read())
        except BundleError:
            raise
        except (LookupError, TypeError, ValueError, RecursionError) as error:
            raise BundleError(f"{self._name!r} is damaged: {error}", path=self._name) from error

    def _tree(self, layout: Json) -> object:
        match layout["kind"]:
            case "dict":
                return {key: self._tree(item) for key, item in layout["items"]}
            case "tuple" | "list":
                return tuple(self._tree(item) for item in layout["items"])
            case "tagged":
                count = len(self._npz.array(layout["ends"]))
                return [self._value(layout, step) for step in range(count)]
            case _:
                return self._npz.array(layout["member"])

    def _value(self, layout: Json, step: int) -> object:
        match layout["kind"]:
            case "dict":
                return {key: self._value(item, step) for key, item in layout["items"]}
            case "tuple":
                return tuple(self._value(item, step) for item in layout["items"])
            case "list":
                return [self._value(item, step) for item in layout["items"]]
            case "number":
                return cast("object", self._npz.array(layout["member"])[step].item())
            case "scalar":
                return cast("object", self._npz.array(layout["member"])[step])
            case "array":
                return np.array(self._npz.array(layout["member"])[step])
            case "tagged":
                ends = self._npz.array(layout["ends"])
                start = int(ends[step - 1]) if step else 0
                text = self._npz.array(layout["member"])[start : int(ends[step])]
                return from_tagged(json.loads(text.tobytes()))
            case kind:
                raise BundleError(f"{self._name!r} has values of kind {kind!r}", path=self._name)
