from pathlib import Path

import pytest
from rlcore import ANONYMOUS, ApiKey, ConfigurationError, Secret, resolve_client_settings
from rlcore.environ import snapshot, variable
from rlcore.profiles import default_path

FILE = """
default_profile = "home"

[profiles.home]
base_url = "http://home:1/"
retries = 7

[profiles.work]
base_url = "https://work.example/prefix"
api_key = "rleaas_sk_work_0001"
timeout = 5
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(FILE)
    return path


@pytest.fixture
def no_file(tmp_path: Path) -> Path:
    return tmp_path / "missing.toml"


def test_without_anything_given_the_defaults_hold(no_file: Path) -> None:
    settings = resolve_client_settings(environ={}, config_path=no_file)

    assert settings.base_url == "http://localhost:8000"
    assert settings.credential == ANONYMOUS
    assert (settings.timeout, settings.retries) == (30.0, 3)
    assert settings.source("base_url") == settings.source("api_key") == "default"


def test_an_argument_goes_before_a_variable_before_a_profile_before_a_default(file: Path) -> None:
    settings = resolve_client_settings(
        timeout=1,
        environ={
            "RLEAAS_TIMEOUT": "2",
            "RLEAAS_BASE_URL": "http://variable:2",
            "RLEAAS_RETRIES": "",
        },
        config_path=file,
    )

    assert (settings.timeout, settings.base_url, settings.retries) == (1.0, "http://variable:2", 7)
    assert settings.source("timeout") == "argument"
    assert settings.source("base_url") == "environment variable RLEAAS_BASE_URL"
    assert settings.source("retries") == f"profile 'home' in {str(file)!r}"
    assert settings.source("api_key") == "default"


@pytest.mark.parametrize(
    ("argument", "environ"),
    [("work", {}), (None, {"RLEAAS_PROFILE": "work"}), ("work", {"RLEAAS_PROFILE": "home"})],
)
def test_a_profile_is_chosen_by_argument_or_variable(
    file: Path, argument: str | None, environ: dict[str, str]
) -> None:
    settings = resolve_client_settings(profile=argument, environ=environ, config_path=file)

    assert settings.base_url == "https://work.example/prefix"
    assert settings.credential == ApiKey(Secret("rleaas_sk_work_0001"))
    assert settings.timeout == 5.0


@pytest.mark.parametrize("empty", ["", "  "])
def test_an_empty_key_is_no_key(no_file: Path, empty: str) -> None:
    from_argument = resolve_client_settings(api_key=empty, environ={}, config_path=no_file)
    from_variable = resolve_client_settings(environ={"RLEAAS_API_KEY": empty}, config_path=no_file)

    assert from_argument.credential == from_variable.credential == ANONYMOUS


def test_a_key_may_be_a_secret_already(no_file: Path) -> None:
    settings = resolve_client_settings(api_key=Secret("abc"), environ={}, config_path=no_file)

    assert settings.credential == ApiKey(Secret("abc"))


# defect: T-3
# defect: T-8
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("RLEAAS_BASE_URL", "localhost:8000"),
        ("RLEAAS_BASE_URL", "ftp://a"),
        ("RLEAAS_BASE_URL", "http://"),
        ("RLEAAS_BASE_URL", "http://a:99999"),
        ("RLEAAS_BASE_URL", "http://a?b=c"),
        ("RLEAAS_BASE_URL", "http://a#b"),
        ("RLEAAS_TIMEOUT", "soon"),
        ("RLEAAS_TIMEOUT", "0"),
        ("RLEAAS_TIMEOUT", "nan"),
        ("RLEAAS_TIMEOUT", "inf"),
        ("RLEAAS_RETRIES", "0"),
        ("RLEAAS_RETRIES", "1.5"),
    ],
)
def test_an_unusable_value_is_refused_with_the_place_it_came_from(
    no_file: Path, name: str, text: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"environment variable {name}"):
        resolve_client_settings(environ={name: text}, config_path=no_file)


def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(no_file: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        resolve_client_settings(api_key="two words", environ={}, config_path=no_file)
    assert "two words" not in str(caught.value)


@pytest.mark.parametrize(
    "line",
    [
        "base_url = 1",
        "timeout = true",
        "retries = false",
        "timeout = []",
        "retries = 1.5",
        "api_key = 1",
    ],
)
def test_a_profile_value_of_the_wrong_type_is_refused(tmp_path: Path, line: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"[profiles.a]\n{line}\n")

    with pytest.raises(ConfigurationError, match="from profile 'a'"):
        resolve_client_settings(profile="a", environ={}, config_path=path)


def test_a_typo_in_a_profile_is_named_with_the_keys_that_exist(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[profiles.a]\nbase_ulr = 'http://a'\n")

    with pytest.raises(ConfigurationError, match=r"base_ulr.*Known are api_key, base_url"):
        resolve_client_settings(profile="a", environ={}, config_path=path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("not toml at all", "is not TOML"),
        ("default_profile = 3", "is not a profile file"),
        ("profiles = 3", "is not a profile file"),
        ("[profiles.b]", r"'a' is not in .* \(there: b\)"),
        ("x = 1", r"\(there: none\)"),
        ("[profiles]\na = 3", "'a' is not in"),
    ],
)
def test_a_profile_file_of_another_form_is_refused(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    wanted = None if text.startswith("default_profile") else "a"

    with pytest.raises(ConfigurationError, match=complaint):
        resolve_client_settings(profile=wanted, environ={}, config_path=path)


def test_a_profile_in_a_missing_file_is_refused(no_file: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        resolve_client_settings(profile="work", environ={}, config_path=no_file)


def test_a_profile_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read"):
        resolve_client_settings(environ={}, config_path=tmp_path)


def test_a_file_without_a_default_profile_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[profiles.work]\nretries = 9\n")

    assert resolve_client_settings(environ={}, config_path=path).retries == 3


def test_the_profile_file_is_found_by_variable_or_among_the_users_settings(tmp_path: Path) -> None:
    assert default_path({"RLEAAS_CONFIG": "~/x.toml"}) == Path.home() / "x.toml"
    assert default_path({"XDG_CONFIG_HOME": str(tmp_path)}) == tmp_path / "rleaas" / "config.toml"
    assert default_path({}) == Path.home() / ".config" / "rleaas" / "config.toml"


def test_the_processes_own_variables_are_used_when_none_are_given(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RLEAAS_CONFIG", str(file))
    monkeypatch.setenv("RLEAAS_PROFILE", "work")

    assert resolve_client_settings().base_url == "https://work.example/prefix"
    assert variable("RLEAAS_PROFILE") == "work"
    assert snapshot()["RLEAAS_PROFILE"] == "work"


def test_an_unknown_setting_has_no_source(no_file: Path) -> None:
    settings = resolve_client_settings(environ={}, config_path=no_file)

    with pytest.raises(ConfigurationError, match="no setting 'colour'"):
        settings.source("colour")
