"""What a worker sends is looked at before it is kept."""

import io
import json
import struct
import zipfile
from pathlib import Path

import pytest
from rlcore import InvalidRequestError
from rleaas.server.artifacts import uploads
from rleaas.server.artifacts.uploads import require_policy, require_state

from .archives import policy_file, state_file


def repacked(whole: bytes, **members: bytes | None) -> bytes:
    """An archive with other members: `manifest`, `policy`, `state` and `tensors` name one each."""
    with zipfile.ZipFile(io.BytesIO(whole)) as old:
        content: dict[str, bytes | None] = {name: old.read(name) for name in old.namelist()}
    for name in content:
        content[name] = members.get(name.partition(".")[0], content[name])
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as new:
        for name, one in content.items():
            if one is not None:
                new.writestr(name, one)
    return written.getvalue()


def manifest_with(**facts: object) -> bytes:
    with zipfile.ZipFile(io.BytesIO(policy_file())) as archive:
        return json.dumps({**json.loads(archive.read("manifest.json")), **facts}).encode()


def test_what_the_projects_own_writers_write_is_taken(tmp_path: Path) -> None:
    (tmp_path / "policy").write_bytes(policy_file("one"))
    (tmp_path / "state").write_bytes(state_file())

    manifest = require_policy(tmp_path / "policy", "PPO", "it")

    assert manifest["network"] == {"named": "one"}
    require_state(tmp_path / "state", "it")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"a policy", "no archive with a manifest.json"),
        (policy_file()[:-30], "no archive with a manifest.json"),
        (state_file(), "no archive with a manifest.json"),
        (repacked(policy_file(), manifest=b"[]"), "no archive with a manifest.json"),
        (repacked(policy_file(), manifest=manifest_with(format="x")), "its format is 'x'"),
        (repacked(policy_file(), policy=None), "no item named 'policy.safetensors'"),
        (repacked(policy_file(), policy=b"\x80\x04."), "is cut short"),
        (repacked(policy_file(), policy=b"\xff" * 64), "no header that can be read"),
        (repacked(policy_file(), policy=struct.pack("<Q", 2) + b"[]"), "no header"),
        (
            repacked(policy_file(), policy=struct.pack("<Q", 2) + b"{}" + bytes(8)),
            "has not the size of its tensors",
        ),
        (
            repacked(policy_file(), policy=struct.pack("<Q", 7) + b'{"a":1}'),
            "says nothing of the place of 'a'",
        ),
    ],
)
def test_what_is_no_policy_is_refused_with_what_is_wrong(
    tmp_path: Path, content: bytes, says: str
) -> None:
    (tmp_path / "policy").write_bytes(content)

    with pytest.raises(InvalidRequestError, match=says) as refused:
        require_policy(tmp_path / "policy", "PPO", "it")

    assert refused.value.code == "checkpoint_unreadable"


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"its optimizer", "not a zip file"),
        (policy_file(), "no item named 'state.json'"),
        (repacked(state_file(), state=b'{"format": "other"}'), "does not begin with the format"),
        (repacked(state_file(), tensors=b""), "its tensors.safetensors is cut short"),
    ],
)
def test_what_is_no_training_state_is_refused_with_what_is_wrong(
    tmp_path: Path, content: bytes, says: str
) -> None:
    (tmp_path / "state").write_bytes(content)

    with pytest.raises(InvalidRequestError, match=says) as refused:
        require_state(tmp_path / "state", "it")

    assert refused.value.code == "checkpoint_unreadable"


@pytest.mark.parametrize(
    ("limit", "says"),
    [("_MOST_MEMBERS", "it has 2 members, more than 1"), ("_MOST_BYTES", "when it is unpacked")],
)
def test_an_archive_that_would_fill_a_disk_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, says: str
) -> None:
    (tmp_path / "policy").write_bytes(policy_file())
    monkeypatch.setattr(uploads, limit, 1)

    with pytest.raises(InvalidRequestError, match=says):
        require_policy(tmp_path / "policy", "PPO", "it")
