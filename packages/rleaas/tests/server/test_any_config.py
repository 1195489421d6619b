"""No config, whatever is in it, makes the server fail."""

# Nested strategies have no type that could be written down.
# pyright: reportUnknownArgumentType=false, reportUnknownVariableType=false
# pyright: reportUnknownMemberType=false

from collections.abc import Mapping

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rleaas.training.algorithms import SUPPORTED_ALGORITHMS
from rleaas.training.config import COMMON, REPEATED
from rleaas.training.hyperparameters import HYPERPARAMETERS

from .conftest import Running, Start

ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)
KEYS = st.sampled_from(sorted([*COMMON, *HYPERPARAMETERS, *REPEATED, "n_envs", "type", "path"]))
CONFIGS = st.dictionaries(KEYS | st.text(max_size=8), ANYTHING | st.dictionaries(KEYS, ANYTHING))
BODIES = st.fixed_dictionaries(
    {"config": CONFIGS},
    optional={
        "algorithm": st.sampled_from(SUPPORTED_ALGORITHMS) | ANYTHING,
        "num_episodes": ANYTHING,
        "max_steps": ANYTHING,
        "seed": ANYTHING,
        "verifier_ids": ANYTHING,
        "verifier_weights": ANYTHING,
        "scenario_id": ANYTHING,
        "model": ANYTHING,
        "resume_from_checkpoint": ANYTHING,
    },
)


@pytest.fixture(scope="module")
def ready() -> list[Running]:
    """Holds the one server that all examples ask."""
    return []


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(body=BODIES)
def test_every_config_is_taken_or_refused_by_name(
    body: Mapping[str, object], start: Start, ready: list[Running]
) -> None:
    if not ready:
        ready.append(start())
        ready[0].ready()

    reply = ready[0].http.post("/train/CartPole", json=body)

    assert reply.status_code in (200, 404, 409, 422), reply.text
    if reply.status_code == 422:
        assert reply.json()["detail"]
