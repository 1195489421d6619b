"""Training, checkpoints, evaluations and rollouts, in three colours of one conversation."""

from __future__ import annotations

from pathlib import Path

import pytest
from rlcore import (
    CheckpointNotFound,
    ConfigurationError,
    ConflictError,
    EvaluationNotFound,
    NotFoundError,
    TrainingJobNotFound,
)
from rleaas import AsyncClient
from rleaas.resources.checkpoints import CheckpointResource, CheckpointsClient
from rleaas.resources.evaluation_handle import EvaluationJobResource
from rleaas.resources.evaluations import EvaluationClient
from rleaas.resources.training import TrainingClient
from rleaas.resources.training_handle import TrainingJobResource

from ..server.archives import policy_file  # noqa: TID252 - what the stand-in workers send
from .colours import Colour


def test_a_training_is_started_watched_judged_and_gone_on_from(
    colour: Colour, name: str, tmp_path: Path
) -> None:
    async def conversation(client: AsyncClient) -> None:
        env = await client.Environment.create(name, source="gym://CartPole-v1")
        await env.wait_until_ready()
        config = client.TrainingJob.configure_training(max_steps=50)
        assert (await client.TrainingJob.queue()).max_jobs
        seen: list[object] = []
        would = await client.TrainingJob.check(env, config=config, name="night", seed=3)
        assert (would.run_name, would.seed, would.max_steps) == ("night", 3, 50)
        assert [
            one async for one in client.TrainingJob.iterate() if one.environment_name == name
        ] == []
        job = await client.training_jobs.run(env, config=config, name="night", seed=3)
        hook = await job.set_webhook("https://93.184.216.34/hook", ["tier_advance"])
        assert [one.id for one in await job.list_webhooks()] == [hook.id]
        await job.wait_until_complete(timeout=30, on_progress=seen.append)
        assert (job.status, job.run_name, bool(seen)) == ("completed", "night", True)
        assert (await job.refresh())["status"] == "completed"
        assert (await client.TrainingJob.get(job)).id == job.id
        assert job.id in [one.id for one in await client.TrainingJob.list(status="completed")]
        assert job.id in [one.id async for one in client.TrainingJob.iterate("completed")]
        assert (await job.get_metrics())["status"] == "completed"
        assert [one.avg_reward for one in await job.list_metrics()] == [1.0]
        assert "one" in await job.get_logs()
        assert "two" in [line async for line in job.stream_logs()]
        assert [one.kind async for one in job.events()][-1] == "completed"
        assert await job.list_rollouts() == []
        assert (await job.watch()).status == "completed"
        await job.plot(tmp_path / f"{colour.name}.png")
        assert (tmp_path / f"{colour.name}.png").read_bytes().startswith(b"\x89PNG")
        assert (await job.submit_human_eval("yes")).total_evaluations == 1

        best = await job.get_best_checkpoint()
        assert [one.id for one in await job.list_checkpoints()] == [best.id]
        assert (await client.Checkpoint.get(best)).sha256 == best.sha256
        saved = await best.download(tmp_path / f"{colour.name}.zip")
        assert saved.read_bytes() == policy_file()
        assert (await client.checkpoints.get(best.id)).episode == 1
        for cancel in (job.cancel, lambda: client.TrainingJob.cancel(job)):
            with pytest.raises(ConflictError):
                await cancel()
        with pytest.raises(TrainingJobNotFound):
            await client.TrainingJob.get("none")
        with pytest.raises(CheckpointNotFound):
            await client.Checkpoint.get("none")

    colour.play(conversation)
    colour.assert_all_called(TrainingClient, TrainingJobResource, CheckpointsClient)
    # What a scripted worker saves is no policy; `tests/mesh` loads real ones.
    colour.assert_all_called(CheckpointResource, but={"load"})


def test_an_evaluation_is_run_reported_and_compared(
    colour: Colour, name: str, tmp_path: Path
) -> None:
    async def conversation(client: AsyncClient) -> None:
        env = await client.Environment.create(name, source="gym://CartPole-v1")
        await env.wait_until_ready()
        job = await client.TrainingJob.run(env)
        best = (await (await job.wait_until_complete(timeout=30)).list_checkpoints())[0]
        first = await client.evaluations.run(best, episodes=2)
        second = await client.Evaluation.run(best.id, seeds=[0, 1], environment_name=env)
        await first.wait_until_complete(timeout=30)
        report = await second.wait_until_complete(timeout=30)
        assert [one.reward for one in report.episodes] == [0.0, 2.0]
        assert (await first.get_report()).id == first.id
        assert (await client.Evaluation.get_report(first, env)).id == first.id
        assert (await first.refresh()).status == "completed"
        assert (await client.Evaluation.get(first)).id == first.id
        assert first.id in [one.id for one in await client.Evaluation.list(limit=50)]
        assert first.id in [one.id async for one in client.Evaluation.iterate()]
        rollouts = await client.Evaluation.list_rollouts(env)
        assert len(rollouts) == 4
        assert (await client.Evaluation.get_rollout(rollouts[0], env)).id == rollouts[0].id
        stored = client.Evaluation.rollout_steps(rollouts[0], env)
        assert [one async for one in stored] == []  # a scripted worker stores none
        told = await client.Evaluation.get_rollout_comparison(env, first, second)
        again = await client.Evaluation.compare(
            environment_name=env, baseline_id=first, trained_id=second
        )
        assert (told.delta, again.delta) == (0.0, 0.0)
        written = await client.Evaluation.export_audit_report(first)
        place = await client.Evaluation.download_report(written, tmp_path / f"{colour.name}.json")
        assert place.read_bytes()
        with pytest.raises(ConfigurationError, match="two checkpoints"):
            await client.Evaluation.compare([best])
        repeated = await client.Evaluation.reproduce(report, 30)
        assert (repeated.verdict, repeated.original_id) == ("same", second.id)
        assert (await client.Evaluation.get_reproduction(second, first)).verdict == "same"
        with pytest.raises(ConflictError) as caught:  # its worker stored no steps
            await client.Evaluation.rescore(first, ["anybody"])
        assert caught.value.code == "no_rollouts"
        played = [one.episode_number async for one in client.Evaluation.rollouts(first)]
        assert played == [0, 1]
        said = await first.submit_human_eval(1, passed=True, score=0.5, rater="ana")
        assert [said] == await first.list_human_evals()
        assert (await first.get_agreement()).raters == ["ana"]
        ends = [one.kind async for one in first.events(["completed"], timeout=10)]
        assert ends == ["completed"]
        for cancel in (first.cancel, lambda: client.Evaluation.cancel(first)):
            with pytest.raises(ConflictError):
                await cancel()
        with pytest.raises(EvaluationNotFound):
            await client.Evaluation.get("none")
        with pytest.raises(NotFoundError):
            await client.Evaluation.get_rollout("none", env)

    colour.play(conversation)
    colour.assert_all_called(EvaluationClient, EvaluationJobResource)
