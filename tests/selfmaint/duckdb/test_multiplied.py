"""Joins of rows that hardly share a value: whether there is a row is not asked of far more rows than are joined."""

from __future__ import annotations

from collections import Counter
from random import Random

import pyarrow as pa
import pytest

import selfmaint
from datalog.model import ColumnType, Predicate, TypeName
from datalog.syntax import parse_program
from selfmaint.duckdb import DuckEngine, factors
from selfmaint.engine.protocol import Facts

INT = ColumnType(TypeName.BIGINT)
MANY = 3_000
R, S, T = (Predicate(name) for name in "rst")
PROGRAM = parse_program("""
    product(X, Z) :- r(X, Y), s(Y, Z), t(X, Z).
    keyed(X, Z) :- r(X, Y), t(X, Z), Z < 0.
    few(X) :- r(X, Y), t(Y, X).
""")


def test_only_joins_that_multiply_count_as_having_a_row() -> None:
    engine = DuckEngine(most_few=0)
    rows = {
        R: [(i, i % 2) for i in range(MANY)],
        S: [(i % 2, i) for i in range(MANY)],
        T: [(i, i + MANY) for i in range(MANY)],
    }
    relations = {p: engine.load(its, ["c0", "c1"], [INT, INT]) for p, its in rows.items()}
    facts = Facts(relations, small=frozenset({R}))
    goals = list(PROGRAM.heads)
    assert not engine.nonempty(PROGRAM, goals, facts)
    engine.release()
    assert engine.nonempty(PROGRAM, goals, facts, bounded=True) == {Predicate("product")}


SCHEMA = """
    create table stay (id bigint not null primary key, patient bigint not null);
    create table ord (id bigint not null primary key, stay bigint not null references stay (id));
    create table res (id bigint not null primary key, ord bigint not null references ord (id), test string not null,
        value int);
    create view stays as select id as sid, patient from stay;
    create view tested as select s.patient, x.test, count(*) as n
        from res x join ord o on o.id = x.ord join stay s on s.id = o.stay group by s.patient, x.test;
    create view results as select s.patient, count(*) as n
        from res x join ord o on o.id = x.ord join stay s on s.id = o.stay group by s.patient;
"""


def hospital(random: Random) -> tuple[dict[str, pa.Table], dict[str, pa.Table], dict[str, pa.Table]]:
    """The views' rows, and what comes and goes: some stays with all that is theirs, and results with other values."""
    stays = [(i, random.randrange(2_000)) for i in range(5_000)]
    orders = [(i, random.randrange(5_000)) for i in range(10_000)]
    results = [
        (i, random.randrange(10_000), random.choice("ABCD"), random.randrange(9)) for i in range(30_000)
    ]
    patient, stay = dict(stays), dict(orders)
    gone = {i for i, its in orders if its < 40}
    lost = [row for row in results if row[1] in gone]
    corrected = [row for row in results if row[1] not in gone][:20]
    groups = Counter((patient[stay[order]], test) for _, order, test, _ in results)
    patients = Counter(patient[stay[order]] for _, order, *_ in results)

    def table(names: list[str], rows: list[tuple[object, ...]]) -> pa.Table:
        return pa.table({name: [row[i] for row in rows] for i, name in enumerate(names)})

    views = {
        "stays": table(["sid", "patient"], list(stays)),
        "tested": table(["patient", "test", "n"], [(*key, n) for key, n in groups.items()]),
        "results": table(["patient", "n"], list(patients.items())),
    }
    named = ["id", "ord", "test", "value"]
    come = {"res": table(named, [(*row[:3], 99) for row in corrected])}
    go = {
        "stay": table(["id", "patient"], list(stays[:40])),
        "ord": table(["id", "stay"], [row for row in orders if row[1] < 40]),
        "res": table(named, [*lost, *corrected]),
    }
    return views, come, go


@pytest.mark.parametrize("least", [1_000_000, 2_000])
def test_corrections_beside_deletions_are_decided_without_a_product(
    least: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that asks which patients' results these may be has far too many; what the view uses is the same."""
    monkeypatch.setattr(factors, "_LEAST_MULTIPLIED", least)
    monkeypatch.setattr(factors, "_TIMES", 0)
    ended = []
    real = factors.require_few_joined

    def noted(*args: object) -> None:
        try:
            real(*args)  # type: ignore[arg-type]
        except factors.TooManyJoinedError:
            ended.append(args)
            raise

    monkeypatch.setattr(factors, "require_few_joined", noted)
    views, come, go = hospital(Random(1))
    with selfmaint.build(SCHEMA, views, engine="duckdb", effective=True) as warehouse:
        update = selfmaint.Update.from_frames(warehouse, come, go)
        verdicts = warehouse.check(update)
        assert verdicts["tested"]
        assert verdicts["results"]
        maintained = warehouse.maintain(update, strict=True)
        lost = pa.table(maintained.deltas["tested"].lost).num_rows
        assert lost > 20
    assert bool(ended) is (least < 1_000_000)


def test_what_multiplies_where_a_goal_is_asked_counts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parts of a goal's own rule are made where it is asked, behind all steps."""
    engine = DuckEngine(most_few=0)
    relations = {R: engine.load([(1, 1)], ["c0", "c1"], [INT, INT])}

    def multiplied(*_: object) -> bool:
        raise factors.TooManyJoinedError

    monkeypatch.setattr(engine.programs.matches, "hold", multiplied)
    program = parse_program("goal(X) :- r(X, Y), Y < X.")
    assert engine.nonempty(program, [Predicate("goal")], Facts(relations), bounded=True)
