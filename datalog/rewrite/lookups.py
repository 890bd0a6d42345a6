"""Say what a body only asks of a relation: whether it has a row, and the few columns that are shown.

Before: `p(X, N) :- new(X, Y), s(Y, N, A, B), t(Y, C), not (u(X, D), w(D, E)).`       (`new` is small)
After:  `p(X, N) :- new(X, Y), s@lookup(Y, N), not not t(Y, C), not (u(X, D), not not w(D, E)).
         s@lookup(Y, N) :- s(Y, N, A, B), not not new(X, Y).`

As a query, `not not` is EXISTS, and rows that are looked up come once each. As joins, rows that differ in what nobody
asks for multiply: each new line would meet all lines of its part, times all lines of its supplier.

Conditions of soundness:

1. A subgoal is a test if the other subgoals bind all its variables that are used elsewhere. Sets do not show how many
   rows it has. The others stay as connected as they were, or they would be multiplied instead.
2. Rows that are looked up have all columns that are used. Those that meet a small relation are all that the body can
   use, for the small relation stays in it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace

from datalog.graphs import components
from datalog.model import (
    Atom,
    Literal,
    Negation,
    Predicate,
    Program,
    Rule,
    Variable,
    Version,
    apply_rule,
    variables_of,
)


def with_lookups(program: Program, goal: Predicate, is_small: Callable[[Predicate], bool]) -> Program:
    """An equivalent program for a goal, whose rules join what they need and ask for the rest.

    Args:
        program: safe, non-recursive rules.
        goal: a predicate; the rules of others stay as they are.
        is_small: whether a predicate has few rows: those that the others are reached from.
    """
    made: dict[Rule, Predicate] = {}
    rules = [
        rule if rule.head.predicate != goal else _rule(program, rule, is_small, made)
        for rule in program.rules
    ]
    lookups = (replace(rule, head=replace(rule.head, predicate=name)) for rule, name in made.items())
    return replace(program, rules=(*rules, *lookups))


def _rule(
    program: Program, rule: Rule, is_small: Callable[[Predicate], bool], made: dict[Rule, Predicate]
) -> Rule:
    body = _with_tests(rule.body, frozenset(), variables_of([rule.head]), is_small)
    found = list(body)
    for place, literal in enumerate(body):
        if isinstance(literal, Atom) and not is_small(literal.predicate):
            others = [rule.head, *body[:place], *body[place + 1 :]]
            found[place] = _looked_up(program, literal, others, is_small, made)
    return replace(rule, body=tuple(found))


def _with_tests(
    body: Sequence[Literal],
    outer: frozenset[Variable],
    wanted: Collection[Variable],
    is_small: Callable[[Predicate], bool],
) -> tuple[Literal, ...]:
    """A body whose subgoals that bind nothing are tests.

    Args:
        body: the literals.
        outer: what is bound around it.
        wanted: what is used of it around it.
        is_small: whether a predicate has few rows.
    """
    literals = list(body)
    for place in reversed(range(len(literals))):
        literal = literals[place]
        others = [*literals[:place], *literals[place + 1 :]]
        if isinstance(literal, Negation):
            bound = outer.union(variables_of(one for one in others if isinstance(one, Atom)))
            literals[place] = replace(literal, body=_with_tests(literal.body, bound, (), is_small))
        elif isinstance(literal, Atom) and not is_small(literal.predicate):
            rest = [one for one in others if isinstance(one, Atom)]
            # What only a query further out binds, Spark's subqueries cannot use.
            bound = frozenset(variables_of(rest))
            used = {*outer, *wanted, *variables_of(others)}
            its = variables_of([literal])
            joins = _parts([literal, *rest], outer) >= _parts(rest, outer) > 0
            if joins and bound.intersection(its) and all(v in bound for v in its if v in used):
                literals[place] = Negation((Negation((literal,)),))
    return tuple(literals)


def _parts(atoms: Sequence[Atom], outer: Collection[Variable]) -> int:
    """How many parts some subgoals fall into that share no variable; 0 of none."""
    if not atoms:
        return 0
    # What is bound around them ties them together, as one more node.
    ties = [(i, -1) for i, atom in enumerate(atoms) if not set(outer).isdisjoint(variables_of([atom]))]
    edges = [(i, j) for i, one in enumerate(atoms) for j, other in enumerate(atoms[:i]) if _meet(one, other)]
    nodes = range(-1 if ties else 0, len(atoms))
    return len(list(components(nodes, [*ties, *edges])))


def _meet(one: Atom, other: Atom) -> bool:
    return not set(variables_of([one])).isdisjoint(variables_of([other]))


def _looked_up(
    program: Program,
    atom: Atom,
    others: Sequence[Literal],
    is_small: Callable[[Predicate], bool],
    made: dict[Rule, Predicate],
) -> Atom:
    """A subgoal over the rows of a relation that small ones ask for, each once; itself if these are its rows."""
    used = set(variables_of(others))
    shown = tuple(v for v in variables_of([atom]) if v in used)
    small = [
        one for one in others[1:] if isinstance(one, Atom) and is_small(one.predicate) and _meet(one, atom)
    ]
    if not small or not (len(shown) < atom.arity or _shows_a_part(program, atom.predicate)):
        return atom
    asked = tuple(_asking(atom, small))
    names = {v: Variable(f"X{i}") for i, v in enumerate(variables_of([atom, *small]))}
    key = apply_rule(names, Rule(Atom(_LOOKUP, shown), (atom, *asked)))
    name = made.setdefault(key, Predicate(str(atom.predicate), Version.LOOKUP, (len(made),)))
    return Atom(name, shown)


_LOOKUP = Predicate("lookup", Version.LOOKUP)


def _asking(atom: Atom, small: Iterable[Atom]) -> Iterator[Negation]:
    """That small relations have rows that meet one, but for what others say already."""
    said = set[Variable]()
    for one in small:
        shared = set(variables_of([one])).intersection(variables_of([atom]))
        if not shared <= said:
            said |= shared
            yield Negation((Negation((one,)),))


def _shows_a_part(program: Program, predicate: Predicate) -> bool:
    """Whether the rows of a predicate may come several times: a rule for it shows a part of its body."""
    return any(
        set(variables_of(rule.body)) - set(variables_of([rule.head])) for rule in program.rules_for(predicate)
    )
