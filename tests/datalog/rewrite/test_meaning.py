"""Every rewrite preserves meaning, and containment is what it says.

Oracles:

- *Meaning*: the rows that the definition of a satisfied body gives, computed with no order of evaluation, no index
  and no rewriting (`sql_programs.meaning`). A rewritten program, evaluated by `datalog.evaluate`, must give the
  meaning of the program as it was; so must the program itself.
- *The frozen query* (Chandra and Merlin 1977): a conjunctive query is contained in another iff the other gives its
  frozen head on its frozen body, where each variable is a constant of its own.
- *Random databases* for what the theorem does not cover: filters, negations, and minimised queries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain, product
from random import Random
from typing import TypeAlias

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from datalog.containment import contained_in, mappings, minimise, union_contained_in
from datalog.copies import replace
from datalog.evaluate import evaluate
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Row,
    Rule,
    Term,
    Value,
    Variable,
    apply_literal,
    variables_of,
)
from datalog.rewrite import (
    demand,
    drop_empty,
    drop_implied_negations,
    drop_subsumed,
    drop_unreachable,
    drop_unused_columns,
    guard_joins,
    is_plain,
    minimised,
    propagate_equalities,
    simplify,
    simplify_comparisons,
    unfold,
    unfold_single_rules,
    without_given,
)
from datalog.rewrite.inline import inline
from datalog.rewrite.reachable import predicates_of
from datalog.syntax import show
from tests.datalog.sql.sql_programs import Generator, meaning, random_facts, relations

Facts: TypeAlias = Mapping[Predicate, frozenset[Row]]
Rewrite: TypeAlias = Callable[[Program, Predicate, Random], Program]

STORED = relations(("int", "name", "boolean"))
TIGHT = relations(("int", "int"))
V = Predicate("v")
randoms = st.randoms(use_true_random=False)
often = settings(max_examples=3 * settings().max_examples)
"""For cheap examples of which few are telling."""


class Tight(Generator):
    """Programs of one type, few names and few constants, so that everything meets everything."""

    def fresh(self, kind: str, scope: dict[Variable, str]) -> Variable:
        variable = Variable(self.random.choice("XYZ"))
        scope[variable] = kind
        return variable

    def constant(self, kind: str, null: float) -> Constant:
        return Constant(None if self.random.random() < null else self.random.choice((1, 2)))

    def rule(self, head: Predicate, types: Sequence[str]) -> Rule:
        """Heads with more constants and repeated variables, few joins."""
        rule = super().rule(head, types)
        terms = [self.constant("int", 0.1) if self.random.random() < 0.2 else t for t in rule.head.terms]
        return replace(rule, head=replace(rule.head, terms=tuple(terms)))


# ------------------------------------------------------------------------------------- rewrites, any program


def each(rewrite: Callable[[Rule], Rule]) -> Rewrite:
    def apply(program: Program, _goal: Predicate, _random: Random) -> Program:
        return replace(program, rules=tuple(map(rewrite, program.rules)))

    return apply


def unfold_some(program: Program, goal: Predicate, random: Random) -> Program:
    """One predicate, wherever it stands."""
    plain = {
        p: rules[0]
        for p in program.heads
        if p != goal and len(rules := program.rules_for(p)) == 1 and is_plain(rules[0])
    }
    return unfold(program, dict([random.choice(list(plain.items()))])) if plain else program


def ungiven(program: Program, _goal: Predicate, _random: Random) -> Program:
    found = map(without_given, program.rules)
    return replace(program, rules=tuple(rule for rule in found if rule is not None))


def demand_some(program: Program, goal: Predicate, random: Random) -> Program:
    """Some stored relations are small; sometimes simplified before, sometimes cut after, or twice."""
    stored = {p for rule in program.rules for p in predicates_of(rule.body)} - {*program.heads}
    small = [p for p in sorted(stored, key=str) if random.random() < 0.4]
    kinds = {p: ["one"] * 9 for p in stored if random.random() < 0.5}
    if random.random() < 0.5:
        program = simplify(program, [goal])
    program = demand(program, [goal], small, kinds, all_few=random.random() < 0.5)
    return drop_unused_columns(program, [goal]) if random.random() < 0.7 else program


def put_in_place(program: Program, goal: Predicate, random: Random) -> Program:
    """What one query is left to use, demands apart or together."""
    stored = {p for rule in program.rules for p in predicates_of(rule.body)} - {*program.heads}
    small = {p for p in sorted(stored, key=str) if random.random() < 0.4}
    if random.random() < 0.5:
        program = simplify(program, [goal])
    made = demand(program, [goal], small, together=random.random() < 0.5)
    definitions = inline(drop_unused_columns(made, [goal]), goal)
    return Program(tuple(chain(*definitions.values())))


REWRITES: Mapping[str, Rewrite] = {
    "nothing": lambda program, _goal, _random: program,
    "drop_unreachable": lambda program, goal, _random: drop_unreachable(program, [goal]),
    "unfold_single_rules": lambda program, goal, _random: unfold_single_rules(program, [goal]),
    "unfold": unfold_some,
    "propagate_equalities": each(propagate_equalities),
    "simplify_comparisons": lambda program, goal, _random: simplify_comparisons(program, [goal]),
    "drop_implied_negations": each(drop_implied_negations),
    "without_given": ungiven,
    "drop_subsumed": lambda program, _goal, _random: drop_subsumed(program),
    "minimise": each(minimise),
    "minimised": lambda program, _goal, _random: minimised(program),
    "simplify": lambda program, goal, _random: simplify(program, [goal]),
    "drop_unused_columns": lambda program, goal, _random: drop_unused_columns(program, [goal]),
    "demand": demand_some,
    "inline": put_in_place,
}


@pytest.mark.parametrize("name", REWRITES)
@given(random=randoms, tight=st.booleans())
def test_a_rewrite_preserves_meaning(name: str, random: Random, tight: bool) -> None:
    stored = TIGHT if tight else STORED
    program, goal, _ = (Tight if tight else Generator)(random, stored).program()
    rewritten = REWRITES[name](program, goal, random)
    for _ in range(2):
        facts = random_facts(random, stored)
        assert evaluate(rewritten, goal, facts) == meaning(program, goal, facts), show(program)


# ------------------------------------------------------------------ unfolding odd heads, and tangled negations

NAMES = tuple(map(Variable, "XYZ"))
constants: st.SearchStrategy[Term] = st.sampled_from([Constant(1), Constant(2), Constant(None)])
names: st.SearchStrategy[Term] = st.sampled_from(NAMES)
P, Q = Predicate("p"), Predicate("q")
UNARY, BINARY = Predicate("c"), Predicate("d")


@st.composite
def defined(draw: st.DrawFn) -> Rule:
    """`p(...) :- d(X, Y).` with constants and repeated variables in the head, fit to stand in a negation."""
    one, other, _ = NAMES
    pool: tuple[Term, ...] = draw(st.sampled_from([(one, one, Constant(1)), (one, other, Constant(2))]))
    head = draw(st.lists(st.sampled_from(pool), min_size=3, max_size=3))
    guards = tuple(NullTest(v) for v in (one, other) if head.count(v) > 1)
    return Rule(Atom(P, tuple(head)), (Atom(BINARY, (one, other)), *guards))


@st.composite
def uses(draw: st.DrawFn) -> Rule:
    """A rule that uses `p` with constants and repeated variables, inside a negation too."""
    arguments = st.lists(st.one_of(names, names, names, constants), min_size=3, max_size=3).map(tuple)
    tested = [Atom(UNARY, (draw(names),)) for _ in range(draw(st.integers(0, 1)))]
    inner = Negation((Atom(P, draw(arguments)), *tested))
    outer: list[Literal] = [Atom(P, draw(arguments)) for _ in range(draw(st.integers(0, 2)))]
    outer += [Atom(UNARY, (draw(names),)) for _ in range(draw(st.integers(0 if outer else 1, 1)))]
    body = draw(st.permutations([*outer, inner] if draw(st.booleans()) else outer))
    return Rule(Atom(V, variables_of(outer)), tuple(body))


def databases(
    random: Random, arities: Mapping[Predicate, int], number: int = 4
) -> list[dict[Predicate, frozenset[Row]]]:
    """Databases over 1, 2 and null."""
    values: tuple[Value, ...] = (1, 2, None)
    return [
        {
            p: frozenset(row for row in product(values, repeat=n) if random.random() < chance)
            for p, n in arities.items()
        }
        for chance in (random.choice((0.2, 0.5, 0.8)) for _ in range(number))
    ]


@often
@given(defined(), uses(), randoms)
def test_unfolding_heads_with_constants_and_repeated_variables(
    definition: Rule, use: Rule, random: Random
) -> None:
    program = Program((definition, use))
    unfolded = unfold(program, {P: definition})
    assert not unfolded.rules_for(P)
    for facts in databases(random, {UNARY: 1, BINARY: 2}):
        assert evaluate(unfolded, V, facts) == meaning(program, V, facts), show(program)


atoms = st.one_of(
    st.builds(lambda x: Atom(P, (x,)), names),
    st.builds(lambda x, y: Atom(Q, (x, y)), names, st.one_of(names, names, constants)),
)
flat_negations = st.lists(atoms, min_size=1, max_size=2).map(tuple).map(Negation)
literals: st.SearchStrategy[Literal] = st.one_of(
    atoms, flat_negations, st.tuples(atoms, flat_negations).map(Negation)
)
bodies = st.lists(literals, min_size=1, max_size=3).map(tuple)


@st.composite
def related(draw: st.DrawFn, body: tuple[Literal, ...]) -> tuple[Literal, ...]:
    """The body with its variables confused and some literals more: often the stronger of the two, often nearly."""
    change = {variable: draw(st.sampled_from((variable, *NAMES))) for variable in NAMES}
    return (*(apply_literal(change, literal) for literal in body), *draw(st.lists(literals, max_size=2)))


def safe(body: Sequence[Literal]) -> Rule:
    return Rule(Atom(V, NAMES[:1]), (Atom(UNARY, NAMES[:1]), *body))


@st.composite
def pairs(draw: st.DrawFn) -> tuple[tuple[Literal, ...], tuple[Literal, ...]]:
    body = draw(bodies)
    both = (body, draw(related(body)))
    return both if draw(st.booleans()) else (both[1], both[0])


TANGLED = {UNARY: 1, P: 1, Q: 2}


@often
@given(pairs(), st.lists(literals, max_size=1), randoms)
def test_only_implied_negations_are_dropped(
    negated: tuple[tuple[Literal, ...], tuple[Literal, ...]], more: list[Literal], random: Random
) -> None:
    rule = safe([*map(Negation, negated), *more])
    dropped = drop_implied_negations(rule)
    for facts in databases(random, TANGLED):
        assert evaluate(Program((dropped,)), V, facts) == meaning(Program((rule,)), V, facts), show(rule)


@often
@given(pairs(), randoms)
def test_only_subsumed_rules_are_dropped(
    both: tuple[tuple[Literal, ...], tuple[Literal, ...]], random: Random
) -> None:
    program = Program(tuple(map(safe, both)))
    dropped = drop_subsumed(program)
    for facts in databases(random, TANGLED):
        assert evaluate(dropped, V, facts) == meaning(program, V, facts), show(program)


@given(pairs(), randoms)
def test_contained_means_that_no_answer_is_missing(
    both: tuple[tuple[Literal, ...], tuple[Literal, ...]], random: Random
) -> None:
    query, other = map(safe, both)
    if contained_in(query, other):
        for facts in databases(random, TANGLED):
            assert meaning(Program((query,)), V, facts) <= meaning(Program((other,)), V, facts), show(
                Program((query, other))
            )
    assert contained_in(query, query)


@given(bodies.flatmap(lambda body: st.tuples(st.just(body), related(body))), randoms)
def test_minimising_with_filters_preserves_meaning(
    both: tuple[tuple[Literal, ...], tuple[Literal, ...]], random: Random
) -> None:
    rule = safe([*both[0], *both[1]])
    smallest = minimise(rule)
    for facts in databases(random, TANGLED):
        assert evaluate(Program((smallest,)), V, facts) == evaluate(Program((rule,)), V, facts), show(rule)


@given(randoms)
def test_what_is_empty_can_be_dropped(random: Random) -> None:
    """Oracle: the meaning of the program as it was, on databases in which these relations have no rows."""
    program, goal, _ = Generator(random, STORED).program()
    empty = [one.predicate for one in STORED if random.random() < 0.4]
    dropped = drop_empty(program, empty)
    facts = {**random_facts(random, STORED), **dict.fromkeys(empty, frozenset())}
    assert evaluate(dropped, goal, facts) == meaning(program, goal, facts), show(program)


@given(pairs(), randoms)
def test_guarded_joins_are_joins_by_equality(
    both: tuple[tuple[Literal, ...], tuple[Literal, ...]], random: Random
) -> None:
    """Oracle: SQL's joins written out, each later occurrence a variable of its own and equal to the first."""
    rule = safe(both[0])
    guarded = guard_joins(rule)
    assert guard_joins(guarded) == guarded
    spelled: list[Literal] = []
    seen: set[Variable] = set()
    for literal in rule.body:
        if not isinstance(literal, Atom):
            spelled.append(literal)
            continue
        terms: list[Term] = []
        for term in literal.terms:
            if isinstance(term, Variable) and term in seen:
                terms.append(Variable(f"{term.name}_{len(spelled)}_{len(terms)}"))
                spelled.append(Comparison("=", term, terms[-1]))
            else:
                terms.append(term)
                if isinstance(term, Variable):
                    seen.add(term)
        spelled.append(replace(literal, terms=tuple(terms)))
    by_equality = Program((replace(rule, body=tuple(spelled)),))
    for facts in databases(random, TANGLED):
        assert evaluate(Program((guarded,)), V, facts) == meaning(by_equality, V, facts), show(rule)


# ---------------------------------------------------------------------------- conjunctive queries, frozen


@st.composite
def queries(draw: st.DrawFn, width: int) -> Rule:
    """Conjunctive queries over an edge relation and a colour."""
    wide = st.sampled_from(tuple(map(Variable, "XYZW")))
    term: st.SearchStrategy[Term] = st.one_of(wide, wide, wide, constants)
    edge = st.builds(lambda x, y: Atom(Q, (x, y)), term, term)
    colour = st.builds(lambda x: Atom(P, (x,)), term)
    body = draw(st.lists(st.one_of(edge, edge, colour), min_size=1, max_size=4))
    own: list[Term] = [*variables_of(body)]
    head = [draw(st.sampled_from([*own, *own, Constant(1)])) for _ in range(width)]
    return Rule(Atom(V, tuple(head)), tuple(body))


def frozen(query: Rule) -> tuple[Row, Facts]:
    """The frozen head, and the frozen body as a database; a variable becomes a constant of its own."""

    def value(term: Term) -> Value:
        return term.value if isinstance(term, Constant) else f"the {term.name}"

    facts: dict[Predicate, set[Row]] = {P: set(), Q: set()}
    for atom in query.atoms:
        facts[atom.predicate].add(tuple(map(value, atom.terms)))
    return tuple(map(value, query.head.terms)), {p: frozenset(rows) for p, rows in facts.items()}


several = st.integers(0, 2).flatmap(lambda width: st.lists(queries(width), min_size=2, max_size=3))


@given(several)
def test_containment_is_decided_by_the_frozen_query(found: list[Rule]) -> None:
    query, *others = found
    head, facts = frozen(query)
    for other in others:
        assert contained_in(query, other) == (head in meaning(Program((other,)), V, facts))
    answers = meaning(Program(tuple(others)), V, facts)
    assert union_contained_in([query], others) == (head in answers)


@given(several, randoms)
def test_contained_queries_have_contained_answers(found: list[Rule], random: Random) -> None:
    query, other = found[:2]
    holds = [contained_in(query, other), contained_in(other, query)]
    for facts in databases(random, {P: 1, Q: 2}):
        left, right = (meaning(Program((one,)), V, facts) for one in (query, other))
        assert left <= right or not holds[0]
        assert right <= left or not holds[1]


@given(queries(1))
def test_minimised_queries_are_equivalent_and_cannot_lose_an_atom(query: Rule) -> None:
    smallest = minimise(query)
    for one, other in ((query, smallest), (smallest, query)):
        head, facts = frozen(one)
        assert head in meaning(Program((other,)), V, facts)
    assert contained_in(query, smallest)
    assert contained_in(smallest, query)
    assert minimise(smallest) == smallest
    head, facts = frozen(smallest)
    for atom in smallest.body:
        rest = replace(smallest, body=tuple(other for other in smallest.body if other != atom))
        if set(variables_of([rest.head])) <= set(variables_of(rest.body)):
            lost, without = frozen(rest)
            assert lost == head
            assert head not in meaning(Program((smallest,)), V, without)


@given(queries(0), queries(0))
def test_every_mapping_is_found_once(source: Rule, target: Rule) -> None:
    """Oracle: all functions from the variables to the target's terms that send every atom to one of the target."""
    variables = variables_of(source.body)
    terms = list(dict.fromkeys(t for atom in target.atoms for t in atom.terms))
    expected = []
    for image in product(terms, repeat=len(variables)):
        mapping = dict(zip(variables, image, strict=True))
        if all(apply_literal(mapping, atom) in target.body for atom in source.body):
            expected.append(mapping)
    found = list(mappings(source.body, tuple(dict.fromkeys(target.body))))
    assert len(found) == len(expected)
    assert all(mapping in found for mapping in expected)
