"""Pairs of databases that may show what a group's stored values do not tell: a lost extremum, a last row.

A few core rows, of which one is lost; the others have different values in the two databases, chosen so that counts,
sums and extrema may be the same before, or two rows exchange a value, such as their group. Nothing depends on how well
they are chosen: whether a pair is an example is for the definition to say.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from functools import cached_property
from itertools import combinations, islice

from msgspec import Struct

from datalog.model import (
    ANY,
    Atom,
    ColumnType,
    Constant,
    Row,
    Term,
    TypeName,
    Value,
    Variable,
    apply_atom,
    apply_comparison,
    ground,
    variables_of,
)
from datalog.model.expressions import expression_variables
from datalog.order import assign
from selfmaint.audit.candidates import Candidate, Relations
from selfmaint.audit.changes import Change, Kind
from selfmaint.audit.grounding import constants_of
from selfmaint.countermodel.databases import CannotEvaluateError, Evaluation, satisfies, updated
from selfmaint.countermodel.values import new_value, values_of
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.constraints import merged_by_keys
from selfmaint.warehouse.grouped import Grouped
from selfmaint.warehouse.situation import Situation

COPIES = 4
_LOST = 5
_MOST_ROWS = 50
_OTHERS: tuple[tuple[int | None, ...], ...] = (
    *((), (None,), (0,), (1,), (2,), (6,), (7,)),
    *((1, 4), (2, 3), (6, 9), (7, 8)),
    *((0, 1, 4), (0, 2, 3), (6, 9, 11), (7, 8, 11)),
)
"""Values of the other rows, where the lost row has 5."""

Copies = list[tuple[Atom, ...]]
"""The atoms of some core rows."""

Pair = tuple[Relations, Relations, Candidate]
Found = tuple[Row, Relations]
"""A row that is to be deleted, and a database that has it."""


Tried = set[tuple[int, int | None]]
"""Subgoals, and columns that are updated, None where rows are deleted: of these all pairs were tried."""


def group_examples(
    evaluation: Evaluation, view: GroupedView, change: Change, situation: Situation, tried: Tried
) -> Iterator[Pair]:
    """Pairs of databases with the same views, each with an update of both; small ones first.

    What is in `tried` is left out, and what was gone through is added.

    Raises:
        CannotEvaluateError: some view is known only as text.
    """
    operands = [m.aggregate.operand for m in view.grouped.measures]
    varied = dict.fromkeys(
        t
        for operand in operands
        for v in (() if operand is None else expression_variables([operand]))
        if isinstance(t := view.grouped.terms.get(v, v), Variable)
    )
    changed: Sequence[int | None] = sorted(change.columns) if change.kind is Kind.UPDATE else [None]
    for index, atom in enumerate(view.core.body):
        if atom.predicate.name in situation.deleted:
            columns = [c for c in changed if (index, c) not in tried and _is_used(view, atom, c)]
            for operand in (varied or [None]) if columns else ():
                for shared in _sharings(evaluation.catalog, view.core, view.grouped, index, operand):
                    yield from _Made(evaluation, view, columns, index, operand, shared).pairs()
            tried.update((index, column) for column in columns)


def _is_used(view: GroupedView, atom: Atom, column: int | None) -> bool:
    """Whether the view can be another one if a row of a subgoal's relation is updated in one column."""
    if column is None:
        return True
    its = [a.terms[column] for a in view.core.body if a.predicate == atom.predicate]
    used = {view.grouped.terms.get(v, v) for v in view.grouped.block.variables}
    times = Counter(t for a in view.core.body for t in a.terms)
    tested = variables_of(view.core.filters)
    return any(times[t] > 1 or t in used or t in tested or isinstance(t, Constant) for t in its)


def _sharings(
    catalog: Catalog, core: View, grouped: Grouped, anchor: int, operand: Variable | None
) -> Iterator[frozenset[Variable]]:
    """What the core rows have in common: all that leaves them different; their group; nothing."""
    every = frozenset(variables_of(core.body))
    apart = {operand} if operand is not None else set[Term]()
    for index, atom in enumerate(core.body):
        if operand in atom.terms or (operand is None and index == anchor):
            keys = catalog.relations[atom.predicate.name].keys or (tuple(range(atom.arity)),)
            apart |= {atom.terms[i] for key in keys for i in key}
    yield every - apart
    used = (grouped.terms.get(v, v) for v in expression_variables(grouped.groups))
    yield frozenset(t for t in used if isinstance(t, Variable))
    if grouped.groups:
        yield frozenset()


class _Made(Struct, dict=True):
    """The databases with some core rows, of which one loses its row of a subgoal.

    Attributes:
        columns: those that the row that is lost is updated in, one at a time; None where it is deleted.
        operand: the variable whose values differ; None if there is none.
        shared: the variables that the core rows have in common.
    """

    evaluation: Evaluation
    view: GroupedView
    columns: Sequence[int | None]
    anchor: int
    operand: Variable | None
    shared: frozenset[Variable]

    @property
    def catalog(self) -> Catalog:
        """The warehouse."""
        return self.evaluation.catalog

    def pairs(self) -> Iterator[Pair]:
        """Those that no view tells apart."""
        made = list(dict.fromkeys((row, tuple(sorted(rows.items()))) for row, rows in self._databases()))
        for lost in dict.fromkeys(row for row, _ in made):
            mine = [dict(rows) for row, rows in made if row == lost]
            for inserted in self._replacements(lost):
                yield from self._unlike(
                    mine, lost, frozenset() if inserted is None else frozenset({inserted})
                )

    def _unlike(self, databases: Sequence[Relations], lost: Row, new: frozenset[Row]) -> Iterator[Pair]:
        """The pairs of some databases with the same views, in one of which the view is another after the update."""
        name = self.view.core.body[self.anchor].predicate.name
        inserted, deleted = ({name: new} if new else {}), {name: frozenset({lost})}
        alike: dict[object, list[tuple[Relations, object]]] = {}  # by what the view itself holds
        for incomplete in databases:
            database = self._completed(incomplete, inserted)
            after = updated(database, inserted, deleted)
            if satisfies(self.catalog, database) and satisfies(self.catalog, after):
                with suppress(CannotEvaluateError):  # a value that nothing can be computed from
                    key = frozenset(self.evaluation.state(self.view.name, database).items())
                    state = self.evaluation.state(self.view.name, after)
                    alike.setdefault(key, []).append((database, state))
        for found in alike.values():
            for (first, one), (second, other) in combinations(found, 2):
                if one != other and self.evaluation.are_alike(first, second):
                    yield first, second, Candidate(first, inserted, deleted)

    def _databases(self) -> Iterator[Found]:
        if self._copies is None:
            return
        for others in _OTHERS:
            made = self._database(self._copies, others)
            if made is not None:
                yield made
        for others in ((_LOST,), (1,)):
            for exchanged in self._exchanged(self._copies):
                made = self._database(exchanged, others)
                if made is not None:
                    yield made

    def _exchanged(self, copies: Copies) -> Iterator[Copies]:
        """The first two rows, with the values of a variable exchanged in one subgoal; as they are before that."""
        yield copies
        for index, atom in enumerate(self.view.core.body):
            one, other = copies[0][index], copies[1][index]
            for i, _ in enumerate(atom.terms):
                if one.terms[i] != other.terms[i]:
                    left, right = (
                        Atom(a.predicate, (*a.terms[:i], b.terms[i], *a.terms[i + 1 :]))
                        for a, b in ((one, other), (other, one))
                    )
                    first = (*copies[0][:index], left, *copies[0][index + 1 :])
                    second = (*copies[1][:index], right, *copies[1][index + 1 :])
                    yield [first, second, *copies[2:]]

    @cached_property
    def _copies(self) -> Copies | None:
        """The core's body so many times, some variables in common, keys carried out."""
        bodies: Copies = []
        for number in range(COPIES):
            images: dict[Variable, Term] = {
                v: Variable(f"{v.name}_{number}")
                for v in variables_of(self.view.core.body)
                if v not in self.shared
            }
            bodies.append(tuple(apply_atom(images, atom) for atom in self.view.core.body))
        atoms = tuple(dict.fromkeys(atom for body in bodies for atom in body))
        merged = merged_by_keys(atoms, self.catalog.relations, frozenset(variables_of(atoms)))
        if merged is None:
            return None
        return [tuple(apply_atom(merged, atom) for atom in body) for body in bodies]

    def _database(self, copies: Copies, others: tuple[int | None, ...]) -> Found | None:
        """The row to be deleted, and a database; None if the values cannot be."""
        values = dict(self._fixed)
        assert self._copies is not None
        for body, number in zip(self._copies, (_LOST, *others), strict=False):
            for term, its in self._operand_terms(body):
                wanted = None if number is None else _value(its, number)
                if wanted is None and number is not None:
                    return None
                values[term] = wanted
        found: dict[str, set[Row]] = {}
        for body in copies[: 1 + len(others)]:
            for atom in body:
                found.setdefault(atom.predicate.name, set()).add(ground(atom.terms, values))
        rows = {name: frozenset(its) for name, its in found.items()}
        lost = ground(self._copies[0][self.anchor].terms, values)
        name = self.view.core.body[self.anchor].predicate.name
        return (lost, rows) if lost in rows[name] else None

    def _operand_terms(self, body: tuple[Atom, ...]) -> Iterator[tuple[Variable, ColumnType]]:
        for atom, original in zip(body, self.view.core.body, strict=True):
            for i, term in enumerate(original.terms):
                moved = atom.terms[i]
                if term == self.operand and isinstance(moved, Variable):
                    yield moved, self.catalog.relations[atom.predicate.name].types[i]

    @cached_property
    def _fixed(self) -> Mapping[Variable, Value]:
        """Values for all variables, different ones where nothing else is asked."""
        assert self._copies is not None
        atoms = [atom for body in self._copies for atom in body]
        types = variable_types(atoms, self.catalog.relations)
        taken = constants_of(self.catalog)
        tests = [
            apply_comparison(dict(zip(own, body_variables, strict=True)), comparison)
            for body in self._copies
            for own, body_variables in [_paired(self.view.core.body, body)]
            for comparison in self.view.core.comparisons
        ]
        compared = variables_of(tests)
        values: dict[Variable, Value] = dict(assign(compared, tests, {}, types) or {}) if tests else {}
        names: dict[Term, str] = {}
        for atom in atoms:
            names |= dict(zip(atom.terms, self.catalog.relations[atom.predicate.name].columns, strict=True))
        for variable in variables_of(atoms):
            if variable not in values:
                values[variable] = new_value(types.get(variable, ANY), names[variable], taken)
                taken = {*taken, values[variable]}
        return values

    def _replacements(self, lost: Row) -> Iterator[Row | None]:
        """What the lost row becomes: nothing, or another row."""
        atom = self.view.core.body[self.anchor]
        types = self.catalog.relations[atom.predicate.name].types
        for i in self.columns:
            if i is None:
                yield None
                continue
            new = [_value(types[i], number) for number in (0, 10, 11)]
            for value in (v for v in new if v is not None and v != lost[i]):
                yield (*lost[:i], value, *lost[i + 1 :])

    def _completed(self, database: Relations, inserted: Relations) -> Relations:
        """The database with the rows that foreign keys ask for, before and after the insertion.

        It is given up where references go round in a circle, and does not satisfy them then.
        """
        found = {name: set(rows) for name, rows in database.items()}
        waiting = [
            (n, row) for n, rows in updated(database, inserted, {}).items() for row in sorted(rows, key=repr)
        ]
        while waiting and sum(map(len, found.values())) < _MOST_ROWS:
            name, row = waiting.pop()
            for reference in self.catalog.relations[name].references:
                key = tuple(row[i] for i in reference.columns)
                target = self.catalog.relations[reference.target]
                there = found.setdefault(reference.target, set())
                if None in key or any(tuple(r[i] for i in reference.target_columns) == key for r in there):
                    continue
                more: list[Value] = []
                for i, (kind, column) in enumerate(zip(target.types, target.columns, strict=True)):
                    taken = {row[i] for row in there}
                    options = islice(values_of(kind, column), len(taken) + 1)
                    more.append(next((v for v in options if v not in taken), None))
                for i, value in zip(reference.target_columns, key, strict=True):
                    more[i] = value
                there.add(tuple(more))
                waiting.append((reference.target, tuple(more)))
        return {name: frozenset(rows) for name, rows in found.items()}


def _paired(body: tuple[Atom, ...], moved: tuple[Atom, ...]) -> tuple[tuple[Variable, ...], tuple[Term, ...]]:
    """The variables of a body, and what stands in their places in another."""
    found: dict[Variable, Term] = {}
    for atom, other in zip(body, moved, strict=True):
        for term, its in zip(atom.terms, other.terms, strict=True):
            if isinstance(term, Variable):
                found.setdefault(term, its)
    return tuple(found), tuple(found.values())


def _value(its: ColumnType, number: int) -> Value:
    """A value of a type that stands for a number, in the order of the numbers; None if the type has none."""
    match its.name:
        case TypeName.STRING:
            return f"value {number:02}"
        case TypeName.DATE:
            return dt.date(2026, 1, 1) + dt.timedelta(days=number)
        case TypeName.DECIMAL:
            found = Decimal(number)
            return found if its.accepts(found) else None
        case TypeName.FLOAT | TypeName.DOUBLE:
            return float(number)
        case TypeName.BOOLEAN | TypeName.TIMESTAMP | TypeName.TIMESTAMP_NTZ:
            return None
        case _:
            return number
