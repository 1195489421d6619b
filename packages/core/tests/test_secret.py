import pickle

import pytest
from rlcore import ANONYMOUS, Anonymous, ApiKey, Bearer, Secret


def test_a_secret_shows_only_its_last_characters() -> None:
    secret = Secret("rleaas_sk_0000007f3a")

    assert repr(secret) == str(secret) == f"{secret}" == "Secret('…7f3a')"


def test_a_short_secret_shows_nothing() -> None:
    assert repr(Secret("hunter2")) == "Secret('…')"


def test_a_secret_gives_itself_back_on_demand() -> None:
    assert Secret("abc").reveal() == "abc"


def test_secrets_are_equal_when_their_texts_are() -> None:
    assert Secret("schlüssel") == Secret("schlüssel")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert len({Secret("a"), Secret("a"), Secret("b")}) == 2


def test_only_an_empty_secret_is_false() -> None:
    assert Secret("a")
    assert not Secret("")


def test_a_secret_does_not_pickle() -> None:
    with pytest.raises(TypeError, match=r"reveal\(\)"):
        pickle.dumps(Secret("a"))


@pytest.mark.parametrize("credential", [ApiKey(Secret("abc")), Bearer(Secret("abc"))])
def test_a_credential_is_a_bearer_header_in_http_and_a_bare_token_in_grpc(
    credential: ApiKey | Bearer,
) -> None:
    assert credential.http_headers() == {"Authorization": "Bearer abc"}
    assert credential.grpc_metadata() == (("authorization", "abc"),)
    assert "abc" not in repr(credential)


def test_nobody_in_particular_sends_nothing() -> None:
    assert Anonymous() == ANONYMOUS
    assert ANONYMOUS.http_headers() == {}
    assert ANONYMOUS.grpc_metadata() == ()
