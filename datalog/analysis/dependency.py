"""What depends on what, and in which order relations can be evaluated."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import networkx as nx

from datalog.diagnostics import Code, ContextSpan, Diagnostic, ProgramError
from datalog.model.literals import Atom, Literal, Negation
from datalog.model.predicates import Predicate
from datalog.model.rules import Program


def atoms_of(literal: Literal) -> Iterator[Atom]:
    """Every atom of a literal, in order, inside negations too."""
    match literal:
        case Atom():
            yield literal
        case Negation():
            for inner in literal.body:
                yield from atoms_of(inner)


def dependency_graph(program: Program) -> nx.DiGraph[Predicate]:
    """The graph with an edge from each predicate of a body, negated or not, to the head's predicate.

    Args:
        program: any program.

    Returns:
        Nodes are all predicates of the program's rules, in order of first appearance. An edge carries the
        first `atom` that makes the head depend on the body's predicate.
    """
    graph: nx.DiGraph[Predicate] = nx.DiGraph()
    for rule in program.rules:
        graph.add_node(rule.head.predicate)
        for literal in rule.body:
            for atom in atoms_of(literal):
                if not graph.has_edge(atom.predicate, rule.head.predicate):
                    graph.add_edge(atom.predicate, rule.head.predicate, atom=atom)
    return graph


def evaluation_order(program: Program) -> tuple[Predicate, ...]:
    """The predicates that rules define, each behind those that it depends on.

    Args:
        program: a non-recursive program.

    Returns:
        The heads' predicates in a topological order of the dependency graph; where the graph leaves a
        choice, in the order of first appearance.

    Raises:
        ProgramError: DL301, a relation depends on itself; one diagnostic a group of such relations.

    Complexity:
        O(n log n) in the size of the program.

    Source:
        Abiteboul, Hull, Vianu, Foundations of Databases, section 15.2 (precedence graph).

    Example:
        >>> from datalog.syntax import parse_program
        >>> program = parse_program("w(X) :- v(X), not u(X). v(X) :- r(X). u(X) :- s(X), v(X).")
        >>> [str(predicate) for predicate in evaluation_order(program)]
        ['v', 'u', 'w']
    """
    graph = dependency_graph(program)
    recursive = _recursion(graph)
    if recursive:
        raise ProgramError(recursive)
    appearance = {predicate: number for number, predicate in enumerate(graph)}
    heads = set(program.heads)
    ordered = nx.lexicographical_topological_sort(graph, key=appearance.__getitem__)
    return tuple(predicate for predicate in ordered if predicate in heads)


def check_recursion(program: Program) -> list[Diagnostic]:
    """DL301 for each group of relations that depend on each other, with a shortest cycle."""
    return _recursion(dependency_graph(program))


def _recursion(graph: nx.DiGraph[Predicate]) -> list[Diagnostic]:
    found: list[Diagnostic] = []
    if nx.is_directed_acyclic_graph(graph):
        return found
    appearance = {predicate: number for number, predicate in enumerate(graph)}
    for component in nx.strongly_connected_components(graph):
        first = min(component, key=appearance.__getitem__)
        if len(component) > 1 or graph.has_edge(first, first):
            found.append(_cycle_diagnostic(graph, _shortest_cycle(graph, first)))
    return found


def _shortest_cycle(graph: nx.DiGraph[Predicate], start: Predicate) -> list[Predicate]:
    """The predicates of a shortest path from `start` back to itself, `start` first and last."""
    paths = nx.single_target_shortest_path(graph, start)
    return [start, *min((paths[after] for after in graph.successors(start) if after in paths), key=len)]


def _cycle_diagnostic(graph: nx.DiGraph[Predicate], cycle: list[Predicate]) -> Diagnostic:
    # An edge leads from what is read to what reads it: backwards the cycle says what depends on what.
    chain = list(reversed(cycle))
    atoms = [(head, graph.edges[read, head]["atom"]) for head, read in pairwise(chain)]
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
