"""What the audit says of a view and a kind of change; and its examples: two databases that no view tells apart.

An example is held against the definition, on both databases: the constraints hold before and after the update,
all views have the same contents before it, and the view that it is about differs after it. Nothing of the decision
takes part in that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

from msgspec import Struct, field

from datalog.budget import BudgetSpentError, check
from datalog.model import (
    ANY,
    Atom,
    ColumnType,
    Constant,
    Predicate,
    Row,
    Value,
    Variable,
    Version,
    apply_comparison,
    variables_of,
)
from datalog.order import assign
from selfmaint.audit.candidates import Candidate, Relations
from selfmaint.audit.changes import Change, Kind
from selfmaint.audit.grounding import constants_of
from selfmaint.countermodel.databases import (
    CannotEvaluateError,
    Contents,
    Evaluation,
    satisfies,
    stored_rows,
    updated,
)
from selfmaint.countermodel.values import new_value
from selfmaint.decide.pairs import ground_facts, side
from selfmaint.decide.positions import in_one_gap
from selfmaint.decide.verdict import Witness
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.situation import Situation


class Example(Struct, frozen=True, dict=True):
    """Why a view's new state is not always determined.

    Attributes:
        first: one database before the update, rows by base relation; relations without rows are left out.
        second: another one.
        inserted: the update's inserted rows.
        deleted: the update's deleted rows.
        contents: every view's rows before the update, on both databases.
        after_first: the view's rows after the update of the first database.
        after_second: the same for the second.
        present: rows of partial copies.
    """

    view: str
    first: Relations
    second: Relations
    inserted: Relations
    deleted: Relations
    contents: Contents
    after_first: Counter[Row]
    after_second: Counter[Row]
    present: Relations = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of rows of the databases and the update."""
        parts = (self.second, self.inserted, self.deleted)
        return sum(len(rows) for part in parts for rows in part.values())

    @cached_property
    def differing(self) -> frozenset[str]:
        """The relations in which the databases differ: with others readable, it is an example, too."""
        none: frozenset[Row] = frozenset()
        names = {*self.first, *self.second}
        return frozenset(n for n in names if self.first.get(n, none) != self.second.get(n, none))

    @property
    def hidden(self) -> tuple[Atom, ...]:
        """The rows that one of the databases has and the other has not."""
        pairs = ((self.second, self.first), (self.first, self.second))
        return tuple(
            Atom(Predicate(name), tuple(map(Constant, row)))
            for one, other in pairs
            for name, rows in one.items()
            for row in sorted(rows - other.get(name, frozenset()), key=repr)
        )

    def facts(self, catalog: Catalog) -> Facts[frozenset[Row]]:
        """What is known in it: the views' contents, the update, and partial copies."""
        found: dict[Predicate, frozenset[Row]] = {
            Predicate(name): rows for name, rows in stored_rows(catalog, self.contents).items()
        }
        found |= {Predicate(name, Version.INSERTED): rows for name, rows in self.inserted.items()}
        found |= {Predicate(name, Version.DELETED): rows for name, rows in self.deleted.items()}
        found |= {Predicate(name, Version.PRESENT): rows for name, rows in self.present.items()}
        return Facts(found)

    @property
    def difference(self) -> tuple[Row, ...]:
        """The rows that the view has after the update of one database and not of the other."""
        rows = {*self.after_first, *self.after_second}
        return tuple(
            sorted((row for row in rows if self.after_first[row] != self.after_second[row]), key=repr)
        )


class Replay(Struct, frozen=True):
    """Holds examples against the definition.

    Attributes:
        evaluation: the views as functions of a database.
        situation: what changes, and what is known besides the views.
        change: the kind of change.
    """

    evaluation: Evaluation
    situation: Situation
    change: Change

    def example(self, view: str, first: Relations, second: Relations, candidate: Candidate) -> Example | None:
        """The example that two databases and an update make, or None if they make none."""
        check()
        catalog = self.evaluation.catalog
        inserted, deleted = candidate.inserted, candidate.deleted
        if not self.is_such_a_change(inserted, deleted):
            return None
        for database in (first, second):
            after = updated(database, inserted, deleted)
            if not satisfies(catalog, database) or not satisfies(catalog, after):
                return None
            if self.situation.effective and not _is_effective(database, inserted, deleted):
                return None
        if any(_rows(first, name) != _rows(second, name) for name in self.situation.readable):
            return None
        if any(not rows <= _rows(second, name) for name, rows in candidate.present.items()):
            return None
        try:
            states = [
                self.evaluation.state(view, updated(database, inserted, deleted))
                for database in (first, second)
            ]
            if states[0] == states[1] or not self.evaluation.are_alike(first, second):
                return None
            contents = self.evaluation.told(first)
        except CannotEvaluateError:
            return None
        return Example(
            view=view,
            first=_filled(first),
            second=_filled(second),
            inserted=_filled(inserted),
            deleted=_filled(deleted),
            contents=contents,
            after_first=states[0],
            after_second=states[1],
            present=_filled(candidate.present),
        )

    def is_such_a_change(self, inserted: Relations, deleted: Relations) -> bool:
        """Whether an update is of the kind in question."""
        for rows, names in ((inserted, self.situation.inserted), (deleted, self.situation.deleted)):
            if any(found and name not in names for name, found in rows.items()):
                return False
        if any(rows & _rows(deleted, name) for name, rows in inserted.items()):
            return False
        if self.change.kind is not Kind.UPDATE:
            return True
        name = str(self.change.relation)
        fixed = [
            i for i in range(self.evaluation.catalog.relations[name].arity) if i not in self.change.columns
        ]
        new, old = (
            {tuple(row[i] for i in fixed) for row in _rows(part, name)} for part in (inserted, deleted)
        )
        return new == old

    def shrunk(self, example: Example) -> Example:
        """The example without the rows that it does not need, as far as the budget lasts."""
        smaller: Example | None = example
        while smaller is not None:
            smaller = None
            for removal in tuple(_removals(example)):
                made = self._without(example, removal)
                if made is not None:
                    example = smaller = made
        return example

    def _without(self, example: Example, removal: _Removal) -> Example | None:
        """A smaller example; None if it is none, or not smaller, or the budget is spent: as it was it is an example."""
        name, before, inserted, deleted = removal
        parts = (example.first, example.second, example.inserted, example.deleted)
        gone = (before, before, inserted, deleted)
        first, second, new, old = (_minus(part, name, row) for part, row in zip(parts, gone, strict=True))
        if (first, second, new, old) == parts:
            return None
        try:
            return self.example(example.view, first, second, Candidate(first, new, old))
        except BudgetSpentError:
            return None


_Removal: TypeAlias = tuple[str, Row | None, Row | None, Row | None]
"""A row of a relation that is left out of both databases, one that is not inserted, and one that is not deleted."""


def _removals(example: Example) -> Iterator[_Removal]:
    """What may be left out: a row of both databases, of the update, or of the databases and a deletion."""
    parts = (example.first, example.second, example.inserted, example.deleted)
    for name in dict.fromkeys(name for part in parts for name in part):
        inserted = sorted(_rows(example.inserted, name), key=repr)
        deleted = sorted(_rows(example.deleted, name), key=repr)
        for row in sorted(_rows(example.second, name) | _rows(example.deleted, name), key=repr):
            yield name, row, None, row
        yield from ((name, None, row, None) for row in inserted)
        for row in deleted:
            yield name, None, None, row
            yield from ((name, row, new, row) for new in inserted)


def _minus(part: Relations, name: str, row: Row | None) -> Relations:
    return part if row is None else {n: rows - {row} if n == name else rows for n, rows in part.items()}


def _rows(part: Mapping[str, frozenset[Row]], name: str) -> frozenset[Row]:
    return part.get(name, frozenset())


def _filled(part: Relations) -> Relations:
    return {name: rows for name, rows in part.items() if rows}


def _is_effective(database: Relations, inserted: Relations, deleted: Relations) -> bool:
    was_absent = not any(rows & _rows(database, name) for name, rows in inserted.items())
    return was_absent and all(rows <= _rows(database, name) for name, rows in deleted.items())


def second_databases(catalog: Catalog, candidate: Candidate, witness: Witness) -> Iterator[Relations]:
    """Databases that may, with the candidate's, make an example; whether they do is for the definition to say.

    Some of the first database's own rows are known only by their key: a foreign key proves them. Where a witness's fact
    has the key of such a row it takes its place.
    """
    for values in _values(catalog, candidate, witness):
        added = ground_facts(witness, values)
        yield _with(catalog, candidate, added, replaced=False)
        yield _with(catalog, candidate, added, replaced=True)


def _with(catalog: Catalog, candidate: Candidate, added: Relations, *, replaced: bool) -> Relations:
    second = {name: set(rows) for name, rows in candidate.database.items()}
    for name, rows in added.items():
        old = second.setdefault(name, set())
        if replaced:
            keys = catalog.relations[name].unique
            old -= {row for row in old for new in rows if any(_agree(row, new, key) for key in keys)}
        old |= rows
    return {name: frozenset(rows) for name, rows in second.items()}


def _agree(row: Row, other: Row, key: tuple[int, ...]) -> bool:
    return all(row[i] == other[i] is not None for i in key)


def _values(catalog: Catalog, candidate: Candidate, witness: Witness) -> Iterator[dict[Variable, Value]]:
    """Values for the variables of the witness's facts: its own, and new ones for those that it leaves open."""
    fixed = {
        v: t.value for v, t in witness.new_facts.instance.substitution.items() if isinstance(t, Constant)
    }
    known: dict[Variable, Value] = {**fixed, **witness.binding}
    facts = witness.unknown
    types = variable_types((Atom(f.predicate, f.terms) for f in witness.new_facts.atoms), catalog.relations)
    taken = {v for part in _parts(candidate) for rows in part.values() for row in rows for v in row}
    taken |= constants_of(catalog)
    view = witness.new_facts.view
    substitution = witness.new_facts.instance.substitution
    comparisons = [apply_comparison(substitution, c) for c in view.comparisons]
    positions = dict(witness.new_facts.positions)
    beside = [Constant(v) for v in taken if v is not None]
    placed = [*in_one_gap(positions)]
    for variable, position in positions.items():
        placed += side(variable, types.get(variable, ANY), position, known, beside)
    for order in (placed, []):
        tests = [*comparisons, *order]
        free = [v for v in variables_of([*facts, *tests]) if v not in known]
        compared = set(variables_of(tests))
        ordered = assign([v for v in free if v in compared], tests, known, types)
        if ordered is not None:
            yield _completed(catalog, facts, {**known, **ordered}, free, types, taken)


def _completed(
    catalog: Catalog,
    facts: tuple[Atom, ...],
    values: dict[Variable, Value],
    free: list[Variable],
    types: Mapping[Variable, ColumnType],
    taken: set[Value],
) -> dict[Variable, Value]:
    """With a new value for each variable that is left."""
    used = taken | set(values.values())
    for variable in free:
        if variable not in values:
            name = _column(catalog, facts, variable)
            values[variable] = new_value(types.get(variable, ANY), name, used)
            used.add(values[variable])
    return values


def _column(catalog: Catalog, facts: tuple[Atom, ...], variable: Variable) -> str:
    for fact in facts:
        if variable in fact.terms:
            return catalog.relations[fact.predicate.name].columns[fact.terms.index(variable)]
    return "value"


def _parts(candidate: Candidate) -> tuple[Relations, ...]:
    return candidate.database, candidate.inserted, candidate.deleted


@dataclass(frozen=True)
class Always:
    """The view is self-maintainable whatever the data, for every such change.

    Attributes:
        tested: how many ways of not being so the rules leave open; each was shown not to occur.
    """

    tested: int = 0


@dataclass(frozen=True)
class Depends:
    """It depends on the data.

    Attributes:
        example: data for which the view is not self-maintainable: the smallest that was found.
        unknown: the facts that may or may not exist in it.
        is_never: whether every inserted row leaves the view in doubt, whatever the data.
    """

    example: Example
    unknown: tuple[Atom, ...]
    is_never: bool = False


@dataclass(frozen=True)
class Unclear:
    """The procedure does not say; to be treated as `Depends`."""

    reasons: tuple[str, ...]


Outcome: TypeAlias = Always | Depends | Unclear


def word(outcome: Outcome) -> str:
    """`always`, `depends`, `never` or `undecided`."""
    match outcome:
        case Always():
            return "always"
        case Depends(is_never=is_never):
            return "never" if is_never else "depends"
        case Unclear():
            return "undecided"
