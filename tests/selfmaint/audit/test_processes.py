"""Several processes find the verdicts that one finds."""

from __future__ import annotations

import os
from multiprocessing import parent_process

from datalog.syntax import parse_program
from selfmaint.api.audit import AuditOptions, AuditReport, audit_catalog
from selfmaint.audit import processes
from selfmaint.audit.search import Search
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation
from tests.command_line import run
from tests.selfmaint.cli.test_cli import ROOT

PROGRAM = """
    .decl c(k: int not null, n: string not null) key(k).
    .decl o(k: int not null, c: int not null, a: int not null) key(k) foreign(c) references c(k).
    .decl r(x: int).
    .decl s(y: int).
    co(K, C, A, N) :- o(K, C, A), c(C, N).
    big(K, C, A) :- o(K, C, A), A > 100.
    sums(C, count(*), sum(A)) :- o(K, C, A).
    other(X, Y) :- r(X), s(Y).
    copy(X) :- r(X).
"""


def audited(number: int, told: list[str]) -> AuditReport:
    options = AuditOptions(processes=number, progress=told.append, updates={"o": ("a",)})
    return audit_catalog(catalog(parse_program(PROGRAM)), Situation(effective=True), options)


def test_two_processes_find_what_one_finds() -> None:
    """Verdicts, examples, needs and advice, in the views' order; parts of the warehouse are told apart."""
    told: list[str] = []
    one, two = audited(1, []), audited(2, told)
    assert two.audit.views == one.audit.views
    assert set(one.audit.words().values()) >= {"always", "depends"}
    assert two.advice == one.advice
    assert told[:5] == [f"audited {n} of 5 views" for n in range(1, 6)]


def test_a_spent_budget_is_told_from_there() -> None:
    options = AuditOptions(processes=2, advise=False, budget_s=1e-9)
    found = audit_catalog(catalog(parse_program(PROGRAM)), Situation(effective=True), options)
    assert "undecided" in found.audit.words().values()


def killed_elsewhere(name: str, rounds: int) -> str:
    if parent_process() is not None:
        os._exit(1)
    return f"{name} with {rounds} to go"


def test_what_a_process_that_dies_leaves_is_done_here() -> None:
    schema, known = catalog(parse_program(PROGRAM)), Situation(effective=True)
    search, work = Search(schema, known), processes.Work(schema, known, 10)
    found = processes._side_by_side(killed_elsewhere, search, schema.views, work, 2)
    assert {view.name: text.split()[0] for view, text in found} == {v.name: v.name for v in schema.views}


def test_the_command_takes_a_number() -> None:
    star = str(ROOT / "examples" / "star" / "warehouse.toml")
    assert run("audit", star, "--processes", "2").stdout == run("audit", star, "--processes", "1").stdout
    assert "not a whole number of at least 1" in run("audit", star, "--processes", "0").stderr
