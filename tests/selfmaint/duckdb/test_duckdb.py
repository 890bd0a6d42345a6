"""What only the DuckDB engine has: one database whose relations live as long as somebody refers to them."""

from __future__ import annotations

import datetime as dt
import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

import selfmaint
from datalog.budget import BudgetSpentError, left, limit
from datalog.model import ANY, ColumnType, Predicate, TypeName, Value
from datalog.sql.duckdb import relations as sql
from datalog.syntax import parse_program
from selfmaint.duckdb import DuckEngine
from selfmaint.duckdb import database as databases
from selfmaint.duckdb.exact_rows import found_rows, rows_of
from selfmaint.engine.protocol import Facts
from selfmaint.errors import Code, InputError, ReadRefusedError

R, S, V = Predicate("r"), Predicate("s"), Predicate("v")


def tables(engine: DuckEngine) -> int:
    found = engine.database._execute("select count(*) from duckdb_tables() where temporary").fetchone()
    views = engine.database._execute(
        "select count(*) from duckdb_views() where temporary and not internal"
    ).fetchone()
    assert found is not None
    assert views is not None
    return int(found[0]) + int(views[0])


def test_a_statement_that_reads_another_name_is_refused() -> None:
    engine = DuckEngine()
    given = engine.load([(1,)], ["x"], [ANY])
    other = engine.load([(2,)], ["x"], [ANY])
    query = exp.select("c0").from_(given.stored.name).join(other.stored.name, join_type="cross")
    for run in (
        lambda: engine.database.table(query, given.types, [given.stored.name]),
        lambda: engine.database.view(query, given.types, [given.stored]),
        lambda: engine.database.rows(query, [given.stored.name]),
        lambda: engine.database.plain_rows(query, [given.stored.name]),
    ):
        with pytest.raises(ReadRefusedError, match=other.stored.name):
            run()


def test_what_is_collected_in_a_transaction_is_dropped_after_it(tmp_path: Path) -> None:
    engine = DuckEngine()
    database = engine.database
    pq.write_table(pa.table({"x": [1]}), tmp_path / "rows.parquet")
    read, _ = database.parquet([str(tmp_path / "rows.parquet")])
    database.run(f"ATTACH '{tmp_path / 'other.db'}' AS other")
    database.run("CREATE TABLE other.t (x BIGINT)")
    named = f"SELECT count(*) FROM duckdb_views() WHERE view_name = '{read.name}'"
    assert database.run(named) == [(1,)]
    with database.transaction():
        database.run("INSERT INTO other.t VALUES (1)")
        del read
        gc.collect()
        database.run("INSERT INTO other.t VALUES (2)")
    assert database.run("FROM other.t ORDER BY x") == [(1,), (2,)]
    assert database.run(named) == [(0,)]


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (TypeName.BOOLEAN, (True, False, None)),
        (TypeName.TINYINT, (-(2**7), 2**7 - 1, None)),
        (TypeName.SMALLINT, (-(2**15), 2**15 - 1, None)),
        (TypeName.INT, (-(2**31), 2**31 - 1, None)),
        (TypeName.BIGINT, (-(2**63), 2**63 - 1, 0, None)),
        (TypeName.DATE, (dt.date(1, 1, 1), dt.date(2024, 2, 29), dt.date(9999, 12, 31), None)),
        (TypeName.FLOAT, (1.5, -0.0, float("inf"), None)),
        (TypeName.DOUBLE, (0.1, 5e-324, float("-inf"), None)),
        (TypeName.DECIMAL, (Decimal(12), Decimal(-12), None)),
        (TypeName.STRING, ("", "a\0b", " ' ", "\U0001f600", "e\u0301", None)),
    ],
)
def test_values_that_come_without_arrow_are_those_that_come_with_it(
    kind: TypeName, values: tuple[Value, ...]
) -> None:
    engine = DuckEngine()
    data = engine.load([(value,) for value in values], ["x"], [ColumnType(kind)])
    query = sql.rows(data.stored.name, 1, ordered=True)
    found = rows_of(data.stored, query)
    assert found == found_rows(engine.database.rows(query, [data.stored.name]), 1)
    assert {(type(value), value) for (value,) in found} == {(type(value), value) for value in values}


@pytest.mark.parametrize("rows", [[], [()]])
def test_a_relation_without_columns_has_a_row_or_none(rows: list[tuple[()]]) -> None:
    engine = DuckEngine()
    data = engine.load(rows, [], [])
    assert (engine.sample(data, 9), engine.fetch(data, 9)) == (rows, frozenset(rows))


def test_a_relation_is_dropped_once_nobody_refers_to_it() -> None:
    engine = DuckEngine()
    given = engine.load([(1,), (2,)], ["x"], [ANY])
    program = parse_program("w(X) :- r(X), X > 1.  v(X) :- w(X).  v(X) :- r(X).")
    derived = engine.evaluate(program, V, Facts({R: given}))
    both = engine.union([derived, given])
    del derived
    assert engine.count(both) == 2  # a view keeps what it reads
    engine.release()
    gc.collect()
    assert tables(engine) == 3
    del both
    gc.collect()
    assert tables(engine) == 1


def test_rules_over_the_same_tables_are_evaluated_once() -> None:
    engine = DuckEngine()
    facts = Facts({R: engine.load([(1,), (2,)], ["x"], [ANY])})
    program = parse_program("w(X) :- r(X), X > 1.  v(X) :- w(X).")
    engine.nonempty(program, [V], facts)
    first = engine.evaluate(program, V, facts)
    assert engine.evaluate(program, V, facts).stored is first.stored
    other = Facts({R: engine.load([(3,)], ["x"], [ANY])})
    assert engine.sample(engine.evaluate(program, V, other), 9) == [(3,)]


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (ColumnType(TypeName.STRING), ColumnType(TypeName.INT)),
        (ColumnType(TypeName.DATE), ColumnType(TypeName.INT)),
        (ColumnType(TypeName.TIMESTAMP_NTZ), ColumnType(TypeName.TIMESTAMP)),
        (ColumnType(TypeName.BOOLEAN), ColumnType(TypeName.INT)),
        (ColumnType(TypeName.DECIMAL, 16, 2), ColumnType(TypeName.DOUBLE)),
        (ColumnType(TypeName.DECIMAL, 38, 30), ColumnType(TypeName.BIGINT)),
    ],
)
@pytest.mark.parametrize(
    "rule", ["v(X) :- r(X), s(X).", "v(X) :- r(X), not s(X).", "v(X) :- r(X), s(Y), X < Y."]
)
def test_columns_that_compare_otherwise_than_in_spark_are_refused(
    left: ColumnType, right: ColumnType, rule: str
) -> None:
    engine = DuckEngine()
    facts = Facts({R: engine.load([], ["x"], [left]), S: engine.load([], ["x"], [right])})
    with pytest.raises(InputError) as refused:
        engine.evaluate(parse_program(rule), V, facts)
    assert refused.value.diagnostics[0].code is Code.ENGINE_DIFFERS


def test_an_interrupt_while_rows_are_handed_over_is_the_end_of_the_budget(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    within_budget = databases.within_budget

    @contextmanager
    def late(connection: duckdb.DuckDBPyConnection) -> Iterator[None]:
        with within_budget(connection):
            yield
            begun = time.thread_time()
            while left() < 1 and time.thread_time() < begun + 0.4:  # it is looked at ten times a second
                pass

    given = DuckEngine().load([(1,)], ["x"], [ANY])
    monkeypatch.setattr(databases, "within_budget", late)
    query = sql.rows(given.stored.name, 1)
    for run in (given.stored.database.plain_rows, given.stored.database.rows):
        with pytest.raises(BudgetSpentError, match="looking"), limit(0.05, "looking"):
            run(query, [given.stored.name])


def test_decimals_too_long_for_duckdb_are_left_to_spark() -> None:
    """They are no error of the values: Spark cuts digits behind the point."""
    rows = pa.table(
        {
            "id": pa.array([1], pa.int32()),
            "x": pa.array([Decimal("1000000000000000.0000")], pa.decimal128(24, 4)),
            "y": pa.array([Decimal(10) ** 18], pa.decimal128(20, 0)),
        }
    )
    program = """create table q (id int not null primary key, x decimal(24,4) not null, y decimal(20,0) not null);
        create view c as select id, x, y from q; create view v as select id, x * y / nullif(y, 0) as e from q;"""
    made = selfmaint.build(
        program,
        {"c": rows.slice(0, 0), "v": pa.table({"id": pa.array([], pa.int32()), "e": []})},
        engine="duckdb",
    )
    update = selfmaint.Update.from_frames(made, {"q": rows}, effective=True)
    with pytest.raises(InputError, match="more digits than DuckDB holds") as refused:
        made.maintain(update)
    assert refused.value.diagnostics[0].code is Code.ENGINE_DIFFERS
