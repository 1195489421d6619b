"""Large tables, of which an episode copies what it looks at."""

from __future__ import annotations

import random
from typing import Any

import pytest
from rleaas.sims import VERTICALS, State, World
from rleaas.sims import state as state_room
from rleaas.sims.table import Copied, Kept, seen

ROWS: dict[str, dict[str, Any]] = {
    f"row_{number}": {"id": f"row_{number}", "list": [number]} for number in range(100)
}


def test_an_episodes_changes_are_its_own() -> None:
    kept = Kept(ROWS)
    one, other = Copied(kept), Copied(kept)

    one["row_7"]["list"].append("changed")
    one["row_new"] = {"id": "row_new", "list": []}
    del one["row_3"]

    assert other["row_7"] == {"id": "row_7", "list": [7]}
    assert (len(one), len(other)) == (100, 100)
    assert "row_3" not in one
    assert "row_3" in other
    assert "row_new" not in other
    assert ROWS["row_7"]["list"] == [7]


def test_it_has_the_order_of_a_dict_and_shows_its_changes() -> None:
    plain = {key: {**row, "list": list(row["list"])} for key, row in ROWS.items()}
    table = Copied(Kept(ROWS))
    for rows in (plain, table):
        rows["row_50"]["list"] = ["changed"]
        rows["row_new"] = {"id": "row_new", "list": []}
        del rows["row_3"]

    assert list(table) == list(plain)
    assert list(seen(table)) == list(plain.values())
    assert dict(table) == plain
    for missing in ("row_3", "nowhere"):
        with pytest.raises(KeyError):
            table[missing]
        with pytest.raises(KeyError):
            del table[missing]


@pytest.mark.parametrize("name", sorted(VERTICALS))
def test_a_large_organisation_plays_as_if_every_row_were_copied(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def played() -> list[object]:
        world = World(VERTICALS[name], {"org_size": 200, "split": "all"})
        tools, rng = [tool.name for tool in world.tools], random.Random(5)
        told: list[object] = []
        for seed in range(20):
            world.reset(seed)
            while not world.over:
                tool = rng.choice(tools)
                told.append(world.call(tool, world.suggested(tool)).to_json())
            told.append(world.state.to_json())
            told.append({key: dict(rows) for key, rows in world.state.tables.items()})
        return told

    lazily = played()
    monkeypatch.setattr(state_room, "LARGE", 10**9)
    assert lazily == played()


def test_small_tables_stay_plain() -> None:
    state = State({"few": {"a": {"id": "a"}}})
    assert type(State.thawed(state.frozen(), {}).tables["few"]) is dict
