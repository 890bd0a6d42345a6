"""What depends on what, and in which order relations can be evaluated."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TypeAlias

from datalog.diagnostics import Code, ContextSpan, Diagnostic, ProgramError
from datalog.graphs import cyclic, shortest_cycle
from datalog.model.literals import Atom, Literal, Negation
from datalog.model.predicates import Predicate
from datalog.model.rules import Program

DependencyGraph: TypeAlias = Mapping[Predicate, Mapping[Predicate, Atom]]
"""For each predicate those that depend on it, each with an atom that makes it do so."""


def atoms_of(literal: Literal) -> Iterator[Atom]:
    """Every atom of a literal, in order, inside negations too."""
    match literal:
        case Atom():
            yield literal
        case Negation():
            for inner in literal.body:
                yield from atoms_of(inner)


def dependency_graph(program: Program) -> DependencyGraph:
    """The graph with an edge from each predicate of a body, negated or not, to the head's predicate.

    Returns:
        Keys are all predicates of the program's rules and views, in order of first appearance. An edge carries the
        first atom that makes the head depend on the body's predicate.
    """
    graph: dict[Predicate, dict[Predicate, Atom]] = {}
    bodies = [(rule.head.predicate, rule.body) for rule in program.rules]
    bodies += [(Predicate(view.name), block.core.body) for view in program.views for block in view.blocks]
    for head, body in bodies:
        graph.setdefault(head, {})
        for literal in body:
            for atom in atoms_of(literal):
                graph.setdefault(atom.predicate, {}).setdefault(head, atom)
    return graph


def evaluation_order(program: Program) -> tuple[Predicate, ...]:
    """The predicates that rules define, each behind those that it depends on.

    Returns:
        The heads' predicates in a topological order of the dependency graph; where the graph leaves a
        choice, in the order of first appearance.

    Raises:
        ProgramError: DL301, a relation depends on itself; one diagnostic a group of such relations.

    Complexity:
        O(n log n) in the size of the program.

    Source:
        Abiteboul, Hull, Vianu, Foundations of Databases, section 15.2 (precedence graph).

    >>> from datalog.syntax import parse_program
    >>> program = parse_program("w(X) :- v(X), not u(X). v(X) :- r(X). u(X) :- s(X), v(X).")
    >>> [str(predicate) for predicate in evaluation_order(program)]
    ['v', 'u', 'w']
    """
    graph = dependency_graph(program)
    recursive = _recursion(graph)
    if recursive:
        raise ProgramError(recursive)
    heads = set(program.heads)
    return tuple(predicate for predicate in _in_order(graph) if predicate in heads)


def _in_order(graph: DependencyGraph) -> Iterator[Predicate]:
    """The predicates, each behind those that it depends on; of several that could come next, the first to appear."""
    predicates = list(graph)
    appearance = {predicate: number for number, predicate in enumerate(predicates)}
    open_ = dict.fromkeys(graph, 0)
    for readers in graph.values():
        for reader in readers:
            open_[reader] += 1
    ready = [appearance[predicate] for predicate, number in open_.items() if not number]
    heapify(ready)
    while ready:
        predicate = predicates[heappop(ready)]
        yield predicate
        for reader in graph[predicate]:
            open_[reader] -= 1
            if not open_[reader]:
                heappush(ready, appearance[reader])


def check_recursion(program: Program) -> list[Diagnostic]:
    """DL301 for each group of relations that depend on each other, with a shortest cycle."""
    return _recursion(dependency_graph(program))


def _recursion(graph: DependencyGraph) -> list[Diagnostic]:
    appearance = {predicate: number for number, predicate in enumerate(graph)}
    firsts = [min(component, key=appearance.__getitem__) for component in cyclic(graph)]
    return [_cycle_diagnostic(graph, shortest_cycle(graph, first)) for first in firsts]


def _cycle_diagnostic(graph: DependencyGraph, cycle: list[Predicate]) -> Diagnostic:
    # An edge leads from what is read to what reads it: backwards the cycle says what depends on what.
    chain = list(reversed(cycle))
    atoms = [(head, graph[read][head]) for head, read in pairwise(chain)]
    head, atom = atoms[0]
    context = tuple(
        ContextSpan(other.span, f"`{reader}` reads `{other.predicate}`")
        for reader, other in atoms[1:]
        if other.span is not None
    )
    return Diagnostic(
        Code.RECURSION,
        f"relation `{head}` depends on itself: " + " -> ".join(f"`{predicate}`" for predicate in chain),
        atom.span,
        f"`{head}` reads `{atom.predicate}`",
        context,
        note="programs are not recursive: every relation is evaluated once, after all that it reads",
        hint="break the cycle, such as by a name of its own for one of the relations",
    )
