"""Plays the episodes that an update learns from; TRL calls it as its rollout function."""

# gymnasium, trl and torch leave most of their types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from gymnasium import spaces
from rlcore import ConfigurationError

from rleaas.training.guarded import GuardedEnv
from rleaas.training.slm.action_text import fitted
from rleaas.training.slm.conversation import Conversation, Manner
from rleaas.training.slm.model import Speaker
from rleaas.training.slm.speech import Speech, speak

Ended = Callable[[float, int, Mapping[str, Any]], None]
"""Told of every episode's return, steps and last info."""


@dataclass(slots=True)
class Episode:
    """One episode on its way: row of the update, tokens so far, and what it earned."""

    row: int
    conversation: Conversation
    reward: float = 0.0
    steps: int = 0


@dataclass(slots=True)
class Played:
    """The episodes of one update, by row; a lost one, or one over the budget, has no return."""

    conversations: list[Conversation | None]
    returns: list[float | None]
    steps: int = 0


class Rollouts:
    """Plays episodes over the sessions, all at once: each session goes on to the next row.

    Args:
        sessions: where episodes are played.
        speaker: who plays.
        manner: how observations are put.
        stop: asked between tokens and steps.
        ended: told of each episode, in an order that the seeds alone decide.
        stepped: told of each sweep's steps.
    """

    def __init__(
        self,
        sessions: Sequence[GuardedEnv],
        speaker: Speaker,
        manner: Manner,
        *,
        stop: Callable[[], bool],
        ended: Ended,
        stepped: Callable[[int], None],
    ) -> None:
        self._sessions = sessions
        self._speaker = speaker
        self._manner = manner
        self._stop = stop
        self._ended = ended
        self._stepped = stepped

    def play(self, seeds: Sequence[int], speech: Speech) -> Played:
        """One episode for each seed.

        Raises:
            Interrupted: `stop` said so.
            ConfigurationError: an observation alone is longer than the model reads.
            rlcore.RLMeshException: the environment failed.
        """
        played = Played([None] * len(seeds), [None] * len(seeds))
        rows = iter(enumerate(seeds))
        live: dict[int, Episode] = {}
        for index in range(len(self._sessions)):
            self._next(index, rows, live, speech)
        while live:
            playing = list(live.items())
            said = speak(
                self._speaker.model,
                [episode.conversation.tokens for _, episode in playing],
                speech,
                self._stop,
            )
            self._stepped(len(playing))
            texts = [
                self._send(index, tokens) for (index, _), tokens in zip(playing, said, strict=True)
            ]
            for (index, episode), tokens, text in zip(playing, said, texts, strict=True):
                if self._act(index, episode, tokens, text, speech, played):
                    del live[index]
                    self._next(index, rows, live, speech)
        return played

    def _next(
        self, index: int, rows: Iterator[tuple[int, int]], live: dict[int, Episode], speech: Speech
    ) -> None:
        for row, seed in rows:
            observation, _ = self._sessions[index].reset(seed=seed)
            prompt = self._manner.opening(observation)
            room = self._speaker.context - speech.longest
            if len(prompt) > room:
                raise ConfigurationError(
                    f"an observation is {len(prompt)} tokens long; the model reads "
                    f"{self._speaker.context}, of which an action may take {speech.longest}",
                    code="context_too_short",
                    hint="Use a model of a longer context, or lower max_completion_length",
                )
            live[index] = Episode(row, Conversation(prompt))
            return

    def _send(self, index: int, tokens: list[int]) -> str:
        """Return the action that was said; where that works, its session has it already."""
        session = self._sessions[index]
        text = fitted(self._speaker.decode(tokens), cast("spaces.Text", session.given_actions))
        if session.begins:
            session.begin(text)
        return text

    def _act(
        self,
        index: int,
        episode: Episode,
        tokens: list[int],
        text: str,
        speech: Speech,
        played: Played,
    ) -> bool:
        session = self._sessions[index]
        episode.conversation.act(tokens)
        observation, reward, terminated, truncated, info = session.step(text)
        episode.reward += reward
        episode.steps += 1
        if not (terminated or truncated):
            complete = tokens[-1] in speech.ends
            episode.conversation.hear(self._manner.reply(observation, complete))
            used = len(episode.conversation.tokens) + speech.longest
            if used <= self._speaker.context:
                return False
            # The model cannot read on; what it earned so far counts.
            info = {**info, "episode": {"r": episode.reward, "l": episode.steps}}
        played.conversations[episode.row] = episode.conversation
        if "episode" in info:
            played.returns[episode.row] = episode.reward
            self._ended(episode.reward, episode.steps, info)
        return True
