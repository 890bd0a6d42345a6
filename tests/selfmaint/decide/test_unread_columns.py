"""Updates of columns that a view does not read: held against recomputing the views in DuckDB, on small tables."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from datalog.model import Predicate, Row, Version
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.decide.decision import Decision
from selfmaint.decide.unread_columns import untouched
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.situation import Situation
from tests.effort import effort
from tests.oracle.sql_views import contents, some_condition, update_between

TABLES = {"r": ("k", "a", "b", "c"), "s": ("h", "d", "e")}
DECLARED = """
CREATE TABLE r (k INT PRIMARY KEY, a INT NOT NULL, b INT, c INT);
CREATE TABLE s (h INT PRIMARY KEY, d INT, e INT);
"""
JOINS = ("", " JOIN s ON r.a = s.h", " JOIN s ON r.b = s.d", " JOIN r AS o ON r.a = o.k")


def view(random: Random, name: str) -> str:
    """A random view: it projects, groups or keeps duplicates."""
    join = random.choice(JOINS)
    columns = [f"r.{c}" for c in TABLES["r"]]
    columns += ["s.h", "s.d", "s.e"] if " s " in join else ["o.k", "o.b", "o.c"] if join else []
    shown = random.sample(columns, random.randint(1, 3))
    where = some_condition(random, columns)
    listed = ", ".join(f"{c} AS c{i}" for i, c in enumerate(shown))
    match random.randrange(4):
        case 0:
            measures = f"COUNT(*) AS n, SUM({random.choice(columns)}) AS total"
            text = f"SELECT {listed}, {measures} FROM r{join}{where} GROUP BY {', '.join(shown)}"
        case 1:
            text = f"SELECT DISTINCT {listed} FROM r{join}{where}"
        case 2:
            text = f"SELECT {listed}, {random.choice(columns)} + 1 AS more FROM r{join}{where}"
        case _:
            text = f"SELECT {listed} FROM r{join}{where}"
    return f"CREATE VIEW {name} AS {text};"


def changed(random: Random, rows: dict[int, Row], width: int) -> dict[int, Row]:
    """A table after an update that mostly changes one column."""
    after = dict(rows)
    column = random.randrange(1, width)
    for key in [k for k in rows if random.random() < 0.5]:
        at = column if random.random() < 0.9 else random.randrange(1, width)
        its = list(rows[key])
        its[at] = random.choice([0, 1, 2] if at == 1 else [0, 1, 2, None])
        after[key] = tuple(its)
    if random.random() < 0.2:
        after.pop(random.choice([0, 1, 2]), None)
    if random.random() < 0.2:
        after[9] = (9, *(random.choice([0, 1, 2]) for _ in range(width - 1)))
    return after


def found(seed: int) -> tuple[frozenset[str], frozenset[str]]:
    """The views that are said to stay as they are, and those that do."""
    random = Random(seed)
    views = "\n".join(view(random, f"v{i}") for i in range(4))
    before = {
        name: {
            k: (
                k,
                *(random.choice([0, 1, 2] if i == 0 else [0, 1, 2, None]) for i in range(len(columns) - 1)),
            )
            for k in random.sample(range(5), random.randint(0, 4))
        }
        for name, columns in TABLES.items()
    }
    moving = random.choice([["r"], ["s"], ["r", "s"]])
    after = {n: changed(random, rows, len(TABLES[n])) if n in moving else rows for n, rows in before.items()}
    facts = update_between(before, after)
    made = catalog_of(DECLARED + views)
    situation = Situation.of(facts, effective=True)
    said = untouched(Decision(made).knowledge(MemoryEngine(), Facts(facts), situation), made.views)
    old, new = (contents(TABLES, tables, views) for tables in (before, after))
    return said, frozenset(name for name in old if old[name] == new[name])


@given(st.integers(0, 2**32))
def test_what_is_said_to_stay_stays(seed: int) -> None:
    said, same = found(seed)
    assert said <= same


def test_many_views_are_said_to_stay() -> None:
    cases = effort(75, 600)
    answers = [found(seed) for seed in range(cases)]
    assert sum(len(said) for said, _ in answers) > cases / 5


def test_a_view_kept_as_text_stays_where_what_it_reads_does() -> None:
    views = """
    CREATE VIEW v AS SELECT s.h, r.k FROM s LEFT JOIN r ON r.a = s.h;
    CREATE VIEW w AS SELECT h, ROW_NUMBER() OVER (PARTITION BY d ORDER BY h) AS n FROM s;
    CREATE VIEW x AS SELECT h, rand() AS n FROM s;
    """
    made = catalog_of(DECLARED + views)
    facts = {Predicate("r", Version.INSERTED): frozenset({(1, 1, 1, 1)})}
    known = Decision(made).knowledge(MemoryEngine(), Facts(facts), Situation.of(facts))
    said = untouched(known, made.views)
    assert said == {"w"}


def test_rows_that_are_not_null_are_told_apart_by_unique_columns() -> None:
    """Of rows without the value any number may be equal; no join meets them."""
    program = """CREATE TABLE s (h INT UNIQUE, d INT NOT NULL);
    CREATE TABLE r (k INT PRIMARY KEY, a INT NOT NULL, h INT);
    CREATE VIEW v AS SELECT r.a, COUNT(DISTINCT r.k % 2) AS n FROM r JOIN s ON r.h = s.h GROUP BY r.a;
    """
    made = build(program, {"v": frozenset({(5, 1)})}, MemoryEngine())

    def is_same(deleted: set[Row], inserted: set[Row]) -> bool:
        update = Update({"s": frozenset(inserted)}, {"s": frozenset(deleted)}, effective=True)
        return bool(made.check(update)["v"])

    assert is_same({(2, 3)}, {(2, 4)})
    assert is_same({(2, 3), (None, 1)}, {(2, 4), (None, 2)})
    assert not is_same({(2, 3)}, {(7, 3)})
