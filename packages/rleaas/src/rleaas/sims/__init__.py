"""Worlds of tools: FinSim and its like, as text, as a Gymnasium environment, or over MCP."""

from rleaas.sims.catalogue import FACES, VERTICALS, make, vertical_of
from rleaas.sims.options import Option
from rleaas.sims.scenario import Call, Scenario, calls, conditions
from rleaas.sims.state import State
from rleaas.sims.tool import Refused, Tool, arguments_schema
from rleaas.sims.vertical import Feature, Vertical
from rleaas.sims.world import Opening, Result, World

__all__ = [
    "FACES",
    "VERTICALS",
    "Call",
    "Feature",
    "Opening",
    "Option",
    "Refused",
    "Result",
    "Scenario",
    "State",
    "Tool",
    "Vertical",
    "World",
    "arguments_schema",
    "calls",
    "conditions",
    "make",
    "vertical_of",
]
