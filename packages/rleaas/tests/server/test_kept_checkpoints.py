"""Which checkpoints of a job stay, and that nothing is lost that something refers to."""

from __future__ import annotations

from typing import Any

import pytest
from rlcore import ConfigurationError
from rleaas.server.artifacts.store import member_of
from rleaas.server.rules.checkpoint_retention import Saved, Verdict, surplus
from rleaas.server.store import agents
from rleaas.training.config import validate_training_config
from rleaas.training.kept_checkpoints import KeptCheckpoints, settle_kept, validate_kept

from .archives import digest_of
from .conftest import Running, Start


def saved(*scores: float | None) -> list[Saved]:
    return [Saved(str(number), score, True) for number, score in enumerate(scores, 1)]


def left(verdict: Verdict, of: list[Saved]) -> str:
    return "".join(one.id for one in of if one.id not in verdict.checkpoints)


@pytest.mark.parametrize(
    ("kept", "stays"),
    [
        (KeptCheckpoints(best=1, last=1, every=0), "29"),
        (KeptCheckpoints(best=2, last=2, every=0), "2589"),
        (KeptCheckpoints(best=0, last=1, every=3), "369"),
        (KeptCheckpoints(best=0, last=None, every=0), "123456789"),
        (KeptCheckpoints(best=None, last=1, every=0), "1235679"),
        (KeptCheckpoints(best=0, last=1, every=1), "123456789"),
        (KeptCheckpoints(), "123456789"),
    ],
)
def test_the_best_the_last_and_every_so_manyth_stay(kept: KeptCheckpoints, stays: str) -> None:
    # Of the two with 7 the one that was trained longer; those without a score are never the best.
    nine = saved(1, 9, 2, None, 7, 7 - 1e-9, 3, float("nan"), 4)
    assert left(surplus(nine, kept), nine) == stays


def test_states_stay_with_the_last_few_and_the_rest_of_those_checkpoints_too() -> None:
    four = [*saved(1, 2, 3), Saved("4", 4, False)]
    found = surplus(four, KeptCheckpoints(best=4, last=1, every=0, states=2))
    assert found == Verdict(frozenset(), frozenset({"1"}))
    assert surplus(four, KeptCheckpoints(states=None)).states == frozenset()


def test_what_something_refers_to_stays_with_its_state() -> None:
    three = saved(1, 2, 3)
    found = surplus(three, KeptCheckpoints(best=0, last=1, every=0, states=1), {"1"})
    assert found == Verdict(frozenset({"2"}), frozenset())


@pytest.mark.parametrize(
    "bad",
    [[], {"first": 1}, {"last": 0}, {"states": 0}, {"best": -1}, {"best": True}, {"metric": ""}],
)
def test_a_setting_that_cannot_be_is_refused_by_name(bad: object) -> None:
    with pytest.raises(ConfigurationError, match="checkpoint_retention"):
        validate_training_config("PPO", 10, 10, {"checkpoint_retention": bad})


def test_a_jobs_setting_comes_before_the_platforms_part_by_part() -> None:
    own, platform = validate_kept("k", {"last": None}), {"last": 3, "best": 1}
    assert settle_kept(own, platform) == KeptCheckpoints(best=1, last=None)
    assert settle_kept(None, None) == KeptCheckpoints()


def kept_of(platform: Running, job: str) -> list[str]:
    page = platform.ok(platform.http.get(f"/api/training/jobs/{job}/checkpoints"))
    return [str(one["id"]).rpartition("_")[2] for one in platform.listed(page, "checkpoints")]


def checkpoints(*scores: float) -> list[tuple[str, dict[str, object]]]:
    return [
        ("checkpoint", {"episode": number, "avg_reward": score, "content": f"w{number}"})
        for number, score in enumerate(scores, 1)
    ]


ONE = {"checkpoint_retention": {"best": 1, "last": 1, "every": 0}}


def test_checkpoints_go_as_others_come_and_their_files_with_them(
    start: Start, engine: str | None
) -> None:
    platform = start(plan=[*checkpoints(1, 5, 2, 3), ("completed", {})])
    platform.ready()
    job = platform.train(config=ONE)
    assert platform.finished("training", job) == "completed"

    assert kept_of(platform, job) == ["2", "4"]
    data = platform.server.state.settings.data_dir
    if engine is not None:
        platform.collect()
    there = [(data / member_of(digest_of(f"w{n}"))).exists() for n in (1, 2, 3)]
    assert there == [False, True, False]
    assert platform.http.get(f"/api/checkpoints/ckpt_{job}_1").status_code == 404


def test_the_platforms_setting_holds_where_the_job_says_nothing(start: Start) -> None:
    platform = start(plan=[*checkpoints(1, 5, 2, 3), ("completed", {})])
    platform.ready()
    platform.ok(platform.http.post("/governance/configure", json=ONE))
    wrong = platform.http.post("/governance/configure", json={"checkpoint_retention": {"last": 0}})
    job = platform.train()
    assert platform.finished("training", job) == "completed"

    assert kept_of(platform, job) == ["2", "4"]
    assert (wrong.status_code, wrong.json()["code"]) == (422, "invalid_governance")


def test_what_agents_and_evaluations_and_trainings_refer_to_is_not_removed(start: Start) -> None:
    platform = start(plan=[*checkpoints(1, 1, 1, 9), ("completed", {})])
    platform.ready()
    job = platform.train()
    assert platform.finished("training", job) == "completed"
    named = [f"ckpt_{job}_{number}" for number in (1, 2, 3, 4)]
    body: dict[str, Any] = {"id": "a", "name": "A", "model_ref": f"checkpoint://{named[0]}"}
    platform.ok(platform.http.post("/api/agents", json=body))
    # What it was before is what it can be rolled back to.
    platform.ok(platform.http.put("/api/agents/a/configure", json={"model_ref": named[1]}))
    platform.ok(platform.http.post("/api/agents/a/dry-run", json={"environment_id": "CartPole"}))
    state = platform.server.state
    from rleaas.server.store import jobs
    from rleaas.server.store.kept_checkpoints import prune

    with state.database.write(1) as session:
        row = jobs.find(session, "training", job)
        row.request = {**row.request, "config": ONE}
        gone = prune(session, row)

    assert kept_of(platform, job) == ["1", "2", "4"]
    assert gone == {digest_of("w3")}


def test_an_agents_latest_checkpoint_is_of_its_newest_training(start: Start) -> None:
    platform = start(plan=[*checkpoints(1, 2), ("completed", {})])
    platform.ready()
    first = platform.train()
    assert platform.finished("training", first) == "completed"
    platform.ok(platform.http.post("/api/agents", json={"id": "a", "name": "A"}))
    state = platform.server.state

    def latest() -> str | None:
        with state.database.read(1) as session:
            found = agents.latest_checkpoint(session, agents.find(session, "a"))
            return None if found is None else found.id

    assert latest() is None
    platform.ok(platform.http.put("/api/agents/a/configure", json={"model_ref": f"ckpt_{first}_1"}))
    assert latest() == f"ckpt_{first}_1"
    with state.database.write(1) as session:
        from rleaas.server.store import jobs

        row = jobs.find(session, "training", first)
        row.request = {**row.request, "model": "a"}
    assert latest() == f"ckpt_{first}_2"
