"""What a deployment is: its fields, the words for its state, and the name of its cluster."""

import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from rleaas.server.rules.json_values import fields, text

PROVIDERS: Final = ("Azure", "AWS", "GCP", "On-Premise")
NOT_CONNECTED: Final = "not_connected"
NO_CLUSTER: Final = (
    "this server is connected to no cluster: apply the manifests of this deployment yourself"
)
APP_STATUSES: Final = (
    "pending",
    "cloning",
    "detecting",
    "building",
    "deploying",
    "running",
    "failed",
    NOT_CONNECTED,
)
SETTLED: Final = frozenset({"running", "failed", NOT_CONNECTED})
URL_TYPES: Final = ("api", "dashboard", "ingress", "service", "model", "custom")
DEFAULT_NAMESPACE: Final = "rl-environments"

_PREFIXES: Final[Mapping[str, str]] = {"Azure": "aks", "AWS": "eks", "GCP": "gke"}
_PROVIDER_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "Azure": ("subscription_id", "resource_group", "node_pool_name", "vm_size"),
    "AWS": ("account_id", "node_group_name", "instance_type"),
    "GCP": ("project_id", "node_pool_name", "machine_type"),
}
_SHARED_FIELDS: Final = ("cluster_name", "cluster_label", "node_count", "network_plugin")


def slug(name: str, fallback: str = "env") -> str:
    """The name in small letters, digits and single dashes, as a cluster takes it."""
    dashed = re.sub(r"[^a-z0-9-]+", "-", name.lower())
    return re.sub(r"-+", "-", dashed).strip("-") or fallback


def object_name(name: str) -> str:
    """The name of Kubernetes objects: a label of DNS that begins with a letter."""
    found = slug(name)
    return (found if found[0].isalpha() else f"env-{found}")[:50].strip("-")


def provider_named(text: str) -> str | None:
    """The provider in its one spelling; None when it is none."""
    by_lower = {provider.lower(): provider for provider in PROVIDERS}
    return by_lower.get(text.strip().lower())


def cluster_name(provider: str, environment: str) -> str:
    """The name a cluster gets where nobody gave one, such as `aks-my-env-cluster`."""
    return f"{_PREFIXES.get(provider, 'k8s')}-{slug(environment)}-cluster"


def from_infrastructure(infrastructure: Mapping[str, object]) -> dict[str, object]:
    """The fields of a deployment that an environment's infrastructure speaks of."""
    named = provider_named(text(infrastructure.get("provider")) or "")
    found: dict[str, object] = {} if named is None else {"provider": named}
    for name in ("region", "cpu", "gpu", "memory", "scaling", "image", "port"):
        found[name] = infrastructure.get(name)
    if named is not None and named in _PROVIDER_FIELDS:
        own = fields(infrastructure.get(named.lower()))
        for name in (*_PROVIDER_FIELDS[named], *_SHARED_FIELDS):
            found[name] = own.get(name)
    kubernetes = fields(infrastructure.get("k8s"))
    for name in ("k8s_version", "namespace", "min_replicas", "max_replicas", "image"):
        found[name] = kubernetes.get(name, found.get(name))
    return {name: value for name, value in found.items() if value not in (None, "")}


def url_problem(url: str) -> str | None:
    """Say why the text is no URL of a deployment; None when it is one."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError as error:
        return f"{url[:200]!r} is no URL: {error}"
    return None if usable else f"{url[:200]!r} is no http or https URL"
