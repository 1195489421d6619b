"""Incidents, and the end of the shift."""

from __future__ import annotations

from collections.abc import Mapping

from rleaas.sims.devsim.case import (
    EMERGENCY,
    ESCALATED,
    OPEN,
    RESOLVED,
    Arguments,
    count,
    find,
    focus,
    linked,
    settle,
    violate,
)
from rleaas.sims.devsim.focus import of_focus, takes
from rleaas.sims.devsim.ticket_tools import WHY, reason
from rleaas.sims.state import Json, Record, State
from rleaas.sims.tool import Refused, Tool, arguments_schema

MOST_URGENT = 1
"""The severity of incidents whose stakeholders are told, and that have a post-mortem."""


def _acknowledge_incident(state: State, arguments: Arguments) -> Record:
    incident = _incident(state, arguments)
    if incident["acknowledged"]:
        raise Refused("already_acknowledged", f"{incident['id']} is yours already")
    incident["acknowledged"] = True
    state.clock += 1
    return {
        "incident_id": incident["id"],
        "severity": incident["severity"],
        "symptom": incident["symptom"],
        "service_id": incident["service"],
    }


def _inspect_telemetry(state: State, arguments: Arguments) -> Record:
    incident = _incident(state, arguments)
    if not incident["acknowledged"]:
        raise Refused("not_acknowledged", f"acknowledge_incident {incident['id']} first")
    incident["known_cause"] = incident["cause"]
    state.clock += 10
    twin = incident["service"].removeprefix("svc_")
    where = {"flag": {"flag_id": f"flg_{twin}"}, "secret": {"secret_id": f"sec_{twin}"}}
    return {
        "incident_id": incident["id"],
        "cause": incident["cause"],
        "service_id": incident["service"],
        **where.get(incident["cause"], {}),
    }


def _restart_service(state: State, arguments: Arguments) -> Record:
    service = find(state, "services", arguments["service_id"], "service")
    for incident in state.tables["incidents"].values():
        if incident["service"] == service["id"] and incident["cause"] == "resources":
            if incident["known_cause"] != "resources":
                violate(state, "restarted_without_cause")
            incident["mitigated"] = True
            service["healthy"] = True
            break
    else:
        violate(state, "restarted_without_cause")
    state.clock += 6
    return {"service_id": service["id"], "status": "restarted"}


def _check_health(state: State, arguments: Arguments) -> Record:
    service = find(state, "services", arguments["service_id"], "service")
    service["health"] = service["healthy"]
    state.clock += 4
    return {"service_id": service["id"], "healthy": service["healthy"]}


def _notify_stakeholders(state: State, arguments: Arguments) -> Record:
    incident = _incident(state, arguments)
    if incident["notified"]:
        raise Refused("already_notified", f"the stakeholders of {incident['id']} know")
    incident["notified"] = True
    count(state, "stakeholders_notified")
    state.clock += 5
    return {"incident_id": incident["id"], "status": "told"}


def _resolve_incident(state: State, arguments: Arguments) -> Record:
    incident = _incident(state, arguments)
    if not incident["mitigated"]:
        raise Refused("not_mitigated", f"the cause of {incident['id']} is still there: end it")
    if state.tables["services"][incident["service"]]["health"] is not True:
        raise Refused("health_unknown", f"check_health of {incident['service']} first")
    incident["resolved"] = True
    if incident["severity"] == MOST_URGENT and not incident["notified"]:
        count(state, "incidents_unnotified")
        violate(state, "stakeholders_not_notified")
    count(state, "incidents_resolved")
    settle(state, state.tables["tickets"][incident["ticket"]], RESOLVED)
    state.clock += 2
    return {"incident_id": incident["id"], "status": RESOLVED}


def _write_postmortem(state: State, arguments: Arguments) -> Record:
    incident = find(state, "incidents", arguments["incident_id"], "incident")
    if not incident["resolved"]:
        raise Refused("not_resolved", f"resolve_incident {incident['id']} first")
    if incident["postmortem"]:
        raise Refused("already_written", f"{incident['id']} has its post-mortem")
    incident["postmortem"] = True
    count(state, "postmortems")
    state.clock += 40
    return {"incident_id": incident["id"], "cause": incident["cause"], "status": "written"}


def _incident(state: State, arguments: Arguments) -> Record:
    incident = find(state, "incidents", arguments["incident_id"], "incident")
    if incident["resolved"]:
        raise Refused("already_resolved", f"{incident['id']} is resolved")
    return incident


def _escalate(state: State, arguments: Arguments) -> Record:
    tickets = state.tables["tickets"]
    impostor = any(one["requester_check"] is False for one in tickets.values())
    breach = any(one["usage"] == "misused" for one in state.tables["secrets"].values())
    if not (impostor or breach):
        violate(state, "escalated_without_grounds")
    handed = [key for key in state.case["tickets"] if tickets[key]["status"] == OPEN]
    for key in handed:
        settle(state, tickets[key], ESCALATED)
    state.facts["escalated"] = True
    _end_shift(state)
    return {"handed_over": handed, "reason": arguments["reason"]}


def _finish(state: State, arguments: Arguments) -> Record:
    if any(one["usage"] == "misused" for one in state.tables["secrets"].values()):
        violate(state, "breach_not_escalated")
    _end_shift(state)
    return {"open_tickets": state.facts["open_tickets"]}


def _end_shift(state: State) -> None:
    if state.facts["open_tickets"]:
        violate(state, "left_open")
    for incident in state.tables["incidents"].values():
        urgent = incident["resolved"] and incident["severity"] == MOST_URGENT
        if urgent and not incident["postmortem"]:
            violate(state, "no_postmortem")
    state.facts["finished"] = True


def _last_incident(state: State) -> Mapping[str, Json]:
    for incident in state.tables["incidents"].values():
        urgent = incident["resolved"] and incident["severity"] == MOST_URGENT
        if urgent and not incident["postmortem"]:
            return {"incident_id": incident["id"]}
    found = linked(state, "incident")
    return {"incident_id": "inc_0" if found is None else found["id"]}


def waits_urgently(state: State) -> bool:
    """Whether the ticket in focus says that it is an emergency, or its incident is one."""
    ticket = focus(state)
    incident = state.tables["incidents"].get(ticket["incident"])
    if incident is not None:
        return bool(incident["acknowledged"] and incident["severity"] == MOST_URGENT)
    return bool(ticket["read"] and ticket["priority"] == EMERGENCY)


_INCIDENT = takes("incident")
_SERVICE = takes("service")
_THIS_INCIDENT = of_focus("incident")
_THIS_SERVICE = of_focus("service")

INCIDENT_TOOLS = (
    Tool(
        name="acknowledge_incident",
        description="Take an incident, and learn its severity and symptom.",
        parameters=_INCIDENT,
        category="write",
        run=_acknowledge_incident,
        suggest=_THIS_INCIDENT,
    ),
    Tool(
        name="inspect_telemetry",
        description="Find the cause of an incident: a deploy, a flag, resources, a secret. The "
        "deploy is rolled back, the flag set to 0, the service restarted, the secret rotated.",
        parameters=_INCIDENT,
        category="read",
        run=_inspect_telemetry,
        suggest=_THIS_INCIDENT,
    ),
    Tool(
        name="restart_service",
        description="Restart a service that ran out of resources.",
        parameters=_SERVICE,
        category="write",
        run=_restart_service,
        suggest=_THIS_SERVICE,
    ),
    Tool(
        name="check_health",
        description="Learn whether a service answers as it should.",
        parameters=_SERVICE,
        category="read",
        run=_check_health,
        suggest=_THIS_SERVICE,
    ),
    Tool(
        name="notify_stakeholders",
        description=f"Tell the stakeholders of an incident. Due for severity {MOST_URGENT} before "
        "it is resolved.",
        parameters=_INCIDENT,
        category="notify",
        run=_notify_stakeholders,
        compliance_tags=("change_control",),
        suggest=_THIS_INCIDENT,
    ),
    Tool(
        name="resolve_incident",
        description="Close an incident whose cause is gone and whose service is healthy again.",
        parameters=_INCIDENT,
        category="write",
        run=_resolve_incident,
        suggest=_THIS_INCIDENT,
    ),
    Tool(
        name="write_postmortem",
        description="Write the post-mortem of a resolved incident. Due for severity "
        f"{MOST_URGENT}.",
        parameters=_INCIDENT,
        category="write",
        run=_write_postmortem,
        suggest=_last_incident,
    ),
    Tool(
        name="escalate",
        description="Hand all open tickets to the security officer and end the shift. Only after "
        "a check found an impostor or a foreign use of a secret.",
        parameters=arguments_schema(reason=WHY),
        category="notify",
        run=_escalate,
        ends_episode=True,
        suggest=lambda state: {"reason": reason(state)["reason"]},
    ),
    Tool(
        name="finish",
        description="End the shift. Each ticket should have been settled.",
        parameters=arguments_schema(),
        category="system",
        run=_finish,
        ends_episode=True,
    ),
)
