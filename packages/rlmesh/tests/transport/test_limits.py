"""How many files a server may have open."""

from __future__ import annotations

import resource
from collections.abc import Iterator

import pytest
from rlmesh.transport.limits import FILES_PER_SESSION, SPARE_FILES, allow_files


@pytest.fixture
def narrow() -> Iterator[int]:
    """A limit of open files that is too low for a crowd, and may be raised; returns the ceiling."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_the_limit_of_open_files_is_raised_as_far_as_sessions_need(narrow: int) -> None:
    assert allow_files(100) is None
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 100 * FILES_PER_SESSION + SPARE_FILES
    assert allow_files(1) is None
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == 100 * FILES_PER_SESSION + SPARE_FILES


def test_a_ceiling_that_is_too_low_is_told(narrow: int) -> None:
    assert allow_files(narrow) == narrow
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] == narrow
