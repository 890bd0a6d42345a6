"""Definitions that are edited while a store holds the rows of the old ones. Oracle: the views, recomputed by hand."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import selfmaint
from selfmaint.api.file.programs import catalog_of
from selfmaint.errors import InputError
from selfmaint.warehouse.written import written
from tests.command_line import Ran, run

TABLES = "create table r (a int primary key, b string, d int);\ncreate table s (a int primary key, x int);\n"
VIEWS = """
create view v as select a, d from r where d > 3;
create view g as select b, count(*) as n from r group by b;
create view over_g as select b from g where n > 1;
"""
STORES = ["lake", "delta"]


@pytest.fixture(params=STORES)
def shop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A warehouse in a store, with rows, in the working directory."""
    monkeypatch.chdir(tmp_path)
    store = f'program = "v.sql"\n[store]\nkind = "{request.param}"\npath = "store"\n'
    source = '[sources.f]\nkind = "files"\n[relations.r]\nsource = "f"\npath = "r.csv"\n'
    Path("w.toml").write_text(f"{store}{source}[update]\neffective = true\n")
    Path("v.sql").write_text(TABLES + VIEWS)
    Path("r.csv").write_text("a,b,d\n1,x,4\n2,x,7\n3,y,2\n")
    assert run("init", "w.toml").status == 0


def edit(old: str, new: str) -> None:
    """Edits the definitions."""
    text = Path("v.sql").read_text()
    assert old in text
    Path("v.sql").write_text(text.replace(old, new))


def maintain(row: str, *options: str) -> Ran:
    """Inserts a row of `r`, in its file as well."""
    folder = Path(row)
    folder.mkdir()
    (folder / "r.insert.csv").write_text(f"a,b,d\n{row}\n")
    with Path("r.csv").open("a") as file:
        file.write(f"{row}\n")
    return run("maintain", "w.toml", "--update", str(folder), *options)


@pytest.mark.usefixtures("shop")
def test_rows_of_another_definition_are_not_taken_for_its_own() -> None:
    edit("d > 3", "d > 1")
    refused = maintain("4,z,9")
    assert refused.status == 2
    assert "[SM411]" in refused.stderr
    assert "the stored rows of `v`" in refused.stderr
    assert "`g`" not in refused.stderr
    Path("r.csv").write_text("a,b,d\n1,x,4\n2,x,7\n3,y,2\n")
    assert run("import", "w.toml", "--view", "v").status == 0
    with Path("r.csv").open("a") as file:
        file.write("4,z,9\n")
    assert run("maintain", "w.toml", "--update", "4,z,9", "--verify").status == 0


@pytest.mark.usefixtures("shop")
def test_a_view_that_reads_an_edited_one_follows_it() -> None:
    edit("from r group by b", "from r where d > 3 group by b")
    refused = run("import", "w.toml", "--view", "over_g")
    assert refused.status == 2
    assert "the stored rows of `g`" in refused.stderr
    brought = run("import", "w.toml", "--view", "g")
    assert brought.status == 0
    assert "over_g" in brought.stdout
    assert maintain("4,y,9", "--verify").status == 0


@pytest.mark.usefixtures("shop")
def test_what_is_written_over_an_edited_view_is_brought_in_with_it() -> None:
    edit("create view over_g", "create view over_v as select a from v where d > 6;\ncreate view over_g")
    assert run("import", "w.toml", "--view", "over_v").status == 0
    edit("where d > 3", "where d < 9")
    assert run("import", "w.toml", "--view", "v").status == 0
    assert maintain("4,z,8", "--verify").status == 0
    found = run("query", "w.toml", "select a from over_v order by a", "--format", "json")
    assert json.loads(found.stdout)["rows"] == [[2], [4]]


@pytest.mark.usefixtures("shop")
def test_spaces_comments_and_columns_that_are_not_read_are_no_edit() -> None:
    edit("select a, d from r where d > 3", "select  a, d -- more\nfrom r x\nwhere x.d > 3")
    edit("d int);", "d int, more string);")
    Path("r.csv").write_text("a,b,d,more\n1,x,4,\n2,x,7,\n3,y,2,\n4,z,9,\n")
    Path("u").mkdir()
    Path("u/r.insert.csv").write_text("a,b,d,more\n4,z,9,\n")
    assert run("maintain", "w.toml", "--update", "u", "--verify").status == 0


@pytest.mark.usefixtures("shop")
def test_another_text_of_the_same_rows_is_kept_when_it_is_said() -> None:
    edit("n > 1", "n >= 2")
    assert run("check", "w.toml", "--update", "r.csv").status == 2
    kept = run("import", "w.toml", "--keep", "over_g")
    assert kept.status == 0, kept
    assert "over_g as before the store" in re.sub(r"[\s│]+", " ", kept.stdout)
    assert maintain("4,y,9", "--verify").status == 0
    unknown = run("import", "w.toml", "--keep", "over_h")
    assert "`over_h` is no view" in unknown.stderr


@pytest.mark.usefixtures("shop")
def test_a_view_that_was_left_out_for_a_while_is_brought_in_anew() -> None:
    view = "create view v as select a, d from r where d > 3;\n"
    edit(view, "")
    assert maintain("4,z,9").status == 0
    edit("create view g", f"{view}create view g")
    refused = maintain("5,z,9")
    assert refused.status == 2
    assert "was maintained without it" in refused.stderr
    assert run("import", "w.toml", "--view", "v").status == 0
    assert run("import", "w.toml").status == 0
    assert maintain("6,z,9", "--verify").status == 0


@pytest.mark.usefixtures("shop")
def test_undo_returns_to_what_the_rows_were_of() -> None:
    assert maintain("4,z,9").status == 0
    old = selfmaint.history("w.toml")[-1].version
    edit("d > 3", "d > 1")
    assert run("import", "w.toml").status == 0
    assert run("undo", "w.toml", "--to", str(old)).status == 0
    with pytest.raises(InputError, match="SM411"):
        selfmaint.load("w.toml")
    edit("d > 1", "d > 3")
    assert maintain("5,z,9", "--verify").status == 0


@pytest.mark.usefixtures("shop")
def test_a_store_that_says_nothing_is_told_with_the_next_update(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("selfmaint.api.stores.store_filling.said_of", lambda *_: {})
        edit("d > 3", "d > 1")
        Path("w.toml").write_text(Path("w.toml").read_text().replace('"store"', '"other"'))
        assert run("init", "w.toml").status == 0
    assert maintain("4,z,9").status == 0
    edit("d > 1", "d > 2")
    with pytest.raises(InputError, match="SM411"):
        selfmaint.load("w.toml")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("select a from r where d > 1", "SELECT  r.a FROM r WHERE 1 < r.d", False),
        ("select a from r where d > 1", "select q.a from r as q where q.d > 1", True),
        ("select a from r where d > 1", "select a from r where d > 1 and b = 'x'", False),
        ("select a from r", "select distinct a from r", False),
        ("select b from r", "select distinct b from r", False),
        ("select a, b from r", "select b, a from r", False),
        ("select a as k from r", "select a as l from r", False),
        ("select a from r union all select a from s", "select a from s union all select a from r", False),
        (
            "select a from (select * from r where d > 1)",
            "with t as (select * from r where d > 1) select a from t",
            True,
        ),
        (
            "select a, rank() over (order by d) as n from r",
            "select a,  rank() over (order by d) as n -- c\nfrom r",
            True,
        ),
        (
            "select a, rank() over (order by d) as n from r",
            "select a, rank() over (order by b) as n from r",
            False,
        ),
        ("select a, 'x  y' || b as n from r", "select a, 'x y' || b as n from r", False),
    ],
)
def test_what_an_edit_is(one: str, other: str, same: bool) -> None:
    found = [written(catalog_of(f"{TABLES}create view v as {text};"))["v"] for text in (one, other)]
    assert (found[0] == found[1]) is same


def test_a_temporary_view_is_part_of_what_reads_it() -> None:
    query = "create view v as select a, rank() over (order by d) as n from t;"
    found = {
        written(catalog_of(f"{TABLES}create temporary view t as select * from r where d > {d};{query}"))["v"]
        for d in (1, 2)
    }
    assert len(found) == 2


def test_two_texts_of_one_form_have_the_same_rows() -> None:
    """A rule's variables, and the order of its subgoals, are as they are written; columns are known by name."""
    rule = "v(A, B) :- r(A, B, _), A > 1."
    texts = [f".decl r(a: int, b: int, {c}: int). {rule}" for c in ("c", "d")]
    assert len({written(catalog_of(text))["v"] for text in texts}) == 1
    other = ".decl r(b: int, a: int, c: int)."
    assert written(catalog_of(other + rule)) != written(catalog_of(texts[0]))


@pytest.mark.usefixtures("shop")
def test_the_same_feed_without_positions_is_known_again() -> None:
    Path("monday").mkdir()
    Path("monday/r.insert.csv").write_text("a,b,d\n4,x,9\n")
    Path("r.csv").write_text("a,b,d\n1,x,4\n2,x,7\n3,y,2\n4,x,9\n")
    assert run("maintain", "w.toml", "--feed", "monday").status == 0
    again = run("maintain", "w.toml", "--feed", "monday")
    assert "committed before" in again.stdout + again.stderr
    assert [state.said.kind for state in selfmaint.history("w.toml") if state.said] == ["init", "maintain"]


LEFT = "create table r (a int primary key, b int);\ncreate table c (id int primary key, {});\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("n int, m int); create view v (w, x, y, z) as select r.a, c.* from r left join c on r.a = c.id",
         "m int, n int); create view v (w, x, y, z) as select r.a, c.* from r left join c on r.a = c.id"),
        ("n int); create view v as select a, n from r natural left join c",
         "n int, b int); create view v as select a, n from r natural left join c"),
        ("n int); create view v as select b from r where not exists (select 1 from c where id = a)",
         "n int, a int); create view v as select b from r where not exists (select 1 from c where id = a)"),
        ("n int); create view v as select id from c where n + 0.1 = 0.3",
         "n double); create view v as select id from c where n + 0.1 = 0.3"),
        ("n date); create view v as select id, current_date as t from c",
         "n date); create view v as select id, date '2000-01-01' as t from c"),
    ],
)  # fmt: skip
def test_what_a_query_means_by_its_tables_is_part_of_it(one: str, other: str) -> None:
    moment = datetime(2026, 11, 24, tzinfo=UTC)
    found = [written(catalog_of(LEFT.replace("{});\n", text), moment=moment))["v"] for text in (one, other)]
    assert found[0] != found[1]


def test_columns_of_rules_have_names() -> None:
    rule = "v(A, B) :- r(A, B)."
    texts = [
        f".decl r(a: int, b: int). .decl v({names}). {rule}" for names in ("x: int, y: int", "y: int, x: int")
    ]
    assert len({written(catalog_of(text))["v"] for text in texts}) == 2


def test_spaces_of_a_text_are_no_edit() -> None:
    query = "create view v as select a, 'A' as k, rank() over (order by b) as n from r;"
    found = {
        written(catalog_of(LEFT.format("n int") + text))["v"] for text in (query, query.replace(", ", " ,"))
    }
    assert len(found) == 1
