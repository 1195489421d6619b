"""The audit chain: query, export, verify."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path

from rlcore import ConfigurationError

from rleaas._binding import D, Resource, call, stream
from rleaas._flow import request as build
from rleaas._flow.decode import read, read_list
from rleaas._flow.retry import ask, fetch
from rleaas._flow.wire import Flow, Item, Save, Stream
from rleaas.models import AuditEvent, ChainState, Governance, Identity, ReportKey, SsoStatus
from rleaas.resources import identity_routes
from rleaas.resources.environment_routes import EnvironmentRef, reference
from rleaas.resources.pages import PAGE, collect
from rleaas.resources.references import IdRef, id_of, kinds_of, texts_of

Time = datetime | str
FORMATS = ("json", "csv")


class AuditLogClient(Resource[D]):
    """The audit records of the organisation."""

    @call
    def report_key(self) -> Flow[ReportKey]:
        """Return the public key with which `rleaas.verify_report` checks what the platform signed.

        Keep it where nobody who could alter a report may alter it too.
        """
        request = build.get("/api/report-key")
        reply = yield from ask(request, self._context)
        return read(ReportKey, request, reply)

    @call
    def query(
        self,
        environment_name: EnvironmentRef | None = None,
        event_types: Sequence[str] | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        limit: int | None = 100,
        offset: int = 0,
        job_id: IdRef | None = None,
        agent_id: IdRef | None = None,
        *,
        actor: str | None = None,
        outcome: str | None = None,
        subject: str | None = None,
    ) -> Flow[list[AuditEvent]]:
        """Return records, newest first.

        Args:
            environment_name: those about this environment.
            event_types: types such as `tool.registered`, or what comes before their dot.
            start_time: from then on; a time without a zone is in UTC.
            end_time: until then.
            limit: how many at most; 0 or None is all of them.
            offset: how many to skip.
            job_id: those about this job.
            agent_id: those about this agent.
            actor: what this one did.
            outcome: `allowed` or `denied`.
            subject: those about this subject, such as `tool:tool_1`.

        Raises:
            InvalidRequestError: the platform refuses a value; it names it.
        """
        params = _params(environment_name, event_types, start_time, end_time, job_id, agent_id) | {
            "actor": actor,
            "outcome": outcome,
            "subject": subject,
            "offset": offset or None,
        }
        return (
            yield from collect(
                AuditEvent, "/api/audit", params, "events", self._context, limit=limit or None
            )
        )

    @stream
    def iterate(
        self,
        environment_name: EnvironmentRef | None = None,
        event_types: Sequence[str] | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        *,
        job_id: IdRef | None = None,
        agent_id: IdRef | None = None,
        actor: str | None = None,
        outcome: str | None = None,
        subject: str | None = None,
    ) -> Stream[AuditEvent]:
        """Yield all records that `query` would return, asking for them as they are read."""
        params = _params(environment_name, event_types, start_time, end_time, job_id, agent_id) | {
            "actor": actor,
            "outcome": outcome,
            "subject": subject,
        }
        cursor: str | None = None
        while True:
            request = build.get("/api/audit", {**params, "limit": PAGE, "cursor": cursor})
            reply = yield from ask(request, self._context)
            events, cursor = read_list(AuditEvent, request, reply, "events")
            for event in events:
                yield Item(event)
            if cursor is None:
                return

    @call
    def get_event(self, event_id: IdRef) -> Flow[AuditEvent]:
        """Return one record with its place in the chain.

        Raises:
            NotFoundError: there is none.
        """
        text = id_of(event_id, "audit event")
        request = build.get(
            build.path("/api/audit/{}", text, what="audit event id"),
            kind="audit_event",
            ref=text,
        )
        reply = yield from ask(request, self._context)
        return read(AuditEvent, request, reply)

    @call
    def export(
        self,
        path: str | Path,
        environment_name: EnvironmentRef | None = None,
        start_time: Time | None = None,
        end_time: Time | None = None,
        format: str = "json",
        *,
        event_types: Sequence[str] | None = None,
        timeout: float | None = None,
    ) -> Flow[str]:
        """Write all records to a file in the order of the chain, and return its absolute path.

        The file appears when it is complete; no more than a part of it is in memory.

        Args:
            path: the file.
            environment_name: only records about this environment.
            start_time: from then on.
            end_time: until then.
            format: `json`, an array of records, or `csv`.
            event_types: only these types.
            timeout: seconds without a part of it, instead of the client's.

        Raises:
            ConfigurationError: there is no such format, or the file cannot be written.
        """
        if format not in FORMATS:
            raise ConfigurationError(
                f"the audit log cannot be exported as {format!r}",
                hint=f"Use {' or '.join(FORMATS)}.",
            )
        target = Path(path).expanduser().absolute()
        params = _params(environment_name, event_types, start_time, end_time, None, None)
        request = build.get("/api/audit/export", {**params, "format": format}, timeout=timeout)
        yield from fetch(Save(request, target, None), self._context)
        return str(target)

    @call
    def verify(self) -> Flow[ChainState]:
        """Let the platform check the whole chain, and return what it found."""
        request = build.get("/api/audit/verify")
        reply = yield from ask(request, self._context)
        return read(ChainState, request, reply)

    @call
    def configure_governance(
        self,
        /,
        environment_name: EnvironmentRef | None = None,
        data_retention_days: int | None = None,
        pii_fields: Sequence[str] | None = None,
        alert_thresholds: Mapping[str, float | None] | None = None,
        compliance_tags: Sequence[str] | None = None,
        *,
        reset: Sequence[str] = (),
        idempotency_key: str | None = None,
        **extra: object,
    ) -> Flow[Governance]:
        """Set how data is treated, and return what is set now; what is left out stays.

        Args:
            environment_name: for this environment; without one, for the platform.
            data_retention_days: rollouts, logs, events and audit records that are older are
                removed.
            pii_fields: fields of these names are masked in rollouts before they are stored.
            alert_thresholds: `avg_reward_drop`, `pass_rate_min` and `compliance_fail_rate_max`;
                whatever crosses one raises an event, once in a job's life. The first is how far the
                running mean of returns may fall below its highest since the tenth episode.
            compliance_tags: the tags of verifiers that check compliance.
            reset: the names of settings to take back.
            idempotency_key: with the same key, it is done once.
            extra: further settings; `stop_on_alert=True` ends the job that raises an alert, and
                `checkpoint_retention={"best": 5, "last": 10, "every": 10, "states": 2}` says which
                checkpoints of a training stay.

        Raises:
            PermissionDeniedError: the key has not the scope `admin`.
            InvalidRequestError: a setting cannot be used; it is named.
        """
        given: dict[str, object] = {
            "environment_name": None if environment_name is None else reference(environment_name),
            "data_retention_days": data_retention_days,
            "pii_fields": None if pii_fields is None else texts_of(pii_fields, "fields"),
            "alert_thresholds": None if alert_thresholds is None else dict(alert_thresholds),
            "compliance_tags": None
            if compliance_tags is None
            else texts_of(compliance_tags, "tags"),
        }
        body = {name: value for name, value in given.items() if value is not None}
        request = build.post(
            "/governance/configure",
            {**body, **extra, **dict.fromkeys(texts_of(reset, "settings"))},
            key=self._context.new_key() if idempotency_key is None else idempotency_key,
        )
        reply = yield from ask(request, self._context)
        return read(Governance, request, reply)

    @call
    def get_governance(self, environment_name: EnvironmentRef | None = None) -> Flow[Governance]:
        """Return the platform's settings, or what holds for an environment."""
        name = None if environment_name is None else reference(environment_name)
        request = build.get("/governance", {"environment_name": name})
        reply = yield from ask(request, self._context)
        return read(Governance, request, reply)

    @call
    def whoami(self) -> Flow[Identity]:
        """Return who the client's key belongs to, and what it may do."""
        return (yield from identity_routes.me(self._context))

    @call
    def sso_status(self) -> Flow[SsoStatus]:
        """Return whether people sign in elsewhere."""
        return (yield from identity_routes.sso_status(self._context))


def _params(
    environment_name: EnvironmentRef | None,
    event_types: Sequence[str] | None,
    start_time: Time | None,
    end_time: Time | None,
    job_id: IdRef | None,
    agent_id: IdRef | None,
) -> dict[str, str | int | None]:
    types = kinds_of(event_types)
    return {
        "environment_name": None if environment_name is None else reference(environment_name),
        "event_types": ",".join(types) if types else None,
        "start_time": _time(start_time),
        "end_time": _time(end_time),
        "job_id": None if job_id is None else id_of(job_id, "job"),
        "agent_id": None if agent_id is None else id_of(agent_id, "agent"),
    }


def _time(moment: Time | None) -> str | None:
    return moment.isoformat() if isinstance(moment, datetime) else moment
