"""SQL against meaning.

Oracle: the rows that the definition gives, computed row by row (`sql_programs.meaning`). The query is printed
for SQLite here, which runs in the process and so shows wrong trees fast; Spark's own text and limits are the
business of `test_sql_on_spark.py`. Two types only: SQLite has neither dates nor booleans.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from random import Random

from hypothesis import assume, given
from hypothesis import strategies as st
from sqlglot import exp

from datalog.model import Program
from datalog.sql import read_set, select
from tests.datalog.sql.sql_programs import (
    PLAIN,
    Generator,
    Relation,
    meaning,
    random_facts,
    relations,
    tables_of,
)

STORED = relations(PLAIN)


def run(sql: str, stored: tuple[Relation, ...], facts: dict) -> Counter:
    with sqlite3.connect(":memory:") as connection:
        for one in stored:
            names = ", ".join(f'"{column}"' for column in one.table.columns)
            connection.execute(f'CREATE TABLE "{one.table.name[-1]}" ({names})')
            marks = ", ".join("?" * len(one.types))
            rows = [*facts[one.predicate], *facts[one.predicate]]  # a table may hold a row twice
            connection.executemany(f'INSERT INTO "{one.table.name[-1]}" VALUES ({marks})', rows)
        return Counter(connection.execute(sql).fetchall())


@given(random=st.randoms(use_true_random=False))
def test_query_gives_the_meaning_each_row_once(random: Random) -> None:
    program, goal, types = Generator(random, STORED, many_facts=False).program()
    facts = random_facts(random, STORED)
    small = {predicate for predicate in STORED if random.random() < 0.4}
    query = select(program, goal, tables_of(STORED), is_small=small.__contains__ if small else None)
    assume(not query.find(exp.Values))  # SQLite cannot name the columns of VALUES
    rows = run(query.sql("sqlite", identify=True), STORED, facts)
    expected = meaning(program, goal, facts)
    assert rows == Counter(expected if types else {(1,) for _ in expected}), show(program)


@given(random=st.randoms(use_true_random=False))
def test_read_set_is_of_stored_tables_that_the_program_mentions(random: Random) -> None:
    program, goal, _ = Generator(random, STORED).program()
    tables = tables_of(STORED)
    assert read_set(select(program, goal, tables)) <= {table.name for table in tables.values()}


def show(program: Program) -> str:
    return "\n".join(map(str, program.rules))
