"""Register the environment, and train on it until it is good."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from rlcore import Error

from rleaas.quickstart.curve import CurvePoint
from rleaas.quickstart.plan import Plan
from rleaas.quickstart.shown import Bar, Shown

if TYPE_CHECKING:
    from rleaas import Blocking, Client, EnvironmentResource, TrainingJobResource

READY_SECONDS = 60.0
TRAINING_SECONDS = 900.0
POLL_SECONDS = 0.5


def register(client: Client, plan: Plan) -> EnvironmentResource[Blocking]:
    """Return the registered environment, ready; one of an earlier quickstart is used again.

    Raises:
        EnvironmentFailed: it did not come up.
    """
    environment = client.Environment.create(
        plan.environment,
        description="Balance a pole on a cart.",
        source=plan.source,
        tags=["quickstart"],
    )
    return environment.wait_until_ready(timeout=READY_SECONDS, progress=False)


def train(client: Client, plan: Plan, shown: Shown) -> TrainingJobResource[Blocking]:
    """Run the training job to its end and return it.

    Raises:
        TrainingJobFailed: it failed.
        TrainingJobCancelled: somebody else cancelled it.
        KeyboardInterrupt: the user stopped; the job is cancelled first.
    """
    job = client.TrainingJob.run(
        environment_name=plan.environment,
        algorithm="PPO",
        name="quickstart",
        config={
            "episodes": plan.episodes,
            "max_steps": plan.max_steps,
            "target_reward": plan.good,
            "average_over": plan.average_over,
            "learning_rate": plan.learning_rate,
            "seed": plan.training_seed,
            "checkpoint_interval": max(1, plan.episodes // 10),
        },
    )
    with cancelled_on_interrupt(job), shown.bar("training: mean return", round(plan.good)) as bar:
        return job.wait_until_complete(
            timeout=TRAINING_SECONDS,
            poll_interval=POLL_SECONDS,
            on_progress=lambda metrics: _show(bar, metrics),
            progress=False,
        )


@contextmanager
def cancelled_on_interrupt(job: TrainingJobResource[Blocking]) -> Generator[None]:
    """Cancel the job when the block is left by Ctrl-C; a running server must not go on for it."""
    try:
        yield
    except KeyboardInterrupt:
        # The interrupt is what the user has to see, also when the server is gone already.
        with suppress(Error):
            job.cancel()
        raise


def learning_curve(job: TrainingJobResource[Blocking]) -> list[CurvePoint]:
    """Return how the mean return rose, one point per report of the job."""
    return [
        CurvePoint(point.timestep, point.avg_reward)
        for point in job.list_metrics()
        if point.timestep is not None and point.avg_reward is not None
    ]


def _show(bar: Bar, metrics: dict[str, object]) -> None:
    mean = metrics["avg_reward"]
    if not isinstance(mean, int | float):
        bar.show(0, "the worker is starting")
        return
    bar.show(max(0, round(mean)), f"after {metrics['current_episode']} episodes")
