import functools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from rlmesh.backends.content import content_of

# Any, here: whatever a policy is made of.

OFFSET = 1


def shifted(observation: float) -> float:
    return observation + OFFSET


def scaled_by(factor: object) -> Callable[[Any], Any]:
    return lambda observation: observation * factor


class Policy:
    """One with a weight."""

    def __init__(self, weight: object) -> None:
        self.weight = weight

    def predict(self, observation: Any) -> Any:
        """Return an action."""
        return observation * self.weight


class Hidden:
    """Keeps what it holds where nobody sees it."""

    __slots__ = ()


def network(bias: float) -> torch.nn.Module:
    made = torch.nn.Linear(2, 1)
    torch.nn.init.constant_(made.weight, 1.0)
    torch.nn.init.constant_(made.bias, bias)
    return made


def always_0(observation: object) -> int:
    return 0


def always_1(observation: object) -> int:
    return 1


def listed(which: int) -> Callable[[list[int]], list[int]]:
    def plain(items: list[int]) -> list[int]:
        return sorted(items, key=lambda item: item)

    def turned(items: list[int]) -> list[int]:
        return sorted(items, key=lambda item: -item)

    return (plain, turned)[which]


DIFFERENT: dict[str, tuple[Any, Any]] = {
    "code": (always_0, always_1),
    "code inside of code": (listed(0), listed(1)),
    "closure": (scaled_by(1), scaled_by(2)),
    "array in a closure": (scaled_by(np.zeros(3)), scaled_by(np.ones(3))),
    "arguments": (functools.partial(scaled_by, 1), functools.partial(scaled_by, 2)),
    "attribute": (Policy(0), Policy(1)),
    "method": (Policy(0).predict, Policy(1).predict),
    "weights": (network(0.0), network(1.0)),
    "library": (np.argmax, np.argmin),
    "type": (1, True),
    "nesting": ([[1], 2], [[1, 2]]),
}


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_acts_otherwise_has_another_digest(case: str) -> None:
    one, other = DIFFERENT[case]
    assert content_of(one).digest != content_of(other).digest
    assert content_of(one).unseen == content_of(other).unseen == ()


def test_what_is_made_alike_has_the_same_digest() -> None:
    for make in (scaled_by, Policy, network):
        assert content_of(make(1.0)) == content_of(make(1.0))


def test_a_global_that_a_function_uses_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    before = content_of(shifted)
    monkeypatch.setitem(globals(), "OFFSET", 2)

    assert content_of(shifted).digest != before.digest


def test_a_class_that_is_defined_otherwise_has_another_digest() -> None:
    def make(length: int) -> type:
        class Env:
            steps = length

        return Env

    assert content_of(make(5)).digest != content_of(make(20)).digest
    assert content_of(make(5)).digest == content_of(make(5)).digest


def test_weights_that_were_trained_on_are_others() -> None:
    module = network(0.0)
    before = content_of(module)
    with torch.no_grad():
        module.get_parameter("bias").add_(1)

    assert content_of(module).digest != before.digest


def test_what_cannot_be_compared_is_named_by_its_place() -> None:
    found = content_of(Policy({"inner": Hidden()}))

    assert found.gaps == "weight.inner (Hidden)"
    assert content_of([Hidden() for _ in range(6)]).gaps.endswith("[3] (Hidden) and 2 more")


def test_what_holds_itself_ends() -> None:
    first, second = Policy(None), Policy(1)
    first.weight = first

    assert content_of(first).digest != content_of(second).digest


def test_another_process_finds_the_same_digest() -> None:
    program = (
        "from rlmesh.backends.content import content_of\n"
        "def of(words):\n"
        "    return lambda o: o in {'left', 'right', 'up'} and o in words\n"
        "print(content_of(of({'a', 'b', 'c', 'd'})).digest)"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }

    assert len(found) == 1
