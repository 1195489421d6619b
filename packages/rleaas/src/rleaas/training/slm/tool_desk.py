"""The reference task of SLM: a desk with a price list that answers JSON tool calls."""

# gymnasium leaves its type arguments open.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium import spaces
from rlcore import ConfigurationError

from rleaas.training.slm.language import LANGUAGE

ITEMS = ("apple", "fig", "kiwi", "pear")
LARGEST_PRICE = 5
CHARACTERS = "".join(chr(code) for code in range(32, 127))
LONGEST = 200

CALL_REWARD = 0.02
FACT_REWARD = 0.2
ANSWER_REWARD = 1.0


class ToolDeskEnv(gymnasium.Env[str, str]):
    """Find out what a thing costs, or what two cost together, by tool calls in JSON.

    The observation is the task, then what the last call gave. An action is one call:
    `{"tool": "lookup", "arguments": {"item": "pear"}}` gives the price of a thing, `add` with
    `a` and `b` a sum, and `answer` with `value` ends the episode when it is right and every thing
    was looked up: that is success, and gives 1. A guess, even a lucky one, is answered 'not so'.
    A look-up or a sum that the task needs gives 0.2 once, any other call that is understood 0.02.
    Prices and things are drawn by the seed of the reset. There are two calls more than needed.

    Args:
        things: how many things the task names: 1 asks for a price, 2 for a sum.
    """

    def __init__(self, things: int = 1) -> None:
        if things not in (1, 2):
            raise ConfigurationError(f"things must be 1 or 2, got {things!r}")
        self._things = things
        self.observation_space = spaces.Text(LONGEST, charset=CHARACTERS)
        self.action_space = spaces.Text(LONGEST, min_length=0, charset=CHARACTERS)
        self.metadata = {"render_modes": [], LANGUAGE: language(things)}
        self._prices: Mapping[str, int] = {}
        self._wanted: tuple[str, ...] = ()
        self._known: dict[str, int] = {}
        self._sum_known = False
        self._calls = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Draw prices and a task."""
        super().reset(seed=seed)
        drawn = self.np_random.integers(1, LARGEST_PRICE, size=len(ITEMS), endpoint=True)
        self._prices = {item: int(price) for item, price in zip(ITEMS, drawn, strict=True)}
        chosen = self.np_random.choice(len(ITEMS), size=self._things, replace=False)
        self._wanted = tuple(ITEMS[int(index)] for index in chosen)
        self._known = {}
        self._sum_known = False
        self._calls = 0
        return _task(self._wanted), {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Do one call."""
        self._calls += 1
        result, reward, ended, success = self._do(action)
        truncated = self._calls >= 2 * self._things + 2 and not ended
        info = {"is_success": success} if ended or truncated else {}
        return result, reward, ended, truncated, info

    def _do(self, action: str) -> tuple[str, float, bool, bool]:
        try:
            call = json.loads(action)
            tool, arguments = call["tool"], call["arguments"]
            match tool:
                case "lookup":
                    return *self._look_up(str(arguments["item"])), False, False
                case "add":
                    return *self._add(_whole(arguments["a"]), _whole(arguments["b"])), False, False
                case "answer":
                    right = _whole(arguments["value"]) == self._answer and self._informed
                    if right:
                        return _result("done"), ANSWER_REWARD, True, True
                    return _result("not so"), CALL_REWARD, False, False
                case _:
                    return _result("no such tool"), 0.0, False, False
        except (ValueError, KeyError, TypeError, RecursionError):
            return _result("not a call"), 0.0, False, False

    @property
    def _answer(self) -> int:
        return sum(self._prices[item] for item in self._wanted)

    @property
    def _informed(self) -> bool:
        return all(item in self._known for item in self._wanted)

    def _look_up(self, item: str) -> tuple[str, float]:
        price = self._prices.get(item)
        if price is None:
            return _result("no such item"), 0.0
        new = item in self._wanted and item not in self._known
        self._known[item] = price
        return _price(price), FACT_REWARD if new else CALL_REWARD

    def _add(self, a: int, b: int) -> tuple[str, float]:
        needed = sorted(self._known[item] for item in self._wanted if item in self._known)
        useful = self._things == 2 and not self._sum_known and sorted((a, b)) == needed
        self._sum_known = self._sum_known or useful
        return _price(a + b), FACT_REWARD if useful else CALL_REWARD


def language(things: int) -> dict[str, list[str]]:
    """What calls about so many things consist of, which pieces end one, examples of replies."""
    prices = range(1, LARGEST_PRICE + 1)
    numbers = range(1, things * LARGEST_PRICE + 1)
    heads = [
        '{"tool": "lookup", "arguments": {"item": ',
        '{"tool": "answer", "arguments": {"value": ',
    ]
    if things > 1:
        heads += ['{"tool": "add", "arguments": {"a": ', *(f'{price}, "b": ' for price in prices)]
    ends = [f'"{item}"}}}}' for item in ITEMS] + [f"{number}}}}}" for number in numbers]
    tasks = [_task(wanted) for wanted in itertools.permutations(ITEMS, things)]
    words = [
        _result(word) for word in ("not a call", "no such tool", "no such item", "not so", "done")
    ]
    return {
        "pieces": [*heads, *ends],
        "ends": ends,
        "texts": [*tasks, *(_price(number) for number in numbers), *words],
    }


def _task(wanted: tuple[str, ...]) -> str:
    asked = ", ".join(f'{{"find": {{"item": "{item}"}}}}' for item in wanted)
    return f"price of {asked}"


def _price(number: int) -> str:
    return f'{{"price": {{"is": {number}}}}}'


def _result(word: str) -> str:
    return f'{{"result": "{word}"}}'


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    return value
