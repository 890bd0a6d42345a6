"""`init` holds what is declared of base relations against their rows: a key that is none would make a "yes" wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import run

TABLES = """create table c (id int primary key, n string not null);
create table o (id int primary key, c int references c, t int, u int unique);
create table free (c int references c, t int);
"""
VIEWS = """create view v as select o.id, o.t, c.n from o join c on o.c = c.id;
create view w as select free.c, count(*) as k, max(c.n) as n from free left join c on free.c = c.id group by free.c;
"""
SOUND = {
    "c": "id,n\n1,a\n2,b\n",
    "o": "id,c,t,u\n1,1,5,1\n2,2,6,2\n3,,7,\n4,1,1,\n",
    "free": "c,t\n1,5\n1,5\n,6\n",
}
TOML = 'program = "v.sql"\n[store]\nkind = "lake"\npath = "lake"\n[engine]\nkind = "duckdb"\n'


def made(folder: Path, program: str = TABLES + VIEWS, **rows: str) -> Path:
    for name, text in {**SOUND, **rows}.items():
        (folder / f"{name}.csv").write_text(text, encoding="utf-8")
    (folder / "v.sql").write_text(program, encoding="utf-8")
    relations = "".join(f'[relations.{name}]\npath = "{name}.csv"\n' for name in SOUND)
    toml = folder / "w.toml"
    toml.write_text(TOML + relations, encoding="utf-8")
    return toml


def test_rows_that_are_as_declared_are_taken(tmp_path: Path) -> None:
    assert run("init", str(made(tmp_path))).status == 0


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (
            {"o": "id,c,t,u\n1,1,5,1\n1,2,6,2\n"},
            "several rows of `o` have one value of the key (id): (id=1, rows=2)",
        ),
        (
            {"o": "id,c,t,u\n1,1,5,1\n1,1,5,1\n"},
            "several rows of `o` have one value of the key (id): (id=1, rows=2)",
        ),
        (
            {"o": "id,c,t,u\n1,1,5,7\n2,2,6,7\n3,2,6,\n"},
            "several rows of `o` have one value of the key (u): (u=7, rows=2)",
        ),
        ({"o": "id,c,t,u\n1,8,5,\n2,9,6,\n"}, "rows of `o` reference (c) no row of `c`: (c=8); (c=9)"),
        ({"free": "c,t\n3,5\n3,5\n"}, "rows of `free` reference (c) no row of `c`: (c=3)"),
        (
            {"c": "id,n\n1,a\n2,\n"},
            "rows of `c` have null in `n`, which is declared never to be null: (id=2, n=null)",
        ),
    ],
)
def test_others_are_refused_and_nothing_is_made(tmp_path: Path, rows: dict[str, str], said: str) -> None:
    done = run("init", str(made(tmp_path, **rows)))
    assert done.status == 2
    assert f"error[SM303]: {said}" in done.stderr.replace("\n", " ")
    assert "take back the declaration" in done.stderr
    assert not (tmp_path / "lake").exists()


def test_all_that_is_broken_is_said_at_once(tmp_path: Path) -> None:
    toml = made(tmp_path, c="id,n\n1,a\n1,\n", o="id,c,t,u\n1,7,5,1\n1,1,6,1\n")
    assert run("init", str(toml)).stderr.count("SM303") == 5


def test_what_is_brought_in_again_is_held_against_it(tmp_path: Path) -> None:
    toml = made(tmp_path)
    assert run("init", str(toml)).status == 0
    made(tmp_path, o="id,c,t,u\n1,1,5,1\n1,2,6,2\n")
    done = run("import", str(toml), "--view", "v")
    assert done.status == 2
    assert "SM303" in done.stderr


def test_rows_of_rules_have_no_types_and_their_keys_are_held_all_the_same(tmp_path: Path) -> None:
    rules = ".decl c(id, n) key(id). .decl o(id, c, t, u) key(id) foreign(c) references c(id). .decl free(c, t).\n"
    program = f"{rules} v(I, N) :- o(I, C, _, _), c(C, N). w(C) :- free(C, _).\n"
    toml = made(tmp_path, o="id,c,t,u\n1,1,5,1\n1,2,6,2\n")
    (tmp_path / "v.dl").write_text(program, encoding="utf-8")
    toml.write_text(toml.read_text(encoding="utf-8").replace("v.sql", "v.dl"), encoding="utf-8")
    assert "several rows of `o` have one value of the key (id)" in run("init", str(toml)).stderr
