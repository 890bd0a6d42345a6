"""Views of which only the text is known, over rows at hand: a "no" beside them, and the audit's examples."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

import selfmaint
from selfmaint.api.file.programs import catalog_of
from selfmaint.countermodel.databases import CannotEvaluateError, Evaluation
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable

TABLES = """
create table c (id int not null primary key, n string not null);
create table o (id int not null primary key, c int not null references c, t int not null);
"""
NAMES = "create view names as select o.id, o.c, o.t, c.n from o join c on o.c = c.id;"
RANKS = "create view ranks as select c, id, rank() over (partition by c order by t) as place from o;"
DATABASE = {
    "c": frozenset({(1, "ann"), (2, "bob"), (3, "cy")}),
    "o": frozenset({(1, 1, 5), (2, 1, 6), (3, 2, 1)}),
}


def rows(text: str, tables: str = TABLES) -> Counter[tuple[object, ...]]:
    return Evaluation(catalog_of(f"{tables} create view w as {text};")).state("w", DATABASE)


def test_texts_are_run_over_rows_at_hand() -> None:
    assert rows("select id, rank() over (order by c) as place from o") == Counter([(1, 1), (2, 1), (3, 3)])
    assert rows("select c.id, o.t from c full join o on o.t = c.id and o.c > 1") == Counter(
        [(1, 1), (2, None), (3, None), (None, 5), (None, 6)]
    )
    assert rows("select c from o qualify count(*) over (partition by c) > 1") == Counter({(1,): 2})
    assert rows("select id, n from c where not exists (select 1 from o where o.c = c.id)") == Counter(
        [(3, "cy")]
    )


@pytest.mark.parametrize(
    "text",
    [
        "select id, try_variant_get(parse_json(n), '$.a', 'int') as x from c",
        "select id, row_number() over (order by n) as x, regexp_replace(n, n, '') as y from c",
    ],
)
def test_what_cannot_be_run_is_not_told(text: str) -> None:
    with pytest.raises(CannotEvaluateError, match="only the text of `w` is known"):
        rows(text)


def warehouse(*views: str) -> selfmaint.Warehouse[object]:
    """Over the database above, with an order of a customer that has none, and whose name no view shows but `none`."""
    program = "\n".join([TABLES, *views])
    found = Evaluation(catalog_of(program))
    contents = {}
    for view in found.catalog.views:
        held = sorted(found.state(view.name, DATABASE).elements(), key=repr)
        columns = zip(*held, strict=True) if held else [[] for _ in view.columns]
        contents[view.name] = pa.table([pa.array(list(one)) for one in columns], list(view.columns))
    return selfmaint.build(program, contents, engine="duckdb", effective=True)


def verdict(*views: str, customer: int = 3) -> object:
    """On a new order of a customer."""
    with warehouse(*views) as wh:
        row = {"id": 9, "c": customer, "t": 700}
        new = pa.table({name: pa.array([value], pa.int32()) for name, value in row.items()})
        update = selfmaint.Update.from_frames(wh, {"o": new}, effective=True)
        found = wh.check(update)["names"]
        if isinstance(found, NotSelfMaintainable):
            assert "two databases" in str(wh.explain(update, "names"))
        return found


def test_a_no_beside_a_window() -> None:
    assert isinstance(verdict(NAMES), NotSelfMaintainable)
    assert isinstance(verdict(NAMES, RANKS), NotSelfMaintainable)


def test_rows_without_a_match_tell_a_name() -> None:
    none = "create view none as select id, n from c where not exists (select 1 from o where o.c = c.id);"
    assert isinstance(verdict(NAMES, none), SelfMaintainable)


def test_groups_that_having_lets_through_tell_a_name() -> None:
    large = NAMES.replace(";", " where o.t > 100;")
    some = (
        "create view some as select c.id, c.n, count(*) as k from c join o on o.c = c.id "
        "group by c.id, c.n having count(*) > 1;"
    )
    assert isinstance(verdict(large, customer=1), NotSelfMaintainable)
    assert isinstance(verdict(large, some, customer=1), SelfMaintainable)
    assert not verdict(large, some, customer=2)  # has one order alone


def test_the_audit_has_examples_beside_texts() -> None:
    alone, beside = (
        {k: v for k, v in audited(*views).items() if k[0] == "names"} for views in ([NAMES], [NAMES, RANKS])
    )
    assert alone == beside
    assert "depends" in beside.values()


def audited(*views: str) -> dict[tuple[str, str, str], str]:
    with warehouse(*views) as wh:
        return dict(wh.audit(advise=False).audit.words())


def test_an_example_that_a_text_tells_apart_is_none() -> None:
    """Customers are listed with their names: no two databases with other names agree."""
    listed = "create view listed as select id, n, row_number() over (order by id) as place from c;"
    words = audited(NAMES, listed)
    assert words["names", "o", "insert"] == "undecided"
    assert words["names", "o", "insert"] != audited(NAMES)["names", "o", "insert"]
