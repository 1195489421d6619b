import math
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rlcore import ConfigurationError
from rleaas.training.file_digest import file_digest
from rleaas.training.state_file import read_state, write_state


def test_what_was_kept_comes_back_as_it_was(tmp_path: Path) -> None:
    generator = np.random.default_rng(7)
    shared = torch.arange(6.0).reshape(2, 3)
    parts: dict[str, Any] = {
        "random": generator.bit_generator.state,
        "replay": {"seen": np.arange(12, dtype=np.uint8).reshape(3, 4), "at": np.float32(0.5)},
        "shared": [shared, shared.T],
        "odd": {(1, "a"): b"\x00\xff", 3: None, "$tensor": True},
        "numbers": (1, 2.5, -math.inf, math.nan),
    }
    write_state(tmp_path / "state.zip", parts)
    found = read_state(tmp_path / "state.zip")

    again = np.random.default_rng(0)
    again.bit_generator.state = found["random"]
    assert again.random() == np.random.default_rng(7).random()
    np.testing.assert_array_equal(found["replay"]["seen"], parts["replay"]["seen"])
    assert found["replay"]["seen"].dtype == np.uint8
    assert (found["replay"]["at"], found["replay"]["at"].dtype) == (0.5, np.float32)
    assert torch.equal(found["shared"][1], shared.T)
    assert found["odd"] == parts["odd"]
    assert found["numbers"][:3] == (1, 2.5, -math.inf)
    assert math.isnan(found["numbers"][3])


def test_an_optimizer_goes_on_from_the_file_as_it_would_have(tmp_path: Path) -> None:
    def stepped(weight: torch.nn.Parameter, optimizer: torch.optim.Optimizer) -> None:
        optimizer.zero_grad()
        (weight**2).sum().backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    weight = torch.nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([weight], lr=0.1)
    stepped(weight, optimizer)
    write_state(tmp_path / "s", {"optimizer": optimizer.state_dict()})
    other = torch.nn.Parameter(weight.detach().clone())
    resumed = torch.optim.Adam([other], lr=0.5)
    resumed.load_state_dict(read_state(tmp_path / "s")["optimizer"])
    stepped(weight, optimizer)
    stepped(other, resumed)

    assert torch.equal(weight, other)


def test_the_same_state_is_the_same_file(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_state(tmp_path / name, {"w": torch.ones(2), "r": np.zeros(3)})

    assert file_digest(tmp_path / "a") == file_digest(tmp_path / "b")


@pytest.mark.parametrize("bad", [{1, 2}, np.array([object()]), object()])
def test_what_cannot_be_kept_is_refused_by_its_place_and_leaves_no_file(
    tmp_path: Path, bad: object
) -> None:
    with pytest.raises(TypeError, match=r"replay\.inner\[1\] of the state"):
        write_state(tmp_path / "state.zip", {"replay": {"inner": [0, bad]}})
    assert list(tmp_path.iterdir()) == []


def test_a_state_that_carries_code_is_not_run(tmp_path: Path) -> None:
    victim = tmp_path / "victim"

    class Attack:
        def __reduce__(self) -> tuple[object, ...]:
            return Path.touch, (victim,)

    path = tmp_path / "evil.zip"
    write_state(path, {"a": np.array([1])})
    with zipfile.ZipFile(path) as archive:
        names = {name: archive.read(name) for name in archive.namelist()}
    header = np.lib.format.magic(1, 0) + b"\x76\x00"
    header += b"{'descr': '|O', 'fortran_order': False, 'shape': (1,), }".ljust(117) + b"\n"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in names.items():
            evil = name.startswith("arrays/")
            archive.writestr(name, header + pickle.dumps([Attack()]) if evil else content)

    with pytest.raises(ConfigurationError, match="Object arrays cannot be loaded"):
        read_state(path)
    assert not victim.exists()


@pytest.mark.parametrize("keep", [0, 30, 400])
def test_a_truncated_state_is_refused(tmp_path: Path, keep: int) -> None:
    path = tmp_path / "state.zip"
    write_state(path, {"w": torch.ones(100)})
    path.write_bytes(path.read_bytes()[:keep])

    with pytest.raises(ConfigurationError, match=r"state\.zip"):
        read_state(path)
