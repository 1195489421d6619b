"""A real server whose jobs are done by a small worker, which notes that it ran in a file.

python light_server.py --port 8000 --data DIR --runs FILE [--database-url URL] [--allow-host H]
"""

import argparse
import signal
import sys
from pathlib import Path
from types import FrameType

from rleaas.server.listening import Listening
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState

# With the standard library alone, so that its start costs no time. Like the real ones it goes on
# without a server, and looks where that is now.
WORKER = """
import json, os, sys, time, urllib.error, urllib.request
kind, job, url, runs = sys.argv[1:5]
whereabouts = os.path.join(os.environ["RLEAAS_WORKER_DIRECTORY"], "server")
def once(method, path, body):
    place = open(whereabouts).read() if os.path.exists(whereabouts) else url
    request = urllib.request.Request(
        f"{place}/api/worker/{kind}/{job}{path}", json.dumps(body).encode(), method=method
    )
    request.add_header("Authorization", "Bearer " + os.environ["RLEAAS_WORKER_TOKEN"])
    request.add_header("Content-Type", "application/json")
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())
def call(method, path, body=None):
    end = time.monotonic() + 120
    while True:
        try:
            return once(method, path, body)
        except urllib.error.HTTPError as error:
            if error.code == 409:
                note("replaced")
                sys.exit(0)
            if error.code != 503 or time.monotonic() > end:
                raise
        except OSError:
            if time.monotonic() > end:
                raise
        time.sleep(0.05)
def note(what):
    file = os.open(runs, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{what} {job} {os.getpid()}\\n".encode())
    os.close(file)
call("GET", "/assignment")
note("began")
call("POST", "/reports", {"seq": 1, "reports": [{"type": "started", "data": {}}]})
while sys.argv[5:]:
    time.sleep(0.5)
    batch = {"seq": 2, "reports": []}
    if call("POST", "/reports", batch)["cancel_requested"]:
        sys.exit(0)
for seq in range(2, 5):
    time.sleep(0.1)
    data = {"episode": seq, "reward": 1.0, "avg_reward": 1.0}
    call("POST", "/reports", {"seq": seq, "reports": [{"type": "metric", "data": data}]})
call("POST", "/reports", {"seq": 9, "reports": [{"type": "completed", "data": {}}]})
note("ended")
"""


def main() -> int:
    """Serve until SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("serve", nargs="?")
    parser.add_argument("--require-key", action="store_true")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--runs", required=True)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--database-url")
    parser.add_argument("--slow", action="store_true", help="workers wait until they are cancelled")
    parser.add_argument("--allow-host", action="append", default=[])
    asked = parser.parse_args()

    def command(kind: str, job_id: str, url: str) -> list[str]:
        waits = ["waits"] if asked.slow else []
        return [sys.executable, "-c", WORKER, kind, job_id, url, asked.runs, *waits]

    settings = ServerSettings(
        data_dir=asked.data,
        needs_keys=asked.require_key,
        database_url=asked.database_url,
        max_workers=asked.workers,
        worker_patience=3600.0,
        allowed_hosts=frozenset(asked.allow_host),
    )
    listening = Listening(
        settings,
        "127.0.0.1",
        asked.port,
        make_state=lambda found: ServerState(found, command=command),
    )

    def stop(_number: int, _frame: FrameType | None) -> None:
        listening.stop()

    signal.signal(signal.SIGTERM, stop)
    listening.run(lambda _: None)
    return 0


if __name__ == "__main__":
    sys.exit(main())
