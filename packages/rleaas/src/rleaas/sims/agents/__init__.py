"""Agents that play worlds: at random, by the book, or as a language model wants it.

Each is a policy that a model of rlmesh wraps: `rlmesh.run(rlmesh.Model(RandomAgent()), env)`.
"""

from rleaas.sims.agents.expert import ScriptedExpert
from rleaas.sims.agents.llm_agent import LLMAgent
from rleaas.sims.agents.random_agent import RandomAgent

__all__ = ["LLMAgent", "RandomAgent", "ScriptedExpert"]
