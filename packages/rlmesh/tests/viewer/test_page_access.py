import pytest
from rlmesh.viewer.page_access import refusal

OWN = "127.0.0.1:8008"


def asked(path: str = "/frame", **headers: str) -> str | None:
    given = {name.replace("_", "-"): value for name, value in headers.items()}
    return refusal(path, given.get)


@pytest.mark.parametrize("host", [OWN, "localhost:9000", "localhost", "[::1]:8008"])
def test_programs_of_this_machine_may_ask(host: str) -> None:
    assert asked(Host=host) is None


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8008", "192.168.0.2:8008", "", "[::1", "a@b:c"]
)
def test_a_name_that_only_leads_here_is_refused(host: str) -> None:
    assert asked(Host=host) == "the Host is no name of the loopback interface"


def test_a_request_without_a_host_is_refused() -> None:
    assert asked() is not None


def test_the_page_itself_may_ask() -> None:
    assert asked("/skip", Host=OWN, Origin=f"http://{OWN}", Sec_Fetch_Site="same-origin") is None


def test_who_types_the_address_may_ask() -> None:
    assert asked("/", Host=OWN, Sec_Fetch_Site="none", Sec_Fetch_Mode="navigate") is None


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
@pytest.mark.parametrize("path", ["/skip", "/frame", "/hud.json", "/select"])
def test_another_page_may_not_ask(path: str, site: str) -> None:
    assert asked(path, Host=OWN, Sec_Fetch_Site=site, Sec_Fetch_Mode="navigate") is not None


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:8888", "http://localhost:8008"]
)
def test_a_request_that_another_page_sends_is_refused_by_its_origin(origin: str) -> None:
    assert asked("/quit", Host=OWN, Origin=origin) == "the request comes from another page"


def test_another_page_may_link_to_the_page_but_not_embed_it() -> None:
    assert asked("/", Host=OWN, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="navigate") is None
    assert asked("/", Host=OWN, Sec_Fetch_Site="cross-site", Sec_Fetch_Mode="cors") is not None
