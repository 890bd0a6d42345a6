"""The guide's table of classes: each example in it, with the verdicts that it tells of."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa
import pytest

import selfmaint
from datalog.model import Row
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.engine.memory import MemoryEngine

PAGE = Path(__file__).resolve().parents[2] / "docs" / "guide" / "classes.md"
RULES = """.decl c(id: int not null, n: string not null) key(id).
.decl o(id: int not null, c: int not null, t: int not null) key(id){}.
.decl r(x: int not null). .decl q(x: int not null).
"""
FOREIGN = " foreign(c) references c(id)"
OF_SOME = "of some orders"
SQL = """create table c (id int not null primary key, n string not null);
create table o (id int not null primary key, c int not null, t int not null);
create materialized view v as """

Rows = dict[str, set[Row]]
JOIN = "v(O, C, T, N) :- o(O, C, T), c(C, N)."
BOTH = "v(X) :- r(X).  v(X) :- q(X)."
ALL = "SELECT c, t FROM o WHERE t > 1 UNION ALL SELECT id, t FROM o"
OVER_UNION = "SELECT c, count(*) AS k FROM (SELECT c FROM o UNION ALL SELECT id FROM c) AS u GROUP BY c"
FIGURES = "SELECT 1 AS w, count(*) AS k FROM o UNION ALL SELECT 2, count(*) FROM c"
HAVING = "SELECT c, count(*) AS k FROM o GROUP BY c HAVING count(*) > 1"
OUTER = "SELECT o.id, c.id AS c, c.n FROM o LEFT JOIN c ON o.c = c.id"
LABELS = "SELECT coalesce(c.n, '?') AS n, count(*) AS k FROM o LEFT JOIN c ON o.c = c.id GROUP BY coalesce(c.n, '?')"
MEAN = "SELECT c, cast(count(*) AS int) AS k, sum(t) AS s, round(avg(t), 1) AS mean FROM o GROUP BY c"
COUNTED = "SELECT c.id, c.n, h.k FROM c JOIN (SELECT c, count(*) AS k FROM o GROUP BY c) h ON h.c = c.id"
SUMMED_UP = (
    "SELECT c.id, c.n, coalesce(h.k, 0) AS k, CASE WHEN h.k > 1 THEN 'often' END AS kind FROM c "
    "LEFT JOIN (SELECT c, count(*) AS k FROM o GROUP BY c) h ON h.c = c.id"
)
FULL = (
    "SELECT coalesce(a.c, c.id) AS c, a.k, c.n FROM (SELECT c, count(*) AS k FROM o GROUP BY c) a "
    "FULL JOIN c ON a.c = c.id"
)
WRITTEN = "SELECT id, n FROM c UNION ALL SELECT -1, 'n/a'"
PLACES = "SELECT id, rank() OVER (ORDER BY n) AS place FROM c"
PLACED = "SELECT o.id, p.place FROM o JOIN places p ON p.id = o.c"
UNMATCHED = "SELECT c.id, c.n FROM c WHERE NOT EXISTS (SELECT 1 FROM o WHERE o.c = c.id)"
SO_FAR = "SELECT id, c, t, sum(t) OVER (PARTITION BY c ORDER BY id) AS so_far FROM o"
LATEST = (
    "SELECT c, id, t FROM (SELECT *, row_number() OVER (PARTITION BY c ORDER BY t DESC, id) AS n FROM o) AS p "
    "WHERE n = 1"
)
MEDIANS = "SELECT c, percentile(t, 0.5) AS m FROM o WHERE t > 100 GROUP BY c"
SOLD = "SELECT c.n, percentile(o.t, 0.5) AS m FROM o JOIN c ON o.c = c.id GROUP BY c.n"
SHOWN = "SELECT o.id, coalesce(c.id, 0) AS k FROM o LEFT JOIN c ON o.c = c.id AND c.n LIKE 'a%'"
MANY: set[Row] = {(number,) for number in range(1, 500)}


@dataclass(frozen=True)
class Told:
    """What the page tells of one example."""

    example: str
    verdict: str
    stored: set[Row]
    inserted: Rows = field(default_factory=dict)
    deleted: Rows = field(default_factory=dict)
    constraint: str = ""

    @property
    def program(self) -> str:
        if self.example.startswith("SELECT"):
            null = "" if self.constraint == OF_SOME else " not null"
            column = f"c int{null} references c, t" if self.constraint else "c int not null, t"
            return f"{SQL.replace('c int not null, t', column)}{self.example};"
        return RULES.format(self.constraint) + self.example


TOLD = [
    Told(JOIN, "yes", {(1, 1, 5, "A")}, {"o": {(2, 1, 6)}}),
    Told(JOIN, "no", {(1, 1, 5, "A")}, {"o": {(2, 7, 6)}}),
    Told("v(O, P, C, T, U) :- o(O, C, T), o(P, C, U).", "yes", {(1, 1, 1, 5, 5)}, {"o": {(2, 1, 6)}}),
    Told("v(O, C, T, N) :- o(O, C, T), c(C, N), T > 100.", "yes", {(1, 1, 500, "A")}, {"o": {(2, 7, 6)}}),
    Told("v(O, C, T, N) :- o(O, C, T), c(C, N), T > 100.", "no", {(1, 1, 500, "A")}, {"o": {(2, 7, 600)}}),
    Told(JOIN, "yes", {(1, 1, 5, "A")}, {"c": {(7, "B")}}, constraint=FOREIGN),
    Told(JOIN, "no", {(1, 1, 5, "A")}, {"c": {(7, "B")}}),
    Told("SELECT id, c, t FROM o WHERE t = 1 OR t > 100", "yes", {(1, 1, 1)}, {"o": {(2, 7, 600)}}),
    Told("SELECT id, c, t FROM o WHERE t = 1 OR t > 100", "yes", {(1, 1, 1)}, {}, {"o": {(1, 1, 1)}}),
    Told("v(C) :- o(O, C, T).", "yes", {(1,)}, {"o": {(2, 7, 6)}}),
    Told("v(C) :- o(O, C, T).", "no", {(1,)}, {}, {"o": {(1, 1, 5)}}),
    Told("v(C) :- o(O, C, T).", "yes", MANY, {"o": {(2, 700, 6)}}),
    Told("v(C) :- o(O, C, T).", "no", MANY, {}, {"o": {(1, 1, 5)}}),
    Told(MEDIANS, "yes", {(1, 200.0)}, {"o": {(2, 7, 6)}}),
    Told(MEDIANS, "yes", {(1, 200.0)}, {}, {"o": {(2, 7, 6)}}),
    Told(SOLD, "yes", {("A", 5.0)}, {"c": {(7, "B")}}, constraint=FOREIGN),
    Told(SOLD, "undecided", {("A", 5.0)}, {"c": {(7, "B")}}),
    Told(MEDIANS, "undecided", {(1, 200.0)}, {"o": {(2, 7, 600)}}),
    Told(BOTH, "yes", {(1,)}, {"r": {(7,)}}),
    Told(BOTH, "no", {(1,)}, {}, {"r": {(1,)}}),
    Told(BOTH, "yes", MANY, {"r": {(700,)}}),
    Told(BOTH, "no", MANY, {}, {"r": {(7,)}}),
    Told(ALL, "yes", {(7, 5), (1, 5)}, {"o": {(2, 1, 6)}}),
    Told(ALL, "yes", {(7, 5), (1, 5)}, {}, {"o": {(1, 7, 5)}}),
    *(
        Told(
            "SELECT o.id, o.c, c.n, o.t * 2 AS d FROM o JOIN c ON o.c = c.id",
            verdict,
            {(1, 1, "A", 10)},
            {"o": {(2, customer, 5)}},
        )
        for customer, verdict in ((1, "yes"), (7, "no"))
    ),
    Told("SELECT c, count(*) AS k, max(t) AS m FROM o GROUP BY c", "yes", {(1, 2, 9)}, {"o": {(5, 1, 5)}}),
    Told(
        "SELECT c, count(*) AS k, max(t) AS m FROM o GROUP BY c",
        "no",
        {(1, 3, 9)},
        {},
        {"o": {(5, 1, 9)}},
    ),
    Told(OVER_UNION, "yes", {(1, 2), (7, 1)}, {}, {"o": {(2, 1, 6)}}),
    Told(OVER_UNION, "yes", {(1, 2), (7, 1)}, {"o": {(2, 1, 6)}}),
    Told(FIGURES, "yes", {(1, 2), (2, 1)}, {"o": {(2, 1, 6)}}),
    Told(FIGURES, "yes", {(1, 2), (2, 1)}, {}, {"o": {(2, 1, 6)}}),
    Told("SELECT o.c, c.n FROM o JOIN c ON o.c = c.id", "yes", {(1, "A", 2)}, {"o": {(2, 1, 5)}}),
    Told("SELECT o.c, c.n FROM o JOIN c ON o.c = c.id", "yes", {(1, "A", 2)}, {}, {"o": {(2, 1, 5)}}),
    Told("SELECT o.c, c.n FROM o JOIN c ON o.c = c.id", "no", {(1, "A", 2)}, {"o": {(2, 7, 5)}}),
    Told("SELECT o.id, c.n FROM o JOIN c ON o.c = c.id", "yes", {(1, "A")}, {}, {"o": {(1, 7, 5)}}),
    Told(HAVING, "yes", {(1, 2)}, {"o": {(3, 1, 6)}}),
    Told(HAVING, "yes", {(1, 2)}, {}, {"o": {(3, 1, 6)}}),
    Told(HAVING, "no", {(1, 2)}, {"o": {(3, 7, 6)}}),
    Told(SO_FAR, "yes", {(1, 1, 6, 6)}, {"o": {(3, 1, 7)}}),
    Told(SO_FAR, "yes", {(1, 1, 6, 6)}, {"o": {(1, 1, 7)}}, {"o": {(1, 1, 6)}}),
    Told(SHOWN, "yes", {(1, 1), (2, 0)}, {}, {"o": {(2, 7, 6)}}),
    Told(SHOWN, "undecided", {(1, 1), (2, 0)}, {"o": {(3, 7, 6)}}),
    Told(LATEST, "yes", {(1, 1, 6)}, {"o": {(3, 1, 7)}}),
    Told("SELECT c, count(DISTINCT t) AS k FROM o GROUP BY c", "no", {(1, 2)}, {"o": {(3, 1, 6)}}),
    Told("v(O, C, T) :- o(O, C, T), not c(C, _).", "undecided", {(1, 1, 5)}, {"o": {(3, 1, 6)}}),
    Told(OUTER, "yes", {(1, 1, "A")}, {"o": {(3, 1, 6)}}),
    Told(OUTER, "no", {(1, 1, "A")}, {"o": {(3, 7, 6)}}),
    Told(LABELS, "yes", {("?", 1)}, {"o": {(3, None, 6)}}, constraint=OF_SOME),
    Told(LABELS, "yes", {("?", 1)}, {"o": {(3, 7, 6)}, "c": {(7, "B")}}, constraint=OF_SOME),
    Told(LABELS, "undecided", {("?", 1)}, {"o": {(3, 7, 6)}}, constraint=OF_SOME),
    Told(UNMATCHED, "yes", {(1, "A")}, {"c": {(7, "B")}}, constraint=FOREIGN),
    Told(MEAN, "yes", {(1, 1, 5, 5.0)}, {"o": {(3, 1, 6)}}),
    Told(MEAN, "yes", {(1, 2, 10, 5.0)}, {}, {"o": {(3, 1, 6)}}),
    Told(COUNTED, "yes", {(1, "A", 1)}, {"o": {(3, 1, 6)}}),
    Told(SUMMED_UP, "yes", {(1, "A", 1, None)}, {"o": {(3, 1, 6)}}),
    Told(SUMMED_UP, "yes", {(1, "A", 1, None)}, {}, {"o": {(3, 1, 6)}}),
    Told(SUMMED_UP, "yes", {(1, "A", 1, None)}, {"c": {(2, "B")}}, constraint=FOREIGN),
    Told(SUMMED_UP, "yes", {(1, "A", 1, None)}, {"c": {(1, "B")}}, {"c": {(1, "A")}}),
    Told(FULL, "yes", {(1, 1, "A"), (2, None, "B"), (3, 1, None)}, {"o": {(3, 2, 6)}}),
    Told(FULL, "yes", {(1, 1, "A"), (2, None, "B"), (3, 1, None)}, {}, {"o": {(3, 3, 6)}}),
    Told(FULL, "yes", {(1, 1, "A"), (2, None, "B"), (3, 1, None)}, {"c": {(3, "C")}}),
    Told(FULL, "yes", {(1, 1, "A")}, {"c": {(1, "B")}}, {"c": {(1, "A")}}),
    Told(WRITTEN, "yes", {(1, "A"), (-1, "n/a")}, {"c": {(2, "B")}}),
    Told(WRITTEN, "yes", {(1, "A"), (-1, "n/a")}, {}, {"c": {(1, "A")}}),
    Told(UNMATCHED, "yes", {(1, "A")}, {"o": {(3, 1, 6)}}, constraint=FOREIGN),
    Told(UNMATCHED, "yes", {(1, "A")}, {}, {"c": {(7, "B")}, "o": {(3, 7, 6)}}, FOREIGN),
    Told(UNMATCHED, "no", {(1, "A")}, {}, {"o": {(3, 7, 6)}}, FOREIGN),
    Told("SELECT o.t, c.n FROM o LEFT JOIN c ON o.c = c.id", "undecided", {(5, "A")}, {"o": {(3, 1, 6)}}),
]


def frozen(rows: Rows) -> dict[str, frozenset[Row]]:
    return {name: frozenset(its) for name, its in rows.items()}


@pytest.mark.parametrize("told", TOLD, ids=lambda told: f"{told.example[:40]} {told.verdict}")
def test_an_example_is_decided_as_the_page_says(told: Told) -> None:
    if " OVER (" in told.example or told.example == SHOWN:  # a text, which the engine in memory does not run
        found = by_duckdb(told)
    else:
        warehouse = build(told.program, {"v": frozenset(told.stored)}, MemoryEngine())
        update = Update(frozen(told.inserted), frozen(told.deleted), effective=True)
        found = warehouse.check(update)["v"].kind.value
    assert found == told.verdict


@pytest.mark.parametrize("is_more", [True, False])
def test_a_view_over_one_that_stays_as_it_is_is_one_over_a_table(is_more: bool) -> None:
    program = SQL.replace(
        "create materialized view v as ", f"create view places as {PLACES};create view v as {PLACED};"
    )

    def table(*rows: Row, names: str) -> pa.Table:
        return pa.table(
            {
                n: pa.array(its, pa.int32())
                for n, its in zip(names.split(), zip(*rows, strict=True), strict=True)
            }
        )

    stored = {"places": table((1, 1), (2, 2), names="id place"), "v": table((5, 2), names="id place")}
    with selfmaint.build(program, stored, engine="duckdb") as warehouse:
        order = {"o": table((6, 1, 9) if is_more else (5, 2, 9), names="id c t")}
        sides = {"inserted": order} if is_more else {"deleted": order}
        update = selfmaint.Update.from_frames(warehouse, **sides, effective=True)
        assert warehouse.check(update)["v"].kind.value == "yes"


def by_duckdb(told: Told) -> str:
    """The verdict on a view of whole numbers."""
    catalog = catalog_of(told.program)
    columns = {"v": catalog.view("v").stored_columns, **{n: r.columns for n, r in catalog.relations.items()}}

    def table(name: str, rows: set[Row]) -> pa.Table:
        values = zip(*rows, strict=True)
        return pa.table({c: pa.array(its, pa.int32()) for c, its in zip(columns[name], values, strict=True)})

    with selfmaint.build(told.program, {"v": table("v", told.stored)}, engine="duckdb") as warehouse:
        sides = [{n: table(n, rows) for n, rows in side.items()} for side in (told.inserted, told.deleted)]
        update = selfmaint.Update.from_frames(warehouse, *sides, effective=True)
        return warehouse.check(update)["v"].kind.value


def test_the_page_has_these_examples_and_no_others() -> None:
    table = PAGE.read_text(encoding="utf-8").split("| views | decided |", 1)[1].split("\n\n", 1)[0]
    examples = [line.split(" | ")[2] for line in table.splitlines()[2:]]
    known = dict.fromkeys([*(told.example for told in TOLD), PLACES, PLACED])
    assert all(any(f"`{one}`" in example for example in examples) for one in known)
    apart = [example for example in examples if not any(f"`{one}`" in example for one in known)]
    assert [example.split(".")[0] for example in apart] == ["the first with `foreign(c) references c`"]
