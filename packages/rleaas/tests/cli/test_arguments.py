import pytest
from rlcore import ConfigurationError
from rleaas.cli.commands.evaluations import seeds_from
from rleaas.cli.spec import json_object, settings_from


def test_seeds_are_a_range_or_a_list() -> None:
    assert seeds_from("3:6") == (3, 4, 5)
    assert seeds_from(":2") == (0, 1)
    assert seeds_from("9, 2,2") == (9, 2, 2)


@pytest.mark.parametrize("text", ["", "a", "5:5", "6:3", "1:2:3", "1,", "-3:2", "1.5"])
def test_other_seeds_are_refused_by_name(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--seeds"):
        seeds_from(text)


def test_settings_are_json_where_they_can_be_and_text_elsewhere() -> None:
    settings = settings_from(
        "--config", ["gamma=0.9", "net_arch=[8, 8]", "policy=MlpPolicy", "description="]
    )
    assert settings == {
        "gamma": 0.9,
        "net_arch": [8, 8],
        "policy": "MlpPolicy",
        "description": "",
    }


@pytest.mark.parametrize("pair", ["gamma", "=3"])
def test_a_setting_without_key_or_value_is_refused(pair: str) -> None:
    with pytest.raises(ConfigurationError, match="is not KEY=VALUE"):
        settings_from("--config", [pair])


@pytest.mark.parametrize("text", ["{", "[1]", "3"])
def test_kwargs_that_are_no_json_object_are_refused(text: str) -> None:
    with pytest.raises(ConfigurationError, match="--kwargs-json"):
        json_object("--kwargs-json", text)
