"""Running the server in the foreground until it is told to stop."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from rlcore import Error
from rlcore.environ import snapshot

from rleaas.server.jobs.ray_cluster import RayCluster
from rleaas.server.listening import Listening
from rleaas.server.logs import log_format, written
from rleaas.server.settings import (
    ServerSettings,
    agent_endpoint,
    allows_code,
    artifacts_url,
    database_url,
    default_data_dir,
    environments_at,
    is_loopback,
    judge_endpoint,
    require_safe_host,
    server_api_key,
)

_AT_ONCE_SECONDS = 3.0


def serve(
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    data_dir: Path | None = None,
    api_key: str | None = None,
    require_key: bool = False,
    database: str | None = None,
    artifacts: str | None = None,
    allow_insecure: bool = False,
    max_workers: int = 2,
    max_restarts: int = 3,
    worker_patience: float = 3600.0,
    job_memory: float | None = None,
    allowed_hosts: Iterable[str] = (),
    allow_code: bool = False,
    judge_url: str | None = None,
    judge_model: str | None = None,
    agent_url: str | None = None,
    agent_model: str | None = None,
    reward_files: Path | None = None,
    idle_minutes: float = 60.0,
    drain_seconds: float = 10.0,
    logs: str | None = None,
    ray: RayCluster | None = None,
    public_url: str | None = None,
    environments_host: str = "127.0.0.1",
    on_ready: Callable[[str], None] | None = None,
    stop: threading.Event | None = None,
) -> int:
    """Serve until SIGINT, SIGTERM or `stop`, then end with all child processes.

    Jobs that run are told to save their work then, and go on at the next start. When the server is
    killed, workers go on, and the next server on the same data takes them up again.

    Args:
        host: where to listen; other machines are only let in with a key or `allow_insecure`.
        port: 0 takes any free one.
        data_dir: the directory of the database, checkpoints and logs.
        api_key: the bearer key that callers need; else `RLEAAS_SERVER_API_KEY`, else none.
        require_key: let nobody in without a key of the database, such as `rleaas keys bootstrap`
            makes.
        database: the URL of the database; else `RLEAAS_DATABASE_URL`, else a file in the data.
        artifacts: the URL of the files of checkpoints, such as `s3://bucket/prefix`; else
            `RLEAAS_ARTIFACTS_URL`, else they are in the data.
        allow_insecure: listen on a public host without a key.
        max_workers: how many jobs run at the same time.
        max_restarts: how often a job is started again, from its last checkpoint, after its worker
            has died.
        worker_patience: for how many seconds workers go on while there is no server to report to;
            0 ends them with the server.
        job_memory: how many MiB of memory a worker may use; None is no limit.
        allowed_hosts: hosts, as `name` or `name:port`, that the server may ask though they are not
            public: for repositories, probes, webhooks and `tcp://` sources of other organisations.
        judge_url: the endpoint of the language model that judges for `llm_judge` verifiers, in
            OpenAI's protocol, or in Anthropic's after `anthropic:`; its key is in
            `RLEAAS_JUDGE_KEY`.
        judge_model: the model there, whatever model a verifier names.
        agent_url: the endpoint of the language model that plays where an evaluation's agent is
            `llm` and names no other, likewise; its key is in `RLEAAS_AGENT_KEY`, and goes nowhere
            else.
        agent_model: the model there, where an evaluation names none.
        reward_files: a directory of reward functions, for clients that send the path of one only.
        allow_code: let every organisation register sources that are code; else
            `RLEAAS_ALLOW_CODE`, else only the operator's own may.
        idle_minutes: after how long an environment that nobody uses is stopped; 0 never.
        drain_seconds: how long requests that have begun may go on when it is told to stop; told
            twice, it waits for none.
        logs: the format, `text` or `json`, in which each request is written to standard error;
            else `RLEAAS_LOG_FORMAT`, else only warnings and errors are written, as text.
        ray: the cluster that jobs are submitted to; without one they are processes of this machine.
        public_url: where workers on other hosts reach the server; by default where it listens.
        environments_host: the address of this machine at which environments are served.
        on_ready: called with the URL when the server answers; without it, the URL and the data
            directory are written to standard output.
        stop: ends the server when it is set.

    Returns:
        The exit status: 0 after a clean stop, 1 when the server could not start (the reason is on
        standard error).
    """
    data = default_data_dir() if data_dir is None else data_dir
    try:
        key = server_api_key(api_key, snapshot())
        asked_logs = log_format(logs, snapshot())
        has_key = key is not None or require_key
        require_safe_host(host, has_key=has_key, allow_insecure=allow_insecure)
        settings = ServerSettings(
            data_dir=data,
            api_key=key,
            needs_keys=require_key,
            database_url=database_url(database, snapshot()),
            artifacts_url=artifacts_url(artifacts, snapshot()),
            is_local=not has_key and is_loopback(host),
            max_workers=max_workers,
            max_restarts=max_restarts,
            worker_patience=worker_patience or None,
            job_memory_bytes=None if job_memory is None else int(job_memory * 2**20),
            allowed_hosts=frozenset(allowed_hosts),
            allow_code=allows_code(allow_code, snapshot()),
            judge=judge_endpoint(judge_url, judge_model, snapshot()),
            agent=agent_endpoint(agent_url, agent_model, snapshot()),
            reward_files=reward_files,
            idle_seconds=idle_minutes * 60 or None,
            drain_seconds=drain_seconds,
            ray=ray,
            public_url=public_url,
            environments_host=environments_at(environments_host),
        )
        listening = Listening(settings, host, port)
    except Error as error:
        sys.stderr.write(f"error: {error}\n")
        return 1

    def announce(url: str) -> None:
        sys.stdout.write(f"rleaas listens on {url}\nits data is in {data}\n")
        sys.stdout.flush()

    secrets = () if key is None else (key,)
    with (
        written(asked_logs, secrets),
        _stopped_by_signals(listening),
        _stopped_by(stop, listening),
    ):
        listening.run(on_ready or announce)
    return 0


@contextmanager
def _stopped_by_signals(listening: Listening) -> Generator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = False
    ended = threading.Event()

    def end_anyway() -> None:
        # Whatever hangs, such as a webhook that does not answer: nothing that was told to a client
        # is lost by ending like this.
        if not ended.wait(_AT_ONCE_SECONDS):
            os._exit(1)

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        listening.stop(now=asked)  # asked twice, it waits for no request or process
        if asked:
            threading.Thread(target=end_anyway, name="rleaas-end", daemon=True).start()
        asked = True

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        ended.set()
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _stopped_by(stop: threading.Event | None, listening: Listening) -> Generator[None]:
    if stop is None:
        yield
        return
    ended = threading.Event()

    def watch() -> None:
        while not ended.is_set():
            if stop.wait(0.1):
                listening.stop()
                return

    watcher = threading.Thread(target=watch, name="rleaas-stop", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
