import pytest
from hypothesis import given
from hypothesis import strategies as st
from rlcore import Claims, ConfigurationError, Secret, TokenRejected, mint_token, verify_token

KEY = Secret("k" * 32)
subjects = st.text(min_size=1)
moments = st.floats(min_value=1.0, max_value=4e9)


@given(subjects, moments)
def test_a_token_says_what_it_was_minted_for(subject: str, expires_at: float) -> None:
    token = mint_token(KEY, subject=subject, expires_at=expires_at)

    claims = verify_token(KEY, token, subject=subject, now=expires_at - 0.5)

    assert claims == Claims(subject, expires_at)
    assert token.isascii()
    assert not set(token) & set("/+= ")


@given(subjects, moments, st.data())
def test_a_changed_token_is_rejected(subject: str, expires_at: float, data: st.DataObject) -> None:
    token = mint_token(KEY, subject=subject, expires_at=expires_at)
    place = data.draw(st.integers(0, len(token) - 1))
    other = data.draw(st.characters().filter(lambda character: character != token[place]))

    with pytest.raises(TokenRejected):
        verify_token(KEY, token[:place] + other + token[place + 1 :], subject=None, now=0.0)


@given(st.text())
def test_any_other_text_is_rejected(text: str) -> None:
    with pytest.raises(TokenRejected):
        verify_token(KEY, text, subject=None, now=0.0)


def test_a_token_of_another_key_is_rejected() -> None:
    token = mint_token(Secret("another key"), subject="env:1", expires_at=10.0)

    with pytest.raises(TokenRejected, match="not signed by this server"):
        verify_token(KEY, token, subject="env:1", now=0.0)


def test_an_expired_token_is_rejected_with_a_code_of_its_own() -> None:
    token = mint_token(KEY, subject="env:1", expires_at=10.0)

    with pytest.raises(TokenRejected, match="expired 2 s ago") as caught:
        verify_token(KEY, token, subject="env:1", now=12.0)
    assert caught.value.code == "token_expired"


def test_a_token_for_another_subject_is_rejected() -> None:
    token = mint_token(KEY, subject="env:1", expires_at=10.0)

    with pytest.raises(TokenRejected, match="'env:1', not for 'env:2'"):
        verify_token(KEY, token, subject="env:2", now=0.0)


def test_a_token_can_be_read_for_any_subject() -> None:
    token = mint_token(KEY, subject="env:1", expires_at=10.0)

    assert verify_token(KEY, token, subject=None, now=0.0).subject == "env:1"


def test_an_empty_key_neither_signs_nor_verifies() -> None:
    token = mint_token(KEY, subject="a", expires_at=1.0)
    with pytest.raises(ConfigurationError, match="key is empty"):
        mint_token(Secret(""), subject="a", expires_at=1.0)
    with pytest.raises(ConfigurationError, match="key is empty"):
        verify_token(Secret(""), token, subject="a", now=0.0)


def test_a_token_needs_a_subject() -> None:
    with pytest.raises(ConfigurationError, match="subject"):
        mint_token(KEY, subject="", expires_at=1.0)
