"""A world that is played over a protocol: its tools, the episode, and its verdict."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Final, cast

from rlcore import Error

from rleaas.sims.scenario import Scenario
from rleaas.sims.state import Json
from rleaas.sims.tool import INVALID_ARGUMENTS, Refused, arguments_schema
from rleaas.sims.world import Result, World

TASK_URI: Final = "world://task"
VERDICT_URI: Final = "world://verdict"
BEGIN: Final = "episode_begin"
STATUS: Final = "episode_status"
END: Final = "episode_end"
_CONTROLS: Final[Mapping[str, tuple[str, dict[str, Json]]]] = {
    BEGIN: (
        "Begin another episode: of a scenario by its id, or of a tier, or of any. The tools may be "
        "others then: list them again.",
        arguments_schema(
            scenario={"type": "string", "optional": True},
            seed={"type": "integer", "minimum": 0, "maximum": 2**53, "optional": True},
            tier={"type": "integer", "minimum": 1, "maximum": 4, "optional": True},
        ),
    ),
    STATUS: (
        "Read the task again, with the calls that are left. Costs nothing.",
        arguments_schema(),
    ),
    END: ("Give the task up as it is now, and read the verdict.", arguments_schema()),
}

Said = dict[str, Json]


class WorldServer:
    """One world, played by whoever is connected, one episode after the other.

    Args:
        world: the world; its first episode begins here.
        seed: of the first episode; each further one has the next, where none is asked for.
        scenario: what the first episode plays, where it is not drawn.
        tier: of which tier it is drawn.

    Raises:
        ConfigurationError: there is no such scenario or tier.
    """

    def __init__(
        self,
        world: World,
        *,
        seed: int = 0,
        scenario: str | Scenario | Mapping[str, object] | None = None,
        tier: int | None = None,
    ) -> None:
        self._world = world
        self._seed = seed
        # Calls of several clients, and those of tools that ask an endpoint, come in threads.
        self._lock = threading.Lock()
        self._begin(seed, scenario, tier)

    def tools(self) -> list[Said]:
        """Every tool that can be called now: name, description, JSON schema, whether it reads."""
        with self._lock:
            of_world = [
                {**tool.card(), "reads": tool.category in ("read", "search")}
                for tool in self._world.available
            ]
        controls = [
            {"name": name, "description": said, "parameters": schema, "reads": name == STATUS}
            for name, (said, schema) in _CONTROLS.items()
        ]
        return [*of_world, *controls]

    def call(self, name: str, arguments: Mapping[str, Json]) -> Said:
        """Call a tool of the world, or one of the three about episodes."""
        with self._lock:
            if name == BEGIN:
                return self._begun(arguments)
            if name == STATUS:
                return {"ok": True, "result": self._task()}
            if name == END:
                self._world.ended = True
                return {"ok": True, "result": self._verdict()}
            return self._told(self._world.call(name, arguments))

    def task(self) -> Said:
        """The task, its tools and its budget."""
        with self._lock:
            return self._task()

    def verdict(self) -> Said:
        """Whether the episode succeeded, criterion by criterion; nothing of it before its end."""
        with self._lock:
            return self._verdict()

    def _begin(
        self, seed: int, scenario: str | Scenario | Mapping[str, object] | None, tier: int | None
    ) -> None:
        self._world.reset(seed, scenario, tier)
        self._seed = seed

    def _begun(self, arguments: Mapping[str, Json]) -> Said:
        unknown = sorted(set(arguments) - {"scenario", "seed", "tier"})
        seed, scenario = arguments.get("seed"), arguments.get("scenario")
        tier = arguments.get("tier")
        if unknown:
            return _refused(f"{BEGIN}: arguments has no {unknown[0]!r}")
        if not all(one is None or type(one) is int for one in (seed, tier)):
            return _refused(f"{BEGIN}: seed and tier are whole numbers")
        if not (scenario is None or isinstance(scenario, str)):
            return _refused(f"{BEGIN}: scenario is the id of one")
        if seed is not None and not 0 <= seed <= 2**53:
            return _refused(f"{BEGIN}: seed is from 0 to 2**53")
        try:
            self._begin(self._seed + 1 if seed is None else seed, scenario, tier)
        except Error as error:
            return _refused(f"{BEGIN}: {error}")
        return {"ok": True, "result": self._task()}

    def _task(self) -> Said:
        world = self._world
        return {
            "prompt": world.prompt,
            "budget": world.budget,
            "budget_left": max(0, world.budget - world.steps_taken),
            "over": world.over,
            "scenario_id": world.scenario.id,
            "tier": world.scenario.tier,
            "seed": self._seed,
            "tools": [tool.name for tool in world.available],
        }

    def _verdict(self) -> Said:
        world = self._world
        if not world.over:
            return {"over": False, "hint": f"The verdict is there at the end; {END} ends it"}
        verdict = world.verdict()
        return {
            "over": True,
            "success": verdict.passed,
            "scenario_id": world.scenario.id,
            "seed": self._seed,
            "calls": world.steps_taken,
            "summary": verdict.summary,
            "checks": [
                {"check": check.name, "passed": check.passed, "detail": check.error or check.detail}
                for check in verdict.checks
            ],
        }

    def _told(self, result: Result) -> Said:
        left = max(0, self._world.budget - self._world.steps_taken)
        return {**result.to_json(), "budget_left": left, "over": self._world.over}


def _refused(message: str) -> Said:
    error = Refused(INVALID_ARGUMENTS, message)
    return {"ok": False, "error": cast("Json", error.to_json())}
