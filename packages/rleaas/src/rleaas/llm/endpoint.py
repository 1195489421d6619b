"""Where a language model is, and which protocol its endpoint speaks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal
from urllib.parse import urlsplit

from rlcore import ConfigurationError, Secret

from rleaas.llm.anthropic_chat import ANTHROPIC_URL, AnthropicChat
from rleaas.llm.chat import Chat
from rleaas.llm.openai_chat import OpenAIChat
from rleaas.llm.pinned import Pinned

Protocol = Literal["openai", "anthropic"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEndpoint:
    """An endpoint of language models.

    Attributes:
        url: its base URL; `anthropic:` before it says that it speaks Anthropic's protocol, which
            Anthropic's own does anyway.
        model: the name of the model.
        key: the key that it asks for.
    """

    url: str
    model: str
    key: Secret | None = None

    @property
    def protocol(self) -> Protocol:
        """What it speaks."""
        is_anthropic = self.url.startswith("anthropic:") or self.url.rstrip("/") == ANTHROPIC_URL
        return "anthropic" if is_anthropic else "openai"

    @property
    def base_url(self) -> str:
        """Its URL, without the word of its protocol.

        Raises:
            ConfigurationError: it is none.
        """
        url = self.url.removeprefix("anthropic:").removeprefix("openai:")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigurationError(
                f"{url!r} is no URL of a model's endpoint",
                hint="Write http://host:port/v1, or anthropic:http://host:port",
            )
        return url


def chat_of(
    endpoint: ModelEndpoint, model: str | None = None, *, pinned: Pinned | None = None
) -> Chat:
    """A chat with the endpoint's model, or with another one of it; reached where it is pinned to.

    Raises:
        ConfigurationError: the endpoint's URL is none.
    """
    make = AnthropicChat if endpoint.protocol == "anthropic" else OpenAIChat
    return make(
        model or endpoint.model, base_url=endpoint.base_url, api_key=endpoint.key, pinned=pinned
    )
