"""Graphs, as far as programs need them: what hangs together, what goes round, what comes first."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

N = TypeVar("N", bound=Hashable)


def components(nodes: Iterable[N], edges: Iterable[tuple[N, N]]) -> list[list[N]]:
    """The connected components of an undirected graph, each from its first node on, in the order of these.

    Args:
        nodes: the nodes; those of the edges are added behind them.
        edges: in no direction.

    Complexity:
        Linear.

    Example:
        >>> components("abcd", [("b", "d"), ("e", "a")])
        [['a', 'e'], ['b', 'd'], ['c']]
    """
    beside: dict[N, list[N]] = {node: [] for node in nodes}
    for one, other in edges:
        beside.setdefault(one, []).append(other)
        beside.setdefault(other, []).append(one)
    seen: set[N] = set()
    return [_reached(start, beside, seen) for start in beside if start not in seen]


def _reached(start: N, beside: Mapping[N, Iterable[N]], seen: set[N]) -> list[N]:
    """The nodes that can be reached and are not among those seen, which they join."""
    seen.add(start)
    found = [start]
    for node in found:
        for other in beside[node]:
            if other not in seen:
                seen.add(other)
                found.append(other)
    return found


def strong_components(successors: Mapping[N, Iterable[N]]) -> list[list[N]]:
    """The strongly connected components of a directed graph, each before those that it leads to.

    Args:
        successors: for each node those that its edges lead to; what is no key has none.

    Complexity:
        Linear.

    Source:
        Tarjan, Depth-First Search and Linear Graph Algorithms, SIAM J. Comput. 1 (1972).

    Example:
        >>> strong_components({"a": "b", "b": "cd", "c": "b"})
        [['a'], ['b', 'c'], ['d']]
    """
    number: dict[N, int] = {}
    lowest: dict[N, int] = {}
    waiting: list[N] = []
    is_waiting: set[N] = set()
    found: list[list[N]] = []

    def enter(node: N) -> None:
        number[node] = lowest[node] = len(number)
        waiting.append(node)
        is_waiting.add(node)

    for start in successors:
        if start in number:
            continue
        enter(start)
        path = [(start, iter(successors.get(start, ())))]
        while path:
            node, rest = path[-1]
            for other in rest:
                if other not in number:
                    enter(other)
                    path.append((other, iter(successors.get(other, ()))))
                    break
                if other in is_waiting:
                    lowest[node] = min(lowest[node], number[other])
            else:
                path.pop()
                if path:
                    lowest[path[-1][0]] = min(lowest[path[-1][0]], lowest[node])
                if lowest[node] == number[node]:
                    found.append(_taken(waiting, node))
                    is_waiting.difference_update(found[-1])
    return found[::-1]


def _taken(waiting: list[N], until: N) -> list[N]:
    """The last nodes from one on, which leave the list."""
    found = [waiting.pop()]
    while found[-1] != until:
        found.append(waiting.pop())
    return found[::-1]


def cyclic(successors: Mapping[N, Iterable[N]]) -> list[list[N]]:
    """The strongly connected components in which some edge stays: from each node back to itself.

    Example:
        >>> cyclic({"a": "b", "b": "c", "c": "bd", "d": "d"})
        [['b', 'c'], ['d']]
    """
    found = strong_components(successors)
    return [each for each in found if len(each) > 1 or each[0] in successors.get(each[0], ())]


def shortest_cycle(successors: Mapping[N, Iterable[N]], start: N) -> list[N]:
    """The nodes of a shortest path from a node back to itself, that node first and last.

    Raises:
        ValueError: there is none.

    Example:
        >>> shortest_cycle({"a": "bc", "b": "d", "c": "a", "d": "a"}, "a")
        ['a', 'c', 'a']
    """
    before: dict[N, N] = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for other in successors.get(node, ()):
            if other == start:
                cycle = [start, node]
                while cycle[-1] != start:
                    cycle.append(before[cycle[-1]])
                return cycle[::-1]
            if other not in before:
                before[other] = node
                queue.append(other)
    message = f"{start} is in no cycle"
    raise ValueError(message)
