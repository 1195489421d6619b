import json
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
import rlmesh
from gymnasium import spaces
from rlmesh import EnvFactory, Param, ParamSpec, describe, describe_json
from rlmesh.authoring.checks import checks_of

Log = Callable[[], list[str]]
TAGS: dict[str, Any] = {"observation": {"role": "proprio/eef_pos"}, "action": {}}


def test_an_environment_is_made_once_with_its_defaults_and_closed(
    authored: Any, author_log: Log
) -> None:
    found = describe(authored.Lines)

    assert author_log() == ["prepared", "made 3", "closed", "factory closed"]
    assert (found["schema_version"], found["kind"]) == (rlmesh.DESCRIBE_SCHEMA_VERSION, "env")
    assert found["target"] == {"entrypoint": None, "qualname": "authored:Lines"}
    assert found["env_spec"]["observation_space"] == {
        "kind": "box",
        "dtype": "float32",
        "shape": [3],
        "details": {"bounds_kind": "uniform", "low": -1.0, "high": 1.0},
    }
    assert found["env_tags"] is None
    size, mode = found["params"]["param_spec"]["params"]
    assert size == {
        "name": "size",
        "type": "int",
        "required": False,
        "default": 3,
        "description": "how wide",
        "minimum": 1,
        "maximum": 9,
    }
    assert mode["choices"] == ["plain", "steep"]
    assert found["params"]["signature_tier"] == [
        {"name": "length", "type": "int", "default": 2, "required": False}
    ]
    small, huge = found["variants"]["catalog"]
    assert small == {"id": "small", "params": {"size": 1}, "metadata": {"title": "Small"}}
    assert huge["error"].startswith("size: 100 is more than 9")
    assert found["variants"]["variations"] == {"size": [1, 2], "mode": ["plain", "steep"]}
    assert found["runtime"]["preferred_workflow_edition"] == "2026.06"


def test_a_name_an_instance_and_a_class_are_described_alike(authored: Any) -> None:
    by_name = describe("authored:Lines")

    assert by_name["target"]["entrypoint"] == "authored:Lines"
    by_name["target"]["entrypoint"] = None
    assert by_name == describe(authored.Lines) == describe(authored.Lines())


def test_the_text_is_canonical(authored: Any) -> None:
    text = describe_json(authored.Lines, generated_at="2026-01-31T12:00:00.5+02:00")

    assert text == describe_json(authored.Lines(), generated_at="2026-01-31T12:00:00.5+02:00")
    assert list(json.loads(text))[:5] == [
        "schema_version",
        "kind",
        "generated_at",
        "target",
        "env_spec",
    ]
    runtime = text[text.index('"runtime":') + len('"runtime":') : -1]
    assert runtime == json.dumps(json.loads(runtime), sort_keys=True, separators=(",", ":"))


def test_an_environment_that_was_made_is_not_made_again(authored: Any, author_log: Log) -> None:
    made = authored.Lines().make(size=2)
    before = author_log()

    found = json.loads(describe_json(authored.Lines, served_env=made))

    assert found["env_spec"]["observation_space"]["shape"] == [2]
    assert author_log() == before


def test_a_failure_is_a_badge_in_the_words_of_the_author(authored: Any) -> None:
    found = describe(authored.Broken)

    assert found["env_spec"] == {"error": "the level is missing", "error_type": "ValueError"}


def test_what_needs_parameters_is_described_as_its_first_variant(author_log: Log) -> None:
    made: list[int] = []

    class Needing(EnvFactory):
        params = ParamSpec(Param("size", int))

        def make(self, size: int) -> Any:
            made.append(size)
            return gymnasium.make("CartPole-v1")

        @classmethod
        def enumerate_variants(cls) -> list[dict[str, Any]]:
            return [{"id": "small", "params": {"size": 2}}, {"id": "large", "params": {}}]

    found = describe(Needing)

    assert made == [2]
    assert found["env_spec"]["action_space"]["details"] == {"n": 2, "start": 0}
    assert found["variants"]["catalog"][1]["error"].startswith("test_what_needs")


def test_each_contract_of_a_factory_is_described() -> None:
    class Robots(EnvFactory):
        tags = TAGS
        params = ParamSpec(Param("robot", "enum", choices=("arm", "hand", "leg")))
        tag_params = ("robot",)

        def make(self, robot: str = "hand") -> Any:
            if robot == "leg":
                raise FileNotFoundError("leg.xml")
            return gymnasium.make("CartPole-v1" if robot == "hand" else "Pendulum-v1")

        @classmethod
        def tags_for(cls, **params: Any) -> object:
            return TAGS if params["robot"] == "hand" else {**TAGS, "robot": params["robot"]}

    found = describe(Robots)
    contracts = found["env_contracts"]

    assert contracts["discriminants"] == ["robot"]
    assert [(each["params"], each["default"]) for each in contracts["branches"]] == [
        ({"robot": "hand"}, True),
        ({"robot": "arm"}, False),
        ({"robot": "leg"}, False),
    ]
    hand, arm, leg = contracts["branches"]
    assert hand["env_spec"] == found["env_spec"]
    assert (hand["env_tags"], arm["env_tags"]["robot"]) == (TAGS, "arm")
    assert arm["env_spec"]["action_space"]["kind"] == "box"
    assert leg["env_spec"] == {"error": "leg.xml", "error_type": "FileNotFoundError"}
    checked = checks_of(found)
    assert checked.passed[0] == "env_tags: declared"
    assert checked.not_checked == ["env_contracts{'robot': 'leg'}: FileNotFoundError: leg.xml"]
    assert checked.failed == []


def test_infinite_bounds_are_null() -> None:
    class Wide(EnvFactory):
        def make(self) -> Any:
            env: Any = gymnasium.make("CartPole-v1").unwrapped
            env.observation_space = spaces.Box(
                np.array([-np.inf, 0], np.float32), np.array([1, np.inf], np.float32)
            )
            return env

    details = describe(Wide)["env_spec"]["observation_space"]["details"]
    assert details == {"bounds_kind": "elementwise", "low": [None, 0.0], "high": [1.0, None]}


def test_a_model_is_described_without_being_loaded(authored: Any) -> None:
    def load(self: object, path: str = "x", scale: float = 1.0) -> None:
        raise AssertionError("a description loads nothing")

    loading: Any = type("Loading", (authored.Policy,), {"load": load})
    found = describe(loading)

    assert (found["kind"], found["model_spec"], found["native_chunk"]) == ("model", None, 4)
    assert found["corners"] == ["predict", "predict_chunk"]
    assert found["params"]["param_spec"]["params"][0]["name"] == "path"
    assert found["params"]["signature_tier"][0]["name"] == "scale"
    assert "env_spec" not in found
    assert loading.describe() == found


def test_a_spec_of_a_model_is_told_or_its_failure() -> None:
    class Spec:
        def to_dict(self) -> dict[str, Any]:
            return {"input": {}}

    class Wrong:
        def to_dict(self) -> dict[str, Any]:
            raise ValueError("no input")

    def model(spec: object) -> Any:
        def predict(self: object, observation: object) -> int:
            return 0

        return type("Speccy", (rlmesh.Model,), {"spec": spec, "predict": predict})

    told, failed = describe(model(Spec())), describe(model(Wrong()))

    assert told["model_spec"] == {"input": {}}
    assert checks_of(told).warnings == []
    assert failed["model_spec"] == {"error": "no input"}
    assert checks_of(failed).failed == ["model_spec: no input"]


def test_functions_are_described_where_their_kind_is_said(authored: Any) -> None:
    found = describe(authored.plain, kind="env")

    assert found["env_spec"]["observation_space"]["shape"] == [3]
    assert found["params"]["signature_tier"][0] == {
        "name": "size",
        "type": "int",
        "default": 3,
        "required": False,
    }
    model = describe(authored.plain, kind="model")
    assert "corners" not in model
    with pytest.raises(TypeError, match="nothing says whether <function plain"):
        describe(authored.plain)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"obj": "authored:Lines", "kind": "robot"}, "kind is 'robot'"),
        ({"obj": "authored:Lines", "generated_at": "yesterday"}, "'yesterday', no RFC 3339"),
        ({"obj": "authored:Lines", "generated_at": "2026-02-31T00:00:00Z"}, "no RFC 3339 time"),
        ({"obj": "authored:nothing"}, "has no attribute 'nothing'"),
        ({"obj": "no_such_module:X"}, "cannot be imported: ModuleNotFoundError"),
        ({"obj": "authored"}, "does not name a class"),
        ({"obj": 3}, "nothing says whether 3"),
        ({"obj": 3, "kind": "env"}, "3 makes no environments"),
    ],
)
def test_what_cannot_be_described_is_told(
    authored: Any, arguments: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        describe(**arguments)


def test_what_enumerates_wrongly_is_a_badge() -> None:
    class Odd(EnvFactory):
        def make(self) -> Any:
            return gymnasium.make("CartPole-v1")

        @classmethod
        def enumerate_variants(cls) -> list[str]:
            return ["small"]

        @classmethod
        def enumerate_params(cls) -> dict[str, Any]:
            raise RuntimeError("no list")

    variants = describe(Odd)["variants"]

    assert variants["catalog_error"].startswith("enumerate_variants() gave 'small'")
    assert variants["variations_error"] == "no list"


def test_an_edition_that_this_build_cannot_run_is_told_and_fails_the_check(
    authored: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLMESH_WORKFLOW_EDITION", "1999.01")

    found = describe(authored.Lines)

    assert "'1999.01'" in found["runtime"]["workflow_edition_error"]
    assert checks_of(found).failed == [f"runtime: {found['runtime']['workflow_edition_error']}"]
    told = json.loads(describe_json(authored.Lines, workflow_edition="2026.06"))
    assert "workflow_edition_error" not in told["runtime"]


def test_tags_that_cannot_be_told_fail_the_check() -> None:
    class Wrong:
        told = 0

        def to_dict(self) -> dict[str, Any]:
            Wrong.told += 1
            if Wrong.told > 1:  # they were sound when the class was created
                raise ValueError("no role")
            return TAGS

    class Tagged(EnvFactory):
        tags = Wrong()

        def make(self) -> Any:
            return gymnasium.make("CartPole-v1")

    found = describe(Tagged)

    assert found["env_tags"] == {"error": "no role"}
    assert "env_tags: no role" in checks_of(found).failed
