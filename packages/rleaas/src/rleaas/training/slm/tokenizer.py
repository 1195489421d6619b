"""A tokenizer made on the spot, from an environment's own texts and the pieces of its actions."""

# transformers and tokenizers leave most of their types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers

from rleaas.training.slm.language import Language
from rleaas.training.slm.libraries import PreTrainedTokenizerFast

PAD, END, OBSERVATION, ACTION = "<pad>", "<end>", "<observation>", "<action>"
MARKERS = (PAD, END, OBSERVATION, ACTION)
VOCABULARY = 512
"""The most tokens that are learned from texts: 256 bytes, and what is frequent."""


def build_tokenizer(texts: Iterable[str], language: Language) -> Any:  # a fast tokenizer
    """A byte-level BPE tokenizer that reads any text and keeps the language's pieces whole.

    The same texts and language give the same tokenizer.
    """
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        min_frequency=2,
        show_progress=False,
        special_tokens=list(MARKERS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
    )
    core.train_from_iterator([*texts, *language.texts], trainer)
    core.add_tokens([AddedToken(piece, normalized=False) for piece in language.pieces])
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[OBSERVATION, ACTION],
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def action_tokens(tokenizer: Any, language: Language) -> tuple[list[int], list[int]]:
    """The tokens that an action may consist of, and those of them that end one."""
    if not language.pieces:
        markers = set(tokenizer.convert_tokens_to_ids([PAD, OBSERVATION, ACTION]))
        every = [token for token in range(len(tokenizer)) if token not in markers]
        return every, [tokenizer.eos_token_id]
    pieces = tokenizer.convert_tokens_to_ids(list(language.pieces))
    ends = tokenizer.convert_tokens_to_ids(list(language.ends))
    if not ends:
        return [*pieces, tokenizer.eos_token_id], [tokenizer.eos_token_id]
    return pieces, ends
