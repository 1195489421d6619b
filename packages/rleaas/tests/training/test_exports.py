"""Exports of every family, made by the real worker and read by other libraries than ours."""

# stable-baselines3, onnxruntime and safetensors leave their type arguments open.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

import json
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnxruntime  # type: ignore[import-untyped]  # it has no stubs
import pytest
import safetensors.torch
import torch
from gymnasium import spaces
from rlcore import ConfigurationError, ServerFailure
from rleaas.training.checkpoint_file import (
    Manifest,
    package_versions,
    read_manifest,
    read_weights,
    write_policy,
)
from rleaas.training.exports.order import ExportOrder
from rleaas.training.exports.worker import export, main
from rleaas.training.loaded_policy import open_policy
from rleaas.training.space_json import space_to_json


class Odd(gymnasium.Env[Any, Any]):
    """A picture and a mode, and actions of two kinds that do not begin at zero."""

    observation_space = spaces.Dict(
        {"camera": spaces.Box(0, 255, (36, 40, 3), np.uint8), "mode": spaces.Discrete(3, start=1)}
    )
    action_space = spaces.MultiDiscrete([3, 2])


class Continuous(gymnasium.Env[Any, Any]):
    """Acts between -2 and 2."""

    observation_space = spaces.Box(-1, 1, (3,), np.float32)
    action_space = spaces.Box(-2, 2, (2,), np.float32)


def policy_file(env: gymnasium.Env[Any, Any], path: Path) -> Path:
    """A PPO policy that has learned nothing."""
    from rleaas.training.learner_spaces import learner_space, policy_name
    from stable_baselines3 import PPO
    from stable_baselines3.common.vec_env import DummyVecEnv, VecTransposeImage

    class Learner(gymnasium.Env[Any, Any]):
        observation_space = learner_space(env.observation_space)
        action_space = learner_space(env.action_space)

    vector: Any = DummyVecEnv([Learner])
    if isinstance(env.observation_space, spaces.Dict):
        vector = VecTransposeImage(vector)
    name = policy_name(env.observation_space, None)
    model = PPO(
        name,
        vector,
        n_steps=8,
        batch_size=8,
        device="cpu",
        seed=3,
        policy_kwargs={"net_arch": [8]},
    )
    manifest = Manifest(
        algorithm="PPO",
        job_id="job_1",
        environment_name="Odd",
        environment_version=1,
        contract_digest="sha256:1",
        episode=5,
        timestep=50,
        seed=3,
        observation_space=space_to_json(env.observation_space),
        action_space=space_to_json(env.action_space),
        policy_observation_space=space_to_json(model.observation_space),
        packages=package_versions(),
        policy=name,
        policy_kwargs={"net_arch": [8]},
    )
    write_policy(path, manifest, model.policy.state_dict(), library=model.save)
    return path


def order(source: Path, form: str) -> ExportOrder:
    return ExportOrder(
        checkpoint_id="ckpt_1",
        form=form,
        source=source,
        target=source.with_name(f"export.{form}"),
        facts={"algorithm": "PPO", "avg_reward": 2.5},
    )


def actor_file(env: gymnasium.Env[Any, Any], path: Path) -> Path:
    """A policy of our own trainers that has learned nothing."""
    from rleaas.training.actor.network import ActorNetwork
    from rleaas.training.actor.policy import policy_weights
    from rleaas.training.learner_spaces import learner_space

    torch.manual_seed(3)
    spaces_of = learner_space(env.observation_space), learner_space(env.action_space)
    manifest = Manifest(
        algorithm="GRPO",
        job_id="job_2",
        environment_name="Odd",
        environment_version=1,
        contract_digest="sha256:1",
        episode=5,
        timestep=50,
        seed=3,
        observation_space=space_to_json(env.observation_space),
        action_space=space_to_json(env.action_space),
        packages=package_versions(),
        family="grpo",
        network={"net_arch": [8]},
    )
    write_policy(path, manifest, policy_weights(ActorNetwork(*spaces_of, (8,))))
    return path


@pytest.mark.slow
@pytest.mark.timeout(240)
@pytest.mark.parametrize(("make", "env"), [(policy_file, Odd()), (actor_file, Continuous())])
def test_an_onnx_file_acts_like_the_policy(
    make: Callable[[gymnasium.Env[Any, Any], Path], Path],
    env: gymnasium.Env[Any, Any],
    tmp_path: Path,
) -> None:
    made = order(make(env, tmp_path / "policy.zip"), "onnx")
    checks = export(made)

    assert checks["same_actions"] == checks["observations"] == 64
    assert "onnxruntime" in str(checks["checked_with"])
    session = onnxruntime.InferenceSession(str(made.target))
    told = session.get_modelmeta().custom_metadata_map
    assert json.loads(told["facts"])["avg_reward"] == 2.5
    assert set(json.loads(told["preprocessing"])["inputs"]) == {
        one.name for one in session.get_inputs()
    }
    # By the library itself, on a batch of its own size.
    _, example = open_policy(made.source).network()
    batch = {name: torch.cat([one[:1]] * 5).numpy() for name, one in example.items()}
    assert len(np.asarray(session.run(None, batch)[0])) == 5


@pytest.mark.slow
@pytest.mark.timeout(240)
def test_an_onnx_file_that_acts_differently_is_not_given_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rleaas.training.sb3.policy import SB3Policy

    source = policy_file(Continuous(), tmp_path / "policy.zip")
    wrong = SB3Policy.predict

    def other(self: Any, observation: Any) -> Any:
        return wrong(self, observation) + np.float32(0.01)

    monkeypatch.setattr(SB3Policy, "predict", other)
    with pytest.raises(ServerFailure, match="acts differently for 65 of 65") as refused:
        export(order(source, "onnx"))
    assert refused.value.code == "export_differs"


def test_safetensors_and_pytorch_hold_the_weights_and_the_facts(tmp_path: Path) -> None:
    source = policy_file(gymnasium.make("CartPole-v1"), tmp_path / "policy.zip")
    plain, pickled = order(source, "safetensors"), order(source, "pytorch")
    export(plain)
    export(pickled)

    weights = read_weights(source)
    found = safetensors.torch.load_file(plain.target)
    with safetensors.safe_open(plain.target, "pt") as opened:
        assert json.loads(opened.metadata()["facts"])["algorithm"] == "PPO"
    other = torch.load(pickled.target, weights_only=True)
    assert found.keys() == other["state_dict"].keys() == weights.keys()
    assert all(torch.equal(found[name], one) for name, one in weights.items())
    assert all(torch.equal(other["state_dict"][name], one) for name, one in weights.items())


def test_a_model_repository_has_weights_configuration_preprocessing_and_card(
    tmp_path: Path,
) -> None:
    from stable_baselines3 import PPO

    made = order(policy_file(Odd(), tmp_path / "policy.zip"), "huggingface")
    checks = export(made)

    with zipfile.ZipFile(made.target) as archive:
        archive.extractall(tmp_path / "hub")
    names = ["README.md", "ckpt_1.zip", "config.json", "model.safetensors", "preprocessing.json"]
    assert checks["files"] == sorted(path.name for path in (tmp_path / "hub").iterdir()) == names
    steps = json.loads((tmp_path / "hub" / "preprocessing.json").read_text())["steps"]
    assert steps[:2] == ["camera: move the channels to the front", *steps[1:2]]
    assert "mode: subtract 1" in steps
    card = (tmp_path / "hub" / "README.md").read_text()
    assert card.startswith("---\nlibrary_name: stable-baselines3\n")
    assert "| avg_reward | 2.5 |" in card
    model = PPO.load(tmp_path / "hub" / "ckpt_1.zip", device="cpu")
    loaded = safetensors.torch.load_file(tmp_path / "hub" / "model.safetensors")
    assert all(torch.equal(loaded[name], one) for name, one in model.policy.state_dict().items())


def test_what_is_no_checkpoint_is_refused_in_the_reply(tmp_path: Path) -> None:
    (tmp_path / "policy.zip").write_bytes(b"weights")
    wanted = order(tmp_path / "policy.zip", "pytorch")
    (tmp_path / "order").write_text(json.dumps(wanted.to_json()))

    with pytest.raises(ConfigurationError):
        export(wanted)
    assert main([str(tmp_path / "order"), str(tmp_path / "reply")]) == 3
    told = json.loads((tmp_path / "reply").read_bytes())["error"]
    assert (told["type"], told["code"]) == ("ConfigurationError", "checkpoint_unreadable")


def test_a_file_of_an_unknown_family_is_refused_by_name(tmp_path: Path) -> None:
    path = policy_file(Continuous(), tmp_path / "policy.zip")
    manifest = read_manifest(path)
    from dataclasses import replace

    write_policy(path, replace(manifest, family="later"), read_weights(path))

    with pytest.raises(ConfigurationError, match="'later'"):
        open_policy(path)
