"""The warehouse file: what it says, and everything that can be wrong with it, each problem with its place."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalog.diagnostics import Diagnostic, ProgramError
from selfmaint.api.file.places import Location
from selfmaint.api.file.secrets import has_password, masked
from selfmaint.api.file.toml_tables import dotted, key_places
from selfmaint.api.file.warehouse_file import SourceKind, read_warehouse_file
from selfmaint.decide.search_budget import SearchBudget
from selfmaint.errors import Code, InputError
from selfmaint.report.errors import errors_text

GOOD = """\
program = "views.dl"
budget_s = 2.5
[views.v1]
path = "views/v1"
[views.v2]
table = "db.v2"

[sources.ops]
kind = "postgres"
url_env = "OPS_URL"
[sources.lake]
kind = "files"

[relations.r]
source = "ops"
table = "public.r"
cost = 4.0
[relations.s]
source = "lake"
path = "s.parquet"

[copies.t]
present = "t_present"

[update]
effective = true
"""
DECLARED = ".decl r(a: int, b: int).  .decl s(a: int, b: int).  .decl t(a: int).\n"
PROGRAM = DECLARED + "v1(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z).\nv2(Y, Z) :- s(Y, Z).\n"


def write(folder: Path, toml: str = GOOD, program: str = PROGRAM) -> Path:
    (folder / "views.dl").write_text(program, encoding="utf-8")
    path = folder / "w.toml"
    path.write_text(toml, encoding="utf-8")
    return path


def problems(folder: Path, toml: str, program: str = PROGRAM) -> tuple[Diagnostic, ...]:
    with pytest.raises(InputError) as caught:
        read_warehouse_file(write(folder, toml, program))
    return caught.value.diagnostics


def only(folder: Path, toml: str, program: str = PROGRAM) -> Diagnostic:
    (found,) = problems(folder, toml, program)
    return found


def test_what_a_good_file_says(tmp_path: Path) -> None:
    file = read_warehouse_file(write(tmp_path))
    assert [view.name for view in file.catalog.views] == ["v1", "v2"]
    assert file.views == {"v1": Location(f"{tmp_path}/views/v1"), "v2": Location("db.v2", is_table=True)}
    assert file.relations["r"].source.kind is SourceKind.POSTGRES
    assert file.relations["r"].source.url_env == "OPS_URL"
    assert file.relations["r"].cost == 4.0
    assert file.relations["s"].location == Location(f"{tmp_path}/s.parquet")
    assert file.relations["s"].cost is None
    assert file.copies["t"].present == Location(f"{tmp_path}/t_present")
    assert file.copies["t"].absent is None
    assert file.effective
    assert file.budget_s == 2.5
    assert file.search == SearchBudget(seconds=1, rows=200)


def test_a_budget_of_searches(tmp_path: Path) -> None:
    file = read_warehouse_file(write(tmp_path, f"{GOOD}[search]\nrows = 1000\n"))
    assert file.search == SearchBudget(seconds=1, rows=1000)
    file = read_warehouse_file(write(tmp_path, f"{GOOD}[search]\nseconds = 0.5\n"))
    assert file.search == SearchBudget(seconds=0.5, rows=200)


def test_absolute_paths_and_uris_are_kept(tmp_path: Path) -> None:
    toml = GOOD.replace('"views/v1"', '"/data/v1"').replace('"s.parquet"', '"s3://bucket/s"')
    file = read_warehouse_file(write(tmp_path, toml))
    assert file.views["v1"].text == "/data/v1"
    assert file.relations["s"].location.text == "s3://bucket/s"


@pytest.mark.parametrize(
    ("old", "new", "line", "message", "hint"),
    [
        (
            'path = "views/v1"',
            'pth = "views/v1"',
            4,
            "unknown key `pth` in `[views.v1]`",
            "a key `path` exists",
        ),
        ("[update]", "[updates]", 25, "unknown key `updates` in the warehouse file", "a key `update` exists"),
        ('kind = "files"', 'kind = "file"', 12, "`file` is no kind of source", "a kind `files` exists"),
        ('source = "lake"', 'source = "lakes"', 19, "there is no source `lakes`", "a source `lake` exists"),
        ("cost = 4.0", 'cost = "4"', 17, "`relations.r.cost` is a string, not a number", None),
        ("cost = 4.0", "cost = -1", 17, "`cost` in `[relations.r]` is -1", None),
        ("cost = 4.0", "cost = nan", 17, "`cost` in `[relations.r]` is nan", None),
        (
            "budget_s = 2.5",
            "budget_s = 0",
            2,
            "`budget_s` in the warehouse file is 0",
            "give a number of seconds",
        ),
        ("budget_s = 2.5", "budget_s = nan", 2, "`budget_s` in the warehouse file is nan", "give a number"),
        ("budget_s = 2.5", 'budget_s = "1"', 2, "`budget_s` is a string, not a number", None),
        ("[update]", "[search]\nrows = 0\n[update]", 26, "`rows` in `[search]` is 0", None),
        (
            "[update]",
            "[search]\nrows = 2.5\n[update]",
            26,
            "`search.rows` is a number, not a whole number",
            None,
        ),
        (
            "[update]",
            "[search]\nrows = true\n[update]",
            26,
            "`search.rows` is true or false, not a whole",
            None,
        ),
        (
            "[update]",
            "[search]\nseconds = 0\n[update]",
            26,
            "`seconds` in `[search]` is 0",
            "give a number of",
        ),
        ("effective = true", "effective = 1", 26, "`update.effective` is a number, not true or false", None),
        ('table = "public.r"', 'path = "r"', 16, "a relation in the source `ops` of kind `postgres`", None),
        ('path = "s.parquet"', "", 18, "`[relations.s]` has no `table` or `path`", None),
        ('path = "views/v1"', 'path = ""', 4, "`path` in `[views.v1]` is empty", None),
        ('present = "t_present"', "", 22, "`[copies.t]` has neither `present` nor `absent`", "say where"),
        (
            'kind = "files"',
            'kind = "files"\nurl_env = "X"',
            13,
            "`[sources.lake]` of kind `files` has no",
            None,
        ),
        ('source = "ops"', "", 14, "`[relations.r]` has no `source`", "name a `[sources.NAME]`"),
        ('kind = "files"', "", 11, "`[sources.lake]` has no `kind`", "one of `postgres`, `files`, `spark`"),
    ],
)
def test_a_problem_has_a_place(
    tmp_path: Path, old: str, new: str, line: int, message: str, hint: str | None
) -> None:
    reported = problems(tmp_path, GOOD.replace(old, new, 1))
    found = next(d for d in reported if d.message.startswith(message))
    assert found.code is Code.WAREHOUSE_FILE
    assert found.span is not None
    assert (found.span.source, found.span.line) == (str(tmp_path / "w.toml"), line)
    assert (found.hint or "").startswith(hint or "")


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ('catalog = "db"\nprogram = "views.dl"\n', "the warehouse file has several of"),
        ('program = "views.dl"\ntables = "keys.dl"\n', "`tables` is for views of Spark's catalog"),
        ('catalog = "db"\n', "`catalog` names no views"),
        ("catalog = []\n", "`catalog` names no views"),
        ("catalog = [1]\n", "`catalog` in the warehouse file has a number in it"),
        ("catalog = 1\n", "`catalog` is a number, not a string"),
        ('catalog = "db"\ntables = "none.sql"\n[views.v]\npath = "v"\n', "there is no file of declarations"),
        ('catalog = "db"\ntables = "views.dl"\n[views.v]\npath = "v"\n', "`{}/views.dl` defines views"),
    ],
)
def test_what_is_wrong_with_views_of_a_catalog_is_said_without_spark(
    tmp_path: Path, toml: str, message: str
) -> None:
    assert any(d.message.startswith(message.format(tmp_path)) for d in problems(tmp_path, toml))


def test_everything_is_reported_at_once(tmp_path: Path) -> None:
    toml = (
        'program = "views.dl"\n[views.v1]\nx = 1\n[views.v3]\npath = "a"\n[relations.q]\n[copies]\nr = "p"\n'
    )
    codes = [(d.code, d.message) for d in problems(tmp_path, toml)]
    assert len(codes) == 8
    assert (Code.MISSING_CONTENTS, "the view `v2` has no entry: its stored rows are needed") in codes
    assert (Code.UNKNOWN_RELATION, "`v3` is no view of the program") in codes
    assert (Code.UNKNOWN_RELATION, "`q` is no base relation of the program") in codes
    assert (Code.WAREHOUSE_FILE, "`copies.r` is a string, not a table") in codes


def test_unknown_keys_are_told_first_and_a_misspelt_store_not_by_its_views(tmp_path: Path) -> None:
    lake = 'program = "views.dl"\n[relations.r]\nsource = "ops"\n[stor]\nkind = "lake"\n'
    found = problems(tmp_path, lake)
    assert found[0].message == "unknown key `stor` in the warehouse file"
    assert found[0].hint == "a key `store` exists"
    assert [d.code for d in found if d.code is Code.MISSING_CONTENTS] == []
    said = [d.code for d in problems(tmp_path, lake.replace("stor", "stor_") + '[views.v1]\npath = "x"\n')]
    assert said[0] is Code.WAREHOUSE_FILE
    assert Code.MISSING_CONTENTS in said, "of `v2`: the file says where views are"


@pytest.mark.parametrize("store", ['kind = "laek"\npath = "l"', 'kind = "lake"', 'path = "l"'])
def test_a_store_that_is_wrong_is_told_alone(tmp_path: Path, store: str) -> None:
    without = "\n".join(GOOD[: GOOD.index("[views")].splitlines()) + f"\n[store]\n{store}\n"
    assert only(tmp_path, without, PROGRAM).code is Code.WAREHOUSE_FILE


def test_misspelt_names_have_near_misses(tmp_path: Path) -> None:
    toml = GOOD.replace("[relations.r]", "[relations.rr]")
    assert only(tmp_path, toml).hint == "a base relation `r` exists"


def test_the_program_s_problems_come_with_the_file_s(tmp_path: Path) -> None:
    toml = GOOD.replace("[update]", "[updates]")
    found = problems(tmp_path, toml, "v1(X) :- r(X, Y), X < Z.")
    assert {d.code.value for d in found} == {"SM101", "DL202"}


def test_a_bad_program_alone_is_a_program_error(tmp_path: Path) -> None:
    with pytest.raises(ProgramError) as caught:
        read_warehouse_file(write(tmp_path, program="v1(X) :- r(X, Y), X < Z."))
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert found.span.source == str(tmp_path / "views.dl")


def test_a_program_in_the_file_is_pointed_at_where_it_stands(tmp_path: Path) -> None:
    toml = "program_text = '''\nv1(X) :- r(X).\nv2(X) :- r(X), X < Z.\n'''\n"
    toml += "[views.v1]\npath = 'a'\n[views.v2]\npath = 'b'\n"
    with pytest.raises(ProgramError) as caught:
        read_warehouse_file(write(tmp_path, toml))
    (found,) = caught.value.diagnostics
    assert found.span is not None
    assert (found.span.source, found.span.line) == (str(tmp_path / "w.toml"), 3)
    assert toml.split("\n")[2][found.span.column - 1] == "Z"


def test_facts_are_no_views(tmp_path: Path) -> None:
    found = problems(tmp_path, GOOD, PROGRAM + "v3(1).\n")
    assert found[0].code is Code.VIEW_OVER_VIEW


def test_relations_in_postgresql_must_be_declared(tmp_path: Path) -> None:
    found = only(tmp_path, GOOD, PROGRAM.removeprefix(DECLARED))
    assert found.message.startswith("the columns of `r` are not declared")


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"SM103.*there is no warehouse file"):
        read_warehouse_file(tmp_path / "none.toml")
    toml = GOOD.replace("views.dl", "view.dl")
    assert only(tmp_path, toml).message == f"there is no program `{tmp_path / 'view.dl'}`"


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"SM101.*cannot be read: is a directory"):
        read_warehouse_file(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b'program = "\xe9"')
    with pytest.raises(InputError, match=r"SM101.*is not UTF-8 text"):
        read_warehouse_file(tmp_path / "latin.toml")


def test_text_that_is_no_toml(tmp_path: Path) -> None:
    found = only(tmp_path, 'program = "views.dl"\nviews = [\n')
    assert "is not TOML" in found.message
    found = only(tmp_path, "program == 3\n")
    assert found.span is not None
    assert (found.span.line, found.span.column) == (1, 10)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunter2@host/db",
        "postgresql://host/db?user=me&password=hunter2",
        "host=h dbname=d password=hunter2",
        "host=h password = 'hunter2'",
    ],
)
def test_a_password_is_refused_and_not_repeated(tmp_path: Path, url: str) -> None:
    toml = GOOD.replace('url_env = "OPS_URL"', f'url = "{url}"')
    found = only(tmp_path, toml)
    assert "holds a password" in found.message
    assert "hunter2" not in repr(found)
    assert found.span is not None
    assert toml.split("\n")[found.span.line - 1].startswith("url = ")
    assert "hunter2" not in masked(toml)


def test_a_url_without_a_password_is_taken(tmp_path: Path) -> None:
    toml = GOOD.replace('url_env = "OPS_URL"', 'url = "postgresql://me@host/db?sslmode=require"')
    source = read_warehouse_file(write(tmp_path, toml)).relations["r"].source
    assert source.url == "postgresql://me@host/db?sslmode=require"
    assert "host" not in repr(source)
    assert not has_password(source.url)


@pytest.mark.parametrize(
    ("line", "place"),
    [
        ('v1 = { path = "x, frmat = 1", frmat = "csv" }', "frmat"),
        ('v1 = {path="x",table="y",  "frmat"=1}', '"frmat"'),
        ("v1 = {path='x', a = {frmat = 1}, frmat = {frmat = 2}}", "frmat = {frmat"),
    ],
)
def test_a_key_in_an_inline_table_has_its_own_place(line: str, place: str) -> None:
    found = key_places(f"[views]\n\n{line}\n", "w.toml")["views", "v1", "frmat"]
    assert (found.line, found.column) == (3, line.rindex(place) + 1)


@pytest.mark.parametrize("section", ["[relations.r]", "[sources.ops]"])
def test_a_url_that_is_not_expected_has_its_own_line_without_its_value(section: str, tmp_path: Path) -> None:
    toml = GOOD.replace(section, f'{section}\nurl = "hunter2"\npasword = "hunter2"')
    assert "hunter2" in toml
    with pytest.raises(InputError) as caught:
        read_warehouse_file(write(tmp_path, toml))
    lines = toml.split("\n")
    named = [lines[d.span.line - 1] for d in caught.value.diagnostics if d.span is not None]
    assert sorted(named) == ['pasword = "hunter2"', 'url = "hunter2"']
    assert "hunter2" not in errors_text(caught.value)


def test_masking_keeps_every_place() -> None:
    text = 'url = "postgresql://me:s3cret@host/db"  # password=other\n'
    assert len(masked(text)) == len(text)
    assert "s3cret" not in masked(text)


names = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=6)


@given(st.dictionaries(names, st.dictionaries(names, st.integers(), min_size=1), min_size=1))
def test_every_key_has_a_place(tables: dict[str, dict[str, int]]) -> None:
    """Oracle: the line that was written."""
    lines: list[str] = []
    expected = {}
    for table, keys in tables.items():
        lines.append(f"[{quoted(table)}]")
        expected[table,] = len(lines)
        for key, value in keys.items():
            lines += ["# comment", f"  {quoted(key)} = {value}"]
            expected[table, key] = len(lines)
    text = "\n".join(lines)
    assert tomllib.loads(text) == tables
    assert {path: span.line for path, span in key_places(text, "f").items()} == expected


def quoted(name: str) -> str:
    return dotted((name,))


def two(tmp_path: Path, first: str, second: str, more: str = "") -> list[Diagnostic]:
    """What is found about paths where both views are files."""
    views = f'program = "views.dl"\n[views.v1]\npath = "{first}"\n[views.v2]\npath = "{second}"\n'
    file = write(tmp_path, views + more)
    try:
        read_warehouse_file(file)
    except InputError as error:
        return list(error.diagnostics)
    return []


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("views/v", "views/v"),
        ("views/v", "./views//v/"),
        ("views/v", "views/v/w"),
        ("views/v/w/x", "views/v"),
        ("views/v", "views/w/../v/x"),
        ("views", "views/v/a.parquet"),
        ("views/v", "link/x"),
        ("link", "views/v"),
        ("views/v", "chain"),
        (".", "views/v"),
        ("views/v", "file://{folder}/views/v"),
    ],
)
def test_a_view_lies_outside_every_other(tmp_path: Path, first: str, second: str) -> None:
    (tmp_path / "views" / "v").mkdir(parents=True)
    (tmp_path / "link").symlink_to("views/v")
    (tmp_path / "chain").symlink_to(tmp_path / "link")
    found = two(tmp_path, first, second.replace("{folder}", str(tmp_path)))
    assert {d.code for d in found} == {Code.WAREHOUSE_FILE}
    about = [d for d in found if "`path` of `[views.v" in d.message]
    assert about
    assert all(d.span is not None and d.span.line in (1, 3, 5) and d.hint for d in about)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("views/v", "views/v2"),
        ("views/v", "views/v.csv"),
        ("views/v", "views/V"),
        ("views/v", "s3://bucket/views/v"),
    ],
)
def test_paths_that_only_look_alike_are_taken(tmp_path: Path, first: str, second: str) -> None:
    (tmp_path / "views" / "v").mkdir(parents=True)
    assert two(tmp_path, first, second) == []


FILES = '[sources.lake]\nkind = "files"\n[relations.s]\nsource = "lake"\npath = "{}"\n'


@pytest.mark.parametrize(
    ("more", "place"),
    [
        (FILES.format("views/v/s"), "relations.s"),
        (FILES.format("views/v"), "relations.s"),
        (FILES.format("views"), "views.v"),
        ('[copies.t]\npresent = "views/v/t"\n', "copies.t"),
        ('[copies.t]\npresent = "t"\nabsent = "t/absent"\n', "copies.t"),
        (FILES.format("t") + '[copies.t]\npresent = "t"\n', "relations.s"),
    ],
)
def test_what_is_read_lies_outside_what_is_written(tmp_path: Path, more: str, place: str) -> None:
    found = two(tmp_path, "views/v", "views/w", more)
    assert found
    assert all(d.code is Code.WAREHOUSE_FILE and f"[{place}" in d.message for d in found)


def test_a_path_without_a_place(tmp_path: Path) -> None:
    """No path can hold NUL; links that lead round in a circle are found missing later."""
    from selfmaint.store.write import recover

    (found,) = two(tmp_path, "a", "b\\u0000c")
    assert found.code is Code.WAREHOUSE_FILE
    assert "NUL" in found.message
    (tmp_path / "circle").symlink_to("circle")
    assert two(tmp_path, "a", "circle") == []
    assert recover([tmp_path / "circle"]) == []


def test_the_program_and_the_file_itself_lie_outside_the_views(tmp_path: Path) -> None:
    (tmp_path / "all").mkdir()
    (tmp_path / "all" / "views.dl").write_text(PROGRAM, encoding="utf-8")
    text = 'program = "all/views.dl"\n[views.v1]\npath = "all"\n[views.v2]\npath = "../{}"\n'
    found = problems(tmp_path, text.format(tmp_path.name))
    messages = " ".join(d.message for d in found)
    assert "`program` lies inside `path` of `[views.v1]`" in messages
    assert "the warehouse file lies inside `path` of `[views.v2]`" in messages


def test_an_update_lies_outside_the_views(tmp_path: Path) -> None:
    from selfmaint.api.file.places import require_outside

    (tmp_path / "v").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "v")
    views = {"v1": str(tmp_path / "v")}
    require_outside([str(tmp_path / "r.insert.csv"), "s3://bucket/v"], views)
    for inside in ("v", "v/r.insert.csv", "link/../v/x", "link/r.insert.csv"):
        with pytest.raises(InputError, match=r"SM101.*inside the path of `v1`"):
            require_outside([str(tmp_path / inside)], views)


def test_how_long_a_server_may_take_is_said_of_a_server(tmp_path: Path) -> None:
    said = GOOD.replace('url_env = "OPS_URL"', 'url_env = "OPS_URL"\ntimeout_s = 2.5')
    assert read_warehouse_file(write(tmp_path, said)).relations["r"].source.timeout_s == 2.5
    assert read_warehouse_file(write(tmp_path)).relations["r"].source.timeout_s is None
    wrong = only(tmp_path, said.replace("2.5\n[sources", "0\n[sources"))
    assert "`timeout_s` in `[sources.ops]` is 0" in wrong.message
    wrong = only(tmp_path, GOOD.replace('kind = "files"', 'kind = "files"\ntimeout_s = 2'))
    assert wrong.message == "`[sources.lake]` of kind `files` has no `timeout_s`"


def test_a_path_needs_no_source(tmp_path: Path) -> None:
    without = GOOD.replace('source = "lake"\n', "", 1)
    assert without != GOOD
    found = read_warehouse_file(write(tmp_path, without, PROGRAM))
    (entry,) = (one for one in found.relations.values() if one.location.is_local)
    assert (entry.source.name, entry.source.kind) == ("files", SourceKind.FILES)
