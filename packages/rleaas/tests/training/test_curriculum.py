import json
import multiprocessing
import pickle

import pytest
from rlcore import ConfigurationError
from rleaas.training.curriculum import Curriculum, CurriculumSettings, validate_curriculum

QUICK = CurriculumSettings(thresholds={1: 0.5}, window=2)


def test_settings_are_read_and_travel() -> None:
    settings = validate_curriculum(
        {"enabled": True, "tier_1_mastery_threshold": 0.85, "window": 20}
    )

    assert settings is not None
    assert settings == CurriculumSettings(thresholds={1: 0.85}, window=20)
    assert validate_curriculum(settings.to_json()) == settings
    assert (settings.threshold(1), settings.threshold(2)) == (0.85, 0.8)
    for off in (None, False, {"enabled": False, "window": 3}):
        assert validate_curriculum(off) is None
    assert validate_curriculum({}) == CurriculumSettings()


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"tier_1_mastery": 0.5}, "Did you mean 'tier_1_mastery_threshold'"),
        ({"tier_4_mastery_threshold": 0.5}, "unknown key 'tier_4_mastery_threshold'"),
        ({"tier_2_mastery_threshold": 1.5}, "curriculum.tier_2_mastery_threshold must be between"),
        ({"window": 0}, "curriculum.window must be an integer above 0"),
        ({"window": 10**6}, "curriculum.window must be at most"),
        ({"start_tier": 5}, "curriculum.start_tier must be one of"),
        ({"enabled": "yes"}, "curriculum.enabled must be true or false"),
        (3, "curriculum must be an object"),
    ],
)
def test_settings_that_make_no_sense_are_refused(value: object, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        validate_curriculum(value)


def test_a_tier_needs_a_whole_window_and_its_share_of_successes() -> None:
    curriculum = Curriculum(CurriculumSettings(thresholds={1: 0.75}, window=4))

    tiers: list[int] = []
    for success in (True, True, True, False, True):
        curriculum.record(curriculum.tier, success)
        tiers.append(curriculum.tier)

    assert tiers == [1, 1, 1, 2, 2]
    assert curriculum.success_rate == 1.0


def test_episodes_of_another_tier_count_for_nothing() -> None:
    curriculum = Curriculum(QUICK)
    for _ in range(2):
        curriculum.record(1, True)

    for _ in range(9):
        curriculum.record(1, True)

    assert (curriculum.tier, curriculum.success_rate) == (2, None)


def test_the_last_tier_is_not_left() -> None:
    curriculum = Curriculum(QUICK, tiers=(2, 1))
    for _ in range(10):
        curriculum.record(curriculum.tier, True)

    assert curriculum.tier == 2
    assert [advance.to_tier for advance in curriculum.news()] == [2]


def test_a_curriculum_that_hears_of_no_success_says_so() -> None:
    curriculum = Curriculum(QUICK)
    curriculum.record(1, None)

    with pytest.raises(ConfigurationError, match="in 2 episodes whether they succeeded") as caught:
        curriculum.record(1, None)
    assert caught.value.code == "curriculum_blind"


def test_a_start_above_every_tier_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="starts at 3"):
        Curriculum(CurriculumSettings(start_tier=3), tiers=(1, 2))


def test_a_saved_curriculum_goes_on_where_it_was() -> None:
    before = Curriculum(CurriculumSettings(thresholds={1: 0.5, 2: 1.0}, window=3))
    for success in (True, True, False, True, True):
        before.record(before.tier, success)
    saved = json.loads(json.dumps(before.get_state()))

    after = Curriculum(before.settings)
    after.set_state(saved)
    after.record(2, True)

    assert before.tier == 2
    assert [advance.from_tier for advance in after.news()] == [2]
    with pytest.raises(ConfigurationError, match="not this job's"):
        after.set_state([1.0])


def _succeed(curriculum: Curriculum, times: int) -> None:
    for _ in range(times):
        curriculum.record(curriculum.tier, True)


def test_processes_count_for_one_curriculum() -> None:
    context = multiprocessing.get_context("spawn")
    curriculum = Curriculum(CurriculumSettings(window=10))
    curriculum.share()

    children = [context.Process(target=_succeed, args=(curriculum, 5)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join(50)

    assert curriculum.tier == 2
    assert [advance.success_rate for advance in curriculum.news()] == [1.0]


def test_a_copy_that_was_pickled_otherwise_stays_by_itself() -> None:
    curriculum = Curriculum(QUICK)
    copy = pickle.loads(pickle.dumps(curriculum))
    _succeed(copy, 4)

    assert (curriculum.tier, copy.tier) == (1, 3)
