"""An agent that is a language model: it is told the task, and calls tools."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any, cast

from rleaas.llm.chat import SECONDS, Chat, Reply
from rleaas.sims.agents.opening import Context, action, read
from rleaas.sims.text import LONGEST_ACTION
from rleaas.verify.model import Meter

# JSON of any form; who reads it looks at what it is.
Value = Any

INSTRUCTIONS = (
    "You do the task by calling tools, and by nothing else: every answer is a tool call. A refused "
    "call says why, and costs a step of your budget. The episode ends with the tool that settles "
    "the task, or when the budget is used up."
)
MOST_CALLS = 16
"""Calls of one answer that are made; a world takes no more at once."""
# Of its characters, each may be twelve in JSON.
_LONGEST_PROSE = LONGEST_ACTION // 12 - 1


class LLMAgent:
    """Plays the text face of a world by a model behind any endpoint that `rleaas.llm` can ask.

    What is no call, is too long or has arguments that are no JSON, is a refused call: the model is
    told so, and goes on. When the endpoint fails, the episode has an error and no score.

    Args:
        chat: the model.
        instructions: what it is told before the task.
        seconds: how long one answer may take, with all attempts.

    Attributes:
        meter: what it cost: calls and tokens, over all episodes.
    """

    def __init__(
        self, chat: Chat, *, instructions: str = INSTRUCTIONS, seconds: float = SECONDS
    ) -> None:
        self._chat = chat
        self._instructions = instructions
        self._seconds = seconds
        self._lock = threading.Lock()
        self.meter = Meter()

    def predict(self, observation: str, context: Context) -> str:
        """What the model does next.

        Raises:
            ModelFailed: its endpoint did not answer.
            ConfigurationError: the environment has another face.
        """
        told = read(observation)
        state = context["state"]
        if "messages" not in state:
            state["messages"], state["tools"] = self._opening(told)
        else:
            state["messages"] += _results(told, state["asked"])
        with self._lock:
            self.meter.calls += 1
        reply = self._chat.complete(state["messages"], tools=state["tools"], timeout=self._seconds)
        with self._lock:
            self.meter.count(reply)
        asked = reply.tool_calls[:MOST_CALLS]
        state["asked"] = asked
        state["messages"].append(_said(reply))
        if not asked:
            # It is no call: the world says so to whoever said it.
            return json.dumps(reply.text[:_LONGEST_PROSE])
        called = action([(one.name, _arguments(one.arguments)) for one in asked])
        if len(called) > LONGEST_ACTION:
            # The world takes no more in one action, and refuses this by name.
            return json.dumps(f"{len(called)} characters of tool calls, more than an action has")
        return called

    def _opening(
        self, told: Mapping[str, Value]
    ) -> tuple[list[dict[str, Value]], Sequence[Mapping[str, Value]]]:
        tools: list[Mapping[str, Value]] = [
            {
                "name": tool["name"],
                "description": tool.get("description", ""),
                "parameters": tool.get("parameters") or {"type": "object", "properties": {}},
            }
            for tool in cast("Sequence[Mapping[str, Value]]", told["tools"])
        ]
        task = f"{told['prompt']}\n\nYou may make {told['budget_left']} calls."
        messages: list[dict[str, Value]] = [
            {"role": "system", "content": self._instructions},
            {"role": "user", "content": task},
        ]
        return messages, tools


def _said(reply: Reply) -> dict[str, Value]:
    said: dict[str, Value] = {"role": "assistant", "content": reply.text}
    if reply.tool_calls:
        said["tool_calls"] = [
            {"id": one.id, "name": one.name, "arguments": one.arguments}
            for one in reply.tool_calls[:MOST_CALLS]
        ]
    return said


def _results(told: Mapping[str, Value], asked: Sequence[Value]) -> list[dict[str, Value]]:
    results: Sequence[Mapping[str, Value]] = told.get("results") or ()
    left = told.get("budget_left")
    if not asked:
        text = json.dumps({"results": list(results), "budget_left": left})
        return [{"role": "user", "content": text}]
    return [
        {
            "role": "tool",
            "tool_call_id": one.id,
            "content": json.dumps(
                {**results[place], "budget_left": left}
                if place < len(results)
                else {"ok": False, "error": "it was not called any more"}
            ),
        }
        for place, one in enumerate(asked)
    ]


def _arguments(text: str) -> Value:
    """The arguments as JSON, or the text itself, which the world refuses by name."""
    try:
        return json.loads(text or "{}", parse_constant=str)
    except (ValueError, RecursionError):
        return text
