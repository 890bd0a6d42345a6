"""Programs of a given shape and size, for measuring how long it takes to generate their tests."""

from __future__ import annotations

from itertools import combinations

SHAPES = ("chain", "star", "clique")


def one_view(shape: str, size: int, *, self_join: bool = False) -> str:
    """A program of one view with `size` subgoals over as many relations (over one, for a self-join)."""
    atoms = _body(shape, [f"r{i}" for i in range(size)])
    if self_join:
        if shape == "star":
            raise ValueError("a star has relations of different arity")
        atoms = [("r", terms) for _, terms in atoms]
    return _program([("v0", atoms)], ())


def windows(shape: str, views: int, size: int, pool: int, copies: int = 0, step: int = 1) -> str:
    """`views` views of `size` subgoals, each over a window of a pool of relations; the first `copies` are copied.

    The window of view i starts at relation `i * step`, modulo the size of the pool. A relation has the same
    columns in every view: in a chain it is an edge between two vertices, in a star the fact table or a
    dimension, in a clique an edge of the complete graph on as many vertices as it takes.
    """
    names = [f"r{i}" for i in range(pool)]
    bodies = []
    for i in range(views):
        chosen = [(i * step + j) % pool for j in range(size)]
        bodies.append((f"v{i}", _window(shape, names, chosen)))
    arities = {name: len(terms) for _, atoms in bodies for name, terms in atoms}
    copied = [(name, arities[name]) for name in names if name in arities][:copies]
    return _program(bodies, copied)


Body = list[tuple[str, tuple[str, ...]]]


def _body(shape: str, names: list[str]) -> Body:
    size = len(names)
    if shape == "chain":
        return [(name, (f"X{i}", f"X{i + 1}")) for i, name in enumerate(names)]
    if shape == "star":
        keys = tuple(f"K{i}" for i in range(1, size))
        return [(names[0], keys), *((names[i], (f"K{i}", f"A{i}")) for i in range(1, size))]
    return [(name, (f"X{a}", f"X{b}")) for name, (a, b) in zip(names, _edges(size), strict=True)]


def _window(shape: str, names: list[str], chosen: list[int]) -> Body:
    """A view over some relations of the pool, by their numbers."""
    if shape == "chain":
        return [(names[i], (f"X{i}", f"X{(i + 1) % len(names)}")) for i in chosen]
    if shape == "star":
        fact = tuple(f"K{i}" for i in range(len(names)))
        return [("fact", fact), *((names[i], (f"K{i}", f"A{i}")) for i in chosen[1:])]
    edges = _edges(len(names))
    return [(names[i], tuple(f"X{v}" for v in edges[i])) for i in chosen]


def _edges(size: int) -> list[tuple[int, int]]:
    """The first edges of a complete graph, vertex after vertex, so that they form cliques."""
    vertices = 2
    while vertices * (vertices - 1) // 2 < size:
        vertices += 1
    ordered = sorted(combinations(range(vertices), 2), key=lambda e: (e[1], e[0]))
    return ordered[:size]


def _program(bodies: list[tuple[str, Body]], copied: list[tuple[str, int]] | tuple[()]) -> str:
    lines = []
    arities: dict[str, int] = {}
    for name, atoms in bodies:
        arities.update({relation: len(terms) for relation, terms in atoms})
        variables = list(dict.fromkeys(term for _, terms in atoms for term in terms))
        body = ", ".join(f"{relation}({', '.join(terms)})" for relation, terms in atoms)
        lines.append(f"{name}({', '.join(variables)}) :- {body}.")
    for name, arity in copied:
        columns = ", ".join(f"X{i}" for i in range(arity))
        lines.append(f"copy_{name}({columns}) :- {name}({columns}).")
    declared = [
        f".decl {name}({', '.join(f'c{i}: bigint not null' for i in range(arity))})."
        for name, arity in arities.items()
    ]
    return "\n".join([*declared, *lines]) + "\n"
