"""Evaluate policies that you already have: of stable-baselines3, of torch, in an ONNX file.

Needs `pip install "rlmesh[gymnasium,sb3,torch,onnx]" onnx`. From the command line it is
`rlmesh run cartpole.zip CartPole-v1 --episodes 3`.
"""

# These libraries leave type arguments open.
# pyright: reportUnknownMemberType=false

import tempfile
from pathlib import Path

import gymnasium
import numpy as np
import onnx
import rlmesh
import torch
from onnx import TensorProto, helper, numpy_helper
from stable_baselines3 import PPO

SEEDS = range(3)
# A pole that falls to the right is pushed to the right: scores for left and right.
WEIGHTS = np.array([[0, 0], [0, 0], [-1, 1], [-1, 1]], np.float32)


def stable_baselines3_file(folder: Path) -> Path:
    """Train a little, and save as the library does."""
    path = folder / "cartpole.zip"
    PPO("MlpPolicy", "CartPole-v1", n_steps=256, seed=0, device="cpu").learn(512).save(path)
    return path


def torch_module() -> torch.nn.Module:
    """Make a network that puts out a score for each action."""
    layer = torch.nn.Linear(4, 2, bias=False)
    with torch.no_grad():
        layer.weight.copy_(torch.from_numpy(WEIGHTS.T))
    return layer


def onnx_file(folder: Path) -> Path:
    """Write the same scores as a graph; torch and other libraries export such files."""
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["observation", "weights"], ["scores"])],
        "cartpole",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", 2])],
        [numpy_helper.from_array(WEIGHTS, "weights")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path = folder / "cartpole.onnx"
    onnx.save(model, path)
    return path


def main() -> None:
    """Load each in one call, and let all of them play the same episodes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        models = [
            rlmesh.load_model(stable_baselines3_file(folder)),
            rlmesh.load_model(torch_module(), name="by hand, torch"),
            rlmesh.load_model(onnx_file(folder), name="by hand, ONNX"),
        ]
    for model in models:
        result = rlmesh.run(model, gymnasium.make("CartPole-v1"), seeds=SEEDS)
        print(f"{model.name:15} {result.mean_reward:6.1f}  {model.digest or 'no file'}")


if __name__ == "__main__":
    main()
