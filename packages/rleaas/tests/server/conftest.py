"""Servers whose environments and workers are small stand-ins, or real ones."""

from __future__ import annotations

import base64
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import httpx
import pytest
from rlcore import Error, Secret
from rleaas.server.artifacts.store import member_of
from rleaas.server.envhost.process import DidNotStart
from rleaas.server.jobs.patience import Patience
from rleaas.server.local import LocalServer
from rleaas.server.settings import DATABASE_FILE, ServerSettings
from rleaas.server.state import ServerState
from rleaas.server.store import audit
from rleaas.server.store.audit_filters import Filters

from .archives import policy_file

CONTRACT: dict[str, object] = {
    "id": "CartPole-v1",
    "action_space": {"kind": "discrete", "n": 2},
    "observation_space": {"kind": "box", "high": ["inf", 1.5]},
}

IMPATIENT = Patience(
    tick=0.02,
    to_cancel=0.3,
    to_terminate=0.3,
    to_exit=0.3,
    to_report=30.0,
    to_stop=3.0,
    to_restart=0.02,
)


class FakeServed:
    """An environment without a process."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.stopped = threading.Event()
        self.how = "stopped"
        self.connected = False

    def wait_ready(self, timeout: float) -> str:
        return self._address

    def ended(self) -> str | None:
        return self.how if self.stopped.is_set() else None

    def wait(self) -> str:
        self.stopped.wait()
        return self.how

    def in_use(self) -> bool:
        return self.connected

    def stop(self) -> None:
        self.stopped.set()

    def die(self, how: str) -> None:
        self.how = how
        self.stopped.set()


@dataclass
class FakeMesh:
    """Launcher and inspector in one: what it serves, how often it was started."""

    contract: dict[str, object] = field(default_factory=lambda: dict(CONTRACT))
    refuse: dict[str, str] = field(default_factory=dict[str, str])
    served: list[FakeServed] = field(default_factory=list[FakeServed])
    dialled: list[str] = field(default_factory=list[str])
    unreachable: Error | None = None

    def launch(
        self, source: str, kwargs: Mapping[str, object], *, key: Secret, log: Path
    ) -> FakeServed:
        if source in self.refuse:
            raise DidNotStart(self.refuse[source])
        served = FakeServed(f"tcp://127.0.0.1:{50000 + len(self.served)}")
        self.served.append(served)
        return served

    def inspect(self, address: str, key: Secret | None, timeout: float) -> dict[str, object]:
        self.dialled.append(address)
        if self.unreachable is not None:
            raise self.unreachable
        return self.contract


@dataclass
class Running:
    """A server with a client for it."""

    server: LocalServer
    http: httpx.Client
    mesh: FakeMesh

    def register(self, name: str = "CartPole", **fields: object) -> dict[str, object]:
        body = {"name": name, "source": "gym://CartPole-v1", **fields}
        return self.ok(self.http.post("/api/custom-environments", json=body))

    @staticmethod
    def listed(page: dict[str, object], field: str) -> list[dict[str, object]]:
        items = page[field]
        assert isinstance(items, list)
        return cast("list[dict[str, object]]", items)

    def ready(self, name: str = "CartPole", **fields: object) -> dict[str, object]:
        self.register(name, **fields)
        self.ok(self.http.get(f"/api/environments/{name}/endpoint"))
        return self.ok(self.http.get(f"/api/environments/{name}"))

    def train(self, env: str = "CartPole", **body: object) -> str:
        return str(self.ok(self.http.post(f"/train/{env}", json=body))["job_id"])

    def finished(self, kind: str, job_id: str) -> str:
        row = self.server.state.scheduler.wait_finished(kind, job_id, 20)
        return row.status if row.error is None else f"{row.status}: {row.error}"

    def file_of(self, checkpoint: str, what: str = "sha256") -> Path:
        sha256 = str(self.ok(self.http.get(f"/api/checkpoints/{checkpoint}"))[what])
        return self.server.state.settings.data_dir / member_of(sha256)

    def collect(self) -> None:
        """Collect what nothing refers to; servers that share their data wait an hour for it."""
        for path in (self.server.state.settings.data_dir / "artifacts").rglob("*"):
            if path.is_file():
                os.utime(path, (0, 0))
        self.server.state.artifact_round.step()

    def audited(self, subject: str) -> list[str]:
        with self.server.state.database.read(1) as session:
            filters = Filters(subject=subject)
            return [row.action for row in audit.page(session, filters, oldest_first=True)]

    @staticmethod
    def ok(reply: httpx.Response) -> dict[str, object]:
        assert reply.status_code == 200, reply.text
        body: dict[str, object] = reply.json()
        return body


Start = Callable[..., Running]
MakeDatabase = Callable[[], str]
CopyDatabase = Callable[[Path], None]

# A worker in one file: it talks to the server like the real ones, with the standard library only.
WORKER = """
import base64, json, os, sys, urllib.request, hashlib, time
kind, job, url = sys.argv[1:4]
plan = json.loads(sys.argv[4])
token = os.environ["RLEAAS_WORKER_TOKEN"]
base = f"{url}/api/worker/{kind}/{job}"
seq = 0
def call(method, path, data=None, headers=None):
    request = urllib.request.Request(path, data=data, method=method)
    request.add_header("Authorization", f"Bearer {token}")
    for name, value in (headers or {}).items():
        request.add_header(name, value)
    with urllib.request.urlopen(request, timeout=20) as reply:
        return json.loads(reply.read())
def tell(*reports):
    global seq
    seq += 1
    body = {"seq": seq, "reports": [{"type": t, "data": d} for t, d in reports]}
    return call("POST", base + "/reports", json.dumps(body).encode(),
                {"Content-Type": "application/json"})["cancel_requested"]
assignment = call("GET", base + "/assignment")
print("working on", assignment["environment_uri"], flush=True)
if plan and plan[0][0] == "never_starts":
    print("importing", flush=True)
    time.sleep(60)
tell(("started", {}))
for kind_, data in plan:
    if kind_ == "crash":
        print("Traceback: it broke", file=sys.stderr, flush=True)
        sys.exit(3)
    if kind_ == "crash_at_first":
        if assignment["attempt"] == 1:
            sys.exit(3)
    elif kind_ == "checkpoint":
        content = base64.b64decode(data["content"])
        call("PUT", base + f"/checkpoints/ckpt_{job}_{data['episode']}?episode={data['episode']}"
             f"&avg_reward={data['avg_reward']}&label=x", content,
             {"x-content-sha256": hashlib.sha256(content).hexdigest(),
              "Content-Type": "application/octet-stream"})
    elif kind_ == "until_cancelled":
        while not tell(("heartbeat", {})):
            time.sleep(0.02)
        tell(("cancelled", {}))
        sys.exit(0)
    elif kind_ == "ignore_cancel":
        import signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("ready to be stubborn", flush=True)
        time.sleep(60)
    else:
        tell((kind_, data))
"""


def worker_command(plan: Sequence[tuple[str, Mapping[str, object]]]) -> Callable[..., list[str]]:
    """Follow a plan; the content of a checkpoint is the name of a policy file."""

    def command(kind: str, job_id: str, url: str) -> list[str]:
        steps = json.dumps([(step, _with_file(step, data)) for step, data in plan])
        return [sys.executable, "-c", WORKER, kind, job_id, url, steps]

    return command


def _with_file(step: str, data: Mapping[str, object]) -> Mapping[str, object]:
    if step != "checkpoint":
        return data
    return {**data, "content": base64.b64encode(policy_file(str(data["content"]))).decode()}


# An export in one file: the form's name before the bytes of the checkpoint.
EXPORT = """
import json, sys
order = json.load(open(sys.argv[1]))
with open(order["source"], "rb") as source, open(order["target"], "wb") as target:
    target.write(order["form"].encode() + b" of " + source.read())
json.dump({"checks": {"facts": order["facts"]}}, open(sys.argv[2], "w"))
"""


def export_command(order: Path, reply: Path) -> list[str]:
    return [sys.executable, "-c", EXPORT, str(order), str(reply)]


@pytest.fixture
def mesh() -> FakeMesh:
    return FakeMesh()


@pytest.fixture
def start(
    mesh: FakeMesh, tmp_path: Path, engine: str | None, copy_migrated_sqlite: CopyDatabase
) -> Iterator[Start]:
    """Start servers on one data directory; workers follow a plan of reports."""
    running: list[Running] = []

    def begin(
        *,
        plan: Sequence[tuple[str, Mapping[str, object]]] = (("completed", {}),),
        api_key: str | None = None,
        max_workers: int = 2,
        real: bool = False,
        data: Path | None = None,
        patience: Patience = IMPATIENT,
        database_url: str | None = None,
        artifacts_url: str | None = None,
    ) -> Running:
        def make_state(settings: ServerSettings) -> ServerState:
            settings = replace(settings, artifacts_url=artifacts_url)
            if real:
                return ServerState(settings)
            return ServerState(
                settings,
                launcher=mesh,
                inspect=mesh.inspect,
                command=worker_command(plan),
                patience=patience,
                export=export_command,
            )

        place = data or tmp_path / "data"
        if (database_url or engine) is None and not (place / DATABASE_FILE).exists():
            copy_migrated_sqlite(place / DATABASE_FILE)
        server = LocalServer(
            place,
            api_key=api_key,
            database_url=database_url or engine,
            max_workers=max_workers,
            make_state=make_state,
        )
        server.start()
        headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        http = httpx.Client(
            base_url=server.url,
            headers=headers,
            timeout=70,
            trust_env=False,
            verify=False,  # certificates that nobody shows here take longer to load than most tests
        )
        one = Running(server, http, mesh)
        running.append(one)
        return one

    yield begin
    for one in running:
        one.http.close()
        one.server.stop()


@pytest.fixture
def platform(start: Start) -> Running:
    """A server whose workers complete at once."""
    return start()
