"""Lets a model speak: many conversations at once, each up to the end of one action."""

# transformers and torch leave most of their types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from rleaas.training.slm.libraries import GenerationConfig


class Diverged(Exception):
    """The model's weights, or what was computed from them, are not finite."""


class Interrupted(Exception):
    """Somebody asked to stop in the middle of an action."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Speech:
    """How actions are chosen.

    Attributes:
        longest: the most tokens of one action.
        ends: the tokens that end one.
        pad: the token that fills up shorter conversations.
        temperature: of sampling; None takes the likeliest token.
        top_p: the share of the probability that is sampled from.
    """

    longest: int
    ends: tuple[int, ...]
    pad: int
    temperature: float | None = None
    top_p: float = 1.0

    def config(self) -> Any:  # a GenerationConfig
        """The same for transformers."""
        common: dict[str, Any] = {
            "max_new_tokens": self.longest,
            "eos_token_id": list(self.ends),
            "pad_token_id": self.pad,
            "disable_compile": True,
        }
        if self.temperature is None:
            return GenerationConfig(do_sample=False, **common)
        return GenerationConfig(
            do_sample=True, temperature=self.temperature, top_p=self.top_p, top_k=0, **common
        )


def speak(
    model: Any,
    conversations: Sequence[Sequence[int]],
    speech: Speech,
    stop: Callable[[], bool] | None = None,
) -> list[list[int]]:
    """One action for each conversation, as tokens; the last is an end unless it was cut off.

    Raises:
        Diverged: the model gives no probabilities any more.
        Interrupted: `stop` said so between two tokens.
    """
    longest = max(len(tokens) for tokens in conversations)
    ids = torch.full((len(conversations), longest), speech.pad)
    seen = torch.zeros_like(ids)
    for row, tokens in enumerate(conversations):
        ids[row, longest - len(tokens) :] = torch.tensor(tokens)
        seen[row, longest - len(tokens) :] = 1
    interrupted = False

    def asked(_ids: Any, _scores: Any, **_: Any) -> Any:
        nonlocal interrupted
        interrupted = stop is not None and stop()
        return torch.full((len(conversations),), interrupted)

    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            out = model.generate(
                input_ids=ids,
                attention_mask=seen,
                generation_config=speech.config(),
                stopping_criteria=[asked],
            )
    except RuntimeError as error:
        # torch has no exception of its own for it; sampling says "probability tensor contains ...".
        if "probability tensor" not in str(error):
            raise
        raise Diverged("the model gives no probabilities any more") from error
    finally:
        model.train(was_training)
    if interrupted:
        raise Interrupted
    return [_until_end(row, speech.ends) for row in out[:, longest:].tolist()]


def _until_end(tokens: list[int], ends: tuple[int, ...]) -> list[int]:
    for index, token in enumerate(tokens):
        if token in ends:
            return tokens[: index + 1]
    return tokens
