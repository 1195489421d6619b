"""What a language model is to a judge, and what asking it costs; the calls are made elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from rleaas.verify.values import Value

Message = Mapping[str, Value]
"""`{"role": "system" | "user" | "assistant", "content": text}`."""


class Answered(Protocol):
    """What a model said, and what that took: a `ModelAnswer`, or what looks like one."""

    @property
    def text(self) -> str:
        """Its words."""
        ...

    @property
    def input_tokens(self) -> int:
        """Tokens that it read."""
        ...

    @property
    def output_tokens(self) -> int:
        """Tokens that it wrote."""
        ...


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """What a model of your own said, and how many tokens that took, where it is known."""

    text: str
    input_tokens: int = 0
    output_tokens: int = 0


class JudgeModel(Protocol):
    """A language model that judges, such as one of `rleaas.llm`."""

    @property
    def identity(self) -> str:
        """Which model where: what its answers are kept under."""
        ...

    def complete(
        self,
        messages: Sequence[Message],
        *,
        json_schema: Mapping[str, Value] | None = None,
        timeout: float,
    ) -> Answered:
        """Answer, as JSON of this schema where there is one, within so many seconds.

        Raises:
            ModelFailed: it did not. Whatever else it raises is a `grader_error` too.
        """
        ...


class AnswerCache(Protocol):
    """Keeps answers by the digest of all that they depend on."""

    def get(self, digest: str) -> str | None:
        """The answer that was kept; None: there is none."""
        ...

    def put(self, digest: str, answer: str) -> None:
        """Keep an answer."""
        ...


@dataclass(slots=True)
class Meter:
    """What judges' models have cost: calls, answers out of a cache, tokens."""

    calls: int = 0
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def count(self, answer: Answered) -> None:
        """Count an answer."""
        self.input_tokens += answer.input_tokens
        self.output_tokens += answer.output_tokens

    def add(self, other: Meter) -> None:
        """Count what another one counted."""
        self.calls += other.calls
        self.cached += other.cached
        self.input_tokens += other.input_tokens
        self.output_tokens += other.output_tokens

    def to_dict(self) -> dict[str, int]:
        """The costs as JSON."""
        return {
            "calls": self.calls,
            "cached": self.cached,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
        }
