from collections.abc import Callable
from pathlib import Path

import pytest
from rlcore import ConfigurationError
from rlcore.profile_file import (
    ProfileNames,
    profile_names,
    remove_profile,
    save_profile,
    use_profile,
)
from rlcore.profiles import load_profile

BY_HAND = """\
# my servers
default_profile = "home" # where I work

[profiles.home]
base_url = "http://home"

[profiles."work"] # of the company
base_url = "https://work"
retries = 5

[other]
default_profile = "kept"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "of" / "mine" / "config.toml"


@pytest.fixture
def by_hand(path: Path) -> Path:
    path.parent.mkdir(parents=True)
    path.write_text(BY_HAND)
    return path


def test_the_first_profile_is_the_default_and_only_its_owner_reads_it(path: Path) -> None:
    save_profile(path, "work", {"base_url": "https://work", "api_key": 'a"b\\c'})
    save_profile(path, "home", {"base_url": "http://home", "retries": 3})

    found = load_profile(path, None)
    assert found is not None
    assert (found.name, found.values["api_key"]) == ("work", 'a"b\\c')
    assert profile_names(path).names == ("work", "home")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o077 == 0
    assert [one.name for one in path.parent.iterdir()] == ["config.toml"]


def test_saving_a_profile_again_replaces_it_and_nothing_else(by_hand: Path) -> None:
    save_profile(by_hand, "work", {"base_url": "https://new"})

    text = by_hand.read_text()
    assert "# my servers" in text
    assert '"kept"' in text
    found = load_profile(by_hand, "work")
    assert found is not None
    assert found.values == {"base_url": "https://new"}
    assert profile_names(by_hand).default == "home"


def test_another_profile_becomes_the_default(by_hand: Path) -> None:
    use_profile(by_hand, "work")

    assert profile_names(by_hand).default == "work"
    assert '[other]\ndefault_profile = "kept"' in by_hand.read_text()


def test_a_profile_that_is_removed_is_no_default_either(by_hand: Path) -> None:
    remove_profile(by_hand, "home")
    assert profile_names(by_hand) == ProfileNames(("work",), None)
    remove_profile(by_hand, "work")

    assert profile_names(by_hand).names == ()
    assert by_hand.read_text() == '# my servers\n\n[other]\ndefault_profile = "kept"\n'


def test_removing_another_profile_leaves_the_default(by_hand: Path) -> None:
    remove_profile(by_hand, "work")

    assert profile_names(by_hand).default == "home"


@pytest.mark.parametrize("change", [use_profile, remove_profile])
def test_a_profile_that_is_not_there_is_refused_with_those_that_are(
    by_hand: Path, change: Callable[[Path, str], None]
) -> None:
    with pytest.raises(ConfigurationError, match="there: home, work"):
        change(by_hand, "none")


def test_of_a_missing_file_there_are_no_profiles(path: Path) -> None:
    assert profile_names(path).names == ()
    with pytest.raises(ConfigurationError, match="there: none"):
        use_profile(path, "x")


@pytest.mark.parametrize("name", ["", "a b", "a.b", "ä", "a]"])
def test_a_name_that_would_need_quotes_is_refused(path: Path, name: str) -> None:
    with pytest.raises(ConfigurationError, match="name of a profile"):
        save_profile(path, name, {})


@pytest.mark.parametrize(
    "text",
    [
        'profiles = { work = { base_url = "x" } }\n',  # inline tables are not found
        '[profiles.work]\nbase_url = """\n[not a table]\n"""\n',
    ],
)
def test_a_file_that_cannot_be_changed_safely_stays_as_it_is(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True)
    path.write_text(text)

    with pytest.raises(ConfigurationError, match="changed safely"):
        save_profile(path, "work", {"base_url": "y"})
    assert path.read_text() == text


def test_a_file_of_another_form_is_refused(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.write_text("profiles = 3\n")

    with pytest.raises(ConfigurationError, match="not a profile file"):
        profile_names(path)


def test_a_place_that_cannot_be_written_to_is_named(tmp_path: Path) -> None:
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")

    with pytest.raises(ConfigurationError, match="cannot be written"):
        save_profile(tmp_path / "dangling" / "config.toml", "a", {})


def test_blank_lines_at_the_end_do_not_pile_up(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    save_profile(path, "a", {"api_key": "1"})
    path.write_text(path.read_text() + "\n\n\n")

    save_profile(path, "b", {"api_key": "2"})

    assert "\n\n\n" not in path.read_text()
    assert profile_names(path).names == ("a", "b")
