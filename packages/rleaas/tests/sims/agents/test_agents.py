"""Agents on all scenarios of all verticals, through rlmesh.run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import pytest
import rlmesh
from rlcore import ConfigurationError, ModelFailed
from rleaas.llm import AnthropicChat, Chat, OpenAIChat
from rleaas.sims import VERTICALS, World, make
from rleaas.sims.agents import LLMAgent, RandomAgent, ScriptedExpert

from ...llm.model_server import (  # noqa: TID252 - plays the model
    ModelServer,
    Request,
    Said,
    model_server,
)

NAMES = sorted(VERTICALS)
ALL = {"split": "all"}
every_vertical = pytest.mark.parametrize("name", NAMES)


class OneBySeed(gymnasium.Wrapper[Any, Any, Any, Any]):
    """The episode of seed n is of the nth scenario."""

    def __init__(self, name: str, face: str) -> None:
        super().__init__(make(name, face=face, split="all"))
        self._ids = [scenario.id for scenario in VERTICALS[name].scenarios]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        assert seed is not None
        return self.env.reset(seed=seed, options={"scenario": self._ids[seed % len(self._ids)]})


def played(agent: object, name: str, face: str = "text", episodes: int | None = None) -> Any:
    seeds = range(episodes or len(VERTICALS[name].scenarios))
    return rlmesh.run(rlmesh.Model(agent), OneBySeed(name, face), seeds=seeds, progress=False)


def solved(result: Any) -> list[bool]:
    assert [one.error for one in result.episodes if one.error] == []
    return [one.success for one in result.episodes]


@every_vertical
def test_the_expert_solves_every_scenario(name: str) -> None:
    ids = [scenario.id for scenario in VERTICALS[name].scenarios]
    expert = ScriptedExpert(VERTICALS[name], ALL, scenario=lambda seed: ids[seed])

    found = solved(played(expert, name))

    assert found == [True] * len(VERTICALS[name].scenarios)


@every_vertical
def test_the_expert_knows_most_scenarios_by_their_opening(name: str) -> None:
    found = solved(played(ScriptedExpert(VERTICALS[name], ALL), name))

    # Some tasks of one vertical open alike on purpose: what they are comes out by looking.
    assert sum(found) >= len(found) - 6


@every_vertical
def test_the_expert_solves_on_the_discrete_face_what_needs_no_arguments_of_its_own(
    name: str,
) -> None:
    vertical = VERTICALS[name]
    plain = next(
        one for one in vertical.scenarios if all(call.arguments is None for call in one.reference)
    )
    expert = ScriptedExpert(vertical, ALL, scenario=plain)
    place = [one.id for one in vertical.scenarios].index(plain.id)

    result = rlmesh.run(
        rlmesh.Model(expert), OneBySeed(name, "discrete"), seeds=[place], progress=False
    )

    assert solved(result) == [True]


@every_vertical
@pytest.mark.parametrize("face", ["text", "discrete"])
def test_the_random_agent_plays_every_scenario_and_solves_few(name: str, face: str) -> None:
    actions = len(VERTICALS[name].tools)

    found = solved(played(RandomAgent(3, actions=actions), name, face))
    again = solved(played(RandomAgent(3, actions=actions), name, face))

    assert len(found) == len(VERTICALS[name].scenarios)
    assert sum(found) <= len(found) // 3
    assert found == again


def test_an_agent_on_a_face_that_it_does_not_know_says_so() -> None:
    context: dict[str, Any] = {
        "episode_seed": 1,
        "predict_index": 0,
        "predict_seed": 1,
        "state": {},
    }

    for agent in (RandomAgent(), LLMAgent(OpenAIChat("tiny"))):
        with pytest.raises(ConfigurationError) as caught:
            agent.predict([0.0], context)  # type: ignore[arg-type]  # a vector where text belongs
        assert caught.value.code == "wrong_face"


Shown = Callable[[ModelServer], Chat]


def openai(server: ModelServer) -> Chat:
    return OpenAIChat("tiny", base_url=server.openai, retries=0)


def anthropic(server: ModelServer) -> Chat:
    return AnthropicChat("tiny", base_url=server.root, retries=0)


both = pytest.mark.parametrize("chat", [openai, anthropic])


def by_the_book(name: str) -> Callable[[Request], Said]:
    """A model that knows each task's reference, by the prompt that it is told."""
    books: dict[str, list[tuple[str, object]]] = {}
    world = World(VERTICALS[name], ALL)
    for seed, scenario in enumerate(VERTICALS[name].scenarios):
        world.reset(seed, scenario)
        prompt = world.prompt
        calls: list[tuple[str, object]] = []
        for call in scenario.reference:
            given = call.given(world.state)
            arguments = dict(world.suggested(call.tool) if given is None else given)
            calls.append((call.tool, arguments))
            world.call(call.tool, arguments)
        books[prompt] = calls

    def answer(request: Request) -> Said:
        messages = [one for one in request["messages"] if one["role"] != "system"]
        first = messages[0]["content"]
        task = first if isinstance(first, str) else first[0]["text"]
        prompt = task.rpartition("\n\nYou may make")[0]
        done = sum(one["role"] == "assistant" for one in messages)
        return Said(calls=(books[prompt][done],))

    return answer


@every_vertical
@both
def test_a_language_model_plays_by_tool_calls_of_either_protocol(name: str, chat: Shown) -> None:
    with model_server(by_the_book(name)) as server:
        agent = LLMAgent(chat(server))
        found = solved(played(agent, name, episodes=4))

    steps = len(server.requests)
    assert found == [True] * 4
    assert agent.meter.to_dict() == {
        "calls": steps,
        "cached": 0,
        "input_tokens": 11 * steps,
        "output_tokens": 3 * steps,
    }
    tools = server.requests[0]["tools"]
    assert len(tools) > 1
    assert "parameters" in json.dumps(tools) or "input_schema" in json.dumps(tools)


def in_their_order(name: str, solution: str) -> Callable[[Request], Said]:
    """A model that plays the references, or the bad solutions, of all scenarios one after another.

    Some tasks are told in the same words, so it knows them by their turn.
    """
    world = World(VERTICALS[name], ALL)
    books: list[list[tuple[str, object]]] = []
    for seed, scenario in enumerate(VERTICALS[name].scenarios):
        world.reset(seed, scenario)
        books.append([])
        for call in scenario.reference if solution == "reference" else scenario.bad:
            given = call.given(world.state)
            arguments = dict(world.suggested(call.tool) if given is None else given)
            books[-1].append((call.tool, arguments))
            world.call(call.tool, arguments)
    begun = 0

    def answer(request: Request) -> Said:
        nonlocal begun
        done = sum(one["role"] == "assistant" for one in request["messages"])
        begun += not done
        book = books[begun - 1]
        # A bad solution may stop too early: then it only talks.
        return Said(calls=(book[done],)) if done < len(book) else Said("That is all.")

    return answer


@every_vertical
def test_a_language_model_that_plays_by_the_book_solves_every_scenario(name: str) -> None:
    with model_server(in_their_order(name, "reference")) as server:
        found = solved(played(LLMAgent(openai(server)), name))

    assert found == [True] * len(VERTICALS[name].scenarios)


@every_vertical
def test_a_language_model_that_plays_badly_fails_every_scenario(name: str) -> None:
    with model_server(in_their_order(name, "bad")) as server:
        found = solved(played(LLMAgent(anthropic(server)), name))

    assert found == [False] * len(VERTICALS[name].scenarios)


def refused(server: ModelServer, request: int) -> Mapping[str, Any]:
    """What the model is told of its call before."""
    told: Mapping[str, Any] = json.loads(server.requests[request]["messages"][-1]["content"])
    return told


@pytest.mark.parametrize(
    "bad",
    [
        Said(calls=(("no_such_tool", {}),)),
        Said(calls=(("get_transfer", '{"transfer_id": '),)),
        Said(calls=(("get_transfer", "[1]"),)),
        Said(calls=(("get_transfer", {"nonsense": 1}),)),
        Said("I would rather talk about it."),
        Said(""),
    ],
)
def test_what_is_no_call_is_refused_and_told_to_the_model(bad: Said) -> None:
    with model_server(bad) as server:
        result = played(LLMAgent(openai(server)), "FinSim", episodes=1)

    assert solved(result) == [False]
    budget = VERTICALS["FinSim"].scenarios[0].max_steps
    assert len(server.requests) == budget  # each of them costs a step, so it comes to an end
    assert '"ok": false' in json.dumps(refused(server, 1))


def test_an_endpoint_that_fails_is_an_error_and_no_score() -> None:
    with model_server(Said("no key", status=401)) as server:
        agent = LLMAgent(openai(server))
        with pytest.raises(ModelFailed, match="no key") as caught:
            played(agent, "FinSim", episodes=1)

    assert caught.value.reason == "refused"
