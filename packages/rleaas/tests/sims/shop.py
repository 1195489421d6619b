"""A vertical small enough to see through: one order, to be refunded after a look at it."""

from __future__ import annotations

import random
from collections.abc import Mapping

from rleaas.sims import (
    Feature,
    Option,
    Refused,
    Scenario,
    State,
    Tool,
    Vertical,
    arguments_schema,
    calls,
    conditions,
)
from rleaas.sims.state import Json


def look(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    if arguments["order_id"] not in state.tables["orders"]:
        raise Refused("unknown_order", f"there is no order {arguments['order_id']!r}")
    state.facts["looked"] = True
    return dict(state.tables["orders"][arguments["order_id"]])


def refund(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    if not state.facts["looked"]:
        raise Refused("not_looked", "look at the order first")
    state.facts["refunded"] = arguments["amount"]
    return {"refunded": arguments["amount"]}


def deny(state: State, arguments: Mapping[str, Json]) -> Mapping[str, Json]:
    state.facts["denied"] = True
    return {"denied": True}


def order(state: State) -> Mapping[str, Json]:
    return {"order_id": state.case["order_id"]}


TOOLS = (
    Tool(
        name="look_at_order",
        description="Read an order.",
        parameters=arguments_schema(order_id={"type": "string", "pattern": "^ord_[0-9]+$"}),
        category="read",
        run=look,
        suggest=order,
    ),
    Tool(
        name="refund",
        description="Pay money back.",
        parameters=arguments_schema(amount={"type": "number", "minimum": 0}),
        category="write",
        run=refund,
        ends_episode=True,
        suggest=lambda state: {"amount": state.case["amount"]},
    ),
    Tool(
        name="deny",
        description="Pay nothing.",
        parameters=arguments_schema(),
        category="approval",
        run=deny,
        ends_episode=True,
    ),
)


def make(seed: int, config: Mapping[str, Json]) -> State:
    rng = random.Random(seed)
    orders = {
        f"ord_{number}": {"id": f"ord_{number}", "amount": rng.randrange(5, 50)}
        for number in range(config["org_size"])
    }
    return State({"orders": orders}, {}, {"looked": False, "refunded": 0, "denied": False}, config)


def prepare(state: State, scenario: Scenario, rng: random.Random) -> None:
    chosen = rng.choice(sorted(state.tables["orders"]))
    state.case |= {"order_id": chosen, "amount": state.tables["orders"][chosen]["amount"]}
    state.facts |= scenario.setup.get("facts", {})


SCENARIOS = (
    Scenario(
        id="shop_001",
        vertical="Shop",
        title="Refund an order",
        tier=1,
        domain="refund",
        prompt="Refund {case[amount]} of order {case[order_id]}.",
        tools=("look_at_order", "refund", "deny"),
        max_steps=4,
        success=conditions("looked", "refunded == amount"),
        reference=calls("look_at_order", "refund"),
        bad=calls("deny"),
    ),
    Scenario(
        id="shop_002",
        vertical="Shop",
        title="Refund an order that was looked at",
        tier=2,
        domain="refund",
        prompt="Refund order {case[order_id]}, which was looked at.",
        tools=("refund", "deny"),
        max_steps=3,
        setup={"facts": {"looked": True}},
        success={"type": "trajectory_based", "logic": {"required_actions": ["refund"]}},
        reference=calls("refund"),
        bad=calls("deny"),
        split="evaluation",
    ),
)

SHOP = Vertical(
    name="Shop",
    domain="retail",
    summary="Orders and refunds.",
    tools=TOOLS,
    make=make,
    prepare=prepare,
    features=(Feature("looked", lambda state: float(state.facts["looked"])),),
    scenarios=SCENARIOS,
    verifiers=(),
    options=(Option(name="region", description="where it is", default="EU", choices=("EU", "US")),),
)
