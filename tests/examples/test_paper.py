"""Every example of Huyn's paper gives the paper's answer, on the in-memory engine and on Spark."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from datalog.evaluate import Evaluator
from datalog.model import Predicate, Program, Row, Version
from datalog.syntax import parse_program
from selfmaint.api.maintain import maintain
from selfmaint.api.printing.printed import StatementKind
from selfmaint.api.printing.statements import statements, tables_of
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.canonical import known_rules
from selfmaint.decide.decision import Decision
from selfmaint.decide.procedure import check
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Verdict
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.fallback.settle import Readable
from selfmaint.maintain import gained, lost
from selfmaint.sources.memory import RowsSource
from selfmaint.warehouse.catalog import View, catalog
from selfmaint.warehouse.situation import Situation

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "paper"
NAMES = sorted(path.stem for path in FOLDER.glob("*.json"))

Rows = frozenset[Row]


@dataclass(frozen=True)
class Case:
    """A case as its file gives it."""

    record: Mapping[str, Any]

    @property
    def program(self) -> Program:
        return program(self.record["program"])

    def rows(self, part: str) -> dict[str, Rows]:
        return {name: rows_of(rows) for name, rows in self.record.get(part, {}).items()}

    @property
    def before(self) -> dict[str, Rows]:
        """The before-images of what may be read, by the paper's own rules."""
        if "access" not in self.record:
            return {}
        given = {Predicate(n): rows for n, rows in self.rows("access").items()}
        for part, word in (("insert", "inserted"), ("delete", "deleted")):
            given |= {
                Predicate(f"{n}_{word}"): self.rows(part).get(n, frozenset()) for n in self.rows("access")
            }
        evaluator = Evaluator(program(self.record["before_image"]), given)
        return {n: evaluator.extension(Predicate(f"{n}_before")) for n in self.rows("access")}

    def contents(self) -> dict[Predicate, Rows]:
        """Everything that is known, by predicate."""
        found = {Predicate(n): rows for n, rows in self.rows("views").items()}
        for part, version in (("insert", Version.INSERTED), ("delete", Version.DELETED)):
            found |= {Predicate(n, version): rows for n, rows in self.rows(part).items()}
        return found | {Predicate(n, Version.BEFORE): rows for n, rows in self.before.items()}


def program(name: str) -> Program:
    return parse_program((FOLDER / name).read_text(encoding="utf-8"), source=name)


def rows_of(rows: list[list[str]]) -> Rows:
    return frozenset(tuple(row) for row in rows)


def case(name: str) -> Case:
    return Case(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))


def word(verdict: Verdict) -> str:
    match verdict:
        case SelfMaintainable():
            return "yes"
        case NotSelfMaintainable():
            return "no"
    return "undecided"


def decided(given: Case, engine: Any) -> tuple[dict[str, str], dict[str, dict[str, Rows]]]:
    """Each view's verdict, and of those that are self-maintainable what they gain and lose."""
    schema = catalog(given.program)
    decision = Decision(schema)
    contents = given.contents()
    situation = Situation.of(contents)
    facts = Facts(
        {p: engine.load(rows, *columns(schema, p)) for p, rows in contents.items()},
        {p: frozenset(range(len(columns(schema, p)[0]))) for p in contents},
        frozenset(p for p in contents if p.version in {Version.INSERTED, Version.DELETED}),
    )
    verdicts = check(decision.knowledge(engine, facts, situation), schema.views)
    changes: dict[str, dict[str, Rows]] = {}
    for view in schema.views:
        verdict = verdicts[view.name]
        if isinstance(verdict, SelfMaintainable) and verdict.change is not None:
            changes[view.name] = {"gained": verdict.change.gained, "lost": verdict.change.lost}
        elif isinstance(verdict, SelfMaintainable):
            queries = decision.maintenance(view, situation)
            changes[view.name] = {
                part: frozenset(engine.sample(engine.evaluate(queries, goal, facts), 100))
                if queries.rules_for(goal)
                else frozenset()
                for part, goal in (("gained", gained(view)), ("lost", lost(view)))
            }
    engine.release()
    return {name: word(verdict) for name, verdict in verdicts.items()}, changes


def columns(schema: Any, predicate: Predicate) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    if predicate.name in schema.relations:
        relation = schema.relations[predicate.name]
        return relation.columns, relation.types
    view: View = schema.view(predicate.name)
    some = next(iter(schema.relations.values()))
    return view.columns, tuple(some.types[0] for _ in view.columns)


def assert_as_in_the_paper(given: Case, engine: Any) -> None:
    verdicts, changes = decided(given, engine)
    expected = given.record["expected"]
    assert verdicts == {name: answer["verdict"] for name, answer in expected.items()}
    for name, found in changes.items():
        old = given.rows("views")[name]
        assert old - found["lost"] | found["gained"] == rows_of(expected[name]["state"])
        for part in ("gained", "lost"):
            if name in given.record.get(part, {}):
                assert found[part] == rows_of(given.record[part][name])


@pytest.mark.parametrize("name", NAMES)
def test_verdicts_and_new_states(name: str) -> None:
    assert_as_in_the_paper(case(name), MemoryEngine())


def test_all_on_spark(spark: Any) -> None:
    from selfmaint.spark import SparkEngine

    engine = SparkEngine(spark)
    for name in NAMES:
        assert_as_in_the_paper(case(name), engine)


@pytest.mark.parametrize("name", [name for name in NAMES if "access" not in case(name).record])
def test_through_the_library(name: str) -> None:
    given = case(name)
    warehouse = build(given.program, given.rows("views"), MemoryEngine())
    update = Update(given.rows("insert"), given.rows("delete"))
    answers = given.record["expected"]
    if {answer["verdict"] for answer in answers.values()} == {"yes"}:
        for view, delta in maintain(warehouse, update, strict=True).deltas.items():
            assert given.rows("views")[view] - delta.lost | delta.gained == rows_of(answers[view]["state"])


# ------------------------------------------------------------------------------- section 3: D^ and maintenance


@pytest.mark.parametrize("name", [name for name in NAMES if "canonical" in case(name).record])
def test_the_canonical_database(name: str) -> None:
    given = case(name)
    schema = catalog(given.program)
    rules = known_rules(schema, Situation(), Decision(schema).contributions)
    evaluator = Evaluator(Program(rules), given.contents())
    found = {n: evaluator.extension(Predicate(n, Version.KNOWN)) for n in schema.relations}
    assert found == given.rows("canonical")


@pytest.mark.parametrize("query", case("example_3_3").record["maintenance"])
def test_maintenance_queries_give_the_papers_rows(query: str) -> None:
    """Both queries of Example 3.3 against ours, on every instance of V1 and V2 over a few constants."""
    given = case("example_3_3")
    schema = catalog(given.program)
    situation = Situation.of(given.contents())
    ours = Decision(schema).maintenance(schema.view("v1"), situation)
    theirs = program(query)
    for facts in instances():
        expected = Evaluator(theirs, facts).extension(Predicate("gained"))
        assert Evaluator(ours, facts).extension(gained(schema.view("v1"))) == expected


# ----------------------------------------------------------------------------------------- section 4: the test


def test_the_second_database_of_example_4_1() -> None:
    given = case("example_4_1_second")
    schema = catalog(given.program)
    contents = given.contents()
    known = Decision(schema).knowledge(MemoryEngine(), Facts(contents), Situation.of(contents))
    verdicts = check(known, schema.views)
    verdict = verdicts["v1"]
    assert isinstance(verdict, NotSelfMaintainable)
    (witness,) = verdict.witnesses
    found = {atom.predicate.name: frozenset({tuple(t.value for t in atom.terms)}) for atom in witness.unknown}
    assert found == given.rows("added")


def test_the_test_of_example_4_2_gives_the_papers_rows() -> None:
    given = case("example_4_2")
    schema = catalog(given.program)
    decision = Decision(schema)
    situation = Situation.of(given.contents())
    ours = decision.test(schema.view("v1"), situation)
    (rules,) = decision.depends(schema.view("v1"), situation)
    theirs = program(given.record["test"])
    place = [v.name for v in rules.new_facts.bound].index("Z")
    for facts in instances():
        expected = Evaluator(theirs, facts).extension(Predicate("depend"))
        assert {(row[place],) for row in Evaluator(ours, facts).extension(rules.goal)} == expected


def test_the_sql_of_example_4_2_is_as_small_as_the_papers() -> None:
    """One outer SELECT over V2 and the inserted rows, two NOT EXISTS: over V1, and over V2 and V1; no CTE.

    V1 is joined with V2 as a test, EXISTS, for only whether there is a row is asked.
    """
    given = case("example_4_2")
    schema = catalog(given.program)
    found = statements(
        Decision(schema), schema.view("v1"), Situation.of(given.contents()), tables_of(schema, {})
    )
    (test,) = [statement for statement in found if statement.kind is StatementKind.TEST]
    query = sqlglot.parse_one(test.sql, read="spark")
    assert isinstance(query, exp.Select)
    assert not list(query.find_all(exp.CTE, exp.SetOperation))
    every = list(query.find_all(exp.Exists))
    inner = [exists for exists in every if isinstance(exists.parent, exp.Not)]
    assert sorted(tables(select) for select in inner) == [["v1"], ["v1", "v2"]]
    (join,) = (exists for exists in every if exists not in inner)
    assert tables(join) in (["v1"], ["v2"])
    outer = query.copy()
    outer.set("where", None)
    assert tables(outer) == ["r_inserted", "v2"]


def tables(query: exp.Expression) -> list[str]:
    return sorted(table.name for table in query.find_all(exp.Table))


def instances() -> Iterator[dict[Predicate, Rows]]:
    """V1 and V2 of every base database over a few constants, with the insertion of r(a, b)."""
    rows = {
        "r": [("a1", "b1"), ("a1", "b")],
        "s": [("b1", "c1"), ("b1", "c2"), ("b", "c1"), ("b", "c2")],
        "t": [("c1",), ("c2",)],
    }
    facts = [(name, row) for name, found in rows.items() for row in found]
    views = program("warehouse.dl")
    inserted = {Predicate("r", Version.INSERTED): frozenset({("a", "b")})}
    for chosen in itertools.product((False, True), repeat=len(facts)):
        database: dict[Predicate, Rows] = {Predicate(name): frozenset() for name in rows}
        for (name, row), taken in zip(facts, chosen, strict=True):
            if taken:
                database[Predicate(name)] |= {row}
        evaluator = Evaluator(views, database)
        yield {p: evaluator.extension(p) for p in (Predicate("v1"), Predicate("v2"))} | inserted


# ------------------------------------------------------------------------------------ section 6: reading S


@pytest.mark.parametrize("name", [name for name in NAMES if "access" in case(name).record])
def test_before_images(name: str) -> None:
    assert case(name).before == case(name).rows("before")


def test_example_6_1_by_reading_s_as_needed() -> None:
    """What access to the whole of S decides is also reached by looking up a few keys of S, after the update."""
    given = case("example_6_1")
    source = RowsSource("ops", {"s": (("y", "z"), given.rows("access")["s"])})
    warehouse = build(
        given.program, given.rows("views"), MemoryEngine(), readable={"s": Readable(source, 1.0)}
    )
    found = maintain(warehouse, Update(given.rows("insert"), given.rows("delete")))
    assert {read.relation for read in found.reads} == {"s"}
    delta = found.deltas["v1"]
    state = given.rows("views")["v1"] - delta.lost | delta.gained
    assert state == rows_of(given.record["expected"]["v1"]["state"])
