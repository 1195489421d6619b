"""Policies of torch: modules and their files, played and compared with the module itself."""

from __future__ import annotations

import hashlib
import warnings
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import rlmesh
import torch
from gymnasium import spaces
from rlcore import ConfigurationError
from rlmesh.models.model_files import ModelFileError
from rlmesh.models.policy import policy_for
from rlmesh.specs import contract_of

typed_torch: Any = torch  # Any: much of torch has no types


def network() -> Any:
    typed_torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))


def best(module: Any, observation: Any) -> int:
    return int(module(torch.as_tensor(observation)).argmax())


def write(kind: str, path: Path) -> None:
    module = network()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch, about its own ways to save
        match kind:
            case "script":
                typed_torch.jit.script(module).save(path)
            case "trace":
                typed_torch.jit.trace(module, torch.zeros(1, 4)).save(path)
            case "weights":
                torch.save(module.state_dict(), path)
            case "checkpoint":
                torch.save({"epoch": 3, "model_state_dict": module.state_dict()}, path)
            case _:
                shapes: Any = {"dynamic": (3, 4), "one": (1, 4), "bare": (4,)}[kind]
                dynamic = ({0: typed_torch.export.Dim("batch")},) if kind == "dynamic" else None
                program = typed_torch.export.export(
                    module, (torch.zeros(shapes),), dynamic_shapes=dynamic
                )
                typed_torch.export.save(program, path)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("script", "a.pt"),
        ("trace", "a.pt"),
        ("weights", "a.pth"),
        ("checkpoint", "a.ckpt"),
        pytest.param("dynamic", "a.pt2", marks=pytest.mark.slow),  # torch.export is slow to import
        pytest.param("one", "a.pt2", marks=pytest.mark.slow),
        pytest.param("bare", "a.pt2", marks=pytest.mark.slow),
    ],
)
def test_a_file_of_torch_acts_as_its_module_does(kind: str, name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write(kind, path)
    module = network()
    options: dict[str, Any] = {"module": network} if kind in ("weights", "checkpoint") else {}
    model = rlmesh.load_model(path, **options)

    env = gymnasium.make("CartPole-v1")
    policy = policy_for(model)
    policy.bind(contract_of(env), num_envs=2)
    episode, lanes = policy.begin("e", 0), [policy.begin("a", 0), policy.begin("b", 0)]
    batch = np.stack([env.observation_space.sample().clip(-3, 3) for _ in range(2)])
    for observation in batch:
        assert policy.predict(observation, episode) == best(module, observation)
    answer: Any = policy.predict_batch(batch, lanes)
    assert [int(action) for action in answer] == [best(module, row) for row in batch]
    assert model.digest == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
    policy.close()


def test_a_module_plays_a_run_without_gradients_and_in_evaluation_mode() -> None:
    modes: list[tuple[bool, bool]] = []

    class Watched(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(4, 2)

        def forward(self, seen: torch.Tensor) -> torch.Tensor:
            modes.append((self.training, torch.is_grad_enabled()))
            scores: torch.Tensor = self.layer(seen)
            return scores

    result = rlmesh.run(
        rlmesh.load_model(Watched()), gymnasium.make("CartPole-v1"), seeds=[1], max_episode_steps=5
    )

    assert result.total_steps == 5
    assert set(modes) == {(False, False)}


def test_a_dictionary_is_given_by_the_names_of_the_parameters(contract: Any) -> None:
    class Named(torch.nn.Module):
        def forward(self, image: torch.Tensor, speed: torch.Tensor) -> torch.Tensor:
            return image.flatten(1).float().mean(1, keepdim=True) + speed

    class Whole(torch.nn.Module):
        def forward(self, seen: dict[str, torch.Tensor]) -> torch.Tensor:
            return seen["image"].flatten(1).float().mean(1, keepdim=True) + seen["speed"]

    space = spaces.Dict(
        {
            "speed": spaces.Box(-1, 1, (1,), np.float32),
            "image": spaces.Box(0, 255, (2, 2, 1), np.uint8),
        }
    )
    observation = {"speed": np.array([0.5], np.float32), "image": np.full((2, 2, 1), 3, np.uint8)}
    for module in (Named(), Whole()):
        policy = policy_for(rlmesh.load_model(module))
        policy.bind(contract(observed=space), num_envs=1)
        assert policy.predict(observation, policy.begin("e", 0)) == [3.5]


def test_images_get_the_type_of_the_network_and_numbers_keep_theirs(contract: Any) -> None:
    seen: list[torch.dtype] = []

    class Network(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(1))

        def forward(self, given: Any) -> torch.Tensor:
            seen.append(given.dtype)
            return torch.zeros(len(given), 1)

    observed = [
        (spaces.Box(0, 255, (2, 2), np.uint8), np.zeros((2, 2), np.uint8)),
        (spaces.Box(-1, 1, (2,), np.float64), np.zeros(2)),
        (spaces.Discrete(4), 3),
    ]
    for space, observation in observed:
        policy = policy_for(rlmesh.load_model(Network()))
        policy.bind(contract(observed=space), num_envs=1)
        policy.predict(observation, policy.begin("e", 0))

    assert seen == [torch.float32, torch.float32, torch.int64]


def test_weights_without_their_module_or_for_another_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.pt"
    torch.save(torch.nn.Linear(2, 2).state_dict(), path)

    with pytest.raises(ModelFileError, match="module="):
        rlmesh.load_model(path)
    with pytest.raises(ModelFileError, match="do not fit Sequential"):
        rlmesh.load_model(path, module=network)
    torch.save({"epoch": 1}, path)
    with pytest.raises(ModelFileError, match="no state dict"):
        rlmesh.load_model(path, module=network)


class Planted:
    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (Path("planted"),))


def test_nothing_in_a_state_dict_is_executed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"state_dict": Planted()}, tmp_path / "planted.pt")

    with pytest.raises(ModelFileError, match="cannot be loaded"):
        rlmesh.load_model(tmp_path / "planted.pt", module=network)
    assert not (tmp_path / "planted").exists()


def test_a_device_that_is_not_there_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="nonsense"):
        rlmesh.load_model(network(), device="nonsense")


@pytest.mark.slow
def test_a_network_of_other_observations_is_refused_before_it_plays(tmp_path: Path) -> None:
    path = tmp_path / "one.pt2"
    write("one", path)
    policy = policy_for(rlmesh.load_model(path))
    with pytest.raises(ConfigurationError, match=r"shape \[1, 4\].*observations have \[3\]"):
        policy.bind(contract_of(gymnasium.make("Pendulum-v1")), num_envs=1)


def test_scores_may_be_sampled_by_the_seed_of_the_episode() -> None:
    contract = contract_of(gymnasium.make("CartPole-v1"))
    policy = policy_for(rlmesh.load_model(torch.nn.Linear(4, 2), deterministic=False))
    policy.bind(contract, num_envs=1)

    def played(seed: int) -> list[Any]:
        episode = policy.begin("e", seed)
        return [policy.predict(np.zeros(4, np.float32), episode) for _ in range(40)]

    first = played(1)
    assert first == played(1)
    assert first != played(2)
    assert set(first) == {0, 1}


def _raises() -> Any:
    raise LookupError("no such layer")


@pytest.mark.parametrize(
    ("module", "what"),
    [
        (5, "module is 5"),
        (_raises, "module=_raises raised LookupError: no such layer"),
        (dict, "made {}, which is no torch.nn.Module"),
    ],
)
def test_a_module_that_is_none_is_not_blamed_on_the_file(
    tmp_path: Path, module: Any, what: str
) -> None:
    write("weights", tmp_path / "a.pth")
    with pytest.raises(ConfigurationError, match=what) as caught:
        rlmesh.load_model(tmp_path / "a.pth", module=module)
    assert not isinstance(caught.value, ModelFileError)
