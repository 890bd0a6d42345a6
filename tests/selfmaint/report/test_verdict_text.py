"""Verdicts in words: which reasons are said, and what to do about a view that is not maintained."""

from __future__ import annotations

import pytest

from datalog.diagnostics import Diagnostic, Severity
from datalog.model import ColumnType, Row, TypeName
from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.decide.verdict import NOT_USED, PARTLY_USED, Undecided
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import Code, InputError
from selfmaint.report.errors import errors_text
from selfmaint.report.verdicts import because, verdicts_json
from tests.large_engine import LargeEngine

TOTALS = """create table o (id int not null primary key, c int not null, a int not null);
create materialized view t as select c, count(*) as n, max(a) as most from o group by c;
"""
LOST = Update[frozenset[Row]](deleted={"o": frozenset({(1, 1, 9)})}, effective=True)
UNION = "v(X) :- r(X, Y).\nv(X) :- s(X, Y), not r(X, Y)."
EITHER = Update[frozenset[Row]]({"r": frozenset({(2, 2)})})


def test_reasons_in_other_views_are_one_line_unless_all_are_asked_for() -> None:
    elsewhere = (f"`a` groups{PARTLY_USED}", f"`b` groups{PARTLY_USED}", f"`c` is text{NOT_USED}")
    verdict = Undecided("v", ("`v` groups", *elsewhere, "too many rows"))
    assert verdict.because.splitlines() == [
        "`v` groups",
        "too many rows",
        "what 3 other views, or parts of views, rule out is not used, or only partly (`check --verbose` names them)",
    ]
    assert because(verdict, verbose=True).splitlines() == list(verdict.reasons)
    assert Undecided("v", elsewhere[:1]).because == elsewhere[0]


@pytest.mark.parametrize(
    ("program", "stored", "update"),
    [(TOTALS, {"t": {(1, 2, 9)}}, LOST), (UNION, {"v": {(1,)}}, EITHER)],
    ids=["a group", "a class that is not decided"],
)
def test_the_way_out_of_strict_is_one_that_strict_leaves(
    program: str, stored: dict[str, set[Row]], update: Update[frozenset[Row]]
) -> None:
    contents = {name: frozenset(rows) for name, rows in stored.items()}
    hints = []
    for strict in (True, False):
        with pytest.raises(NotMaintainedError) as refused:
            build(program, contents, MemoryEngine()).maintain(update, strict=strict)
        (found,) = refused.value.diagnostics
        hints.append(str(found.hint))
    assert "--strict" in hints[0]
    assert "give a source" not in hints[0]
    assert "--strict" not in hints[1]


def test_a_yes_says_whether_a_no_would_have_been_proved() -> None:
    views = f"{TOTALS}create materialized view every as select id, c, a from o;"
    stored = {"t": frozenset({(1, 1, 9)}), "every": frozenset({(1, 1, 9)})}
    more = Update(inserted={"o": frozenset[Row]({(2, 1, 3)})}, effective=True)
    found = build(views, stored, MemoryEngine()).check(more)
    assert [verdict.word for verdict in found.values()] == ["yes, soundly", "yes"]
    assert [one["exact"] for one in verdicts_json(found)] == [False, True]
    assert "yes, soundly" in str(found)
    assert "<td>yes, soundly</td>" in found._repr_html_()


def test_a_row_on_both_sides_is_refused_with_what_to_do() -> None:
    row = frozenset({(1, 1, 9)})
    hints = []
    for effective in (True, False):
        both = Update[frozenset[Row]]({"o": row}, {"o": row}, effective=effective)
        with pytest.raises(InputError, match="SM301") as refused:
            build(TOTALS, {"t": frozenset({(1, 2, 9)})}, MemoryEngine()).check(both)
        hints.append(str(refused.value.diagnostics[0].hint))
    assert "--feed DIR" in hints[0]
    assert "came last" in hints[1]


def test_an_undecided_view_says_what_would_tell() -> None:
    tables = """create table c (id int primary key, n string not null);
    create table o (id int primary key, c int not null references c, a int not null);
    """
    view = (
        "create materialized view v as select c.n, count(*) as k, sum(o.a) as s "
        "from o join c on o.c = c.id group by c.n;"
    )
    copy = "create materialized view told as select * from c;"
    more = Update(inserted={"o": frozenset[Row]({(9, 1, 5)})}, effective=True)
    stored = {"v": frozenset[Row]({("Ann", 1, 3)})}
    open_ = build(tables + view, stored, LargeEngine()).check(more)["v"]
    assert isinstance(open_, Undecided)
    assert open_.reasons[0].startswith("rows of `c` that no view shows may change it")
    assert "`SELECT * FROM c`" in open_.reasons[0]
    with_copy = build(tables + view + copy, {**stored, "told": frozenset({(1, "Ann")})}, LargeEngine())
    assert with_copy.check(more)["v"]


def test_an_error_of_a_value_names_the_view_that_computes_it() -> None:
    views = """create table o (id int primary key, a int not null, b int not null);
    create materialized view share as select id, a / b as each from o;
    """
    engine, number, double = DuckEngine(), ColumnType(TypeName.INT), ColumnType(TypeName.DOUBLE)
    more = Update({"o": engine.load([(1, 4, 0)], ["id", "a", "b"], [number] * 3)}, effective=True)
    stored = {"share": engine.load([(2, 0.5)], ["id", "each"], [number, double])}
    with pytest.raises(InputError, match="SM104") as refused:
        build(views, stored, engine).maintain(more)
    assert refused.value.diagnostics[0].note == "it is computed in the view `share`"


def test_errors_stand_behind_warnings() -> None:
    found = [
        Diagnostic(Code.UNKNOWN_RELATION, "first"),
        Diagnostic(Code.ALWAYS_EMPTY, "second", severity=Severity.WARNING),
    ]
    assert errors_text(InputError(found)).index("second") < errors_text(InputError(found)).index("first")
