"""How `check` says that `maintain` goes on, of random queries over tables and views: what `maintain` then does."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

import selfmaint
from selfmaint.decide import procedure
from tests.effort import effort
from tests.keyed_queries import COLUMNS, Outcome, changed, database, maintained
from tests.random_queries import Maker
from tests.selfmaint.api.following.test_views_as_tables import BELOW

DONE = {"keyed", "added up", "settled", "recomputed"}


def trial(seed: str) -> tuple[str, Outcome]:
    random = Random(seed)
    below = {"u": BELOW[random.choice(sorted(BELOW))]} if random.random() < 0.5 else {}
    tables = {**COLUMNS, **dict.fromkeys(below, ("p", "q", "n", "m"))}
    maker = Maker(random, tables, (*COLUMNS, *below, *below, *below))
    text = maker.sums(1) if random.random() < 0.3 else maker.query(random.choice([1, 2]))
    before = database(random)
    after = changed(random, before)
    is_effective = random.random() < 0.7
    outcome = maintained(text, before, after, below=below, is_effective=is_effective, checked=True)
    return f"{below}: {text}", outcome


@pytest.mark.parametrize("seed", range(effort(3, 40)))
def test_maintain_does_what_is_said(seed: int) -> None:
    for number in range(effort(6, 40)):
        text, outcome = trial(f"{seed}.{number}")
        way = None if outcome.way is None else outcome.way.by
        if outcome.how in ("keyed", "added up"):
            assert way in (None, "keyed reads", "views"), (text, outcome)
        elif outcome.how == "recomputed":
            assert way in (None, "views", "keyed reads"), (text, outcome)
        elif outcome.how not in DONE:
            assert way in ("recomputing", "reads", "nothing"), (text, outcome)


STAGED = {"u": "select a, abs(b) as b from r where c > 1", "w": "select f, d from s"}


@pytest.mark.parametrize("seed", range(effort(8, 200)))
def test_a_yes_by_the_views_below_needs_no_base_row(seed: int) -> None:
    text = "select u.a, u.b, w.n from u left join (select d, count(*) as n from w group by d) w on w.d = u.a"
    random = Random(seed)
    before = database(random)
    outcome = maintained(text, before, changed(random, before), below=STAGED, strict=True, checked=True)
    assert outcome.found == outcome.right
    if outcome.way is None:
        assert outcome.how in DONE, outcome


@pytest.mark.parametrize("seed", range(effort(3, 40)))
def test_what_would_spare_base_rows_does(seed: int) -> None:
    said = 0
    for number in range(effort(8, 40)):
        random = Random(f"untold.{seed}.{number}")
        text = Maker(random, COLUMNS, (*COLUMNS,)).query(random.choice([1, 2]))
        before = database(random)
        after = changed(random, before)
        untold = maintained(text, before, after, checked=True).untold
        if untold:
            copies = {f"all_{name}": f"select * from {name}" for name in untold}
            outcome = maintained(text, before, after, below=copies, strict=True)
            assert outcome.how in DONE, (text, untold, outcome.how)
            assert outcome.found == outcome.right
            said += 1
    assert said


KEYLESS = """
CREATE TABLE ord (f INT NOT NULL, c INT NOT NULL);
CREATE TABLE kept (f INT NOT NULL PRIMARY KEY, c INT NOT NULL);
CREATE VIEW different AS SELECT f, count(DISTINCT c) AS k FROM ord GROUP BY f;
CREATE VIEW places AS SELECT f, c, rank() OVER (PARTITION BY f ORDER BY c) AS k FROM ord;
CREATE VIEW kept_places AS SELECT f, rank() OVER (PARTITION BY c ORDER BY f) AS k FROM kept;
"""


def test_copies_of_tables_without_a_key_spare_nothing() -> None:
    whole = pa.schema([("f", pa.int32()), ("c", pa.int32())])
    counted = pa.schema([("f", pa.int32()), ("k", pa.int64())])
    ranked = pa.schema([("f", pa.int32()), ("c", pa.int32()), ("k", pa.int32())])
    contents = {
        "different": pa.Table.from_pylist([{"f": 1, "k": 1}], counted),
        "places": pa.Table.from_pylist([{"f": 1, "c": 2, "k": 1}], ranked),
        "kept_places": pa.Table.from_pylist(
            [{"f": 1, "k": 1}], pa.schema([("f", pa.int32()), ("k", pa.int32())])
        ),
    }
    warehouse = selfmaint.build(KEYLESS, contents, engine="duckdb", effective=True)
    new = {name: pa.Table.from_pylist([{"f": 5, "c": 2}], whole) for name in ("ord", "kept")}
    found = warehouse.check(selfmaint.Update.from_frames(warehouse, new, {}))
    assert not found["different"]
    assert found.untold.keys() <= {"kept_places"}


OUTER = (
    "select r.a, r.c, s.d, t.y from r left join s on r.b = s.f left join t on r.c = t.x",
    "select r.a, s.d, o.d as other from r left join s on r.b = s.f left join s o on s.e = o.f",
    "select a, c from r where b > 1 union all select f, d from s where e > 1 union all select x, y from t",
)


@pytest.mark.parametrize("text", OUTER)
def test_that_branches_are_not_tried_makes_no_other_verdict(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    below = {"u": "select a, b from r", "w": "select f, d, e from s where d > 1", "all_t": "select * from t"}
    for number in range(effort(3, 100)):
        random = Random(f"{number}")
        before = database(random)
        after = changed(random, before)
        outcomes = []
        for most in (1_000, -1):
            monkeypatch.setattr(procedure, "_MANY_CHANGES", most)
            outcomes.append(maintained(text, before, after, below=below, checked=True))
        assert all(one.found == one.right for one in outcomes)
        assert len({one.way is None for one in outcomes}) == 1


def test_every_way_is_said_at_times() -> None:
    said = set[str | None]()
    for number in range(60):
        way = trial(f"ways.{number}")[1].way
        said.add(None if way is None else way.by)
        if said >= {None, "keyed reads", "views"}:
            return
    raise AssertionError(said)


PROGRAM = """
CREATE TABLE r (a INT NOT NULL PRIMARY KEY, b INT, c INT);
CREATE TABLE s (f INT NOT NULL PRIMARY KEY, d INT);
CREATE VIEW windows AS SELECT a, rank() OVER (PARTITION BY b ORDER BY c) AS place FROM r;
CREATE VIEW above AS SELECT place, count(DISTINCT a) AS n FROM windows GROUP BY place;
CREATE VIEW joined AS SELECT r.a, r.b, s.d FROM r JOIN s ON r.b = s.f WHERE s.d > 1;
CREATE VIEW no_key AS SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY c) AS m FROM r;
"""


def test_what_may_not_tell_is_not_promised() -> None:
    text = "select sum(r.c) as q from r left join s on r.b = s.f where s.e > 0 or s.e is null"
    before = {
        "r": frozenset({(1, 1, 5), (2, 1, 6), (3, 2, None), (4, 3, 1)}),
        "s": frozenset({(1, 2, 3), (2, 2, 4), (3, 1, 1)}),
        "t": frozenset[tuple[int, ...]](),
    }
    after = {**before, "r": frozenset({(3, 2, None)})}
    outcome = maintained(text, before, after, checked=True)
    assert outcome.how not in DONE
    assert str(outcome.way) == "reads rows of `r`, `s`, if they settle it"


NAMES = ("windows", "above", "joined", "no_key")
WHOLE = "[update]\neffective = true\n"


def test_what_is_said_of_each_way(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(PROGRAM, encoding="utf-8")
    contents = {
        "windows": "a,place\n1,1\n",
        "above": "place,n\n1,1\n",
        "joined": "a,b,d\n",
        "no_key": "m\n3.0\n",
        "r": "a,b,c\n1,2,3\n",
        "s": "f,d\n2,1\n",
    }
    for name, text in contents.items():
        (tmp_path / f"{name}.csv").write_text(text, encoding="utf-8")
    views = "".join(f'[views.{name}]\npath = "{name}.csv"\n' for name in contents if name not in "rs")
    bases = "".join(f'[relations.{name}]\npath = "{name}.csv"\n' for name in "rs")
    (tmp_path / "w.toml").write_text(f'program = "views.sql"\n{WHOLE}{views}', encoding="utf-8")
    (tmp_path / "read.toml").write_text(f'program = "views.sql"\n{WHOLE}{views}{bases}', encoding="utf-8")
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "r.insert.csv").write_text("a,b,c\n5,2,7\n", encoding="utf-8")
    said = {}
    for file in ("w.toml", "read.toml"):
        with selfmaint.load(tmp_path / file, engine="duckdb") as warehouse:
            verdicts = warehouse.check(selfmaint.Update.from_files(warehouse, tmp_path / "up"))
            said[file] = {name: str(way) for name, way in verdicts.ways.items()}
    assert said == {
        "w.toml": dict.fromkeys(NAMES, "in no way: a source is missing, or its query cannot be run"),
        "read.toml": {
            "windows": "keyed reads of `r`",
            "above": "from the views that it reads",
            "joined": "reads rows of `r`, `s`, if they settle it",
            "no_key": "only with `--recompute`, from all rows of `r`",
        },
    }


def test_a_relation_that_stands_behind_not_alone_is_no_view() -> None:
    rows = pa.table({"x": pa.array([1], pa.int64())})
    warehouse = selfmaint.build("v(X) :- t(X), not s(X, 1).", {"v": rows}, engine="duckdb", effective=True)
    new = pa.table({"x": pa.array([2], pa.int64())})
    verdicts = warehouse.check(selfmaint.Update.from_frames(warehouse, {"t": new}, {}, effective=True))
    assert verdicts["v"].kind.value == "undecided"
