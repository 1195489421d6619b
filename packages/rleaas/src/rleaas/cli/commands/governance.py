"""`rleaas governance …`: how data is treated."""

from __future__ import annotations

from typing import Annotated

import typer
from rlcore import ConfigurationError

from rleaas.cli.command import Asked, command
from rleaas.cli.console import Column, columns
from rleaas.cli.nouns import noun
from rleaas.cli.references import EnvOption
from rleaas.cli.spec import settings_from

app = noun("governance")

SHOWN = (
    Column("environment", "environment_name"),
    Column("days kept", "data_retention_days"),
    Column("masked fields", "pii_fields"),
    Column("thresholds", "alert_thresholds"),
    Column("compliance", "compliance_tags"),
    *columns("config"),
)


@command(app, "get", "get --env Bank")
def get(asked: Asked, environment: EnvOption = None) -> None:
    """Show the platform's settings, or what holds for an environment."""
    asked.facts(asked.client.AuditLog.get_governance(environment), SHOWN)


@command(
    app,
    "set",
    "set --retention-days 90 --mask iban --mask email",
    "set --env Bank --threshold pass_rate_min=0.8 --set stop_on_alert=true",
)
def set_governance(
    asked: Asked,
    environment: EnvOption = None,
    retention_days: Annotated[
        int | None,
        typer.Option(min=1, help="Rollouts, logs, events and records that are older go."),
    ] = None,
    mask: Annotated[
        list[str] | None,
        typer.Option(metavar="FIELD", help="Mask this field of rollouts; repeatable."),
    ] = None,
    threshold: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=NUMBER",
            help="avg_reward_drop, pass_rate_min or compliance_fail_rate_max; repeatable.",
        ),
    ] = None,
    compliance_tag: Annotated[
        list[str] | None,
        typer.Option(metavar="TAG", help="A tag of verifiers that check compliance; repeatable."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Another setting; repeatable."),
    ] = None,
    reset: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Take this setting back, such as pii_fields."),
    ] = None,
) -> None:
    """Set what is given, for an environment or the platform; what is left out stays.

    It asks for a key with the scope admin.
    """
    thresholds = None if threshold is None else _numbers(settings_from("--threshold", threshold))
    extra = settings_from("--set", setting)
    given = (retention_days, mask, thresholds, compliance_tag, setting, reset)
    if all(one is None for one in given):
        raise ConfigurationError(
            "there is nothing to set", hint="`rleaas governance set --help` names the options."
        )
    asked.facts(
        asked.client.AuditLog.configure_governance(
            environment,
            retention_days,
            mask,
            thresholds,
            compliance_tag,
            reset=reset or (),
            idempotency_key=None,
            **extra,
        ),
        SHOWN,
    )


def _numbers(settings: dict[str, object]) -> dict[str, float | None]:
    numbers: dict[str, float | None] = {}
    for name, value in settings.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise ConfigurationError(
                f"--threshold {name} is {value!r}, not a number",
                hint="Write it as pass_rate_min=0.8; null takes it back.",
            )
        numbers[name] = value
    return numbers
