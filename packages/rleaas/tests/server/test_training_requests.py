"""What a training request says has effect, or is refused by name."""

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from rlcore import ConfigurationError, QuotaExceededError
from rleaas.server.rules.job_limits import within_limits
from rleaas.server.store import jobs, verifier_definitions
from rleaas.server.store.tables import JsonObject
from rleaas.server.training_requests import require_code_allowed, with_reward_file
from rleaas.training.config import validate_training_config
from rleaas.training.quota import ComputeQuota
from rleaas.verify import Means
from sqlalchemy.orm import Session

from .conftest import FakeMesh, Running, Start

LEAVES_CHECKPOINTS: list[tuple[str, dict[str, object]]] = [
    ("checkpoint", {"episode": 5, "avg_reward": 1.0, "content": "five"}),
    ("checkpoint", {"episode": 9, "avg_reward": 0.5, "content": "nine"}),
    ("completed", {}),
]


@pytest.fixture
def trained(start: Start) -> tuple[Running, str]:
    """A server with an agent that was trained once."""
    platform = start(plan=LEAVES_CHECKPOINTS)
    platform.ready()
    platform.ok(platform.http.post("/api/agents", json={"id": "agent_1", "name": "mine"}))
    job_id = platform.train(num_episodes=10, model="mine")
    assert platform.finished("training", job_id) == "completed"
    return platform, job_id


def asked(platform: Running, env: str = "CartPole", **body: object) -> dict[str, Any]:
    return platform.ok(platform.http.post(f"/train/{env}", json=body))


def refused(platform: Running, env: str = "CartPole", **body: object) -> dict[str, Any]:
    reply = platform.http.post(f"/train/{env}", json=body)
    assert 400 <= reply.status_code < 500, reply.text
    problem: dict[str, Any] = reply.json()
    return {"status": reply.status_code, **problem}


# defect: L-5
def test_episode_settings_count_where_the_request_says_nothing_and_are_warned_of_elsewhere(
    platform: Running,
) -> None:
    platform.ready()
    simulation = {"episode_settings": {"num_episodes": 7, "max_steps": 8}}

    filled = asked(platform, config={"simulation": simulation})
    beaten = asked(platform, num_episodes=9, config={"simulation": simulation})

    assert (filled["num_episodes"], filled["max_steps"], filled["warnings"]) == (7, 8, [])
    assert (beaten["num_episodes"], beaten["max_steps"]) == (9, 8)
    assert "num_episodes 7 is not used" in beaten["warnings"][0]


def test_a_job_without_a_seed_is_given_one_that_its_record_keeps(platform: Running) -> None:
    platform.ready()

    drawn = asked(platform)["seed"]

    assert isinstance(drawn, int)
    assert asked(platform, seed=drawn)["seed"] == drawn
    assert asked(platform, config={"simulation": {"seed": 4}})["seed"] == 4


def test_the_record_says_whether_the_job_is_repeatable(platform: Running) -> None:
    platform.ready()
    job = asked(platform)

    assert (job["reproducible"], job["why_not"]) == (True, None)


def test_an_agents_latest_checkpoint_is_the_start_of_its_next_training(
    trained: tuple[Running, str],
) -> None:
    platform, first = trained

    assert platform.ok(platform.http.get(f"/training/{first}"))["start"] == {
        "from": "nothing",
        "agent": "agent_1",
        "why": "the agent has no checkpoint",
    }
    job = asked(platform, model="agent_1")
    assert job["start"]["checkpoint_id"] == f"ckpt_{first}_9"
    assert job["resume_from_checkpoint"] == f"ckpt_{first}_9"


def test_a_named_checkpoint_is_the_start_before_the_agents(trained: tuple[Running, str]) -> None:
    platform, first = trained

    job = asked(platform, model="agent_1", resume_from_checkpoint=f"ckpt_{first}_5")

    assert job["start"] == {"from": "checkpoint", "checkpoint_id": f"ckpt_{first}_5"}
    assert asked(platform)["start"] == {"from": "nothing"}


def test_a_checkpoint_of_other_spaces_is_refused_before_the_start(
    trained: tuple[Running, str], mesh: FakeMesh
) -> None:
    platform, first = trained
    mesh.contract["action_space"] = {"kind": "discrete", "n": 3}
    platform.ready("Other")

    problem = refused(platform, "Other", resume_from_checkpoint=f"ckpt_{first}_9")

    assert (problem["status"], problem["code"]) == (422, "checkpoint_incompatible")
    assert "other actions than environment 'Other'" in problem["detail"]


def test_an_algorithm_that_cannot_learn_there_is_refused_with_what_fits(
    start: Start, mesh: FakeMesh
) -> None:
    mesh.contract["action_space"] = {"kind": "tuple", "details": {"spaces": []}}
    platform = start()
    platform.ready()

    problem = refused(platform)

    assert (problem["status"], problem["code"]) == (422, "space_not_learnable")
    assert platform.ok(platform.http.get("/api/training/jobs"))["jobs"] == []


@pytest.mark.parametrize(
    ("config", "near"),
    [
        ({"learning_rat": 1}, "learning_rate"),
        ({"simulation": {"sped": 1}}, "speed"),
        ({"compute_quota": {"max_timestep": 1}}, "max_timesteps"),
    ],
)
def test_an_unknown_key_is_refused_with_the_nearest_at_every_level(
    platform: Running, config: dict[str, object], near: str
) -> None:
    platform.ready()

    problem = refused(platform, config=config)

    assert problem["code"] == "unknown_config_key"
    assert f"Did you mean '{near}'?" in str(problem)


@pytest.fixture
def judged(platform: Running) -> Running:
    """A server with two verifiers, a suite to train on and one that is held out."""
    platform.ready()
    for name in ("polite", "quick"):
        body = {
            "name": name,
            "type": "rule_based",
            "config": {"conditions": ["trajectory.length <= 9"], "condition_logic": "AND"},
        }
        platform.ok(platform.http.post("/api/verifiers", json=body))
    for one in ("train", "eval"):
        made = platform.http.post(
            "/api/environments/CartPole/scenarios",
            json={"name": one, "tier": 1, "task_prompt": f"balance to {one}"},
        )
        scenario = platform.ok(made)["id"]
        purpose = {"train": "training", "eval": "evaluation"}[one]
        suite = {"name": f"{one} suite", "purpose": purpose, "scenario_ids": [scenario]}
        suite["environment"] = "CartPole"
        platform.ok(platform.http.post("/api/scenario-suites", json=suite))
    return platform


def test_verifiers_and_scenarios_are_part_of_the_job_as_they_were(judged: Running) -> None:
    job = asked(
        judged, verifier_ids=["polite", "quick"], verifier_weights=[1, 3], scenario_id="train suite"
    )

    with judged.server.state.database.read(1) as session:
        request: dict[str, Any] = jobs.find(session, jobs.TRAINING, job["job_id"]).request
    assert sorted(request["verifiers"]["weights"].values()) == [1, 3]
    assert len(request["verifiers"]["definitions"]) == 2
    assert [one["name"] for one in request["scenarios"]["scenarios"]] == ["train"]


def test_others_can_write_while_the_conditions_of_a_job_are_read(
    judged: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, wrote = verifier_definitions.weighted, list[int]()

    def read_slowly(session: Session, weights: Mapping[str, float], means: Means) -> JsonObject:
        def write() -> None:
            body = {"name": f"n{len(wrote)}", "type": "human_evaluation"}
            named = judged.http.post("/api/verifiers", json=body)
            wrote.append(named.status_code)

        other = threading.Thread(target=write)
        other.start()
        other.join(20)
        assert not other.is_alive()
        return read(session, weights, means)

    monkeypatch.setattr(verifier_definitions, "weighted", read_slowly)
    judged.ok(judged.http.post("/train/CartPole", json={"verifier_ids": ["polite"]}))
    judged.ok(judged.http.post("/train/CartPole/check", json={"verifier_ids": ["polite"]}))

    assert wrote == [200, 200]


def test_a_suite_that_is_held_out_is_never_trained_on(judged: Running) -> None:
    problem = refused(judged, scenario_id="eval suite")

    assert (problem["status"], problem["code"]) == (409, "evaluation_suite")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"verifier_ids": ["nobody"]}, "nobody"),
        ({"verifier_ids": ["polite"], "verifier_weights": {"polit": 2}}, "'polite'"),
        ({"verifier_weights": {"polite": 2}}, "needs verifier_ids"),
        (
            {
                "verifier_ids": ["polite"],
                "verifier_weights": {"polite": 2},
                "config": {"verifier_weights": {"polite": 3}},
            },
            "contradict",
        ),
        ({"scenario_id": "nowhere"}, "nowhere"),
        ({"verifier_conditions": [{"a": 1}]}, "not built yet"),
    ],
)
def test_judges_that_cannot_be_are_refused_by_name(
    judged: Running, body: dict[str, Any], said: str
) -> None:
    assert said in str(refused(judged, **body))


def test_the_path_of_a_reward_is_read_where_the_operator_keeps_such_files(tmp_path: Path) -> None:
    (tmp_path / "rewards").mkdir()
    source = "def reward(reward):\n    return -reward\n"
    (tmp_path / "rewards" / "mine.py").write_text(source)
    (tmp_path / "other.py").write_text(source)
    root = tmp_path / "rewards"

    for told in ("mine.py", {"path": "mine.py"}, {"type": "path", "value": "mine.py"}):
        found = with_reward_file({"reward_fn": told}, root)
        assert found == {"reward_fn": {"type": "path", "value": "mine.py", "source": source}}

    assert with_reward_file({"reward_fn": "mine.py"}, None) == {"reward_fn": "mine.py"}
    assert with_reward_file({"reward_fn": "-reward"}, root) == {"reward_fn": "-reward"}
    for wrong in ("../other.py", str(tmp_path / "other.py"), "nothing.py"):
        with pytest.raises(ConfigurationError, match=r"reward files|cannot be read"):
            with_reward_file({"reward_fn": wrong}, root)


def test_python_is_no_reward_where_users_may_run_none() -> None:
    code = {"reward_fn": "def reward(reward):\n    return 1.0\n"}
    require_code_allowed(validate_training_config("PPO", config=code), allowed=True)
    require_code_allowed(
        validate_training_config("PPO", config={"reward_fn": "-reward"}), allowed=False
    )

    with pytest.raises(ConfigurationError) as caught:
        require_code_allowed(validate_training_config("PPO", config=code), allowed=False)
    assert caught.value.code == "code_not_allowed"


def test_a_quota_of_the_organisation_holds_where_the_request_has_none() -> None:
    limits = {"job_wall_seconds": 60.0, "job_timesteps": 1000.0}

    held = within_limits(ComputeQuota(max_timesteps=10), limits)

    assert held == ComputeQuota(max_wall_seconds=60.0, max_timesteps=10)
    assert within_limits(None, {}) is None


def test_more_than_the_organisation_allows_is_refused() -> None:
    with pytest.raises(QuotaExceededError, match="job_timesteps"):
        within_limits(ComputeQuota(max_timesteps=1001), {"job_timesteps": 1000.0})


@pytest.mark.parametrize("address", ["checkpoint://{}", "rleaas://checkpoints/{}", "{}"])
def test_an_agents_model_is_the_start_by_every_address_of_a_checkpoint(
    trained: tuple[Running, str], address: str
) -> None:
    platform, first = trained
    checkpoint = f"ckpt_{first}_5"
    agent = {"id": "two", "name": "two", "model_ref": address.format(checkpoint)}
    platform.ok(platform.http.post("/api/agents", json=agent))

    assert asked(platform, model="two")["start"]["checkpoint_id"] == checkpoint
    other = refused(platform, model="two", algorithm="A2C")
    assert (other["status"], other["code"]) == (422, "checkpoint_of_other_algorithm")


@pytest.mark.parametrize("named", ["checkpoint://gone", "rleaas://checkpoints/gone", "policy.zip"])
def test_an_agent_whose_checkpoint_cannot_be_used_starts_no_training(
    platform: Running, named: str
) -> None:
    platform.ready()
    agent = {"id": "lost", "name": "lost", "model_ref": named}
    platform.ok(platform.http.post("/api/agents", json=agent))

    problem = refused(platform, model="lost")

    assert (problem["status"], problem["code"]) == (409, "agent_not_playable")
    assert "'lost'" in problem["detail"]


def test_an_agent_without_a_checkpoint_starts_from_nothing_with_a_warning(
    platform: Running,
) -> None:
    platform.ready()
    agent = {"id": "new", "name": "new", "base_model": "Qwen/Qwen3-0.6B"}
    platform.ok(platform.http.post("/api/agents", json=agent))

    job = asked(platform, model="new")

    assert job["start"]["from"] == "nothing"
    assert job["warnings"] == ["agent 'new' has no checkpoint: the training starts from nothing"]


@pytest.mark.parametrize("settings", [{"policy": "CnnPolicy"}, {"use_sde": True}])
def test_settings_that_no_network_of_the_contract_can_have_are_refused(
    platform: Running, settings: dict[str, object]
) -> None:
    platform.ready()

    problem = refused(platform, config=settings)

    assert (problem["status"], problem["code"]) == (422, "setting_misfit")


@pytest.mark.parametrize("field", ["run_name", "model", "scenario_id", "resume_from_checkpoint"])
def test_a_name_that_no_list_could_show_is_refused(platform: Running, field: str) -> None:
    platform.ready()

    assert "at most 200 characters" in refused(platform, **{field: "x" * 201})["detail"]
    assert "NUL" in refused(platform, **{field: "a\0b"})["detail"]


def test_a_curriculum_without_tiers_is_refused_before_it_waits(platform: Running) -> None:
    platform.ready()

    problem = refused(platform, config={"curriculum": True})

    assert problem["code"] == "curriculum_without_tiers"
    assert "scenario_suite_id" in problem["hint"]
    assert platform.ok(platform.http.get("/api/training/jobs"))["jobs"] == []


def test_a_curriculum_that_starts_above_its_suite_is_refused_before_it_waits(
    judged: Running,
) -> None:
    problem = refused(judged, scenario_id="train suite", config={"curriculum": {"start_tier": 4}})

    assert "the curriculum starts at 4" in problem["detail"]
