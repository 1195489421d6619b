"""Messages in Anthropic's protocol."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from rlcore import MissingDependencyError, ModelFailed, Secret

from rleaas.llm.chat import MAX_TOKENS, RETRIES, SECONDS, Message, Reply, ToolRequest, ToolSchema
from rleaas.llm.failures import failed
from rleaas.llm.openai_chat import bare
from rleaas.llm.patience import patiently
from rleaas.llm.pinned import Pinned

if TYPE_CHECKING:
    import anthropic

# The client's own shapes are TypedDicts of many variants; what is sent is written here.
Value = Any

ANTHROPIC_URL = "https://api.anthropic.com"
_NO_KEY = "none"


class AnthropicChat:
    """A model behind an endpoint that speaks Anthropic's messages.

    Args:
        model: its name there.
        base_url: the endpoint, without `/v1`.
        api_key: the key that it asks for; None: it asks for none.
        retries: how often a call that may pass is made again.
        max_tokens: the longest answer.
        pinned: where it may be reached; None: wherever its name leads.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = ANTHROPIC_URL,
        api_key: Secret | None = None,
        retries: int = RETRIES,
        max_tokens: int = MAX_TOKENS,
        pinned: Pinned | None = None,
    ) -> None:
        self.model = model
        self._base_url = base_url
        self._api_key = api_key
        self._retries = retries
        self._max_tokens = max_tokens
        self._pinned = pinned
        self._takes_schemas = True

    def __repr__(self) -> str:
        return f"AnthropicChat({self.identity!r})"

    @property
    def identity(self) -> str:
        """Which model where."""
        return f"anthropic:{bare(self._base_url)}:{self.model}"

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSchema] = (),
        json_schema: Mapping[str, Value] | None = None,
        timeout: float = SECONDS,
    ) -> Reply:
        """Answer a conversation; see `Chat`.

        Raises:
            ModelFailed: it did not answer.
            MissingDependencyError: the package `anthropic` is not installed.
        """
        client = self._client

        def attempt(seconds: float) -> Reply:
            schema = json_schema if self._takes_schemas else None
            request: dict[str, Value] = {
                "model": self.model,
                "max_tokens": self._max_tokens,
                "messages": turns(messages),
                "timeout": seconds,
            }
            system = "\n\n".join(str(one["content"]) for one in messages if _is_system(one))
            if system:
                request["system"] = system
            if tools:
                request["tools"] = [_tool(one) for one in tools]
            if schema is not None:
                request["output_config"] = {
                    "format": {"type": "json_schema", "schema": dict(schema)}
                }
            try:
                message = cast("Value", client.messages).create(**request)
            except Exception as error:
                if schema is not None and getattr(error, "status_code", None) in (400, 422):
                    self._takes_schemas = False
                    return attempt(seconds)
                raise failed(self.identity, error) from error
            return self._reply(message)

        return patiently(attempt, model=self.identity, timeout=timeout, retries=self._retries)

    def _reply(self, message: Value) -> Reply:
        # Servers of others answer with less than the client's types promise.
        blocks = cast("Sequence[Value] | None", getattr(message, "content", None))
        if not isinstance(blocks, list):
            raise ModelFailed(self.identity, "invalid_answer", "its answer has no content")
        usage = getattr(message, "usage", None)
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
        # A key of the environment is somebody else's, unless it was given.
        key = _NO_KEY if self._api_key is None else self._api_key.reveal()
        options = None if self._pinned is None else self._pinned.client_options()
        http = None if options is None else anthropic.DefaultHttpxClient(**options)
        return anthropic.Anthropic(
            base_url=self._base_url, api_key=key, max_retries=0, http_client=http
        )


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
