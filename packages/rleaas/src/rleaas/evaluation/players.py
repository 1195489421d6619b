"""Agents that need no checkpoint."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, cast

from rlcore import CallTimeout, ConfigurationError, ModelFailed, TransportError

from rleaas.evaluation.plans import EpisodePlan
from rleaas.evaluation.remote_chat import RemoteChat
from rleaas.training.assignment import EvaluationAssignment

RANDOM: Final = "random"
EXPERT: Final = "expert"
LLM: Final = "llm"
# Observations and contexts are whatever the environment and rlmesh make of them.
Value = Any


@dataclass(frozen=True, slots=True)
class Player:
    """Who plays an evaluation.

    Attributes:
        model: as `rlmesh.run` takes it.
        by_place: whether it knows episodes by their place among the plans, in place of a seed.
        costs: what a language model has cost so far; None: it is none.
        apart: makes the model for one more thread, where most of the time is waiting for it.
    """

    model: object
    by_place: bool = False
    costs: AgentCosts | None = None
    apart: Callable[[], object] | None = None


def agent_of(
    assignment: EvaluationAssignment, plans: Sequence[EpisodePlan], costs_file: Path
) -> Player:
    """The agent that an assignment names.

    `random` takes any action of the space; of a world's text face, a call of any tool. `expert`
    plays the reference of each plan's scenario. An object is a language model.

    Args:
        assignment: of the evaluation.
        plans: what is left to play.
        costs_file: where a language model's costs are kept, for another attempt to go on from.

    Raises:
        ConfigurationError: there is no such agent, or it cannot play there.
    """
    agent = assignment.agent
    if agent == RANDOM:
        return Player(_random(assignment.contract or {}))
    if agent == EXPERT:
        return Player(_expert(assignment, plans), by_place=True)
    if isinstance(agent, Mapping) and agent.get("kind") == LLM:
        return _language_model(assignment, agent, costs_file)
    raise ConfigurationError(f"there is no agent {agent!r}", code="unknown_agent")


class AgentCosts:
    """What the language model of an evaluation has cost, over all attempts at it.

    Args:
        path: where it is kept; what is there already counts.
        model: which model where.
    """

    def __init__(self, path: Path, model: str) -> None:
        from rleaas.verify.model import Meter

        self._path = path
        self._model = model
        self._before = Meter(**json.loads(path.read_text())) if path.exists() else Meter()
        self._total = self._before.to_dict()
        self._lock = threading.Lock()

    def keep(self, meter: Value) -> None:
        """Keep what this attempt has cost, beside those before it."""
        with self._lock:
            now = meter.to_dict()
            self._total = {key: count + now[key] for key, count in self._before.to_dict().items()}
            beside = self._path.with_suffix(".new")
            beside.write_text(json.dumps(self._total))
            beside.replace(self._path)

    def to_dict(self) -> dict[str, object]:
        """The model with its calls and tokens."""
        return {
            "model": self._model,
            **{key: count for key, count in self._total.items() if key != "cached"},
        }


def _random(contract: Mapping[str, object]) -> object:
    import rlmesh

    if _action_kind(contract) != "text":
        return rlmesh.RANDOM_SAMPLE
    from rleaas.sims.agents import RandomAgent

    return rlmesh.Model(RandomAgent().predict, name=RANDOM)


def _expert(assignment: EvaluationAssignment, plans: Sequence[EpisodePlan]) -> object:
    world = assignment.world
    if world is None:
        raise ConfigurationError(
            "the expert plays built-in worlds only, and the environment serves none",
            code="agent_needs_world",
        )
    import rlmesh

    expert = _PlannedExpert(str(world["vertical"]), cast("Value", world["config"]), plans)
    return rlmesh.Model(expert.predict, name=EXPERT)


@dataclass(frozen=True, slots=True)
class _PlannedExpert:
    """Plays the scenario of the plan whose place a run gives in the seed's place."""

    vertical: str
    config: Mapping[str, Value]
    plans: Sequence[EpisodePlan]

    def predict(self, observation: Value, context: Mapping[str, Value]) -> str | int:
        from rleaas.sims import vertical_of
        from rleaas.sims.agents import ScriptedExpert

        state = context["state"]
        plan: EpisodePlan = self.plans[int(context["episode_seed"])]
        if "expert" not in state:
            scenario = None if plan.scenario is None else plan.scenario.to_json()
            state["expert"] = ScriptedExpert(
                vertical_of(self.vertical), self.config, scenario=lambda _: scenario
            )
        expert: ScriptedExpert = state["expert"]
        return expert.predict(observation, {**context, "episode_seed": plan.seed})


def _language_model(
    assignment: EvaluationAssignment, agent: Mapping[str, object], costs_file: Path
) -> Player:
    if _action_kind(assignment.contract or {}) not in ("text", None):
        raise ConfigurationError(
            "a language model plays the text face of a world, and the environment has another",
            code="wrong_face",
            hint="Register one with config={'face': 'text'}",
        )
    import rlmesh

    from rleaas.sims.agents import LLMAgent
    from rleaas.sims.agents.llm_agent import INSTRUCTIONS

    identity = str(agent["identity"])
    chat = RemoteChat(str(assignment.complete_at), identity)
    player = LLMAgent(
        chat,
        instructions=str(agent.get("instructions") or INSTRUCTIONS),
        seconds=float(cast("float", agent["timeout_seconds"])),
    )
    costs = AgentCosts(costs_file, identity)
    charged = _Charged(player, costs)

    def made() -> object:
        return rlmesh.Model(charged.predict, name=identity)

    return Player(made(), costs=costs, apart=made)


@dataclass(frozen=True, slots=True)
class _Charged:
    """A language model whose costs are kept, and whose endpoint's failures end one episode."""

    agent: Value
    costs: AgentCosts

    def predict(self, observation: str, context: Mapping[str, Value]) -> str:
        try:
            return cast("str", self.agent.predict(observation, context))
        except ModelFailed as error:
            # As a run knows what a model that cannot be reached is: no score, and a word for why.
            if error.reason == "timeout":
                raise CallTimeout(str(error), operation="predict", layer="model") from error
            raise TransportError(str(error)) from error
        finally:
            self.costs.keep(self.agent.meter)


def _action_kind(contract: Mapping[str, object]) -> object:
    space = contract.get("action_space")
    return cast("Mapping[str, object]", space).get("kind") if isinstance(space, Mapping) else None
