"""`rleaas webhook …`: who is told what happens."""

from __future__ import annotations

from typing import Annotated

import typer

from rleaas.cli.command import Asked, command
from rleaas.cli.confirm import Yes, confirm
from rleaas.cli.console import Column, columns, print_facts, print_json
from rleaas.cli.failures import FAILURE
from rleaas.cli.names import completion
from rleaas.cli.nouns import noun
from rleaas.cli.references import WebhookRef
from rleaas.cli.secrets import typed_secret

app = noun("webhook")

SHOWN = (
    *columns("id", "url", "events"),
    Column("job", "job_id"),
    Column("active", "is_active"),
    Column("created", "created_at"),
)
_DELIVERY = (
    *columns("id", "event", "kind", "status", "attempts"),
    Column("HTTP", "status_code"),
    *columns("error"),
    Column("due", "due_at"),
    Column("delivered", "delivered_at"),
)

Job = Annotated[
    str | None,
    typer.Option(
        "--job",
        metavar="JOB_ID",
        help="Only what happens to this job.",
        autocompletion=completion("training_job"),
    ),
]


@command(app, "list", "list --job job_1")
def list_webhooks(asked: Asked, job: Job = None) -> None:
    """List the webhooks, or those of a job."""
    asked.rows(
        asked.client.Webhook.list(job),
        SHOWN,
        empty="No webhooks. `rleaas webhook register URL` makes one.",
    )


@command(app, "get", "get wh_1")
def get(asked: Asked, webhook: WebhookRef) -> None:
    """Show one webhook, without its secret."""
    asked.facts(asked.client.Webhook.get(webhook), SHOWN)


@command(
    app,
    "register",
    "register https://example.com/hook --event job_complete",
    "register https://example.com/hook --secret-stdin < secret.txt",
)
def register(
    asked: Asked,
    url: Annotated[str, typer.Argument(metavar="URL", help="https, and public.")],
    event: Annotated[
        list[str] | None,
        typer.Option(help="Such as job_complete or checkpoint_saved; repeatable [all]."),
    ] = None,
    job: Job = None,
    secret_stdin: Annotated[
        bool,
        typer.Option("--secret-stdin", help="Read what signs from standard input [a new one]."),
    ] = False,
) -> None:
    """Let the platform tell a URL what happens; the secret that signs is printed this once."""
    secret = typed_secret("secret") if secret_stdin else None
    made = asked.client.Webhook.register(url, event, job_id=job, secret=secret)
    if asked.as_json:
        print_json(made)
        return
    print_facts(
        {"id": made.id, "url": made.url, "events": made.events, "job": made.job_id}
        | {"secret": made.secret}
    )


@command(app, "deliveries", "deliveries wh_1 --limit 20")
def deliveries(
    asked: Asked,
    webhook: WebhookRef,
    limit: Annotated[int, typer.Option(min=1, help="At most so many.")] = 100,
) -> None:
    """List what was delivered to a webhook and what is to be, newest first."""
    asked.rows(
        asked.client.Webhook.deliveries(webhook, limit), _DELIVERY, empty="Nothing was delivered."
    )


@command(app, "test", "test wh_1")
def try_out(asked: Asked, webhook: WebhookRef) -> int:
    """Send a test event now; exit with 1 if it was not taken."""
    found = asked.client.Webhook.test(webhook)
    asked.facts(found, _DELIVERY)
    return 0 if found.status == "delivered" else FAILURE


@command(app, "delete", "delete wh_1 --yes")
def delete(asked: Asked, webhook: WebhookRef, yes: Yes = False) -> None:
    """Let the platform tell a webhook nothing any more."""
    found = asked.client.Webhook.get(webhook)
    confirm(f"Delete webhook {found.id} ({found.url})?", yes=yes)
    asked.client.Webhook.delete(found.id)
    asked.done({"id": found.id, "deleted": True}, f"deleted {found.id}")
