"""Judge the best checkpoint: on the platform, and on this machine under the same identity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rleaas.quickstart.plan import Plan
from rleaas.quickstart.shown import Shown

if TYPE_CHECKING:
    from rlmesh import RunResult

    from rleaas import Blocking, CheckpointResource, Client
    from rleaas.models import EvaluationReport

EVALUATION_SECONDS = 300.0
POLL_SECONDS = 0.3


def evaluate(
    client: Client, plan: Plan, checkpoint: CheckpointResource[Blocking], shown: Shown
) -> EvaluationReport:
    """Return the platform's report on the checkpoint.

    Raises:
        EvaluationFailed: the evaluation could not be done.
    """
    evaluation = client.Evaluation.run(
        agent_checkpoint_id=checkpoint.id,
        environment_name=plan.environment,
        seeds=plan.seeds,
        max_episode_steps=plan.max_steps,
        success_threshold=plan.good,
        name="quickstart",
    )
    with shown.bar("platform episodes", len(plan.seeds)) as bar:
        return evaluation.wait_until_complete(
            timeout=EVALUATION_SECONDS,
            poll_interval=POLL_SECONDS,
            on_progress=lambda state: bar.show(state.episodes_done),
            progress=False,
        )


def run_locally(
    client: Client, plan: Plan, checkpoint: CheckpointResource[Blocking], shown: Shown
) -> RunResult:
    """Return what the checkpoint does on the same seeds when this process runs it.

    Raises:
        CheckpointCorrupted: the downloaded file is not the one on record.
        IdentityError: the environment is not the one that is registered.
    """
    import rlmesh

    from rleaas.mesh.scope import resolving_with

    model = checkpoint.load()
    record = checkpoint.record
    address = f"rleaas://{record.environment_name}@{record.environment_version}"
    played = 0
    with resolving_with(client), shown.bar("local episodes", len(plan.seeds)) as bar:

        def count(_: object) -> None:
            nonlocal played
            played += 1
            bar.show(played)

        return rlmesh.run(
            model,
            address,
            seeds=plan.seeds,
            max_episode_steps=plan.max_steps,
            success_threshold=plan.good,
            on_episode=count,
            progress=False,
        )
