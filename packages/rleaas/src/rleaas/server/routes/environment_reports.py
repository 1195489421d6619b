"""Routes that tell about environments from what is on record: risks, addresses."""

from fastapi import APIRouter, Depends
from sqlalchemy import or_, select
from sqlalchemy.orm import Session

from rleaas.server.access import Caller, require_user
from rleaas.server.failures import documented
from rleaas.server.render import moment
from rleaas.server.routes.bodies import JsonObject
from rleaas.server.rules import risk
from rleaas.server.rules.json_values import fields, items
from rleaas.server.store import audit, environments
from rleaas.server.store.tables import AuditRow, DeploymentRow, EnvironmentRow, GovernanceRow

router = APIRouter(
    tags=["environments"], dependencies=[Depends(require_user)], responses=documented(401)
)


@router.get("/environments/{env}/risk-report", responses=documented(404))
def get_risk_report(env: str, caller: Caller) -> JsonObject:
    """What was refused or raised an alert around an environment, and the thresholds in force."""
    with caller.read() as session:
        row = environments.find(session, env)
        return risk.report(
            row.name, risk.thresholds(*_governance(session, row)), _found(session, row)
        )


@router.get("/api/environments/{env}/public-urls", responses=documented(404))
def list_public_urls(env: str, caller: Caller) -> JsonObject:
    """The URLs that deployments of an environment have been given."""
    with caller.read() as session:
        row = environments.find(session, env)
        deployments = session.scalars(
            select(DeploymentRow)
            .where(DeploymentRow.environment_id == row.id)
            .order_by(DeploymentRow.created_at, DeploymentRow.id)
        ).all()
    urls = [
        {
            **fields(url),
            "deployment_id": deployment.id,
            "cluster_name": deployment.cluster_name,
            "env_name": row.name,
        }
        for deployment in deployments
        for url in items(deployment.record.get("deployment_urls"))
    ]
    return {"env_name": row.name, "count": len(urls), "urls": urls}


def _governance(session: Session, row: EnvironmentRow) -> list[JsonObject]:
    """The configuration of the platform, then that of the environment."""
    found = session.scalars(
        select(GovernanceRow).where(
            or_(GovernanceRow.environment_id.is_(None), GovernanceRow.environment_id == row.id)
        )
    ).all()
    ordered = sorted(found, key=lambda one: one.environment_id is not None)
    return [one.config for one in ordered]


def _found(session: Session, row: EnvironmentRow) -> list[risk.Violation]:
    denied = select(AuditRow).where(
        AuditRow.environment_name == row.name,
        or_(AuditRow.outcome == audit.DENIED, AuditRow.action.startswith("alert.")),
    )
    return [
        risk.Violation(
            at=moment(record.at),
            event_id=record.event_id,
            action=record.action,
            actor=record.actor,
            subject=record.subject,
            severity=risk.severity_of(record.data),
            data=record.data,
        )
        for record in session.scalars(denied.order_by(AuditRow.number.desc()))
    ]
