"""One model bound to one open environment: what a run and a session both drive."""

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

from rlcore import EnvironmentIdentity

from rlmesh.models.context import EpisodeContext
from rlmesh.models.conversion import Backend, converter
from rlmesh.models.model import Model, ModelTypeError, is_model, is_model_class
from rlmesh.models.random_policy import RandomEpisode, RandomPolicy
from rlmesh.models.seeds import ENV_RESET_OPTIONS_KEY, TRIAL_INDEX_OPTION
from rlmesh.models.sentinels import Sentinel
from rlmesh.models.signature import Predict
from rlmesh.runs.frames import FrameSource, frame_sources_of
from rlmesh.runs.local_env import Step
from rlmesh.runs.targets import Target, open_target

if TYPE_CHECKING:
    from rlmesh.specs import EnvContract


class Driver:
    """Opens the environment, speaks the model's kind of values, and counts predictions.

    Nothing of a run is kept on the model, so one model may be in several runs at once.
    """

    num_envs = 1

    def __init__(self, model: object, env: object) -> None:
        policy, self._owns_model = _model(model)
        self.model = policy
        backend: Backend = "numpy" if policy is None else policy.backend
        try:
            self._convert = converter(backend, None if policy is None else policy.device)
            self.target: Target = open_target(env, backend=backend)
        except BaseException:
            self._close_model()
            raise
        self._id = uuid.uuid4().hex
        self._episodes = 0
        self._context: EpisodeContext | None = None
        self._takes_trial = _takes_trial(self.target)
        try:
            self._predict = self._bind()
        except BaseException:
            self.close(close_env=False)
            raise

    @property
    def contract(self) -> "EnvContract | None":
        """The environment's contract, where its spaces can be described."""
        return self.target.env.env_contract

    @property
    def identity(self) -> EnvironmentIdentity | None:
        """Which environment this is, where it has a contract."""
        return self.target.env.identity

    @property
    def model_name(self) -> str:
        """What results call the model."""
        return RandomPolicy.name if self.model is None else self.model.name

    @property
    def takes_trial(self) -> bool:
        """Whether the environment declares the reset option `trial_index`."""
        return self._takes_trial

    def frame_sources(self) -> tuple[FrameSource, ...]:
        """What can be looked at while the environment is stepped."""
        return frame_sources_of(self.target.env, self.contract, num_envs=1)

    def reset(self, *, seed: int | None, trial: int | None) -> tuple[Any, dict[str, Any]]:
        """End the open episode and start the next one."""
        self.end_episode()
        self._episodes += 1
        self._context = EpisodeContext(f"{self._id}-{self._episodes}", seed)
        if trial is not None and self._takes_trial:
            return self.target.env.reset(seed=seed, options={TRIAL_INDEX_OPTION: trial})
        return self.target.env.reset(seed=seed)

    def predict(self, observation: object) -> object:
        """Return the model's action; what the model raises says what it was given."""
        if self._context is None:
            self._context = EpisodeContext("", None)
        try:
            return self._predict(self._convert(observation), self._context)
        except Exception as error:
            error.add_note(f"{self.model_name} was predicting for {_shape(observation)}")
            raise

    def step(self, action: object) -> Step:
        """Step the environment."""
        return self.target.env.step(action)

    def end_episode(self) -> None:
        """Tell the model that the open episode ended, once."""
        context, self._context = self._context, None
        if context is not None and self.model is not None:
            self.model.end_episode(context.episode_id)

    def reopen(self, open_again: Callable[[], Target]) -> None:
        """Replace an environment that was lost by a fresh one."""
        lost, self.target = self.target, open_again()
        self._predict = self._bind()
        lost.close(close_env=False)

    def close(self, *, close_env: bool) -> None:
        """End the episode and release what this driver opened; every part of it is tried."""
        try:
            self.end_episode()
        finally:
            try:
                self.target.close(close_env=close_env)
            finally:
                self._close_model()

    def _bind(self) -> Predict:
        if self.model is None:
            # A handle's own space may say it in gymnasium's words, which are fewer.
            known = self.contract
            policy = RandomPolicy()
            policy.bind(known, num_envs=1, action_space=self.target.env.action_space)
            return _sampling(policy)
        return self.model.prediction()

    def _close_model(self) -> None:
        if self._owns_model and self.model is not None:
            self.model.close()


def _model(model: object) -> tuple[Model | None, bool]:
    """The model and whether it was made here; None stands for the random baseline."""
    if model is Sentinel.RANDOM_SAMPLE:
        return None, False
    if is_model(model):
        return model, False
    if is_model_class(model):
        return model(), True
    raise ModelTypeError(
        f"{model!r} is not a Model",
        hint="wrap it in rlmesh.numpy.Model(...) for numpy arrays, or in rlmesh.Model(...)",
    )


def _sampling(policy: RandomPolicy) -> Predict:
    opened: dict[EpisodeContext, RandomEpisode] = {}

    def predict(observation: object, context: EpisodeContext) -> object:
        if context not in opened:
            opened.clear()
            opened[context] = policy.begin(context.episode_id, context.seed)
        return policy.predict(observation, opened[context])

    return predict


def _takes_trial(target: Target) -> bool:
    declared = (target.env.metadata or {}).get(ENV_RESET_OPTIONS_KEY)
    if not isinstance(declared, list | tuple):
        return False
    return TRIAL_INDEX_OPTION in cast("list[object]", declared)


def _shape(observation: object) -> str:
    if isinstance(observation, dict):
        items = cast("dict[object, object]", observation).items()
        return "{" + ", ".join(f"{key!r}: {_shape(item)}" for key, item in items) + "}"
    dtype, shape = getattr(observation, "dtype", None), getattr(observation, "shape", None)
    if dtype is None or shape is None:
        return type(observation).__name__
    return f"{dtype}{list(shape)}"
