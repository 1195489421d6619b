"""Policies in ONNX files: inputs by name and type, batches of every form."""

# onnx leaves much without types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import onnx
import pytest
import rlmesh
from gymnasium import spaces
from onnx import TensorProto, helper, numpy_helper
from rlcore import ConfigurationError
from rlmesh.models.model_files import ModelFileError
from rlmesh.models.policy import policy_for
from rlmesh.specs import contract_of

WEIGHTS = np.arange(8, dtype=np.float32).reshape(4, 2) - 3


def linear(path: Path, shape: list[Any], kind: int = TensorProto.FLOAT, name: str = "obs") -> None:
    """Write scores for two choices from four numbers."""
    nodes = [
        helper.make_node("Cast", [name], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["floats", "weights"], ["scores"]),
    ]
    inputs = [helper.make_tensor_value_info(name, kind, shape)]
    save(path, nodes, inputs, ["scores"], {"weights": WEIGHTS})


def save(path: Path, nodes: Any, inputs: Any, outputs: list[str], weights: Any) -> None:
    graph = helper.make_graph(
        nodes,
        "policy",
        inputs,
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, path)


@pytest.mark.parametrize("shape", [["batch", 4], [None, 4], [1, 4], [4]])
@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16])
def test_a_policy_takes_batches_in_whatever_form_it_was_exported(
    tmp_path: Path, shape: list[Any], kind: int
) -> None:
    path = tmp_path / "policy.onnx"
    linear(path, shape, kind)
    model = rlmesh.load_model(path)
    policy = policy_for(model)
    policy.bind(contract_of(gymnasium.make("CartPole-v1")), num_envs=2)
    batch = np.array([[1, 0, 0, 1], [-1, 0, -1, 0]], np.float32)

    lanes = [policy.begin("a", 0), policy.begin("b", 0)]
    answer: Any = policy.predict_batch(batch, lanes)
    single = [policy.predict(row, lanes[0]) for row in batch]

    expected = (batch @ WEIGHTS).argmax(1).tolist()
    assert [int(action) for action in answer] == single == expected
    assert model.digest == "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_policy_plays_a_run(tmp_path: Path) -> None:
    linear(tmp_path / "policy.onnx", ["batch", 4])
    model = rlmesh.load_model(str(tmp_path / "policy.onnx"))
    result = rlmesh.run(model, gymnasium.make("CartPole-v1"), seeds=[1, 1])

    assert result.rewards[0] == result.rewards[1] > 0
    assert result.model == "policy"


def test_inputs_are_the_parts_of_an_observation_of_the_same_name(
    tmp_path: Path, contract: Any
) -> None:
    path = tmp_path / "two.onnx"
    nodes = [
        helper.make_node("Cast", ["gear"], ["number"], to=TensorProto.FLOAT),
        helper.make_node("Add", ["speed", "number"], ["throttle"]),
        helper.make_node("Sub", ["speed", "number"], ["brake"]),
    ]
    inputs = [
        helper.make_tensor_value_info("speed", TensorProto.FLOAT, ["batch", 1]),
        helper.make_tensor_value_info("gear", TensorProto.INT64, ["batch", 1]),
    ]
    save(path, nodes, inputs, ["throttle", "brake"], {})
    observed = spaces.Dict(
        {
            "gear": spaces.Box(0, 9, (1,), np.int32),
            "other": spaces.Discrete(2),
            "speed": spaces.Box(-9, 9, (1,), np.float64),
        }
    )
    box = spaces.Box(-9, 9, (1,), np.float32)
    acted = spaces.Dict({"brake": box, "throttle": box})
    policy = policy_for(rlmesh.load_model(path))
    policy.bind(contract(observed=observed, acted=acted), num_envs=1)

    seen = {"gear": np.array([2], np.int32), "speed": np.array([0.5]), "other": 1}
    action: Any = policy.predict(seen, policy.begin("e", 0))
    assert (action["throttle"].tolist(), action["brake"].tolist()) == ([2.5], [-1.5])

    with pytest.raises(ConfigurationError, match="one unnamed observation"):
        policy.bind(contract(), num_envs=1)
    missing = spaces.Dict({"speed": spaces.Box(-9, 9, (1,), np.float64)})
    with pytest.raises(ConfigurationError, match=r"takes \['gear'\]"):
        policy.bind(contract(observed=missing), num_envs=1)


def test_one_input_takes_the_only_part_of_an_observation(tmp_path: Path, contract: Any) -> None:
    linear(tmp_path / "policy.onnx", ["batch", 4])
    policy = policy_for(rlmesh.load_model(tmp_path / "policy.onnx"))
    observed = spaces.Dict({"state": spaces.Box(-9, 9, (4,), np.float32)})
    policy.bind(contract(observed=observed, acted=spaces.Discrete(2)), num_envs=1)

    assert policy.predict({"state": np.ones(4, np.float32)}, policy.begin("e", 0)) == 1


@pytest.mark.parametrize(
    ("shape", "what"), [([5, 4], "batches of 5 only"), (["batch", 3, 4], "observations have")]
)
def test_a_policy_that_does_not_fit_is_refused_before_it_plays(
    tmp_path: Path, shape: list[Any], what: str
) -> None:
    linear(tmp_path / "policy.onnx", shape)
    policy = policy_for(rlmesh.load_model(tmp_path / "policy.onnx"))
    with pytest.raises(ConfigurationError, match=what):
        policy.bind(contract_of(gymnasium.make("CartPole-v1")), num_envs=1)


def test_a_damaged_file_and_a_missing_device_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"nonsense")
    with pytest.raises(ModelFileError, match=r"bad\.onnx"):
        rlmesh.load_model(tmp_path / "bad.onnx")
    linear(tmp_path / "policy.onnx", ["batch", 4])
    with pytest.raises(ConfigurationError, match="cannot use the device 'tpu'"):
        rlmesh.load_model(tmp_path / "policy.onnx", device="tpu")


def test_weights_beside_the_file_count_for_the_digest(tmp_path: Path) -> None:
    linear(tmp_path / "policy.onnx", ["batch", 4])
    alone = rlmesh.load_model(tmp_path / "policy.onnx").digest
    (tmp_path / "policy.onnx.data").write_bytes(b"weights")

    assert rlmesh.load_model(tmp_path / "policy.onnx").digest != alone


def test_texts_are_no_input(tmp_path: Path) -> None:
    nodes = [helper.make_node("Identity", ["word"], ["same"])]
    inputs = [helper.make_tensor_value_info("word", TensorProto.STRING, ["batch"])]
    graph = helper.make_graph(
        nodes,
        "echo",
        inputs,
        [helper.make_tensor_value_info("same", TensorProto.STRING, ["batch"])],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, tmp_path / "words.onnx")
    with pytest.raises(ConfigurationError, match="tensors of numbers"):
        rlmesh.load_model(tmp_path / "words.onnx")
