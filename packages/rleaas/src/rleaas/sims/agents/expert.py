"""An agent that plays a scenario's reference solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rlcore import ConfigurationError

from rleaas.sims.agents.opening import Context, action, read
from rleaas.sims.scenario import Scenario
from rleaas.sims.state import Json
from rleaas.sims.vertical import Vertical
from rleaas.sims.world import World

# JSON of any form; who reads it looks at what it is.
Value = Any
Told = str | Scenario | Mapping[str, object] | None


class ScriptedExpert:
    """Plays the reference of the episode's scenario, on either face of a world.

    It plays the same episode in a world of its own beside, from the same seed, and so knows what
    the reference's placeholders stand for. Where nobody says which scenario it is, it is on the
    text face the first one that opens like that, and on the discrete face the one that the
    episode's seed draws. Actions of the discrete face have suggested arguments, so a reference with
    others may fail there.

    Args:
        vertical: the world's vertical.
        config: what the world is configured with.
        scenario: of all episodes, by id or itself; or a function that tells an episode's by its
            seed, by id, itself or as a reset's options describe it, None: the one that is drawn.
    """

    def __init__(
        self,
        vertical: Vertical,
        config: Mapping[str, Json] | None = None,
        *,
        scenario: str | Scenario | Callable[[int], Told] | None = None,
    ) -> None:
        self._vertical = vertical
        self._config = config
        self._scenario = scenario
        self._numbers = {tool.name: number for number, tool in enumerate(vertical.tools)}

    def predict(self, observation: object, context: Context) -> str | int:
        """The next call of the reference; after its end, its last one again.

        Raises:
            ConfigurationError: the episode has no seed, or its prompt is of no known scenario.
        """
        state = context["state"]
        if "world" not in state:
            state["world"] = self._beside(observation, context["episode_seed"])
        world: World = state["world"]
        reference = world.scenario.reference
        call = reference[min(world.steps_taken, len(reference) - 1)]
        given = call.given(world.state)
        arguments = world.suggested(call.tool) if given is None else given
        world.call(call.tool, arguments)
        if isinstance(observation, str):
            return action([(call.tool, arguments)])
        return self._numbers[call.tool]

    def _beside(self, observation: object, seed: int | None) -> World:
        if seed is None:
            raise ConfigurationError(
                "the expert has to know the episode's seed",
                code="no_seed",
                hint="rlmesh.run(expert, env, seeds=range(10))",
            )
        world = World(self._vertical, self._config)
        chosen = self._scenario
        if callable(chosen):
            world.reset(seed, chosen(seed))
            return world
        if chosen is not None or not isinstance(observation, str):
            world.reset(seed, chosen)
            return world
        told = read(observation)
        prompt, budget = told.get("prompt"), told.get("budget_left")
        tools = [tool["name"] for tool in told.get("tools") or ()]
        for scenario in self._vertical.scenarios:
            world.reset(seed, scenario)
            # Tasks that begin with the same words allow different tools.
            allowed = [tool.name for tool in world.available]
            if (world.prompt, world.budget, allowed) == (prompt, budget, tools):
                return world
        raise ConfigurationError(
            f"no scenario of {self._vertical.name} begins with this prompt: {str(prompt)[:200]!r}",
            code="unknown_scenario",
            hint="Give the expert the world's config, and the scenario if it is your own",
        )
