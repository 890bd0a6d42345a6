"""Generated programs on a real Spark session.

Oracle: the rows that the definition gives, computed row by row (`tests.datalog.sql.sql_programs.meaning`). Many
programs make one job: each query is tagged with its number, its rows are cast to strings, all are united.
Columns of all types, NULLs, hostile strings and names, negations up to three deep.
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from random import Random
from typing import TYPE_CHECKING

import pytest
from sqlglot import exp

from datalog.model import Predicate, Program, Row, Value
from datalog.sql import select, text, union_all
from datalog.syntax import parse_program
from tests.datalog.sql.sql_programs import Generator, Relation, meaning, random_facts, relations, tables_of
from tests.effort import effort
from tests.many_statements import interpreting_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KINDS = ("int", "string", "boolean", "date", "decimal(9,2)", "double", "timestamp")
STORED = relations(KINDS)
BATCHES, PROGRAMS = effort(2, 10), 25

Rows = Counter[Row]


@dataclass(frozen=True)
class Case:
    program: Program
    goal: Predicate
    types: tuple[str, ...]
    query: exp.Query


def cases(random: Random, number: int) -> Iterator[Case]:
    for _ in range(number):
        # Few relations a program, so that they join.
        some = [*STORED[:3], *random.sample(STORED[3:], 2)]
        program, goal, types = Generator(random, some).program()
        columns = [f"c{position}" for position in range(max(len(types), 1))]
        hints = random.random() < 0.5
        query = select(program, goal, tables_of(STORED), columns=columns, hints=hints)
        yield Case(program, goal, types or ("boolean",), query)


def tagged(number: int, query: exp.Query) -> exp.Query:
    """The query's rows as an array of strings each, behind a number."""
    query = query.copy()
    with_ = query.args.get("with_")
    query.set("with_", None)
    strings = [exp.cast(exp.column(name, quoted=True), "string") for name in query.named_selects]
    outer = exp.select(exp.Literal.number(number), exp.Array(expressions=strings)).from_(query.subquery("q"))
    if with_:
        outer.set("with_", with_)
    return outer


def value(kind: str, written: str | None) -> Value:
    if written is None:
        return None
    match kind:
        case "int":
            return int(written)
        case "boolean":
            return {"true": True, "false": False}[written]
        case "date":
            return dt.date.fromisoformat(written)
        case "timestamp":
            return dt.datetime.fromisoformat(written)
        case "double":
            return float(written)
        case "string":
            return written
        case _:
            return Decimal(written)


def run(spark: SparkSession, batch: Sequence[Case]) -> list[Rows]:
    """The rows of each case, from one query."""
    sql = text(union_all([tagged(number, case.query) for number, case in enumerate(batch)]))
    found: list[Rows] = [Counter() for _ in batch]
    for number, strings in spark.sql(sql).collect():
        row = zip(batch[number].types, strings, strict=True)
        found[number][tuple(value(kind, written) for kind, written in row)] += 1
    return found


def load(spark: SparkSession, stored: Sequence[Relation], facts: Mapping[Predicate, frozenset[Row]]) -> None:
    """Temporary views of the rows, each row twice: a table may hold a row more than once."""
    for one in stored:
        schema = ", ".join(
            f"{quoted(n)} {kind}" for n, kind in zip(one.table.columns, one.types, strict=True)
        )
        rows = [*facts[one.predicate], *facts[one.predicate]]
        frame = spark.createDataFrame(rows, schema).coalesce(1).cache()
        frame.createOrReplaceTempView(quoted(one.table.name[-1]))


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


@pytest.mark.parametrize("seed", range(BATCHES))
def test_queries_give_the_meaning_each_row_once(spark: SparkSession, seed: int) -> None:
    random = Random(seed)
    session = interpreting_session(spark)
    facts = random_facts(random, STORED)
    load(session, STORED, facts)
    batch = list(cases(random, PROGRAMS))
    for case, rows in zip(batch, run(session, batch), strict=True):
        expected = meaning(case.program, case.goal, facts)
        shown = "\n".join(map(str, case.program.rules))
        assert rows == Counter(row or (True,) for row in expected), f"{shown}\n{text(case.query)}"


LIMITS = (
    # a column two queries out; through a negation without atoms; three out
    "v(X, Y) :- r(X, Y), not (u(Z), not r(X, Z)).",
    "v(X, Y) :- r(X, Y), not (u(Z), not (Z = 1, not r(X, Z))).",
    "v(X, Y) :- r(X, Y), not (u(Z), not (s(Z, W), not (r(X, W2), s(W2, W), not r(Y, W2)))).",
    # a disjunction of an outer column and a subquery, inside a subquery
    "v(X, Y) :- r(X, Y), not (s(Z, _), not (X != Z, not u(Z))).",
    "v(X) :- r(X, Y), not (s(Z, _), Z = X, not (Y = 2, not (u(Z), r(Z, Y)))).",
    # subqueries under OR, without FROM, over a union, over the same tables as around
    "v(X) :- r(X, _), not (X = 1, not (u(Y), not r(X, Y)), not s(X, _)).",
    "v(1) :- not (u(X), not r(X, X)).",
    "w(X) :- u(X). w(X) :- r(_, X), not u(X). v(X) :- s(X, _), not (w(Y), not (w(Y), Y <= X)).",
    # nothing but tests of outer columns in a subquery
    "v(X, Y) :- r(X, Y), not (u(_), X is not null, Y < X).",
    # a head that repeats a variable, matched with two outer ones; null in a head; nothing in a head
    "w(X, X) :- u(X). v(X, Y) :- r(X, Y), not w(X, Y).",
    "w(null). w(X) :- u(X). v(X) :- r(X, _), w(X).",
    "w :- u(3). v(X) :- u(X), not w.",
)


def test_what_spark_limits(spark: SparkSession) -> None:
    session = interpreting_session(spark)
    rows = frozenset(product((1, 2, 3, None), repeat=2)) - {(1, 2), (2, 2), (3, None)}
    facts = {
        Predicate("r"): rows,
        Predicate("s"): frozenset({(1, "a"), (2, None), (3, "a")}),
        Predicate("u"): frozenset({(1,), (3,)}),
    }
    load(session, STORED[:3], facts)
    goal = Predicate("v")
    programs = [parse_program(program) for program in LIMITS]
    tables = tables_of(STORED)
    batch = [
        Case(program, goal, ("int",) * program.rules_for(goal)[0].head.arity, select(program, goal, tables))
        for program in programs
    ]
    expected = [Counter(meaning(program, goal, facts)) for program in programs]
    assert dict(zip(LIMITS, run(session, batch), strict=True)) == dict(zip(LIMITS, expected, strict=True))
