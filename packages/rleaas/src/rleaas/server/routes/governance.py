"""Routes about how data is governed."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends
from sqlalchemy import select

from rleaas.server.access import Admin, Caller, require_user
from rleaas.server.failures import documented
from rleaas.server.routes.requests import IdempotencyHeader, idempotency
from rleaas.server.rules import governance as rules
from rleaas.server.store import audit, environments, governance, once
from rleaas.server.store.tables import EnvironmentRow, JsonObject

router = APIRouter(
    tags=["governance"], dependencies=[Depends(require_user)], responses=documented(401)
)


@router.post("/governance/configure", responses=documented(403, 404, 409, 422))
def configure_governance(
    caller: Admin,
    body: Annotated[
        JsonObject,
        Body(
            examples=[
                {
                    "environment_name": "CartPole",
                    "data_retention_days": 90,
                    "pii_fields": ["email"],
                    "alert_thresholds": {"avg_reward_drop": 50},
                    "stop_on_alert": True,
                }
            ]
        ),
    ],
    idempotency_key: IdempotencyHeader = None,
) -> JsonObject:
    """Set how data is treated, for one environment or for the platform; the rest stays as it is.

    For admins, as it decides how long the audit chain is kept. `data_retention_days` removes what
    is older, `pii_fields` masks fields of rollouts before they are stored, `alert_thresholds` raise
    events, and `stop_on_alert` ends the job that raises one. null takes a setting back.
    """
    name = body.pop("environment_name", None)
    key = idempotency("governance", idempotency_key, {"environment_name": name, **body})
    with caller.write() as session:
        earlier = once.earlier(session, key)
        if earlier is not None:
            return earlier
        environment = None if name in (None, "") else environments.find(session, str(name))
        config = governance.configure(session, environment, body)
        label = None if environment is None else environment.name
        audit.record(
            session,
            caller,
            action="governance.configured",
            subject="governance" if environment is None else f"environment:{environment.id}",
            environment_name=label,
            data={"given": body},
        )
        reply: JsonObject = {
            **rules.DEFAULTS,
            **config,
            "success": True,
            "environment_name": label,
            "config": config,
        }
        once.keep(session, key, "governance", reply)
    return reply


@router.get("/governance", responses=documented(404))
def get_governance(caller: Caller, environment_name: str = "") -> JsonObject:
    """The platform's settings and those of each environment; or what holds for one of them."""
    organisation = caller.principal.organisation_id
    with caller.read() as session:
        if environment_name:
            row = environments.find(session, environment_name)
            return {
                **governance.effective(session, organisation, row.id),
                "environment_name": row.name,
                "config": governance.own(session, row.id),
            }
        own = governance.of_environments(session, organisation)
        names = session.execute(
            select(EnvironmentRow.id, EnvironmentRow.name).where(EnvironmentRow.id.in_(own))
        )
        configs = {name: own[environment_id] for environment_id, name in names}
        platform = governance.own(session, None)
    return {**rules.DEFAULTS, **platform, "configs": configs, "count": len(configs)}
