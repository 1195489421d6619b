import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from rlcore import (
    Backoff,
    CheckpointCorrupted,
    ConflictError,
    PlatformUnreachable,
    TrainingJobNotFound,
    UnexpectedReply,
)
from rleaas.training.backlog import Backlog
from rleaas.training.file_digest import file_digest
from rleaas.training.reporter import BATCH, Pace, Reporter

FAST = Pace(flush=0.01, heartbeat=0.02, patience=5.0, backoff=Backoff(first=0.001, cap=0.01))
NO_PATIENCE = Pace(patience=0.0, backoff=Backoff(first=0.001, cap=0.001))


class Server:
    """Answers like the worker API; `script` gives the answers that come before a good one."""

    def __init__(self, *script: Callable[[], httpx.Response]) -> None:
        self.script = list(script)
        self.requests: list[httpx.Request] = []
        self.cancel = False
        self.seen = threading.Event()

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        if self.script:
            return self.script.pop(0)()
        self.seen.set()
        return httpx.Response(200, json={"cancel_requested": self.cancel})

    @property
    def batches(self) -> list[tuple[int, list[Any]]]:
        bodies = [json.loads(one.content) for one in self.requests if one.method == "POST"]
        return [(body["seq"], [one["data"].get("n") for one in body["reports"]]) for body in bodies]


def reporter(server: Server, pace: Pace = FAST, **options: Any) -> Reporter:
    client = httpx.Client(base_url="http://server", transport=httpx.MockTransport(server))
    return Reporter(client, "training", "job_1", pace=pace, **options)


def answer(status: int, **body: object) -> Callable[[], httpx.Response]:
    return lambda: httpx.Response(status, json=body)


def dropped() -> httpx.Response:
    raise httpx.ReadError("the connection broke")


def test_reports_are_sent_in_order_in_one_batch() -> None:
    server = Server()
    line = reporter(server)
    for n in range(3):
        line.report("metric", {"n": n})
    line.flush()

    assert server.batches == [(1, [0, 1, 2])]
    assert server.requests[0].url.path == "/api/worker/training/job_1/reports"


def test_a_batch_keeps_its_number_until_the_server_has_it() -> None:
    server = Server(dropped, answer(503, detail="busy"))
    line = reporter(server)
    line.report("metric", {"n": 0})
    line.flush()
    line.report("metric", {"n": 1})
    line.flush()

    assert server.batches == [(1, [0]), (1, [0]), (1, [0]), (2, [1])]


def test_a_batch_that_was_given_up_is_sent_again_by_the_next_flush() -> None:
    server = Server(dropped)
    line = reporter(server, NO_PATIENCE)
    line.report("metric", {"n": 0})
    with pytest.raises(PlatformUnreachable, match="the connection broke"):
        line.flush()
    line.report("metric", {"n": 1})
    line.flush()

    assert server.batches == [(1, [0]), (1, [0]), (2, [1])]


def test_many_reports_are_sent_in_bounded_batches() -> None:
    server = Server()
    line = reporter(server)
    for n in range(BATCH + 1):
        line.report("metric", {"n": n})
    line.flush()

    assert [len(numbers) for _, numbers in server.batches] == [BATCH, 1]


def test_a_refusal_is_not_repeated() -> None:
    server = Server(answer(404, detail="gone", kind="training_job", ref="job_1"))
    line = reporter(server)
    line.report("metric", {})

    with pytest.raises(TrainingJobNotFound):
        line.flush()
    assert len(server.requests) == 1


def test_the_thread_sends_heartbeats_and_hears_the_order_to_stop() -> None:
    server = Server()
    server.cancel = True
    stopped = threading.Event()
    line = reporter(server, on_stop=stopped.set)
    line.start()

    assert stopped.wait(5)
    assert line.cancel_requested.is_set()
    line.close()
    assert json.loads(server.requests[0].content)["reports"][0]["type"] == "heartbeat"


def test_closing_sends_what_is_left() -> None:
    server = Server()
    line = reporter(server, Pace(flush=60.0))
    line.start()
    line.report("completed", {"n": 1})
    line.close()

    assert server.batches == [(1, [1])]


def test_a_lost_server_stops_the_work_and_is_told_at_the_end() -> None:
    server = Server(answer(409, detail="the job is over"))
    stopped = threading.Event()
    line = reporter(server, on_stop=stopped.set)
    line.start()
    line.report("metric", {})

    assert stopped.wait(5)
    with pytest.raises(ConflictError, match="the job is over"):
        line.close()


def test_an_upload_carries_its_digest_and_is_repeated(tmp_path: Path) -> None:
    path = tmp_path / "file.zip"
    path.write_bytes(b"weights")
    server = Server(dropped)
    reporter(server).upload("ckpt_1", path, {"episode": 3, "label": "best"})

    first, second = server.requests
    assert first.content == second.content == b"weights"
    assert first.headers["x-content-sha256"] == file_digest(path)
    assert first.url.path == "/api/worker/training/job_1/checkpoints/ckpt_1"
    assert dict(first.url.params) == {"episode": "3", "label": "best"}


def test_a_download_that_is_not_what_was_stored_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file.zip"
    server = Server(lambda: httpx.Response(200, content=b"weights"))

    with pytest.raises(CheckpointCorrupted):
        reporter(server).download("ckpt_1", "0" * 64, path)


def test_a_download_is_verified_and_kept(tmp_path: Path) -> None:
    path, stored = tmp_path / "file.zip", tmp_path / "stored.zip"
    stored.write_bytes(b"weights")
    server = Server(lambda: httpx.Response(200, content=b"weights"))
    reporter(server).download("ckpt_1", file_digest(stored), path)

    assert path.read_bytes() == b"weights"


@pytest.mark.parametrize(
    "reply",
    [
        lambda: httpx.Response(200, text="<html>"),
        lambda: httpx.Response(200, json=[1]),
    ],
)
def test_an_assignment_that_is_no_object_is_refused(reply: Callable[[], httpx.Response]) -> None:
    with pytest.raises(UnexpectedReply, match="assignment"):
        reporter(Server(reply)).assignment()


def test_a_silent_worker_hears_a_cancel_as_soon_as_one_that_reports() -> None:
    assert Pace().heartbeat <= Pace().flush


def test_while_the_server_is_away_reports_and_checkpoints_wait_in_order(tmp_path: Path) -> None:
    away = [dropped] * 200
    server = Server(*away)
    line = reporter(
        server,
        Pace(flush=0.001, heartbeat=60, patience=20.0, backoff=Backoff(first=0.001, cap=0.005)),
        backlog=Backlog(tmp_path, most=4),
    )
    file = tmp_path / "policy.zip"
    line.start()
    line.report("metric", {"n": 0})
    for number in range(1, 30):
        line.report("metric", {"n": number})
        if number == 9:
            file.write_bytes(b"first")
            line.upload("ckpt_9", file, {"episode": 9})
            file.unlink()
            file.write_bytes(b"another")  # the trainer goes on, and saves again
    line.close()

    told = [n for _, batch in server.batches[-60:] for n in batch]
    delivered = list(dict.fromkeys(told))
    assert delivered == list(range(30))
    seqs = dict(server.batches)
    assert [n for batch in seqs.values() for n in batch] == list(range(30))
    (stored,) = {r.content for r in server.requests if r.method == "PUT"}
    assert stored == b"first"
    last_put = max(i for i, r in enumerate(server.requests) if r.method == "PUT")
    after = [json.loads(r.content) for r in server.requests[last_put + 1 :]]
    assert after[0]["reports"][0]["data"] == {"n": 10}
    assert list(tmp_path.glob("upload-*")) == []


def test_the_server_is_found_where_it_says_that_it_is_now(tmp_path: Path) -> None:
    server, moved = Server(dropped), list[str]()
    whereabouts = tmp_path / "server"
    whereabouts.write_text("http://elsewhere:9")
    line = reporter(server, whereabouts=whereabouts, on_moved=moved.append)
    line.report("metric", {"n": 0})
    line.flush()

    assert [request.url.host for request in server.requests] == ["server", "elsewhere"]
    assert moved == ["http://elsewhere:9"]
    assert [seq for seq, _ in server.batches] == [1, 1]


def test_a_checkpoint_that_is_refused_later_is_kept_in_mind_and_what_is_behind_it_delivered(
    tmp_path: Path,
) -> None:
    stopped = threading.Event()
    server = Server(dropped, dropped, answer(413, code="quota_exceeded", detail="no room"))
    line = reporter(server, Pace(patience=0.0), on_stop=stopped.set, backlog=Backlog(tmp_path))
    file = tmp_path / "policy.zip"
    file.write_bytes(b"x")
    line.upload("ckpt_1", file, {"episode": 1})
    line.report("metric", {"n": 1})
    with pytest.raises(PlatformUnreachable):
        line.flush()
    line.flush()

    assert line.refused is not None
    assert "no room" in str(line.refused)
    assert server.batches == [(1, [1])]


def test_a_state_that_was_kept_too_briefly_is_sent_again(tmp_path: Path) -> None:
    server = Server(answer(200), answer(409, code="state_missing", detail="it is gone"))
    line = reporter(server)
    for name in ("policy", "state"):
        (tmp_path / name).write_bytes(name.encode())
    line.upload("ckpt_1", tmp_path / "policy", {"episode": 1}, state=tmp_path / "state")

    assert [r.content for r in server.requests] == [b"state", b"policy", b"state", b"policy"]


def test_a_worker_whose_upload_takes_long_gives_signs_of_life_and_hears_of_a_cancel(
    tmp_path: Path,
) -> None:
    uploading, stopped = threading.Event(), threading.Event()

    class Slow(Server):
        def __call__(self, request: httpx.Request) -> httpx.Response:
            if request.method == "PUT":
                uploading.set()
                assert stopped.wait(10)
            return super().__call__(request)

    server = Slow()
    pace = Pace(flush=0.01, heartbeat=60.0, beside=0.05)
    line = reporter(server, pace, on_stop=stopped.set)
    line.report("started", {"n": 0})
    line.flush()
    line.start()
    file = tmp_path / "policy.zip"
    file.write_bytes(b"weights")
    upload = threading.Thread(target=line.upload, args=("ckpt_1", file, {}))
    upload.start()
    assert uploading.wait(10)
    server.cancel = True
    upload.join(10)

    assert stopped.is_set()
    line.close()
    # They have the number of what had arrived, so that nothing is taken in twice.
    assert server.batches[0] == (1, [0])
    assert (1, []) in server.batches[1:]


def test_before_anything_has_arrived_there_is_no_sign_of_life() -> None:
    server = Server()
    line = reporter(server, Pace(flush=60.0, heartbeat=60.0, beside=0.01))
    line.start()
    assert not server.seen.wait(0.2)
    line.close()
    assert server.batches == []


def test_a_large_file_may_take_as_long_as_its_size_needs(tmp_path: Path) -> None:
    server = Server()
    line = reporter(server)
    for name, size in (("small", 10), ("large", 80_000_000)):
        file = tmp_path / name
        with file.open("wb") as content:
            content.truncate(size)
        line.upload(name, file, {})
    small, large = [one.extensions["timeout"]["read"] for one in server.requests]
    assert (round(small), round(large)) == (30, 50)
