"""Graphs against their definitions, on every small one and on random larger ones."""

from __future__ import annotations

import random
from itertools import chain, combinations, pairwise, product

import pytest

from datalog.graphs import components, cyclic, shortest_cycle, strong_components

Edges = list[tuple[int, int]]


def every_graph(size: int) -> list[Edges]:
    pairs = list(product(range(size), repeat=2))
    return [list(some) for k in range(len(pairs) + 1) for some in combinations(pairs, k)]


def random_graphs() -> list[tuple[int, Edges]]:
    drawn = random.Random(7)
    sizes = [drawn.randrange(4, 12) for _ in range(200)]
    return [
        (n, [(drawn.randrange(n), drawn.randrange(n)) for _ in range(drawn.randrange(2 * n))]) for n in sizes
    ]


GRAPHS = [(3, edges) for edges in every_graph(3)] + random_graphs()


def distances(size: int, edges: Edges) -> dict[tuple[int, int], int]:
    """The lengths of shortest walks with an edge at least, by Floyd and Warshall."""
    far = dict.fromkeys(edges, 1)
    for via, a, b in product(range(size), repeat=3):
        if (a, via) in far and (via, b) in far:
            far[a, b] = min(far.get((a, b), size + 1), far[a, via] + far[via, b])
    return far


def successors(size: int, edges: Edges) -> dict[int, list[int]]:
    return {node: [b for a, b in edges if a == node] for node in range(size)}


def test_components_are_what_hangs_together() -> None:
    for size, edges in GRAPHS:
        both = distances(size, [*edges, *((b, a) for a, b in edges)])
        found = components(range(size), edges)
        assert sorted(chain(*found)) == list(range(size))
        for one, other in combinations(range(size), 2):
            together = any(one in each and other in each for each in found)
            assert together == ((one, other) in both)
        assert [each[0] for each in found] == sorted(min(each) for each in found)


def test_strong_components_lead_to_each_other_and_stand_before_those_that_they_lead_to() -> None:
    for size, edges in GRAPHS:
        far = distances(size, edges)
        found = strong_components(successors(size, edges))
        assert sorted(chain(*found)) == list(range(size))
        at = {node: number for number, each in enumerate(found) for node in each}
        for one, other in combinations(range(size), 2):
            assert (at[one] == at[other]) == ((one, other) in far and (other, one) in far)
        assert all(at[a] <= at[b] for a, b in edges)
        assert {*chain(*cyclic(successors(size, edges)))} == {
            node for node in range(size) if (node, node) in far
        }


def test_a_shortest_cycle_is_one() -> None:
    for size, edges in GRAPHS:
        far = distances(size, edges)
        for node in range(size):
            if (node, node) not in far:
                with pytest.raises(ValueError, match="in no cycle"):
                    shortest_cycle(successors(size, edges), node)
                continue
            cycle = shortest_cycle(successors(size, edges), node)
            assert len(cycle) == far[node, node] + 1
            assert cycle[0] == cycle[-1] == node
            assert all(pair in edges for pair in pairwise(cycle))


def test_a_long_path_is_no_deep_recursion() -> None:
    path = {i: [i + 1] for i in range(50_000)}
    assert strong_components(path) == [[i] for i in range(50_001)]
    assert len(components((), [(i, i + 1) for i in range(50_000)])) == 1
