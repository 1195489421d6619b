"""Graphs: nodes, and edges between them."""

from __future__ import annotations

import importlib.util
from functools import cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rlmesh.spaces.coerce import as_array, invalid, items_of, shown
from rlmesh.spaces.containers import checked_child
from rlmesh.spaces.space import Space
from rlmesh.spaces.stacking import stacked, unstacked
from rlmesh.values import DTYPES, NATIVE, NUMPY, Array, Backend

NODES = 10  # gymnasium's: the nodes of a sampled graph
LINK = DTYPES["int32"]


class GraphInstance(NamedTuple):
    """A graph.

    Attributes:
        nodes: the features of all nodes, stacked.
        edges: the features of all edges, stacked; None without edges.
        edge_links: for each edge, the numbers of the nodes from and to which it goes: `int32`,
            `[edges, 2]`; None without edges.
    """

    nodes: Any  # Any: arrays, or trees of them, of whichever backend
    edges: Any = None
    edge_links: Any = None


class Graph(Space):
    """Graphs of any number of nodes and edges.

    Args:
        node_space: the space of a node's features.
        edge_space: the space of an edge's features; None for graphs without edges.

    Raises:
        UnsupportedSpaceError: one of them is no space.
    """

    __slots__ = ("edge_space", "node_space")
    kind: ClassVar[str] = "graph"
    node_space: Space
    edge_space: Space | None

    def __init__(self, node_space: Space, edge_space: Space | None = None) -> None:
        checked_child(node_space, "the nodes of a Graph space")
        if edge_space is not None:
            checked_child(edge_space, "the edges of a Graph space")
        self._settle(node_space, edge_space, node_space=node_space, edge_space=edge_space)

    @property
    def shape(self) -> list[int]:
        """No dimensions of its own."""
        return []

    @property
    def dtype(self) -> str:
        """A fixed word: containers have no elements of their own."""
        return "float32"

    def draw(self, generator: np.random.Generator, backend: Backend) -> Any:  # Any: by backend
        """Return a graph of ten nodes, with up to ninety edges if it has any."""
        nodes = self._drawn(self.node_space, NODES, generator, backend)
        count = 0
        if self.edge_space is not None:
            count = int(generator.integers(NODES * (NODES - 1)))
        if self.edge_space is None or count == 0:
            return graph_type(backend)(nodes, None, None)
        edges = self._drawn(self.edge_space, count, generator, backend)
        links = generator.integers(NODES, size=(count, 2), dtype=np.int32)
        return graph_type(backend)(nodes, edges, backend.owned(links))

    def check(self, value: object, path: str = "$") -> None:
        """Do nothing for a graph, or a tuple of its three parts, with right nodes and edges."""
        nodes, edges, links = parts_of(value, path)
        items = unstacked(self.node_space, nodes, f"{path}.nodes")
        for index, item in enumerate(items):
            self.node_space.check(item, f"{path}.nodes[{index}]")
        if edges is None and links is None:
            return
        if self.edge_space is None or edges is None or links is None:
            raise invalid(path, "has edges without links, links without edges, or may have none")
        features = unstacked(self.edge_space, edges, f"{path}.edges")
        for index, item in enumerate(features):
            self.edge_space.check(item, f"{path}.edges[{index}]")
        checked_links(links, len(items), len(features), path)

    def __repr__(self) -> str:
        return f"Graph({self.node_space!r}, {self.edge_space!r})"

    def _drawn(
        self, space: Space, count: int, generator: np.random.Generator, backend: Backend
    ) -> Any:  # Any: by backend
        return stacked(space, [space.draw(generator, NUMPY) for _ in range(count)], backend)

    def _details(self) -> dict[str, object]:
        edges = None if self.edge_space is None else self.edge_space.to_dict()
        return {"nodes": self.node_space.to_dict(), "edges": edges}

    def _arguments(self) -> tuple[Any, ...]:  # Any: what the constructor takes
        return self.node_space, self.edge_space


def parts_of(value: object, path: str) -> tuple[Any, Any, Any]:  # Any: as in GraphInstance
    """Return a graph's nodes, edges and links.

    Raises:
        InvalidValueError: it is no graph.
    """
    # GraphInstance and gymnasium's are both named tuples.
    parts = items_of(value, 3)
    if parts is None:
        raise invalid(path, f"must be a GraphInstance, not {shown(value)}")
    nodes, edges, links = parts
    return nodes, edges, links


def checked_links(links: object, nodes: int, edges: int, path: str) -> Array:
    """Return the links of so many edges as an array.

    Raises:
        InvalidValueError: they are others, or go to nodes that there are not.
    """
    array = as_array(links, LINK, (edges, 2), f"{path}.edge_links")
    if array.size and not 0 <= int(array.min()) <= int(array.max()) < nodes:
        wrong = array[(array < 0) | (array >= nodes)].flat[0]
        raise invalid(f"{path}.edge_links", f"holds {wrong}, and there are {nodes} nodes")
    return array


def graph_type(backend: Backend) -> type[Any]:  # Any: gymnasium's class, or ours
    """Return the class of graphs: gymnasium's where it is installed, as its spaces know no other.

    Native values are ours everywhere: they do not depend on what is installed.
    """
    return GraphInstance if backend is NATIVE else _installed_type()


@cache
def _installed_type() -> type[Any]:
    if importlib.util.find_spec("gymnasium") is None:
        return GraphInstance
    from gymnasium.spaces import GraphInstance as TheirGraphInstance

    return TheirGraphInstance
