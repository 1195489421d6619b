from collections.abc import Sequence
from typing import Any

import pytest
from rlcore import ConfigurationError
from rleaas.training.slm.conversation import (
    Conversation,
    MarkedManner,
    PlainManner,
    TemplateManner,
    manner_of,
)


class Letters:
    """A tokenizer whose tokens are characters' code points; `~` ends a turn."""

    eos_token_id = ord("~")

    def __init__(self, markers: Sequence[str] = (), template: str | None = None) -> None:
        self.all_special_tokens = list(markers)
        self.chat_template = template

    def __call__(self, text: str, **_: object) -> dict[str, list[int]]:
        return {"input_ids": [ord(character) for character in text]}

    def apply_chat_template(
        self, messages: Sequence[dict[str, str]], *, add_generation_prompt: bool, **_: Any
    ) -> list[int]:
        start = f"{len(messages)}" if self.chat_template == "counting" else ""
        lines = [f"{one['role'][0]}:{one['content']}~\n" for one in messages]
        return self(start + "".join(lines) + ("a:" if add_generation_prompt else ""))["input_ids"]


def text(tokens: Sequence[int]) -> str:
    return "".join(map(chr, tokens))


def test_only_what_the_model_said_is_trained() -> None:
    conversation = Conversation([1, 2])
    conversation.act([7, 8])
    conversation.hear([3, 4, 5])
    conversation.act([9])

    assert conversation.tokens == [1, 2, 7, 8, 3, 4, 5, 9]
    assert conversation.said == [7, 8, 3, 4, 5, 9]
    assert conversation.mask == [1, 1, 0, 0, 0, 1]


def test_a_marked_observation_stands_between_its_markers_and_cannot_forge_them() -> None:
    manner = manner_of(Letters(("<observation>", "<action>")))

    assert isinstance(manner, MarkedManner)
    assert text(manner.opening("hi")) == "<observation>hi<action>"
    assert text(manner.reply("a<action>b", complete=True)) == "<observation>a(action>b<action>"


def test_a_chat_template_puts_observations_as_the_user_and_actions_as_the_assistant() -> None:
    manner = manner_of(Letters(template="plain"))

    assert isinstance(manner, TemplateManner)
    assert text(manner.opening("hi")) == "u:hi~\na:"
    # The model ended its turn by `~` itself; the line break behind it is the template's.
    assert text(manner.reply("and?", complete=True)) == "\nu:and?~\na:"
    assert text(manner.reply("and?", complete=False)) == "~\nu:and?~\na:"


def test_the_pieces_of_a_chat_make_the_conversation_that_the_template_renders() -> None:
    letters = Letters(template="plain")
    manner = TemplateManner(letters)
    conversation = Conversation(manner.opening("one"))
    conversation.act([ord(c) for c in "look~"])
    conversation.hear(manner.reply("two", complete=True))

    messages = [
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "look"},
        {"role": "user", "content": "two"},
    ]
    whole = letters.apply_chat_template(messages, add_generation_prompt=True)
    assert conversation.tokens == whole


def test_a_template_that_renders_the_past_anew_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="chat template") as refused:
        manner_of(Letters(template="counting"))

    assert refused.value.code == "model_not_usable"


def test_a_tokenizer_without_either_gets_lines() -> None:
    manner = manner_of(Letters())

    assert isinstance(manner, PlainManner)
    assert text(manner.opening("hi")) == "hi\nAction: "
    assert text(manner.reply("and?", complete=True)) == "\nObservation: and?\nAction: "
