"""Unions whose rows tell which rule they come from: as many plain views, each a selection of the stored rows.

    v(Id, S, T) :- orders(Id, S, T), S = 'paid'.         v#1(Id, 'paid', T) :- orders(Id, 'paid', T).
    v(Id, S, T) :- orders(Id, S, T), T > 100.            v#2(Id, S, T) :- orders(Id, S, T), T > 100.

The stored rows of `v#1` are those of `v` with S = 'paid', of `v#2` those with T > 100. Whoever knows `v` knows both,
and the other way round: so what is known stays the same, and `v` is determined if and only if every branch is. Its
change is the union of theirs.

Conditions of soundness, for every two rules:

1. A rule's selection holds of all its rows: constants of its head, and comparisons and null tests of head columns.
2. Either the rules differ in such literals alone, all of which the selections state: a row of the one that satisfies
   the other's selection is a row of the other. Or no row satisfies both selections.
3. The rows stand once.
4. The constants that a column is compared with are of one kind. Numbers tell nothing that they do not tell as doubles,
   too: a union stores those of all its rules as one type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import combinations

from msgspec import Struct

from datalog.analysis.lossless import inside
from datalog.copies import replace
from datalog.model import (
    Aggregate,
    Atom,
    Block,
    Comparison,
    Constant,
    Expression,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Rule,
    Semantics,
    Term,
    Variable,
    ViewDefinition,
    apply_literal,
    block,
    value_kind,
    variables_of,
)
from datalog.order import satisfiable
from datalog.rewrite.comparisons import propagate_equalities

MOST = 8
"""So many branches of a union are told apart: each is a view that the decision has to do with."""


class Branch(Struct, frozen=True):
    """One rule or query of a union, or what a view with LEFT JOINs is made of, as a selection of the stored rows.

    Attributes:
        name: what it is called as a view: the whole's name with its number.
        selection: its rows as a definition over the stored ones: of a union's rule those that are no other rule's.
        fits: what holds of the stored rows selected, as literals over their columns, `column(0)` and so on.
        shown: what the whole has for its rows, over its own columns; none if these as they are.
    """

    name: str
    selection: ViewDefinition
    fits: tuple[Literal, ...]
    shown: tuple[Expression, ...] = ()


def column(number: int) -> Variable:
    """The variable of a stored column."""
    return Variable(f"C{number}")


def branches(name: str, rules: Sequence[tuple[Rule, Rule]]) -> tuple[Branch, ...]:
    """The branches of a union; none if its rows do not tell them apart.

    Each rule comes as written, and with lower views unfolded and equalities applied.

    >>> from datalog.syntax import parse_program
    >>> one, other = parse_program("v(X, 1) :- r(X). v(X, 2) :- s(X).").rules
    >>> [len(branch.fits) for branch in branches("v", [(one, one), (other, other)])]
    [1, 1]
    >>> one, other = parse_program("v(X, Y) :- r(X, Y). v(X, Y) :- s(X, Y).").rules
    >>> branches("v", [(one, one), (other, other)])
    ()
    """
    if not 1 < len(rules) <= MOST:
        return ()
    tests = [tuple(dict.fromkeys([*_of_head(plain), *_stated(written)])) for written, plain in rules]
    if not _are_of_one_kind(literal for its in tests for literal in its):
        return ()
    for (one, its), (other, others) in combinations(zip((w for w, _ in rules), tests, strict=True), 2):
        if not _are_alike(one, other) and not _are_disjoint(its, others):
            return ()
    columns = tuple(column(i) for i in range(rules[0][0].head.arity))
    stored = Atom(Predicate(name), columns)
    names = tuple(f"c{i}" for i in range(len(columns)))
    return tuple(
        Branch(
            f"{name}#{number}",
            ViewDefinition(name, names, (block(name, number, [stored, *fits], columns),), Semantics.BAG),
            fits,
        )
        for number, fits in enumerate(tests, 1)
    )


def branches_of_queries(union: ViewDefinition) -> dict[Branch, ViewDefinition]:
    """The branches of a union of queries of which some group or compute, each with its query as a view; none as above.

        SELECT 'sales' AS what, region, SUM(x) AS n FROM sale GROUP BY region          v#1, of the rows with 'sales'
        UNION ALL SELECT 'visits' AS what, region, COUNT(*) FROM visit GROUP BY region      v#2

    Condition 2 is that constants among the outputs are different, and the rows of each query stand once where its view
    keeps no duplicates. Its aggregates stand without casts and roundings: whether these lose digits is not asked.
    """
    if not 1 < len(union.blocks) <= MOST or all(map(_is_plain, union.blocks)):
        return {}
    columns = tuple(column(i) for i in range(len(union.columns)))
    tests = [_of_head(Rule(Atom(Predicate(union.name), _constants(one.outputs)), ())) for one in union.blocks]
    if not _are_of_one_kind(literal for its in tests for literal in its):
        return {}
    if not all(_are_disjoint(one, other) for one, other in combinations(tests, 2)):
        return {}
    stored, found = Atom(Predicate(union.name), columns), {}
    for number, (one, fits) in enumerate(zip(union.blocks, tests, strict=True), 1):
        name = f"{union.name}#{number}"
        selection = block(union.name, number, [stored, *fits], columns)
        branch = Branch(
            name, ViewDefinition(union.name, union.columns, (selection,), Semantics.BAG), tuple(fits)
        )
        outputs = [inside(o) if isinstance(inside(o), Aggregate) else o for o in one.outputs]
        alone = block(
            name, 0, one.core.body, outputs, filters=one.filters, groups=one.groups, having=one.having
        )
        found[branch] = replace(union, name=name, blocks=(alone,))
    return found


def _is_plain(one: Block) -> bool:
    """Whether a query shows columns and constants of a join alone, as a rule does."""
    return one.groups is None and all(isinstance(output, Variable | Constant) for output in one.outputs)


def _constants(outputs: Iterable[Expression]) -> tuple[Term, ...]:
    """The constants among some outputs, and a variable for each other one."""
    return tuple(one if isinstance(one, Constant) else column(i) for i, one in enumerate(outputs))


def are_apart(rules: Sequence[Rule]) -> bool:
    """Whether no row is of two of some rules, as their heads and what they say of them show."""
    tests = [_of_head(propagate_equalities(rule)) for rule in rules]
    kinds = _are_of_one_kind(literal for its in tests for literal in its)
    return kinds and all(_are_disjoint(one, other) for one, other in combinations(tests, 2))


def are_told_apart(rules: Sequence[Rule]) -> bool:
    """Whether rows tell which of some rules, that differ in literals, they come from; or there is one rule."""
    return len(rules) <= MOST and all(_are_alike(one, other) for one, other in combinations(rules, 2))


def in_none(found: Iterable[Branch]) -> tuple[Literal, ...]:
    """That a row of a union is of no branch."""
    return tuple(Negation(branch.fits) for branch in found)


def _of_head(plain: Rule) -> list[Literal]:
    """What a rule's head and its literals over the head alone say of a row."""
    tests: list[Literal] = []
    for i, term in enumerate(plain.head.terms):
        if isinstance(term, Constant):
            is_null = term.value is None
            tests.append(NullTest(column(i), negated=False) if is_null else Comparison("=", column(i), term))
    return [*tests, *_stated(plain)]


def _stated(rule: Rule) -> list[Literal]:
    """The comparisons and null tests of a body that are over the head's columns."""
    places = _places(rule)
    return [
        apply_literal(places, literal)
        for literal in rule.body
        if isinstance(literal, Comparison | NullTest) and _is_of_columns(literal, places)
    ]


def _places(rule: Rule) -> dict[Variable, Term]:
    places: dict[Variable, Term] = {}
    for i, term in enumerate(rule.head.terms):
        if isinstance(term, Variable):
            places.setdefault(term, column(i))
    return places


def _is_of_columns(literal: Literal, places: Mapping[Variable, Term]) -> bool:
    found = variables_of([literal])
    return bool(found) and all(variable in places for variable in found)


def _are_of_one_kind(tests: Iterable[Literal]) -> bool:
    """Condition 4."""
    kinds: dict[Term, set[str]] = {}
    for literal in tests:
        if isinstance(literal, Comparison):
            for one, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if isinstance(one, Variable) and isinstance(other, Constant):
                    kinds.setdefault(one, set()).add(value_kind(other.value))
    return all(len(found) == 1 for found in kinds.values())


def _are_alike(one: Rule, other: Rule) -> bool:
    """Whether two rules differ in literals alone that their selections state."""
    places = _places(one)

    def rest(rule: Rule) -> set[Literal]:
        stated = (
            li for li in rule.body if isinstance(li, Comparison | NullTest) and _is_of_columns(li, places)
        )
        return set(rule.body) - set(stated)

    return one.head.terms == other.head.terms and rest(one) == rest(other)


def _are_disjoint(one: Iterable[Literal], other: Iterable[Literal]) -> bool:
    """Whether no row satisfies both selections."""
    both = (*one, *other)
    null = {t.term for t in both if isinstance(t, NullTest) and not t.negated}
    compared = [literal for literal in both if isinstance(literal, Comparison)]
    not_null = {t.term for t in both if isinstance(t, NullTest) and t.negated} | set(variables_of(compared))
    as_doubles = [replace(one, left=as_double(one.left), right=as_double(one.right)) for one in compared]
    return bool(null & not_null) or not (satisfiable(compared, {}) or satisfiable(as_doubles, {}))


def as_double(term: Term) -> Term:
    """A number as a column of doubles has it; another term as it is.

    >>> from decimal import Decimal
    >>> as_double(Constant(Decimal("0.1"))) == as_double(Constant(0.1))
    True
    """
    if not isinstance(term, Constant) or isinstance(term.value, bool):
        return term
    return Constant(float(term.value)) if isinstance(term.value, int | Decimal) else term
