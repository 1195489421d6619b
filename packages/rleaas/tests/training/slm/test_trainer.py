"""One process imports transformers and TRL, for many seconds: all that needs them is here."""

import ast
import dataclasses
import json
import math
import time
from collections.abc import Callable, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, cast
from zipfile import ZipFile

import gymnasium
import pytest
import rlmesh
import torch
from gymnasium import spaces
from rlcore import (
    ConfigurationError,
    EnvironmentIdentity,
    InvalidObservationError,
    TrainingJobCancelled,
    TrainingJobFailed,
    UnsupportedRequestError,
)
from rleaas import Client
from rleaas.server.local import LocalServer
from rleaas.training.checkpoint_file import read_manifest, read_weights
from rleaas.training.config import validate_training_config
from rleaas.training.curriculum import validate_curriculum
from rleaas.training.session_parts import SessionParts
from rleaas.training.slm.tool_desk import ToolDeskEnv
from rleaas.training.trainer import (
    Progress,
    Resume,
    SessionFactory,
    StopReason,
    TrainingResults,
    TrainingTask,
    trainer_for,
)

# The first test waits for all the imports.
pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

SMALL = {
    "seed": 3,
    "layers": 1,
    "width": 16,
    "num_generations": 4,
    "groups_per_update": 2,
    "max_completion_length": 6,
    "num_envs": 3,
}


@dataclasses.dataclass
class Notebook:
    """A sink that keeps what it is told, and asks for a stop after so many episodes."""

    stop_after: int | None = None
    returns: list[float | None] = dataclasses.field(default_factory=list[float | None])
    updates: list[Mapping[str, float]] = dataclasses.field(
        default_factory=list[Mapping[str, float]]
    )
    saved: list[tuple[str, Path, Path]] = dataclasses.field(
        default_factory=list[tuple[str, Path, Path]]
    )

    def episode_finished(self, progress: Progress) -> None:
        self.returns.append(progress.episode_reward)

    def update_finished(self, progress: Progress, diagnostics: Mapping[str, float]) -> None:
        self.updates.append(diagnostics)

    def log(self, line: str) -> None: ...

    def alert(self, kind: str, data: Mapping[str, object]) -> None: ...

    def checkpoint_saved(
        self, path: Path, label: str, progress: Progress, state: Path | None = None
    ) -> None:
        assert state is not None
        self.saved.append((label, path, state))

    def stop_requested(self) -> bool:
        return self.stop_after is not None and len(self.returns) >= self.stop_after


Train = Callable[..., TrainingResults]


@pytest.fixture
def train(tmp_path: Path) -> Train:
    """Run SLM in a directory of its own."""

    def run(
        sink: Notebook,
        job_id: str,
        *,
        episodes: int = 20,
        make_env: Callable[[], gymnasium.Env[Any, Any]] = ToolDeskEnv,
        sessions: SessionFactory | None = None,
        resume: Resume | None = None,
        **config: object,
    ) -> TrainingResults:
        directory = tmp_path / job_id
        directory.mkdir()
        task = TrainingTask(
            job_id=job_id,
            config=validate_training_config("SLM", episodes, 50, {**SMALL, **config}),
            seed=3,
            environment=EnvironmentIdentity("Desk", 1, "sha256:" + "0" * 64),
            make_env=sessions or (lambda session: make_env()),
            directory=directory,
            resume=resume,
        )
        return trainer_for("SLM").train(task, sink)

    return run


def numbers(sink: Notebook) -> list[dict[str, float]]:
    """What updates told, without how fast they were."""
    return [
        {name: value for name, value in update.items() if name != "steps_per_second"}
        for update in sink.updates
    ]


def test_a_budget_of_episodes_is_met_exactly_and_each_update_tells_its_numbers(
    train: Train,
) -> None:
    sink = Notebook()

    results = train(sink, "job_1", episodes=20, beta=0.1)

    assert results.stopped_by is StopReason.EPISODE_BUDGET
    assert results.progress.episode == len(sink.returns) == 20
    assert len(sink.updates) == 3  # of 8, 8 and 4 episodes
    for told in sink.updates:
        assert {"loss", "kl", "entropy", "reward_std", "completion_length", "clip_ratio"} <= set(
            told
        )
        assert told["steps_per_second"] > 0
    # A model of random weights takes all 11 pieces for more or less equally likely.
    assert sink.updates[0]["entropy"] == pytest.approx(math.log(11), abs=0.4)
    assert sink.updates[0]["kl"] == pytest.approx(0.0, abs=1e-6)
    assert [label for label, _, _ in sink.saved] == ["final"]


def test_the_same_seed_gives_the_same_curve_and_the_same_file(train: Train) -> None:
    one, two, other = Notebook(), Notebook(), Notebook()

    train(one, "job_1")
    (Path(one.saved[0][1]).parent).rename(one.saved[0][1].parent.with_name("kept"))
    train(two, "job_1")
    train(other, "job_2", temperature=0.7)

    kept = one.saved[0][1].parent.with_name("kept") / one.saved[0][1].name
    assert one.returns == two.returns
    assert numbers(one) == numbers(two)
    assert kept.read_bytes() == two.saved[0][1].read_bytes()
    assert numbers(one) != numbers(other)


@pytest.mark.parametrize(
    "config",
    [
        {"learning_rate_schedule": "linear", "n_epochs": 2, "batch_size": 4},
        {"lora": {"r": 2}},
    ],
    ids=["whole model", "adapter"],
)
def test_a_restarted_job_goes_on_as_if_nothing_had_happened(
    train: Train, config: dict[str, object]
) -> None:
    whole, first, rest = Notebook(), Notebook(stop_after=20), Notebook()
    train(whole, "job_1", episodes=32, **config)

    cut = train(first, "job_2", episodes=32, **config)
    _, policy, state = first.saved[-1]
    # Twenty were played; the four of the third update that nothing was learned from come again.
    resume = Resume(policy=policy, state=state, same_job=True)
    results = train(rest, "job_3", episodes=32, resume=resume, **config)

    assert cut.stopped_by is StopReason.CANCELLED
    assert read_manifest(policy).episode == 16
    assert first.returns[:16] + rest.returns == whole.returns
    assert numbers(first)[:2] + numbers(rest) == numbers(whole)
    assert results.progress.episode == 32
    ours, theirs = read_weights(rest.saved[-1][1]), read_weights(whole.saved[-1][1])
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_another_job_starts_from_the_weights_with_its_own_counters(train: Train) -> None:
    first, second = Notebook(), Notebook()
    train(first, "job_1")

    resume = Resume(policy=first.saved[-1][1])
    results = train(second, "job_2", episodes=8, resume=resume, learning_rate=1e-12)

    assert results.progress.episode == 8
    before, after = read_weights(first.saved[-1][1]), read_weights(second.saved[-1][1])
    assert all(torch.allclose(before[name], after[name], atol=1e-9) for name in before)


def test_weights_that_are_no_numbers_end_the_job_as_diverged(train: Train) -> None:
    sink = Notebook()
    with pytest.raises(TrainingJobFailed, match="diverged") as failed:
        train(sink, "job_1", learning_rate=1e30, episodes=64)

    assert failed.value.code == "training_diverged"
    assert sink.saved == []


def test_a_checkpoint_speaks_alone_and_as_a_directory_of_transformers(
    train: Train, tmp_path: Path
) -> None:
    from rleaas.training.loaded_policy import open_policy
    from rleaas.training.slm.checkpoint import read_speaker
    from transformers import pipeline

    sink = Notebook()
    train(sink, "job_1", lora={"r": 2, "alpha": 4})
    policy = cast("Any", open_policy(sink.saved[-1][1]))

    env = ToolDeskEnv()
    task, _ = env.reset(seed=1)
    context: dict[str, Any] = {"state": {}}
    first = policy.predict(task, context)
    assert env.action_space.contains(first)
    assert first == policy.predict(task)
    env.step(first)
    assert isinstance(policy.predict(env.step(first)[0], context), str)
    with pytest.raises(InvalidObservationError, match="takes texts"):
        policy.predict(7)
    with pytest.raises(UnsupportedRequestError, match="token by token"):
        policy.network()

    directory = tmp_path / "exported"
    directory.mkdir()
    read_speaker(sink.saved[-1][1], directory)
    speaks = pipeline("text-generation", model=str(directory), device="cpu")
    said = speaks(f"<observation>{task}<action>", do_sample=False, return_full_text=False)
    assert said[0]["generated_text"] == first
    # What it was made with is in the directory itself, and can be trained on from there.
    train(Notebook(), "job_2", episodes=8, model=str(directory))


def test_a_text_environment_that_declares_nothing_gets_a_tokenizer_of_its_own_texts(
    train: Train,
) -> None:
    class Echo(gymnasium.Env[str, str]):
        observation_space = spaces.Text(60, charset="abcdefghijklmnopqrstuvwxyz ")
        action_space = spaces.Text(8, min_length=2, charset="abcdefg")

        def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, Any]:
            super().reset(seed=seed)
            return "say something", {}

        def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
            assert self.action_space.contains(action)
            return "thank you", float(len(action)), True, False, {}

    sink = Notebook()
    train(sink, "job_1", episodes=8, make_env=Echo)

    assert len(sink.returns) == 8
    assert all(reward is not None and 2 <= reward <= 8 for reward in sink.returns)


def test_a_model_that_is_not_there_is_refused(train: Train, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"it has no config\.json") as refused:
        train(Notebook(), "job_1", model=str(tmp_path / "nothing"))

    assert refused.value.code == "model_not_usable"


def test_an_environment_of_numbers_is_refused_with_what_fits(train: Train) -> None:
    with pytest.raises(ConfigurationError, match="SLM cannot learn") as refused:
        train(Notebook(), "job_1", make_env=lambda: gymnasium.make("CartPole-v1"))

    assert refused.value.code == "space_not_learnable"
    assert "PPO" in (refused.value.hint or "")


def test_nothing_is_written_outside_the_job_and_the_card_says_how_it_was_trained(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home)
    sink = Notebook()
    train(sink, "job_1", episodes=8)

    assert list(home.iterdir()) == []
    manifest = read_manifest(sink.saved[-1][1])
    assert manifest.family == "slm"
    assert manifest.hyperparameters["num_generations"] == 4
    assert json.loads(json.dumps(manifest.hyperparameters)) == manifest.hyperparameters


class Tiers:
    """Opens environments that are solved by saying anything, and keeps the tiers they were at."""

    def __init__(self) -> None:
        self.seen: list[int] = []
        self.parts = SessionParts.of(
            max_steps=5,
            scenarios={"scenarios": [{"id": f"s{tier}", "tier": tier} for tier in (1, 2, 3)]},
            curriculum=validate_curriculum({"window": 6}),
        )

    def __call__(self, session: int) -> gymnasium.Env[Any, Any]:
        seen = self.seen

        class Easy(gymnasium.Env[str, str]):
            observation_space = spaces.Text(60, charset="abcdefghijklmnopqrstuvwxyz ")
            action_space = spaces.Text(8, min_length=2, charset="abcdefg")

            def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[str, Any]:
                super().reset(seed=seed)
                if options is not None:
                    seen.append(options["scenario"]["tier"])
                return "say something", {}

            def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
                return "thank you", float(len(action)), True, False, {"is_success": True}

        return self.parts.wrap(Easy())


def test_a_restarted_job_is_at_the_tier_that_it_had_mastered(train: Train) -> None:
    whole, first, rest = Tiers(), Tiers(), Tiers()
    cut = Notebook(stop_after=16)
    train(Notebook(), "job_1", episodes=32, sessions=whole)

    train(cut, "job_2", episodes=32, sessions=first)
    _, policy, state = cut.saved[-1]
    resume = Resume(policy=policy, state=state, same_job=True)
    train(Notebook(), "job_3", episodes=32, sessions=rest, resume=resume)

    assert [whole.seen[-32], whole.seen[-1]] == [1, 3]
    assert rest.seen[-16:] == whole.seen[-16:]


# What a Python process runs first; Python calls the hook for everything it connects to or looks up.
AUDIT = """
import os, sys
if "rleaas.training.worker" in sys.orig_argv:
    heard = os.open({path!r}, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def hook(event, arguments):
        if event in ("socket.connect", "socket.sendto", "socket.getaddrinfo"):
            place = arguments[0] if event == "socket.getaddrinfo" else arguments[1]
            os.write(heard, (repr(place) + "\\n").encode())

    sys.addaudithook(hook)
"""


def is_here(place: object) -> bool:
    """Whether an address, or a host to look up, is this machine."""
    if isinstance(place, tuple):
        place = cast("tuple[object, ...]", place)[0]
    text = place.decode() if isinstance(place, bytes) else str(place)
    return text == "localhost" or text.startswith(("/", "\0")) or ip_address(text).is_loopback


def test_a_job_talks_to_this_machine_only_and_leaves_a_model_that_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = tmp_path / "connections"
    (tmp_path / "sitecustomize.py").write_text(AUDIT.format(path=str(connections)))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("RLEAAS_CACHE", str(tmp_path / "cache"))
    config = {**SMALL, "checkpoint_interval": 8}
    seeds = [10**6, 10**6 + 1]
    with LocalServer(tmp_path / "data") as server, Client(base_url=server.url) as client:
        source = "python://rleaas.training.slm.tool_desk:ToolDeskEnv"
        client.Environment.create("Desk", source=source).wait_until_ready(timeout=60)
        job, endless = (
            client.TrainingJob.run(
                "Desk", algorithm="SLM", num_episodes=episodes, max_steps=9, config=config
            )
            for episodes in (24, 10**6)
        )
        job.wait_until_complete(timeout=200)
        next(iter(endless.events(kinds=["checkpoint_saved"], timeout=60)))
        asked = time.monotonic()
        endless.cancel()
        with pytest.raises(TrainingJobCancelled):
            endless.wait_until_complete(timeout=60)
        assert time.monotonic() - asked < 10.0

        told = [one.episode for one in job.list_metrics() if one.episode_reward is not None]
        kinds = [event.kind for event in job.events()]
        assert told == list(range(1, 25))
        assert kinds[-1] == "completed"
        assert kinds.count("checkpoint_saved") == len(job.list_checkpoints()) == 3
        best = job.get_best_checkpoint()
        report = client.Evaluation.run(best, seeds=seeds).wait_until_complete(timeout=100)
        exported = client.Agent.export(best, download_to=tmp_path / "exported.zip")
        model, last = best.load(), endless.list_checkpoints()[-1].load()

    played = rlmesh.run(model, ToolDeskEnv(), seeds=seeds)
    assert [one.reward for one in report.episodes] == [one.reward for one in played.episodes]
    assert isinstance(last.predict(ToolDeskEnv().reset(seed=1)[0]), str)
    assert exported.downloaded_to is not None
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= set(
        ZipFile(exported.downloaded_to).namelist()
    )
    heard = [ast.literal_eval(line) for line in connections.read_text().splitlines()]
    assert heard
    assert [place for place in heard if not is_here(place)] == []
