"""Views that leave groups out by HAVING: what their stored groups, the update and other views tell, by hand.

Random ones are held against every database over small domains (`tests/selfmaint/decide/test_group_decision.py`).
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from datalog.model import ColumnType, Row, TypeName
from selfmaint import Update
from selfmaint.api.check import check
from selfmaint.api.explain import explain
from selfmaint.api.maintain import new_contents
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.decide import differing
from selfmaint.decide.verdict import SelfMaintainable, Undecided
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Engine
from tests.oracle.aggregates import Aggregate, Asked, Relation, Schema, View

SALE = ".decl sale(id: int not null, cust: string not null, amount: int) key(id).\n"
COUNTED = "v(C, count(*), sum(A)) :- sale(I, C, A) having count(*) > 1."
Rows = frozenset[Row]


def rows(*given: Row) -> Rows:
    return frozenset(given)


def warehouse(views: str, **stored: Rows) -> Warehouse[Rows]:
    return build(SALE + views, stored, MemoryEngine())


def update(inserted: Rows = frozenset(), deleted: Rows = frozenset()) -> Update[Rows]:
    return Update({"sale": inserted}, {"sale": deleted}, effective=True)


def new(made: Warehouse[Rows], changes: Update[Rows]) -> Rows | None:
    """The new rows of `v`; None if its new state is not known to be determined."""
    if not isinstance(check(made, changes)["v"], SelfMaintainable):
        return None
    return new_contents(made, made.view("v"), made.maintain(changes).deltas["v"])


@pytest.mark.parametrize(
    ("stored", "inserted", "deleted", "expected"),
    [
        # A stored group changes, or is left out.
        (rows(("k", 2, 7)), rows((9, "k", 4)), rows(), rows(("k", 3, 11))),
        (rows(("k", 3, 7), ("l", 2, 1)), rows(), rows((1, "k", 2)), rows(("k", 2, 5), ("l", 2, 1))),
        (rows(("k", 2, 7)), rows(), rows((1, "k", 2)), rows()),
        (rows(("k", 2, 7)), rows((9, "k", 4)), rows((1, "k", 2), (2, "k", 5)), rows()),
        # One that is not stored had a row at most: with one lost it had that, and without, nobody knows.
        (rows(), rows(), rows((1, "k", 2)), rows()),
        (rows(), rows((9, "k", 4)), rows((1, "k", 2)), rows()),
        (rows(), rows((8, "k", None), (9, "k", 4)), rows((1, "k", 2)), rows(("k", 2, 4))),
        (rows(), rows((9, "k", 4)), rows(), None),
    ],
)
def test_groups_of_some_rows(stored: Rows, inserted: Rows, deleted: Rows, expected: Rows | None) -> None:
    assert new(warehouse(COUNTED, v=stored), update(inserted, deleted)) == expected


ONE, TWO = (
    "v(C, sum(A)) :- sale(I, C, A) having sum(A) != 0.",
    "v(C, sum(A), sum(coalesce(A, 1))) :- sale(I, C, A) having any(sum(A) != 0, sum(coalesce(A, 1)) != 0).",
)


@pytest.mark.parametrize(
    ("view", "stored", "inserted", "deleted", "expected"),
    [
        (ONE, rows(("k", 7)), rows((9, "k", 4), (8, "l", 1)), rows(), rows(("k", 11), ("l", 1))),
        (ONE, rows(("k", 7)), rows(), rows((1, "k", 7)), rows()),
        (ONE, rows(("k", 7)), rows(), rows((1, "k", 9)), rows(("k", -2))),
        (ONE, rows(), rows(), rows((1, "k", 9)), rows(("k", -9))),
        (ONE, rows(), rows((8, "k", None), (9, "k", 2)), rows((1, "k", 2)), rows()),
        (ONE, rows(("k", 7)), rows(), rows((1, "k", None)), rows(("k", 7))),
        ("v(C) :- sale(I, C, A) having sum(A) != 0.", rows(("k",)), rows((9, "k", 4)), rows(), None),
        ("v(C) :- sale(I, C, A) having sum(A) != 0.", rows(), rows((9, "k", 4)), rows(), None),
        (TWO.replace("sum(A), ", "", 1), rows(("k", 1)), rows((9, "k", -1)), rows(), None),
        (TWO, rows(), rows((9, "k", 4)), rows(), None),  # the first is null or 0, and either would be shown
        (
            TWO.replace("sum(A)", "sum(coalesce(A, 0))"),
            rows(),
            rows((9, "k", None)),
            rows(),
            rows(("k", 0, 1)),
        ),
        (
            TWO.replace("sum(A)", "sum(coalesce(A, 0))"),
            rows(("k", 3, 4), ("l", 1, 1)),
            rows((9, "k", -3)),
            rows((1, "k", None), (2, "l", 1)),
            rows(),
        ),
    ],
)
def test_groups_that_add_up_to_something(
    view: str, stored: Rows, inserted: Rows, deleted: Rows, expected: Rows | None
) -> None:
    assert new(warehouse(view, v=stored), update(inserted, deleted)) == expected


def test_an_update_that_may_not_be_effective_is_no_contradiction() -> None:
    """A row to delete that was never there: another view, which counts, does not lose more than it has."""
    program = f"{COUNTED} fine(C, A, count(*)) :- sale(I, C, A)."
    made = warehouse(program, v=rows(), fine=rows(("k", 4, 1)))
    changes = Update({"sale": rows((9, "k", 4))}, {"sale": rows((1, "k", 2))}, effective=False)
    assert not check(made, changes)["v"]


@pytest.mark.parametrize(
    ("view", "stored", "inserted", "deleted", "expected"),
    [
        # An extremum that is asked for is there, and only a gained value passes it.
        ("v(C, min(A)) :- sale(I, C, A) having min(A) > 2.", rows(), rows((9, "k", 2)), rows(), rows()),
        ("v(C, min(A)) :- sale(I, C, A) having min(A) > 2.", rows(), rows((9, "k", 3)), rows(), None),
        ("v(C, min(A)) :- sale(I, C, A) having min(A) > 2.", rows(), rows(), rows((1, "k", 3)), rows()),
        ("v(C, min(A)) :- sale(I, C, A) having min(A) > 2.", rows(), rows(), rows((1, "k", 1)), None),
        ("v(C, max(A)) :- sale(I, C, A) having max(A) > 2.", rows(), rows((9, "k", 2)), rows(), rows()),
        ("v(C, max(A)) :- sale(I, C, A) having max(A) > 2.", rows(), rows(), rows((1, "k", 1)), rows()),
        # A sum over no value is null: one of -1 may come of that, and is more than -3 then.
        ("v(C, sum(A)) :- sale(I, C, A) having sum(A) > 0.", rows(), rows((9, "k", -1)), rows(), rows()),
        ("v(C, sum(A)) :- sale(I, C, A) having sum(A) > -3.", rows(), rows((9, "k", -1)), rows(), None),
        # The last row may be gone, and the sum of 0 with it: more than -3 is asked, or more than 3.
        (
            "v(C, sum(A)) :- sale(I, C, A) having sum(A) > -3.",
            rows(("k", 1)),
            rows(),
            rows((1, "k", 1)),
            None,
        ),
        (
            "v(C, sum(A)) :- sale(I, C, A) having sum(A) > 0.",
            rows(("k", 1)),
            rows(),
            rows((1, "k", 1)),
            rows(),
        ),
        # What is asked of the group is so or not, and nothing else is left out.
        (
            "v(C, count(*)) :- sale(I, C, A) having C != 'k'.",
            rows(("l", 1)),
            rows((8, "k", 1), (9, "m", 1)),
            rows((1, "l", 1), (2, "k", 1)),
            rows(("m", 1)),
        ),
        # A count that is not shown only grows: one that falls may pass what is asked.
        (
            "v(C, sum(A)) :- sale(I, C, A) having count(*) > 1.",
            rows(("k", 5)),
            rows((9, "k", 2)),
            rows(),
            rows(("k", 7)),
        ),
        (
            "v(C, sum(A)) :- sale(I, C, A) having count(*) > 1.",
            rows(("k", 5)),
            rows(),
            rows((1, "k", 2)),
            None,
        ),
        # One of two was so, and nobody knows which.
        (
            "v(C, sum(A)) :- sale(I, C, A) having any(sum(A) < 2, count(*) > 2).",
            rows(("k", 1)),
            rows((9, "k", 1)),
            rows(),
            None,
        ),
        # All rows are one group, which may be left out, too.
        ("v(count(*)) :- sale(I, C, A) having count(*) < 2.", rows(), rows((9, "k", 1)), rows(), rows()),
        (
            "v(count(*)) :- sale(I, C, A) having count(*) < 2.",
            rows((1,)),
            rows(),
            rows((1, "k", 1)),
            rows((0,)),
        ),
        ("v(count(*)) :- sale(I, C, A) having count(*) < 2.", rows((1,)), rows((9, "k", 1)), rows(), rows()),
        # More than single aggregates is not read.
        (
            "v(C, sum(A)) :- sale(I, C, A) having sum(A) + 1 > 2.",
            rows(("k", 5)),
            rows((9, "k", 2)),
            rows(),
            None,
        ),
    ],
)
def test_what_is_asked(view: str, stored: Rows, inserted: Rows, deleted: Rows, expected: Rows | None) -> None:
    assert new(warehouse(view, v=stored), update(inserted, deleted)) == expected


@pytest.mark.parametrize(
    ("other", "told", "expected"),
    [
        (
            "w(C, count(*), sum(A)) :- sale(I, C, A).",
            rows(("k", 1, 3), ("l", 2, 5)),
            rows(("k", 2, 7), ("l", 2, 5)),
        ),
        (
            "w(I, C, A) :- sale(I, C, A).",
            rows((1, "k", 3), (2, "l", 4), (3, "l", 1)),
            rows(("k", 2, 7), ("l", 2, 5)),
        ),
        # The number of rows is told, and not what they add up to.
        ("w(C, count(*)) :- sale(I, C, A).", rows(("l", 2)), rows(("l", 2, 5))),
        ("w(C, count(*)) :- sale(I, C, A).", rows(("k", 1), ("l", 2)), None),
    ],
)
def test_groups_that_others_tell(other: str, told: Rows, expected: Rows | None) -> None:
    made = warehouse(f"{other}\n{COUNTED}", v=rows(("l", 2, 5)), w=told)
    assert new(made, update(rows((9, "k", 4)))) == expected


_COUNT, _SUM = Aggregate("count", "*"), Aggregate("sum", "A")
_INT, _BIGINT, _STRING = (ColumnType(name) for name in (TypeName.INT, TypeName.BIGINT, TypeName.STRING))


def many_groups(random: Random) -> tuple[Schema, Rows, Rows]:
    """Views with HAVING, the sales of many customers, and those after an update that determines the views.

    As many sales come as go, none larger, and what was the least is there again.
    """
    names = tuple(f"k{i}" for i in range(40))
    body = (("sale", ("I", "C", "A")),)
    views = (
        View("v0", ("C",), (_COUNT, Aggregate("min", "A")), body, having=(Asked(_COUNT, ">", 1),)),
        View("v1", ("C",), (_SUM,), body, having=(Asked(_SUM, ">", 4),)),
    )
    sale = Relation("sale", (tuple(range(400)), names, (1, 2, 3, 4)))
    old = {
        (10 * at + i, c, random.randint(1, 4))
        for at, c in enumerate(names)
        for i in range(random.randint(0, 3))
    }
    least = {c: min(row[2] for row in old if row[1] == c) for _, c, _ in old}
    lost = set(random.sample(sorted(old), len(old) // 3))
    gained = {(key + 5, c, a) for key, c, a in lost if a == least[c] or random.random() < 0.5}
    return Schema((sale,), (400,), views), frozenset(old), frozenset(old - lost | gained)


def require_right(engine: Engine[Any], random: Random) -> None:
    """Holds the new rows of `many_groups` against the oracle's."""
    schema, old, after = many_groups(random)

    def loaded(rows: Rows, *types: ColumnType) -> Any:
        return engine.load(rows, [f"c{i}" for i in range(len(types))], types)

    types = {"v0": (_STRING, _BIGINT, _INT), "v1": (_STRING, _BIGINT)}
    contents = {v.name: loaded(frozenset(v.rows({"sale": old})), *types[v.name]) for v in schema.views}
    made = build(schema.text, contents, engine)
    sale = (_INT, _STRING, _INT)
    found = made.maintain(
        Update({"sale": loaded(after - old, *sale)}, {"sale": loaded(old - after, *sale)}, effective=True)
    )
    for view in schema.views:
        rows = new_contents(made, made.view(view.name), found.deltas[view.name])
        expected = frozenset(view.rows({"sale": after}))
        assert frozenset(engine.fetch(rows, 100) or ()) == expected
        assert expected != frozenset(view.rows({"sale": old}))


@pytest.mark.parametrize("engine", [MemoryEngine, DuckEngine])
@pytest.mark.parametrize("seed", range(3))
def test_many_groups_at_once(engine: type[Any], seed: int) -> None:
    require_right(engine(), Random(seed))


def test_a_yes_is_explained() -> None:
    made = warehouse(COUNTED, v=rows(("k", 3, 7)))
    found = explain(made, update(rows((9, "k", 4)), rows((1, "l", 4))), "v")
    assert isinstance(found.verdict, SelfMaintainable)
    assert str(found).startswith("`v` is self-maintainable")


def test_a_reason_names_the_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differing, "NEAR_ROWS", ())  # a search may find two databases in time, or not
    view = "v(C, sum(A)) :- sale(I, C, A) having count(*) > 1."
    made, changes = warehouse(view, v=rows(("k", 5))), update(deleted=rows((1, "k", 2)))
    verdict = check(made, changes)["v"]
    assert isinstance(verdict, Undecided)
    assert (
        "nothing tells all that `v` asks for and shows of some groups that gain or lose rows (groups: k)"
        in str(verdict.reasons)
    )
