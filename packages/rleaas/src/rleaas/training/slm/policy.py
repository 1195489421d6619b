"""A trained language model as a policy: observation text in, action text out."""

# transformers and gymnasium leave most of their types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

import torch
from gymnasium import spaces
from rlcore import ConfigurationError, InvalidObservationError, UnsupportedRequestError

from rleaas.training.checkpoint_file import Manifest
from rleaas.training.slm.action_text import fitted
from rleaas.training.slm.checkpoint import read_speaker
from rleaas.training.slm.conversation import Conversation, manner_of
from rleaas.training.slm.speech import Speech, speak
from rleaas.training.space_json import space_from_json

_MEMORY = "conversation"


class SpeakingPolicy:
    """Says the likeliest action to an observation, in the light of the episode so far.

    Runs of rlmesh give each episode's `context`, whose `state` keeps the conversation. Without
    one, every observation is the first of an episode.
    """

    def __init__(self, manifest: Manifest, path: Path) -> None:
        self.manifest = manifest
        # One conversation at a time: a second thread only waits for the first.
        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory(prefix="rleaas-slm-") as directory:
            self._speaker = read_speaker(path, Path(directory))
        self._speaker.model.eval()
        self._manner = manner_of(self._speaker.tokenizer)
        try:
            self._actions = cast("spaces.Text", space_from_json(manifest.action_space))
            longest = int(cast("int", manifest.network["max_completion_length"]))
        except (KeyError, TypeError, ValueError) as error:
            raise ConfigurationError(
                f"checkpoint {path.name!r} does not describe its own policy: {error}",
                code="checkpoint_unreadable",
                hint="Download it again, or name another checkpoint",
            ) from error
        self._speech = Speech(longest=longest, ends=self._speaker.ends, pad=self._speaker.pad)

    def predict(self, observation: Any, context: Mapping[str, Any] | None = None) -> str:
        """The best action for one observation.

        Raises:
            InvalidObservationError: it is no text, or longer than the model reads.
        """
        if not isinstance(observation, str):
            raise InvalidObservationError(
                f"the policy of job {self.manifest.job_id!r} takes texts, got {observation!r}",
                hint=f"It was trained on {self.manifest.environment}",
            )
        conversation = self._conversation(observation, context)
        room = self._speaker.context - self._speech.longest
        if len(conversation.tokens) > room:
            raise InvalidObservationError(
                f"the episode is {len(conversation.tokens)} tokens long; the model reads {room} "
                "beside an action",
                hint="Training ends such episodes; limit the steps of this one",
            )
        tokens = speak(self._speaker.model, [conversation.tokens], self._speech)[0]
        conversation.act(tokens)
        return fitted(self._speaker.decode(tokens), self._actions)

    def network(self) -> NoReturn:
        """A language model maps no batch of observations to actions in one pass.

        Raises:
            UnsupportedRequestError: always.
        """
        raise UnsupportedRequestError(
            "a language model chooses an action token by token, so it is no network from "
            "observations to actions that ONNX could hold",
            hint="Export it as 'huggingface' or 'safetensors'",
        )

    def _conversation(self, observation: str, context: Mapping[str, Any] | None) -> Conversation:
        state: dict[str, Any] = {} if context is None else context["state"]
        known = cast("Conversation | None", state.get(_MEMORY))
        if known is None:
            known = Conversation(self._manner.opening(observation))
            state[_MEMORY] = known
        else:
            complete = known.said[-1] in self._speech.ends
            known.hear(self._manner.reply(observation, complete))
        return known


def load(manifest: Manifest, path: Path) -> SpeakingPolicy:
    """The policy of a verified file."""
    return SpeakingPolicy(manifest, path)
