"""The public modules of the frameworks: what they list, and when they import what they need."""

from __future__ import annotations

import subprocess
import sys

import pytest
import rlmesh.jax
import rlmesh.numpy
import rlmesh.torch
from rlcore import MissingDependencyError
from rlmesh.backends.frameworks import FrameworkName, require

CONVERTERS = {
    "numpy": ["NumpyValue", "asarray", "from_array"],
    "torch": ["TorchValue", "as_tensor", "from_tensor"],
    "jax": ["JaxValue", "asarray", "from_array"],
}
COMMON = ["Model", "RemoteEnv", "RemoteModel", "ensure_available", "space_from_spec"]
WITHOUT = """
import sys
for name in ("torch", "jax"):
    sys.modules[name] = None  # what an import finds where it is not installed
import rlmesh, rlmesh.torch, rlmesh.jax, rlcore
for module in (rlmesh.torch, rlmesh.jax):
    name = module.__name__.rpartition(".")[2]
    for use in (module.ensure_available, lambda: module.RemoteEnv, lambda: module.Model):
        try:
            use()
        except rlcore.MissingDependencyError as error:
            assert isinstance(error, ImportError)
            assert f"rlmesh[{name}]" in error.hint, error.hint
        else:
            raise AssertionError(name)
rlmesh.numpy.ensure_available()
try:
    rlmesh.EnvServer(object(), framework="torch")
except rlcore.MissingDependencyError as error:
    print(error.hint)
"""


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, timeout=30
    )
    return done.stdout


@pytest.mark.parametrize("name", ["numpy", "torch", "jax"])
def test_a_module_lists_what_it_has(name: str) -> None:
    module = {"numpy": rlmesh.numpy, "torch": rlmesh.torch, "jax": rlmesh.jax}[name]

    assert set(module.__all__) >= {*COMMON, *CONVERTERS[name]}
    assert dir(module) == sorted(module.__all__)
    for public in module.__all__:
        assert getattr(module, public) is not None
    with pytest.raises(AttributeError, match="has no attribute 'Modle'"):
        getattr(module, "Modle")  # noqa: B009  # checkers know that there is none
    module.ensure_available()


def test_a_framework_is_loaded_when_it_is_used_and_not_before() -> None:
    loaded = run(
        "import sys, rlmesh, rlmesh.torch, rlmesh.jax, rlmesh.numpy\n"
        "rlmesh.numpy.RemoteEnv, rlmesh.EnvServer, rlmesh.Model\n"
        "print(*[name for name in ('torch', 'jax') if name in sys.modules])\n"
    )

    assert loaded.split() == []


def test_without_the_framework_its_use_names_the_extra() -> None:
    assert "rlmesh[torch]" in run(WITHOUT)


@pytest.mark.parametrize(
    ("framework", "version"), [("torch", "2.3.1"), ("jax", "0.4.29"), ("numpy", "1.25.2")]
)
def test_a_framework_that_is_too_old_names_the_extra(
    monkeypatch: pytest.MonkeyPatch, framework: FrameworkName, version: str
) -> None:
    monkeypatch.setattr(f"{framework}.__version__", version)

    with pytest.raises(MissingDependencyError, match=f"and {version} is installed") as caught:
        require(framework)
    assert caught.value.hint == f"Install `rlmesh[{framework}]`."


@pytest.mark.parametrize("version", ["2.4.0+cu132", "10.0", "unknown"])
def test_a_framework_of_any_later_version_will_do(
    monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    monkeypatch.setattr("torch.__version__", version)

    require("torch")
