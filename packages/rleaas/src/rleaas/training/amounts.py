"""Whether the sizes that a request names fit each other: batches, rollouts, buffers, the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from rlcore import ConfigurationError

from rleaas.training.sb3.defaults import DEFAULTS, Defaults

if TYPE_CHECKING:
    from rleaas.training.config import TrainingConfig


def check_amounts(asked: TrainingConfig) -> None:
    """Refuse sizes of which no training could come.

    Raises:
        ConfigurationError: a batch is larger than what it is drawn from, or learning would begin
            after the last step.
    """
    if asked.hyperparameters.get("ent_coef") == "auto" and asked.algorithm != "SAC":
        raise ConfigurationError(
            f"ent_coef 'auto' is not for {asked.algorithm}, which has a fixed one",
            code="invalid_training_config",
            hint="Give a number, or use SAC",
        )
    defaults = DEFAULTS.get(asked.algorithm)
    if defaults is None:
        return
    if defaults.rollout is not None:
        _check_rollout(asked, defaults, defaults.rollout)
    if defaults.replays:
        _check_replay(asked, defaults)


def _check_rollout(asked: TrainingConfig, defaults: Defaults, whole: int) -> None:
    batch = cast("int | None", asked.hyperparameters.get("batch_size"))
    if batch is None:
        return
    # There are never more sessions than episodes, and no fewer where they were asked for.
    sessions = min(asked.num_envs or defaults.sessions, asked.num_episodes)
    steps = cast("int | None", asked.hyperparameters.get("n_steps"))
    each = steps or max(2, whole // sessions)
    # Without a given n_steps fewer sessions step more each: together as much.
    rollout = each * sessions if steps else max(each * sessions, whole)
    if batch > rollout:
        raise ConfigurationError(
            f"batch_size {batch} is larger than a rollout of n_steps x num_envs = "
            f"{each} x {sessions} = {rollout}",
            code="invalid_training_config",
            hint="Lower batch_size or raise n_steps",
        )


def _check_replay(asked: TrainingConfig, defaults: Defaults) -> None:
    told = {**defaults.settings, **asked.hyperparameters}
    batch, buffer = cast("int", told["batch_size"]), cast("int", told["buffer_size"])
    if batch > buffer:
        raise ConfigurationError(
            f"batch_size {batch} is larger than buffer_size {buffer}, which it is drawn from",
            code="invalid_training_config",
            hint="Lower batch_size or raise buffer_size",
        )
    starts = cast("int | None", asked.hyperparameters.get("learning_starts"))
    most = asked.num_episodes * asked.max_steps
    if asked.total_timesteps is not None:
        most = min(most, asked.total_timesteps)
    if starts is not None and starts >= most:
        raise ConfigurationError(
            f"learning_starts {starts} is not below the {most} steps that the job takes at most",
            code="invalid_training_config",
            hint="Lower learning_starts, or train for more episodes",
        )
