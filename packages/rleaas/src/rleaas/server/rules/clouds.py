"""The words that deployments are described with, until an organisation has its own."""

from collections.abc import Mapping
from typing import Final

from rleaas.server.rules.deployments import PROVIDERS
from rleaas.training.algorithms import AVAILABLE_ALGORITHMS

_REGIONS: Final[Mapping[str, list[str]]] = {
    "Azure": ["eastus", "westus2", "westeurope", "northeurope"],
    "AWS": ["us-east-1", "us-west-2", "eu-west-1", "eu-central-1"],
    "GCP": ["us-central1", "us-east1", "europe-west1", "europe-west4"],
    "On-Premise": [],
}

DEFAULTS: Final[Mapping[str, object]] = {
    "TRAINING_ALGORITHMS": list(AVAILABLE_ALGORITHMS),
    "CLOUD_PROVIDERS": list(PROVIDERS),
    "REGIONS": sorted(region for regions in _REGIONS.values() for region in regions),
    "PROVIDER_REGIONS": dict(_REGIONS),
    "PROVIDER_INSTANCE_TYPES": {
        "Azure": ["Standard_D2s_v5", "Standard_D4s_v5", "Standard_NC6s_v3"],
        "AWS": ["m6i.large", "m6i.xlarge", "g5.xlarge"],
        "GCP": ["e2-standard-2", "e2-standard-4", "g2-standard-4"],
        "On-Premise": [],
    },
    # Those that the manifests are checked against.
    "K8S_VERSIONS": ["1.31", "1.32", "1.33", "1.34", "1.35"],
    "NETWORK_PLUGINS": ["azure-cni", "kubenet", "amazon-vpc-cni", "vpc-native"],
    "AUTOSCALER_POLICIES": ["HPA"],
}
