"""Random small cases, for property tests.

A case is drawn around a hidden database: the views' contents, the readable relations,
the present and the absent rows all describe it, and an effective update is effective on
it. So every case has an explanation. Columns are of texts or of numbers, and rules and
rows keep to that; `Limits` says how large a case may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

from hypothesis import strategies as st

from .problem import Case
from .rules import Atom, Constant, Row, Rule, Term, Value, Variable, evaluate, ordered

_NONE: st.SearchStrategy[frozenset[Row]] = st.just(frozenset())
TEXTS: tuple[Constant, ...] = ("a", "b", "1", "n")
NUMBERS: tuple[Constant, ...] = (1, 2, 3, -7)
RELATIONS = ("r", "s", "t")
VARIABLES = tuple(map(Variable, ("X", "Y", "Z", "W", "U", "V")))


@dataclass(frozen=True, slots=True)
class Limits:
    """How large and how varied the cases are."""

    relations: int = 3
    arity: int = 3
    views: int = 3
    subgoals: int = 3
    variables: int = 5
    """Of one rule; at most six."""
    constants: int = 3
    """Of each type in rules and hidden rows, at most three."""
    rows: int = 4
    """Of a hidden relation."""
    newcomers: bool = True
    """Whether the update may have a constant that is nowhere else."""
    numbers: bool = True
    """Whether some columns are of numbers."""
    nulls: bool = True
    """Whether some columns may hold NULL."""
    knowledge: bool = True
    """Whether there may be readable relations, present and absent rows."""
    odd_heads: bool = False
    """Whether heads may have constants and repeated variables."""


_made_once = lru_cache(maxsize=10_000)
"""For what makes strategies: hypothesis looks through each new one, which takes longer than to draw from it."""

DEFAULT = Limits()
TINY = Limits(relations=2, arity=2, subgoals=3, constants=2, rows=3, newcomers=False, numbers=False)
"""Cases that the oracle's exhaustive mode can mostly decide."""


@dataclass(frozen=True, slots=True)
class Situation:
    """A case and the database behind it, before the update."""

    case: Case
    hidden: dict[str, list[list[Value]]]


@dataclass(frozen=True, slots=True)
class _Kind:
    """A type: constants for everywhere, and one that only updates may have."""

    constants: tuple[Constant, ...]
    newcomer: Constant


@dataclass(frozen=True, slots=True)
class _Column:
    """What a column may hold."""

    kind: _Kind
    nullable: bool

    def values(self, *, newcomers: bool = False) -> list[Value]:
        extra = [self.kind.newcomer] if newcomers else []
        return [*self.kind.constants, *extra, *([None] if self.nullable else [])]


@dataclass(slots=True)
class _Scope:
    """The variables that a rule has so far, with their types."""

    limit: int
    kinds: dict[Variable, _Kind] = field(default_factory=dict)

    def known(self, kind: _Kind) -> list[Term]:
        return [variable for variable, its in self.kinds.items() if its == kind]

    def unused(self) -> list[Term]:
        unused = [v for v in VARIABLES[: self.limit] if v not in self.kinds]
        return [*unused[:1]]

    def note(self, term: Term, kind: _Kind) -> None:
        if isinstance(term, Variable):
            self.kinds[term] = kind


Schema = Mapping[str, tuple[_Column, ...]]
Hidden = Mapping[str, frozenset[Row]]


def cases(limits: Limits = DEFAULT) -> st.SearchStrategy[Case]:
    """Consistent random cases."""
    return situations(limits).map(lambda situation: situation.case)


@st.composite
def situations(draw: st.DrawFn, limits: Limits = DEFAULT) -> Situation:
    """Consistent random cases, each with the database that it was made from."""
    schema = draw(_schemas(limits))
    rules = draw(_programs(schema, limits))
    hidden = {name: draw(_rows(columns, limits)) for name, columns in schema.items()}
    effective = draw(st.booleans())
    insert, delete = draw(_updates(schema, hidden, limits, effective=effective))
    case: Case = {
        "relations": {name: len(columns) for name, columns in schema.items()},
        "program": "\n".join(map(spelled, rules)),
        "views": _listed({rule.head.name: evaluate(rule, hidden) for rule in rules}),
        "insert": _listed(insert, empty=False),
        "delete": _listed(delete, empty=False),
        "effective": effective,
    }
    nullable = {
        name: [index for index, column in enumerate(columns) if column.nullable]
        for name, columns in schema.items()
    }
    if any(nullable.values()):
        case["nullable"] = {name: at for name, at in nullable.items() if at}
    if limits.knowledge:
        _add_knowledge(draw, case, schema, hidden)
    return Situation(case, _listed(hidden))


@st.composite
def _schemas(draw: st.DrawFn, limits: Limits) -> Schema:
    """Draw relations, of columns with types."""
    sizes = st.integers(2, limits.constants)
    kinds = [_Kind(TEXTS[: draw(sizes)], TEXTS[-1])]
    if limits.numbers and draw(st.booleans()):
        kinds.append(_Kind(NUMBERS[: draw(sizes)], NUMBERS[-1]))
    nulls = limits.nulls and _sometimes(draw, 4)
    names = RELATIONS[: draw(_sizes(limits.relations))]
    columns = _columns(tuple(kinds), limits.arity, nulls=nulls)
    return {name: draw(columns) for name in names}


@_made_once
def _columns(kinds: tuple[_Kind, ...], most: int, *, nulls: bool) -> st.SearchStrategy[tuple[_Column, ...]]:
    """The columns of a relation."""
    nullable = st.booleans() if nulls else st.just(value=False)
    column = st.builds(_Column, st.sampled_from(kinds), nullable)
    return st.lists(column, min_size=1, max_size=most).map(tuple)


@st.composite
def _programs(draw: st.DrawFn, schema: Schema, limits: Limits) -> list[Rule]:
    """Draw one rule for each of some views."""
    count = draw(st.integers(1, limits.views))
    return [draw(_rules(f"v{number}", schema, limits)) for number in range(count)]


@st.composite
def _rules(draw: st.DrawFn, name: str, schema: Schema, limits: Limits) -> Rule:
    """Draw a rule with at least one variable, all of them in the head."""
    scope = _Scope(limits.variables)
    body = [_atom(draw, schema, scope)]
    for _ in range(draw(_sizes(limits.subgoals)) - 1):
        if _sometimes(draw, 8):
            body.append(draw(st.sampled_from(body)))
        else:
            body.append(_atom(draw, schema, scope))
    head = draw(st.permutations(list(scope.kinds))) if draw(st.booleans()) else scope.kinds
    terms: list[Term] = list(head)
    if limits.odd_heads and _sometimes(draw, 4):
        odd = st.sampled_from([*terms, "a", 1])
        terms.insert(draw(st.integers(0, len(terms))), draw(odd))
    return Rule.of(Atom(name, tuple(terms)), tuple(body))


def _atom(draw: st.DrawFn, schema: Schema, scope: _Scope) -> Atom:
    """Draw a subgoal: known variables, a new one, and constants, all likely enough."""
    name = draw(st.sampled_from(tuple(sorted(schema))))
    terms: list[Term] = []
    for column in schema[name]:
        known, unused = scope.known(column.kind), scope.unused()
        constants: list[Term] = [*column.kind.constants]
        sources = [source for source in (unused, known, unused, known, constants) if source]
        term = draw(st.sampled_from(draw(st.sampled_from(sources)) if scope.kinds else unused))
        scope.note(term, column.kind)
        terms.append(term)
    return Atom(name, tuple(terms))


@_made_once
def _rows(columns: tuple[_Column, ...], limits: Limits) -> st.SearchStrategy[frozenset[Row]]:
    """Rows of a relation."""
    values = [st.sampled_from(column.values()) for column in columns]
    return st.frozensets(st.tuples(*values), max_size=limits.rows)


def _some(rows: list[Row], most: int, least: int = 0) -> st.SearchStrategy[frozenset[Row]]:
    """Some of the rows; fewer than ``least`` only if there are no more."""
    return _some_of(tuple(rows), most, min(least, len(rows)))


@_made_once
def _some_of(rows: tuple[Row, ...], most: int, least: int) -> st.SearchStrategy[frozenset[Row]]:
    return st.frozensets(st.sampled_from(rows), min_size=least, max_size=most) if rows else _NONE


@st.composite
def _updates(
    draw: st.DrawFn, schema: Schema, hidden: Hidden, limits: Limits, *, effective: bool
) -> tuple[Hidden, Hidden]:
    """Draw the inserted and the deleted rows; disjoint."""
    insert: dict[str, frozenset[Row]] = {}
    delete: dict[str, frozenset[Row]] = {}
    for name, columns in schema.items():
        newcomers = limits.newcomers and draw(st.booleans())
        every = list(product(*(c.values(newcomers=newcomers) for c in columns)))
        before = hidden[name]
        absent = [row for row in every if row not in before]
        least = draw(st.sampled_from((1, 1, 1, 0)))
        inserted = draw(_some(absent if effective else every, 2, least))
        deleted = draw(_some(_sorted(before) if effective else every, 2))
        insert[name], delete[name] = inserted, deleted - inserted
    return insert, delete


def _add_knowledge(draw: st.DrawFn, case: Case, schema: Schema, hidden: Hidden) -> None:
    """Add to the case, sometimes, what else is known of the hidden database."""
    if _sometimes(draw, 4):
        names = draw(st.sets(st.sampled_from(sorted(schema)), min_size=1))
        case["access"] = _listed({name: hidden[name] for name in sorted(names)})
    if _sometimes(draw, 4):
        present = {name: draw(_some(_sorted(rows), 2, 1)) for name, rows in hidden.items()}
        case["present"] = _listed(present, empty=False)
    if _sometimes(draw, 4):
        others = {
            name: [row for row in product(*(c.values() for c in columns)) if row not in hidden[name]]
            for name, columns in schema.items()
        }
        absent = {name: draw(_some(rows, 2, 1)) for name, rows in others.items()}
        case["absent"] = _listed(absent, empty=False)


@_made_once
def _sizes(most: int) -> st.SearchStrategy[int]:
    """One up to ``most``, but seldom one: the interesting sizes come first."""
    return st.sampled_from([*(2 * list(range(2, most + 1))), 1])


def _sometimes(draw: st.DrawFn, one_in: int) -> bool:
    """Draw True once in so many times; shrink to False."""
    return draw(st.integers(1, one_in)) == one_in


def _sorted(rows: frozenset[Row]) -> list[Row]:
    return [tuple(row) for row in ordered(rows)]


def _listed(relations: Hidden, *, empty: bool = True) -> dict[str, list[list[Value]]]:
    """Write rows as sorted lists; leave out relations without rows unless ``empty``."""
    return {name: ordered(rows) for name, rows in relations.items() if rows or empty}


class Day(str):
    """A date, as the oracle has it, that rules spell as one."""

    __slots__ = ()


def spelled(rule: Rule) -> str:
    """The rule as text."""
    compared = [f"{_spelled_term(c.left)} {c.operator} {_spelled_term(c.right)}" for c in rule.comparisons]
    body = ", ".join([*map(_spelled_atom, rule.body), *compared])
    return f"{_spelled_atom(rule.head)} :- {body}."


def _spelled_atom(atom: Atom) -> str:
    return f"{atom.name}({', '.join(map(_spelled_term, atom.terms))})"


def _spelled_term(term: Term) -> str:
    match term:
        case Variable(name):
            return name
        case Day():
            return f"date '{term}'"
        case str():
            return f"'{term}'"
        case bool():
            return str(term).lower()
        case _:
            return str(term)
