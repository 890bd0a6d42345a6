"""Databases by the definition: what the views hold on one, whether it satisfies the constraints, and updates.

Nothing here is shared with the decision: this is what examples and counterexamples are held against.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from functools import cached_property, lru_cache

from datalog.evaluate import EvaluationError, Evaluator
from datalog.evaluate.views import evaluate_view
from datalog.model import (
    ANY,
    AntiJoin,
    ColumnType,
    Constant,
    OpaqueView,
    Predicate,
    Program,
    Row,
    Rule,
    Value,
    ViewDefinition,
)
from datalog.rewrite import guard_joins
from selfmaint.warehouse.catalog import BaseRelation, Catalog, GroupedView, View
from selfmaint.warehouse.constraints import Reference
from selfmaint.warehouse.reads import is_unknown, reads

Rows = Mapping[str, frozenset[Row]]
"""Rows by base relation; one that is missing is empty."""

Contents = Mapping[str, Counter[Row]]
"""For each view its rows, each with its number of copies."""


KEPT = 20_000
"""So many contents of views are kept: databases that are looked at one after another differ in few relations."""


class CannotEvaluateError(Exception):
    """A view that cannot be run, with only its text known, or that has no value on a database; why, in words."""


@dataclass(frozen=True)
class Evaluation:
    """The views of a warehouse as functions of a database."""

    catalog: Catalog
    _kept: dict[tuple[object, ...], Counter[Row]] = field(default_factory=dict, compare=False)
    _chosen: dict[frozenset[str], tuple[View, ...]] = field(default_factory=dict, compare=False)

    @cached_property
    def rules(self) -> Program:
        """The views that are rules: those of the exact class as the decision has them, the others as written."""
        rules: list[Rule] = []
        for view in self.catalog.views:
            if view.limitation is None and not view.always_empty:
                rules.append(Rule(view.head, (*view.body, *view.filters)))
            elif not view.always_empty:
                is_branch = self.catalog.whole(view.name) != view.name
                its = (view.rule,) if view.definition is None else ()
                written = its if is_branch else self.catalog.program.rules_for(view.predicate)
                rules += [guard_joins(rule) for rule in written]
        return Program(tuple(rules))

    def contents(self, database: Rows, names: AbstractSet[str] | None = None) -> Contents:
        """What views hold on a database.

        Raises:
            CannotEvaluateError: one of them is known only as text, or has a column without a value.
        """
        evaluator: Evaluator | None = None
        none: frozenset[Row] = frozenset()
        found: dict[str, Counter[Row]] = {}
        for view in self._in_order if names is None else self._with_those_below(frozenset(names)):
            if any(not database.get(name) for name in self._needed[view.name]):
                found[view.name] = Counter()
                continue
            key = (view.name, *(database.get(name, none) for name in self._read[view.name]))
            rows = self._kept.get(key) if self._are_told_apart else None
            if rows is None:
                if evaluator is None:
                    facts = {Predicate(name): its for name, its in database.items()}
                    evaluator = Evaluator(self.rules, facts)
                if len(self._kept) >= KEPT:
                    self._kept.clear()
                rows = self._kept[key] = self._rows(view, evaluator, database, found)
            found[view.name] = rows
        return found

    @cached_property
    def _are_told_apart(self) -> bool:
        """Whether equal rows are the same ones: in columns of no declared type `true` and 1 are not."""
        types = [its for relation in self.catalog.relations.values() for its in relation.types]
        truths = any(its.is_finite for its in types) or any(
            isinstance(t, Constant) and isinstance(t.value, bool)
            for view in self.catalog.views
            for atom in view.decided.body
            for t in atom.terms
        )
        return not truths or all(its != ANY for its in types)

    def state(self, view: str, database: Rows) -> Counter[Row]:
        """What one view holds on a database.

        Raises:
            CannotEvaluateError: it is known only as text, or has a column without a value.
        """
        return self.contents(database, {view})[view]

    def told(self, database: Rows) -> Contents:
        """What views hold on a database, but for those of which it cannot be told."""
        found = {}
        for view in self.catalog.views:
            with suppress(CannotEvaluateError):
                found[view.name] = self.state(view.name, database)
        return found

    def are_alike(self, first: Rows, second: Rows) -> bool:
        """Whether all views are known to hold the same on two databases: those do that read nothing that differs."""
        none: frozenset[Row] = frozenset()
        differing = {n for n in {*first, *second} if first.get(n, none) != second.get(n, none)}
        names = [name for name, its in self._read.items() if not differing.isdisjoint(its)]
        try:
            return all(self.state(name, first) == self.state(name, second) for name in names)
        except CannotEvaluateError:
            return False

    @cached_property
    def _below(self) -> Mapping[str, frozenset[str]]:
        """For each view the relations and views that it is over, through other views too."""
        return reads(self.catalog)

    @cached_property
    def _in_order(self) -> tuple[View, ...]:
        """The views, those that others read before these: what a view is computed from may be defined behind it."""
        return tuple(sorted(self.catalog.views, key=lambda view: len(self._below[view.name])))

    @cached_property
    def _read(self) -> Mapping[str, tuple[str, ...]]:
        """Of these the base relations; all of them, where it is not known what a view reads."""
        every = frozenset(self.catalog.relations)
        return {
            view.name: tuple(sorted(every if is_unknown(view) else every & self._below[view.name]))
            for view in self.catalog.views
        }

    @cached_property
    def _needed(self) -> Mapping[str, frozenset[str]]:
        """For each view relations without rows of which it has none."""
        found = {}
        for view in self.catalog.views:
            body = view.body if view.limitation is None else ()
            if isinstance(view, GroupedView) and not view.grouped.is_total:
                body = view.core.body
            found[view.name] = frozenset(atom.predicate.name for atom in body)
        return found

    def _with_those_below(self, names: frozenset[str]) -> tuple[View, ...]:
        """Some views and those that they read, in order."""
        if names not in self._chosen:
            wanted = names.union(*(self._below.get(name, ()) for name in names))
            self._chosen[names] = tuple(view for view in self._in_order if view.name in wanted)
        return self._chosen[names]

    def _rows(
        self, view: View, evaluator: Evaluator, database: Rows, before: Mapping[str, Counter[Row]]
    ) -> Counter[Row]:
        if view.always_empty:
            return Counter()
        if view.limitation is None or self.rules.rules_for(view.predicate):
            return Counter(evaluator.extension(view.predicate))
        bags = {Predicate(name): Counter(rows) for name, rows in database.items()}
        bags |= {Predicate(name): rows for name, rows in before.items()}
        types = {Predicate(r.name): r.types for r in self.catalog.relations.values()}
        try:
            match view.definition:
                case ViewDefinition() as definition:
                    return evaluate_view(definition, bags, types)
                case OpaqueView(anti=AntiJoin() as anti):
                    barred = evaluate_view(anti.barred, bags, types)
                    kept = evaluate_view(anti.kept, bags, types)
                    return Counter(
                        {r: n for r, n in kept.items() if tuple(r[i] for i in anti.join) not in barred}
                    )
                case _:
                    found = self.catalog.texts and self.catalog.texts(view, self.catalog.relations, database)
        except (EvaluationError, TypeError) as error:
            raise CannotEvaluateError(f"`{view.name}` cannot be computed: {error}") from error
        if found is None:
            raise CannotEvaluateError(
                f"only the text of `{view.name}` is known, and what it holds cannot be told"
            )
        return found


def stored_rows(catalog: Catalog, contents: Contents) -> dict[str, frozenset[Row]]:
    """The views' rows as the decision takes them: counted rows of views that keep duplicates."""
    return {
        name: frozenset((*row, copies) for row, copies in rows.items())
        if catalog.view(name).is_counted
        else frozenset(rows)
        for name, rows in contents.items()
    }


def updated(database: Rows, inserted: Rows, deleted: Rows) -> dict[str, frozenset[Row]]:
    """The database after an update."""
    none: frozenset[Row] = frozenset()
    names = dict.fromkeys((*database, *inserted))
    return {n: database.get(n, none) - deleted.get(n, none) | inserted.get(n, none) for n in names}


def satisfies(catalog: Catalog, database: Rows) -> bool:
    """Whether a database satisfies the declared keys, foreign keys and `not null`s."""
    return next(broken(catalog, database), None) is None


def broken(catalog: Catalog, database: Rows) -> Iterator[str]:
    """The constraints that a database breaks, in words."""
    for name, rows in database.items():
        relation = catalog.relations[name]
        yield from ill_formed(relation, rows)
        for reference in relation.references:
            if missing(reference, rows, database.get(reference.target, frozenset())):
                yield f"a row of `{name}` would reference none of `{reference.target}`"


def ill_formed(relation: BaseRelation, rows: frozenset[Row]) -> Iterator[str]:
    """The types, and the constraints, that some rows of a relation break among themselves, in words."""
    for i, kind in enumerate(relation.types):
        wrong = next((row[i] for row in rows if not _holds(kind, row[i])), None)
        if wrong is not None:
            column = relation.columns[i]
            yield f"`{relation.name}` would have {Constant(wrong)} in `{column}`, which is {kind}"
            break
    if any(row[i] is None for row in rows for i in range(relation.arity) if i not in relation.nullable):
        yield f"`{relation.name}` would have null in a column that is not null"
    for key in relation.unique:
        values = [v for row in rows if None not in (v := tuple(row[i] for i in key))]
        if len(set(values)) < len(values):
            yield f"a key of `{relation.name}` would be there twice"


@lru_cache(maxsize=100_000, typed=True)
def _holds(kind: ColumnType, value: Value) -> bool:
    """Whether a column can hold a value, or null; any number is taken for the floating-point one nearest to it."""
    if value is None or not kind.accepts(value):
        return value is None
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or kind.name.is_floating:
        return True
    if kind.name.bits is None and kind.precision is None:
        return True
    if not math.isfinite(value):
        return False
    number = Fraction(value)
    if kind.name.bits is not None:
        return number.denominator == 1 and -(1 << kind.name.bits - 1) <= number < 1 << kind.name.bits - 1
    precision, scale = kind.decimal_size
    units = number * 10**scale
    return units.denominator == 1 and bool(abs(units) < 10**precision)


def missing(reference: Reference, rows: frozenset[Row], targets: frozenset[Row]) -> frozenset[Row]:
    """The values that rows reference and no target has."""
    there = {tuple(row[i] for i in reference.target_columns) for row in targets}
    wanted = {tuple(row[i] for i in reference.columns) for row in rows}
    return frozenset(value for value in wanted if None not in value) - there
