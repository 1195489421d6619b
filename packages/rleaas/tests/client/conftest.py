from importlib.util import find_spec

import pytest


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    if request.param == "trio" and find_spec("trio") is None:
        pytest.skip("trio is not installed")
    assert isinstance(request.param, str)
    return request.param
