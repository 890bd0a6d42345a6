"""Reading base relations only as needed: which keys, in which order, and what is made of the rows that come back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from datalog.model import Predicate, Row, Version
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.procedure import check
from selfmaint.decide.selftest import DependsRules
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import Code, SourceError
from selfmaint.fallback.probes import next_probes, options
from selfmaint.fallback.settle import LazyCosts, Readable, Reader, settle
from selfmaint.maintain import delta
from selfmaint.sources.memory import RowsSource
from selfmaint.sources.protocol import Read
from tests.large_engine import LargeEngine

Rows: TypeAlias = frozenset[Row]
Relations: TypeAlias = Mapping[str, set[Row]]

R, S, T = (Predicate(name) for name in "rst")
HUYN = "v1(X, Y, Z) :- r(X, Y), s(Y, Z), t(Z). v2(Y, Z) :- s(Y, Z)."
COPY: Relations = {"v1": {("a1", "b1", "c1")}, "v2": {("b1", "c1"), ("b", "c1"), ("b", "c2"), ("b2", "c3")}}
CHAIN = "v(X, Y, Z) :- r(X), s(X, Y), t(X, Z)."


class Recording(RowsSource):
    """Base relations that note what they are asked."""

    def __init__(self, relations: Relations) -> None:
        super().__init__(
            "base",
            {
                name: (tuple(f"c{i}" for i in range(len(next(iter(rows), ("one",))))), frozenset(rows))
                for name, rows in relations.items()
            },
        )
        self.asked: list[tuple[str, tuple[str, ...], Rows | None]] = []
        self.counted: list[str] = []

    def row_count(self, relation: str) -> int:
        self.counted.append(relation)
        return super().row_count(relation)

    def read(self, relation: str, key_columns: Sequence[str], keys: Rows | None) -> tuple[Rows, Read]:
        self.asked.append((relation, tuple(key_columns), keys))
        return super().read(relation, key_columns, keys)


@pytest.fixture(params=[MemoryEngine, LargeEngine], ids=lambda engine: engine.name)
def engine(request: pytest.FixtureRequest) -> MemoryEngine:
    found: MemoryEngine = request.param()
    return found


def sets(relations: Relations | None) -> dict[str, Rows]:
    return {name: frozenset(rows) for name, rows in (relations or {}).items()}


@dataclass(frozen=True)
class Settled:
    """What is known once a run is settled, what was read for it, and what fails all the same."""

    known: Knowledge[Rows]
    reads: tuple[Read, ...]
    failing: tuple[DependsRules, ...]


class Run:
    """One warehouse, one update, and what settling them reads."""

    def __init__(
        self,
        engine: MemoryEngine,
        program: str,
        views: Relations,
        inserted: Relations,
        base: Relations,
        *,
        costs: Mapping[str, float | None],
        deleted: Relations | None = None,
        present: Relations | None = None,
        absent: Relations | None = None,
        effective: bool = False,
    ) -> None:
        self.source = Recording(base)
        self.engine = engine
        self.messages: list[str] = []
        self.warehouse: Warehouse[Rows] = build(
            program, sets(views), engine, present=sets(present), absent=sets(absent)
        )
        self.update = Update(sets(inserted), sets(deleted), effective)
        self.readable = {name: Readable(self.source, cost) for name, cost in costs.items()}

    def settle(self) -> Settled:
        known = self.warehouse.decision.knowledge(self.engine, *self.warehouse.given(self.update))
        views = self.warehouse.catalog.views
        reader = Reader(known, self.readable, self.messages.append)
        failing = settle(reader, views)
        return Settled(reader.known, tuple(reader.reads), failing)

    def gained(self, settled: Settled, view: str) -> Rows:
        """What the view gains, once all is settled."""
        known = settled.known
        verdicts = check(known, known.catalog.views)
        assert all(isinstance(verdict, SelfMaintainable) for verdict in verdicts.values())
        return delta(known, known.catalog.view(view)).gained


# ------------------------------------------------------------------------------------------------ which keys


@pytest.mark.parametrize("in_t", [True, False])
def test_only_ambiguous_keys_are_read(engine: MemoryEngine, in_t: bool) -> None:
    """t(c1) is known from v1, and of s everything; c3 does not join the inserted row."""
    t: set[Row] = {("c1",), ("c9",), *([("c2",)] if in_t else [])}
    run = Run(engine, HUYN, COPY, {"r": {("a", "b")}}, {"t": t, "s": set()}, costs={"t": 1.0, "s": 1.0})
    settled = run.settle()
    assert run.source.asked == [("t", ("c0",), frozenset({("c2",)}))]
    (read,) = settled.reads
    assert (read.relation, read.keys_asked, read.rows_read) == ("t", 1, int(in_t))
    assert run.messages == [f"read {int(in_t)} rows of t for 1 keys"]
    assert settled.failing == ()
    expected = {("a", "b", "c1"), *([("a", "b", "c2")] if in_t else [])}
    assert run.gained(settled, "v1") == expected


def test_nothing_is_read_or_counted_when_all_is_known(engine: MemoryEngine) -> None:
    run = Run(
        engine,
        HUYN,
        COPY,
        {"r": {("a", "b2")}},
        {"t": {("c3",)}},
        costs={"t": None},
        present={"t": {("c3",)}},
    )
    settled = run.settle()
    assert (settled.reads, run.source.asked, run.source.counted) == ((), [], [])
    assert run.gained(settled, "v1") == {("a", "b2", "c3")}


def test_keys_of_one_relation_are_read_together(engine: MemoryEngine) -> None:
    inserted: Relations = {"r": {("a", "b"), ("a", "b2"), ("a", "b1")}}
    run = Run(engine, HUYN, COPY, inserted, {"t": {("c1",), ("c3",)}}, costs={"t": 1.0})
    settled = run.settle()
    assert run.source.asked == [("t", ("c0",), frozenset({("c2",), ("c3",)}))]
    assert run.gained(settled, "v1") == {("a", "b", "c1"), ("a", "b1", "c1"), ("a", "b2", "c3")}


def test_that_no_referenced_row_has_null_rules_out_no_other(engine: MemoryEngine) -> None:
    """`r("a", "k")` may exist, beside `s("k", "x")`: that s was asked for rows with null made it impossible."""
    program = """
        .decl s(c0: string not null, c1: string) key(c0).
        .decl r(c0: string not null, c1: string not null) foreign(c1) references s(c0).
        .decl q(c0: string not null).
        v(A, K) :- q(A), r(A, K).
    """
    run = Run(
        engine, program, {"v": set()}, {"q": {("a",)}}, {"s": {("k", "x")}}, costs={"s": 1.0}, effective=True
    )
    settled = run.settle()
    assert [columns for _, columns, _ in run.source.asked] == [()]
    assert settled.failing != ()


def test_no_key_is_asked_twice(engine: MemoryEngine) -> None:
    """Two views ask for the same rows; reading the second's relation brings t's key up again."""
    program = "v(X, Y) :- r(X), s(X, Y), t(Y). w(X, Y) :- r(X), t(Y), s(X, Y), q(X)."
    base: Relations = {"s": {("a", 1), ("a", 2)}, "t": {(1,)}, "q": {("a",)}}
    run = Run(
        engine, program, {"v": set(), "w": set()}, {"r": {("a",)}}, base, costs={"s": 1.0, "t": 2.0, "q": 3.0}
    )
    settled = run.settle()
    asked = [(relation, columns, key) for relation, columns, keys in run.source.asked for key in keys or ()]
    assert len(asked) == len(set(asked))
    assert run.gained(settled, "w") == {("a", 1)}


def test_a_null_key_is_looked_up(engine: MemoryEngine) -> None:
    run = Run(
        engine,
        "v(X, Y) :- r(X), s(null, Y).",
        {"v": set()},
        {"r": {("a",)}},
        {"s": {(None, 1), (2, 2)}},
        costs={"s": 1.0},
    )
    settled = run.settle()
    assert run.source.asked == [("s", ("c0",), frozenset({(None,)}))]
    assert run.gained(settled, "v") == {("a", 1)}


@pytest.mark.parametrize(("old", "asked"), [({(1,), (2,)}, ["s"]), (set(), ["s", "r"])])
def test_a_cross_product_reads_whole_relations(engine: MemoryEngine, old: set[Row], asked: list[str]) -> None:
    """v was empty, so where s had rows r had none: then r need not be read."""
    run = Run(
        engine,
        "v(X, Y) :- r(X), s(Y).",
        {"v": set()},
        {"r": {("a",)}, "s": {(3,)}},
        {"s": {*old, (3,)}, "r": {("a",)}},
        costs={"s": 1.0, "r": 2.0},
    )
    settled = run.settle()
    assert run.source.asked == [(relation, (), None) for relation in asked]
    assert settled.known.situation.wholly_known == set(asked)
    assert run.gained(settled, "v") == {("a", y) for (y,) in (*old, (3,))}


# ---------------------------------------------------------------------------------------------- which order


def test_the_cheapest_relation_is_read_first_and_an_absent_fact_settles_it(engine: MemoryEngine) -> None:
    base: Relations = {"s": {("a", 1)}, "t": {("b", 2)}}
    for cheap, dear in (("s", "t"), ("t", "s")):
        run = Run(engine, CHAIN, {"v": set()}, {"r": {("b",)}}, base, costs={cheap: 1.0, dear: 2.0})
        settled = run.settle()
        expected = ["s"] if cheap == "s" else ["t", "s"]
        assert [relation for relation, _, _ in run.source.asked] == expected
        assert run.gained(settled, "v") == frozenset()


def test_a_present_fact_moves_on_to_a_smaller_set(engine: MemoryEngine) -> None:
    """First {s, t} is unknown, then t alone, and only for the key that s has."""
    inserted: Relations = {"r": {("a",), ("b",)}}
    base: Relations = {"s": {("a", 1)}, "t": {("a", 2), ("a", 3), ("b", 4)}}
    run = Run(engine, CHAIN, {"v": set()}, inserted, base, costs={"s": 1.0, "t": 2.0})
    settled = run.settle()
    assert run.source.asked == [
        ("s", ("c0",), frozenset({("a",), ("b",)})),
        ("t", ("c0",), frozenset({("a",)})),
    ]
    assert run.gained(settled, "v") == {("a", 1, 2), ("a", 1, 3)}


def test_without_a_price_the_smaller_relation_is_the_cheaper(engine: MemoryEngine) -> None:
    base: Relations = {"s": {(f"x{n}", n) for n in range(50)}, "t": {("x", 1)}}
    run = Run(engine, CHAIN, {"v": set()}, {"r": {("a",)}}, base, costs={"s": None, "t": None})
    run.settle()
    assert [relation for relation, _, _ in run.source.asked] == ["t"]
    assert sorted(run.source.counted) == ["s", "t"]


def test_a_whole_relation_is_the_last_choice_at_any_price(engine: MemoryEngine) -> None:
    program = "v(X, Y, Z) :- r(X), s(Y), t(X, Z)."
    base: Relations = {"s": {(1,)}, "t": {("b", 1)}}
    run = Run(engine, program, {"v": set()}, {"r": {("a",)}}, base, costs={"s": 0.1, "t": 100.0})
    run.settle()
    assert run.source.asked == [("t", ("c0",), frozenset({("a",)}))]


def test_of_equal_prices_the_longer_key_goes_first() -> None:
    warehouse: Warehouse[Rows] = build(
        "v(X, Y, Z, W) :- r(X, Y), s(X, Y, Z), t(X, W).", {"v": frozenset()}, MemoryEngine()
    )
    _, situation = warehouse.given(Update({"r": frozenset({("a", "b")})}))
    rules = warehouse.decision.depends(warehouse.view("v"), situation)
    both = next(r for r in rules if len(r.new_facts.subgoals) == 2)
    assert {(p.relation, p.columns) for p in options(warehouse.catalog, both)} == {("s", (0, 1)), ("t", (0,))}
    (probe,) = next_probes(warehouse.catalog, [both], {"s": 1.0, "t": 1.0})
    assert (probe.relation, probe.columns) == ("s", (0, 1))
    assert probe.keys == Predicate("s", Version.PROBE, (0, 1))
    assert probe.region == Predicate("s", Version.REGION, (0, 1))
    assert next_probes(warehouse.catalog, [both], {"q": 1.0}) == ()


def test_costs_are_asked_for_once_and_only_when_needed() -> None:
    asked: list[str] = []

    def ask() -> float:
        asked.append("s")
        return 2.0

    costs = LazyCosts({"s": ask})
    assert "s" in costs
    assert (list(costs), len(costs), asked) == (["s"], 1, [])
    assert (costs["s"], costs["s"], asked) == (2.0, 2.0, ["s"])


# ---------------------------------------------------------------------------------------- what may be read


def test_without_sources_nothing_is_read_and_what_fails_is_told(engine: MemoryEngine) -> None:
    run = Run(engine, CHAIN, {"v": set()}, {"r": {("a",)}}, {}, costs={})
    settled = run.settle()
    assert settled.reads == ()
    unknown = [
        {r.new_facts.instance.body[j].predicate.name for j in r.new_facts.subgoals} for r in settled.failing
    ]
    assert unknown == [{"s", "t"}]


def test_where_one_readable_relation_settles_all_it_is_enough(engine: MemoryEngine) -> None:
    run = Run(engine, CHAIN, {"v": set()}, {"r": {("a",)}}, {"t": {("b", 1)}}, costs={"t": 9.0})
    assert run.settle().failing == ()
    stuck = Run(engine, CHAIN, {"v": set()}, {"r": {("a",)}}, {"t": {("a", 1)}}, costs={"t": 9.0})
    settled = stuck.settle()
    assert [read.relation for read in settled.reads] == ["t"]
    unknown = [
        {r.new_facts.instance.body[j].predicate.name for j in r.new_facts.subgoals} for r in settled.failing
    ]
    assert unknown == [{"s"}]


# -------------------------------------------------------------------------------------- the state before


def test_rows_that_were_inserted_are_not_taken_for_old_ones(engine: MemoryEngine) -> None:
    """s(a, 1) is there now because the update inserted it; s(a, 2) was there before."""
    run = Run(
        engine,
        CHAIN,
        {"v": set()},
        {"r": {("a",)}, "s": {("a", 1)}},
        {"s": {("a", 1), ("a", 2)}, "t": {("a", 7)}},
        costs={"s": 1.0, "t": 1.0},
    )
    settled = run.settle()
    assert settled.known.facts.relations[S.of(Version.PRESENT)] == {("a", 2)}
    assert settled.known.facts.relations[T.of(Version.PRESENT)] == {("a", 7)}
    assert run.gained(settled, "v") == {("a", 1, 7), ("a", 2, 7)}


def test_deleted_rows_are_known_to_be_gone_although_nothing_tells_whether_they_were_there(
    engine: MemoryEngine,
) -> None:
    run = Run(
        engine,
        CHAIN,
        {"v": set()},
        {"r": {("a",)}},
        {"s": {("a", 2)}, "t": {("a", 7)}},
        costs={"s": 1.0, "t": 1.0},
        deleted={"s": {("a", 1)}},
    )
    settled = run.settle()
    assert settled.known.facts.relations[S.of(Version.PRESENT)] == {("a", 2)}
    assert run.gained(settled, "v") == {("a", 2, 7)}


def test_what_was_present_stays_known(engine: MemoryEngine) -> None:
    run = Run(
        engine,
        CHAIN,
        {"v": set()},
        {"r": {("a",)}},
        {"s": {("a", 2), ("b", 5)}, "t": set()},
        costs={"s": 1.0, "t": 2.0},
        present={"s": {("b", 5)}},
    )
    settled = run.settle()
    assert settled.known.facts.relations[S.of(Version.PRESENT)] == {("a", 2), ("b", 5)}
    assert settled.known.facts.relations[Predicate("s", Version.REGION, (0,))] == {("a",)}
    assert not any(p.version in (Version.FOUND, Version.PROBE) for p in settled.known.facts.relations)


# -------------------------------------------------------------------------------- a source that has moved


@pytest.mark.parametrize(
    ("moved", "message"),
    [
        (
            {"inserted": {"r": {("a",)}, "s": {("a", 1)}}, "base": set()},
            "inserted rows are not there: (c0='a', c1=1)",
        ),
        ({"deleted": {"s": {("a", 3)}}, "base": {("a", 3)}}, "deleted rows are still there: (c0='a', c1=3)"),
        (
            {"present": {"s": {("a", 4)}}, "base": {("a", 1)}},
            "rows that the views prove are gone: (c0='a', c1=4)",
        ),
        (
            {"absent": {"s": {("a", 5)}}, "base": {("a", 5)}},
            "rows known to be absent are there: (c0='a', c1=5)",
        ),
        (
            {
                "deleted": {"s": {("b", 1)}},
                "effective": True,
                "present": {"s": {("a", 4)}},
                "base": {("b", 2)},
            },
            "rows that the views prove are gone: (c0='a', c1=4)",
        ),
    ],
)
def test_a_source_that_is_not_in_the_state_after_the_update(
    engine: MemoryEngine, moved: dict[str, Relations], message: str
) -> None:
    given = {"inserted": {"r": {("a",)}}, **moved}
    base = given.pop("base")
    inserted = given.pop("inserted")
    run = Run(
        engine,
        CHAIN,
        {"v": set()},
        inserted,
        {"s": base or {("x", 0)}, "t": {("x", 0)}},
        costs={"s": 1.0, "t": 2.0},
        **given,  # type: ignore[arg-type]
    )
    with pytest.raises(SourceError) as caught:
        run.settle()
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code is Code.SOURCE_MOVED
    assert diagnostic.message == f"`s` is not in the state after the update: {message}"
    assert diagnostic.hint


@pytest.mark.parametrize("y", [7, 9, None])
def test_a_row_that_references_what_its_source_does_not_have_is_refused(
    engine: MemoryEngine, y: int | None
) -> None:
    program = """
    .decl r(x: int not null, y: int) key(x) foreign(y) references s(y).
    .decl s(y: int not null, z: int not null) key(y).
    v(X, Y, Z) :- r(X, Y), s(Y, Z).
    """
    readable = {"s": Readable(RowsSource("here", {"s": (("y", "z"), {(7, 70)})}))}
    here = build(program, {"v": frozenset()}, engine, readable=readable)
    update = Update({"r": frozenset({(1, y)})}, effective=True)
    if y == 9:
        with pytest.raises(
            SourceError, match=r"SM303.*reference \(y\) no row of `s` in its source: \(x=1, y=9\)"
        ):
            here.maintain(update)
    else:
        assert here.maintain(update).deltas["v"].gained == ({(1, 7, 70)} if y else set())


@pytest.mark.parametrize("deleted", [False, True])
def test_a_source_with_another_row_of_an_inserted_key(engine: MemoryEngine, *, deleted: bool) -> None:
    program = """
    .decl r(x: int not null, y: int not null) key(x).
    .decl s(y: int not null, n: int not null, z: int not null) key(y, n).
    v(X, Y, N, Z) :- r(X, Y), s(Y, N, Z).
    """
    source = RowsSource("here", {"s": (("y", "n", "z"), {(7, 1, 70)}), "r": (("x", "y"), {(1, 7)})})
    here = build(program, {"v": frozenset()}, engine, readable=dict.fromkeys("rs", Readable(source)))
    gone = {"s": frozenset({(7, 1, 70)})} if deleted else {}
    update = Update({"r": frozenset({(1, 7)}), "s": frozenset({(7, 1, 71)})}, gone)
    said = "inserted rows are not there: (y=7, n=1, z=71)"
    if not deleted:
        said = "keys of inserted ones, and the update does not delete them: (y=7, n=1, z=70)"
    with pytest.raises(SourceError, match=f"SM402.*{re.escape(said)}"):
        here.maintain(update)


def test_rows_that_a_view_proves_must_be_found(engine: MemoryEngine) -> None:
    program = "v(X, Y, Z) :- r(X), s(X, Y), t(X, Z). w(X, Y) :- s(X, Y), q(X, Y)."
    run = Run(
        engine,
        program,
        {"v": set(), "w": {("a", 1)}},
        {"r": {("a",)}},
        {"s": {("a", 2)}, "t": {("a", 7)}, "q": {("a", 1)}},
        costs={"s": 1.0, "t": 2.0, "q": 3.0},
    )
    with pytest.raises(SourceError, match=r"SM402.*rows that the views prove are gone: \(c0='a', c1=1\)"):
        run.settle()


def test_rows_of_other_keys_do_not_matter(engine: MemoryEngine) -> None:
    """Only what was asked for can tell that a source has moved."""
    run = Run(
        engine,
        CHAIN,
        {"v": set()},
        {"r": {("a",)}, "s": {("z", 1)}},
        {"s": {("a", 1)}, "t": {("b", 1)}},
        costs={"s": 1.0, "t": 2.0},
        absent={"s": {("y", 3)}},
    )
    assert run.settle().failing == ()


def test_inserted_rows_that_were_known_to_be_absent_may_be_there(engine: MemoryEngine) -> None:
    run = Run(
        engine,
        CHAIN,
        {"v": set()},
        {"r": {("a",)}, "s": {("a", 1)}},
        {"s": {("a", 1)}, "t": {("b", 7)}},
        costs={"s": 1.0, "t": 2.0},
        absent={"s": {("a", 1)}},
    )
    assert run.gained(run.settle(), "v") == frozenset()


def test_a_source_without_the_relation_is_an_error(engine: MemoryEngine) -> None:
    run = Run(engine, CHAIN, {"v": set()}, {"r": {("a",)}}, {"t": {("b", 1)}}, costs={"s": 1.0})
    with pytest.raises(SourceError, match=r"SM103.*no base relation `s`"):
        run.settle()


def test_null_in_a_column_declared_not_null_is_told(engine: MemoryEngine) -> None:
    """Else it would be hidden by the promise that rows read are known under."""
    program = ".decl r(x: int, y: int).\n.decl t(c0: int not null, c1: int not null).\nv(X, Y, Z) :- r(X, Y), t(Y, Z)."
    run = Run(engine, program, {"v": set()}, {"r": {(1, 2)}}, {"t": {(2, None), (3, 4)}}, costs={"t": 1})
    with pytest.raises(
        SourceError, match=r"null in a column of `t` declared not null: \(c0=2, c1=null\)"
    ) as refused:
        run.settle()
    assert refused.value.diagnostics[0].code is Code.COLUMNS_DIFFER
