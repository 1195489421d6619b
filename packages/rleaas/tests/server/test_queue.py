"""Whose turn it is: the pure order, and jobs that wait on a server that is busy."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st
from rleaas import Client
from rleaas.server.rules.queue import SHORT_PAUSE, Waiting, in_turn, to_start

from .conftest import Start

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def job(number: int, organisation: int = 1, priority: int = 0, *, later: float = 0.0) -> Waiting:
    due = NOW + timedelta(seconds=later) if later else None
    since = NOW - timedelta(hours=1) + timedelta(seconds=number)
    return Waiting(f"job_{number:03}", organisation, priority, since, due)


def names(order: list[Waiting]) -> list[str]:
    return [one.job_id.removeprefix("job_00") for one in order]


def test_an_organisation_with_many_jobs_does_not_make_others_wait() -> None:
    crowd = [job(number, 1) for number in range(4)]
    late = [job(7, 2), job(8, 2)]

    assert names(in_turn(crowd + late, {1: 0, 2: 0}, NOW)) == ["0", "7", "1", "8", "2", "3"]
    assert names(in_turn(crowd + late, {1: 2}, NOW)) == ["7", "8", "0", "1", "2", "3"]


def test_the_higher_priority_is_before_fairness_and_what_must_wait_is_last() -> None:
    waiting = [job(1), job(2, 2), job(3, 1, 5), job(4, 1, -1), job(5, 2, 100, later=3)]

    assert names(in_turn(waiting, {1: 9}, NOW)) == ["3", "2", "1", "4", "5"]


def test_a_job_that_pauses_for_its_restart_keeps_its_place_from_newer_ones() -> None:
    paused, newer, urgent = job(1, later=1), job(2, 2), job(3, 2, 1)
    order = in_turn([paused, newer], {}, NOW)

    assert to_start(order, 1, NOW) is None
    assert to_start(order, 2, NOW) == newer
    assert to_start(in_turn([paused, newer, urgent], {}, NOW), 1, NOW) == urgent


def test_a_job_has_its_place_back_after_its_pause_though_others_run_fewer() -> None:
    paused, newer = job(1, later=1), job(2, 2)
    after = NOW + timedelta(seconds=1)

    assert to_start(in_turn([newer, paused], {1: 5}, after), 1, after) == paused


def test_a_job_whose_pause_is_long_keeps_nobody_waiting() -> None:
    paused, newer = job(1, later=SHORT_PAUSE.total_seconds() + 1), job(2)

    assert to_start(in_turn([paused, newer], {}, NOW), 1, NOW) == newer
    assert to_start([], 1, NOW) is None


JOBS = st.lists(
    st.builds(
        job,
        st.integers(0, 900),
        st.integers(1, 4),
        st.integers(-2, 2),
        later=st.sampled_from([0.0, 0.0, -5.0, 5.0]),
    ),
    max_size=25,
    unique_by=lambda one: one.job_id,
)


@given(JOBS, st.dictionaries(st.integers(1, 4), st.integers(0, 5)))
def test_of_the_highest_priority_the_least_served_organisation_has_its_turn(
    waiting: list[Waiting], running: dict[int, int]
) -> None:
    order = in_turn(waiting, running, NOW)

    assert sorted(order, key=repr) == sorted(waiting, key=repr)
    counts = Counter(running)
    due = [one for one in order if one.not_before is None or one.not_before <= NOW]
    assert order[: len(due)] == due
    for at, one in enumerate(due):
        if one.not_before is not None:
            counts[one.organisation] += 1
            continue
        assert all(other.not_before is None for other in due[at:] if other.priority == one.priority)
        rivals = [other for other in due[at:] if other.priority >= one.priority]
        assert all(other.priority == one.priority for other in rivals)
        assert all(counts[one.organisation] <= counts[other.organisation] for other in rivals)
        own = [other for other in rivals if other.organisation == one.organisation]
        assert all((one.since, one.job_id) <= (other.since, other.job_id) for other in own)
        counts[one.organisation] += 1


def test_a_job_that_waits_says_its_place_and_the_higher_priority_goes_first(start: Start) -> None:
    platform = start(plan=[("until_cancelled", {})], max_workers=1)
    platform.ready()
    first = platform.train()
    platform.http.get(f"/api/training/jobs/{first}/log-page", params={"wait_seconds": 10})
    second, urgent = platform.train(), platform.train(priority=7)

    row = platform.ok(platform.http.get(f"/training/{second}"))
    assert (row["status"], row["priority"], row["queue_position"]) == ("pending", 0, 2)
    with Client(base_url=platform.server.url) as client:
        queue = client.TrainingJob.queue()
    assert [(one.job_id, one.position) for one in queue.queue] == [(urgent, 1), (second, 2)]
    assert (queue.running, queue.waiting, queue.max_jobs) == (1, 2, 1)
    platform.ok(platform.http.post(f"/api/training/jobs/{first}/cancel"))
    platform.http.get(f"/api/training/jobs/{urgent}/log-page", params={"wait_seconds": 10})
    assert platform.ok(platform.http.get(f"/training/{urgent}"))["status"] == "running"
    assert platform.ok(platform.http.get(f"/training/{second}"))["queue_position"] == 1


def test_priorities_above_zero_are_for_operators_and_all_have_bounds(start: Start) -> None:
    key = "rleaas_sk_operator_0123456789"
    platform = start(api_key=key)
    asked = {"name": "guests", "admin": "a@guests"}
    made = platform.ok(platform.http.post("/api/organisations", json=asked))["key"]
    assert isinstance(made, dict)
    guest = {"authorization": f"Bearer {made['key']}"}
    refused = platform.http.post("/train/CartPole", json={"priority": 1}, headers=guest)
    beyond = platform.http.post("/train/CartPole", json={"priority": 101})
    lower = platform.http.post("/train/CartPole", json={"priority": -5}, headers=guest)

    assert (refused.status_code, refused.json()["code"]) == (403, "priority_not_permitted")
    assert (beyond.status_code, beyond.json()["code"]) == (422, "invalid_request")
    assert (lower.status_code, lower.json()["code"]) == (404, "environment_not_found")
