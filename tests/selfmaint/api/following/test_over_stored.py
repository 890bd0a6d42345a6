"""Views over staging views, which are unfolded: told by these where what is below does not tell them."""

from __future__ import annotations

import pickle
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

import selfmaint
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.following import others
from selfmaint.api.following.over_views import INEXACT
from selfmaint.warehouse.over_stored import over_stored
from tests.command_line import run
from tests.effort import EXPLORE, effort
from tests.keyed_queries import Outcome, changed, database, maintained, require_right
from tests.plain_duckdb import plain_duckdb
from tests.random_queries import Maker

STAGED = {
    "plain": "select a as p, b as q, c as n, b as m from r",
    "computed": "select a as p, coalesce(b, 0) as q, a + 1 as n, c as m from r",
    "filtered": "select f as p, d as q, e as n, -e as m from s where d > 0",
    "joined": "select r.a as p, s.d as q, r.c as n, coalesce(s.e, 9) as m from r join s on r.b = s.f",
    "without a key": "select b as p, c as q, 1 as n, coalesce(c, 0) as m from r",
    "distinct": "select distinct b as p, coalesce(c, 0) as q, 1 as n, 2 as m from r",
    "matched": "select r.a as p, r.b as q, s.d as n, s.e as m from r left join s on r.b = s.f",
    "both": "select a as p, b as q, c as n, 0 as m from r union all select f, d, e, 1 from s",
    "twice": "select b as p, c as q, 1 as n, 2 as m from r union all select d, d, 1, 2 from s",
}
"""Queries with columns `p`, `q`, `n` and `m`."""
TRIALS = effort(6, 60)


def trial(seed: str) -> tuple[str, Outcome]:
    random = Random(seed)
    below = {name: STAGED[random.choice(sorted(STAGED))] for name in ("u", "w")[: random.choice([1, 2])]}
    maker = Maker(random, dict.fromkeys(below, ("p", "q", "n", "m")), tuple(below))
    text = maker.sums(random.choice([1, 2])) if random.random() < 0.5 else maker.query(random.choice([1, 2]))
    before = database(random)
    is_effective, strict = random.random() < 0.7, random.random() < 0.5
    after = changed(random, before)
    found = maintained(
        text, before, after, below=below, is_effective=is_effective, strict=strict, checked=True
    )
    return f"{below}: {text}", found


@pytest.fixture(params=[0, None], ids=["by keys", "whole"])
def rows_for_keys(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """From how many rows on what reads views alone is followed by keys."""
    if request.param is not None:
        monkeypatch.setattr(others, "MANY_ROWS", request.param)
        monkeypatch.setattr(others, "SHARE", 0)


@pytest.mark.usefixtures("rows_for_keys")
@pytest.mark.parametrize("seed", range(effort(3, 60)))
def test_views_over_staging_views_are_what_recomputing_gives(seed: int) -> None:
    followed = 0
    for number in range(TRIALS):
        text, outcome = trial(f"{seed}.{number}")
        if outcome.found != Counter() or not outcome.right:
            followed += 1
        if outcome.how in ("keyed", "added up", "settled", "recomputed"):
            assert outcome.found == outcome.right, text
    assert followed


BELOW = {
    "u": "select a as p, coalesce(b, 0) as q, c as n from r where a > 0",
    "w": "select f as p, coalesce(d, 9) as area from s",
    "x": "select a as p, 'r' as source, c as n from r union all select f, 's', e from s",
}
VIEWS = {
    "left join": "select w.area, count(distinct u.n) as n, max(u.q) as top from u left join w on w.p = u.q "
    "group by w.area",
    "largest": "select q, max(n) as n, count(distinct n) as m from u group by q",
    "union and table": "select w.area, x.source, count(*) as n, sum(x.n) as total from x join w on w.p = x.p "
    "group by w.area, x.source",
    "left out": "select area, max(p) as p from w group by area having count(*) > 1",
}


SUBQUERIES = (
    "select u.p, u.q, u.n, u.m from u where u.p in (select f from s)",
    "select u.p, u.q, u.n, u.m from u where exists (select 1 from r where r.b = u.q)",
    "select u.p, u.q, u.n, u.m from u where u.q in (select w.q from u w where w.n > 0)",
    "select u.p, u.q, u.n, u.m, r.a from u join r on r.b = u.q where exists (select 1 from u w where w.p = u.p)",
)


@pytest.mark.parametrize("staged", STAGED if EXPLORE else ("twice", "without a key"))
@pytest.mark.parametrize("query", SUBQUERIES)
def test_rows_of_a_view_that_stand_twice_do_so_beside_a_subquery(staged: str, query: str) -> None:
    require_right(query, effort(2, 30), {"u": STAGED[staged]})


@pytest.mark.parametrize("name", VIEWS)
def test_no_base_row_is_needed_where_the_staging_views_are_determined(name: str) -> None:
    for number in range(effort(6, 60)):
        random = Random(number)
        before = database(random)
        after = changed(random, before)
        outcome = maintained(VIEWS[name], before, after, below=BELOW, strict=True, checked=True)
        assert outcome.found == outcome.right, (name, number)
        assert outcome.way is None, outcome.way
        assert not outcome.reads


TABLES = """
create table kind (id int primary key, label string, area string);
create table site (id int primary key, kind int not null references kind, amount decimal(9, 2), secret string);
create view stg_site as select id, kind, amount from site where amount > 0;
"""


def test_a_copy_of_a_catalog_knows_of_no_queries() -> None:
    catalog = catalog_of(
        f"{TABLES} create view v as select kind, max(amount) as n from stg_site group by kind;"
    )
    view = catalog.view("v")
    found = over_stored(catalog, view)
    assert found is not None
    assert not found.is_decided
    copied = pickle.loads(pickle.dumps(catalog.queries))  # noqa: S301 - its own
    assert copied is not None
    assert copied("v") is None


def test_what_is_counted_or_reads_tables_alone_is_left() -> None:
    catalog = catalog_of(
        f"{TABLES} create view v as select kind from stg_site; create view w as select id from site;"
    )
    assert all(over_stored(catalog, view) is None for view in catalog.views)


DOUBLES = """
create table r (id bigint not null primary key, k int not null, y double not null);
create view stg as select id, k, y from r where id > 0;
"""


def two_updates(query: str) -> tuple[selfmaint.Warehouse[Any], selfmaint.Update[Any]]:
    """A view over `stg`, and an update of the table that it tells."""
    rows = pa.table({"id": pa.array([1, 2]), "k": pa.array([1, 1], pa.int32()), "y": [0.3, 0.2]})
    with plain_duckdb() as plain:
        plain.register("stg", rows)
        stored = plain.sql(query).to_arrow_table()
    warehouse: selfmaint.Warehouse[Any] = selfmaint.build(
        f"{DOUBLES} create view v as {query};", {"stg": rows, "v": stored}, engine="duckdb", effective=True
    )
    more = pa.table({"id": pa.array([3]), "k": pa.array([1], pa.int32()), "y": [0.1]})
    return warehouse, selfmaint.Update.from_frames(warehouse, {"r": more})


@pytest.mark.parametrize(
    "query",
    [
        "select k from stg group by k having sum(y) > 0.6E0",
        "select k, sum(y) > 0.6E0 as big from stg group by k",
        "select k, count(distinct id) as n, sum(y) > 0.6E0 as big from stg group by k",
        "select k, count(distinct id) as n from stg group by k having sum(y) > 0.6E0",
        "select k, rank() over (order by s) as place from (select k, sum(y) as s from stg group by k) x",
        "select k from (select k, 2 * sum(y) as s from stg group by k) x where s > 1",
    ],
)
def test_sums_of_doubles_depend_on_the_order(query: str) -> None:
    warehouse, update = two_updates(query)
    assert warehouse.check(update)["stg"]
    assert not warehouse.check(update)["v"]


@pytest.mark.parametrize(
    "query",
    [
        "select k, count(distinct id) as n, sum(y) as total from stg group by k",
        "select k, rank() over (order by k) as place, 2 * s as s from (select k, sum(y) as s from stg group by k) x",
    ],
)
def test_sums_of_doubles_that_are_shown_are_near(query: str) -> None:
    warehouse, update = two_updates(query)
    verdict = warehouse.check(update)["v"]
    assert isinstance(verdict, selfmaint.SelfMaintainable), str(verdict)
    assert INEXACT in verdict.remarks


def test_a_definition_over_views_stays_what_it_is() -> None:
    warehouse, update = two_updates("select y, count(distinct k) as n from stg group by y")
    assert warehouse.check(update)["v"]
    found = warehouse.maintain(update, strict=True)
    assert pa.table(found.deltas["v"].gained).to_pylist() == [{"y": 0.1, "n": 1}]


def test_the_query_that_recomputes_a_view_reads_copies_as_they_stand(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(
        f"{DOUBLES} create view copies as select k + 1 as s, k from r;"
        "create view v as select s, count(distinct k) as n from copies group by s;",
        encoding="utf-8",
    )
    (tmp_path / "w.toml").write_text(
        'program = "views.sql"\n[store]\nkind = "lake"\npath = "lake"\n', encoding="utf-8"
    )
    done = run("sql", str(tmp_path / "w.toml"), "v", "--insert-into", "r")
    assert "FROM `copies`" in done.stdout, done


def test_a_union_whose_queries_have_other_types_is_explained() -> None:
    query = "select k as c, y from stg union all select id as c, y from stg"
    warehouse, update = two_updates(query)
    assert "self-maintainable" in str(warehouse.explain(update, "v"))


PARTS = {
    "r": (
        "select a, b from r",
        "select b as a, coalesce(c, 0) as c, a as b from r",
        "select distinct a as k, cast(b as bigint) as b from r",
        "select cast(a as decimal(20, 3)) as b, a as c, b as a from r",
        "select b, c from r",
    ),
    "s": (
        "select f, d from s",
        "select d as f, f as e, coalesce(e, 1) as d from s",
        "select f, d from s where d > 0",
    ),
}
"""Staging views that show some columns of a table, under the names of others, too."""
SEEN = {"r": ("a", "b"), "s": ("f", "d")}


@pytest.mark.usefixtures("rows_for_keys")
@pytest.mark.parametrize("seed", range(effort(3, 100)))
def test_texts_over_tables_that_staging_views_show_in_part(seed: int) -> None:
    told = 0
    for number in range(effort(8, 30)):
        random = Random(f"part {seed}.{number}")
        below = {f"stg_{name}": random.choice(its) for name, its in PARTS.items()}
        maker = Maker(random, SEEN, ("r", "r", "s"))
        text = (
            maker.sums(random.choice([1, 2])) if random.random() < 0.5 else maker.query(random.choice([1, 2]))
        )
        before = database(random)
        found = maintained(text, before, changed(random, before), below=below, checked=True)
        assert found.found == found.right or found.how not in FOLLOWED, (below, text)
        told += found.way is None
    assert told


FOLLOWED = ("keyed", "added up", "settled", "recomputed")
