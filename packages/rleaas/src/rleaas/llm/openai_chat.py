"""Chat completions in OpenAI's protocol, which many servers of models speak."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, cast

from rlcore import MissingDependencyError, ModelFailed

from rleaas.llm.chat import Message, Reply, ToolRequest, ToolSchema
from rleaas.llm.endpoint_chat import EndpointChat, Value

if TYPE_CHECKING:
    from openai import OpenAI


class OpenAIChat(EndpointChat):
    """A model behind an endpoint that speaks OpenAI's chat completions.

    Its base URL has as a rule `/v1` at its end.
    """

    protocol: ClassVar[str] = "openai"
    makers_url: ClassVar[str] = "https://api.openai.com/v1"

    def _sender(self) -> Callable[..., Value]:
        return cast("Callable[..., Value]", self._client.chat.completions.create)

    def _request(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        schema: Mapping[str, Value] | None,
    ) -> dict[str, Value]:
        request: dict[str, Value] = {
            "model": self.model,
            "messages": [_message(one) for one in messages],
            "max_completion_tokens": self._max_tokens,
        }
        if tools:
            request["tools"] = [{"type": "function", "function": dict(one)} for one in tools]
        if schema is not None:
            request["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "schema": dict(schema), "strict": True},
            }
        return request

    def _reply(self, answer: Value) -> Reply:
        choices = cast("Sequence[Value] | None", getattr(answer, "choices", None))
        if not choices or getattr(choices[0], "message", None) is None:
            raise ModelFailed(self.identity, "invalid_answer", "its answer has no choices")
        message, usage = choices[0].message, getattr(answer, "usage", None)
        calls = tuple(
            ToolRequest(str(one.id), str(one.function.name), str(one.function.arguments or ""))
            for one in getattr(message, "tool_calls", None) or ()
            if getattr(one, "function", None) is not None
        )
        return Reply(
            message.content or "",
            calls,
            int(getattr(usage, "prompt_tokens", 0) or 0),
            int(getattr(usage, "completion_tokens", 0) or 0),
        )

    @cached_property
    def _client(self) -> OpenAI:
        try:
            import openai
        except ModuleNotFoundError as error:
            raise MissingDependencyError(
                "a model of OpenAI's protocol needs 'openai', which is not installed",
                hint="Install the extra: pip install 'rleaas[models]'",
            ) from error
        return openai.OpenAI(**self._connection(openai.DefaultHttpxClient))


def _message(message: Message) -> dict[str, Value]:
    said: dict[str, Value] = {"role": message["role"], "content": message.get("content") or ""}
    if message.get("tool_calls"):
        said["tool_calls"] = [
            {
                "id": one["id"],
                "type": "function",
                "function": {"name": one["name"], "arguments": one["arguments"]},
            }
            for one in message["tool_calls"]
        ]
    if message["role"] == "tool":
        said["tool_call_id"] = message["tool_call_id"]
    return said
