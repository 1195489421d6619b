"""The text face of a world: JSON tool calls, for language models."""

from __future__ import annotations

import json
import string
from collections.abc import Mapping, Sequence
from typing import Any, cast

import gymnasium
from gymnasium import spaces

from rleaas.sims.info import begun, ended, stepped
from rleaas.sims.state import Json
from rleaas.sims.tool import Tool
from rleaas.sims.vertical import Vertical
from rleaas.sims.world import Result, World

LONGEST_OBSERVATION = 200_000
LONGEST_ACTION = 20_000
MOST_CALLS = 16
"""Calls that one action may hold."""
_LONGEST_RESULT = 10_000
_CHARACTERS = string.printable


class TextWorld(gymnasium.Env[str, str]):
    """An action is a JSON text, `{"tool": ..., "arguments": {...}}`, or several in `tool_calls`.

    So is the observation: first `prompt`, `tools` and `budget_left`, then `results` and
    `budget_left`. Text that is no call is a refused call. `reset` takes `options["scenario"]`, an
    id or an object, and `options["tier"]`.
    """

    def __init__(
        self,
        vertical: Vertical,
        config: Mapping[str, Json] | None = None,
        *,
        tools: Sequence[Tool] = (),
    ) -> None:
        self.world = World(vertical, config, tools=tools)
        # JSON escapes what is not ASCII, so these characters say everything.
        self.observation_space = spaces.Text(LONGEST_OBSERVATION, charset=_CHARACTERS)
        self.action_space = spaces.Text(LONGEST_ACTION, min_length=0, charset=_CHARACTERS)
        self.metadata = {"render_modes": [], "takes_tiers": True, **self.world.identity}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Begin an episode."""
        super().reset(seed=seed)
        world = self.world
        info = begun(world, seed, self.np_random, options)
        opening = {
            "prompt": world.prompt,
            "tools": [tool.card() for tool in world.available],
            "budget_left": world.budget,
        }
        return json.dumps(opening), info

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Make the calls, until one of them ends the episode."""
        world = self.world
        done: list[tuple[str, Json, Result]] = []
        try:
            asked = read_calls(action)
        except ValueError as error:
            done.append(("", None, world.refuse(str(error))))
        else:
            for tool, arguments in asked:
                done.append((tool, arguments, world.call(tool, arguments)))
                if world.over:
                    break
        info = stepped(world, done)
        terminated, truncated = ended(world, info)
        told = {
            "results": [{"tool": tool, **_shortened(result)} for tool, _, result in done],
            "budget_left": world.budget - world.steps_taken,
        }
        reward = max(-1.0, sum(result.reward for _, _, result in done))
        return json.dumps(told), reward, terminated, truncated, info


def read_calls(action: str) -> list[tuple[str, Json]]:
    """The calls that a text asks for: tool and arguments.

    Raises:
        ValueError: it is none; the message says what would be.
    """
    if len(action) > LONGEST_ACTION:
        raise ValueError(f"an action has at most {LONGEST_ACTION} characters")
    try:
        said: object = json.loads(action, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f'the action is no JSON ({error}): write {{"tool": ..., "arguments": {{...}}}}'
        ) from error
    listed = said
    if isinstance(said, Mapping) and "tool_calls" in said:
        listed = cast("Mapping[str, object]", said)["tool_calls"]
    entries = cast("list[object]", listed) if isinstance(listed, list) else [listed]
    if not 0 < len(entries) <= MOST_CALLS:
        raise ValueError(f"an action has 1 to {MOST_CALLS} tool calls, not {len(entries)}")
    return [_call(entry) for entry in entries]


def _call(entry: object) -> tuple[str, Json]:
    call = cast("Mapping[str, object]", entry if isinstance(entry, Mapping) else {})
    tool = call.get("tool", call.get("name"))
    if not isinstance(tool, str):
        raise ValueError('a tool call is an object: {"tool": "its name", "arguments": {...}}')
    return tool, call.get("arguments", {})


def _no_number(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON number")


def _shortened(result: Result) -> dict[str, Json]:
    told = result.to_json()
    text = json.dumps(told)
    if len(text) <= _LONGEST_RESULT:
        return told
    return {"ok": result.ok, "cut": text[:_LONGEST_RESULT]}
