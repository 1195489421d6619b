"""The Ray cluster that an operator gives to a server."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from rlcore import ConfigurationError
from rlcore.settings import read_url


@dataclass(frozen=True, slots=True, kw_only=True)
class RayCluster:
    """Where the cluster is, and what each job takes of it.

    Attributes:
        address: of its dashboard, as `http://host:8265`.
        cpus: processors of a job.
        gpus: graphics processors of a job.
        resources: custom resources of a job, by name.
        runtime_env: Ray's runtime environment: `pip`, `working_dir`, `env_vars` and so on.
        python: the interpreter on the nodes, which has `rleaas[train,ray]`.
    """

    address: str
    cpus: float = 1.0
    gpus: float = 0.0
    resources: Mapping[str, float] = field(default_factory=dict[str, float])
    runtime_env: Mapping[str, object] = field(default_factory=dict[str, object])
    python: str = "python"


def read_address(text: str) -> str:
    """The address of a cluster's dashboard.

    Raises:
        ConfigurationError: it is no http or https URL.
    """
    try:
        return read_url(text)
    except ValueError as error:
        raise ConfigurationError(
            f"the Ray cluster's address {error}",
            hint="Give --ray-address http://host:8265, the address of its dashboard",
        ) from error


def read_runtime_env(path: Path) -> dict[str, object]:
    """The runtime environment in a JSON file, as Ray documents it.

    Raises:
        ConfigurationError: the file cannot be read, or holds something else.
    """
    try:
        read: object = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the runtime environment {path} cannot be read: {error}",
            hint="Write a JSON object, as Ray documents it for `runtime_env`",
        ) from error
    if not isinstance(read, dict):
        raise ConfigurationError(
            f"the runtime environment {path} is no JSON object",
            hint="Write it as Ray documents `runtime_env`",
        )
    return cast("dict[str, object]", read)


def read_resources(given: list[str]) -> dict[str, float]:
    """Custom resources, each as `NAME=AMOUNT`.

    Raises:
        ConfigurationError: one is written otherwise.
    """
    resources: dict[str, float] = {}
    for text in given:
        name, _, amount = text.partition("=")
        try:
            resources[name] = float(amount)
        except ValueError:
            resources[name] = -1.0
        if not name or not resources[name] > 0:
            raise ConfigurationError(
                f"the resource {text!r} is not of the form NAME=AMOUNT, with an amount above 0"
            )
    return resources
