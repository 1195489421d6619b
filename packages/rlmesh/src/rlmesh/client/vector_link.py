"""A client's side of a conversation about many lanes: batches, seeds, ids and infos."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, Final, SupportsIndex, cast

import numpy as np
from numpy.typing import NDArray
from rlcore import (
    ConfigurationError,
    InvalidActionError,
    InvalidValueError,
    ProtocolException,
    UnsupportedError,
)

from rlmesh.client.arguments import checked_seed
from rlmesh.client.link import EnvLink
from rlmesh.client.strict_dtypes import strictly
from rlmesh.codec import Backend, compile_batch_codec, compile_codec
from rlmesh.protocol.handshake import CLIENT_CAPABILITIES, SUBSET_STEP, TENSORS, VECTORS
from rlmesh.protocol.identifiers import time_ordered_id
from rlmesh.protocol.lane_infos import FINAL_OBS, in_columns, restored, rows_of
from rlmesh.protocol.messages import Leaves
from rlmesh.specs import AutoresetMode
from rlmesh.values import Array, Tensor

RESET_MASK: Final = "reset_mask"
MASK: Final = f"_{FINAL_OBS}"
SET: Final = b"\1"
FLAGS: Final = b"\0" + SET * 255
"""What any byte of a mask means."""
_AS_THEY_ARE: Final = (np.ndarray, list, tuple, Tensor, str, bytes, Mapping, Set)

Seeds = SupportsIndex | Sequence[SupportsIndex | None] | NDArray[np.integer[Any]] | None
Options = Mapping[str, Any]  # Any: whatever the environment takes
Info = dict[str, Any]  # Any: whatever the environment says
Flags = NDArray[np.bool_]
Outcome = tuple[Any, NDArray[np.float64], Flags, Flags, Info]  # Any: the backend's batched tree


class VectorLink:
    """Drives all lanes of a served environment, with values as one backend has them.

    Attributes:
        link: the session.
        lanes: how many there are.
        episode_ids: the id of each lane's episode; empty before the first reset.
        completed: how many lanes ended an episode in the last step.
    """

    def __init__(self, link: EnvLink, backend: Backend, *, strict_dtypes: bool) -> None:
        contract = link.contract
        self.link = link
        self.lanes = contract.num_envs
        self.episode_ids: tuple[str, ...] = ()
        self.completed = 0
        actions = compile_batch_codec(contract.action_space, backend=backend, strict_nan=True)
        self._encode = (
            strictly(contract.action_space, actions.encode) if strict_dtypes else actions.encode
        )
        self._observations = compile_batch_codec(contract.observation_space, backend=backend)
        self._single = compile_codec(contract.observation_space, backend=backend)
        self._rolls = contract.autoreset_mode is not AutoresetMode.DISABLED
        self._last: Leaves = ()

    def reset(self, seed: Seeds, options: Options | None) -> tuple[Any, Info]:  # Any: as Outcome
        """Start episodes in all lanes, or in those of a mask.

        Raises:
            ConfigurationError: the seeds or the mask are not one for each lane.
            UnsupportedError: the server cannot reset some lanes only.
            Error: as `EnvLink.ask_reset`.
        """
        mask, rest = self._mask(options)
        wanted = range(self.lanes) if mask is None else mask
        seeds = self._seeds(seed, wanted)
        ids = list(self.episode_ids or [""] * self.lanes)
        for lane in wanted:
            ids[lane] = time_ordered_id()
        if mask is None or self._is_ours:
            partial = mask is not None
            reply = self.link.ask_reset(seeds, options, (), tuple(ids), partial=partial)
            leaves = reply.leaves
        else:
            named = tuple([ids[lane] for lane in mask])
            reply = self.link.ask_reset(seeds, rest, tuple(mask), named, partial=True)
            leaves = self._merged(reply.leaves, mask)
        self.episode_ids, self.completed = tuple(ids), 0
        asked = range(self.lanes) if mask is None or self._is_ours else mask
        return self._decoded(leaves), self._info(reply.info, asked)

    def step(self, actions: Any) -> Outcome:  # Any: in every form that a batch can have
        """Step all lanes.

        Raises:
            InvalidActionError: there is not an action of the space for each lane.
            Error: as `EnvLink.ask_step`.
        """
        self.link.require_running()
        if not isinstance(actions, _AS_THEY_ARE) and not hasattr(actions, "__array__"):
            actions = _listed(actions)
        self.link.last_action = actions
        lanes = self.lanes
        try:
            leaves = self._encode(actions, lanes)
        except InvalidValueError as error:
            raise InvalidActionError(error.message, path=error.path, hint=error.hint) from error
        reply = self.link.ask_step(leaves, lanes, (), self.episode_ids)
        terminated = reply.terminated.translate(FLAGS)
        truncated = reply.truncated.translate(FLAGS)
        ends = SET in terminated or SET in truncated
        self.completed = self._ended(terminated, truncated) if ends else 0
        return (
            self._decoded(reply.leaves),
            np.array(reply.rewards, np.float64),
            _flags(terminated),
            _flags(truncated),
            self._info(reply.info, range(lanes)) if reply.info else {},
        )

    @property
    def _is_ours(self) -> bool:
        return self.link.wires.dialled.welcome.offers(VECTORS)

    def _seeds(self, seed: Seeds, wanted: Sequence[int]) -> tuple[int | None, ...]:
        """Return the seeds as they are asked for: none, one for all, or one for each wanted."""
        if seed is None:
            return ()
        each = _each(seed)
        if each is None:
            first = one_seed(seed) or 0
            checked_seed(first + self.lanes - 1)  # lane i has the seed s + i
            if self._is_ours or not self._steps_lanes:
                return (first,)
            # Published servers give one seed to the first lane alone.
            return tuple([checked_seed(first + lane) or 0 for lane in wanted])
        if len(each) != self.lanes:
            raise ConfigurationError(
                f"{len(each)} seeds are given for {self.lanes} lanes",
                hint="Give one for each lane, or one number for all.",
            )
        given = [each[lane] for lane in wanted]
        if all(one is None for one in given):
            return ()
        if not self._is_ours and any(one is None for one in given):
            raise UnsupportedError(
                "seeds are given for some of the lanes that are reset, which this server, "
                "published by others, has no words for",
                hint="Give all of them a seed, or reset them apart, by reset_mask.",
            )
        checked = [checked_seed(one) for one in given]
        if self._is_ours and len(checked) < self.lanes:
            whole: list[int | None] = [None] * self.lanes
            for lane, one in zip(wanted, checked, strict=True):
                whole[lane] = one
            return tuple(whole)
        return tuple(checked)

    def _mask(self, options: Options | None) -> tuple[list[int] | None, Options | None]:
        given: object = options
        if options is None or not isinstance(given, Mapping) or RESET_MASK not in options:
            return None, options  # what is no mapping is refused with the rest
        mask: Array = np.asarray(options[RESET_MASK])
        if mask.dtype.kind != "b" or mask.shape != (self.lanes,) or not mask.any():
            raise ConfigurationError(
                f"the option {RESET_MASK!r} is {options[RESET_MASK]!r}",
                hint=f"Give {self.lanes} booleans, one for each lane, and one of them true.",
            )
        if not (self._is_ours or self._steps_lanes):
            raise UnsupportedError("the server cannot reset some of its lanes only")
        rest = {key: value for key, value in options.items() if key != RESET_MASK}
        return np.flatnonzero(mask).tolist(), rest or None

    @property
    def _steps_lanes(self) -> bool:
        return self.link.wires.dialled.welcome.offers(SUBSET_STEP)

    def _merged(self, leaves: Leaves, lanes: Sequence[int]) -> Leaves:
        """Return the last observation with that of some lanes put in."""
        codec = self._observations
        values = codec.split(codec.decode(self._last, self.lanes), self.lanes)
        fresh = codec.split(codec.decode(leaves, len(lanes)), len(lanes))
        for lane, value in zip(lanes, fresh, strict=True):
            values[lane] = value
        return [bytes(leaf) for leaf in codec.encode(values, self.lanes)]

    def _decoded(self, leaves: Leaves) -> Any:  # Any: the backend's batched tree
        lane = self.link.wires.lane
        codec = self._observations
        try:
            if lane is not None and lane.owns_memory:
                return codec.decode_owned(leaves, self.lanes)
            if not self._is_ours:
                self._last = leaves  # what a partial reset leaves as it is
            return codec.decode(leaves, self.lanes)
        except InvalidValueError as error:
            raise ProtocolException(
                f"the observations from {self.link.identity.name!r} do not fit their space: {error}"
            ) from error

    def _ended(self, terminated: bytes, truncated: bytes) -> int:
        """Return how many episodes ended; where lanes reset themselves, name the next ones."""
        over = np.flatnonzero(_flags(terminated) | _flags(truncated)).tolist()
        if self._rolls:
            ids = list(self.episode_ids)
            for lane in over:
                ids[lane] = time_ordered_id()
            self.episode_ids = tuple(ids)
        return len(over)

    def _info(self, info: Info, asked: Sequence[int]) -> Info:
        """Return an info about these lanes as gymnasium's vector environments lay it out."""
        count = self.lanes
        rows = [info] if len(asked) == 1 else rows_of(info, len(asked))
        if rows is not None:
            placed: list[Mapping[str, Any]] = [{}] * count
            for lane, row in zip(asked, rows, strict=True):
                placed[lane] = row
            return in_columns(placed)
        exact = TENSORS in CLIENT_CAPABILITIES and self.link.wires.dialled.welcome.offers(TENSORS)
        whole = restored(info, count, exact=exact)
        if FINAL_OBS in whole and MASK in whole:
            whole[FINAL_OBS] = self._final(whole[FINAL_OBS])
        return whole

    def _final(self, cells: Any) -> Any:  # Any: what an environment said under this name
        """Return last observations as their space has them."""
        each = cast("Sequence[Any]", cells)
        if not isinstance(cells, np.ndarray) or len(each) != self.lanes:
            return each
        typed = np.full(self.lanes, None, object)
        for lane, cell in enumerate(each):
            if cell is not None:
                try:
                    typed[lane] = self._single.decode(self._single.encode(cell))
                except InvalidValueError:
                    return each  # an info may hold under this name what it likes
        return typed


def _listed(actions: Any) -> Any:
    """Return the items of what can only be gone through, such as a generator, as a list."""
    given: object = actions
    return list(cast("Any", given)) if isinstance(given, Iterable) else actions


def _flags(mask: bytes) -> Flags:
    return np.frombuffer(bytearray(mask), np.bool_)


def one_seed(seed: Seeds) -> int | None:
    """Return the number that is one seed for all lanes; None where there is one for each, or none.

    Raises:
        TypeError: it is neither a number nor a sequence.
        ConfigurationError: it is an array of several dimensions.
        OverflowError: it does not fit 64 bits.
    """
    return None if _each(seed) is not None else checked_seed(cast("SupportsIndex | None", seed))


def _each(seed: Seeds) -> list[SupportsIndex | None] | None:
    """Return the seeds of a sequence of them; None for a number."""
    given: object = seed
    if isinstance(given, np.ndarray):
        array = cast("Array", given)
        if array.ndim > 1:
            raise ConfigurationError(
                f"the seeds are an array of shape {array.shape}",
                hint="Give one number for each lane: an array of one dimension.",
            )
        return array.tolist() if array.ndim else None
    if isinstance(seed, Sequence) and not isinstance(seed, str | bytes):
        return list(seed)
    return None
