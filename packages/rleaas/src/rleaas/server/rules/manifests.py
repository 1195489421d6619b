"""The Kubernetes objects that serve an environment, rendered from its record."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rleaas.server.rules.deployments import DEFAULT_NAMESPACE, object_name
from rleaas.server.rules.json_values import fields, integer, text

Manifest = dict[str, object]

PORT: Final = 50051
CPU_TARGET_PERCENT: Final = 70
KEY_VARIABLE: Final = "RLMESH_TOKEN_KEY"


@dataclass(frozen=True, slots=True)
class Served:
    """The environment version that the objects serve."""

    name: str
    version: int
    source: str
    kwargs: Mapping[str, object]
    contract_digest: str | None


def render(deployment: Mapping[str, object], served: Served) -> list[Manifest]:
    """Deployment, Service and HorizontalPodAutoscaler, in the order in which to apply them."""
    return [
        _deployment(deployment, served),
        _service(deployment, served),
        _autoscaler(deployment, served),
    ]


def secret(deployment: Mapping[str, object], served: Served, token_key: str) -> Manifest:
    """The Secret with the key that tokens for the environment are signed with."""
    encoded = base64.b64encode(token_key.encode()).decode()
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": _metadata(deployment, served),
        "type": "Opaque",
        "data": {KEY_VARIABLE: encoded},
    }


def as_yaml(manifests: list[Manifest]) -> str:
    """The objects as documents of one YAML stream; each is JSON, which YAML includes."""
    return "".join(f"---\n{json.dumps(each, indent=2)}\n" for each in manifests)


def _metadata(deployment: Mapping[str, object], served: Served) -> Manifest:
    return {
        "name": object_name(served.name),
        "namespace": text(deployment.get("namespace")) or DEFAULT_NAMESPACE,
        "labels": {**_labels(deployment), **_selector(served)},
        "annotations": {
            "rleaas.dev/environment": served.name,
            "rleaas.dev/version": str(served.version),
            "rleaas.dev/contract-digest": served.contract_digest or "",
        },
    }


def _labels(deployment: Mapping[str, object]) -> dict[str, str]:
    given = fields(deployment.get("k8s_labels"))
    return {
        "app.kubernetes.io/managed-by": "rleaas",
        **{name: str(value) for name, value in given.items()},
    }


def _selector(served: Served) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "rlmesh-environment",
        "app.kubernetes.io/instance": object_name(served.name),
    }


def _deployment(deployment: Mapping[str, object], served: Served) -> Manifest:
    arguments = ["--env", served.source, "--address", f"tcp://0.0.0.0:{PORT}"]
    if served.kwargs:
        arguments += ["--kwargs-json", json.dumps(dict(served.kwargs), sort_keys=True)]
    container: Manifest = {
        "name": "environment",
        "image": deployment.get("image"),
        "command": ["python", "-m", "rlmesh.serve"],
        "args": arguments,
        "ports": [{"name": "grpc", "containerPort": PORT, "protocol": "TCP"}],
        "env": [
            {
                "name": KEY_VARIABLE,
                "valueFrom": {
                    "secretKeyRef": {"name": object_name(served.name), "key": KEY_VARIABLE}
                },
            }
        ],
        "startupProbe": _probe(failures=30, period=2),
        "readinessProbe": _probe(failures=3, period=5),
        "livenessProbe": _probe(failures=3, period=10),
        "resources": _resources(deployment),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(deployment, served),
        "spec": {
            # The autoscaler decides how many there are.
            "selector": {"matchLabels": _selector(served)},
            "template": {
                "metadata": {"labels": {**_labels(deployment), **_selector(served)}},
                "spec": {
                    "automountServiceAccountToken": False,
                    "containers": [container],
                    "terminationGracePeriodSeconds": 30,
                },
            },
        },
    }


def _service(deployment: Mapping[str, object], served: Served) -> Manifest:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(deployment, served),
        "spec": {
            "selector": _selector(served),
            # A session stays with the pod that has its environment.
            "sessionAffinity": "ClientIP",
            "ports": [{"name": "grpc", "port": PORT, "targetPort": "grpc", "protocol": "TCP"}],
        },
    }


def _autoscaler(deployment: Mapping[str, object], served: Served) -> Manifest:
    fewest = integer(deployment.get("min_replicas")) or 1
    most = integer(deployment.get("max_replicas")) or max(fewest, 5)
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _metadata(deployment, served),
        "spec": {
            "scaleTargetRef": {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "name": object_name(served.name),
            },
            "minReplicas": fewest,
            "maxReplicas": most,
            "metrics": [
                {
                    "type": "Resource",
                    "resource": {
                        "name": "cpu",
                        "target": {"type": "Utilization", "averageUtilization": CPU_TARGET_PERCENT},
                    },
                }
            ],
        },
    }


def _probe(*, failures: int, period: int) -> Manifest:
    return {"grpc": {"port": PORT}, "failureThreshold": failures, "periodSeconds": period}


def _resources(deployment: Mapping[str, object]) -> Manifest:
    # Without a request for CPU the autoscaler has nothing to measure by.
    requests: Manifest = {"cpu": str(deployment.get("cpu") or "500m")}
    limits: Manifest = {}
    if deployment.get("memory"):
        requests["memory"] = limits["memory"] = str(deployment["memory"])
    if deployment.get("gpu"):
        limits["nvidia.com/gpu"] = str(deployment["gpu"])
    return {"requests": requests, "limits": limits} if limits else {"requests": requests}
