import multiprocessing
from pathlib import Path
from typing import Any, cast

import pytest
from rlcore import EnvironmentIdentity, TrainingJobFailed
from rleaas.training.config import validate_training_config
from rleaas.training.ledger import EpisodeLedger
from rleaas.training.limits import Limits
from rleaas.training.trainer import StopReason, TrainingTask


class Told:
    stop = False

    def stop_requested(self) -> bool:
        return self.stop


def limits(seconds: float = 0.0, **config: object) -> tuple[Limits, EpisodeLedger, Told]:
    times = iter([0.0])
    ledger = EpisodeLedger(9, clock=lambda: next(times, seconds))
    task = TrainingTask(
        job_id="job_1",
        config=validate_training_config("PPO", 9, 9, config),
        seed=1,
        environment=EnvironmentIdentity("E", 1, "sha256:" + "0" * 64),
        make_env=lambda session: cast("Any", None),
        directory=Path(),
    )
    told = Told()
    return Limits(task, ledger, cast("Any", told)), ledger, told


def test_nothing_ends_a_training_that_nobody_limits() -> None:
    assert limits(seconds=1e9)[0].reached() is None


def test_an_order_to_stop_comes_before_the_budget_of_steps() -> None:
    held, ledger, told = limits(total_timesteps=5)
    ledger.timestep = 4
    assert held.reached() is None
    ledger.timestep = 5
    assert held.reached() is StopReason.TIMESTEP_BUDGET
    told.stop = True
    assert held.reached() is StopReason.CANCELLED


@pytest.mark.parametrize(
    ("quota", "seconds", "steps"),
    [({"max_wall_seconds": 2}, 2.0, 0), ({"max_timesteps": 5}, 0.0, 5)],
)
def test_a_quota_that_is_used_up_fails_the_job(
    quota: dict[str, object], seconds: float, steps: int
) -> None:
    held, ledger, _ = limits(seconds=seconds, compute_quota=quota)
    ledger.timestep = steps

    with pytest.raises(TrainingJobFailed, match="is used up") as caught:
        held.reached()
    assert caught.value.code == "quota_exceeded"


def test_more_processes_than_the_quota_has_fail_the_job() -> None:
    held, _, _ = limits(compute_quota={"max_processes": 1})
    assert held.reached() is None
    waits = multiprocessing.get_context("spawn").Event()
    other = multiprocessing.get_context("spawn").Process(target=waits.wait)
    other.start()
    try:
        with pytest.raises(TrainingJobFailed, match="2 processes"):
            held.reached()
    finally:
        waits.set()
        other.join()
