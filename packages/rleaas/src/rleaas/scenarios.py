"""Scenarios and suites, under the published path of the module."""

from rleaas.models.scenario import SuitePurpose
from rleaas.resources.scenarios import ScenarioClient
from rleaas.resources.suites import ScenarioSuiteClient

__all__ = ["ScenarioClient", "ScenarioSuiteClient", "SuitePurpose"]
