"""Messages in Anthropic's protocol."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, cast

from rlcore import MissingDependencyError, ModelFailed

from rleaas.llm.chat import Message, Reply, ToolRequest, ToolSchema
from rleaas.llm.endpoint_chat import EndpointChat, Value

if TYPE_CHECKING:
    import anthropic

ANTHROPIC_URL = "https://api.anthropic.com"


class AnthropicChat(EndpointChat):
    """A model behind an endpoint that speaks Anthropic's messages; its base URL has no `/v1`."""

    protocol: ClassVar[str] = "anthropic"
    makers_url: ClassVar[str] = ANTHROPIC_URL

    def _sender(self) -> Callable[..., Value]:
        return cast("Callable[..., Value]", self._client.messages.create)

    def _request(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        schema: Mapping[str, Value] | None,
    ) -> dict[str, Value]:
        request: dict[str, Value] = {
            "model": self.model,
            "max_tokens": self._max_tokens,
            "messages": turns(messages),
        }
        system = "\n\n".join(str(one["content"]) for one in messages if _is_system(one))
        if system:
            request["system"] = system
        if tools:
            request["tools"] = [_tool(one) for one in tools]
        if schema is not None:
            request["output_config"] = {"format": {"type": "json_schema", "schema": dict(schema)}}
        return request

    def _reply(self, answer: Value) -> Reply:
        blocks = cast("Sequence[Value] | None", getattr(answer, "content", None))
        if not isinstance(blocks, list):
            raise ModelFailed(self.identity, "invalid_answer", "its answer has no content")
        usage = getattr(answer, "usage", None)
        return Reply(
            "".join(one.text for one in blocks if getattr(one, "type", None) == "text"),
            tuple(
                ToolRequest(str(one.id), str(one.name), json.dumps(one.input))
                for one in blocks
                if getattr(one, "type", None) == "tool_use"
            ),
            int(getattr(usage, "input_tokens", 0) or 0),
            int(getattr(usage, "output_tokens", 0) or 0),
        )

    @cached_property
    def _client(self) -> anthropic.Anthropic:
        try:
            import anthropic
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                "a model of Anthropic's protocol needs 'anthropic', which is not installed",
                hint="Install the extra: pip install 'rleaas[models]'",
            ) from error
        return anthropic.Anthropic(**self._connection(anthropic.DefaultHttpxClient))


def turns(messages: Sequence[Message]) -> list[dict[str, Value]]:
    """The conversation in turns of user and assistant, as the protocol wants them."""
    made: list[dict[str, Value]] = []
    for message in messages:
        if _is_system(message):
            continue
        role = "assistant" if message["role"] == "assistant" else "user"
        if made and made[-1]["role"] == role:
            made[-1]["content"].extend(_blocks(message))
        else:
            made.append({"role": role, "content": _blocks(message)})
    return made


def _blocks(message: Message) -> list[dict[str, Value]]:
    text = str(message.get("content") or "")
    if message["role"] == "tool":
        return [
            {
                "type": "tool_result",
                "tool_use_id": message["tool_call_id"],
                "content": text or "(nothing)",
            }
        ]
    blocks: list[dict[str, Value]] = [{"type": "text", "text": text}] if text.strip() else []
    blocks += [
        {"type": "tool_use", "id": one["id"], "name": one["name"], "input": _input(one)}
        for one in message.get("tool_calls") or ()
    ]
    # An empty turn is refused.
    return blocks or [{"type": "text", "text": "(nothing)"}]


def _input(call: Mapping[str, Value]) -> dict[str, Value]:
    try:
        said: object = json.loads(call["arguments"])
    except ValueError:
        return {}
    return cast("dict[str, Value]", said) if isinstance(said, dict) else {}


def _tool(tool: ToolSchema) -> dict[str, Value]:
    return {
        "name": tool["name"],
        "description": tool.get("description") or "",
        "input_schema": tool.get("parameters") or {"type": "object"},
    }


def _is_system(message: Message) -> bool:
    return bool(message["role"] == "system")
