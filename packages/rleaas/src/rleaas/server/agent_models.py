"""Language models that play in evaluations: which one a request means, and who asks it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast
from urllib.parse import urlsplit

from rlcore import ConfigurationError

from rleaas.llm import Chat, ModelEndpoint, Pinned, Reply, chat_of
from rleaas.server.outbound import Outbound
from rleaas.server.store.tables import JsonObject

LLM: Final = "llm"
_HTTP: Final = frozenset({"http", "https"})
_KEPT: Final = 32
_SECONDS: Final = 60.0
_OPERATORS: Final = "operator"
_ASKED: Final = ("kind", "base_url", "protocol", "model", "timeout_seconds", "instructions")


class AgentModels:
    """Asks language models in the place of workers, which have no key of any.

    The operator's endpoint is asked with the operator's key. Another one that a request names is
    looked at like every address that callers name, and never sees that key.

    Args:
        endpoint: the operator's; None: there is none.
        outbound: where else this server may reach out to.
    """

    def __init__(self, endpoint: ModelEndpoint | None, outbound: Outbound) -> None:
        self._endpoint = endpoint
        self._outbound = outbound
        self._chats: dict[tuple[object, ...], Chat] = {}
        self._lock = threading.Lock()

    def settled(self, said: Mapping[str, object]) -> JsonObject:
        """The agent that a request describes, with the operator's endpoint where it names none.

        Raises:
            ConfigurationError: there is no model, or its URL is none or holds a secret.
            InvalidRequestError: its URL leads where this server may not ask.
        """
        own = self._endpoint
        url, protocol = said.get("base_url"), said.get("protocol")
        if url is None:
            if own is None:
                raise ConfigurationError(
                    "no language model is there to play",
                    code="no_agent_model",
                    hint="Name its endpoint with base_url and model; or start the server with "
                    "--agent-url and --agent-model, the key in RLEAAS_AGENT_KEY",
                )
            if protocol not in (None, own.protocol):
                raise ConfigurationError(
                    f"the server's own model speaks {own.protocol}, not {protocol}",
                    code="invalid_agent",
                    hint="Leave protocol out, or name the endpoint with base_url",
                )
            endpoint = ModelEndpoint(url=own.url, model=str(said.get("model") or own.model))
        else:
            endpoint = _named(str(url), said.get("model"), protocol)
            self._outbound.permit(endpoint.base_url, _HTTP)
        seconds, instructions = said.get("timeout_seconds"), said.get("instructions")
        return {
            "kind": LLM,
            "endpoint": _OPERATORS if url is None else "request",
            **({} if url is None else {"base_url": endpoint.base_url}),
            "protocol": endpoint.protocol,
            "model": endpoint.model,
            "identity": chat_of(endpoint).identity,
            "timeout_seconds": _SECONDS if seconds is None else seconds,
            **({} if instructions is None else {"instructions": instructions}),
        }

    def complete(
        self,
        agent: Mapping[str, object],
        messages: Sequence[Mapping[str, object]],
        tools: Sequence[Mapping[str, object]],
    ) -> Reply:
        """What the model of a settled agent answers.

        Raises:
            ModelFailed: nothing, in time.
            ConfigurationError: it was the operator's, who has none any more.
            InvalidRequestError: its URL leads by now where this server may not ask.
        """
        seconds = cast("float", agent["timeout_seconds"])
        return self._chat(agent).complete(messages, tools=tools, timeout=float(seconds))

    def _chat(self, agent: Mapping[str, object]) -> Chat:
        model = str(agent["model"])
        if agent["endpoint"] == _OPERATORS:
            own = self._endpoint
            if own is None:
                raise ConfigurationError(
                    "the server has no language model of its own any more",
                    code="no_agent_model",
                    hint="Start it with --agent-url and --agent-model again",
                )
            return self._kept((_OPERATORS, model), lambda: chat_of(own, model))
        url = str(agent["base_url"])
        place = self._outbound.permit(url, _HTTP)
        endpoint = ModelEndpoint(url=f"{agent['protocol']}:{url}", model=model)
        return self._kept(
            (endpoint, place),
            lambda: chat_of(endpoint, pinned=Pinned(place.host, place.port, place.addresses)),
        )

    def _kept(self, key: tuple[object, ...], make: Callable[[], Chat]) -> Chat:
        with self._lock:
            found = self._chats.pop(key, None)
            found = make() if found is None else found
            self._chats[key] = found
            while len(self._chats) > _KEPT:
                del self._chats[next(iter(self._chats))]
        return found


def as_asked(agent: object) -> object:
    """What a request says to get this agent again."""
    if not isinstance(agent, dict):
        return agent
    said = cast("JsonObject", agent)
    return {key: said[key] for key in _ASKED if said.get(key) is not None}


def _named(url: str, model: object, protocol: object) -> ModelEndpoint:
    if not model:
        raise ConfigurationError(
            "a language model that plays has a base_url and a model",
            code="invalid_agent",
            hint="Say which model of it plays",
        )
    plain = url.removeprefix("anthropic:").removeprefix("openai:")
    try:
        parts = urlsplit(plain)
    except ValueError as error:
        raise ConfigurationError(
            f"{url[:200]!r} is no URL of a model's endpoint: {error}", code="invalid_agent"
        ) from error
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ConfigurationError(
            "the base_url of an agent holds no user, password, query or fragment: it is shown in "
            "every report",
            code="invalid_agent",
            hint="The operator gives a key with --agent-url and RLEAAS_AGENT_KEY",
        )
    told = url if protocol is None else f"{protocol}:{plain}"
    endpoint = ModelEndpoint(url=told, model=str(model))
    try:
        chat_of(endpoint)  # refuses a URL that is none
    except ConfigurationError as error:
        raise ConfigurationError(str(error), code="invalid_agent", hint=error.hint) from error
    return endpoint
