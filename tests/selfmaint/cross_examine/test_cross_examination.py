"""A cross-examination finds wrong verdicts and wrong changes, says what it does not do, and never fails."""

from __future__ import annotations

import datetime as dt
import sys
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from datalog.evaluate.order import is_nan
from datalog.model import ColumnType, Predicate, Row, TypeName, Value, Version
from datalog.syntax import parse_program
from selfmaint.api import cross_examine as wiring
from selfmaint.api import maintain as maintaining
from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.cross_examine import domains, examine, process, search
from selfmaint.cross_examine.examine import CrossExamination, Outcome
from selfmaint.cross_examine.neighbourhood import TooManyRowsError, near
from selfmaint.cross_examine.question import Differing, NotExamined, Question
from selfmaint.decide.verdict import Change, NotSelfMaintainable, SelfMaintainable, Undecided, Verdicts
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.maintain import Delta
from selfmaint.possible.new_state import TwoDatabases
from selfmaint.warehouse.situation import Situation
from tests.command_line import run

SHOP = """
.decl customer(id: bigint, name: string not null) key(id).
.decl orders(id: bigint, customer: bigint not null, total: decimal(12, 2) not null) key(id)
  foreign(customer) references customer(id).
big(I, C, N, T) :- orders(I, C, T), customer(C, N), T > 100.
sales(C, count(*), sum(T)) :- orders(I, C, T).
"""
BIGINT, TEXT = ColumnType(TypeName.BIGINT), ColumnType(TypeName.STRING)
ENGINES = [MemoryEngine, DuckEngine]

Rows = frozenset[Row]


def rows(*given: Row) -> Rows:
    return frozenset(given)


BIG = rows((10, 1, "Ann", 250))
SALES = rows((1, 2, 290), (2, 1, 30))
NEW = rows((13, 1, 120))


def shop(tmp_path: Path, **options: Any) -> tuple[Warehouse[Rows], Update[Rows], CrossExamination]:
    here = build(SHOP, {"big": BIG, "sales": SALES}, MemoryEngine())
    budget = CrossExamination(folder=tmp_path, **options)
    return here, Update({"orders": NEW}, effective=True), budget


def outcomes(found: Verdicts) -> Mapping[str, Outcome]:
    return {name: one.outcome for name, one in found.examined.items()}


def test_right_verdicts_stay(tmp_path: Path) -> None:
    here, update, budget = shop(tmp_path)
    found = here.check(update, cross_examine=budget)
    assert [v.kind.value for v in found.values()] == ["yes", "yes"]
    assert set(outcomes(found).values()) == {Outcome.AGREES}
    assert list(tmp_path.iterdir()) == []
    assert here.check(update).examined == {}


def test_a_no_is_found_again(tmp_path: Path) -> None:
    here, _, budget = shop(tmp_path)
    found = here.check(Update({"orders": rows((13, 2, 120))}, effective=True), cross_examine=budget)
    assert [v.kind.value for v in found.values()] == ["no", "yes"]
    assert found.examined["big"].because == "two databases that differ were found"


def wrong_yes(monkeypatch: pytest.MonkeyPatch, change: Change | None = None) -> None:
    def decide(*arguments: Any, **_: Any) -> dict[str, SelfMaintainable]:
        found = {view.name: SelfMaintainable(view.name) for view in arguments[1]}
        return found if change is None else found | {"v": SelfMaintainable("v", change=change)}

    monkeypatch.setattr("selfmaint.api.check.decide", decide)


def test_a_wrong_yes_is_a_defect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, _, budget = shop(tmp_path)
    wrong_yes(monkeypatch)
    found = here.check(Update({"orders": rows((13, 2, 120))}, effective=True), cross_examine=budget)
    assert outcomes(found) == {"big": Outcome.CONTRADICTS, "sales": Outcome.AGREES}
    big = found["big"]
    assert isinstance(big, Undecided)
    assert "SM801" in big.because
    assert found["sales"]


def test_the_file_says_all_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, _, budget = shop(tmp_path)
    wrong_yes(monkeypatch)
    found = here.check(Update({"orders": rows((13, 2, 120))}, effective=True), cross_examine=budget)
    file = found.examined["big"].file
    assert file == tmp_path / "cross-examined-big.txt"
    text = file.read_text(encoding="utf-8")
    for section in text.split("\n% "):
        parse_program(f"% {section}")
    assert all(part in text for part in (".decl customer", ".view sales", "orders@inserted(13, 2, 120)."))
    before = parse_program(text.split("% a database that explains all of this")[1].split("\n%")[0])
    told = parse_program(text.split("% the new state on the database")[1])
    database: dict[str, set[Row]] = {"orders": set(), "customer": set()}
    for rule in before.rules:
        database[rule.head.predicate.name].add(tuple(t.value for t in rule.head.terms))  # type: ignore[union-attr]
    database["orders"] |= {(13, 2, 120)}
    names: dict[Any, Any] = {row[0]: row[1] for row in database["customer"]}
    expected = {(i, c, names[c], t) for i, c, t in database["orders"] if t > 100}  # type: ignore[operator]
    assert {tuple(t.value for t in rule.head.terms) for rule in told.rules} == expected  # type: ignore[union-attr]
    here.check(Update({"orders": rows((13, 2, 120))}, effective=True), cross_examine=budget)
    assert (tmp_path / "cross-examined-big-2.txt").exists()


def less(delta: Delta[Rows]) -> Delta[Rows]:
    return Delta(frozenset(), delta.lost)


def more(delta: Delta[Rows]) -> Delta[Rows]:
    return Delta(delta.gained | {(99, 1, "Ann", 500)}, delta.lost)


@pytest.mark.parametrize("spoilt", [less, more])
def test_a_wrong_change_is_a_defect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spoilt: Callable[[Delta[Rows]], Delta[Rows]]
) -> None:
    here, update, budget = shop(tmp_path)
    right = wiring.determined_delta

    def wrong(*arguments: Any) -> Delta[Rows]:
        found: Delta[Rows] = right(*arguments)
        return spoilt(found) if arguments[1].view == "big" else found

    monkeypatch.setattr(wiring, "determined_delta", wrong)
    found = here.check(update, cross_examine=budget)
    assert outcomes(found) == {"big": Outcome.CONTRADICTS, "sales": Outcome.AGREES}
    with pytest.raises(NotMaintainedError, match="SM404"):
        here.maintain(update, cross_examine=budget)


def test_a_wrong_change_of_a_branch_is_one_of_the_union(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        ".decl o(id: bigint, c: bigint not null, t: bigint not null) key(id).\n"
        "v(I, C, 1) :- o(I, C, 1).\nv(I, C, 2) :- o(I, C, 2).\n"
    )
    here = build(program, {"v": rows((1, 7, 1), (2, 7, 2))}, MemoryEngine())
    assert here.catalog.unions
    update = Update({"o": rows((3, 7, 1), (4, 7, 2), (5, 7, 3))}, effective=True)
    budget = CrossExamination(folder=tmp_path)
    found = here.maintain(update, cross_examine=budget)
    assert outcomes(found.verdicts) == {"v": Outcome.AGREES}
    assert found.deltas["v"].gained == rows((3, 7, 1), (4, 7, 2))
    right = wiring.determined_delta
    last = here.catalog.apart.views[-1].name

    def wrong(*arguments: Any) -> Delta[Rows]:
        its: Delta[Rows] = right(*arguments)
        return less(its) if arguments[1].view == last else its

    monkeypatch.setattr(wiring, "determined_delta", wrong)
    assert outcomes(here.check(update, cross_examine=budget)) == {"v": Outcome.CONTRADICTS}
    with pytest.raises(NotMaintainedError, match="SM404") as refused:
        here.maintain(update, cross_examine=budget)
    assert isinstance(refused.value.verdicts["v"], Undecided)


def test_maintain_does_not_use_what_is_contradicted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It reads by keys in place of that; and what it uses is what was examined."""
    files = {
        "views.sql": "CREATE TABLE c (id BIGINT PRIMARY KEY, n STRING NOT NULL);\n"
        "CREATE TABLE o (id BIGINT PRIMARY KEY, c BIGINT NOT NULL REFERENCES c);\n"
        "CREATE VIEW v AS SELECT o.id, o.c, c.n FROM o JOIN c ON o.c = c.id;\n"
        "CREATE VIEW w AS SELECT c, COUNT(*) AS k FROM o GROUP BY c;\n",
        "warehouse.toml": 'program = "views.sql"\n[update]\neffective = true\n'
        '[views.v]\npath = "v.csv"\n[views.w]\npath = "w.csv"\n[sources.s]\nkind = "files"\n'
        '[relations.c]\nsource = "s"\npath = "c.csv"\n[relations.o]\nsource = "s"\npath = "o.csv"\n',
        "v.csv": "id,c,n\n1,1,Ann\n",
        "w.csv": "c,k\n1,1\n",
        "c.csv": "id,n\n1,Ann\n2,Bob\n",
        "o.csv": "id,c\n1,1\n2,2\n",
        "day/o.insert.csv": "id,c\n2,2\n",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    wrong_yes(monkeypatch, Change(frozenset({(2, 2, "Eve")}), frozenset()))
    monkeypatch.setattr(maintaining, "determined_delta", None)  # what was examined is at hand
    path = str(tmp_path / "warehouse.toml")
    ran = run("maintain", path, "--update", str(tmp_path / "day"), "--cross-examine")
    assert ran.status == 0, ran.stdout + ran.stderr
    assert "warning[SM801]" in ran.stderr
    assert "cross-examined-v.txt" in ran.stderr
    assert "followed by keyed reads" in ran.stdout
    assert "2,2,Bob" in (tmp_path / "v.csv").read_text(encoding="utf-8")
    assert sorted((tmp_path / "w.csv").read_text(encoding="utf-8").split()[1:]) == ["1,1", "2,1"]


def test_the_databases_of_a_no_are_held_against_the_definition(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, update, budget = shop(tmp_path)
    base = {"customer": rows((1, "Ann"), (2, "Bob")), "orders": rows((10, 1, 250), (11, 1, 40), (12, 2, 30))}
    odd = {**base, "orders": base["orders"] | {(14, 1, 300)}}

    def decide(*arguments: Any, **_: Any) -> dict[str, NotSelfMaintainable]:
        pair = TwoDatabases(base, odd, (14, 1, "Ann", 300))
        return {view.name: NotSelfMaintainable(view.name, (), databases=pair) for view in arguments[1]}

    monkeypatch.setattr("selfmaint.api.check.decide", decide)
    found = here.check(update, ["big"], cross_examine=budget)
    assert outcomes(found) == {"big": Outcome.CONTRADICTS}
    assert isinstance(found["big"], Undecided)
    assert "prove nothing" in found.examined["big"].because


def asked(here: Warehouse[Rows], update: Update[Rows], **options: Any) -> NotExamined:
    facts, situation = here.given(update)
    question = Question(here.catalog, situation, facts.relations, {"big": BIG})
    answer = examine.asked(question, **options)["big"]
    assert isinstance(answer, NotExamined)
    return answer


@pytest.mark.parametrize(
    ("type_", "kind", "last", "made"),
    [
        (ColumnType(TypeName.BIGINT), "number", 2**63 - 1, 2**63 - 2),
        (ColumnType(TypeName.DECIMAL, 4, 2), "number", Decimal("99.99"), Decimal("99.98")),
        (ColumnType(TypeName.DATE), "date", dt.date(9999, 12, 31), dt.date(9999, 12, 30)),
        (ColumnType(TypeName.DATE), "date", dt.date(2024, 1, 1), dt.date(2024, 1, 2)),
    ],
)
def test_values_that_are_made_up_are_of_their_type(
    type_: ColumnType, kind: str, last: Value, made: Value
) -> None:
    assert domains._new_value(type_, kind, [last], 1) == made


@pytest.mark.parametrize(
    ("type_", "kind", "ends"),
    [
        (ColumnType(TypeName.BIGINT), "number", (-(2**63) + 1, 2**63 - 1)),
        (ColumnType(TypeName.TINYINT), "number", (-127, 0, 127)),
        (
            ColumnType(TypeName.DECIMAL, 4, 2),
            "number",
            (Decimal("-99.99"), Decimal("0.00"), Decimal("99.99")),
        ),
        (ColumnType(TypeName.DATE), "date", (dt.date(1, 1, 1), dt.date(2000, 1, 1), dt.date(9999, 12, 31))),
        (
            ColumnType(TypeName.TIMESTAMP),
            "timestamp",
            (dt.datetime.min, dt.datetime.max),  # noqa: DTZ901 - instants have no zone here
        ),
        (ColumnType(TypeName.DOUBLE), "number", (float("-inf"), 1e300, float("inf"), float("nan"))),
    ],
)
def test_where_both_ends_are_known_they_are_between(
    type_: ColumnType, kind: str, ends: tuple[Value, ...]
) -> None:
    made = [domains._new_value(type_, kind, ends, number) for number in range(1, 5)]
    assert len({*made, *ends}) == len(made) + len(ends)
    known: list[Any] = [one for one in ends if not is_nan(one)]
    assert all(min(known) < one < max(known) for one in made)


def test_what_is_too_large_to_be_looked_at_says_why() -> None:
    engine, double = DuckEngine(), [ColumnType(TypeName.DOUBLE)]
    schema = build(".decl r(x: double).  v(X) :- r(X).", {"v": frozenset()}, MemoryEngine()).catalog
    many = engine.load([(i / 2,) for i in range(9)], ["x"], double)
    facts = Facts({Predicate("v"): many, Predicate("r", Version.INSERTED): many})
    with pytest.raises(TooManyRowsError, match="the update has more than 5 rows"):
        near(engine, schema, facts, Situation.of(facts.relations), 5)


def test_a_solver_without_memory_or_time_says_so(tmp_path: Path) -> None:
    here, update, budget = shop(tmp_path, memory=40 * 1024**2)
    found = here.check(update, cross_examine=budget)
    assert set(outcomes(found).values()) == {Outcome.NOT_EXAMINED}
    assert all(found.values())
    assert "not cross-examined: the solver" in str(found.examined["big"])
    assert "within 0.001 s" in asked(here, update, seconds=0.001).reason


def test_a_solver_that_is_killed_or_missing_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, update, _ = shop(tmp_path)
    killer = tmp_path / "killed"
    killer.write_text("#!/bin/sh\nkill -9 $$\n", encoding="utf-8")
    killer.chmod(0o755)
    examine._SOLVER.end()
    monkeypatch.setattr(process.sys, "executable", str(killer))
    assert "signal 9" in asked(here, update, seconds=5).reason
    monkeypatch.setattr(process.sys, "executable", str(tmp_path / "nothing"))
    assert "could not be started" in asked(here, update, seconds=5).reason


def test_a_solver_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here, update, _ = shop(tmp_path)
    sleeper = tmp_path / "sleeps"
    sleeper.write_text("#!/bin/sh\nexec sleep 60\n", encoding="utf-8")
    sleeper.chmod(0o755)
    examine._SOLVER.end()
    monkeypatch.setattr(process.sys, "executable", str(sleeper))
    monkeypatch.setattr(process, "STARTING_S", 0.2)
    monkeypatch.setattr(examine, "_MORE_S", 0)
    assert "within 0.1 s" in asked(here, update, seconds=0.1).reason


def test_what_others_take_of_the_processor_is_no_time_of_the_search() -> None:
    class Slow:
        """A solver that waits for a processor for far longer than it works."""

        waits = 0

        def wait(self, seconds: float) -> bool:
            time.sleep(seconds)
            self.waits += 1
            return self.waits == 5

    searching = object.__new__(search._Search)
    searching._deadline = time.process_time() + 0.05
    assert searching._ends(cast("Any", Slow()))
    searching._deadline = time.process_time() - 1
    assert not searching._ends(cast("Any", Slow()))


def test_one_that_looks_at_no_time_ends_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As while a program is ground."""
    here, update, _ = shop(tmp_path)
    endless = (
        "import selfmaint.cross_examine.search as s; s.answers = lambda *_: filter(None, iter(int, 1)); "
    )
    code = f"{endless}from selfmaint.cross_examine.worker import main; main()"
    worker = tmp_path / "ground"
    worker.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{code}"\n', encoding="utf-8")
    worker.chmod(0o755)
    examine._SOLVER.end()
    monkeypatch.setattr(process.sys, "executable", str(worker))
    monkeypatch.setattr(process, "STARTING_S", 40)
    started = time.monotonic()
    try:
        assert "within 0.1 s" in asked(here, update, seconds=0.1).reason
        assert time.monotonic() - started < 30  # who waits for it would end it later
        assert "within 0.1 s" in asked(here, update, seconds=0.1).reason  # the same process goes on
    finally:
        examine._SOLVER.end()


def test_what_is_not_examined_has_a_reason(tmp_path: Path) -> None:
    program = (
        ".decl r(a: bigint not null, b: double not null, c: bigint not null) key(a, c).\n"
        "doubles(A, sum(B), count(*)) :- r(A, B, C).\n"
        "few(A, C) :- r(A, B, C), not r(C, _, A).\n"
    )
    contents = {"doubles": rows((1, 0.5, 1)), "few": rows((1, 2))}
    here = build(program, contents, MemoryEngine(), inexact_sums=True)
    update = Update({"r": rows((1, 0.25, 3))}, effective=True)
    found = here.check(update, cross_examine=CrossExamination(folder=tmp_path))
    assert found.examined["doubles"].outcome is Outcome.AGREES
    assert str(found.examined["few"]) == "not cross-examined: it is undecided"


def test_a_view_of_which_the_text_is_known_is_not_examined(tmp_path: Path) -> None:
    program = """
        CREATE TABLE a (id BIGINT PRIMARY KEY, x INT);
        CREATE TABLE b (id BIGINT PRIMARY KEY, x INT);
        CREATE TABLE c (id BIGINT PRIMARY KEY);
        CREATE VIEW ab AS SELECT a.id, b.x FROM a FULL JOIN b ON a.id = b.id;
        CREATE VIEW others AS SELECT id FROM c;
    """
    here = build(program, {"ab": rows(), "others": rows()}, MemoryEngine())
    update = Update({"c": rows((1,))}, effective=True)
    found = here.check(update, cross_examine=CrossExamination(folder=tmp_path))
    assert found["ab"]
    assert (
        str(found.examined["ab"])
        == "not cross-examined: only text is known of it, or of a view that it reads"
    )


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_near_the_update(engine: type[MemoryEngine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 600 orders those are looked at that the update can touch; what is found is held against all."""
    made = engine()
    orders = [(i, i % 50, f"n{i % 50}") for i in range(600)]
    program = (
        ".decl o(id: bigint, c: bigint not null) key(id).\n.decl c(id: bigint, n: string not null) key(id).\n"
        "v(O, C, N) :- o(O, C), c(C, N).\n"
    )
    stored = made.load(orders, ["o", "c", "n"], [BIGINT, BIGINT, TEXT])
    here: Warehouse[Any] = build(program, {"v": stored}, made)
    budget = CrossExamination(folder=tmp_path, rows=40)
    told = Update({"o": made.load([(1000, 7)], ["id", "c"], [BIGINT, BIGINT])}, effective=True)
    assert outcomes(here.check(told, cross_examine=budget)) == {"v": Outcome.AGREES}
    open_ = Update({"o": made.load([(1000, 70)], ["id", "c"], [BIGINT, BIGINT])}, effective=True)
    found = here.check(open_, cross_examine=budget)
    assert found["v"].kind.value == "no"
    assert outcomes(found) == {"v": Outcome.AGREES}
    wrong_yes(monkeypatch)
    assert outcomes(here.check(open_, cross_examine=budget)) == {"v": Outcome.CONTRADICTS}
    monkeypatch.setattr(wiring, "MOST_TO_CONFIRM", 100)
    kept = here.check(open_, cross_examine=budget)
    assert kept["v"]
    assert "too many rows" in kept.examined["v"].because


def test_an_update_of_too_many_rows(tmp_path: Path) -> None:
    here, _, budget = shop(tmp_path, rows=3)
    update = Update({"orders": rows(*((n, 1, 5) for n in range(20, 30)))}, effective=True)
    found = here.check(update, cross_examine=budget)
    assert set(outcomes(found).values()) == {Outcome.NOT_EXAMINED}
    assert "more than 3 rows" in found.examined["big"].because


def test_answers_of_a_search(tmp_path: Path) -> None:
    here, _, _ = shop(tmp_path)
    facts = {Predicate("big"): BIG, Predicate("sales"): SALES, Predicate("orders", Version.INSERTED): NEW}
    situation = Situation.of(facts, effective=True)
    question = Question(here.catalog, situation, facts, {"big": BIG})
    found = examine.asked(question, 10)
    assert isinstance(found["big"], Differing)
    kept = examine._SOLVER.process()
    assert examine.asked(question, 10) == found
    assert examine._SOLVER.process() is kept


def test_rows_that_may_stand_twice_are_counted_where_all_are_at_hand(tmp_path: Path) -> None:
    program = """
        CREATE TABLE o (id BIGINT PRIMARY KEY, c BIGINT NOT NULL);
        CREATE TABLE p (id BIGINT PRIMARY KEY, c BIGINT NOT NULL);
        CREATE VIEW v AS SELECT c FROM o UNION ALL SELECT c FROM p;
        CREATE VIEW w AS SELECT id, c FROM o;
    """
    made = DuckEngine()

    def stored(number: int) -> Warehouse[Any]:
        contents = {
            "v": made.bags.expanded(
                made.load([(i, number // 5) for i in range(5)], ["c", "n"], [BIGINT] * 2)
            ),
            "w": made.load([(i, i % 5) for i in range(number)], ["id", "c"], [BIGINT, BIGINT]),
        }
        return build(program, contents, made)

    update = Update({"o": made.load([(1000, 3)], ["id", "c"], [BIGINT, BIGINT])}, effective=True)
    budget = CrossExamination(folder=tmp_path, rows=40)
    assert outcomes(stored(10).check(update, cross_examine=budget)) == {
        "v": Outcome.AGREES,
        "w": Outcome.AGREES,
    }
    found = stored(100).check(update, cross_examine=budget)
    assert outcomes(found) == {"v": Outcome.NOT_EXAMINED, "w": Outcome.AGREES}
    assert "may stand twice" in found.examined["v"].because


TOLD_UNION = """
create table r (a int not null, b int not null, primary key (a), foreign key (b) references r);
create table s (f int not null, d int not null, e int not null, primary key (f), foreign key (d) references r);
create view both as select f, 1 as way, e as its from s union all select f, 2, d from s;
create view others as select f, 1 as way, d as its from s union all select f, 2, e from s;
create view joined as select r.a, r.b, s.f, s.d from r join s on r.b = s.f;
create view all_r as select a, b from r;
"""


def test_a_union_that_is_computed_promises_what_all_its_queries_give(tmp_path: Path) -> None:
    """One of them keeps its rows, which is no promise of the union."""
    stored = {
        "both": rows((1, 1, 1), (1, 2, 2), (2, 1, 3), (2, 2, 1)),
        "others": rows((1, 1, 2), (1, 2, 1), (2, 1, 1), (2, 2, 3)),
        "joined": rows((1, 2, 2, 1), (2, 2, 2, 1)),
        "all_r": rows((1, 2), (2, 2)),
    }
    here = build(TOLD_UNION, stored, MemoryEngine())
    update = Update({"s": rows((2, 1, 1))}, {"s": rows((2, 1, 3))}, effective=False)
    found = here.check(update, cross_examine=CrossExamination(folder=tmp_path))
    both = found["both"]
    assert isinstance(both, SelfMaintainable)
    assert both.is_computed
    assert set(outcomes(found).values()) == {Outcome.AGREES}
