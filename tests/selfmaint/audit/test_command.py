"""`selfmaint audit`: formats, exit statuses, baselines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import selfmaint
from selfmaint.api.warehouse import build
from selfmaint.engine.memory import MemoryEngine
from tests.command_line import run

CHAIN = """.decl r(x: int not null, y: int not null).
.decl s(y: int not null, z: int not null).
v(X, Y, Z) :- r(X, Y), s(Y, Z).
"""
COPY = "copy(Y, Z) :- s(Y, Z).\n"


def warehouse(folder: Path, rules: str) -> str:
    (folder / "views.dl").write_text(rules, encoding="utf-8")
    names = [line.split("(")[0] for line in rules.splitlines() if ":-" in line]
    entries = "".join(f'[views.{name}]\npath = "{name}.csv"\n' for name in names)
    (folder / "w.toml").write_text(
        f'program = "views.dl"\n{entries}[update]\neffective = true\n', encoding="utf-8"
    )
    return str(folder / "w.toml")


def test_the_table_shows_verdicts_example_and_advice(tmp_path: Path) -> None:
    ran = run("audit", warehouse(tmp_path, CHAIN))
    assert ran.status == 0
    for part in (
        "after insert",
        "always, if readable",
        "✓ always",
        "? depends",
        "the views hold: nothing",
        "s_copy",
    ):
        assert part in ran.stdout


def test_warnings_are_of_the_views_that_are_asked_for(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(
        "create table r (a int primary key, b int);\n"
        "create view g as select a, grouping(a) as x, grouping(b) as y, count(*) as n from r group by cube (a, b);\n"
        "create view w as select a from r;\n",
        encoding="utf-8",
    )
    (tmp_path / "w.toml").write_text(
        'program = "views.sql"\n[views.g]\npath = "g.csv"\n[views.w]\npath = "w.csv"\n', encoding="utf-8"
    )
    path = str(tmp_path / "w.toml")
    assert "grouping" not in run("audit", path, "--view", "w").stderr
    of_g = run("audit", path, "--view", "g", "--no-advice")
    assert of_g.stderr.count("`grouping` cannot be analysed") == 1
    assert "the same in 1 more place of this text" in of_g.stderr
    assert of_g.stdout.count("`grouping` cannot be") == 1


@pytest.mark.parametrize(
    ("rules", "options", "status"),
    [
        (CHAIN, [], 0),
        (CHAIN, ["--fail-on", "depends"], 1),
        (CHAIN, ["--fail-on", "never"], 0),
        (CHAIN.replace("y: int not null).", "y: int not null) key(y).", 1), ["--fail-on", "never"], 1),
        (COPY, ["--fail-on", "depends"], 0),
        ("p(X) :- r(X, Y).  p(Y) :- r(X, Y).\n", ["--fail-on", "depends"], 1),
        ("p(X, count(*)) :- r(X, Y) having count(*) > 100.\n", ["--fail-on", "depends"], 3),
        (CHAIN, ["--without", "s"], 1),
        (CHAIN + COPY, ["--without", "s"], 0),
        (CHAIN, ["--write-baseline"], 2),
        (CHAIN, ["--rows", "r=many"], 2),
        (CHAIN, ["--without", "q"], 2),
    ],
)
def test_exit_statuses(tmp_path: Path, rules: str, options: list[str], status: int) -> None:
    assert run("audit", warehouse(tmp_path, rules), "--no-advice", *options).status == status


def test_a_baseline_lets_only_what_got_worse_fail(tmp_path: Path) -> None:
    baseline = ["--no-advice", "--baseline", str(tmp_path / "b.json")]
    file = warehouse(tmp_path, CHAIN + COPY)
    assert run("audit", file, *baseline, "--write-baseline").status == 0
    assert run("audit", file, *baseline).status == 0
    file = warehouse(tmp_path, CHAIN)
    ran = run("audit", file, *baseline)
    assert ran.status == 1
    assert "worse: v, insert on r: always -> depends" in ran.stdout
    assert "insert on s" not in ran.stdout
    found = json.loads(run("audit", file, *baseline, "--format", "json").stdout)
    assert {"view": "v", "changes": "r", "kind": "insert", "before": "always", "now": "depends"} in found[
        "worse"
    ]


def test_json_has_everything(tmp_path: Path) -> None:
    found = json.loads(run("audit", warehouse(tmp_path, CHAIN), "--format", "json", "--rows", "s=70").stdout)
    line = next(entry for entry in found["audit"] if entry["changes"] == "r")
    assert line["verdicts"]["delete"]["verdict"] == "always"
    example = line["verdicts"]["insert"]["example"]
    assert example["first"] == {}
    assert list(example["second"]) == ["s"]
    assert line["readable"] == [{"relations": ["s"], "cost": 1.0}]
    add = [one["proposal"] for advice in found["advice"] for one in advice["add"]]
    assert "s_copy(X0, X1) :- s(X0, X1)." in add


def test_sarif_points_at_the_rule(tmp_path: Path) -> None:
    ran = run("audit", warehouse(tmp_path, CHAIN), "--format", "sarif", "--no-advice")
    (sarif,) = json.loads(ran.stdout)["runs"]
    rules = {rule["id"] for rule in sarif["tool"]["driver"]["rules"]}
    place = sarif["results"][0]["locations"][0]["physicalLocation"]
    assert {result["ruleId"] for result in sarif["results"]} <= rules
    assert place["artifactLocation"]["uri"].endswith("views.dl")
    assert place["region"]["startLine"] == 3


def test_a_page_is_written_to_a_file(tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    ran = run("audit", warehouse(tmp_path, CHAIN), "--format", "html", "-o", str(out))
    assert (ran.status, ran.stdout) == (0, f"written: {out} (1 view after any change: 1 depends)\n")
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert run("audit", warehouse(tmp_path, CHAIN), "--format", "html", "-o", str(tmp_path)).status == 2


def test_from_python() -> None:
    given: Any = build(CHAIN, {"v": frozenset()}, MemoryEngine())
    report = given.audit(without=["s"], effective=True)
    assert report.audit.words()["v", "r", "insert"] == "depends"
    assert report.loss is not None
    assert [one.changed for one in report.loss.broken] == ["r"]
    with pytest.raises(selfmaint.SelfmaintError, match="SM102"):
        given.audit(views=["w"])
