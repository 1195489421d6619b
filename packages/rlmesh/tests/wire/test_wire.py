import subprocess
import sys

import pytest
from google.protobuf.message import Message
from rlmesh.codec import decode_meta
from rlmesh.wire.env.v1 import env_pb2 as env
from rlmesh.wire.model.v1 import model_pb2 as model
from rlmesh.wire.spaces.v1.spaces_pb2 import SpaceValue


def test_services_have_the_published_names() -> None:
    assert env.DESCRIPTOR.services_by_name["EnvService"].full_name == "rlmesh.env.v1.EnvService"
    assert (
        model.DESCRIPTOR.services_by_name["ModelService"].full_name
        == "rlmesh.model.v1.ModelService"
    )


@pytest.mark.parametrize(
    ("message", "content"),
    [
        (
            env.JoinRequest(
                request_id="c",
                configure=env.ConfigureEnvRequest(selected_workflow_edition="2026.06"),
            ),
            "2a016332090a07323032362e3036",
        ),
        (
            env.JoinRequest(request_id="r", reset=env.ResetRequest(seeds=[7], episode_ids=["ep1"])),
            "0a080a01072a036570312a0172",
        ),
        (
            env.JoinRequest(
                request_id="s",
                step=env.StepRequest(
                    action=SpaceValue(leaves=[(2).to_bytes(8, "little")]), episode_ids=["ep1"]
                ),
            ),
            "12110a0a0a08020000000000000022036570312a0173",
        ),
    ],
)
def test_messages_are_the_published_bytes(message: Message, content: str) -> None:
    assert message.SerializeToString().hex() == content


def test_a_published_configure_response_is_understood() -> None:
    assert env.JoinResponse.FromString(bytes.fromhex("3a002a016330fb13")) == env.JoinResponse(
        request_id="c", endpoint_total_ns=2555, configure=env.ConfigureEnvResponse()
    )


def test_a_published_step_response_is_understood() -> None:
    response = env.StepResponse.FromString(
        bytes.fromhex(
            "0a0e0a0c0000003f000080bf0000803e1208000000000000f83f1a0101220100"
            "2a0e0a070a016b120208070a030a016e"
        )
    )
    assert (list(response.rewards), response.terminated_mask, response.truncated_mask) == (
        [1.5],
        b"\1",
        b"\0",
    )
    assert decode_meta(response.infos) == {"k": 7, "n": None}


@pytest.mark.parametrize(
    ("kind", "numbers"),
    [
        (env.JoinRequest, {"reset": 1, "step": 2, "render": 3, "close": 4, "configure": 6}),
        (
            env.JoinResponse,
            {"reset": 1, "step": 2, "render": 3, "close": 4, "configure": 7, "error": 10}
            | {"request_id": 5, "endpoint_total_ns": 6, "lane_skew_ns": 14, "queue_ns": 15},
        ),
        (
            model.JoinRequest,
            {"resolve_adapter": 1, "predict": 2, "release_adapter": 3, "close": 4}
            | {"grouped_predict": 6, "reset_adapter": 7, "request_id": 5},
        ),
        (
            model.JoinResponse,
            {"grouped_predict": 7, "reset_adapter": 8, "error": 10, "queue_ns": 14}
            | {"in_flight": 15, "adapter_ns": 16, "held_episodes": 17, "held_state_bytes": 18},
        ),
        (env.EpisodeMetadata, {"episode_id": 1, "seed": 2, "env_index": 3, "final_info": 10}),
    ],
)
def test_fields_have_the_published_numbers(kind: type[Message], numbers: dict[str, int]) -> None:
    fields = kind.DESCRIPTOR.fields_by_name
    assert {name: fields[name].number for name in numbers} == numbers


def test_messages_spaces_and_codecs_load_without_warnings_grpc_or_gymnasium() -> None:
    program = (
        "import sys, rlmesh.wire.env.v1.env_pb2, rlmesh.wire.model.v1.model_pb2, rlmesh.convert\n"
        "sys.exit({'grpc', 'gymnasium'} & set(sys.modules) or None)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
