"""A world: one organisation, one task at a time, and the calls that are made in it."""

from __future__ import annotations

import difflib
import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rlcore import ConfigurationError

from rleaas.sims.access import ToolAccess
from rleaas.sims.library import Library
from rleaas.sims.options import FIRST_VERSION, settle
from rleaas.sims.scenario import Call, Scenario
from rleaas.sims.state import Frozen, Json, State
from rleaas.sims.tool import (
    INVALID_ARGUMENTS,
    TOOL_NOT_AVAILABLE,
    UNKNOWN_TOOL,
    Refused,
    Tool,
)
from rleaas.sims.vertical import Vertical
from rleaas.verify import Judge, Step, ToolCall, Trajectory, Verdict, definition_of, judge_of
from rleaas.verify.definition import Definition

ORGANISATIONS = 8
"""How many organisations the episodes of a world take turns in; made once, then copied."""
STEP_COST = 0.01
REFUSAL_COST = 0.03
SUCCESS = 1.0
PARTIAL = 0.5
"""What an episode that fails is worth at most: the share of the criteria that it came to meet."""
EPISODE_OVER = "episode_over"


@dataclass(frozen=True, slots=True)
class Opening:
    """What an agent knows when an episode begins."""

    prompt: str
    tools: tuple[Tool, ...]
    budget: int


@dataclass(slots=True)
class Result:
    """What came of a call.

    Attributes:
        ok: whether the tool ran.
        value: what it returned.
        error: why it was refused: `code` and `message`.
        ends: whether the episode is over with it.
        reward: what the call was worth; the last one's has the task's.
    """

    ok: bool
    value: Mapping[str, Json] | None
    error: Mapping[str, str] | None
    ends: bool
    reward: float

    def to_json(self) -> dict[str, Json]:
        """What the agent is told."""
        if self.ok:
            return {"ok": True, "result": dict(self.value or {})}
        return {"ok": False, "error": dict(self.error or {})}


class World:
    """A vertical's world, played one episode after the other.

    The same seed, scenario and calls give the same results, in any process.

    Args:
        vertical: what kind of world.
        config: what the vertical's options say; the rest is their defaults.
        tools: tools of a user's, beside the vertical's; every scenario allows them.

    Attributes:
        vertical: what kind of world.
        config: the whole configuration.
        tools: all that agents can call.
        state: of the episode that is being played.
        scenario: its task.
        budget: calls that it has.
        steps_taken: calls so far, refused ones included.
        ended: whether a tool ended the episode.

    Raises:
        ConfigurationError: the configuration is wrong, or two tools have one name.
    """

    state: State
    scenario: Scenario

    def __init__(
        self,
        vertical: Vertical,
        config: Mapping[str, Json] | None = None,
        *,
        tools: Sequence[Tool] = (),
    ) -> None:
        self.vertical = vertical
        self.config: Mapping[str, Json] = settle(vertical.all_options, config, vertical.name)
        self.tools = (*vertical.tools, *tools)
        self._added = frozenset(tool.name for tool in tools)
        self._by_name = {tool.name: tool for tool in self.tools}
        if len(self._by_name) < len(self.tools):
            names = [tool.name for tool in self.tools]
            twice = next(name for name in names if names.count(name) > 1)
            raise ConfigurationError(
                f"{vertical.name} has two tools {twice!r}", hint="Give one of them another name"
            )
        self._checkers = {tool.name: tool.checker() for tool in self.tools}
        self._library = Library(vertical, self.config, {tool.name for tool in tools})
        self._organisations: dict[int, Frozen] = {}
        self._judges: dict[str, Judge] = {}
        self._barred: Mapping[str, Refused] = {}
        self._allowed: frozenset[str] = frozenset()
        self._steps: list[ToolCall | None] = []
        self._verdict: Verdict | None = None
        self._met_at_first = 0
        self.budget = 0
        self.ended = False

    def reset(
        self,
        seed: int = 0,
        scenario: str | Scenario | Mapping[str, object] | None = None,
        tier: int | None = None,
    ) -> Opening:
        """Begin an episode of a scenario: its id, itself, what options say of it; or a drawn one.

        Raises:
            ConfigurationError: there is no such scenario, or none of the tier.
        """
        rng = random.Random(seed)
        if scenario is None:
            chosen = self._library.draw(rng, tier)
        elif isinstance(scenario, str):
            chosen = self._library.named(scenario)
        elif isinstance(scenario, Scenario):
            chosen = scenario
        else:
            chosen = self._library.described(scenario)
        self.scenario = chosen
        self.state = state = self._organisation(seed % ORGANISATIONS)
        self.vertical.prepare(state, chosen, rng)
        self._allowed = self._added.union(chosen.tools).difference(self._barred)
        self._steps = []
        self._verdict = None
        self.budget = chosen.max_steps
        self.ended = False
        self._met_at_first = sum(check.passed for check in self.verdict().checks)
        return Opening(self.prompt, self.available, self.budget)

    def restrict(self, access: ToolAccess) -> None:
        """From the next episode on, refuse the tools that may not be called."""
        self._barred = {
            tool.name: refused for tool in self.tools if (refused := access.refusal(tool))
        }

    @property
    def identity(self) -> dict[str, Json]:
        """What a contract says of the world beside its spaces; nothing of one as it ships."""
        version = self.config["data_version"]
        return {} if version == FIRST_VERSION else {"data_version": version}

    @property
    def prompt(self) -> str:
        """The task in words."""
        return self.scenario.prompt.format(case=self.state.case)

    @property
    def available(self) -> tuple[Tool, ...]:
        """The tools that the scenario allows."""
        return tuple(tool for tool in self.tools if tool.name in self._allowed)

    @property
    def steps_taken(self) -> int:
        """Calls so far, refused ones included."""
        return len(self._steps)

    @property
    def over(self) -> bool:
        """Whether no more calls are possible."""
        return self.ended or len(self._steps) >= self.budget

    def allows(self, name: str) -> bool:
        """Whether the scenario allows the tool."""
        return name in self._allowed

    def call(self, name: str, arguments: object) -> Result:
        """Call a tool. What is wrong with the call is told in the result, and costs a step."""
        if self.over:
            return _after_the_end()
        self._verdict = None
        state = self.state
        try:
            tool = self._tool(name)
            checked = self._checkers[name](arguments)
            value = tool.run(state, checked)
        except Refused as refused:
            state.clock += 1
            self._steps.append(None)
            return self._told(Result(False, None, refused.to_json(), False, -REFUSAL_COST))
        state.clock += 1
        self._steps.append(ToolCall(name, checked, value))
        self.ended = tool.ends_episode and tool.ends_when(state)
        return self._told(Result(True, value, None, self.ended, -STEP_COST))

    def refuse(self, message: str) -> Result:
        """Count a call that cannot even be read as a refused one."""
        if self.over:
            return _after_the_end()
        self._verdict = None
        self._steps.append(None)
        error = Refused(INVALID_ARGUMENTS, message)
        return self._told(Result(False, None, error.to_json(), False, -REFUSAL_COST))

    def suggested(self, name: str) -> Mapping[str, Json]:
        """The arguments of the tool for the case in focus."""
        return self._by_name[name].suggest(self.state)

    def play(self, calls: Sequence[Call]) -> list[Result]:
        """Call these in order, until the episode is over."""
        results: list[Result] = []
        for call in calls:
            if self.over:
                break
            given = call.given(self.state)
            if given is None:
                given = self.suggested(call.tool)
            results.append(self.call(call.tool, given))
        return results

    def succeeded(self) -> bool:
        """Whether the episode so far meets the scenario's criteria."""
        return self.verdict().passed

    def verdict(self) -> Verdict:
        """What the scenario's criteria say of the episode so far, one by one."""
        if self._verdict is None:
            self._verdict = self._judge().judge(self.trajectory())
        return self._verdict

    def trajectory(self) -> Trajectory:
        """The episode so far as verifiers see it; a refused call is a step without a call."""
        steps = tuple(
            _NO_CALL if call is None else Step(action=call.name, calls=(call,))
            for call in self._steps
        )
        return Trajectory(steps, self.state.to_json(), not self.ended and self.over)

    def _told(self, result: Result) -> Result:
        if self.over:
            result.ends = True
            result.reward += self._worth()
        return result

    def _worth(self) -> float:
        """What the end of an episode is worth: a failure, by how far it came or went astray."""
        verdict = self.verdict()
        if verdict.passed:
            return SUCCESS
        met = sum(check.passed for check in verdict.checks)
        missing = max(1, len(verdict.checks) - self._met_at_first)
        return max(-PARTIAL, PARTIAL * (met - self._met_at_first) / missing)

    def _tool(self, name: str) -> Tool:
        tool = self._by_name.get(name)
        if tool is None:
            near = difflib.get_close_matches(str(name)[:100], self._by_name, n=1)
            hint = f"did you mean {near[0]!r}?" if near else "see the list of tools"
            raise Refused(UNKNOWN_TOOL, f"there is no tool {str(name)[:100]!r}: {hint}")
        if name not in self._allowed:
            barred = self._barred.get(name)
            if barred is not None:
                raise Refused(barred.code, barred.message)
            raise Refused(
                TOOL_NOT_AVAILABLE,
                f"{name} is not available for this task: use one of the tools that are listed",
            )
        return tool

    def _organisation(self, number: int) -> State:
        frozen = self._organisations.get(number)
        if frozen is None:
            frozen = self.vertical.make(self._version_of(number), self.config).frozen()
            self._organisations[number] = frozen
        return State.thawed(frozen, self.config)

    def _version_of(self, number: int) -> int:
        """The seed of an organisation: another one in each version of the data."""
        version = self.config["data_version"]
        if version == FIRST_VERSION:
            return number
        drawn = hashlib.sha256(f"{version} {number}".encode()).digest()
        return int.from_bytes(drawn[:6], "big")

    def _judge(self) -> Judge:
        key = self.scenario.id
        judge = self._judges.get(key)
        if judge is None:
            judge = judge_of(
                definition_of({"id": key, "name": key, **self.scenario.success}), self._built_in
            )
            if len(self._judges) < 1_000:  # ids of users' scenarios have no end
                self._judges[key] = judge
        return judge

    def _built_in(self, verifier_id: str) -> Definition:
        for one in self.vertical.verifiers:
            if one["id"] == verifier_id:
                return definition_of(one)
        raise ConfigurationError(
            f"{self.vertical.name} has no built-in verifier {verifier_id!r}",
            code="verifier_not_found",
        )


def _after_the_end() -> Result:
    error = Refused(EPISODE_OVER, "the episode is over: reset the world to begin another")
    return Result(False, None, error.to_json(), True, 0.0)


_NO_CALL = Step()
