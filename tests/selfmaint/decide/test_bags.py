"""Views that keep duplicates: when they are decided, what their verdicts and deltas say, and what stays undecided."""

from __future__ import annotations

import pytest

from datalog.model import Row, Semantics
from selfmaint import Update
from selfmaint.api.audit import AuditOptions, audit_catalog
from selfmaint.api.check import check
from selfmaint.api.columns import columns_of
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.maintain import new_contents
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable
from selfmaint.engine.memory import MemoryEngine, SetBags
from selfmaint.errors import InputError
from selfmaint.fallback.settle import Readable
from selfmaint.report.maintenance import changes
from selfmaint.report.verdicts import verdicts_json
from selfmaint.sources.memory import RowsSource
from selfmaint.warehouse.situation import Situation

SALES = """.decl sale(id: int not null, cust: string not null, amount: int not null) key(id)
    foreign key (cust) references cust(id).
.decl cust(id: string not null, region: string not null) key(id).
"""
AMOUNTS = SALES + ".view v(c, a) bag.\nv(C, A) :- sale(I, C, A).\n"


def rows(*given: Row) -> frozenset[Row]:
    return frozenset(given)


def given(program: str, **contents: frozenset[Row]) -> Warehouse[frozenset[Row]]:
    return build(program, contents, MemoryEngine())


def deleted(*sales: Row) -> Update[frozenset[Row]]:
    return Update({}, {"sale": rows(*sales)}, effective=True)


def test_a_bag_is_decided_and_its_delta_counts_copies() -> None:
    warehouse = given(AMOUNTS, v=rows(("k", 5, 3), ("k", 6, 1)))
    update = Update(
        {"sale": rows((8, "k", 6), (9, "l", 1), (10, "l", 1))}, {"sale": rows((1, "k", 5))}, effective=True
    )
    found = warehouse.maintain(update, strict=True)
    assert found.verdicts["v"] == SelfMaintainable("v", semantics=Semantics.BAG)
    assert found.deltas["v"].gained == rows(("k", 6, 1), ("l", 1, 2))
    assert found.deltas["v"].lost == rows(("k", 5, 1))
    after = new_contents(warehouse, warehouse.view("v"), found.deltas["v"])
    assert after == rows(("k", 5, 2), ("k", 6, 2), ("l", 1, 2))
    (change,) = changes(warehouse, found)
    assert (change.gained, change.lost) == (3, 1)


def test_a_row_that_is_gained_and_lost_as_often_is_no_change() -> None:
    warehouse = given(AMOUNTS, v=rows(("k", 5, 3)))
    update = Update({"sale": rows((9, "k", 5))}, {"sale": rows((1, "k", 5))}, effective=True)
    found = warehouse.maintain(update, strict=True)
    assert (found.deltas["v"].gained, found.deltas["v"].lost) == (rows(), rows())


def test_the_last_copy_takes_the_row_with_it() -> None:
    warehouse = given(AMOUNTS, v=rows(("k", 5, 1)))
    found = warehouse.maintain(deleted((1, "k", 5)), strict=True)
    assert new_contents(warehouse, warehouse.view("v"), found.deltas["v"]) == rows()


@pytest.mark.parametrize(
    ("view", "semantics", "counted"),
    [
        (".view v(i, a) bag. v(I, A) :- sale(I, C, A).", None, False),  # the key: each row stands once
        (".view v(i, b) bag. v(I, A + 1) :- sale(I, C, A).", None, False),
        (".view v(c) bag. v(C) :- sale(I, C, A).", Semantics.BAG, True),
        (".view v(c, b) bag. v(C, A * 2) :- sale(I, C, A) where A + 1 > 3.", Semantics.BAG, True),
        (".view v(c, b) set. v(C, A * 2) :- sale(I, C, A).", Semantics.SET, False),
        ("v(C) :- sale(I, C, A).", Semantics.SET, False),
        ("v(I) :- sale(I, C, A).", None, False),
        ("v(C, count(*)) :- sale(I, C, A).", None, False),
        (".view v(x) bag. v(7) :- sale(I, C, A).", Semantics.BAG, True),
    ],
)
def test_where_set_and_bag_are_the_same_nothing_is_counted(
    view: str, semantics: Semantics | None, counted: bool
) -> None:
    (found,) = catalog_of(SALES + view).views
    assert found.is_decided
    assert (found.semantics, found.is_counted) == (semantics, counted)
    assert found.stored_columns == (found.columns[:-1] if counted else found.columns)


def test_verdicts_say_which_semantics_they_hold_for() -> None:
    program = AMOUNTS + "w(C) :- sale(I, C, A).\nx(I, C, A) :- sale(I, C, A)."
    warehouse = given(program, v=rows(("k", 5, 2)), w=rows(("k",)), x=rows((1, "k", 5), (2, "k", 5)))
    verdicts = check(warehouse, deleted((1, "k", 5)))
    assert verdicts_json({name: verdicts[name] for name in "vwx"}) == [
        {"view": "v", "verdict": "yes", "semantics": "bag", "exact": False},
        {"view": "w", "verdict": "yes", "semantics": "set", "exact": False},
        {"view": "x", "verdict": "yes", "exact": True},
    ]
    assert verdicts["v"].because.endswith("gives one new state, as a bag")
    assert verdicts["w"].because.endswith("gives one new state, as a set")
    assert verdicts["x"].because.endswith("gives one new state")


def test_a_bag_is_evidence() -> None:
    """A row that is not there has no core row; columns that are a subgoal's own are known facts."""
    free = SALES.replace("\n    foreign key (cust) references cust(id)", "")
    program = free + (
        ".view v(c) bag. v(C) :- sale(I, C, A).\ndetail(I, C, A, R) :- sale(I, C, A), cust(C, R)."
    )
    warehouse = given(program, v=rows(("k", 2)), detail=rows())
    new = Update({"cust": rows(("new", "eu"))}, effective=True)
    assert isinstance(check(warehouse, new)["detail"], SelfMaintainable)
    old = Update({"cust": rows(("k", "eu"))}, effective=True)
    assert isinstance(
        check(warehouse, old)["detail"], NotSelfMaintainable
    )  # two databases with two sales of `k`
    program = (
        SALES
        + ".view v(c, r) bag. v(C, R) :- sale(I, C, A), cust(C, R).\nw(I, C, A, R) :- "
        + ("sale(I, C, A), cust(C, R).")
    )
    warehouse = given(program, v=rows(("k", "eu", 1)), w=rows((1, "k", 5, "eu")))
    found = warehouse.maintain(Update({"sale": rows((2, "k", 5))}, effective=True), strict=True)
    assert found.deltas["w"].gained == rows((2, "k", 5, "eu"))
    assert found.deltas["v"].gained == rows(("k", "eu", 1))


def test_constants_alone_are_as_many_as_there_are_rows() -> None:
    alone = SALES + "w(7) :- sale(I, C, A)."
    assert isinstance(check(given(alone, w=rows((7,))), deleted((1, "k", 5)))["w"], NotSelfMaintainable)
    base = {"sale": (("id", "cust", "amount"), rows()), "cust": (("id", "region"), rows())}
    readable = {name: Readable(RowsSource("base", base), 1.0) for name in base}
    warehouse = build(alone, {"w": rows((7,))}, MemoryEngine(), readable=readable)
    found = warehouse.maintain(deleted((1, "k", 5)), verify=True)
    assert not found.differences
    assert found.deltas["w"].lost == rows((7,))


@pytest.mark.parametrize(("copies", "left"), [(2, rows((7,))), (1, rows())])
def test_the_copies_of_a_bag_tell_whether_a_coarser_row_stays(copies: int, left: frozenset[Row]) -> None:
    program = SALES + ".view v(x) bag. v(7) :- sale(I, C, A).\nw(7) :- sale(I, C, A)."
    warehouse = given(program, v=rows((7, copies)), w=rows((7,)))
    found = warehouse.maintain(deleted((1, "k", 5)), strict=True)
    assert found.deltas["v"].lost == rows((7, 1))
    assert new_contents(warehouse, warehouse.view("w"), found.deltas["w"]) == left


def test_an_update_of_unknown_effect_is_not_counted() -> None:
    warehouse = given(AMOUNTS, v=rows(("k", 5, 1)))
    update = Update({"sale": rows((9, "k", 5))})
    assert isinstance(check(warehouse, update)["v"], NotSelfMaintainable)
    with pytest.raises(NotMaintainedError, match="it keeps duplicates, and the update is not effective"):
        warehouse.maintain(update)


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        (
            SALES + ".view v(c) bag. v(C) :- sale(I, C, A). v(C) :- cust(C, R).",
            "`v` is a union that keeps duplicates (UNION ALL)",
        ),
        (
            SALES + ".view v(c) bag. v(C) :- sale(I, C, A).\n.view w(c) bag. w(C) :- v(C).",
            "`w` reads the view `v`, which is more than a rule",
        ),
    ],
)
def test_what_stays_undecided_says_why(program: str, reason: str) -> None:
    view = next(v for v in catalog_of(program).views if f"`{v.name}` " in reason)
    assert (view.is_decided, str(view.limitation)) == (False, reason)
    assert not view.is_counted


def test_a_bag_that_can_have_no_rows_needs_no_maintenance() -> None:
    (view,) = catalog_of(SALES + ".view v(c) bag. v(C) :- sale(I, C, A), A > 3, A < 2.").views
    assert (view.limitation, view.stored_columns, view.is_counted) == (None, ("c",), True)
    assert view.always_empty is not None


def test_the_number_of_copies_has_a_column_of_its_own() -> None:
    schema = catalog_of(SALES + ".view v(copies, copies_) bag. v(C, A) :- sale(I, C, A).")
    assert schema.view("v").columns == ("copies", "copies_", "copies__")
    assert columns_of(schema)["v"].names == ("copies", "copies_")


def test_a_set_cannot_hold_a_row_twice() -> None:
    bags = SetBags()
    assert bags.expanded(rows((1, 1), (2, 1))) == rows((1,), (2,))
    with pytest.raises(InputError, match="SM404"):
        bags.expanded(rows((1, 2)))


@pytest.mark.parametrize(
    ("view", "word"),
    [
        (".view v(k) bag. v(K) :- e(K), dim(K, Z).", "depends"),
        (".view v(k) bag. v(K) :- dim(K, Z).", "always"),
        ("v(K, count(*)) :- e(K).", "always"),
    ],
)
def test_the_audit_takes_a_row_of_a_group_for_a_core_row(view: str, word: str) -> None:
    """Without it no candidate has a row of `v`, and `w` would wrongly be always self-maintainable."""
    program = (
        ".decl r(a: int not null, k: int not null). .decl e(k: int not null). "
        ".decl s(k: int not null, b: int not null). .decl dim(k: int not null, z: int not null). "
        f"w(A, K, B) :- r(A, K), e(K), s(K, B). {view}"
    )
    words = audit_catalog(
        catalog_of(program), Situation(effective=True), AuditOptions(advise=False)
    ).audit.words()
    assert words["w", "r", "insert"] == "depends"
    assert words["v", "*", "any"] == word
