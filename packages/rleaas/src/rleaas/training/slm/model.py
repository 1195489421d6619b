"""The language model to train: a tiny one made here, or one in a local directory."""

# transformers, peft and torch leave most of their types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
from rlcore import ConfigurationError

from rleaas.training.slm.language import Language
from rleaas.training.slm.libraries import (
    AutoModelForCausalLM,
    AutoTokenizer,
    PhiConfig,
    PhiForCausalLM,
)
from rleaas.training.slm.settings import Lora
from rleaas.training.slm.tokenizer import action_tokens, build_tokenizer

CONTEXT = 512
INITIAL_DEVIATION = 0.1
"""Of fresh weights: at the usual 0.02 so little passes through small layers that the reference task
takes four times as many episodes."""
_NEVER = -1e4
"""The bias of what an action cannot hold: no probability is left of it in 32 bits."""


@dataclass(slots=True)
class Speaker:
    """A causal language model with its tokenizer, and the tokens that end what it says."""

    model: Any  # a PreTrainedModel, or a PeftModel around one
    tokenizer: Any  # a fast tokenizer

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens that end an action."""
        known = self.model.generation_config.eos_token_id
        ends = [known] if isinstance(known, int) else list(cast("Iterable[int]", known or ()))
        # Tokens of this model's own grammar end actions on their own; others end by the tokenizer.
        own = self.tokenizer.eos_token_id
        return tuple(ends) if ends or own is None else (own,)

    @property
    def pad(self) -> int:
        """The token that fills up."""
        found = self.tokenizer.pad_token_id
        return cast("int", self.tokenizer.eos_token_id if found is None else found)

    @property
    def context(self) -> int:
        """The most tokens that the model reads."""
        limit = getattr(self.model.config, "max_position_embeddings", None)
        return limit if isinstance(limit, int) and limit > 0 else 2**31

    def decode(self, tokens: list[int]) -> str:
        """The text of an action."""
        return cast("str", self.tokenizer.decode(tokens, skip_special_tokens=True))


def make_speaker(
    texts: Iterable[str], language: Language, *, seed: int, layers: int, width: int
) -> Speaker:
    """A small decoder with random weights over a tokenizer of these texts.

    Pieces of the language are tokens. What it does not allow in an action has a bias of -10000
    in the last layer, in the weights themselves, so whoever loads them is bound by it too. The
    same arguments give the same model.
    """
    tokenizer = build_tokenizer(texts, language)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = PhiForCausalLM(
            PhiConfig(
                vocab_size=len(tokenizer),
                hidden_size=width,
                intermediate_size=4 * width,
                num_hidden_layers=layers,
                num_attention_heads=4,
                max_position_embeddings=CONTEXT,
                initializer_range=INITIAL_DEVIATION,
                bos_token_id=None,
                eos_token_id=tokenizer.eos_token_id,
                pad_token_id=tokenizer.pad_token_id,
                # What was read and what is said are the same to it, which makes copying easy.
                tie_word_embeddings=True,
            )
        )
    allowed, ends = action_tokens(tokenizer, language)
    bias = torch.full((len(tokenizer),), _NEVER)
    bias[allowed] = 0.0
    model.lm_head.bias.data.copy_(bias)
    model.generation_config.eos_token_id = ends
    model.generation_config.pad_token_id = tokenizer.pad_token_id
    return Speaker(model, tokenizer)


def load_speaker(directory: Path) -> Speaker:
    """The model and tokenizer in a local directory, in the layout of Hugging Face.

    Only safetensors are read, and no code of the directory runs.

    Raises:
        ConfigurationError: there is no such model.
    """
    if not (directory / "config.json").is_file():
        raise _unusable(directory, "it has no config.json")
    try:
        model = AutoModelForCausalLM.from_pretrained(
            directory,
            local_files_only=True,
            trust_remote_code=False,
            use_safetensors=True,
            dtype=torch.float32,
        )
        tokenizer = AutoTokenizer.from_pretrained(
            directory, local_files_only=True, trust_remote_code=False
        )
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise _unusable(directory, f"{type(error).__name__}: {error}") from error
    speaker = Speaker(model, tokenizer)
    if not speaker.ends:
        raise _unusable(directory, "neither its tokenizer nor its generation config has an end")
    return speaker


def freeze_grammar(model: Any) -> None:
    """Keep the bias of the last layer as it is, where it holds what actions cannot say."""
    head = model.get_output_embeddings()
    bias = getattr(head, "bias", None)
    if bias is not None and bool((bias <= _NEVER).any()):
        bias.requires_grad_(False)


def still(model: Any) -> None:
    """Switch the model's own dropout off: updates must see what the episodes were played by."""
    for module in model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 0.0


def adapted(model: Any, lora: Lora, *, seed: int) -> Any:  # a PeftModel
    """The model with a fresh low-rank adapter, which alone will be trained.

    Raises:
        ConfigurationError: the adapter does not fit the model.
    """
    from peft import LoraConfig, get_peft_model

    modules = lora.target_modules
    config = LoraConfig(
        task_type="CAUSAL_LM",
        r=lora.r,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules="all-linear" if modules is None else list(modules),
    )
    try:
        with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
            # peft 0.21 asks transformers 5.24 by a name that is on its way out.
            warnings.simplefilter("ignore", FutureWarning)
            torch.manual_seed(seed)
            return get_peft_model(model, config)
    except (ValueError, KeyError, TypeError) as error:
        raise ConfigurationError(
            f"the adapter does not fit the model: {error}",
            code="invalid_training_config",
            hint="lora.target_modules names linear layers of the model; leave it out to take all",
        ) from error


def _unusable(directory: Path, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"model {str(directory)!r} cannot be used: {why}",
        code="model_not_usable",
        hint="Give a local directory with config.json, *.safetensors and a tokenizer",
    )
