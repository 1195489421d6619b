import json
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces as gym
from rlcore import ConfigurationError, ProtocolException, contract_differences, contract_digest
from rlmesh.convert import contract_from_proto, contract_to_proto
from rlmesh.spaces import Box, Discrete, UnsupportedSpaceError, from_gymnasium_space
from rlmesh.specs import AutoresetMode, EnvContract, contract_of
from rlmesh.wire.core.v1 import core_pb2 as pb


def over_the_wire(contract: EnvContract) -> EnvContract:
    content = contract_to_proto(contract).SerializeToString()
    return contract_from_proto(pb.EnvContract.FromString(content))


def contract(**changes: Any) -> EnvContract:
    facts: dict[str, Any] = {
        "id": "Env-v1",
        "observation_space": Box([-1, -np.inf], [1, np.inf]),
        "action_space": Discrete(3),
    }
    return EnvContract(**{**facts, **changes})


@pytest.mark.parametrize("env_id", ["CartPole-v1", "Pendulum-v1", "FrozenLake-v1", "Blackjack-v1"])
def test_a_contract_is_the_same_on_both_sides_of_the_wire(env_id: str) -> None:
    here = contract_of(gymnasium.make(env_id))
    there = over_the_wire(here)
    assert there == here
    assert there.digest == here.digest
    assert there.id == env_id


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": None},
        {"metadata": {}},
        {"metadata": {"modes": ("a", ["b"]), "fps": np.float32(30), "range": (-np.inf, np.inf)}},
        {"metadata": {"blob": b"\0\xff", "nested": {"none": None}}},
        {"num_envs": 0},
        {"num_envs": 4, "render_mode": "rgb_array", "autoreset_mode": AutoresetMode.NEXT_STEP},
        {"render_mode": "", "autoreset_mode": AutoresetMode.SAME_STEP},
        {"observation_space": Box(0, 1, ()), "action_space": Box(0, 255, (0,), "uint8")},
    ],
    ids=repr,
)
def test_whatever_is_in_a_contract_the_digest_survives_the_wire(changes: dict[str, Any]) -> None:
    here = contract(**changes)
    there = over_the_wire(here)
    assert there == here
    assert there.digest == here.digest
    stored = json.loads(json.dumps(here.to_dict(), allow_nan=False))
    assert contract_digest(stored) == here.digest


@pytest.mark.parametrize(
    ("changes", "paths"),
    [
        ({"id": "Env-v2"}, {"id"}),
        ({"action_space": Discrete(4)}, {"action_space.details.n"}),
        ({"metadata": {"fps": 30}}, {"metadata"}),
        ({"render_mode": "human"}, {"render_mode"}),
        ({"num_envs": 2}, {"num_envs"}),
    ],
)
def test_another_contract_has_another_digest(changes: dict[str, Any], paths: set[str]) -> None:
    one, other = contract(), contract(**changes)
    assert one != other
    assert one.digest != other.digest
    assert {
        path if not path.startswith("metadata") else "metadata"
        for path in contract_differences(one.to_dict(), other.to_dict())
    } == paths


def test_a_contract_hashes_and_is_its_own_spec() -> None:
    assert hash(contract(metadata={"a": 1})) == hash(contract(metadata={"a": 1}))
    assert contract().env.spec == contract()
    assert repr(contract()) == "EnvContract(id='Env-v1', num_envs=1)"


def environment(**facts: object) -> SimpleNamespace:
    known = {"observation_space": gym.Discrete(2), "action_space": gym.Discrete(2)}
    return SimpleNamespace(**{**known, **facts})


def test_an_environment_needs_only_its_spaces() -> None:
    plain = contract_of(environment())
    assert (plain.id, plain.metadata, plain.render_mode) == ("UnknownEnv-v1", None, None)
    assert (plain.num_envs, plain.autoreset_mode) == (1, "disabled")


def test_a_vector_environment_is_described_by_one_lane() -> None:
    contract = contract_of(gymnasium.make_vec("CartPole-v1", 3))
    assert (contract.num_envs, contract.observation_space.shape) == (3, [4])
    assert contract.autoreset_mode is AutoresetMode.NEXT_STEP


def test_a_handle_to_a_remote_environment_already_has_its_contract() -> None:
    known = contract()
    assert contract_of(SimpleNamespace(env_contract=known)) is known


def test_metadata_that_cannot_travel_warns_and_stays_the_same() -> None:
    class Odd:
        pass

    with pytest.warns(UserWarning, match=r"\$\.odd"):
        one = contract_of(environment(metadata={"odd": Odd(), "fps": 30}))
    with pytest.warns(UserWarning, match=r"\$\.odd"):
        other = contract_of(environment(metadata={"odd": Odd(), "fps": 30}))
    assert one.digest == other.digest
    assert one.metadata is not None
    assert one.metadata["fps"] == 30


@pytest.mark.parametrize(
    ("mode", "known"),
    [
        ("NextStep", AutoresetMode.NEXT_STEP),
        (gymnasium.vector.AutoresetMode.NEXT_STEP, AutoresetMode.NEXT_STEP),
        ("Disabled", AutoresetMode.DISABLED),
        (gymnasium.vector.AutoresetMode.DISABLED, AutoresetMode.DISABLED),
    ],
)
def test_the_autoreset_mode_is_in_the_metadata(mode: object, known: AutoresetMode) -> None:
    assert contract_of(environment(metadata={"autoreset_mode": mode})).autoreset_mode is known


@pytest.mark.parametrize("mode", ["SameStep", None, "sometimes", 3])
def test_another_autoreset_mode_cannot_be_served(mode: object) -> None:
    with pytest.raises(ConfigurationError, match="autoreset") as caught:
        contract_of(environment(metadata={"autoreset_mode": mode}))
    assert caught.value.hint == "Declare next-step autoreset, or none."


def test_lanes_may_reset_within_a_step_as_the_hint_says() -> None:
    lanes = environment(
        metadata={"autoreset_mode": "some day"},
        num_envs=2,
        single_observation_space=gym.Discrete(2),
    )
    with pytest.raises(ConfigurationError) as caught:
        contract_of(lanes)
    assert caught.value.hint == "Declare next-step or same-step autoreset, or none."


class Odd(gymnasium.Space[Any]):  # Any: it has no values
    """A space of a kind that nobody else knows."""


def test_what_is_no_environment_is_a_configuration_error() -> None:
    with pytest.raises(ConfigurationError, match="observation_space"):
        contract_of(object())
    with pytest.raises(UnsupportedSpaceError):
        contract_of(environment(action_space=Odd()))


def test_a_contract_message_that_cannot_be_is_a_protocol_error() -> None:
    whole = contract_to_proto(contract())
    for name in ("observation_space", "action_space"):
        message = pb.EnvContract.FromString(whole.SerializeToString())
        message.spec.ClearField(name)
        with pytest.raises(ProtocolException, match=name):
            contract_from_proto(message)
    unknown = pb.EnvContract.FromString(whole.SerializeToString() + b"\x20\x04")
    with pytest.raises(ProtocolException, match="autoreset"):
        contract_from_proto(unknown)


@pytest.mark.parametrize("single", [gym.Dict(), gym.MultiDiscrete(np.array([[2, 3]]))])
def test_a_lanes_space_is_taken_whatever_its_length_says(single: gym.Space[Any]) -> None:
    env = SimpleNamespace(
        num_envs=2,
        observation_space=gym.Discrete(9),
        action_space=gym.Discrete(9),
        single_observation_space=single,
        single_action_space=gym.Discrete(3),
    )
    assert contract_of(env).observation_space == from_gymnasium_space(single)


def test_an_unspecified_autoreset_mode_is_none() -> None:
    message = contract_to_proto(contract())
    message.ClearField("autoreset_mode")
    assert contract_from_proto(message).autoreset_mode is AutoresetMode.DISABLED
