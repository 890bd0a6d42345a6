"""Graphs, as far as programs need them: what hangs together, what goes round, what comes first.

networkx is imported only where something goes round, as no command's start should wait for it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from graphlib import CycleError, TopologicalSorter
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import networkx as nx

N = TypeVar("N", bound=Hashable)


def components(nodes: Iterable[N], edges: Iterable[tuple[N, N]]) -> list[list[N]]:
    """The connected components of an undirected graph, and their nodes, in the order in which these are named.

    Nodes that only edges name come last.

    >>> components("abcd", [("b", "d"), ("e", "a")])
    [['a', 'e'], ['b', 'd'], ['c']]
    """
    neighbours: dict[N, list[N]] = {node: [] for node in nodes}
    for one, other in edges:
        neighbours.setdefault(one, []).append(other)
        neighbours.setdefault(other, []).append(one)
    place = {node: i for i, node in enumerate(neighbours)}
    found = []
    while neighbours:
        waiting, reached = [next(iter(neighbours))], list[N]()
        while waiting:
            node = waiting.pop()
            if node in neighbours:
                reached.append(node)
                waiting.extend(neighbours.pop(node))
        found.append(sorted(reached, key=place.__getitem__))
    return found


def _directed(successors: Mapping[N, Iterable[N]]) -> nx.DiGraph[N]:
    import networkx as nx  # noqa: PLC0415 - see above

    graph: nx.DiGraph[N] = nx.DiGraph()
    graph.add_nodes_from(successors)
    graph.add_edges_from((node, other) for node, others in successors.items() for other in others)
    return graph


def strong_components(successors: Mapping[N, Iterable[N]]) -> list[list[N]]:
    """The strongly connected components of a directed graph, each before those that it leads to.

    What is no key has no successors.

    >>> strong_components({"a": "b", "b": "cd", "c": "b"})
    [['a'], ['b', 'c'], ['d']]
    """
    order: TopologicalSorter[N] = TopologicalSorter(dict.fromkeys(successors, ()))
    for node, others in successors.items():
        for other in others:
            order.add(other, node)
    try:
        return [[node] for node in order.static_order()]
    except CycleError:
        pass
    import networkx as nx  # noqa: PLC0415 - see above

    graph = _directed(successors)
    place = {node: i for i, node in enumerate(graph)}
    condensed = nx.condensation(graph)
    members = (condensed.nodes[each]["members"] for each in nx.topological_sort(condensed))
    return [sorted(each, key=place.__getitem__) for each in members]


def cyclic(successors: Mapping[N, Iterable[N]]) -> list[list[N]]:
    """The strongly connected components in which some edge stays: from each node back to itself.

    >>> cyclic({"a": "b", "b": "c", "c": "bd", "d": "d"})
    [['b', 'c'], ['d']]
    """
    found = strong_components(successors)
    return [each for each in found if len(each) > 1 or each[0] in successors.get(each[0], ())]


def shortest_cycle(successors: Mapping[N, Iterable[N]], start: N) -> list[N]:
    """The nodes of a shortest path from a node back to itself, that node first and last.

    Raises:
        ValueError: there is none.

    >>> shortest_cycle({"a": "bc", "b": "d", "c": "a", "d": "a"}, "a")
    ['a', 'c', 'a']
    """
    import networkx as nx  # noqa: PLC0415 - see above

    graph = _directed(successors)
    back = nx.shortest_path(graph, target=start) if start in graph else {}
    ways = [[start, *back[other]] for other in successors.get(start, ()) if other in back]
    if not ways:
        message = f"{start} is in no cycle"
        raise ValueError(message)
    return min(ways, key=len)
