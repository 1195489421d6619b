import sys
from pathlib import Path

import pytest
import torch
from rlcore import MissingDependencyError
from rleaas.training.checkpoint_file import Manifest, write_policy
from rleaas.training.loaded_policy import open_policy
from rleaas.training.trainer import trainer_for


@pytest.fixture(autouse=True)
def without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where transformers is not installed."""
    for name in [name for name in sys.modules if name.startswith("rleaas.training.slm.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "transformers", None)


def test_training_without_the_extra_says_what_to_install() -> None:
    with pytest.raises(MissingDependencyError, match="'transformers'") as refused:
        trainer_for("SLM")

    assert refused.value.hint == "Install the extra: pip install 'rleaas[llm]'"


def test_loading_a_checkpoint_without_the_extra_says_what_to_install(tmp_path: Path) -> None:
    manifest = Manifest(
        algorithm="SLM",
        job_id="job_1",
        environment_name="Desk",
        environment_version=1,
        contract_digest="sha256:" + "0" * 64,
        episode=1,
        timestep=1,
        seed=0,
        observation_space={},
        action_space={},
        packages={},
        family="slm",
    )
    path = tmp_path / "policy.zip"
    write_policy(path, manifest, {"weight": torch.zeros(1)})

    with pytest.raises(MissingDependencyError, match="'transformers'") as refused:
        open_policy(path)

    assert refused.value.hint == "Install the extra: pip install 'rleaas[llm]'"
