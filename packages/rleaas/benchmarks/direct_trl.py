"""TRL alone around a loop over local environments, with the model, settings and seeds of a job.

What this product adds is not in it. Its episodes are side by side in another order than a job's, so
that they learn from the same seeds, but not the very same.
"""

# trl, transformers and torch leave most of their types open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, cast

import torch
from references import Reference
from rleaas.training.guarded import episode_seed
from rleaas.training.slm.conversation import Conversation, manner_of
from rleaas.training.slm.language import LANGUAGE, read_language
from rleaas.training.slm.libraries import offline
from rleaas.training.slm.model import Speaker, freeze_grammar, make_speaker
from rleaas.training.slm.speech import Speech, speak

with offline():
    from transformers import PrinterCallback, TrainerCallback

Policy = Callable[[Any], Any]


class Episodes:
    """Plays local episodes and keeps their returns, up to where a job would stop."""

    def __init__(self, reference: Reference, speaker: Speaker) -> None:
        self.returns: list[float] = []
        self.steps = 0
        self._reference = reference
        self._speaker = speaker

    @property
    def enough(self) -> bool:
        """Whether a job would stop: at the target, or after so many episodes."""
        asked = self._reference
        window = min(asked.average_over, asked.episodes)
        last = self.returns[-window:]
        reached = len(last) == window and sum(last) / window >= asked.target
        return reached or len(self.returns) >= asked.episodes

    def play(self, seeds: list[int], speech: Speech) -> tuple[list[Conversation], list[float]]:
        """One episode for each seed, side by side, in the plainest way."""
        manner = manner_of(self._speaker.tokenizer)
        envs = [self._reference.make() for _ in seeds]
        talks = [
            Conversation(manner.opening(env.reset(seed=seed)[0]))
            for env, seed in zip(envs, seeds, strict=True)
        ]
        earned, live = [0.0] * len(seeds), list(range(len(seeds)))
        while live:
            said = speak(self._speaker.model, [talks[row].tokens for row in live], speech)
            going: list[int] = []
            self.steps += len(live)
            for row, tokens in zip(live, said, strict=True):
                talks[row].act(tokens)
                observation, reward, terminated, truncated, _ = envs[row].step(
                    self._speaker.decode(tokens)
                )
                earned[row] += float(reward)
                if not (terminated or truncated):
                    talks[row].hear(manner.reply(observation, complete=tokens[-1] in speech.ends))
                    going.append(row)
            live = going
        self.returns += earned
        return talks, earned


class Talker:
    """The likeliest actions, in the light of the episode so far; tasks begin an episode."""

    def __init__(self, speaker: Speaker, speech: Speech, tasks: str) -> None:
        self._speaker = speaker
        self._speech = speech
        self._tasks = tasks
        self._manner = manner_of(speaker.tokenizer)
        self._talk = Conversation([])

    def __call__(self, observation: str) -> str:
        """The action."""
        if observation.startswith(self._tasks):
            self._talk = Conversation(self._manner.opening(observation))
        else:
            complete = self._talk.said[-1] in self._speech.ends
            self._talk.hear(self._manner.reply(observation, complete))
        tokens = speak(self._speaker.model, [self._talk.tokens], self._speech)[0]
        self._talk.act(tokens)
        return self._speaker.decode(tokens)


def reward(earned: list[float], **_: object) -> list[float]:
    """What the episodes earned."""
    return earned


def train(
    reference: Reference, settings: Mapping[str, object], seed: int
) -> tuple[Policy, float, int, list[float]]:
    """The trained policy, the seconds it took, its steps, and the return of each episode."""
    torch.set_num_threads(1)
    told = cast("Mapping[str, Any]", settings)
    with offline():
        trl: Any = import_module("trl")
        dataset: Any = import_module("datasets").Dataset
    declared = read_language(reference.make().metadata[LANGUAGE], "language")
    speaker = make_speaker(
        declared.texts, declared, seed=seed, layers=told["layers"], width=told["width"]
    )
    freeze_grammar(speaker.model)
    episodes = Episodes(reference, speaker)
    group, groups = int(told["num_generations"]), int(told["groups_per_update"])
    greedy = Speech(longest=told["max_completion_length"], ends=speaker.ends, pad=speaker.pad)
    sampled = Speech(
        longest=greedy.longest, ends=greedy.ends, pad=greedy.pad, temperature=told["temperature"]
    )
    made = 0

    def rollout(prompts: list[str], _trainer: Any) -> dict[str, Any]:
        nonlocal made
        seeds = [episode_seed(seed, 0, made * groups + row // group) for row in range(len(prompts))]
        made += 1
        talks, earned = episodes.play(seeds, sampled)
        return {
            "prompt_ids": [talk.prompt for talk in talks],
            "completion_ids": [talk.said for talk in talks],
            "env_mask": [talk.mask for talk in talks],
            "logprobs": None,
            "earned": earned,
        }

    class Budget(TrainerCallback):
        def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
            control.should_training_stop = episodes.enough

    with tempfile.TemporaryDirectory() as directory:
        arguments = trl.GRPOConfig(
            output_dir=directory,
            report_to="none",
            save_strategy="no",
            disable_tqdm=True,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            seed=seed,
            learning_rate=told["learning_rate"],
            lr_scheduler_type="constant",
            max_steps=reference.episodes // (group * groups),
            per_device_train_batch_size=group * groups,
            num_generations=group,
            max_completion_length=greedy.longest,
            beta=told["beta"],
            epsilon=told["clip_range"],
            entropy_coef=told["ent_coef"],
            scale_rewards="group" if told["std_normalization"] else "none",
        )
        trainer_class = trl.GRPOTrainer  # which imports it, for many seconds
        trainer = trainer_class(
            model=speaker.model,
            reward_funcs=reward,
            args=arguments,
            train_dataset=dataset.from_dict({"prompt": [""] * groups}),
            processing_class=speaker.tokenizer,
            rollout_func=rollout,
            callbacks=[Budget()],
        )
        trainer.remove_callback(PrinterCallback)  # standard output is the table's
        started = time.perf_counter()
        trainer.train()
        seconds = time.perf_counter() - started
    return Talker(speaker, greedy, "price of"), seconds, episodes.steps, episodes.returns
