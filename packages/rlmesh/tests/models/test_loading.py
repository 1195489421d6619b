"""Policies that people have, loaded in one call: what a source is, and what is said of others."""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import rlmesh
import rlmesh.numpy
import torch
from rlcore import ConfigurationError, MissingDependencyError
from rlmesh.models.loading import attribute, model_from_text, names_file
from rlmesh.models.model import ModelTypeError
from rlmesh.models.model_files import ModelFileError, digest_of, manifest_format


@pytest.mark.parametrize("source", [3, None, max, b"policy.zip"])
def test_what_cannot_be_loaded_is_told_what_can(source: object) -> None:
    with pytest.raises(ModelTypeError, match="nothing that can be loaded"):
        rlmesh.load_model(source)


def test_a_model_is_one_already() -> None:
    with pytest.raises(ModelTypeError, match="a Model already"):
        rlmesh.load_model(rlmesh.Model(max))


def test_a_file_that_is_none_says_what_is_wrong_with_it(tmp_path: Path) -> None:
    (tmp_path / "text.zip").write_text("words")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "words")
    for name, what in (
        ("missing.zip", "does not exist"),
        ("", "is a folder"),
        ("text.zip", "no file of a policy"),
        ("other.zip", "holds no policy"),
    ):
        with pytest.raises(ModelFileError, match=what):
            rlmesh.load_model(tmp_path / name)


def test_an_address_that_nothing_loads_is_told_what_would() -> None:
    with pytest.raises(ConfigurationError, match="RemoteModel"):
        rlmesh.load_model("tcp://127.0.0.1:1")


class Provided:
    def __init__(self, name: str, made: object) -> None:
        self.name, self.value = name, "made:here"
        self._made = made

    def load(self) -> object:
        if isinstance(self._made, Exception):
            raise self._made

        def load(source: object, **options: Any) -> object:
            return self._made

        return load


@pytest.fixture
def provide(monkeypatch: pytest.MonkeyPatch) -> Any:
    def install(*points: Provided) -> None:
        def entry_points(*, group: str) -> list[Provided]:
            return list(points)

        monkeypatch.setattr(metadata, "entry_points", entry_points)

    return install


def test_another_package_loads_its_addresses_and_its_files(provide: Any, tmp_path: Path) -> None:
    model = rlmesh.Model(max)
    provide(Provided("shop", model), Provided("shop.v1", model))
    path = tmp_path / "policy.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("manifest.json", json.dumps({"format": "shop.v1"}))

    assert rlmesh.load_model("Shop://7") is model
    assert rlmesh.load_model(path) is model
    provide()
    with pytest.raises(ModelFileError, match=r"'shop\.v1', which nothing"):
        rlmesh.load_model(path)


def test_a_package_that_loads_no_model_is_named(provide: Any) -> None:
    provide(Provided("shop", "no model"), Provided("broken", ImportError("gone")))
    with pytest.raises(ConfigurationError, match="no Model"):
        rlmesh.load_model("shop://1")
    with pytest.raises(ConfigurationError, match=r"made:here.*gone"):
        rlmesh.load_model("broken://1")


def test_rleaas_is_named_where_it_is_not_installed(provide: Any) -> None:
    provide()
    with pytest.raises(ConfigurationError, match=r"rleaas\[train\]"):
        rlmesh.load_model("rleaas://checkpoints/c1")


def test_a_manifest_that_is_none_is_not_one(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    for content in ("{", "[]", '{"format": 3}', "{}"):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("manifest.json", content)
        assert manifest_format(path) is None


def test_the_digest_is_that_of_the_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one")
    (tmp_path / "b").write_bytes(b"two")

    assert digest_of(tmp_path / "a") == "sha256:" + hashlib.sha256(b"one").hexdigest()
    assert digest_of(tmp_path / "a", tmp_path / "b") == (
        "sha256:" + hashlib.sha256(b"onetwo").hexdigest()
    )


@pytest.mark.parametrize(
    ("library", "suffix", "extra"), [("onnxruntime", ".onnx", "onnx"), ("torch", ".pt", "torch")]
)
def test_a_library_that_is_missing_is_named_with_its_extra(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, library: str, suffix: str, extra: str
) -> None:
    path = tmp_path / f"policy{suffix}"
    torch.save({"weight": torch.zeros(1)}, path)
    monkeypatch.setitem(sys.modules, library, None)

    with pytest.raises(MissingDependencyError, match=rf"rlmesh\[{extra}\]"):
        rlmesh.load_model(path)


@pytest.mark.parametrize(
    "options", [{"normalize": "n.pkl"}, {"algorithm": "PPO"}, {"module": torch.nn.Identity()}]
)
def test_an_option_of_another_kind_of_policy_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match=f"{next(iter(options))}= is not for a torch"):
        rlmesh.load_model(torch.nn.Identity(), **options)


NUMBER = 3
MODEL = rlmesh.numpy.Model(max)
MODULE = torch.nn.Identity()


class Here:
    @staticmethod
    def act(observation: Any) -> Any:
        return observation


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> str:
    """This module by a name that can be imported."""
    monkeypatch.setitem(sys.modules, "models_here", sys.modules[__name__])
    return "models_here"


def test_a_command_line_names_models_files_and_functions(here: str, tmp_path: Path) -> None:
    assert model_from_text("RANDOM") is rlmesh.RANDOM_SAMPLE
    assert model_from_text(f"{here}:MODEL") is MODEL
    assert isinstance(model_from_text(f"{here}:Here.act"), rlmesh.numpy.Model)
    native = model_from_text(f"{here}:Here.act", native=True)
    assert type(native) is rlmesh.Model
    assert isinstance(model_from_text(f"{here}:MODULE"), rlmesh.Model)
    with pytest.raises(ModelFileError, match="does not exist"):
        model_from_text(str(tmp_path / "policy.zip"))
    with pytest.raises(ConfigurationError, match="nothing installed loads"):
        model_from_text("nothing://here")


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("models_here", "neither MODULE:ATTRIBUTE nor a file"),
        ("models_here:", "neither"),
        ("models_here:absent", "absent"),
        ("no_such_module:x", "no_such_module"),
    ],
)
def test_a_name_that_leads_nowhere_says_where_it_ends(here: str, source: str, what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        attribute(source)


def test_a_module_that_raises_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "raises_at_import.py").write_text("1 / 0")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(ConfigurationError, match="it raised ZeroDivisionError"):
        attribute("raises_at_import:x")


def test_files_are_told_from_names(tmp_path: Path) -> None:
    plain = tmp_path / "policy"
    plain.write_bytes(b"")
    assert names_file(str(plain))
    assert names_file("elsewhere/policy.ONNX")
    assert not names_file("package.module:policy")


def test_the_action_option_is_checked_before_anything_is_read() -> None:
    wrong: Any = "best"
    with pytest.raises(ConfigurationError, match="action is 'best'"):
        rlmesh.load_model("nowhere.onnx", action=wrong)


def test_a_policy_may_fit_itself_to_an_environment(contract: Any) -> None:
    from rlmesh.models.policy import policy_for

    class Fitting:
        def predict(self, observation: Any) -> Any:
            return None

        def for_environment(self, contract: Any) -> Any:
            low = contract.action_space.low

            def act(observation: Any) -> Any:
                return low

            return act

    model = rlmesh.numpy.Model(Fitting)
    policy = policy_for(model)
    policy.bind(contract(), num_envs=1)
    assert policy.predict(np.zeros(2), policy.begin("e", 1)) == [-9]
    assert model.predict(np.zeros(2)) is None


@pytest.mark.parametrize("made", ["rlmesh.numpy.Model(max)", "max", "rlmesh.numpy.Model"])
def test_a_function_without_parameters_makes_the_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    from rlmesh.models.sources import model_behind

    name = "makes_models"
    (tmp_path / f"{name}.py").write_text(
        f"import rlmesh\ndef make():\n    return {made}\ndef bad():\n    1 / 0\n"
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, name, raising=False)

    found = model_from_text(f"{name}:make")
    assert found is rlmesh.numpy.Model or isinstance(found, rlmesh.numpy.Model)
    with pytest.raises(ConfigurationError, match=r"cannot make a model with .*ZeroDivisionError"):
        model_from_text(f"{name}:bad")
    if made != "rlmesh.numpy.Model":
        assert isinstance(model_behind(f"{name}:make", {}, insist=True), rlmesh.numpy.Model)
    assert model_behind(f"{name}:make", {}) is None  # it may make an environment
