"""What a search among all databases decides, what it leaves, and what is made of its answers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from datalog.model import ColumnType, Row, TypeName
from selfmaint.api.explain import explain
from selfmaint.api.following.not_maintained import NotMaintainedError
from selfmaint.api.maintain import maintain, new_contents
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.decide import searched
from selfmaint.decide.search_budget import SearchBudget
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import InputError
from selfmaint.fallback.settle import Readable
from selfmaint.report.explanation import explanation_json, explanation_sql
from selfmaint.sources.memory import RowsSource

INT = ColumnType(TypeName.INT)
TWO_STEPS = "v(X, Z) :- s(X, Y), s(Y, Z)."
EITHER = "v(X) :- r(X, Y).\nv(X) :- s(X), t(X).\nw(X, Y) :- r(X, Y)."


def rows(*given: Row) -> frozenset[Row]:
    return frozenset(given)


def warehouse(program: str, **contents: frozenset[Row]) -> Warehouse[frozenset[Row]]:
    return build(program, contents, MemoryEngine())


@pytest.mark.parametrize("never", ["a in (3, null)", "a = 3 or a = null", "a not in (3, null) or a = 3"])
def test_what_compares_with_null_is_no_alternative(never: str) -> None:
    table = "create table r (id int primary key, a int, b int);"
    program = f"{table} create view v as select * from r where {never} or b > 2;"
    here = build(program, {"v": rows((7, 3, 9))}, MemoryEngine())
    inserted, deleted = rows((8, 3, 1), (9, 5, None)), rows((7, 3, 9))
    update = Update({"r": inserted}, {"r": deleted}, effective=True)
    assert isinstance(here.check(update)["v"], SelfMaintainable)
    delta = here.maintain(update, strict=True).deltas["v"]
    assert (delta.gained, delta.lost) == (rows((8, 3, 1)), deleted)


def test_two_databases_are_shown() -> None:
    here = warehouse(TWO_STEPS, v=rows(("d", "c")))
    found = explain(here, Update({"s": rows(("a", "b"))}), "v")
    assert isinstance(found.verdict, NotSelfMaintainable)
    assert found.counterexample is not None
    assert found.counterexample.row[1] in ("b", "c")
    assert found.settled_by == (("s", ()),)
    assert explanation_sql(found).count("SELECT DISTINCT") == 4
    assert explanation_json(found)["counterexample"] is not None  # type: ignore[call-overload, index]


@pytest.mark.parametrize("engine", [MemoryEngine, DuckEngine], ids=lambda e: e.__name__)
def test_a_union_is_maintained(engine: type[MemoryEngine]) -> None:
    program = ".decl r(a: int, b: int). .decl s(a: int). .decl t(a: int).\n" + EITHER
    made = engine()
    contents = {
        name: made.load(its, names, [])
        if engine is MemoryEngine
        else made.load(its, names, [INT] * len(names))
        for name, its, names in (("v", [(1,), (2,)], ["x"]), ("w", [(1, 5)], ["x", "y"]))
    }
    here = build(program, contents, made)
    inserted = made.load([(3, 4)], ["a", "b"], [INT] * 2)
    update = Update({"r": inserted}, effective=True)
    found = maintain(here, update)
    assert all(isinstance(v, SelfMaintainable) for v in found.verdicts.values())
    new = new_contents(here, here.view("v"), found.deltas["v"])
    assert set(made.sample(new, 10)) == {(1,), (2,), (3,)}


def test_a_lost_row_of_a_union() -> None:
    """Row 1 goes with its only row of `r`, unless `s` and `t` have it too."""
    here = warehouse(EITHER, v=rows((1,)), w=rows((1, 5)))
    update = Update({}, {"r": rows((1, 5))}, effective=True)
    assert isinstance(here.check(update)["v"], NotSelfMaintainable)
    with_t = warehouse(EITHER + "\nt_copy(X) :- t(X).", v=rows((1,)), w=rows((1, 5)), t_copy=rows())
    verdict = with_t.check(update)["v"]
    assert isinstance(verdict, SelfMaintainable)
    assert verdict.change is not None
    assert (verdict.change.gained, verdict.change.lost) == (rows(), rows((1,)))


def test_what_no_database_explains_is_undecided() -> None:
    here = warehouse("v(X) :- r(X, Y).\nv(X) :- s(X).\nw(X) :- r(X, Y).", v=rows((1,)), w=rows((2,)))
    verdict = here.check(Update({"r": rows((3, 4))}))["v"]
    assert isinstance(verdict, Undecided)
    assert "no database explains what is known" in verdict.reasons


MANY = 3_000
ENDS = """
.decl s(a: int not null, b: int not null). .decl t(b: int not null, c: int not null).
ends(X, Z) :- s(X, Y), t(Y, Z).
firsts(X) :- s(X, Y).
middles(Y, Z) :- t(Y, Z).
"""


def many(**base: frozenset[Row]) -> Warehouse[frozenset[Row]]:
    """Row number n leads from n over MANY + n to 2 * MANY + n."""
    ends = frozenset((n, 2 * MANY + n) for n in range(MANY))
    middles = frozenset((MANY + n, 2 * MANY + n) for n in range(MANY))
    contents = {"ends": ends, "firsts": frozenset((n,) for n in range(MANY)), "middles": middles}
    columns = {"s": ("a", "b"), "t": ("b", "c")}
    sources = {n: Readable(RowsSource("here", {n: (columns[n], its)})) for n, its in base.items()}
    return build(ENDS, contents, MemoryEngine(), readable=sources)


def test_a_yes_on_large_data_from_a_few_rows() -> None:
    """The end 2 * MANY + 5 has the middle MANY + 5 alone, so the deleted row was the only way from 5 to it."""
    verdict = many().check(Update({}, {"s": rows((5, MANY + 5))}, effective=True))["ends"]
    assert isinstance(verdict, SelfMaintainable)
    assert verdict.change is not None
    assert (verdict.change.gained, verdict.change.lost) == (rows(), rows((5, 2 * MANY + 5)))
    assert verdict.near is not None
    assert verdict.near.rows < 10


def test_a_no_on_large_data_is_two_databases_that_are_explained() -> None:
    update = Update({}, {"s": rows((5, MANY + 5))}, effective=True)
    found = explain(many(), update, "firsts")
    assert isinstance(found.verdict, NotSelfMaintainable)
    assert found.verdict.near is not None
    assert found.verdict.near.is_closed
    assert found.counterexample is not None
    assert not found.counterexample.complete
    assert (found.counterexample.row, found.settled_by) == ((5,), (("s", ()),))


def test_a_no_that_rows_far_away_could_make_a_yes_is_undecided() -> None:
    """Whatever has the new middle has a first that is stored, and none of these is near."""
    verdict = many().check(Update({"t": rows((9 * MANY, 7))}, effective=True))["ends"]
    assert isinstance(verdict, Undecided)
    assert "rows of `s` decide between them, which a read finds" in verdict.reasons[-1]


def test_a_value_that_more_rows_have_than_are_searched_makes_no_no() -> None:
    """Some `q` has 7, so the rows of `s` with 7 are those that `v` shows: no two databases differ."""
    program = """
        .decl q(a: int not null, b: int not null).
        .decl s(b: int not null, c: int not null).
        v(B, C) :- q(A, B), s(B, C).
    """
    here = warehouse(program, v=frozenset((7, n) for n in range(searched.MOST_ROWS + 50)))
    verdict = here.check(Update({"q": rows((5, 7))}, effective=True))["v"]
    assert not isinstance(verdict, NotSelfMaintainable)


SEVERAL_TYPES = """
from datalog.model import ColumnType, TypeName
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.duckdb import DuckEngine
INT, BIGINT = ColumnType(TypeName.INT), ColumnType(TypeName.BIGINT)
RULES = (
    ".decl s(a: int not null, b: int not null). .decl t(b: bigint not null, c: int not null)."
    "ends(X, Z) :- s(X, Y), t(Y, Z).  firsts(X) :- s(X, Y).  middles(Y, Z) :- t(Y, Z)."
)
engine, ends = DuckEngine(), [(n, 2000 + n) for n in range(1000)]
middles = [(1000 + n, 2000 + n) for n in range(1000)] + [(2**40, 2005)]
contents = {
    "ends": engine.load(ends, ["x", "z"], [INT, INT]),
    "firsts": engine.load([(n,) for n in range(1000)], ["x"], [INT]),
    "middles": engine.load(middles, ["y", "z"], [BIGINT, INT]),
}
deleted = {"s": engine.load([(5, 1005)], ["a", "b"], [INT, INT])}
print(build(RULES, contents, engine).check(Update({}, deleted, effective=True))["middles"].kind.value)
"""


@pytest.mark.parametrize("seed", range(4))
def test_columns_of_several_types_are_searched_with_values_of_all(seed: int) -> None:
    """A class of columns has no order of its types: each process may take another one first."""
    ran = subprocess.run(
        [sys.executable, "-c", SEVERAL_TYPES],
        env={**os.environ, "PYTHONHASHSEED": str(seed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (ran.stdout, ran.stderr) == ("yes\n", "")


def test_doubles_are_not_taken_for_whole_numbers_that_the_engine_has_for_equal() -> None:
    """The engine joins 2^53 + 1 with the double 2^53: so there is nothing at hand of a view that stores doubles."""
    number, engine = ColumnType(TypeName.BIGINT), DuckEngine()
    middles = [(float(2**53), 5000), *((float(n), 5000 + n) for n in range(1, 1000))]
    contents = {
        "ends": engine.load([(n, 5000 + n) for n in range(1000)], ["x", "z"], [INT, INT]),
        "middles": engine.load(middles, ["y", "z"], [ColumnType(TypeName.DOUBLE), INT]),
    }
    here = build("ends(X, Z) :- s(X, Y), t(Y, Z).  middles(Y, Z) :- t(Y, Z).", contents, engine)
    deleted = {"s": engine.load([(0, 2**53 + 1)], ["a", "b"], [INT, number])}
    verdict = here.check(Update({}, deleted, effective=True))["ends"]
    assert isinstance(verdict, Undecided)
    assert verdict.near is not None
    assert (verdict.near.rows, verdict.near.is_closed) == (2, False)


def test_a_no_found_by_search_is_settled_by_no_more_reads_than_one_that_is_undecided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads = []
    for most in (searched.MOST_SECONDS, -1):
        monkeypatch.setattr(searched, "MOST_SECONDS", most)
        after = frozenset((n, MANY + n) for n in range(MANY) if n != 5) | {(5, MANY + 6)}
        here = many(s=after, t=frozenset((MANY + n, 2 * MANY + n) for n in range(MANY)))
        found = maintain(here, Update({}, {"s": rows((5, MANY + 5))}, effective=True))
        assert new_contents(here, here.view("firsts"), found.deltas["firsts"]) == here.contents["firsts"]
        reads.append(found.reads)
    assert {*reads[0]} <= {*reads[1]}


def test_an_update_with_too_many_rows_is_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "MOST_ROWS", 1)
    here = warehouse(EITHER, v=rows((1,), (2,)), w=rows((1, 5)))
    here.search = SearchBudget(rows=1)
    verdict = here.check(Update({"r": rows((3, 4))}))["v"]
    assert isinstance(verdict, Undecided)
    assert verdict.reasons[-1] == (
        "the update, of 1 row, leaves more open than is searched; "
        "a larger budget may decide it: `--search-rows`, or `rows` of `[search]`, now 1"
    )


def test_a_larger_budget_that_is_named_decides() -> None:
    update = Update({}, {"s": rows(*((n, MANY + n) for n in range(5, 11)))}, effective=True)
    too_small = many()
    too_small.search = SearchBudget(rows=12)
    verdict = too_small.check(update)["ends"]
    assert isinstance(verdict, Undecided)
    assert (
        "a larger budget may decide it: `--search-rows`, or `rows` of `[search]`, now 12" in verdict.because
    )
    assert isinstance(many().check(update)["ends"], SelfMaintainable)


@pytest.mark.parametrize("budget", [{"rows": 0}, {"seconds": 0.0}, {"seconds": float("nan")}])
def test_a_budget_is_positive(budget: dict[str, float]) -> None:
    with pytest.raises(InputError, match="SM101"):
        SearchBudget(**budget)  # type: ignore[arg-type]


def test_the_search_ends_with_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(searched, "MOST_SECONDS", 0.0)
    here = warehouse(EITHER, v=rows((1,), (2,)), w=rows((1, 5)))
    here.search = SearchBudget(seconds=1e-9)
    verdict = here.check(Update({"r": rows((3, 4))}))["v"]
    assert isinstance(verdict, Undecided)
    assert verdict.reasons[-1] == "the search did not end within 1e-09 s"


def test_hidden_columns_of_many_rows_are_too_much() -> None:
    stored = frozenset((i, i * i % 101) for i in range(100))
    verdict = warehouse(TWO_STEPS, v=stored).check(Update({"s": rows((1, 2))}))["v"]
    assert isinstance(verdict, Undecided)
    assert verdict.reasons[-1] == "there are too many possibilities to search"


def test_references_in_a_circle_make_no_yes() -> None:
    program = """
    .decl r(a: int, b: int) key(a) foreign(b) references r(a).
    .decl s(a: int).
    v(X) :- r(X, Y).
    v(X) :- s(X).
    """
    verdict = warehouse(program, v=rows((1,))).check(Update({"s": rows((2,))}))["v"]
    assert isinstance(verdict, Undecided)
    assert "foreign keys go in circles" in verdict.reasons


def test_not_a_number_is_not_searched() -> None:
    verdict = warehouse(EITHER, v=rows((float("nan"),)), w=rows()).check(Update({"r": rows((3, 4))}))["v"]
    assert isinstance(verdict, Undecided)


def test_beside_a_view_of_another_class_a_yes_is_sound_and_a_no_needs_databases_that_explain_it() -> None:
    program = EITHER + "\nn(count(*)) :- s(X)."
    none = warehouse(program, v=rows((1,)), w=rows((1, 5)), n=rows((0,)))
    inserted = Update({"t": rows((7,))}, effective=True)
    assert isinstance(none.check(inserted)["v"], Undecided)  # the count says that `s` is empty
    arrives = Update({"r": rows((3, 4))}, effective=True)
    assert isinstance(none.check(arrives)["v"], SelfMaintainable)


def test_what_cannot_be_settled_is_refused() -> None:
    here = warehouse(TWO_STEPS, v=rows(("d", "c")))
    with pytest.raises(NotMaintainedError, match="SM404"):
        maintain(here, Update({"s": rows(("a", "b"))}, effective=True))
