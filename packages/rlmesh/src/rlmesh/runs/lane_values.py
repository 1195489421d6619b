"""What belongs to which lane: parts of batched observations, actions and infos."""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import numpy as np
from rlcore import InvalidActionError, InvalidValueError

from rlmesh.backends.frameworks import FrameworkName, backend_of
from rlmesh.codec import NUMPY, compile_batch_codec
from rlmesh.protocol.lane_infos import FINAL_INFO, FINAL_OBS, lane_of
from rlmesh.specs import EnvContract

# Any, in this room: observations, actions, and what environments say.

_FILLER_SEED: Final = 0


class LaneValues:
    """Takes batches apart and puts them together, for an environment of many lanes.

    Args:
        contract: the environment's.
        framework: whose values its observations are.
    """

    def __init__(self, contract: EnvContract, framework: FrameworkName) -> None:
        self.count = contract.num_envs
        backend = backend_of(framework, None)
        self._observations = compile_batch_codec(contract.observation_space, backend=backend)
        self._actions = compile_batch_codec(contract.action_space, backend=NUMPY, strict_nan=True)
        generator = np.random.default_rng(_FILLER_SEED)
        filler: object = contract.action_space.draw(generator, NUMPY)
        self._fillers: list[Any] = [filler] * self.count

    def rows(self, observations: Any) -> list[Any]:
        """Return each lane's observation."""
        return self._observations.split(observations, self.count)

    def some(self, observations: Any, lanes: Sequence[int]) -> Any:
        """Return a batch of some lanes' observations."""
        rows = self.rows(observations)
        return self._observations.join([rows[lane] for lane in lanes])

    def actions(self, actions: Any, count: int) -> list[Any]:
        """Return the single actions of a batch.

        Raises:
            InvalidActionError: it is no batch of so many actions of the space.
        """
        codec = self._actions
        try:
            return codec.split(codec.decode(codec.encode(actions, count), count), count)
        except InvalidActionError:
            raise
        except InvalidValueError as error:
            raise InvalidActionError(error.message, path=error.path, hint=error.hint) from error

    def filled(self, actions: Any, lanes: Sequence[int]) -> list[Any]:
        """Return an action for every lane: those that are given, and some for all other lanes."""
        whole = list(self._fillers)
        for lane, action in zip(lanes, self.actions(actions, len(lanes)), strict=True):
            whole[lane] = action
        return whole

    def info(self, info: Mapping[str, Any], lane: int) -> tuple[dict[str, Any], Any]:
        """Return what a step said of a lane, and its last observation where it was reset already.

        An environment that resets a lane within the step says of the episode that ended under the
        names `final_info` and `final_obs`.
        """
        own = lane_of(info, lane, self.count)
        if FINAL_OBS not in own:
            return own, None
        last = own.pop(FINAL_OBS)
        told: object = own.pop(FINAL_INFO, {})
        return dict(cast("Mapping[str, Any]", told)) if isinstance(told, Mapping) else {}, last


def listed(values: Any) -> list[Any]:
    """Return the elements of an array of any library as numbers of Python."""
    return cast("list[Any]", values.tolist()) if hasattr(values, "tolist") else list(values)
