import csv
import json
from pathlib import Path

import pytest
from rlcore import ConfigurationError, NotFoundError
from rleaas import AsyncClient, Client
from rleaas.cli.main import main
from rleaas.server.store import audit
from rleaas.server.store.audit import ServerItself
from rleaas.server.store.audit_filters import Filters

from .conftest import Running


def tell(running: Running, count: int) -> None:
    with running.server.state.database.write(1) as session:
        for number in range(count):
            audit.record(
                session,
                ServerItself(1, "me"),
                action="tool.registered",
                subject=f"tool:{number}",
                environment_name="E",
            )


def test_records_are_queried_read_and_verified(platform: Running) -> None:
    tell(platform, 3)
    with Client(base_url=platform.server.url) as client:
        events = client.AuditLog.query(environment_name="E", event_types=["tool"], limit=2)
        assert [event.subject for event in events] == ["tool:2", "tool:1"]
        assert events[0]["chain_hash"] == events[0].chain_hash
        assert client.audit_log.get_event(events[0].id) == events[0]
        assert client.AuditLog.query("E", offset=2)[0].subject == "tool:0"
        state = client.AuditLog.verify()
        assert (state.valid, state.records) == (True, events[0].number)
        assert state.head == events[0].chain_hash
        with pytest.raises(NotFoundError):
            client.AuditLog.get_event("evt_none")
        assert "admin" in client.AuditLog.whoami().scopes
        assert client.AuditLog.sso_status().sso_enabled is False


def test_a_query_without_a_limit_reads_page_after_page(platform: Running) -> None:
    tell(platform, 1101)
    with Client(base_url=platform.server.url) as client:
        found = [event.subject for event in client.AuditLog.query(actor="me", limit=0)]
        streamed = [event.subject for event in client.AuditLog.iterate(actor="me")]

    assert found == streamed == [f"tool:{number}" for number in range(1100, -1, -1)]


# defect: A-3
def test_an_export_is_in_the_format_asked_for(platform: Running, tmp_path: Path) -> None:
    """Defect A-3 is gone: `format="csv"` wrote JSON."""
    tell(platform, 2)
    with Client(base_url=platform.server.url) as client:
        as_csv = client.AuditLog.export(tmp_path / "a.csv", "E", format="csv")
        as_json = client.AuditLog.export(str(tmp_path / "deep" / "a.json"))
        with pytest.raises(ConfigurationError, match="exported as 'xml'"):
            client.AuditLog.export(tmp_path / "a.xml", format="xml")

    with Path(as_csv).open(newline="", encoding="utf-8") as file:
        assert [row["subject"] for row in csv.DictReader(file)] == ["tool:0", "tool:1"]
    assert Path(as_csv).is_absolute()
    assert [e["number"] for e in json.loads(Path(as_json).read_text())][:2] == [1, 2]
    assert list(tmp_path.glob("*.xml")) == []


@pytest.mark.anyio
async def test_the_asynchronous_client_does_the_same(platform: Running, tmp_path: Path) -> None:
    tell(platform, 2)
    async with AsyncClient(base_url=platform.server.url) as client:
        found = await client.AuditLog.query(environment_name="E")
        streamed = [event async for event in client.AuditLog.iterate("E")]
        assert found == streamed
        assert len(found) == 2
        await client.AuditLog.export(tmp_path / "a.json", "E")
        assert (await client.AuditLog.verify()).valid
    assert len(json.loads((tmp_path / "a.json").read_text())) == 2


@pytest.mark.anyio
async def test_governance_is_configured_merged_and_taken_back(platform: Running) -> None:
    platform.register("A")
    with Client(base_url=platform.server.url) as client:
        client.AuditLog.configure_governance(data_retention_days=9, max_risk_threshold=0.5)
        applied = client.AuditLog.configure_governance("A", pii_fields=("email",))
        assert applied.config == {"pii_fields": ["email"]}
        assert client.AuditLog.get_governance("A").data_retention_days == 9
        assert client.AuditLog.get_governance()["max_risk_threshold"] == 0.5
    async with AsyncClient(base_url=platform.server.url) as other:
        await other.AuditLog.configure_governance(reset=["data_retention_days"])
        found = await other.AuditLog.get_governance()
        assert found.data_retention_days is None
        assert found.configs == {"A": {"pii_fields": ["email"]}}


def test_the_command_lists_exports_and_verifies(
    platform: Running, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(platform, 2)
    server = ["--base-url", platform.server.url]

    assert main(["audit", "list", "--type", "tool", "--env", "E", "--json", *server]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [event["subject"] for event in listed] == ["tool:1", "tool:0"]
    assert main(["audit", "list", *server]) == 0
    assert "tool.registered" in capsys.readouterr().out
    assert main(["audit", "export", str(tmp_path / "a.csv"), *server]) == 0
    assert (tmp_path / "a.csv").read_text().startswith("number,timestamp,id,type")
    capsys.readouterr()
    assert main(["audit", "verify", "--head", listed[1]["chain_hash"], *server]) == 0
    assert "holds together" in capsys.readouterr().out
    assert main(["audit", "verify", "--head", "0", *server]) == 1
    assert "does not have the head" in capsys.readouterr().out

    with platform.server.state.database.write(1) as session:
        audit.page(session, Filters(subject="tool:0"))[0].actor = "nobody"
    assert main(["audit", "verify", "--json", *server]) == 1
    assert json.loads(capsys.readouterr().out)["valid"] is False
