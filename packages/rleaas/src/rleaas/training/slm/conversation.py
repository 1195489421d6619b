"""An episode as tokens: what the model said, and what it was told in between."""

# transformers leaves most of its types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from rlcore import ConfigurationError

MARKED_OBSERVATION, MARKED_ACTION = "<observation>", "<action>"


class Manner(Protocol):
    """How observations are put before a model."""

    def opening(self, observation: str) -> list[int]:
        """The tokens that an episode starts with, up to where the model speaks."""
        ...

    def reply(self, observation: str, complete: bool) -> list[int]:
        """The tokens between two actions; `complete`: the action before it ended itself."""
        ...


@dataclass(slots=True)
class Conversation:
    """One episode's tokens: the prompt, then actions and replies in turn.

    `mask` is 1 for the tokens of `said` that the model chose, 0 for the environment's.
    """

    prompt: list[int]
    said: list[int] = field(default_factory=list[int])
    mask: list[int] = field(default_factory=list[int])

    @property
    def tokens(self) -> list[int]:
        """All of it, as the model reads it."""
        return self.prompt + self.said

    def act(self, tokens: Sequence[int]) -> None:
        """The model's action."""
        self.said.extend(tokens)
        self.mask.extend([1] * len(tokens))

    def hear(self, tokens: Sequence[int]) -> None:
        """The environment's reply."""
        self.said.extend(tokens)
        self.mask.extend([0] * len(tokens))


class MarkedManner:
    """For the tokenizers made here: each text behind the marker of who speaks."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def opening(self, observation: str) -> list[int]:
        """Marker, observation, marker."""
        text = f"{MARKED_OBSERVATION}{_unmarked(observation)}{MARKED_ACTION}"
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])

    def reply(self, observation: str, complete: bool) -> list[int]:
        """The same: every action is followed by a marker, however it ended."""
        del complete
        return self.opening(observation)


class PlainManner:
    """For tokenizers without a chat template: lines of text."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def opening(self, observation: str) -> list[int]:
        """The observation, and the start of an action's line."""
        return list(self._tokenizer(f"{observation}\nAction: ")["input_ids"])

    def reply(self, observation: str, complete: bool) -> list[int]:
        """A line of what was observed, and the start of the next action's."""
        del complete
        text = f"\nObservation: {observation}\nAction: "
        return list(self._tokenizer(text, add_special_tokens=False)["input_ids"])


class TemplateManner:
    """For chat models: observations are the user's messages, actions the assistant's.

    What stands between two actions is cut out of a rendered conversation; the template must
    render the beginning of a longer conversation as it renders that beginning alone.

    Raises:
        ConfigurationError: the template does not.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self.reply("probe", complete=True)

    def opening(self, observation: str) -> list[int]:
        """The rendered first message, up to where the assistant speaks."""
        return self._render([_user(observation)], more=True)

    def reply(self, observation: str, complete: bool) -> list[int]:
        """What follows the assistant's message until it speaks again."""
        first = [_user("a"), {"role": "assistant", "content": "b"}]
        before = self._render(first, more=False)
        after = self._render([*first, _user(observation)], more=True)
        end = self._tokenizer.eos_token_id
        # Templates write a line break behind the end of a turn, which no model generates.
        last = max((i for i, token in enumerate(before) if token == end), default=len(before) - 1)
        kept = last + 1
        if after[:kept] != before[:kept]:
            raise ConfigurationError(
                "the model's chat template renders earlier messages anew when a conversation "
                "goes on, so the tokens of an episode cannot be told apart",
                code="model_not_usable",
                hint="Give the tokenizer another chat_template",
            )
        return after[kept:] if complete or end is None else [end, *after[kept:]]

    def _render(self, messages: list[dict[str, str]], *, more: bool) -> list[int]:
        return list(
            self._tokenizer.apply_chat_template(
                messages, add_generation_prompt=more, tokenize=True, return_dict=False
            )
        )


def manner_of(tokenizer: Any) -> Manner:
    """The manner that fits the tokenizer."""
    markers = set(tokenizer.all_special_tokens)
    if {MARKED_OBSERVATION, MARKED_ACTION} <= markers:
        return MarkedManner(tokenizer)
    if getattr(tokenizer, "chat_template", None):
        return TemplateManner(tokenizer)
    return PlainManner(tokenizer)


def _user(text: str) -> dict[str, str]:
    return {"role": "user", "content": text}


def _unmarked(text: str) -> str:
    # An environment that says a marker must not speak in the model's place.
    for marker in (MARKED_OBSERVATION, MARKED_ACTION):
        text = text.replace(marker, marker.replace("<", "("))
    return text
