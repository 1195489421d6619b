"""Chat completions in OpenAI's protocol, which many servers of models speak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from rlcore import MissingDependencyError, ModelFailed, Secret

from rleaas.llm.chat import MAX_TOKENS, RETRIES, SECONDS, Message, Reply, ToolRequest, ToolSchema
from rleaas.llm.failures import failed
from rleaas.llm.patience import patiently
from rleaas.llm.pinned import Pinned

if TYPE_CHECKING:
    from openai import OpenAI

# The client's own shapes are TypedDicts of many variants; what is sent is written here.
Value = Any

OPENAI_URL = "https://api.openai.com/v1"
_NO_KEY = "none"


class OpenAIChat:
    """A model behind an endpoint that speaks OpenAI's chat completions.

    Args:
        model: its name there.
        base_url: the endpoint, as a rule with `/v1` at its end.
        api_key: the key that it asks for; None: it asks for none.
        retries: how often a call that may pass is made again.
        max_tokens: the longest answer.
        pinned: where it may be reached; None: wherever its name leads.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str = OPENAI_URL,
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
        # Not every server can see to a schema; one that refuses it is asked without.
        self._takes_schemas = True

    def __repr__(self) -> str:
        return f"OpenAIChat({self.identity!r})"

    @property
    def identity(self) -> str:
        """Which model where."""
        return f"openai:{bare(self._base_url)}:{self.model}"

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
            MissingDependencyError: the package `openai` is not installed.
        """
        client = self._client

        def attempt(seconds: float) -> Reply:
            schema = json_schema if self._takes_schemas else None
            request: dict[str, Value] = {
                "model": self.model,
                "messages": [_message(one) for one in messages],
                "max_completion_tokens": self._max_tokens,
                "timeout": seconds,
            }
            if tools:
                request["tools"] = [{"type": "function", "function": dict(one)} for one in tools]
            if schema is not None:
                request["response_format"] = {
                    "type": "json_schema",
                    "json_schema": {"name": "answer", "schema": dict(schema), "strict": True},
                }
            try:
                completion = cast("Value", client.chat.completions).create(**request)
            except Exception as error:
                if schema is not None and getattr(error, "status_code", None) in (400, 422):
                    self._takes_schemas = False
                    return attempt(seconds)
                raise failed(self.identity, error) from error
            return self._reply(completion)

        return patiently(attempt, model=self.identity, timeout=timeout, retries=self._retries)

    def _reply(self, completion: Value) -> Reply:
        # Servers of others answer with less than the client's types promise.
        choices = cast("Sequence[Value] | None", getattr(completion, "choices", None))
        if not choices or getattr(choices[0], "message", None) is None:
            raise ModelFailed(self.identity, "invalid_answer", "its answer has no choices")
        message, usage = choices[0].message, getattr(completion, "usage", None)
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
        # A key of the environment is somebody else's, unless it was given.
        key = _NO_KEY if self._api_key is None else self._api_key.reveal()
        options = None if self._pinned is None else self._pinned.client_options()
        http = None if options is None else openai.DefaultHttpxClient(**options)
        return openai.OpenAI(base_url=self._base_url, api_key=key, max_retries=0, http_client=http)


def bare(url: str) -> str:
    """The URL without what it may hold of a user."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


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
