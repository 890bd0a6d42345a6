"""Is the new state of views that group determined? Every database over small domains is tried.

The definition, with no reasoning: all databases over the given domains that satisfy keys, foreign keys and not-null are
listed; those before which an effective update makes sense and after which the constraints hold are kept; the views of
each are computed before and after. Databases with the same views before are indistinguishable; a view's new state is
determined if they all give it the same one. Larger domains may tell apart what these do not: a "no" is exact.

Shares no code with the product. Base relations are sets, views are bags of rows; null is None.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal
from functools import lru_cache, partial
from itertools import chain, combinations, product
from operator import eq, ge, gt, le, lt, ne
from random import Random
from typing import Any

Row = tuple[Any, ...]
Database = Mapping[str, frozenset[Row]]


@dataclass(frozen=True)
class Relation:
    """A base relation: its columns' domains (None among them if nullable), its key, its foreign keys."""

    name: str
    domains: tuple[tuple[Any, ...], ...]
    key: int | None = 0
    references: tuple[tuple[int, str], ...] = ()
    """Column, and the relation whose key (its first column) it holds."""

    def contents(self, most: int) -> Iterator[frozenset[Row]]:
        """All sets of at most so many rows that satisfy the key."""
        if self.key is None:
            rows = list(product(*self.domains))
            sets = chain.from_iterable(combinations(rows, n) for n in range(most + 1))
            yield from map(frozenset, sets)
            return
        others = [d for i, d in enumerate(self.domains) if i != self.key]
        for keys in chain.from_iterable(combinations(self.domains[self.key], n) for n in range(most + 1)):
            for values in product(product(*others), repeat=len(keys)):
                yield frozenset(
                    (*v[: self.key], k, *v[self.key :]) for k, v in zip(keys, values, strict=True)
                )

    def declared(self) -> str:
        """Its declaration."""
        columns = ", ".join(
            f"c{i}: {_type(d)}" + ("" if None in d else " not null") for i, d in enumerate(self.domains)
        )
        keyed = "" if self.key is None else f" key(c{self.key})"
        keys = "".join(f" foreign key (c{i}) references {target}(c0)" for i, target in self.references)
        return f".decl {self.name}({columns}){keyed}{keys}."


def _type(domain: Sequence[Any]) -> str:
    known = [v for v in domain if v is not None]
    if all(isinstance(v, Decimal) for v in known):
        return "decimal(9, 2)"
    return "int" if all(isinstance(v, int) for v in known) else "string"


def _average(values: Sequence[Any]) -> float | Decimal:
    """Of decimals to four digits more than their two, as Spark rounds it."""
    if isinstance(values[0], Decimal):
        return (sum(values, Decimal()) / len(values)).quantize(Decimal("0.000001"), ROUND_HALF_UP)
    total: float = sum(values)
    return total / len(values)


@dataclass(frozen=True)
class Aggregate:
    """`count`, `sum`, `min`, `max` or `avg` of a variable, or `count` of `*`."""

    function: str
    variable: str

    def value(self, values: Sequence[Any]) -> Any:
        """Over the values of a group's rows."""
        if self.variable == "*":
            return len(values)
        known = [v for v in values if v is not None]
        if self.function == "count":
            return len(known)
        if not known:
            return None
        if self.function == "avg":
            return _average(known)
        return {"sum": sum, "min": min, "max": max}[self.function](known)

    def __str__(self) -> str:
        return f"{self.function}({self.variable})"


@dataclass(frozen=True)
class Computed:
    """A column `variable operator number`; null where the variable is."""

    variable: str
    operator: str
    number: int

    def __str__(self) -> str:
        return f"{self.variable} {self.operator} {self.number}"

    def value(self, binding: Mapping[str, Any]) -> Any:
        """Its value for a match of the body."""
        value = binding[self.variable]
        if value is None:
            return None
        return value * self.number if self.operator == "*" else value + self.number


@dataclass(frozen=True)
class Asked:
    """What HAVING asks: an aggregate, or a column of the group, compared with a value; or `is null`, without one.

    Attributes:
        either: others, one of which may be so instead.
    """

    what: Aggregate | str
    operator: str
    value: Any = None
    either: tuple[Asked, ...] = ()

    def __str__(self) -> str:
        value = "" if self.operator == "is null" else f" {_constant(self.value)}"
        one = f"{self.what} {self.operator}{value}"
        return f"any({', '.join(map(str, (one, *self.either)))})" if self.either else one

    def holds(self, value: Callable[[Aggregate | str], Any]) -> bool:
        """Whether it is so, given what an aggregate and a column are."""
        found = value(self.what)
        one = found is None if self.operator == "is null" else _compare(found, self.operator, self.value)
        return one or any(other.holds(value) for other in self.either)


@dataclass(frozen=True)
class View:
    """A view: columns of its rows or groups, aggregates (none: no grouping), a body, comparisons.

    Attributes:
        columns: variables; of a view that does not group also what is computed, and constants as in the body.
        body: relations with terms: a variable's name, or `("constant", value)`.
        compared: variables with an operator and a value.
        semantics: `bag`: a row for each match of the body; `set`: each once; None: a rule, each once.
        where: computed values that are compared with a number.
        having: what is asked of each group: one for which some of it is not so is left out.
    """

    name: str
    columns: tuple[Any, ...]
    aggregates: tuple[Aggregate, ...]
    body: tuple[tuple[str, tuple[Any, ...]], ...]
    compared: tuple[tuple[str, str, Any], ...] = ()
    semantics: str | None = None
    where: tuple[tuple[Computed, str, int], ...] = ()
    having: tuple[Asked, ...] = ()

    def rule(self) -> str:
        """The view as text."""
        outputs = [*map(_term, self.columns), *map(str, self.aggregates)]
        subgoals = [f"{name}({', '.join(map(_term, terms))})" for name, terms in self.body]
        tests = [f"{v} {operator} {_constant(value)}" for v, operator, value in self.compared]
        tests = [", ".join([*subgoals, *tests])]
        tests += [" where " + ", ".join(f"{c} {o} {n}" for c, o, n in self.where)] if self.where else []
        tests += [" having " + ", ".join(map(str, self.having))] if self.having else []
        names = ", ".join(f"x{i}" for i in range(len(outputs)))
        kind = f".view {self.name}({names}) {self.semantics}.\n" if self.semantics else ""
        return f"{kind}{self.name}({', '.join(outputs)}) :- {''.join(tests)}."

    def rows(self, database: Database) -> Counter[Row]:
        """Its rows on a database, each with its number of copies."""
        matches = list(self._matches(database))
        if not self.aggregates:
            found = Counter(tuple(_column(c, m) for c in self.columns) for m in matches)
            return found if self.semantics == "bag" else Counter(set(found))
        groups: dict[Row, list[dict[str, Any]]] = defaultdict(list)
        if not self.columns:
            groups[()] = []
        for match in matches:
            groups[tuple(match[v] for v in self.columns)].append(match)

        def value(what: Aggregate | str, group: Row, found: Sequence[Mapping[str, Any]]) -> Any:
            if isinstance(what, str):
                return group[self.columns.index(what)]
            return what.value([1 if what.variable == "*" else m[what.variable] for m in found])

        return Counter(
            (*group, *(value(a, group, found) for a in self.aggregates))
            for group, found in groups.items()
            if all(asked.holds(partial(value, group=group, found=found)) for asked in self.having)
        )

    def _matches(self, database: Database) -> Iterator[dict[str, Any]]:
        places = Counter(t for _, terms in self.body for t in terms if isinstance(t, str))
        partial: list[dict[str, Any]] = [{}]
        for name, terms in self.body:
            partial = [
                more
                for binding in partial
                for row in database[name]
                if (more := _extended(binding, terms, row, places)) is not None
            ]
        for binding in partial:
            tests = [(binding[v], operator, value) for v, operator, value in self.compared]
            tests += [(made.value(binding), operator, number) for made, operator, number in self.where]
            if all(_compare(*test) for test in tests):
                yield binding


def _column(column: Any, binding: Mapping[str, Any]) -> Any:
    if isinstance(column, Computed):
        return column.value(binding)
    return binding[column] if isinstance(column, str) else column[1]


def _term(term: Any) -> str:
    return str(term) if isinstance(term, str | Computed) else _constant(term[1])


def _constant(value: Any) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _extended(
    binding: dict[str, Any], terms: Sequence[Any], row: Row, places: Counter[str]
) -> dict[str, Any] | None:
    more = dict(binding)
    for term, value in zip(terms, row, strict=True):
        if not isinstance(term, str):
            if value != term[1]:
                return None
        elif (value is None and places[term] > 1) or more.setdefault(term, value) != value:
            return None
    return more


def _compare(value: Any, operator: str, other: Any) -> bool:
    if value is None:
        return False
    compare = {"<": lt, "<=": le, ">": gt, ">=": ge, "!=": ne, "=": eq}[operator]
    return bool(compare(value, other))


@dataclass(frozen=True)
class Schema:
    """Relations with the most rows that each has, and views."""

    relations: tuple[Relation, ...]
    most: tuple[int, ...]
    views: tuple[View, ...]

    @property
    def text(self) -> str:
        """Declarations and rules."""
        return "\n".join([*(r.declared() for r in self.relations), *(v.rule() for v in self.views)])

    def is_sound(self, database: Database) -> bool:
        """Whether foreign keys hold (keys do, by the making), and keys after an update."""
        for relation in self.relations:
            rows = database[relation.name]
            if relation.key is not None and len({r[relation.key] for r in rows}) < len(rows):
                return False
            for column, target in relation.references:
                keys = {row[0] for row in database[target]}
                if any(row[column] is not None and row[column] not in keys for row in rows):
                    return False
        return True

    def databases(self) -> tuple[Database, ...]:
        """All databases that satisfy the constraints."""
        return _databases(self.relations, self.most)


@lru_cache(maxsize=8)
def _databases(relations: tuple[Relation, ...], most: tuple[int, ...]) -> tuple[Database, ...]:
    schema = Schema(relations, most, ())
    choices = [list(r.contents(n)) for r, n in zip(relations, most, strict=True)]
    names = [r.name for r in relations]
    every = (dict(zip(names, contents, strict=True)) for contents in product(*choices))
    return tuple(d for d in every if schema.is_sound(d))


@dataclass(frozen=True)
class Question:
    """What is known: the views' contents and an effective update; and the answers.

    Attributes:
        contents: each view's rows before.
        inserted: rows by relation.
        deleted: rows by relation.
        states: for each view, the states that it may have after the update.
        database: one database that explains what is known.
    """

    contents: Mapping[str, Counter[Row]]
    inserted: Database
    deleted: Database
    states: Mapping[str, frozenset[frozenset[tuple[Row, int]]]]
    database: Database


def questions(schema: Schema, random: Random, updates: int, each: int) -> Iterator[Question]:
    """Random updates of a schema's databases, each with some of the contents that the views may have before."""
    every = schema.databases()
    names = [r.name for r in schema.relations]
    found: dict[Any, frozenset[tuple[Row, int]]] = {}

    def rows(view: View, database: Database) -> frozenset[tuple[Row, int]]:
        """A view's rows, computed once for all databases that agree in what it reads."""
        key = (view.name, *(database[name] for name, _ in view.body))
        if key not in found:
            found[key] = frozenset(view.rows(database).items())
        return found[key]

    before = [tuple(rows(v, d) for v in schema.views) for d in every]
    for _ in range(updates):
        inserted, deleted = _update(schema, random, random.choice(every))
        groups: dict[Any, list[int]] = defaultdict(list)
        afters: dict[int, Database] = {}
        for number, database in enumerate(every):
            if any(not deleted[n] <= database[n] or inserted[n] & database[n] for n in names):
                continue
            after = {n: database[n] - deleted[n] | inserted[n] for n in names}
            if schema.is_sound(after):
                afters[number] = after
                groups[before[number]].append(number)
        ordered = sorted(groups, key=lambda known: [sorted(map(repr, rows)) for rows in known])
        chosen = random.sample(ordered, min(each, len(groups)))
        for known in chosen:
            members = groups[known]
            states = {v.name: frozenset(rows(v, afters[n]) for n in members) for v in schema.views}
            contents = {v.name: Counter(dict(k)) for v, k in zip(schema.views, known, strict=True)}
            yield Question(contents, inserted, deleted, states, every[members[0]])


def _update(schema: Schema, random: Random, database: Database) -> tuple[Database, Database]:
    """Some rows of a database deleted, and some that it has not inserted; keys are often those of deleted rows."""
    inserted: dict[str, frozenset[Row]] = {r.name: frozenset() for r in schema.relations}
    deleted = dict(inserted)
    for relation in random.sample(schema.relations, random.randint(1, len(schema.relations))):
        rows = sorted(database[relation.name], key=repr)
        gone = random.sample(rows, min(len(rows), random.choice((0, 1, 1, 2))))
        new = set()
        for _ in range(random.choice((0, 1, 1, 2))):
            row = tuple(random.choice(d) for d in relation.domains)
            if gone and relation.key is not None and random.random() < 0.5:
                key = random.choice(gone)[relation.key]
                row = (*row[: relation.key], key, *row[relation.key + 1 :])
            if row not in database[relation.name]:
                new.add(row)
        inserted[relation.name], deleted[relation.name] = frozenset(new), frozenset(gone)
    return inserted, deleted
