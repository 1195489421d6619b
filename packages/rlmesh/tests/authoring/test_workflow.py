import warnings
from pathlib import Path

import pytest
from rlcore import ConfigurationError
from rlmesh import WorkflowEditionWarning, workflow
from rlmesh.workflow import chosen_edition

EDITION = "2026.06"
NAMED = {"RLMESH_WORKFLOW_EDITION": EDITION}


def project(folder: Path, text: str) -> Path:
    (folder / "pyproject.toml").write_text(text)
    return folder


def test_the_nearest_declaration_counts(tmp_path: Path) -> None:
    wrong = project(tmp_path, '[tool.rlmesh]\nworkflow_edition = "1999.01"\n')
    inner = wrong / "inner"
    inner.mkdir()

    def chosen(**said: str) -> str | None:
        return chosen_edition(environ={}, folder=inner, **said)

    assert chosen(keyword=f" {EDITION} ", option="1999", declared="1999") == EDITION
    assert chosen_edition(environ=NAMED, option="1999", folder=inner) == EDITION
    assert chosen(option=EDITION, declared="1999") == EDITION
    assert chosen(declared=EDITION) == EDITION
    with pytest.raises(ConfigurationError, match=r"'1999\.01'"):
        chosen()
    project(inner, '[tool.rlmesh]\nworkflow_edition = "2026.06"\n')
    assert chosen() == EDITION
    project(inner, "[tool.other]\n")
    assert chosen() is None


def test_an_empty_variable_declares_nothing_and_ends_the_search(tmp_path: Path) -> None:
    folder = project(tmp_path, '[tool.rlmesh]\nworkflow_edition = "1999.01"\n')

    said = chosen_edition(
        environ={"RLMESH_WORKFLOW_EDITION": ""}, option="1999", declared="1999", folder=folder
    )

    assert said is None


@pytest.mark.parametrize("text", ["[tool", "[tool.rlmesh]\nworkflow_edition = 3\n"])
def test_a_project_file_that_cannot_be_read_is_named(text: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"pyproject\.toml"):
        chosen_edition(environ={}, folder=project(tmp_path, text))


def test_the_undeclared_is_warned_of_once_where_an_upgrade_could_change_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project(tmp_path, "")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert chosen_edition(environ={}, folder=folder) is None

    monkeypatch.setattr(workflow, "EDITIONS", ("2026.06", "2027.01"))
    monkeypatch.setattr(workflow, "_told", [])
    with pytest.warns(WorkflowEditionWarning, match="no workflow edition is declared"):
        chosen_edition(environ={}, folder=folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chosen_edition(environ={}, folder=folder)
