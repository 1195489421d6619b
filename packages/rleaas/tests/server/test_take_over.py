"""Two real servers on one PostgreSQL: one is killed, and the other goes on with its jobs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from sqlalchemy import create_engine, text

from .test_survival import Platform, gone, whole

pytestmark = [pytest.mark.slow, pytest.mark.timeout(150)]

TWO_JOBS = ("--max-jobs", "2")


class Fleet(Platform):
    """Several servers with one database and one data directory; it is asked through the last."""

    def __init__(self, data: Path, url: str) -> None:
        super().__init__(data, "--database-url", url, *TWO_JOBS, database=url)

    def saved(self, job_id: str) -> None:
        """Wait for the job's first checkpoint."""
        self.until(lambda: self.job(job_id)["checkpoints"])

    def leases_run_out(self) -> None:
        """Let the half minute be over that a server of which nothing is heard counts as alive."""
        engine = create_engine(self.database)
        with engine.begin() as connection:
            connection.execute(text("UPDATE leases SET expires_at = now() - interval '1 second'"))
        engine.dispose()


@pytest.fixture
def fleet(tmp_path: Path, migrated_postgresql: str) -> Iterator[Fleet]:
    made = Fleet(tmp_path / "data", migrated_postgresql)
    yield made
    made.end()


def test_the_jobs_of_a_killed_server_go_on_at_another_without_a_gap_or_a_double(
    fleet: Fleet,
) -> None:
    first = fleet.server
    workers: dict[str, psutil.Process] = {}
    orphan, killed = fleet.train(num_episodes=100), fleet.train(num_episodes=100)
    for job in (orphan, killed):
        fleet.saved(job)
        workers[job] = fleet.worker(job)
        # However quick the machine is, it has not come to its end when its server is killed.
        workers[job].suspend()
    fleet.start()

    first.popen.kill()
    first.popen.wait()
    workers[orphan].resume()
    workers[killed].kill()
    fleet.leases_run_out()

    for job, attempts in ((orphan, 1), (killed, 2)):
        record = fleet.finished(job)
        assert (record["status"], record["attempt"]) == ("completed", attempts), record["error"]
        curve = fleet.curve(job)
        assert whole(curve), [(point["episode"], point["timestep"]) for point in curve]
    assert f"was adopted by the server {fleet.server.url}" in fleet.log()
    fleet.until(lambda: all(gone(one) for one in workers.values()))
