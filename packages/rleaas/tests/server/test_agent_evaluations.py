"""Agents without a checkpoint, evaluated by a real server over real endpoints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest
from rleaas import Client
from rleaas.server.local import LocalServer
from rleaas.server.settings import ServerSettings
from rleaas.server.state import ServerState
from rleaas.sims import VERTICALS, World

from ..llm.model_server import Request, Said, model_server  # noqa: TID252 - plays the model

Answer = Callable[[Request], Said]


PLAYED = ("finsim_wire_001", "finsim_kyc_009")


def by_the_book(vertical: str, seed: int) -> Answer:
    """A language model that knows each task's reference, by the prompt that it is told.

    It begins no episode before both are asked for: who plays one after the other waits in vain.
    """
    both = Barrier(len(PLAYED))
    books: dict[str, list[tuple[str, object]]] = {}
    world = World(VERTICALS[vertical])
    for scenario in PLAYED:
        world.reset(seed, scenario)
        prompt, calls = world.prompt, list[tuple[str, object]]()
        for call in world.scenario.reference:
            given = call.given(world.state)
            arguments = dict(world.suggested(call.tool) if given is None else given)
            calls.append((call.tool, arguments))
            world.call(call.tool, arguments)
        books[prompt] = calls

    def answer(request: Request) -> Said:
        messages = [one for one in request["messages"] if one["role"] != "system"]
        prompt = messages[0]["content"].rpartition("\n\nYou may make")[0]
        done = sum(one["role"] == "assistant" for one in messages)
        if not done:
            both.wait(timeout=20)
        return Said(calls=(books[prompt][done],))

    return answer


@pytest.mark.slow
def test_an_expert_and_a_language_model_are_evaluated_like_anybody(tmp_path: Path) -> None:
    def allowing(settings: ServerSettings) -> ServerState:
        return ServerState(replace(settings, allowed_hosts=frozenset({"127.0.0.1"})))

    with (
        model_server(by_the_book("FinSim", 3)) as model,
        LocalServer(tmp_path, make_state=allowing) as server,
        Client(base_url=server.url) as client,
    ):
        client.Environment.create("Desk", vertical="FinSim", config={"face": "text"})
        client.Environment.create("Bank", vertical="FinSim").wait_until_ready(60)
        client.Environment.get("Desk").wait_until_ready(60)
        agent = {"kind": "llm", "base_url": model.openai, "model": "tiny"}
        asked = {
            "Bank": client.Evaluation.run(
                agent="expert", environment_name="Bank", scenario_suite_id="suite_eval_01"
            ),
            "Desk": client.Evaluation.run(
                agent=agent,
                environment_name="Desk",
                scenario_ids=PLAYED,
                seeds=[3],
                num_workers=len(PLAYED),
            ),
        }
        expert, played = (
            asked[name].wait_until_complete(80, 0.2, progress=False) for name in ("Bank", "Desk")
        )
        again = client.Evaluation.reproduce(played, 40, 0.2)

    assert (expert.agent, expert.provenance["agent"]) == ("expert", "expert")
    assert expert.scored == expert.asked > 20
    # Some references need arguments that the discrete face does not let anybody give.
    assert expert.overall_score is not None
    assert expert.overall_score > 0.8
    assert (played.scored, played.overall_score) == (2, 1.0)
    assert (played.agent, played.agent_settings and played.agent_settings["model"]) == (
        "llm",
        "tiny",
    )
    told = played.provenance["agent"]
    assert isinstance(told, dict)
    assert told["identity"] == f"openai:{model.openai}:tiny"
    costs = played.costs["agent"]
    assert isinstance(costs, dict)
    assert costs["input_tokens"] == 11 * costs["calls"] > 0
    assert again.verdict == "same"
