import time

import rlmesh.serve
from rlmesh.server.startup import STARTUP, Startup, process_start


def test_phases_are_counted_from_the_start_of_the_process_once_each() -> None:
    startup = Startup()
    startup.mark("early")
    startup.begin()
    startup.mark("process", time.time() - 0.001)
    startup.mark("env")
    first = startup.marks()
    startup.mark("env", time.time() + 60)

    assert first == startup.marks()
    assert list(first) == ["rlmesh.startup.process_ms", "rlmesh.startup.env_ms"]
    assert 0 <= float(first["rlmesh.startup.process_ms"]) < float(first["rlmesh.startup.env_ms"])


def test_this_process_began_before_now_and_what_is_served_by_command_is_told() -> None:
    assert process_start() < time.time()
    assert Startup().marks() == {}
    assert rlmesh.serve.startup_marks() == STARTUP.marks()
