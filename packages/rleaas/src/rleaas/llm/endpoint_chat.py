"""A model behind an endpoint, over the official client of its protocol."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar
from urllib.parse import urlsplit

from rlcore import Secret

from rleaas.llm.chat import MAX_TOKENS, RETRIES, SECONDS, Message, Reply, ToolSchema
from rleaas.llm.failures import failed
from rleaas.llm.patience import patiently
from rleaas.llm.pinned import Pinned

# The clients' own shapes are TypedDicts of many variants; what is sent is written here.
Value = Any

_NO_KEY = "none"


class EndpointChat(ABC):
    """What the protocols share: patience, keys, and endpoints that take no schemas.

    Args:
        model: its name there.
        base_url: the endpoint; None: that of the protocol's maker.
        api_key: the key that it asks for; None: it asks for none.
        retries: how often a call that may pass is made again.
        max_tokens: the longest answer.
        pinned: where it may be reached; None: wherever its name leads.
    """

    protocol: ClassVar[str]
    makers_url: ClassVar[str]

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: Secret | None = None,
        retries: int = RETRIES,
        max_tokens: int = MAX_TOKENS,
        pinned: Pinned | None = None,
    ) -> None:
        self.model = model
        self._base_url = self.makers_url if base_url is None else base_url
        self._api_key = api_key
        self._retries = retries
        self._max_tokens = max_tokens
        self._pinned = pinned
        # Not every server can see to a schema; one that refuses it is asked without.
        self._takes_schemas = True

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.identity!r})"

    @property
    def identity(self) -> str:
        """Which model where."""
        return f"{self.protocol}:{bare(self._base_url)}:{self.model}"

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
            MissingDependencyError: the client of the protocol is not installed.
        """
        send = self._sender()

        def attempt(seconds: float) -> Reply:
            schema = json_schema if self._takes_schemas else None
            request = self._request(messages, tools, schema)
            try:
                answer = send(**request, timeout=seconds)
            except Exception as error:
                if schema is not None and getattr(error, "status_code", None) in (400, 422):
                    self._takes_schemas = False
                    return attempt(seconds)
                raise failed(self.identity, error) from error
            return self._reply(answer)

        return patiently(attempt, model=self.identity, timeout=timeout, retries=self._retries)

    @abstractmethod
    def _sender(self) -> Callable[..., Value]:
        """The call of the protocol's client that takes a request."""

    @abstractmethod
    def _request(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        schema: Mapping[str, Value] | None,
    ) -> dict[str, Value]:
        """What is sent."""

    @abstractmethod
    def _reply(self, answer: Value) -> Reply:
        """What was answered; servers of others answer with less than the client promises."""

    def _connection(self, http_client: Callable[..., Value]) -> dict[str, Value]:
        """What a client of the protocol is made with; patience is ours."""
        options = None if self._pinned is None else self._pinned.client_options()
        return {
            "base_url": self._base_url,
            # A key of the environment is somebody else's, unless it was given.
            "api_key": _NO_KEY if self._api_key is None else self._api_key.reveal(),
            "max_retries": 0,
            "http_client": None if options is None else http_client(**options),
        }


def bare(url: str) -> str:
    """The URL without what it may hold of a user."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
