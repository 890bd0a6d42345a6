"""One body as FROM and WHERE: sources, join conditions, correlation, filters.

Of the places where a variable occurs, the first stands for it; each other one is joined with that, and a
body inside a negation is tied to the query around it by one condition per variable, on the first place. (Were
every place tied to the outer column, Spark would make a Cartesian product inside the subquery.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from sqlglot import exp

from datalog.errors import EmissionError
from datalog.model import Atom, Comparison, Constant, Literal, Negation, NullTest, Predicate, Term, Variable
from datalog.sql.names import alias_for, casefolded, constant
from datalog.sql.tables import Table


class Place(Struct, frozen=True):
    """A column of a source; `source` counts the sources of its block from 0."""

    source: int
    alias: str
    column: str
    not_null: bool

    def tree(self) -> exp.Column:
        """The qualified column."""
        return exp.column(self.column, table=self.alias, quoted=True)


class Source(Struct, frozen=True):
    """An atom with the table and alias that its rows come from."""

    atom: Atom
    table: Table
    alias: str

    def places(self, number: int) -> Iterator[tuple[Term, Place]]:
        """Each term with its column."""
        for position, (term, column) in enumerate(zip(self.atom.terms, self.table.columns, strict=True)):
            yield term, Place(number, self.alias, column, position in self.table.not_null)


class Frame(Struct, frozen=True):
    """What a body's terms are in SQL.

    Attributes:
        places: every place of each variable of the body's atoms; the first stands for it.
        outer: the place that stands for each variable in the query directly around.
        known: variables that are not null where the body holds.
        aliases: case-folded aliases of this query and of all around it.
    """

    places: Mapping[Variable, Sequence[Place]] = field(default_factory=dict)
    outer: Mapping[Variable, Place] = field(default_factory=dict)
    known: frozenset[Variable] = frozenset()
    aliases: frozenset[str] = frozenset()

    def tree(self, term: Term) -> exp.Expr:
        """A term as an expression.

        Raises:
            EmissionError: nothing binds the variable.
        """
        if isinstance(term, Constant):
            return constant(term.value)
        place = self.place(term)
        if place is None:
            raise EmissionError(
                f"unsafe variable `{term.name.partition('#')[0]}`: no positive subgoal binds it"
            )
        return place.tree()

    def place(self, variable: Variable) -> Place | None:
        """The place that stands for a variable."""
        places = self.places.get(variable)
        return places[0] if places else self.outer.get(variable)

    def is_known(self, term: Term) -> bool:
        """Whether the term is certainly not null."""
        return term.value is not None if isinstance(term, Constant) else term in self.known

    def equal(self, variable: Variable, place: Place, other: Place) -> exp.Expr:
        """Two places of a variable are equal: `=` if it is not null, else `IS NOT DISTINCT FROM`."""
        operator = exp.EQ if variable in self.known else exp.NullSafeEQ
        return operator(this=place.tree(), expression=other.tree())


class Joins(Struct, frozen=True):
    """The sources of one body and the conditions that its atoms make, without comparisons and negations."""

    sources: tuple[Source, ...]
    frame: Frame
    on: Mapping[int, Sequence[exp.Expr]]
    where: Sequence[exp.Expr]


def join(body: Sequence[Literal], around: Frame, tables: Mapping[Predicate, Table]) -> Joins:
    """The FROM clause of a body inside a query whose terms `around` describes."""
    hidden = casefolded(
        [column for name in _inside(body) if name in tables for column in tables[name].columns]
    )
    aliases = set(around.aliases)
    sources: list[Source] = []
    for atom in _connected([literal for literal in body if isinstance(literal, Atom)]):
        table = tables.get(atom.predicate)
        if table is None:
            raise EmissionError(f"predicate `{atom.predicate}` has neither rules nor a table")
        if len(table.columns) != atom.arity:
            raise EmissionError(
                f"predicate `{atom.predicate}` has arity {atom.arity}, its table {len(table.columns)} columns"
            )
        alias = alias_for(atom.predicate, aliases | hidden)
        aliases.add(alias.casefold())
        sources.append(Source(atom, table, alias))
    pairs = [pair for number, source in enumerate(sources) for pair in source.places(number)]
    places: dict[Variable, list[Place]] = {}
    for term, place in pairs:
        if isinstance(term, Variable):
            places.setdefault(term, []).append(place)
    outer = {v: all_places[0] for v, all_places in around.places.items()}
    known = around.known | _not_null(body, pairs)
    frame = Frame(places, outer, known, frozenset(aliases))
    return Joins(tuple(sources), frame, *_conditions(pairs, frame))


def _inside(body: Iterable[Literal]) -> Iterator[Predicate]:
    """The predicates of the subqueries: in these, one of their columns stands before an alias of the query around."""
    for literal in body:
        if isinstance(literal, Negation):
            yield from (inner.predicate for inner in literal.body if isinstance(inner, Atom))
            yield from _inside(literal.body)


def _connected(atoms: Sequence[Atom]) -> list[Atom]:
    """The atoms in an order in which each shares a variable with one before it, where possible."""
    waiting, result = list(atoms), list[Atom]()
    seen: set[Term] = set()
    while waiting:
        atom = next((a for a in waiting if seen.intersection(a.terms)), waiting[0])
        waiting.remove(atom)
        result.append(atom)
        seen.update(term for term in atom.terms if isinstance(term, Variable))
    return result


def _not_null(body: Iterable[Literal], places: Iterable[tuple[Term, Place]]) -> frozenset[Variable]:
    terms: list[Term] = [term for term, place in places if place.not_null]
    for literal in body:
        match literal:
            case Comparison(_, left, right):
                terms += [left, right]
            case NullTest(term, negated=True):
                terms.append(term)
            case _:
                pass
    return frozenset(term for term in terms if isinstance(term, Variable))


def _conditions(
    pairs: Sequence[tuple[Term, Place]], frame: Frame
) -> tuple[Mapping[int, Sequence[exp.Expr]], Sequence[exp.Expr]]:
    """Conditions of the joins, by source, and those of WHERE."""
    on: dict[int, list[exp.Expr]] = {}
    where: list[exp.Expr] = []
    for term, place in pairs:
        if isinstance(term, Constant):
            where.append(_is_constant(place, term))
            continue
        first = frame.places[term][0]
        if place.source != first.source:
            on.setdefault(place.source, []).append(frame.equal(term, place, first))
        elif place != first:
            where.append(frame.equal(term, place, first))
        elif term in frame.outer:
            where.append(frame.equal(term, place, frame.outer[term]))
    return on, where


def _is_constant(place: Place, term: Constant) -> exp.Expr:
    operator = exp.Is if term.value is None else exp.EQ
    return operator(this=place.tree(), expression=constant(term.value))
