"""A conversation with a language model, whatever its endpoint speaks.

Messages are `{"role": "system" | "user" | "assistant" | "tool", "content": text}`; an assistant's
may have `tool_calls`, a list of `{"id", "name", "arguments"}` with the arguments as the model wrote
them, and a tool's has the `tool_call_id` that it answers. Tools are `{"name", "description",
"parameters"}`, the parameters as a JSON schema.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

# JSON of any form; who reads it looks at what it is.
Value = Any
Message = Mapping[str, Value]
ToolSchema = Mapping[str, Value]

SECONDS = 60.0
"""How long an answer may take, with all attempts."""
RETRIES = 2
"""How often a call is made again that the endpoint may answer later."""
MAX_TOKENS = 4_096


@dataclass(frozen=True, slots=True)
class ToolRequest:
    """A tool that the model wants to call; `arguments` is its own text, which may be no JSON."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model answered, and what that took."""

    text: str
    tool_calls: tuple[ToolRequest, ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0


class Chat(Protocol):
    """A language model."""

    @property
    def identity(self) -> str:
        """Which model where."""
        ...

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSchema] = (),
        json_schema: Mapping[str, Value] | None = None,
        timeout: float = SECONDS,
    ) -> Reply:
        """Answer a conversation.

        Args:
            messages: what was said so far.
            tools: what it may call.
            json_schema: what its text has to be, where the endpoint can see to that.
            timeout: seconds that the answer may take, with all attempts.

        Raises:
            ModelFailed: it did not answer.
        """
        ...
