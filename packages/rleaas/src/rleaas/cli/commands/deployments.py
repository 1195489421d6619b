"""`rleaas deploy …`: where environments run, and the manifests that put them there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer
from rlcore import ConfigurationError

from rleaas.cli.command import Asked, command
from rleaas.cli.confirm import Yes, confirm
from rleaas.cli.console import Column, columns, print_json, say
from rleaas.cli.failures import FAILURE
from rleaas.cli.nouns import noun
from rleaas.cli.references import DeploymentRef, EnvOption
from rleaas.cli.secrets import typed_secret
from rleaas.cli.spec import SpecFile, call_with, fields_from, json_objects, objects_from

app = noun("deploy")

FIELDS: Mapping[str, type] = {
    "provider": str,
    "cluster_name": str,
    "env_name": str,
    "image": str,
    "region": str,
    "namespace": str,
    "subscription_id": str,
    "resource_group": str,
    "account_id": str,
    "project_id": str,
    "cluster_label": str,
    "node_pool_name": str,
    "vm_size": str,
    "instance_type": str,
    "machine_type": str,
    "node_count": int,
    "node_group_name": str,
    "network_plugin": str,
    "k8s_version": str,
    "cpu": str,
    "gpu": str,
    "memory": str,
    "scaling": str,
    "min_replicas": int,
    "max_replicas": int,
    "k8s_labels": dict,
    "repo_url": str,
    "repo_branch": str,
    "repo_provider": str,
    "repo_auth_type": str,
    "repo_username": str,
    "repo_token": str,
}
SHOWN = (
    *columns("id", "provider"),
    Column("cluster", "cluster_name"),
    Column("environment", "env_name"),
    *columns("status"),
    Column("application", "app_status"),
    Column("message", "app_status_msg"),
    *columns("image", "region", "namespace"),
    Column("urls", "deployment_urls"),
    Column("created", "created_at"),
    Column("updated", "updated_at"),
)


@command(app, "list", "list --env Bank")
def list_deployments(asked: Asked, environment: EnvOption = None) -> None:
    """List the deployments, or those of an environment, oldest first."""
    asked.rows(
        asked.client.Deployment.list(environment),
        (
            *columns("id", "provider"),
            Column("cluster", "cluster_name"),
            Column("environment", "env_name"),
            *columns("status"),
            Column("application", "app_status"),
        ),
        empty="No deployments. `rleaas deploy create PROVIDER --env ENV` records one.",
    )


@command(app, "get", "get dep_1")
def get(asked: Asked, deployment: DeploymentRef) -> None:
    """Show one deployment."""
    asked.facts(asked.client.Deployment.get(deployment), SHOWN)


@command(
    app,
    "create",
    "create On-Premise --env Bank --cluster lab --image registry.example/bank:1",
    "create --file deployment.yaml",
)
def create(
    asked: Asked,
    provider: Annotated[
        str | None,
        typer.Argument(metavar="PROVIDER", help="`Azure`, `AWS`, `GCP` or `On-Premise`."),
    ] = None,
    environment: EnvOption = None,
    cluster: Annotated[str | None, typer.Option(help="The cluster's name.")] = None,
    image: Annotated[
        str | None, typer.Option(help="The image that serves the environment.")
    ] = None,
    region: Annotated[str | None, typer.Option(help="Where the cluster is.")] = None,
    namespace: Annotated[str | None, typer.Option(help="The namespace in it.")] = None,
    cpu: Annotated[str | None, typer.Option(help="Such as 500m.")] = None,
    memory: Annotated[str | None, typer.Option(help="Such as 1Gi.")] = None,
    gpu: Annotated[str | None, typer.Option(help="How many.")] = None,
    min_replicas: Annotated[int | None, typer.Option(min=0, help="At least so many.")] = None,
    max_replicas: Annotated[int | None, typer.Option(min=1, help="At most so many.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="A label; repeatable.")
    ] = None,
    file: SpecFile = None,
) -> None:
    """Record what is to run where; nothing is applied to a cluster."""
    fields = fields_from(
        file,
        FIELDS,
        {
            "provider": provider,
            "env_name": environment,
            "cluster_name": cluster,
            "image": image,
            "region": region,
            "namespace": namespace,
            "cpu": cpu,
            "memory": memory,
            "gpu": gpu,
            "min_replicas": min_replicas,
            "max_replicas": max_replicas,
            "k8s_labels": labels_from(label),
        },
        required=("provider",),
    )
    asked.facts(call_with(asked.client.Deployment.create, fields), SHOWN)


@command(
    app,
    "manifest",
    "manifest dep_1 > bank.yaml",
    "manifest dep_1 --secret --out bank.yaml",
)
def manifest(
    asked: Asked,
    deployment: DeploymentRef,
    version: Annotated[
        int | None, typer.Option(min=1, help="An older version of the environment.")
    ] = None,
    secret: Annotated[
        bool, typer.Option("--secret", help="With the Secret that tokens are signed with.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write the YAML to this file.")
    ] = None,
) -> None:
    """Print the Kubernetes objects that serve the environment, for `kubectl apply -f -`."""
    made = asked.client.Deployment.manifests(deployment, version, secret=secret)
    if out is not None:
        _write_private(out, made.yaml)
        asked.done({"saved": str(out), "omitted": made.omitted}, f"wrote {out}")
    elif asked.as_json:
        print_json(made)
    else:
        say(made.yaml.rstrip("\n"))


@command(app, "status", "status dep_1 --json")
def status(asked: Asked, deployment: DeploymentRef) -> None:
    """Show how a deployment is; `not_connected` where the platform knows no cluster."""
    asked.facts(
        asked.client.Deployment.sync(deployment),
        (
            *columns("id", "status"),
            Column("application", "app_status"),
            Column("message", "app_status_msg"),
            Column("updated", "updated_at"),
        ),
    )


@command(app, "logs", "logs dep_1", "logs dep_1 --follow --json")
def logs(
    asked: Asked,
    deployment: DeploymentRef,
    cursor: Annotated[int, typer.Option(min=0, help="Leave out so many lines.")] = 0,
    follow: Annotated[bool, typer.Option("--follow", help="Go on until they end.")] = False,
    wait: Annotated[
        float, typer.Option(min=1, max=30, help="Seconds to wait for a line at most.")
    ] = 1.0,
) -> None:
    """Print a deployment's log; with --json, each line is a JSON string."""
    asked.stream(_lines(asked, deployment, cursor, follow=follow, wait=wait), str)


@command(app, "run", "run dep_1")
def run(asked: Asked, deployment: DeploymentRef) -> None:
    """Ask for the application to be deployed; its status says what came of it."""
    asked.facts(asked.client.Deployment.deploy_app(deployment), SHOWN)


@command(app, "set-status", "set-status dep_1 running --message 'applied by hand'")
def set_status(
    asked: Asked,
    deployment: DeploymentRef,
    status: Annotated[str, typer.Argument(metavar="STATUS", help="Such as running or failed.")],
    message: Annotated[str, typer.Option(help="What else there is to say.")] = "",
) -> None:
    """Record how the application is, for whoever applies manifests by hand."""
    asked.facts(asked.client.Deployment.set_app_status(deployment, status, message), SHOWN)


@command(app, "urls", "urls dep_1 --type dashboard")
def urls(
    asked: Asked,
    deployment: DeploymentRef,
    url_type: Annotated[str | None, typer.Option("--type", help="Only those of this type.")] = None,
) -> None:
    """List the URLs of a deployment."""
    asked.rows(
        asked.client.Deployment.get_urls(deployment, url_type=url_type),
        columns("label", "url", "type"),
        empty="No URLs. `rleaas deploy set-urls DEPLOYMENT` gives it some.",
    )


@command(
    app,
    "set-urls",
    'set-urls dep_1 --url \'[{"label": "web", "url": "https://x.example"}]\'',
    "set-urls dep_1 --file urls.yaml",
)
def set_urls(
    asked: Asked,
    deployment: DeploymentRef,
    url: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="A list of label, url and type; @FILE reads it."),
    ] = None,
    file: SpecFile = None,
) -> None:
    """Replace the URLs of a deployment."""
    if (url is None) == (file is None):
        raise ConfigurationError("the URLs are given once", hint="Pass --url or --file.")
    found = json_objects("--url", url) if url is not None else objects_from(file or "", "urls")
    asked.facts(asked.client.Deployment.save_urls(deployment, found), SHOWN)


@command(app, "check", "check dep_1 --timeout 20")
def check(
    asked: Asked,
    deployment: DeploymentRef,
    timeout: Annotated[
        float | None, typer.Option(min=0, max=25, help="Seconds to try at most.")
    ] = None,
    interval: Annotated[
        float | None, typer.Option(min=0.1, max=25, help="Seconds between two tries.")
    ] = None,
) -> int:
    """Have the platform ask each URL; exit with 1 if one does not answer."""
    found = asked.client.Deployment.availability_test(deployment, timeout, interval)
    asked.facts(
        found,
        (
            Column("answered", "acknowledged"),
            *columns("message", "checks"),
            Column("seconds", "elapsed_seconds"),
        ),
    )
    return 0 if found.acknowledged else FAILURE


@command(app, "model", "model dep_1 org/model --endpoint https://model.example/v1")
def model(
    asked: Asked,
    deployment: DeploymentRef,
    model_id: Annotated[str, typer.Argument(metavar="MODEL", help="The model's id.")],
    endpoint: Annotated[str, typer.Option(metavar="URL", help="Where it is reached.")] = "",
    namespace: Annotated[str, typer.Option(help="The namespace that it runs in.")] = "",
    token_stdin: Annotated[
        bool, typer.Option("--token-stdin", help="Read its token from standard input.")
    ] = False,
) -> None:
    """Record where a deployment's model is reached; the token is stored encrypted."""
    token = typed_secret("token") if token_stdin else ""
    asked.facts(
        asked.client.Deployment.configure_model(deployment, model_id, token, namespace, endpoint),
        SHOWN,
    )


@command(app, "probe", "probe dep_1 --prompt 'Say hello.'")
def probe(
    asked: Asked,
    deployment: DeploymentRef,
    url: Annotated[
        str | None, typer.Option(metavar="URL", help="Instead of the one configured.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model to ask for.")] = None,
    prompt: Annotated[str | None, typer.Option(help="The question.")] = None,
) -> int:
    """Have the platform ask a model one question; exit with 1 if it does not answer."""
    found = asked.client.Deployment.probe_model(deployment, url, model, prompt)
    asked.facts(
        found,
        (*columns("ok", "endpoint"), Column("HTTP", "status_code"), *columns("result", "error")),
    )
    return 0 if found.ok else FAILURE


@command(app, "delete", "delete dep_1 --yes")
def delete(asked: Asked, deployment: DeploymentRef, yes: Yes = False) -> None:
    """Forget a deployment; what runs on a cluster is not touched."""
    found = asked.client.Deployment.get(deployment)
    confirm(f"Delete deployment {found.id} on {found.cluster_name or found.provider}?", yes=yes)
    asked.done(asked.client.Deployment.delete(found), f"deleted {found.id}")


def _lines(
    asked: Asked, deployment: str, cursor: int, *, follow: bool, wait: float
) -> Iterator[str]:
    while True:
        found = asked.client.Deployment.stream_logs(deployment, cursor, 20 if follow else wait)
        yield from found.lines
        if found.done or not follow:
            return
        cursor = found.cursor


def labels_from(pairs: list[str] | None) -> dict[str, str] | None:
    """Read KEY=VALUE labels; None where there are none.

    Raises:
        ConfigurationError: one has no key or no `=`.
    """
    if pairs is None:
        return None
    labels: dict[str, str] = {}
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise ConfigurationError(
                f"--label {pair!r} is not KEY=VALUE", hint="Write it as team=lab."
            )
        labels[key] = text
    return labels


def _write_private(path: Path, text: str) -> None:
    # With --secret, it holds what tokens are signed with.
    path.touch(mode=0o600)
    if path.is_file():
        path.chmod(0o600)
    path.write_text(text)
