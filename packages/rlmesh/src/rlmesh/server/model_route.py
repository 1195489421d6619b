"""One client's way to the model: the kind of environment, its codecs, its open episodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rlmesh.codec import NUMPY, compile_batch_codec, compile_codec
from rlmesh.protocol.model_faults import ModelFaultCode, ModelRefusal
from rlmesh.protocol.model_requests import Ask, Leaves, Row
from rlmesh.server.served_model import ServedModel, ServedRoute
from rlmesh.specs import EnvContract


class Route:
    """The model for one environment of one client.

    Attributes:
        bound: the model, bound to that kind of environment.
        contract: what the environment is.
        fusion: equal where two routes' rows may go into one call; None: they never may.
    """

    def __init__(
        self,
        model: ServedModel,
        bound: ServedRoute,
        contract: EnvContract,
        *,
        spaces: bytes,
        horizon: int,
        instruction: str | None,
    ) -> None:
        self.bound = bound
        self.contract = contract
        # The model makes its own framework's values of these, on its device.
        seen, done = contract.observation_space, contract.action_space
        self.observation = compile_codec(seen, backend=NUMPY)
        self.observations = compile_batch_codec(seen, backend=NUMPY)
        self.action = compile_codec(done, backend=NUMPY, strict_nan=True)
        self.actions = compile_batch_codec(done, backend=NUMPY, strict_nan=True)
        self.takes_batches = model.takes_batches
        self._episodes: dict[str, object] = {}
        fixed = self.observations.fixed_sizes is not None and self.actions.fixed_sizes is not None
        can_fuse = model.takes_batches and model.allows_fusion and fixed
        self.fusion = (spaces, horizon, instruction, contract.id) if can_fuse else None

    @property
    def held(self) -> int:
        """How many episodes are open."""
        return len(self._episodes)

    def check(self, ask: Ask) -> None:
        """Refuse what can be seen to be wrong before the model is asked.

        Raises:
            ModelRefusal: no episodes are named, or one twice, or the bytes are not so many rows.
        """
        ids = [row.episode_id for row in ask.rows]
        if not ids:
            raise _wrong("the request names no episode")
        if not all(name.strip() for name in ids):
            raise _wrong("an episode_id is blank")
        if len(set(ids)) != len(ids):
            raise _wrong("an episode_id is there twice")
        sizes = self.observations.fixed_sizes
        if ask.leaves is None or sizes is None:
            return
        found, wanted = [len(leaf) for leaf in ask.leaves], [size * len(ids) for size in sizes]
        if found != wanted:
            raise _wrong(
                f"the observation has leaves of {found} bytes; {len(ids)} row(s) of the space of "
                f"{self.contract.id!r} have {wanted}"
            )

    def decoded(self, leaves: Leaves | None, rows: int) -> Any:  # Any: of the space
        """Return the observation: of one row as it is, of several batched; None: there is none."""
        if leaves is None:
            return None
        if rows == 1:
            return self.observation.decode(leaves)
        return self.observations.decode(leaves, rows)

    def opened(self, rows: Sequence[Row]) -> list[object]:
        """Return what is kept for the rows' episodes; the first prediction of one opens it."""
        found: list[object] = []
        for row in rows:
            episode = self._episodes.get(row.episode_id)
            if episode is None:
                episode = self.bound.begin(row.episode_id, row.seed)
                self._episodes[row.episode_id] = episode
            found.append(episode)
        return found

    def end(self, episode_ids: Sequence[str]) -> None:
        """Tell the model that episodes are over, known ones or not."""
        for episode_id in episode_ids:
            self.bound.end(episode_id, self._episodes.pop(episode_id, None))

    def end_all(self) -> None:
        """Tell the model that all open episodes are over."""
        self.end(tuple(self._episodes))


def _wrong(message: str) -> ModelRefusal:
    return ModelRefusal(ModelFaultCode.INTERNAL, message)
