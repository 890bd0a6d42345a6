"""A budget that ends anywhere makes a view undecided, never decided otherwise, and leaves nothing half done behind."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from itertools import count, islice
from types import SimpleNamespace
from typing import Any

import pytest

from datalog.budget import BudgetSpentError, observed
from datalog.evaluate import Evaluator
from datalog.model import Row
from selfmaint.api.check import check
from selfmaint.api.explain import explain
from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.maintain import maintain
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.countermodel import completion
from selfmaint.countermodel.model_check import Given
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.surviving import placed
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import Code, InputError
from selfmaint.fallback.settle import Readable
from selfmaint.sources.memory import RowsSource
from selfmaint.warehouse.catalog import Catalog

Rows = frozenset[Row]
HUYN = "v1(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z). v2(Y, Z) :- s(Y, Z)."
YES = {"v1": {("a1", "b1", "c1")}, "v2": {("b1", "c1"), ("b", "c1")}}
NO = {"v1": {("a1", "b1", "c1")}, "v2": {("b1", "c1"), ("b", "c2")}}
CHOICES = """.decl m(id: int not null, boss: int, pay: int not null) key(id) foreign key (boss) references m(id).
pairs(A, B, C, D, P, Q) :- m(A, B, P), m(C, D, Q), P < Q.
"""
MANY_WAYS = """.decl m(id: int not null, boss: int, pay: decimal(6,2) not null) key(id)
    foreign key (boss) references m(id).
.decl d(id: int not null, m: int not null, lim: decimal(6,2)) key(id) foreign key (m) references m(id).
v(A, B, C, D, E, F, P, Q, R) :- d(A, A, P), m(A, B, P), d(C, D, Q), m(E, F, R), R != Q.
"""
SALES = """.decl sale(id: int not null, cust: string not null, amount: int not null) key(id)
    foreign key (cust) references cust(id).
.decl cust(id: string not null, region: string not null) key(id).
by_region(R, count(*), sum(A)) :- sale(I, C, A), cust(C, R).
by_cust(C, count(*), sum(A)) :- sale(I, C, A).
"""
HAVING = """CREATE TABLE r (a INT NOT NULL PRIMARY KEY, b INT NOT NULL);
CREATE TABLE s (b INT NOT NULL PRIMARY KEY, c INT NOT NULL);
CREATE VIEW many AS SELECT s.c, count(*) AS n FROM r JOIN s ON r.b = s.b GROUP BY s.c HAVING count(*) > 1;
CREATE VIEW of_s AS SELECT b, c FROM s;
"""


def warehouse(program: str, contents: Mapping[str, set[Row]]) -> Warehouse[Rows]:
    return build(program, {name: frozenset(rows) for name, rows in contents.items()}, MemoryEngine())


def inserted(effective: bool = True, **rows: set[Row]) -> Update[Rows]:
    return Update({name: frozenset(found) for name, found in rows.items()}, effective=effective)


CASES = {
    "yes": (HUYN, YES, inserted(effective=False, r={("a", "b")})),
    "no": (HUYN, NO, inserted(effective=False, r={("a", "b")})),
    "choices": (CHOICES, {"pairs": {(1, None, 2, 1, 10, 20)}}, inserted(m={(3, 2, 15)})),
    "groups": (
        SALES,
        {"by_region": {("north", 2, 7)}, "by_cust": {("c1", 1, 3), ("c2", 1, 4)}},
        inserted(sale={(9, "c1", 5)}),
    ),
    "over shown groups": (
        HAVING,
        {"many": {(1, 2)}, "of_s": {(1, 1), (2, 2)}},
        inserted(r={(9, 1)}),
    ),
}


class Clock:
    """A clock that goes one second further whenever it is looked at."""

    def __init__(self) -> None:
        self._ticks = count()

    def thread_time(self) -> float:
        return float(next(self._ticks))


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("datalog.budget.EVERY", 1)
    monkeypatch.setattr("datalog.budget.time", SimpleNamespace(thread_time=clock.thread_time))
    return clock


def budgets() -> Iterator[int]:
    """How many looks at the clock a budget lasts: every one at first, then ever fewer of them."""
    ticks = 1.0
    while ticks < 100_000:
        yield int(ticks)
        ticks = max(ticks + 1, ticks * 1.4)


@pytest.mark.usefixtures("ticking")
@pytest.mark.parametrize("case", CASES)
def test_a_budget_that_ends_anywhere_makes_a_view_undecided(case: str) -> None:
    program, contents, update = CASES[case]
    expected = check(warehouse(program, contents), update, budget_s=10**9)
    assert not any(getattr(verdict, "is_cut", False) for verdict in expected.values())
    cut = 0
    for ticks in budgets():
        tried = warehouse(program, contents)
        found = check(tried, update, budget_s=ticks)
        again = check(tried, update, budget_s=10**9)
        for name, verdict in found.items():
            kinds = (type(verdict), type(expected[name]))
            assert isinstance(verdict, Undecided) or kinds[0] is kinds[1], (ticks, verdict)
            cut += isinstance(verdict, Undecided) and any("spent on" in r for r in verdict.reasons)
            assert type(again[name]) is kinds[1], (ticks, again[name])
        if not cut_left(found):
            break
    else:
        pytest.fail("no budget was enough")
    assert cut, "no budget ended anywhere"


def cut_left(verdicts: Mapping[str, object]) -> bool:
    return any(
        isinstance(v, Undecided) and any("spent on" in reason for reason in v.reasons)
        for v in verdicts.values()
    )


def test_the_reason_says_on_what_a_budget_was_spent() -> None:
    verdict = check(warehouse(HUYN, YES), inserted(r={("a", "b")}), budget_s=1e-9)["v1"]
    reason = (
        "budget of 1e-09 s spent on finding what `v1` depends on (`--budget SECONDS` or `budget_s` raises it)"
    )
    assert verdict == Undecided("v1", (reason,), is_cut=True)


def test_an_explanation_of_a_view_that_was_cut_says_why() -> None:
    found = explain(warehouse(HUYN, YES), inserted(r={("a", "b")}), "v1", budget_s=1e-9)
    assert isinstance(found.verdict, Undecided)
    assert (found.ruled_out, found.tested, found.counterexample) == ((), (), None)
    assert "budget of 1e-09 s spent on" in str(found)


def test_a_view_that_was_cut_is_not_maintained_unless_it_is_recomputed() -> None:
    relations = {
        "r": (("c0", "c1"), frozenset({("a", "b"), ("a1", "b1")})),
        "s": (("c0", "c1"), frozenset({("b1", "c1"), ("b", "c1")})),
        "t": (("c0",), frozenset({("c1",)})),
    }
    source = RowsSource("base", relations)
    made = build(
        HUYN,
        {name: frozenset(rows) for name, rows in YES.items()},
        MemoryEngine(),
        readable={name: Readable(source) for name in relations},
    )
    update = inserted(r={("a", "b")})
    with pytest.raises(NotMaintainedError, match="`v1` cannot be maintained: it is undecided") as refused:
        maintain(made, update, budget_s=1e-9)
    assert {d.code for d in refused.value.diagnostics} == {Code.NOT_MAINTAINED}
    assert "budget of 1e-09 s spent on" in str(refused.value.diagnostics[0].note)
    found = maintain(made, update, budget_s=1e-9, recompute=True)
    assert found.recomputed["v1"] == {("a1", "b1", "c1"), ("a", "b", "c1")}
    assert maintain(made, update).deltas["v1"].gained == {("a", "b", "c1")}


def test_what_can_be_arranged_in_too_many_ways_is_arranged_for_the_data_at_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Finding all tests of the view takes more than the whole budget."""
    monkeypatch.setattr("selfmaint.decide.at_hand.FIRST_SHARE", 0.02)
    update = inserted(m={(4, 2, Decimal("6.00"))})
    tried = warehouse(MANY_WAYS, {"v": set()})
    found = check(tried, update)["v"]
    assert isinstance(found, NotSelfMaintainable)
    again = explain(tried, update, "v")
    assert isinstance(again.verdict, NotSelfMaintainable)
    assert any(test.fails for test in again.tested)


def test_of_a_part_of_the_tests_one_that_fails_is_a_no_and_none_is_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cut(catalog: Catalog, candidates: Iterable[NewFacts]) -> Iterator[NewFacts]:
        yield from islice(placed(catalog, candidates), number)
        raise BudgetSpentError("a search", 1)

    monkeypatch.setattr("selfmaint.decide.at_hand.FIRST_SHARE", 0)
    monkeypatch.setattr("selfmaint.decide.at_hand.placed", cut)
    update = inserted(effective=False, r={("a", "b")})
    for number, contents, kind in ((0, NO, Undecided), (9, NO, NotSelfMaintainable), (9, YES, Undecided)):
        tried = warehouse(HUYN, contents)
        assert type(check(tried, update)["v1"]) is kind, (number, contents)
        with pytest.raises(NotMaintainedError) as refused:
            maintain(tried, update)
        cause = "budget of 10 s spent on finding what `v1` depends on"
        assert cause in str(refused.value.diagnostics[0].note), (number, contents)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan")])
def test_a_budget_is_positive(seconds: float) -> None:
    with pytest.raises(InputError, match="`budget_s` is"):
        check(warehouse(HUYN, YES), inserted(r={("a", "b")}), budget_s=seconds)


def test_a_view_that_the_update_does_not_touch_needs_no_search() -> None:
    verdicts = check(warehouse(HUYN, YES), inserted(r={("a", "b")}), budget_s=1e-9)
    assert isinstance(verdicts["v2"], SelfMaintainable)


def test_a_search_is_named_only_if_it_is_made() -> None:
    told: list[str] = []
    with observed(told.append):
        check(warehouse(*CASES["yes"][:2]), CASES["yes"][2])
        check(warehouse(*CASES["no"][:2]), CASES["no"][2])
    assert told
    assert not any(message.startswith("looking for two databases") for message in told)
    half_known = """.decl o(id: int, c: int) key(id) foreign key (c) references c(id).
        .decl c(id: int, lim: int) key(id).
        v(I, C, L) :- o(I, C), c(C, L), L < 5.
    """
    with observed(told.append):
        check(warehouse(half_known, {"v": set()}), inserted(o={(1, 2)}))
    assert "looking for two databases in which `v` differs" in told


def test_what_failing_tests_share_is_derived_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []

    class Counted(Evaluator):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            made.append(self)

    def evaluators(views: int) -> int:
        """How many programs are evaluated where some views that share nothing all fail."""
        program = "".join(f"v{i}(A, B, C) :- r{i}(A, B), s{i}(B, C), A != C.\n" for i in range(views))
        contents = {f"v{i}": {(1, 2, 3)} for i in range(views)}
        made.clear()
        found = check(warehouse(program, contents), inserted(**{f"r{i}": {(5, 2)} for i in range(views)}))
        assert all(isinstance(verdict, NotSelfMaintainable) for verdict in found.values())
        return len(made)

    monkeypatch.setattr("selfmaint.engine.memory.Evaluator", Counted)
    assert evaluators(6) == evaluators(2)


def test_statements_that_take_too_long_are_not_printed() -> None:
    made = warehouse(HUYN, YES)
    cut = made.sql("v1", inserted=["r"], budget_s=1e-9)
    assert not cut
    assert "budget of 1e-09 s spent on" in (cut.undecided or "")
    assert made.sql("v1", inserted=["r"], budget_s=10**9).undecided is None


def test_what_is_given_is_checked_though_there_is_no_time_to_simplify() -> None:
    unlike = warehouse(HUYN, {"v1": {("a", "b", "c")}, "v2": set()})
    with pytest.raises(InputError) as refused:
        check(unlike, inserted(effective=False, r={("a", "b")}), full=True, budget_s=1e-9)
    assert {each.code for each in refused.value.diagnostics} == {Code.NOT_EXPLAINED}


def test_databases_whose_references_go_round_in_circles_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    program = """
        .decl r(k: bigint not null, t: bigint) key(k) foreign(t) references t(k) foreign(k) references s(k).
        .decl s(k: bigint not null) key(k) foreign(k) references r(k).
        .decl t(k: bigint not null, t: bigint not null, r: bigint not null) key(k)
            foreign(t) references t(k) foreign(r) references r(k).
        v(A, T, R, S) :- s(S), t(A, T, R), A > 1.
        n(T, count(*)) :- t(A, T, R), r(R, X).
    """
    sizes = []
    explains = completion.why_not

    def counted(known: Given, database: Mapping[str, Rows]) -> str | None:
        sizes.append(sum(map(len, database.values())))
        return explains(known, database)

    monkeypatch.setattr(completion, "why_not", counted)
    given = warehouse(program, {"v": set(), "n": {(1, 1)}})
    assert isinstance(check(given, inserted(t={(2, 1, 2)}), budget_s=60)["v"], Undecided)
    assert max(sizes) < 1_000
