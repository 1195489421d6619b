"""`rleaas serve`."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rlcore import ConfigurationError
from rlcore.environ import variable

if TYPE_CHECKING:
    from rleaas.server.jobs.ray_cluster import RayCluster


class Executor(enum.StrEnum):
    """Where jobs run."""

    LOCAL = "local"
    RAY = "ray"


def serve(
    host: Annotated[
        str, typer.Option(help="The interface to listen on; loopback only, unless you say so.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes a free one.")] = 8000,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data",
            metavar="DIR",
            file_okay=False,
            help="Where records and checkpoints are kept [the user's data directory].",
        ),
    ] = None,
    workers: Annotated[
        int,
        typer.Option("--max-jobs", "--workers", min=1, help="How many jobs run at the same time."),
    ] = 2,
    max_restarts: Annotated[
        int,
        typer.Option(
            min=0,
            help="How often a job goes on from its last checkpoint after its worker has died.",
        ),
    ] = 3,
    worker_patience: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="How long jobs go on when the server was killed and does not come back; 0 ends "
            "them with it.",
        ),
    ] = 3600.0,
    job_memory: Annotated[
        float | None,
        typer.Option(min=1, metavar="MIB", help="How much memory a job may use [no limit]."),
    ] = None,
    require_key: Annotated[
        bool,
        typer.Option(
            "--require-key", help="Let nobody in without a key; `rleaas keys bootstrap` makes one."
        ),
    ] = False,
    database_url: Annotated[
        str | None,
        typer.Option(
            "--database-url",
            metavar="URL",
            help="postgresql://USER@HOST/NAME instead of a SQLite file [RLEAAS_DATABASE_URL].",
        ),
    ] = None,
    artifacts_url: Annotated[
        str | None,
        typer.Option(
            "--artifacts-url",
            metavar="URL",
            help="Where the files of checkpoints lie instead of the data directory, such as "
            "s3://BUCKET/PREFIX with the extra `s3` [RLEAAS_ARTIFACTS_URL].",
        ),
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-host",
            metavar="HOST[:PORT]",
            help="A host that the server may ask though it is not public; repeatable.",
        ),
    ] = None,
    allow_code: Annotated[
        bool,
        typer.Option(
            "--allow-code",
            help="Let every organisation register code (python://, gym://module:ID, unix://), "
            "which runs in the server's account; else only the operator's own, `default`, may "
            "[RLEAAS_ALLOW_CODE=1].",
        ),
    ] = False,
    judge_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The language model's endpoint that llm_judge verifiers ask, in OpenAI's "
            "protocol, or anthropic:URL; its key is in RLEAAS_JUDGE_KEY.",
        ),
    ] = None,
    judge_model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The model there, whatever model a verifier names."),
    ] = None,
    agent_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The language model's endpoint that plays evaluations of the agent llm, in "
            "OpenAI's protocol, or anthropic:URL; its key is in RLEAAS_AGENT_KEY. Requests may "
            "name another one, which is public or allowed by --allow-host, and gets no key.",
        ),
    ] = None,
    agent_model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The model there, where an evaluation names none."),
    ] = None,
    reward_files: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Reward functions for clients that send the path of one without its file.",
        ),
    ] = None,
    idle: Annotated[
        float,
        typer.Option(
            min=0, metavar="MINUTES", help="Stop environments that nobody uses so long; 0 never."
        ),
    ] = 60.0,
    drain_timeout: Annotated[
        float,
        typer.Option(
            min=0,
            metavar="SECONDS",
            help="How long requests that have begun may go on when it is told to stop.",
        ),
    ] = 10.0,
    executor: Annotated[
        Executor,
        typer.Option(help="Where jobs run: as processes of this machine, or in a Ray cluster."),
    ] = Executor.LOCAL,
    ray_address: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="The Ray cluster's dashboard, as http://host:8265 [RAY_API_SERVER_ADDRESS].",
        ),
    ] = None,
    ray_cpus: Annotated[
        float, typer.Option(min=0, help="What each job takes of the cluster's processors.")
    ] = 1.0,
    ray_gpus: Annotated[
        float, typer.Option(min=0, help="What each job takes of its graphics processors.")
    ] = 0.0,
    ray_resource: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=AMOUNT", help="And of its custom resources; repeatable."),
    ] = None,
    ray_runtime_env: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help="Ray's runtime environment of the jobs, as JSON.",
        ),
    ] = None,
    ray_python: Annotated[
        str,
        typer.Option(
            metavar="COMMAND", help="The nodes' Python, which has rleaas[train,ray] installed."
        ),
    ] = "python",
    public_url: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Where workers on other hosts reach this server [where it listens]."
        ),
    ] = None,
    environments_host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS",
            help="The address of this machine at which environments are served to other hosts.",
        ),
    ] = "127.0.0.1",
    log_format: Annotated[
        str | None,
        typer.Option(
            "--log-format",
            metavar="text|json",
            help="Write each request to standard error in this format [RLEAAS_LOG_FORMAT, else "
            "only warnings and errors, as text].",
        ),
    ] = None,
    allow_insecure: Annotated[
        bool,
        typer.Option(
            "--allow-insecure", help="Let other machines in even when no key is asked of them."
        ),
    ] = False,
) -> int:
    """Run the control plane here, until Ctrl-C or SIGTERM; its child processes end with it.

    Jobs that run save their work then, and go on at the next start with the same data. If the
    server is killed, they go on without it and report what happened to the next one.

    Callers need a key with --require-key, and where RLEAAS_SERVER_API_KEY is set, which is then
    one that may do everything. Without either, whoever is at this machine may do everything.
    """
    from rleaas.server.run import serve as run_server

    cluster = None
    if executor is Executor.RAY:
        cluster = _cluster(
            ray_address, ray_cpus, ray_gpus, ray_resource or [], ray_runtime_env, ray_python
        )
    return run_server(
        host=host,
        port=port,
        data_dir=data,
        require_key=require_key,
        database=database_url,
        artifacts=artifacts_url,
        max_workers=workers,
        max_restarts=max_restarts,
        worker_patience=worker_patience,
        job_memory=job_memory,
        allowed_hosts=allow_host or (),
        allow_code=allow_code,
        judge_url=judge_url,
        judge_model=judge_model,
        agent_url=agent_url,
        agent_model=agent_model,
        reward_files=reward_files,
        idle_minutes=idle,
        drain_seconds=drain_timeout,
        logs=log_format,
        ray=cluster,
        public_url=public_url,
        environments_host=environments_host,
        allow_insecure=allow_insecure,
    )


def _cluster(
    address: str | None,
    cpus: float,
    gpus: float,
    resources: list[str],
    runtime_env: Path | None,
    python: str,
) -> RayCluster:
    from rleaas.server.jobs.ray_cluster import (
        RayCluster,
        read_address,
        read_resources,
        read_runtime_env,
    )

    found = address or variable("RAY_API_SERVER_ADDRESS")
    if not found:
        raise ConfigurationError(
            "--executor ray needs to know where the cluster is",
            hint="Give --ray-address http://host:8265, the address of its dashboard",
        )
    return RayCluster(
        address=read_address(found),
        cpus=cpus,
        gpus=gpus,
        resources=read_resources(resources),
        runtime_env={} if runtime_env is None else read_runtime_env(runtime_env),
        python=python,
    )
