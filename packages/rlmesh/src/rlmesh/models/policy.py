"""What a run drives: a model bound to one run on one kind of environment."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Protocol, cast

from rlmesh.backends.content import Content
from rlmesh.backends.frameworks import FrameworkName
from rlmesh.models.context import EpisodeContext
from rlmesh.models.horizon import (
    checked_horizon,
    checked_lead,
    refuse_lead,
    tell_of_instruction,
    usable_horizon,
)
from rlmesh.models.model import Model, ModelTypeError, is_model, is_model_class
from rlmesh.models.sentinels import Sentinel

if TYPE_CHECKING:
    from rlmesh.protocol.model_requests import Timing
    from rlmesh.specs import EnvContract


class PolicyEpisode(EpisodeContext):
    """One episode as a policy knows it: what a model may be told, and actions not used yet.

    Attributes:
        predicted_now: False where the last action is from a chunk that was predicted before.
        steps: how many actions were asked for, where that is not `predict_index`.
        queue: actions of the current chunk that are left.
        coming: the next chunk, where it is predicted ahead, and which of several it is.
        timing: what a server told of how long the last prediction took it; None in this process.
    """

    __slots__ = ("coming", "predicted_now", "queue", "steps", "timing")

    def __init__(self, episode_id: str, seed: int | None) -> None:
        super().__init__(episode_id, seed)
        self.predicted_now = True
        self.steps = 0
        self.queue: deque[Any] = deque()  # Any: actions
        self.timing: Timing | None = None
        self.coming: tuple[Future[list[list[Any]]], int] | None = None


class Policy(Protocol):
    """A model bound to one run on one kind of environment.

    Everything of a run is kept here and in the episodes, and nothing on the model, so that runs of
    one model may overlap. A policy is used from one thread at a time.
    """

    @property
    def name(self) -> str:
        """What results call the model."""
        ...

    @property
    def digest(self) -> str | None:
        """The content digest of what was loaded."""
        ...

    @property
    def content(self) -> Content | None:
        """What the model is made of now, where that can be known."""
        ...

    @property
    def framework(self) -> FrameworkName:
        """Whose values observations should be; others are converted."""
        ...

    def bind(
        self, contract: EnvContract | None, *, num_envs: int, action_space: object = None
    ) -> None:
        """Learn what the environment is, before the first episode and whenever it is replaced.

        Args:
            contract: the environment's; None where its spaces cannot be described.
            num_envs: how many lanes are stepped together.
            action_space: the environment's own, for where there is no contract.

        Raises:
            ConfigurationError: the model cannot be used with it.
        """
        ...

    def begin(self, episode_id: str, seed: int | None) -> PolicyEpisode:
        """Open an episode: one per lane."""
        ...

    def predict(self, observation: object, episode: PolicyEpisode) -> object:
        """Return the action for one observation.

        Raises:
            PredictionError: the model's answer is none.
        """
        ...

    def predict_batch(self, observation: object, episodes: Sequence[PolicyEpisode]) -> object:
        """Return the batched action for a batched observation, one row per open episode.

        Raises:
            PredictionError: the model's answer is none.
        """
        ...

    def end(self, episode: PolicyEpisode) -> None:
        """Close an episode and tell the model, once."""
        ...

    def close(self) -> None:
        """Release what the policy itself opened."""
        ...


def policy_for(
    model: object,
    *,
    execution_horizon: int = 1,
    prefetch_lead: int = 0,
    instruction: str | None = None,
) -> Policy:
    """Return the policy of something that can predict.

    Args:
        model: a Model; a subclass of one, which the policy makes and closes; `RANDOM_SAMPLE`; or
            a `RemoteModel`.
        execution_horizon: how many actions of each predicted chunk are used, from 1 to 1024. More
            than 1 needs a model that predicts chunks; for another, a UserWarning says so.
        prefetch_lead: predict the next chunk beside the environment, as soon as at most so many
            actions of this one are left. Its observation is then so many steps older, and one
            more, than if it were predicted when it is needed; 0 does that.
        instruction: the task in words, for models whose spec asks for one.

    Raises:
        ModelTypeError: it is none of these.
        ConfigurationError: an option is out of range, or the model does not take it.
    """
    from rlmesh.models.random_policy import RandomPolicy

    horizon = checked_horizon(execution_horizon)
    lead = checked_lead(prefetch_lead)
    if model is Sentinel.RANDOM_SAMPLE:
        refuse_lead(lead, RandomPolicy.name)
        tell_of_instruction(instruction, RandomPolicy.name)
        usable_horizon(horizon, model=RandomPolicy.name, chunks=False, native_chunk=None)
        return RandomPolicy()
    if is_model_class(model):
        made = model()
        try:
            return _policy_of(made, horizon, lead, instruction, owns_model=True)
        except BaseException:
            made.close()
            raise
    if is_model(model):
        return _policy_of(model, horizon, lead, instruction, owns_model=False)
    make = getattr(model, "policy", None)
    if not isinstance(model, type) and callable(make):
        options = {"execution_horizon": horizon, "prefetch_lead": lead, "instruction": instruction}
        return cast("Policy", make(**options))
    raise ModelTypeError(
        f"{model!r} is not a Model",
        hint="wrap it in rlmesh.numpy.Model(...) for numpy arrays, or in rlmesh.Model(...)",
    )


def _policy_of(
    model: Model, horizon: int, lead: int, instruction: str | None, *, owns_model: bool
) -> Policy:
    from rlmesh.models.adapting import AdaptedPolicy, is_adapter_spec
    from rlmesh.models.chunk_policy import chunk_policy

    spec = model.spec
    if not is_adapter_spec(spec):
        tell_of_instruction(instruction, model.name)
        return chunk_policy(model, horizon, lead, owns_model=owns_model)
    return AdaptedPolicy(
        chunk_policy(model, horizon, lead, owns_model=owns_model),
        spec,
        instruction=instruction,
        trust_entrypoints=model.trust_entrypoints,
    )
