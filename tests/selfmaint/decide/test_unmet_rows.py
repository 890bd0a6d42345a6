"""Rows of an update that a view does not read: held against recomputing the views in DuckDB, on small tables."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalog.model import Predicate, Row, Variable, Version
from selfmaint.api.file.programs import catalog_of
from selfmaint.decide.decision import Decision
from selfmaint.decide.procedure import check
from selfmaint.decide.rows_read import rows_read
from selfmaint.decide.unmet_rows import unmet
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.situation import Situation
from tests.effort import effort
from tests.oracle.sql_views import Tables, contents

COLUMNS = {"r": ("k", "a", "b"), "s": ("h", "d")}
DECLARED = (
    "CREATE TABLE r (k INT PRIMARY KEY, a INT NOT NULL, b INT); CREATE TABLE s (h INT PRIMARY KEY, d INT);"
)
CONDITIONS = (
    "r.a = 1",
    "r.a = 1 AND r.b IS NULL",
    "r.b > 1",
    "r.a IN (1, 2)",
    "r.a = r.b",
    "r.a <> 2 AND r.b = 1",
    "(r.a = 1 OR r.b = 2)",
    "r.b IS NOT NULL",
    "r.a BETWEEN 1 AND 1",
)
SOURCES = ("r", "r JOIN s ON r.a = s.h AND s.d = 1", "r JOIN s ON r.b = s.d", "r JOIN r AS o ON r.a = o.k")
SHOWN = (
    "SELECT r.k, r.a FROM {} WHERE {}",
    "SELECT DISTINCT r.a FROM {} WHERE {}",
    "SELECT r.a, COUNT(*) AS n, MAX(r.b) AS m FROM {} WHERE {} GROUP BY r.a",
    "SELECT COUNT(*) AS n FROM {} WHERE {}",
    "SELECT r.k FROM {} WHERE {} UNION ALL SELECT h FROM s WHERE d = 2",
    "SELECT s.h FROM s WHERE NOT EXISTS (SELECT 1 FROM {} WHERE {} AND r.k = s.h)",
)


def some_row(random: Random, key: int, width: int) -> Row:
    """A row with that key."""
    return (key, random.choice([0, 1, 2]), *(random.choice([0, 1, 2, None]) for _ in range(width - 2)))


def found(seed: int) -> tuple[frozenset[str], frozenset[str]]:
    """The views that are said to read no row of an update, which need not be effective, and those that stay."""
    random = Random(seed)
    chosen = [
        random.choice(SHOWN).format(random.choice(SOURCES), random.choice(CONDITIONS)) for _ in range(4)
    ]
    views = "\n".join(f"CREATE VIEW v{i} AS {query};" for i, query in enumerate(chosen))
    views += "CREATE VIEW w AS SELECT k FROM r WHERE a = 1; CREATE VIEW x AS SELECT k FROM w WHERE k > 2;"
    before: Tables = {
        name: {k: some_row(random, k, len(its)) for k in random.sample(range(5), random.randint(0, 4))}
        for name, its in COLUMNS.items()
    }
    after = {name: dict(rows) for name, rows in before.items()}
    facts: dict[Predicate, set[Row]] = {}
    for name in random.choice([["r"], ["r"], ["s"], ["r", "s"]]):
        for key in random.sample(range(6), 2):
            old, new = before[name].get(key), some_row(random, key, len(COLUMNS[name]))
            if old is not None:
                facts.setdefault(Predicate(name, Version.DELETED), set()).add(old)
                del after[name][key]
            if old is None or random.random() < 0.5:
                facts.setdefault(Predicate(name, Version.INSERTED), set()).add(new)
                after[name][key] = new
    made = catalog_of(DECLARED + views)
    given_facts = {predicate: frozenset(rows) for predicate, rows in facts.items()}
    known = Decision(made).knowledge(MemoryEngine(), Facts(given_facts), Situation.of(given_facts))
    old_rows, new_rows = (contents(COLUMNS, tables, views) for tables in (before, after))
    return unmet(known, made.views), frozenset(n for n in old_rows if old_rows[n] == new_rows[n])


@given(st.integers(0, 2**32))
def test_what_reads_no_row_of_an_update_stays(seed: int) -> None:
    said, same = found(seed)
    assert said <= same


def test_many_views_are_said_to_read_none() -> None:
    cases = effort(75, 600)
    answers = [found(seed) for seed in range(cases)]
    assert sum(len(said) for said, _ in answers) > cases * 4 / 3


@pytest.mark.parametrize(
    ("row", "stay"),
    [
        ((9, 3, 3), {"plain", "grouped", "united", "over"}),
        ((9, 1, None), {"united"}),
        ((9, 3, 4), {"plain", "over"}),
    ],
)
def test_they_are_decided_without_a_test(row: Row, stay: set[str]) -> None:
    """Whatever their class: nothing is stored here that could tell more, and the update may not be effective."""
    views = """
    CREATE VIEW plain AS SELECT k, b FROM r WHERE a = 1;
    CREATE VIEW grouped AS SELECT a, SUM(b) AS t FROM r WHERE a = 1 OR b = 4 GROUP BY a;
    CREATE VIEW united AS SELECT k FROM r WHERE b = 4 UNION SELECT h FROM s;
    CREATE VIEW over AS SELECT b FROM plain;
    """
    made = catalog_of(DECLARED + views)
    facts = {Predicate(view.name): frozenset[Row]() for view in made.apart.views}
    facts |= {Predicate("r", Version.INSERTED): frozenset({row})}
    decision = Decision(made.apart)
    known = decision.knowledge(MemoryEngine(), Facts(facts), Situation.of(facts))
    said = unmet(known, made.apart.views)
    assert said == stay
    verdicts = check(known, made.apart.views)
    for name in said:
        verdict = verdicts[name]
        assert isinstance(verdict, SelfMaintainable)
        assert verdict.change is not None
        assert not verdict.change.gained | verdict.change.lost


def test_more_kinds_of_rows_than_are_told_apart_are_all_rows() -> None:
    few, many = (" OR ".join(f"a = {i}" for i in range(number)) for number in (6, 12))
    made = catalog_of(
        f"{DECLARED}CREATE VIEW v AS SELECT k FROM r WHERE {many}; CREATE VIEW w AS SELECT k FROM r WHERE {few};"
    )
    kinds = {view.name: rows_read(made, view)["r"] for view in made.views}
    assert len(kinds["w"]) == 6
    (every,) = kinds["v"]
    assert (every.tests, every.columns) == ((), {0, 1})
    assert all(isinstance(term, Variable) for term in every.atom.terms)
    assert {part.columns for part in kinds["w"]} == {frozenset({0})}
