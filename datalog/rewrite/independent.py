"""The independent parts of a body: what shares no variable is met in every combination, so each part is found alone.

    p(X, Y) :- new(X), r(X), s(Y, Z), t(Z), not (u(X), w(Y)).
    part 1: p(X) :- new(X), r(X).            part 2: p(Y) :- s(Y, Z), t(Z).            link: not (u(X), w(Y))

Without links `p` has a row if and only if every part has one, and its rows are the product of theirs. A link is asked
of each pair; where its own subgoals are independent, too, of each side: `not (not not u(X), not not w(Y))`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from datalog.copies import replace
from datalog.graphs import components
from datalog.model import Atom, Literal, Negation, Predicate, Rule, Variable, variables_of


def independent_parts(rule: Rule) -> tuple[tuple[Rule, ...], tuple[Negation, ...]]:
    """The parts of a rule and the links between them.

    What has no variable goes with the first part.

    Returns:
        The parts, in body order, each with a subgoal and with those variables that it binds and that the head or a
        link uses; one of them, the rule itself, if it does not fall apart. The negations that use variables of
        several parts.

    >>> from datalog.syntax import parse_rule, show
    >>> rule = parse_rule("p(X, Y, 1) :- r(X), s(Y, Z), X < 3, not (t(Z)), not (u(X, A), w(Z, B))")
    >>> parts, links = independent_parts(rule)
    >>> for part in parts:
    ...     print(show(part))
    p(X) :- r(X), X < 3.
    p(Y, Z) :- s(Y, Z), not t(Z).
    >>> [show(link) for link in links]
    ['not (not (not u(X, A)), not (not w(Z, B)))']
    """
    positive = [literal for literal in rule.body if not isinstance(literal, Negation)]
    bound = set(variables_of(positive))
    every = [[v for v in variables_of([literal]) if v in bound] for literal in rule.body]
    tied = (its for literal, its in zip(rule.body, every, strict=True) if not isinstance(literal, Negation))
    edges = [(its[0], other) for its in tied for other in its[1:]]
    order = variables_of(positive)
    part_of = {v: i for i, its in enumerate(components(order, edges)) for v in its}
    found: dict[int, list[Literal]] = {}
    links = list[Negation]()
    for literal, its in zip(rule.body, every, strict=True):
        where = {part_of[v] for v in its}
        if isinstance(literal, Negation) and len(where) > 1:
            links.append(_split(literal, bound))
        else:
            found.setdefault(min(where, default=0), []).append(literal)
    if len(found) == 1 or not all(any(isinstance(li, Atom) for li in body) for body in found.values()):
        return (rule,), ()
    used = {*variables_of([rule.head]), *variables_of(links)}
    return tuple(_part(rule, body, used) for body in found.values()), tuple(links)


def linked_parts(rule: Rule, parts: Sequence[Rule], links: Sequence[Negation]) -> tuple[Rule, ...]:
    """The parts that links tie together, directly or through others, as one rule each; the other parts as they are.

    Returns:
        Rules that share no variable, in body order, each with those of its variables that the head uses.

    >>> from datalog.syntax import parse_rule, show
    >>> rule = parse_rule("p(X, Z) :- r(X), s(Y), t(Z), not (X < A, u(A, Y))")
    >>> for part in linked_parts(rule, *independent_parts(rule)):
    ...     print(show(part))
    p(X) :- r(X), s(Y), not (X < A, u(A, Y)).
    p(Z) :- t(Z).
    """
    part_of = {v: i for i, part in enumerate(parts) for v in variables_of([part.head])}
    ends = [[part_of[v] for v in variables_of([link]) if v in part_of] for link in links]
    edges = [(its[0], other) for its in ends for other in its[1:]]
    used = set(variables_of([rule.head]))
    found = []
    for group in components(range(len(parts)), edges):
        body = [literal for i in group for literal in parts[i].body]
        between = [link for link, its in zip(links, ends, strict=True) if its[0] in group]
        found.append(_part(rule, [*body, *between], used))
    return tuple(found)


def sifted(rule: Rule, name: Predicate) -> tuple[Rule, Rule] | None:
    """The rule over rows of one subgoal that pass what is negated of them alone, and the rule for these rows.

    None if no negation with a subgoal is of variables of one subgoal alone, or there is but one subgoal.

    >>> from datalog.syntax import parse_rule, show
    >>> rule = parse_rule("p(X) :- r(X, Y), s(Y, Z), X < Z, not t(Z), not u(X, Z)")
    >>> for each in sifted(rule, Predicate("kept")):
    ...     print(show(each))
    p(X) :- r(X, Y), kept(Y, Z), X < Z, not u(X, Z).
    kept(Y, Z) :- s(Y, Z), not t(Z).
    """
    atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
    bound = {*variables_of(literal for literal in rule.body if not isinstance(literal, Negation))}
    negated = [(li, bound.intersection(variables_of([li]))) for li in rule.body if _negates_rows(li)]
    for atom in atoms if len(atoms) > 1 else ():
        its = dict.fromkeys(variables_of([atom]))
        own = [literal for literal, used in negated if used and used <= its.keys()]
        if own:
            head = Atom(name, tuple(its))
            body = (head if li is atom else li for li in rule.body if li not in own)
            return replace(rule, body=tuple(body)), Rule(head, (atom, *own))
    return None


def _negates_rows(literal: Literal) -> bool:
    return isinstance(literal, Negation) and any(isinstance(li, Atom | Negation) for li in literal.body)


def _part(rule: Rule, body: Sequence[Literal], used: Collection[Variable]) -> Rule:
    """Its variables stand as in the rule's head: so the first rows are made of the first ones of the parts."""
    positive = [literal for literal in body if not isinstance(literal, Negation)]
    bound = {*variables_of(positive)}.intersection(used)
    terms = (v for v in variables_of([rule.head, *positive]) if v in bound)
    return replace(rule, head=Atom(rule.head.predicate, tuple(terms)), body=tuple(body))


def _split(link: Negation, bound: Collection[Variable]) -> Negation:
    """A link whose independent subgoals are asked for apart."""
    own = [[v for v in variables_of([literal]) if v not in bound] for literal in link.body]
    nodes: Iterable[int] = range(len(link.body))
    edges = [(i, j) for i in nodes for j in range(i) if not set(own[i]).isdisjoint(own[j])]
    groups = [[link.body[i] for i in group] for group in components(nodes, edges)]
    if len(groups) == 1 or not all(any(isinstance(li, Atom) for li in group) for group in groups):
        return link
    return replace(link, body=tuple(Negation((Negation(tuple(group)),)) for group in groups))
