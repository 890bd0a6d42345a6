"""Views over stored views and tables, followed by keys: what plain DuckDB gives for random queries over both."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest

from datalog.model import Row
from selfmaint import SourceError
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.following import others, views_as_tables
from selfmaint.api.following.how_followed import tables_of_all
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.engine.memory import MemoryEngine
from tests.effort import effort
from tests.keyed_queries import COLUMNS, TABLES, Database, Outcome, changed, database, maintained
from tests.random_queries import Maker

BELOW = {
    "groups": "select b as p, count(*) as q, sum(c) as n, count(c) as m from r group by b",
    "distinct values": "select b as p, count(distinct c) as q, max(a) as n, min(c) as m from r group by b",
    "windows": "select a as p, b as q, rank() over (partition by b order by c nulls first) as n, c as m from r",
    "left join": "select r.a as p, r.b as q, s.f as n, s.d as m from r left join s on r.b = s.f",
    "shown rows": "select r.a as p, r.b as q, s.f as n, s.e as m from r join s on r.c = s.f",
    "all rows": "select distinct b as p, c as q, b as n, c as m from r where c > 0",
    "left out": "select b as p, count(*) as q, max(c) as n, min(c) as m from r group by b having count(*) > 1",
    "one row": "select count(*) as p, sum(c) as q, count(c) as n, max(b) as m from r",
    "set": "select b as p, c as q, 1 as n, 2 as m from r union select f, d, 1, 2 from s",
    "told apart": "select a as p, b as q, 1 as n, c as m from r union all select f, d, 2, e from s",
    "not there": "select f as p, d as q, e as n, f as m from s where not exists (select 1 from t where t.x = s.f)",
}
"""Queries with columns `p`, `q`, `n` and `m`."""
TRIALS, STACKED = effort(6, 60), effort(7, 12)


def trial(seed: str) -> tuple[str, Outcome | None]:
    random = Random(seed)
    below = {name: BELOW[random.choice(sorted(BELOW))] for name in ("u", "w")[: random.choice([1, 1, 2])]}
    tables = {**COLUMNS, **dict.fromkeys(below, ("p", "q", "n", "m"))}
    maker = Maker(random, tables, (*COLUMNS, *below, *below))
    text = (
        maker.sums(random.choice([1, 2])) if random.random() < 0.3 else maker.query(random.choice([1, 2, 2]))
    )
    before = database(random)
    after = changed(random, before)
    is_after, shown = random.random() < 0.6, f"{below}: {text}"
    try:
        return shown, maintained(text, before, after, source_is_after=is_after, below=below)
    except SourceError:  # what the decision itself reads has to be after the update
        assert not is_after
        return shown, None


STACKS = {
    "a group of nulls": {
        "u": "select b, count(distinct c) as n from r group by b",
        "w": "select s.f, s.d, u.n from s left join u on u.b = s.d",
        "v": "select w.f, t.y from w left join t on t.x = w.n",
    },
    "one row": {
        "u": "select count(*) as n, sum(c) as m from r",
        "v": "select s.f, u.m from s left join u on u.n = s.d",
    },
    "computed anew": {
        "u": "select b, count(distinct c) as n from r group by b",
        "w": "select n, count(*) as k from u group by n",
        "v": "select t.x, t.y, w.k from t left join w on w.n = t.x",
    },
}


@pytest.mark.parametrize("stack", STACKS)
def test_stacks(stack: str) -> None:
    below = dict(STACKS[stack])
    text = below.pop("v")
    ways = Counter[str]()
    for number in range(STACKED):
        random = Random(number)
        before = database(random)
        outcome = maintained(text, before, changed(random, before), below=below)
        assert outcome.found == outcome.right, (number, stack)
        ways[outcome.how] += 1
    assert ways["keyed"] + ways["settled"] == STACKED, ways


@pytest.mark.parametrize("seed", range(effort(3, 30)))
def test_views_over_views_and_tables_are_what_recomputing_gives(seed: int) -> None:
    for number in range(TRIALS):
        text, outcome = trial(f"{seed}.{number}")
        assert outcome is None or outcome.found == outcome.right, text


def test_many_of_them_are_followed() -> None:
    ways = Counter[str]()
    for number in range(20):
        text, outcome = trial(f"ways.{number}")
        if outcome is not None:
            assert outcome.found == outcome.right, text
            ways[outcome.how] += 1
        if ways["keyed"] + ways["added up"] > 2:
            return
    raise AssertionError(ways)


def trial_alone(seed: str) -> tuple[str, Outcome]:
    """Of a view over views alone, without a base row for some; of some updates it is not known what was there."""
    random = Random(seed)
    below = {name: BELOW[random.choice(sorted(BELOW))] for name in ("u", "w")[: random.choice([1, 1, 2])]}
    maker = Maker(random, dict.fromkeys(below, ("p", "q", "n", "m")), tuple(below))
    text = maker.sums(1) if random.random() < 0.3 else maker.query(random.choice([1, 2]))
    before = database(random)
    is_effective, strict = random.random() < 0.7, random.random() < 0.3
    after = changed(random, before)
    outcome = maintained(text, before, after, below=below, is_effective=is_effective, strict=strict)
    return f"{below}: {text}", outcome


@pytest.fixture
def by_keys_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows there are."""
    monkeypatch.setattr(others, "MANY_ROWS", 0)
    monkeypatch.setattr(others, "SHARE", 0)


@pytest.mark.usefixtures("by_keys_always")
@pytest.mark.parametrize("seed", range(effort(3, 60)))
def test_views_over_views_alone_are_what_recomputing_gives(seed: int) -> None:
    for number in range(TRIALS):
        text, outcome = trial_alone(f"{seed}.{number}")
        assert outcome.found == outcome.right, text


@pytest.mark.usefixtures("by_keys_always")
def test_many_views_over_views_alone_are_followed() -> None:
    ways = Counter[str]()
    for number in range(20):
        text, outcome = trial_alone(f"ways.{number}")
        assert outcome.found == outcome.right, text
        ways[outcome.how] += 1
        if ways["keyed"] + ways["added up"] > 5:
            return
    raise AssertionError(ways)


def test_a_change_of_a_view_that_is_overlooked_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the trials can fail."""
    monkeypatch.setattr(views_as_tables, "with_changes_of_views", lambda update, _deltas: update)
    below = {"u": BELOW["distinct values"]}
    text = "select t.x, t.y, max(u.q) as q from t join u on t.x = u.p group by t.x, t.y"
    assert any(_is_wrong(text, below, number) for number in range(60))


def _is_wrong(text: str, below: dict[str, str], number: int) -> bool:
    random = Random(number)
    before = database(random)
    outcome = maintained(text, before, changed(random, before), below=below)
    return outcome.found != outcome.right


def test_an_empty_view_at_hand_is_a_table_of_its_columns() -> None:
    program = (
        "create table s (f int primary key, e int);"
        "create table r (a int not null, b int not null references s, c int not null);"
        "create view e as select r.a, r.b, r.c, s.f from r left join s on r.b = s.f and s.e > 1;"
        "create view u as select b, count(*) as n, sum(c) as z from r group by b;"
        "create view v as select max(z) as z from u;"
    )
    stored: dict[str, frozenset[Row]] = {"e": frozenset(), "u": frozenset(), "v": frozenset({(None,)})}
    warehouse = build(program, stored, MemoryEngine())
    update = Update(
        {"s": frozenset({(1, 1)}), "r": frozenset({(1, 1, 1)})}, {"s": frozenset({(2, 1)})}, effective=True
    )
    assert warehouse.check(update)["v"].kind == "yes"


LOOKED_UP = """
create table s (f int primary key, e int);
create table r (a int primary key, b int references s, c int);
create view u as select r.a, r.c, coalesce(s.e, 0) as e from r left join s on s.f = r.b;
create view w as select r.a, r.c, 'r' as what from r union all select s.f, s.e, 's' from s;
create view x as select r.a, r.c, 'r' as what from r union all select s.f, s.e, 'r' from s;
"""


def test_the_keys_of_views_whose_rows_are_decided_in_parts() -> None:
    tables = tables_of_all(build(LOOKED_UP, dict.fromkeys("uwx", frozenset()), MemoryEngine()).catalog)
    keys = {name: [[tables[name].columns[i] for i in key] for key in tables[name].keys] for name in "uwx"}
    assert keys == {"u": [["a"]], "w": [["a", "what"]], "x": []}


def test_the_types_of_views_that_leave_nulls_out() -> None:
    text = """create table p (id int primary key, flag boolean, amount decimal(8,2));
        create table q (id int primary key, amount decimal(8,2));
        create view u as select 'p' as kind, id, amount from p where flag is not null
          union all select 'q', id, amount from q where amount is not null and id > 2;
        create view w as select kind, sum(case when kind = 'p' then amount else 0 end) as total from u group by kind;"""
    tables = tables_of_all(catalog_of(text))
    assert [str(kind) for kind in tables["u"].types] == ["string", "int", "decimal(8,2)"]
    assert [str(kind) for kind in tables["w"].types] == ["string", "decimal(22,2)"]


def _referencing(base: Database) -> Database:
    """The database with null where a row of `r` has no `s`."""
    there = {f for f, _, _ in base["s"]}
    return {**base, "r": frozenset((a, b if b in there else None, c) for a, b, c in base["r"])}


@pytest.mark.usefixtures("by_keys_always")
@pytest.mark.parametrize("seed", range(effort(30, 600)))
def test_views_over_left_joins_that_are_read_as_two(seed: int) -> None:
    below = {
        "u": "select r.a, r.c, coalesce(s.e, 0) as e from r left join s on s.f = r.b",
        "w": "select r.a as p, r.c as q, 'r' as n from r union all select f, d, 's' from s",
    }
    text = (
        "select a, e, rank() over (partition by e order by c nulls first, a) as place from u",
        "select w.n, count(distinct w.q) as q, max(u.e) as e from u join w on w.p = u.a group by w.n",
    )[seed % 2]
    random = Random(seed)
    before = database(random)
    after = _referencing(changed(random, before))
    tables = TABLES.replace("b int", "b int references s")
    outcome = maintained(text, _referencing(before), after, below=below, tables=tables)
    assert outcome.found == outcome.right, text
    assert outcome.how in ("keyed", "added up", "settled"), outcome.how
