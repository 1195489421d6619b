import logging

import pytest
from rlcore.log import RedactionFilter, logger, redact


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Authorization: Bearer abc.def-1", "Authorization: Bearer [redacted]"),
        ("key rleaas_sk_0123abcd used", "key [redacted] used"),
        ("token rlt1.W10.c2ln ends", "token [redacted] ends"),
        ("nothing to hide", "nothing to hide"),
    ],
)
def test_secrets_are_replaced(text: str, redacted: str) -> None:
    assert redact(text) == redacted


def test_a_secret_in_an_argument_is_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="rlmesh.test"):
        logger("rlmesh", "test").info("dialled with %s", "rleaas_sk_0123abcd")
        logger("rlmesh", "test").info("step %d", 3)

    assert caplog.messages == ["dialled with [redacted]", "step 3"]


def test_a_logger_is_filtered_once() -> None:
    found = logger("rlcore")

    assert logger("rlcore") is found
    assert [type(one) for one in found.filters] == [RedactionFilter]
