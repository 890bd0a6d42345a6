"""Small cases in large warehouses: beside a case's rows others, and a state of all views that a database explains."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from random import Random

from datalog.copies import replace
from datalog.model import Constant, Predicate, Row, Value, Version
from selfmaint.conformance.cases import Case
from selfmaint.countermodel.databases import broken
from selfmaint.countermodel.model_check import Given
from selfmaint.possible.encoding import BEFORE, Encoding, TooLargeError
from selfmaint.possible.instances import instance
from selfmaint.possible.new_state import real_database
from selfmaint.possible.queries import queries
from selfmaint.possible.solver import Solver, SolverStoppedError
from selfmaint.warehouse.catalog import Catalog
from tests.searched import given_of

Database = Mapping[str, frozenset[Row]]

_SECONDS = 5
_GAP = 1000
_LATE = 5000


def explaining(known: Given) -> Database | None:
    """A database that explains a case; None if the search finds none."""
    rules = queries(known.catalog)
    try:
        encoding = Encoding(instance(known, rules), rules)
        names = [f"{BEFORE}{number}" for number in encoding.numbers.values()]
        model = Solver(_SECONDS).answer_set(encoding.text, names)
    except (TooLargeError, SolverStoppedError):
        return None
    return None if model is None else real_database(encoding, model, 0)


def moved(value: Value, by: int) -> Value:
    """A value that stands for another one in a copy; each copy has its own."""
    match value:
        case bool() | None:
            return value
        case int() | float() | Decimal():
            return value + _GAP * by
        case str():
            return f"{value}~{by}"
        case _:
            gap = timedelta(days=_GAP * by)
            return value - gap if value.year > _LATE else value + gap


def embedded(
    record: Case, schema: Catalog, copies: int, shared: float, random: Random
) -> tuple[Case, Database] | None:
    """A case beside renamed copies of a database that explains it.

    Args:
        record: the case.
        schema: its catalog.
        copies: how many copies.
        shared: how likely a value stands for itself in a copy.
        random: makes the choices.

    Returns:
        The case with more rows, and a database that explains it; None if none was found.
    """
    known = given_of(record, schema)
    first = explaining(known)
    if first is None:
        return None
    whole = {name: set(rows) for name, rows in first.items()}
    values = sorted({Constant(v) for rows in first.values() for row in rows for v in row}, key=repr)
    for number in range(1, copies + 1):
        kept = {v for v in values if shared and random.random() < shared}
        copy = {
            name: {tuple(v if Constant(v) in kept else moved(v, number) for v in row) for row in rows}
            for name, rows in first.items()
        }
        more = {name: frozenset(rows | copy[name]) for name, rows in whole.items()}
        if _is_possible(record, known, more, shared):
            whole = {name: set(rows) for name, rows in more.items()}
    database = {name: frozenset(rows) for name, rows in whole.items()}
    contents = dict(record.contents)
    for view in schema.views:
        state = known.state(view, database)
        assert state is not None
        contents[view.predicate] = state
    for predicate in record.contents:
        if predicate.version is Version.BEFORE:
            contents[predicate] = database[predicate.name]
    return replace(record, contents=contents), database


def _is_possible(record: Case, known: Given, database: Database, shared: float) -> bool:
    """Whether constraints hold, and the update is what it is said to be; of copies that share nothing they do."""
    if not shared:
        return True
    said = {Version.ABSENT, *((Version.INSERTED,) if record.effective else ())}
    if any(
        database.get(p.name, frozenset()) & rows for p, rows in record.contents.items() if p.version in said
    ):
        return False
    return not any(True for each in (database, known.after(database)) for _ in broken(known.catalog, each))


def rows_beside(record: Case, made: Case, view: str) -> frozenset[Row]:
    """The rows of a view that an embedded case has besides its own."""
    return made.contents[Predicate(view)] - record.contents[Predicate(view)]
