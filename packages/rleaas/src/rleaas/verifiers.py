"""Verifiers, under the published path of the module."""

from rleaas.models.verifier import VerifierType
from rleaas.resources.verifier_handle import VerifierResource
from rleaas.resources.verifiers import VerifierClient

__all__ = ["VerifierClient", "VerifierResource", "VerifierType"]
