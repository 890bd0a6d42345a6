"""What keeps the audit of many views small, by counting work: independent parts, choices that matter, examples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from datalog.budget import BudgetSpentError, limit
from datalog.model import Atom, Predicate, Variable, Version
from datalog.syntax import parse_program
from selfmaint.api.audit import AuditOptions, audit_catalog
from selfmaint.audit import advice, cell, orders
from selfmaint.audit.advice import Refuting, advised
from selfmaint.audit.candidates import Candidates
from selfmaint.audit.changes import ANYTHING, Change, Kind, changes_of
from selfmaint.audit.chase import Chase
from selfmaint.audit.example import Always, Depends, Outcome, Unclear, word
from selfmaint.audit.instance import Instance
from selfmaint.audit.matrix import audited
from selfmaint.audit.needs import needs
from selfmaint.audit.parts import parts
from selfmaint.audit.proposals import NewKey, proposals, with_proposals
from selfmaint.audit.search import Search
from selfmaint.countermodel.databases import Evaluation
from selfmaint.report.audit.objects import audit_json
from selfmaint.report.audit.table import audit_parts
from selfmaint.warehouse.catalog import Catalog, GroupedView, View, catalog, with_inexact_sums
from selfmaint.warehouse.situation import Situation
from tests.command_line import run

ROOT = Path(__file__).resolve().parents[3]
EFFECTIVE = Situation(effective=True)


def tiny(views: int) -> Catalog:
    return catalog(
        parse_program("".join(f"v{i}(X, Y, Z) :- r{i}(X, Y), s{i}(Y, Z).\n" for i in range(views)))
    )


def test_views_that_share_no_relation_are_parts_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    contents = Evaluation.contents
    monkeypatch.setattr(
        Evaluation,
        "contents",
        lambda self, *given: held.append(len(self.catalog.views)) or contents(self, *given),
    )
    audit = audited(Search(tiny(3), EFFECTIVE))
    assert set(held) == {1}
    work = len(held)
    held.clear()
    audited(Search(tiny(6), EFFECTIVE))
    assert len(held) == 2 * work
    outcome = audit.views[1].anything.any
    assert isinstance(outcome, Depends)
    assert set(outcome.example.contents) == {"v1"}


FOREIGN = ".decl r(x: int not null) foreign(x) references s(x).  .decl s(x: int not null) key(x).\n"


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("v(X) :- r(X).  w(X) :- s(X).", [1, 1]),
        ("v(X, Y) :- r(X), t(Y).  w(X, Y) :- s(X), t(Y).", [2]),
        (FOREIGN + "v(X) :- r(X).  w(X) :- s(X).", [2]),
        ("v(X) :- r(X).  v(X) :- s(X).  w(X) :- s(X).", [2]),
        ("v(X) :- r(X), not s(X).  w(X) :- s(X).", [2]),
        ("u(X) :- r(X).  u(X) :- q(X).  v(X) :- u(X), s(X).  w(X) :- q(X).", [3]),
    ],
)  # fmt: skip
def test_what_is_connected_stays_together(text: str, sizes: list[int]) -> None:
    assert [len(part.views) for part in parts(catalog(parse_program(text)))] == sizes


def test_values_that_no_view_compares_with_each_other_are_not_put_in_order() -> None:
    """Ten values, each compared with a constant alone: of all their orders one is enough."""
    columns = range(5)
    declared = ", ".join(f"c{i}: int not null" for i in columns)
    terms = ", ".join(f"C{i}" for i in columns)
    text = f".decl r(x: int not null, {declared}).\n"
    text += "".join(f"w{i}(X, {terms}) :- r(X, {terms}), C{i} > {i}.\n" for i in columns)
    its = Search(catalog(parse_program(text)), EFFECTIVE)
    change = Change(Kind.INSERT, "r")
    candidates = Candidates(its.decision, change, change.situation(its.catalog, EFFECTIVE))
    before = Predicate("r", Version.BEFORE)
    body = [Atom(before, tuple(Variable(f"V{row}_{i}") for i in range(6))) for row in range(2)]
    (made,) = candidates.holding(body)
    assert candidates.are_all
    assert all(row[1 + i] <= i for row in made.database["r"] for i in columns)  # type: ignore[operator]


NARROW = """
.decl r(x: int not null, y: int not null).
.decl s(y: int not null, z: int not null).
v(X, Y, Z) :- r(X, Y), s(Y, Z).
low(Y, Z) :- s(Y, Z), Y <= 40.
high(Y, Z) :- s(Y, Z), Y > 41.
"""


def test_a_place_between_two_constants_counts_if_there_is_a_value() -> None:
    """41 alone is in neither view; with `>= 41` nothing is."""
    change = Change(Kind.INSERT, "r")
    its = Search(catalog(parse_program(NARROW)), EFFECTIVE)
    assert word(its.outcome(its.catalog.view("v"), change)) == "depends"
    whole = Search(catalog(parse_program(NARROW.replace("> 41", ">= 41"))), EFFECTIVE)
    assert word(whole.outcome(whole.catalog.view("v"), change)) == "always"


def test_needs_search_no_more_sets_than_examples_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "v(A, B, C, D, E, F) :- r(A, B), s(B, C), t(C, D), u(D, E), w(E, F)."
    its = Search(catalog(parse_program(text)), EFFECTIVE)
    asked: list[frozenset[str]] = []
    readable = Search.readable
    monkeypatch.setattr(
        Search, "readable", lambda self, names: asked.append(frozenset(names)) or readable(self, names)
    )
    found = needs(its, its.catalog.view("v"), Change(Kind.INSERT, "r"), {})
    assert [need.relations for need in found] == [("s", "t", "u", "w")]
    assert len(asked) < 2**4


def test_a_budget_that_is_spent_is_no_always() -> None:
    its = Search(catalog(parse_program("v(X, Y) :- r(X), s(Y).  w(X) :- s(X).")), EFFECTIVE, budget_s=0.0)
    outcome = its.outcome(its.catalog.view("v"), ANYTHING)
    assert isinstance(outcome, Unclear)
    assert "budget of 0 s spent on the audit of `v`" in outcome.reasons[0]
    assert not advised(its)


@pytest.mark.parametrize("name", ["star", "tpch"])
def test_what_an_example_refutes_is_not_settled(name: str) -> None:
    given = catalog(parse_program((ROOT / f"examples/{name}/views.dl").read_text(encoding="utf-8")))
    its, refuting = Search(given, EFFECTIVE), Refuting(given)
    refuted = 0
    for view in given.views[-3:]:
        outcome = its.outcome(view, ANYTHING)
        offered = proposals(given, view)
        for chosen in (*offered.constraints, *(frozenset([one]) for one in offered.views)):
            if isinstance(outcome, Depends) and refuting.refutes(outcome.example, chosen):
                made = with_proposals(given, chosen)
                assert made is not None
                again = Search(made, EFFECTIVE, quick=True).outcome(made.view(view.name), ANYTHING)
                assert not isinstance(again, Always)
                refuted += 1
    assert refuted


KEYED = """
.decl r(y: int not null, k: int not null) key(k).
.decl s(y: int not null, i: int not null).
v(Y, K) :- r(Y, K), K != 5.
w(Y, K) :- r(Y, K), Y > 3.
x(Y, I) :- s(Y, I).
"""


def test_rows_that_become_one_by_their_key_make_no_other_values_equal() -> None:
    """Of three rows two may be the one of 5: the third has another `y`, and may have 5 or not."""
    its = Search(catalog(parse_program(KEYED)), EFFECTIVE)
    change = Change(Kind.INSERT, "r")
    candidates = Candidates(its.decision, change, change.situation(its.catalog, EFFECTIVE))
    body = [
        Atom(Predicate(name, Version.BEFORE), (Variable(f"Y{i}"), Variable(f"{name}{i}")))
        for i in range(3)
        for name in ("r", "s")
    ]
    found = [made.database["r"] for made in candidates.holding(body)]
    assert candidates.are_all
    assert sorted(map(len, found)) == [1, *[2] * 3, *[3] * 4]
    assert all(len({y for y, _ in rows}) == len(rows) for rows in found)


NARROW_ROOM = """
.decl r(y: int not null, i: int not null).
low(Y, I) :- r(Y, I), Y <= 40.
high(Y, I) :- r(Y, I), Y >= 43.
"""


def test_a_place_that_is_too_narrow_in_the_end_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """41 and 42 are in no view: with one row they do for all other values, with three they do not."""
    monkeypatch.setattr(orders, "SPARE", -100)  # a place for one counts as a place for all
    its = Search(catalog(parse_program(NARROW_ROOM)), EFFECTIVE)
    change = Change(Kind.INSERT, "r")
    before = Predicate("r", Version.BEFORE)
    for number in (1, 2, 3):
        candidates = Candidates(its.decision, change, change.situation(its.catalog, EFFECTIVE))
        body = [Atom(before, (Variable(f"Y{row}"), Variable(f"I{row}"))) for row in range(number)]
        values = {row[0] for made in candidates.holding(body) for row in made.database["r"]}
        assert values <= {41, 42}
        assert candidates.are_all == (number < 3)


def test_what_was_found_before_the_budget_was_spent_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """An example that could not be made smaller is an example."""

    def spent(*_: object) -> bool:
        raise BudgetSpentError("making it smaller", 1)

    monkeypatch.setattr(cell.Cell, "_fails", spent)
    its = Search(catalog(parse_program("v(X, Y) :- r(X), s(Y).")), EFFECTIVE)
    assert word(its.outcome(its.catalog.view("v"), Change(Kind.INSERT, "r"))) in ("depends", "never")


def test_an_example_for_a_narrower_change_is_one_for_a_wider(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = Search._searched

    def only_narrow(self: Search, view: View, change: Change) -> Outcome:
        if change.kind is Kind.ANY:
            raise BudgetSpentError("it", 1)
        return searched(self, view, change)

    monkeypatch.setattr(Search, "_searched", only_narrow)
    audit = audited(Search(catalog(parse_program("v(X, Y) :- r(X), s(Y).  w(X) :- s(X).")), EFFECTIVE))
    words = audit.words()
    assert words["v", "s", "insert"] == words["v", "s", "any"] == words["v", "*", "any"] == "depends"
    assert words["v", "r", "any"] == "undecided"  # `always` for each part proves nothing
    assert isinstance(audit.views[0].anything.any, Depends)
    assert audit.views[0].anything.any.example.inserted


def test_advice_that_is_cut_off_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = catalog(parse_program("v(X, Y) :- r(X), s(Y)."))
    assert audit_catalog(schema, EFFECTIVE, AuditOptions()).cut == ()

    def spent(*_: object) -> bool:
        raise BudgetSpentError("it", 1)

    monkeypatch.setattr(Refuting, "refutes", spent)
    monkeypatch.setattr(advice, "left", lambda: 0.0)
    report = audit_catalog(schema, EFFECTIVE, AuditOptions())
    assert report.cut == ("v",)
    assert audit_json(report)["cut"] == ["v"]
    with Console(record=True, width=200) as console:
        for part in audit_parts(report):
            console.print(part)
    assert "the budget was spent before all that could be added was tried" in console.export_text()


def test_proposals_keep_what_sums_may_be() -> None:
    text = ".decl r(k: int not null, x: double not null) key(k).  .decl s(k: int not null).\n"
    text += "v(K, sum(X), count(*)) :- r(K, X), s(K)."
    schema = with_inexact_sums(catalog(parse_program(text)))
    made = with_proposals(schema, [NewKey("s", ("k",))])
    assert isinstance(schema.view("v"), GroupedView)
    assert made is not None
    assert isinstance(made.view("v"), GroupedView)


@pytest.mark.parametrize(("may_be_null", "needed"), [("", {"a", "b"}), (" not null", {"b"})])
def test_what_joins_along_a_reference_tells_all_rows_only_if_it_is_never_null(
    may_be_null: str, needed: set[str]
) -> None:
    text = f"""
        .decl r(x: int{may_be_null}, y: int not null) foreign(x) references s(x).
        .decl s(x: int not null, z: int not null) key(x).
        b(X, Y, Z) :- r(X, Y), s(X, Z).
        a(X, Y) :- r(X, Y), Y > 3.
    """
    its = Search(catalog(parse_program(text)), EFFECTIVE)
    rules = its.fewest.of(its.decision.known(EFFECTIVE))
    known = [rule for rule in rules if rule.head.predicate == Predicate("r", Version.KNOWN)]
    assert {atom.predicate.name for rule in known for atom in rule.atoms} == needed


def test_changes_of_a_relation_of_another_part_are_followed_by_doing_nothing() -> None:
    schema = catalog(parse_program("v(X, Y, Z) :- r(X, Y), s(Y, Z).\nw(X, Y) :- t(X, Y), u(Y).\n"))
    search = Search(schema, Situation(effective=True))
    for change in changes_of(schema, "t"):
        assert isinstance(search.outcome(schema.view("v"), change), Always)


def test_circles_of_references_that_double_the_rows_are_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    text = """
        .decl s(k: int not null, a: int not null, b: int not null) key(k)
            foreign(a) references s(k) foreign(b) references s(k).
        .decl r(k: int not null, a: int not null) key(k) foreign(a) references s(k).
        v(X, A) :- r(X, A), s(A, 1, B).
    """
    step = Chase.step

    def small(self: Chase, instance: Instance) -> tuple[Instance, ...] | None:
        assert len(instance.atoms) < 1_500
        return step(self, instance)

    monkeypatch.setattr(Chase, "step", small)
    its = Search(catalog(parse_program(text)), EFFECTIVE)
    outcome = its.outcome(its.catalog.view("v"), Change(Kind.INSERT, "r"))
    assert isinstance(outcome, Unclear)
    assert "budget" not in str(outcome)


def test_examples_are_given_up_where_references_go_round_in_a_circle() -> None:
    text = """
        .decl r(k: bigint not null, a: bigint not null) key(k) foreign(a) references s(k) foreign(a) references r(k).
        .decl s(k: bigint not null) key(k).
        v(case when X > 2 then 0 else 1 end, count(*)) :- r(X, A), r(B, X).
    """
    its = Search(catalog(parse_program(text)), EFFECTIVE)
    with limit(60, "the test"):
        assert isinstance(its.outcome(its.catalog.view("v"), Change(Kind.DELETE, "r")), Unclear)


def test_a_column_of_two_values_has_no_third() -> None:
    """An example of two groups has more rows than that; looking for a new value of each never ended."""
    program = """
        .decl p(k: int not null, c: string not null, f: boolean not null) key(k).
        .decl l(k: int not null, p: int not null, q: int not null) key(k) foreign(p) references p(k).
        g(C, count(*), sum(Q), max(Q)) :- l(K, P, Q), p(P, C, F).
    """
    its = Search(catalog(parse_program(program)), EFFECTIVE, budget_s=5)
    words = {word(its.outcome(its.catalog.view("g"), change)) for change in changes_of(its.catalog, "p")}
    assert "depends" in words


def test_the_audit_says_which_views_a_lake_could_keep_helpers_for(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(
        "CREATE TABLE sale (id INT PRIMARY KEY, shop INT NOT NULL, price DECIMAL(9, 2) NOT NULL);\n"
        "CREATE VIEW means AS SELECT shop, AVG(price) AS mean FROM sale GROUP BY shop;\n"
        "CREATE VIEW noise AS SELECT id, rand() AS x FROM sale;\n",
        encoding="utf-8",
    )
    toml = tmp_path / "w.toml"
    text = 'program = "views.sql"\n[views.means]\npath = "m.csv"\n[views.noise]\npath = "n.csv"\n'
    toml.write_text(text, encoding="utf-8")
    said = run("audit", str(toml)).stdout
    assert said.count("`helpers = true` in `[store]`") == 1
    assert said.index("means: undecided") < said.index("`helpers = true`") < said.index("noise: undecided")
    assert "and a row for each `shop` that there is" in said
    (helper,) = json.loads(run("audit", str(toml), "--format", "json").stdout)["helpers"]
    assert (helper["view"], helper["groups"], helper["reads"]) == ("means", ["shop"], ["sale"])
    assert not helper["kept"]
    assert json.loads(run("audit", str(toml), "--format", "json", "--no-advice").stdout)["helpers"] == []
    lake = text[: text.index("[")] + '[store]\nkind = "lake"\npath = "lake"\nhelpers = true\n'
    toml.write_text(lake, encoding="utf-8")
    assert "the lake keeps helpers" in run("audit", str(toml)).stdout


def test_helpers_are_named_beside_an_example_too(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(
        "CREATE TABLE sale (id INT PRIMARY KEY, shop INT NOT NULL);\n"
        "CREATE VIEW busy AS SELECT shop, COUNT(*) AS n FROM sale GROUP BY shop HAVING COUNT(*) > 2;\n",
        encoding="utf-8",
    )
    toml = tmp_path / "w.toml"
    toml.write_text('program = "views.sql"\n[views.busy]\npath = "b.csv"\n', encoding="utf-8")
    said = run("audit", str(toml), "--effective").stdout
    assert said.index("busy: depends") < said.index("in one case only") < said.index("`helpers = true`")
