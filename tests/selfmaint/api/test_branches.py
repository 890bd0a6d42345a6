"""Unions whose rows tell which rule they come from, in all that a warehouse is asked for."""

from __future__ import annotations

import json

import pytest

from datalog.model import Row
from selfmaint.api.audit import AuditOptions, audit_catalog
from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import InputError
from selfmaint.fallback.settle import Readable
from selfmaint.report.explanation import explanation_json
from selfmaint.sources.memory import RowsSource
from selfmaint.warehouse.situation import Situation

TABLES = """create table c (id int not null primary key, a int not null);
create table o (id int not null primary key, c int not null references c, s string);
"""
VIEWS = """create materialized view m as select id, a from c where a in (1, 2);
create materialized view j as select o.id, c.a from o join c on o.c = c.id where c.a = 1 or c.a > 4;
create materialized view n as select c, count(*) as n from o group by c;
"""
CS = {(1, 1), (2, 2), (5, 5), (9, 3)}
OS = {(1, 1, "x"), (2, 2, None), (3, 5, "y")}
COLUMNS = {"c": ("id", "a"), "o": ("id", "c", "s")}


def rows(*given: Row) -> frozenset[Row]:
    return frozenset(given)


def contents(c: set[tuple[int, int]], o: set[tuple[int, int, str | None]]) -> dict[str, frozenset[Row]]:
    known = dict(c)
    return {
        "m": frozenset((i, a) for i, a in c if a in (1, 2)),
        "j": frozenset((i, known[k]) for i, k, _ in o if known[k] == 1 or known[k] > 4),
        "n": frozenset((k, sum(1 for one in o if one[1] == k)) for k in {one[1] for one in o}),
    }


def warehouse(
    after_c: set[tuple[int, int]], more: str = "", **stored: frozenset[Row]
) -> Warehouse[frozenset[Row]]:
    after = {"c": frozenset[Row](after_c), "o": frozenset[Row](OS)}
    readable = {n: Readable(RowsSource("here", {n: (COLUMNS[n], its)})) for n, its in after.items()}
    return build(TABLES + VIEWS + more, {**contents(CS, OS), **stored}, MemoryEngine(), readable=readable)


def test_verify_recomputes_every_rule() -> None:
    after = CS | {(7, 2), (8, 9)}
    update = Update({"c": rows((7, 2), (8, 9))}, effective=True)
    found = warehouse(after).maintain(update, verify=True)
    assert found.differences == ()
    assert found.deltas["m"].gained == rows((7, 2))
    wrong = warehouse(after - {(2, 2)}).maintain(update, verify=True)
    assert wrong.differences is not None
    assert {one.view for one in wrong.differences} >= {"m"}


def test_rows_of_no_rule_are_refused() -> None:
    here = build(TABLES + VIEWS, {**contents(CS, OS), "m": rows((9, 3))}, MemoryEngine())
    with pytest.raises(InputError, match=r"can never produce: \(id=9, a=3\)"):
        here.check(Update({"c": rows((7, 2))}, effective=True))


def test_the_audit_and_explain_speak_of_the_union() -> None:
    here = warehouse(CS)
    report = audit_catalog(here.catalog, Situation.of((), effective=True), AuditOptions(without=("c",)))
    words = report.audit.words()
    assert words["m", "c", "any"] == "always"
    assert words["j", "c", "insert"] == "always"
    assert words["j", "o", "insert"] == "depends"
    assert {one.view.name for one in report.audit.views} == {"m", "j", "n"}
    assert all("#" not in advice.view for advice in report.advice)
    assert here.explain(Update({"o": rows((4, 8, "z"))}, effective=True), "j").verdict.because
    assert "INSERT INTO `m`" in str(here.sql("m"))


def test_a_branch_is_said_to_be_a_rule_of_its_union() -> None:
    over = "create materialized view p as select distinct s from o;"
    more = "create materialized view q as select id from o where s = 'x' or s = 'y';"
    here = warehouse(CS, over + more, p=rows(("x",), ("y",), (None,)), q=rows((1,), (3,)))
    update = Update({"o": rows((4, 8, "z"))}, effective=True)
    explained = here.explain(update, "j")
    assert explained.view.rule_of == ("j", 2)
    assert str(explained).startswith("rule 2 of `j` is ")
    printed = [str(here.check(update)), str(explained), *(str(here.explain(update, name)) for name in "mpq")]
    assert all("#" not in text for text in printed)
    said = explanation_json(explained)
    assert isinstance(said, dict)
    assert (said["view"], said["rule"]) == ("j", 2)
    assert "#" not in json.dumps({**said, "tested": []}), "only in the program of the test"
    with pytest.raises(NotMaintainedError, match=r"`j`, rule \d, cannot be maintained") as refused:
        here.maintain(update, budget_s=1e-9, most_keys=0)
    assert "#" not in str(refused.value)


def test_what_is_recomputed_reads_unions_whole() -> None:
    over = "create materialized view v as select a from m;"
    here = warehouse(CS | {(7, 2)}, over, v=rows((1, 1), (2, 1)))
    found = here.maintain(Update({"c": rows((7, 2))}, effective=True), recompute=True)
    assert found.deltas["m"].gained == rows((7, 2))
