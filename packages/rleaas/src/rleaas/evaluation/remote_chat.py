"""A language model that the server asks: it alone has the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rlcore import ModelFailed

from rleaas.llm.chat import SECONDS, Message, Reply, ToolRequest, ToolSchema
from rleaas.training.ask_server import NotAnswered, ask_server
from rleaas.verify.judge_prompt import finite

# JSON of any form; who reads it looks at what it is.
Value = Any
_LATER = 20.0
"""How much longer the server may take than the model may."""


class RemoteChat:
    """The model of an evaluation's agent, asked through the worker's server.

    Args:
        path: where the server is asked.
        identity: which model where.
    """

    def __init__(self, path: str, identity: str) -> None:
        self._path = path
        self._identity = identity

    @property
    def identity(self) -> str:
        """Which model where."""
        return self._identity

    def complete(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[ToolSchema] = (),
        json_schema: Mapping[str, Value] | None = None,
        timeout: float = SECONDS,
    ) -> Reply:
        """Answer a conversation; how long it may take, the agent's own settings say.

        Raises:
            ModelFailed: it did not answer.
        """
        body = {"messages": list(messages), "tools": list(tools)}
        try:
            said = ask_server(self._path, finite(body), seconds=timeout + _LATER)
        except NotAnswered as error:
            detail = f"the server did not ask it: {error.detail}"
            raise ModelFailed(self._identity, error.reason, detail) from error
        failed = said.get("error")
        if failed is not None:
            raise ModelFailed(self._identity, failed["reason"], failed["detail"])
        return Reply(
            said["text"],
            tuple(
                ToolRequest(one["id"], one["name"], one["arguments"]) for one in said["tool_calls"]
            ),
            said["input_tokens"],
            said["output_tokens"],
        )
