# schemathesis leaves its own generic parameters open:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
import json
from pathlib import Path
from typing import Any

import schemathesis
from hypothesis import Phase, given, settings
from rleaas.server.app import create_app
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from .conftest import FakeMesh, export_command, worker_command

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


def test_every_route_answers_whatever_is_asked_as_its_description_says(tmp_path: Path) -> None:
    mesh = FakeMesh()
    state = ServerState(
        ServerSettings(data_dir=tmp_path),
        launcher=mesh,
        inspect=mesh.inspect,
        command=worker_command([]),
        export=export_command,
    )
    state.start("http://testserver")
    app = create_app(state)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    seen: set[str] = set()
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation: Any = found.ok()  # Any: an operation of a schema that is known at run time only
        seen.add(operation.label)

        @settings(max_examples=8, deadline=None, derandomize=True, phases=[Phase.generate])
        @given(case=operation.as_strategy())
        def ask(case: Any) -> None:  # Any: as above
            # Nothing happens meanwhile: whoever waits longer is only cut off by the test's client.
            if isinstance((case.query or {}).get("wait_seconds"), int | float):
                case.query["wait_seconds"] = 0.1
            case.call_and_validate(checks=CHECKS)

        ask()
    state.stop()

    described = json.loads(json.dumps(app.openapi()["paths"]))
    assert len(seen) == sum(len(methods) for methods in described.values()) > 25
