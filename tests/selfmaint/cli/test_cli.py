"""The command line where it needs no Spark: statements, conformance, codes, usage, exit statuses."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import sqlglot
from sqlglot import exp

from selfmaint.cli.app import COMMANDS, imported
from tests.command_line import run

ROOT = Path(__file__).resolve().parents[3]
PAPER = """\
program_text = '''
.decl r(a not null, b not null).  .decl s(b not null, c not null).  .decl t(c not null).
v1(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z).
v2(Y, Z) :- s(Y, Z).
'''
[views.v1]
path = "v1"
[views.v2]
path = "v2"
"""


@pytest.fixture
def paper(tmp_path: Path) -> str:
    """A warehouse file without any data."""
    path = tmp_path / "w.toml"
    path.write_text(PAPER, encoding="utf-8")
    return str(path)


# ---------------------------------------------------------------------------------------------------- sql


def test_the_paper_s_test_has_the_paper_s_size(paper: str) -> None:
    """Huyn 1997, Example 4.2: one query over the delta and V2, with two negations."""
    ran = run("sql", paper, "v1", "--insert-into", "r", "--format", "json")
    assert (ran.status, ran.stderr) == (0, "")
    (test,) = [s for s in json.loads(ran.stdout)["statements"] if s["kind"] == "test"]
    tree = sqlglot.parse_one(test["sql"], dialect="spark")
    assert isinstance(tree, exp.Select)
    assert tree.args.get("with_") is None
    outer = [tree.args["from_"].this.name, *(join.this.name for join in tree.args["joins"])]
    assert outer == ["r_inserted", "v2"]
    negations = [node for node in tree.find_all(exp.Not) if isinstance(node.this, exp.Exists)]
    assert len(negations) == 2
    assert test["reads"] == ["r_inserted", "v1", "v2"]


def test_statements_come_as_a_script_of_spark_sql(paper: str) -> None:
    ran = run("sql", paper, "v1")
    assert (ran.status, ran.stderr) == (0, "")
    parsed = sqlglot.parse(ran.stdout, dialect="spark")
    kinds = [k for k in re.findall(r"^-- (\w+) ", ran.stdout, re.MULTILINE) if k != "reads"]
    held = kinds.count("held")
    assert kinds == ["held"] * held + ["test"] * 3 + ["probe"] * 2 + ["gained", "lost"]
    made = [p for p in parsed if p is not None and not isinstance(p, exp.Semicolon)]
    assert [type(p) for p in made[:held]] == [exp.Cache] * held
    assert len(made) == held + 7
    read = {table.name for tree in parsed if tree is not None for table in tree.find_all(exp.Table)}
    assert not read & {"r", "s", "t"}, "a base table"


def test_fewer_changes_make_smaller_statements(paper: str) -> None:
    any_change, one = run("sql", paper, "v1"), run("sql", paper, "v1", "--delete-from", "t")
    assert len(one.stdout) < len(any_change.stdout) / 5
    assert "probe" not in one.stdout


def test_rules_instead_of_sql(paper: str) -> None:
    ran = run("sql", paper, "v1", "--insert-into", "r", "--datalog")
    assert "v1@gained(X, Y, Z) :- r@inserted(X, Y), v2(Y, Z), v1(" in ran.stdout


def test_huyn_s_table_1(paper: str) -> None:
    ran = run("sql", paper, "v1", "--insert-into", "r", "--table1")
    assert ran.stdout.count("panic :-") == 3
    assert "t@known(Z) :- v1(X, Y, Z)." in ran.stdout
    found = json.loads(run("sql", paper, "v1", "--table1", "--format", "json").stdout)
    assert set(found) == {"view", "diff", "incon"}


def test_table_names_of_the_warehouse_file_are_used(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text(PAPER.replace('path = "v2"', 'table = "lake.`odd.db`.v2"'), encoding="utf-8")
    ran = run("sql", str(path), "v1", "--insert-into", "r")
    assert "JOIN `lake`.`odd.db`.`v2`" in ran.stdout


def test_hostile_names_are_names(tmp_path: Path) -> None:
    name = "x`; DROP TABLE y; --\n"
    quoted = json.dumps(name)
    rule = "`x``; DROP TABLE y; --\\n`(A) :- r(A)."
    path = tmp_path / "w.toml"
    path.write_text(f"program_text = '''{rule}'''\n[views.{quoted}]\npath = 'v'\n", encoding="utf-8")
    ran = run("sql", str(path), name, "--delete-from", "r")
    assert ran.status == 0, ran.stderr
    statements = [tree for tree in sqlglot.parse(ran.stdout, dialect="spark") if tree is not None]
    (query,) = [tree for tree in statements if not isinstance(tree, exp.Semicolon)]
    assert isinstance(query, exp.Select)
    assert {table.name for table in query.find_all(exp.Table)} == {name, "r_deleted"}


def test_a_name_that_spark_cannot_take_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text("program_text = '`${x}`(A) :- r(A).'\n[views.'${x}']\npath = 'v'\n", encoding="utf-8")
    ran = run("sql", str(path), "${x}", "--delete-from", "r")
    assert ran.status == 2
    assert ran.stderr.startswith("error: ")


def test_a_view_outside_the_class_is_undecided(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text("program_text = 'v(X) :- r(X). v(X) :- s(X).'\n[views.v]\npath = 'v'\n", encoding="utf-8")
    ran = run("sql", str(path), "v")
    assert ran.status == 3
    assert "a union of 2 rules" in ran.stderr


def test_the_merge_of_a_view_that_groups_is_printed(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    path.write_text("program_text = 'v(X, count(*)) :- r(X, Y).'\n[views.v]\npath = 'v'\n", encoding="utf-8")
    ran = run("sql", str(path), "v", "--effective")
    assert ran.status == 0
    assert "MERGE INTO `v` AS `old`" in ran.stdout


# -------------------------------------------------------------------------------------------- conformance

CASE = {
    "id": "one",
    "relations": {"r": 1, "s": 1},
    "program": "v(X) :- r(X), s(X).",
    "views": {"v": [[1]]},
    "insert": {"r": [[2]]},
    "expected": {"v": {"self_maintainable": False}},
}


def cases_file(folder: Path, *cases: object) -> str:
    path = folder / "cases.jsonl"
    path.write_text("".join(json.dumps(case) + "\n" for case in cases), encoding="utf-8")
    return str(path)


def test_conformance_agrees(tmp_path: Path) -> None:
    file = cases_file(tmp_path, CASE, CASE | {"id": "two", "insert": {}, "expected": yes([[1]])})
    ran = run("conformance", file, "--format", "json")
    *outcomes, summary = [json.loads(line) for line in ran.stdout.splitlines()]
    assert (ran.status, ran.stderr) == (0, "")
    assert [(o["case"], o["view"], o["verdict"], o["state"]) for o in outcomes] == [
        ("one", "v", "no", None),
        ("two", "v", "yes", [[1]]),
    ]
    assert all(o["milliseconds"] > 0 for o in outcomes)
    assert summary == {
        "file": file,
        "cases": 2,
        "views": 2,
        "yes": 1,
        "no": 1,
        "undecided": 0,
        "unsound": 0,
        "incomplete": 0,
        "wrong_state": 0,
    }


def yes(state: list[list[int]]) -> dict[str, object]:
    return {"v": {"self_maintainable": True, "state": state}}


def test_conformance_prints_a_line_for_each_disagreement(tmp_path: Path) -> None:
    unsound = CASE | {"id": "u", "insert": {}}
    incomplete = CASE | {"id": "i", "expected": yes([[1]])}
    wrong = CASE | {"id": "w", "delete": {"r": [[1]]}, "insert": {}, "expected": yes([[1]])}
    file = cases_file(tmp_path, CASE, unsound, incomplete, wrong)
    ran = run("conformance", file)
    lines = [line for line in ran.stdout.splitlines() if file in line and "│" not in line]
    assert ran.status == 1
    assert [line.split(":")[0] for line in lines] == ["unsound", "incomplete", "wrong state"]
    assert run("conformance", file, "--limit", "1").status == 0


def test_conformance_refuses_what_is_no_case(tmp_path: Path) -> None:
    ran = run("conformance", cases_file(tmp_path, {"id": 1}), "--format", "json")
    assert ran.status == 2
    assert json.loads(ran.stderr)["errors"][0]["code"] == "SM101"
    assert run("conformance", str(tmp_path / "none.jsonl")).status == 2


# -------------------------------------------------------------------------------- codes, usage, no engine


@pytest.mark.parametrize("code", ["SM102", "sm102", "DL101"])
def test_the_page_of_a_code(code: str) -> None:
    ran = run("explain", code)
    assert ran.status == 0
    assert ran.stdout.startswith(f"# {code.upper()}: ")
    page = json.loads(run("explain", code, "--format", "json").stdout)["page"]
    assert page.strip() == ran.stdout.strip()


@pytest.mark.parametrize(
    "arguments",
    [
        ["check"],
        ["check", "w.toml", "--format", "xml"],
        ["check", "w.toml", "--update", "monday", "--update", "tuesday"],
        ["explain", "w.toml"],
        ["conformance"],
        ["conformance", "x.jsonl", "--limit", "0"],
        ["nothing"],
    ],
)
def test_bad_usage_has_status_2(arguments: list[str]) -> None:
    ran = run(*arguments)
    assert ran.status == 2
    assert ran.stdout == ""
    assert ran.stderr.startswith("usage: selfmaint")


@pytest.mark.parametrize("arguments", [[], ["--insert", "r"], ["--insert", "r=a", "--insert", "r=b"]])
def test_an_update_must_be_given_well(paper: str, arguments: list[str]) -> None:
    assert run("check", paper, *arguments).status == 2


def test_the_demo_is_run_from_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "demo.py"
    monkeypatch.setattr("selfmaint.cli.demo._DEMO", script)
    ran = run("demo")
    assert ran.status == 2
    assert "SM103" in ran.stderr
    script.write_text("def main(argv):\n    print(argv)\n    return 5\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    ran = run("demo", "--scale", "0.01", "x")
    assert (ran.status, ran.stdout) == (5, "['--scale', '0.01', 'x']\n")


def test_help_says_everything() -> None:
    ran = run("--help")
    assert ran.status == 0
    for command in ("check", "maintain", "explain", "sql", "conformance", "demo"):
        assert command in ran.stdout
        assert run(command, "--help").status == 0


def without_java(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """A command in a process of its own, for here a session may be active."""
    env = {"PATH": str(folder), "PYTHONPATH": str(ROOT), "HOME": os.environ.get("HOME", "/")}
    command = [sys.executable, "-m", "selfmaint", *args]
    return subprocess.run(command, env=env, capture_output=True, text=True, check=False)


def test_without_java_the_error_says_what_to_install(paper: str, tmp_path: Path) -> None:
    """SM501."""
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "r.insert.csv").write_text("x,y\n", encoding="utf-8")
    ran = without_java(tmp_path, "check", paper, "--update", str(tmp_path / "u"), "--engine", "spark")
    assert ran.returncode == 2
    assert ran.stderr.startswith("error[SM501]: Java was not found")
    assert "openjdk-17-jre-headless" in ran.stderr


def test_where_neither_engine_can_both_say_why(tmp_path: Path) -> None:
    """SM502 and SM501: DuckDB refuses, and Spark is tried."""
    (tmp_path / "w.toml").write_text(
        'program_text = "v(X, Y) :- r(X, Y)."\n[views.v]\npath = "v"\n', encoding="utf-8"
    )
    pq.write_to_dataset(pa.table({"x": [1], "y": [2]}), tmp_path / "v", partition_cols=["y"])
    (tmp_path / "r.csv").write_text("x,y\n3,4\n", encoding="utf-8")
    ran = without_java(tmp_path, "check", str(tmp_path / "w.toml"), "--insert", f"r={tmp_path / 'r.csv'}")
    assert ran.returncode == 2
    assert ran.stderr.startswith("note: Spark is used: ")
    assert "\nerror[SM502]: " in ran.stderr
    assert "error[SM501]: Java was not found" in ran.stderr


def test_an_old_pyspark_is_refused_when_it_is_needed_and_not_before(paper: str, tmp_path: Path) -> None:
    """SM501. The old PySpark is no more than its version and two names: nothing else of it is looked at."""
    (tmp_path / "pyspark").mkdir()
    (tmp_path / "pyspark" / "__init__.py").write_text("__version__ = '3.5.6'\n", encoding="utf-8")
    (tmp_path / "pyspark" / "sql.py").write_text("DataFrame = SparkSession = object\n", encoding="utf-8")
    (tmp_path / "u").mkdir()
    (tmp_path / "u" / "r.insert.csv").write_text("x,y\n", encoding="utf-8")
    old = {**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"}

    def ran(*args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "selfmaint", *args]
        return subprocess.run(command, env=old, capture_output=True, text=True, check=False)

    needs_it = ran("check", paper, "--update", str(tmp_path / "u"), "--engine", "spark")
    assert needs_it.returncode == 2
    assert needs_it.stderr.startswith("error[SM501]: PySpark 3.5.6 is too old")
    assert ran("sql", paper, "v1").returncode == 0
    beside = f"import pyspark, selfmaint; selfmaint.load({paper!r})"
    found = subprocess.run(
        [sys.executable, "-c", beside], env=old, capture_output=True, text=True, check=False
    )
    assert "SM103" in found.stderr  # DuckDB looked for the views
    assert "SM501" not in found.stderr


def test_what_cannot_be_verified_is_refused_before_spark_starts(paper: str, tmp_path: Path) -> None:
    """SM103 where there is no Java: Spark was not asked for."""
    (tmp_path / "u").mkdir()
    found = without_java(tmp_path, "maintain", paper, "--update", str(tmp_path / "u"), "--verify")
    assert found.returncode == 2
    assert found.stderr.startswith("error[SM103]: cannot verify: `")
    assert "no source" in found.stderr


ENDS = """\
program_text = '''
.decl s(a: int not null, b: int not null). .decl t(b: int not null, c: int not null).
ends(X, Z) :- s(X, Y), t(Y, Z).  firsts(X) :- s(X, Y).  middles(Y, Z) :- t(Y, Z).
'''
[search]
rows = 12
[update]
effective = true
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "`--search-rows`, or `rows` of `[search]`, now 12"),
        (("--search-rows", "200"), None),
        (
            ("--search-rows", "200", "--search-seconds", "0.001"),
            "`--search-seconds`, or `seconds` of `[search]`, now 0.001",
        ),
    ],
)
def test_a_command_line_s_budget_of_the_search_goes_before_the_file_s(
    tmp_path: Path, options: tuple[str, ...], said: str | None
) -> None:
    """Six rows go, each the only way from its first to its end: sixty rows near them tell so."""
    number = 3_000
    stored = {
        "ends": {"x": range(number), "z": range(number, 2 * number)},
        "firsts": {"x": range(number)},
        "middles": {"y": range(2 * number, 3 * number), "z": range(number, 2 * number)},
        "s.delete": {"a": range(5, 11), "b": range(2 * number + 5, 2 * number + 11)},
    }
    for name, columns in stored.items():
        table = pa.table({column: pa.array(values, pa.int32()) for column, values in columns.items()})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    views = "".join(f'[views.{v}]\npath = "{v}.parquet"\n' for v in ("ends", "firsts", "middles"))
    (tmp_path / "w.toml").write_text(ENDS + views, encoding="utf-8")
    given = ("--delete", f"s={tmp_path / 's.delete.parquet'}", "--engine", "duckdb", "--view", "ends")
    ran = run("check", str(tmp_path / "w.toml"), *given, "--format", "json", *options)
    assert ran.status == (0 if said is None else 3)
    assert said is None or said in ran.stdout


def test_an_empty_update_and_a_missing_file_are_told_before_spark_starts(paper: str, tmp_path: Path) -> None:
    (tmp_path / "u").mkdir()

    def said(*args: str) -> str:
        return subprocess.run(
            [sys.executable, "-m", "selfmaint", "check", paper, *args],
            env={"PATH": str(tmp_path), "PYTHONPATH": str(ROOT), "HOME": os.environ.get("HOME", "/")},
            capture_output=True,
            text=True,
            check=False,
        ).stderr

    assert said("--update", str(tmp_path / "u")).startswith("warning[SM101]: the update is empty")
    missing = tmp_path / "r.csv"
    assert said("--insert", f"r={missing}").startswith(
        f"error[SM103]: there is no `{missing}` with the rows of `r`"
    )


def test_importing_the_package_needs_no_spark() -> None:
    code = (
        "import sys, selfmaint\n"
        "from selfmaint.engine.memory import MemoryEngine\n"
        "import selfmaint.api.warehouse as w\n"
        "warehouse = w.build('v(X) :- r(X).', {'v': frozenset({(1,)})}, MemoryEngine())\n"
        "update = selfmaint.Update({'r': frozenset({(2,)})}, {'r': frozenset({(1,)})})\n"
        "print(warehouse.check(update)['v'])\n"
        "print(sorted(warehouse.maintain(update).deltas['v'].gained))\n"
        "assert not [m for m in sys.modules if m.split('.')[0] in ('duckdb', 'pyspark', 'py4j')]\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT)
    assert ran.stderr == ""
    assert ran.stdout == "v  yes  every database that explains what is known gives one new state\n[(2,)]\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_says_what_each_says_first(name: str) -> None:
    function, _ = imported(name)
    said = (function.__doc__ or "").split("\n\n")[0]
    assert COMMANDS[name] == " ".join(said.split())
    ran = run(name, "--help")
    assert ran.status == 0
    assert f"usage: selfmaint {name} [OPTIONS]" in ran.stdout


def test_listing_the_commands_imports_none_of_them() -> None:
    code = (
        "import sys\n"
        "from selfmaint.cli import app\n"
        "try:\n"
        "    app(['--help'])\n"
        "except SystemExit as ended:\n"
        "    assert ended.code == 0\n"
        "print(sorted(m for m in sys.modules if m.partition('.')[0] in ('datalog', 'selfmaint')))\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout.splitlines()[-1] == "['selfmaint', 'selfmaint.cli', 'selfmaint.cli.app']"


FEW_ROWS = """\
program_text = '''
.decl r(x: bigint not null, y: bigint not null).  .decl s(y: bigint not null, z: bigint not null).
.decl t(z: bigint not null).
v1(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z).
v2(Y, Z) :- s(Y, Z).
'''
[engine]
kind = "duckdb"
[views.v1]
path = "v1.csv"
[views.v2]
path = "v2.csv"
"""
LARGE = {
    *("deltalake", "networkx", "numpy", "pandas", "psycopg", "pyarrow", "pyspark", "sympy"),
    *("datalog.sql.views", "datalog.syntax.explain", "selfmaint.feeds.changes"),
}
"""Packages that take long to import; who decides a few rows of text about views in rules needs none of them."""


@pytest.mark.parametrize(
    ("arguments", "other", "said"),
    [
        (["check", "w.toml", "--insert", "r=r.csv"], set(), "t(6) may or may not exist"),
        (["audit", "w.toml"], {"duckdb", "sqlglot"}, "whatever the data?"),
        (["explain", "SM102"], {"duckdb"}, "# SM102: "),
    ],
)
def test_no_command_waits_for_what_it_does_not_use(
    tmp_path: Path, arguments: list[str], other: set[str], said: str
) -> None:
    (tmp_path / "w.toml").write_text(FEW_ROWS, encoding="utf-8")
    for name, rows in {"v1": "x,y,z\n1,2,3\n", "v2": "y,z\n2,3\n5,6\n", "r": "x,y\n7,2\n8,5\n"}.items():
        (tmp_path / f"{name}.csv").write_text(rows, encoding="utf-8")
    code = f"import sys\nfrom selfmaint.cli import app\napp({arguments!r})\nprint(*sys.modules)\n"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert said in ran.stdout
    loaded = set(ran.stdout.splitlines()[-1].split())
    assert loaded & (LARGE | other) == set()


def test_options_may_stand_anywhere(paper: str) -> None:
    assert run("sql", "--insert-into", "r", paper, "--datalog", "v1") == run(
        "sql", paper, "v1", "--datalog", "--insert-into", "r"
    )
    assert run("explain", paper, "--insert", "r=none.csv", "v1").stderr.startswith("error[SM103]")


def test_a_misspelt_command_is_told_what_it_may_mean() -> None:
    ran = run("chekc")
    assert ran.status == 2
    assert "No such command 'chekc'. Did you mean 'check'?" in ran.stderr


ODD = ":key: [b] " + "y " * 150
"""What a table for a terminal would show otherwise: a name of a picture, markup, more than a line."""


def test_statements_are_printed_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "w.toml"
    rule = f".decl r(x: bigint not null, y: string not null). v(X) :- r(X, {ODD!r})."
    path.write_text(f"program_text = {json.dumps(rule)}\n[views.v]\npath = 'v.csv'\n", encoding="utf-8")
    for more in ([], ["--datalog"]):
        assert f"'{ODD}'" in run("sql", str(path), "v", *more).stdout


def test_a_counterexample_in_sql_is_printed_as_it_is(tmp_path: Path) -> None:
    rules = ".decl r(x: string not null, y: bigint). .decl s(x: string not null). v(X, Y) :- r(X, Y), s(X)."
    (tmp_path / "w.toml").write_text(
        f"program_text = {rules!r}\n[engine]\nkind = 'duckdb'\n[views.v]\npath = 'v.csv'\n", encoding="utf-8"
    )
    (tmp_path / "v.csv").write_text("x,y\na,1\n", encoding="utf-8")
    (tmp_path / "r.csv").write_text(f'x,y\n"{ODD}",2\n', encoding="utf-8")
    ran = run("explain", str(tmp_path / "w.toml"), "v", "--insert", f"r={tmp_path / 'r.csv'}", "--sql")
    assert f"'{ODD}'" in ran.stdout


def test_who_reads_no_further_ends_a_command_without_a_traceback(paper: str) -> None:
    command = [sys.executable, "-m", "selfmaint", "sql", paper, "v1"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert (running.stderr.read(), running.wait()) == (b"", 1)


@pytest.mark.parametrize("failure", ["pass", "raise RuntimeError('Query interrupted')", "raise ImportError"])
def test_an_interrupted_command_says_so_in_a_line(failure: str) -> None:
    """Also where a statement, or an import, makes another error of it."""
    code = (
        "import sys, selfmaint.cli\n"
        "def interrupted(arguments):\n"
        "    try: raise KeyboardInterrupt\n"
        f"    finally: {failure}\n"
        "sys.modules['selfmaint.cli.app'].app = interrupted\n"
        "selfmaint.cli.main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, cwd=ROOT)
    assert (ran.returncode, ran.stderr.count(b"\n")) == (130, 1)
    assert ran.stderr.startswith(b"interrupted: ")


def test_sql_warns_of_what_was_asked_for_alone_and_says_if_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(
        "create table a (id bigint primary key, x bigint not null);\n"
        "create view p as select id from a limit 3;\n"
        "create view q as select id, x from a;\n"
        "create table b (id bigint primary key);\n"
        "create view s as select id from p;\n",
        encoding="utf-8",
    )
    path = tmp_path / "w.toml"
    path.write_text(
        'program = "views.sql"\n' + "".join(f'[views.{v}]\npath = "{v}.csv"\n' for v in "pqs"),
        encoding="utf-8",
    )
    assert run("sql", str(path), "q").stderr == ""
    assert run("sql", str(path), "p").stderr.count("warning[DL402]") == 1
    assert run("sql", str(path), "s").stderr.count("warning[DL402]") == 2
    ran = run("sql", str(path), "q", "--insert-into", "b")
    assert (ran.stdout, ran.status) == ("-- nothing to do: these changes do not change `q`\n", 0)
    assert "% nothing to do: these" in run("sql", str(path), "q", "--insert-into", "b", "--datalog").stdout
