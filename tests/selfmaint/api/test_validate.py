"""What is given and cannot be is refused, with the rows that show it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import Predicate, Row, Version
from selfmaint.api.check import check
from selfmaint.api.maintain import maintain
from selfmaint.api.update import Update
from selfmaint.api.validate import SHOWN_ROWS, require_possible
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.conformance.cases import case_of
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.errors import Code, InputError
from selfmaint.warehouse.base_relations import shown_rows
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation
from tests.oracle.bruteforce import Case, solve
from tests.oracle.program import parse_program
from tests.oracle.strategies import Limits, cases

Rows: TypeAlias = frozenset[Row]
Relations: TypeAlias = Mapping[str, set[Row]]


def sets(relations: Relations | None) -> dict[str, Rows]:
    return {name: frozenset(rows) for name, rows in (relations or {}).items()}


def warehouse(
    program: str, views: Relations, *, present: Relations | None = None, absent: Relations | None = None
) -> Warehouse[Rows]:
    return build(program, sets(views), MemoryEngine(), present=sets(present), absent=sets(absent))


def problems(
    given_: Warehouse[Rows],
    inserted: Relations | None = None,
    deleted: Relations | None = None,
    *,
    effective: bool = False,
    full: bool = False,
    readable: Relations | None = None,
) -> list[tuple[Code, str]]:
    """Codes and messages, the latter cut to what stands behind the first colon: the rows."""
    facts, situation = given_.given(Update(sets(inserted), sets(deleted), effective))
    if readable is not None:
        before = {Predicate(name, Version.BEFORE): rows for name, rows in sets(readable).items()}
        facts = facts.extended(before)
        situation = replace(situation, readable=frozenset(readable))
    try:
        require_possible(given_, facts, situation, full=full)
    except InputError as error:
        return [(code_of(d), d.message.rsplit(": ", 1)[1]) for d in error.diagnostics]
    return []


def code_of(diagnostic: Diagnostic) -> Code:
    assert isinstance(diagnostic.code, Code)
    assert diagnostic.hint
    return diagnostic.code


# --------------------------------------------------------------------------------------- view rows (SM2xx)


@pytest.mark.parametrize(
    ("rule", "rows", "culprits"),
    [
        ("v(X, 'a') :- r(X).", {(1, "a"), (2, "b")}, "(x=2, c1='b')"),
        ("v(X, 'a') :- r(X).", {(1, None)}, "(x=1, c1=null)"),
        ("v(X, null) :- r(X).", {(1, None), (2, 0)}, "(x=2, c1=0)"),
        ("v(X, 1) :- r(X).", {(5, True), (6, 1)}, "(x=5, c1=true)"),
        ("v(X, X) :- r(X).", {(1, 1), (1, 2)}, "(x_0=1, x_1=2)"),
        ("v(X, X) :- r(X).", {(1, None)}, "(x_0=1, x_1=null)"),
        ("v(X, Y, X) :- r(X, Y).", {(1, 2, 1), (1, 2, 2)}, "(x_0=1, y=2, x_2=2)"),
        ("v(X, Y) :- r(X, Y), X = 'b'.", {("b", 1), ("c", 2)}, "(x='c', y=2)"),
        ("v(X, Y) :- r(X), s(Y), X = Y.", {(1, 1), (1, 2)}, "(x=1, y=2)"),
    ],
)
def test_rows_that_a_rule_can_never_produce(rule: str, rows: set[Row], culprits: str) -> None:
    found = problems(warehouse(rule, {"v": rows}))
    assert (Code.HEAD_MISMATCH, culprits) in found


@pytest.mark.parametrize("rule", ["v(X, X) :- r(X).", "v(X, X, Y) :- r(X), r(Y)."])
def test_a_repeated_variable_that_does_not_join_may_be_null(rule: str) -> None:
    width = rule.partition(" :-")[0].count(",") + 1
    assert problems(warehouse(rule, {"v": {(None,) * width}}), {"r": {(1,)}}) == []


@pytest.mark.parametrize(
    ("rule", "rows", "culprits"),
    [
        ("v(X, Y) :- r(X, Y), s(Y).", {(1, None), (None, 2)}, "(x=1, y=null)"),
        ("v(X) :- r(X, X).", {(None,), (1,)}, "(x=null)"),
        ("v(X) :- r(X), X is not null.", {(None,)}, "(x=null)"),
        (".decl r(a: int not null, b: int). v(X, Y) :- r(X, Y).", {(None, 1), (2, None)}, "(x=null, y=1)"),
    ],
)
def test_null_where_a_rule_joins_or_a_column_is_never_null(rule: str, rows: set[Row], culprits: str) -> None:
    assert problems(warehouse(rule, {"v": rows})) == [(Code.NULL_IN_JOIN, culprits)]


def test_rows_of_a_view_outside_the_class_are_not_judged() -> None:
    assert problems(warehouse("v(X, 1) :- r(X, Y), Y > 2.", {"v": {(None, 2)}})) == []


def test_a_row_known_to_be_absent_that_a_view_proves() -> None:
    given_ = warehouse("v(X, Y) :- r(X), s(Y).", {"v": {(1, 2)}}, absent={"s": {(2,), (3,)}})
    assert problems(given_) == [(Code.NOT_EXPLAINED, "(c0=2)")]


def test_a_row_known_to_be_present_and_absent() -> None:
    given_ = warehouse("v(X, Y) :- r(X), s(Y).", {"v": set()}, present={"s": {(2,)}}, absent={"s": {(2,)}})
    assert problems(given_) == [(Code.NOT_EXPLAINED, "(c0=2)")]


def test_views_that_no_database_explains_are_found_in_full() -> None:
    """w proves r(1) and s(1), so v lacks a row; only the full check looks across views."""
    given_ = warehouse("v(X) :- r(X), s(X). w(X, Y) :- r(X), s(Y).", {"v": set(), "w": {(1, 1), (1, 2)}})
    assert problems(given_) == []
    assert problems(given_, full=True) == [(Code.NOT_EXPLAINED, "(x=1)")]


def test_the_full_check_looks_at_contributions_that_the_decision_leaves_out() -> None:
    """v2 copies s, so the decision ignores what v1 says of s; a row that v1 alone has is a contradiction."""
    program = "v1(X, Y) :- r(X), s(Y). v2(Y) :- s(Y)."
    given_ = warehouse(program, {"v1": {(1, 2), (1, 3)}, "v2": {(2,)}})
    assert problems(given_) == []
    assert problems(given_, full=True) == [(Code.NOT_EXPLAINED, "(y=3)")]


def test_a_partial_copy_and_a_view_that_lacks_what_it_proves() -> None:
    given_ = warehouse("v(X) :- r(X), s(X).", {"v": {(1,)}}, present={"r": {(2,)}, "s": {(2,)}})
    assert problems(given_, full=True) == [(Code.NOT_EXPLAINED, "(x=2)")]


def test_a_copy_that_lacks_what_is_known_to_be_present_or_was_deleted() -> None:
    """The copy alone would tell all of r, were it not contradicted."""
    given_ = warehouse("v(X) :- r(X).", {"v": {(1,)}}, present={"r": {(1,), (2,)}})
    assert problems(given_, full=True) == [(Code.NOT_EXPLAINED, "(x=2)")]
    stale = warehouse("v(X) :- r(X).", {"v": {(1,)}})
    assert problems(stale, None, {"r": {(1,)}}, effective=True, full=True) == []
    assert problems(stale, None, {"r": {(2,)}}, effective=True, full=True) != []


def test_an_effective_insertion_of_what_a_partial_copy_holds_beside_a_copy() -> None:
    """The partial copy contradicts the update whether or not a view copies the relation."""
    given_ = warehouse("v(X) :- r(X).", {"v": set()}, present={"r": {(4,)}})
    assert problems(given_, {"r": {(4,)}}, effective=True, full=True) == [
        (Code.CONTRADICTS, "(c0=4)"),
        (Code.NOT_EXPLAINED, "(x=4)"),
    ]


def test_a_view_with_a_projection_that_lacks_what_others_prove() -> None:
    program = "v(X) :- r(X, Y), s(Y). w(X, Y) :- r(X, Y). u(Y) :- s(Y)."
    others: Relations = {"w": {(1, 2), (3, 4)}, "u": {(2,)}}
    assert problems(warehouse(program, {**others, "v": set()}), full=True) == [(Code.NOT_EXPLAINED, "(x=1)")]
    assert problems(warehouse(program, {**others, "v": {(1,)}}), full=True) == []


def test_a_readable_relation_that_lacks_what_a_partial_copy_holds() -> None:
    given_ = warehouse("v(X, Y) :- r(X), s(Y).", {"v": set()}, present={"s": {(2,)}})
    assert problems(given_, readable={"s": {(3,)}}, full=True) == [(Code.NOT_EXPLAINED, "(c0=2)")]
    assert problems(given_, readable={"s": {(2,)}}, full=True) == []


def test_a_readable_relation_that_lacks_what_a_view_proves() -> None:
    given_ = warehouse("v(X, Y) :- r(X), s(Y).", {"v": {(1, 2)}})
    found = problems(given_, readable={"s": {(3,)}}, full=True)
    assert (Code.NOT_EXPLAINED, "(c0=2)") in found
    assert problems(given_, readable={"s": {(2,)}}, full=True) == []


# ------------------------------------------------------------------------------------- the update (SM3xx)


def test_a_row_inserted_and_deleted() -> None:
    given_ = warehouse("v(X, Y) :- r(X, Y), s(Y).", {"v": set()})
    found = problems(given_, {"r": {(1, 2), (3, 4)}}, {"r": {(1, 2), (5, 6)}})
    assert found == [(Code.BOTH_CHANGED, "(c0=1, c1=2)")]
    assert problems(given_, {"r": {(1, None)}}, {"r": {(1, None)}}) == [
        (Code.BOTH_CHANGED, "(c0=1, c1=null)")
    ]


def test_of_a_row_inserted_and_deleted_it_is_not_said_too_that_it_was_there() -> None:
    given_ = warehouse("v(X, Y) :- r(X, Y).", {"v": {(1, 2)}})
    found = problems(given_, {"r": {(1, 2)}}, {"r": {(1, 2)}}, effective=True)
    assert found == [(Code.BOTH_CHANGED, "(c0=1, c1=2)")]


def test_effective_insertions_of_what_was_there() -> None:
    by_view = warehouse("v(X, Y) :- r(X), s(Y).", {"v": {(1, 2)}})
    assert problems(by_view, {"r": {(1,), (5,)}}, effective=True) == [(Code.CONTRADICTS, "(c0=1)")]
    assert problems(by_view, {"r": {(1,)}}) == []
    by_copy = warehouse("v(X, Y) :- r(X), s(Y).", {"v": set()}, present={"r": {(4,)}})
    assert problems(by_copy, {"r": {(4,)}}, effective=True) == [(Code.CONTRADICTS, "(c0=4)")]


def test_effective_deletions_of_what_was_not_there() -> None:
    given_ = warehouse("v(X, Y) :- r(X), s(Y).", {"v": set()}, absent={"r": {(1,), (2,)}})
    found = problems(given_, None, {"r": {(1,)}}, effective=True)
    assert (Code.CONTRADICTS, "(c0=1)") in found
    assert problems(given_, None, {"r": {(1,)}}) == []


def test_effective_deletions_of_what_a_join_would_show() -> None:
    """The view holds every order of a known customer; of an unknown one it says nothing."""
    held = warehouse(
        "c(X, N) :- customer(X, N). v(O, X, N) :- orders(O, X), customer(X, N).",
        {"c": {(1, "a"), (2, "b")}, "v": {(10, 1, "a")}},
    )
    assert problems(held, deleted={"orders": {(10, 1), (11, 3)}}, effective=True) == []
    found = problems(held, deleted={"orders": {(10, 1), (77, 2)}}, effective=True)
    assert [code for code, _ in found] == [Code.CONTRADICTS]
    assert "77" in found[0][1]
    assert "10" not in found[0][1]
    assert problems(held, deleted={"orders": {(77, 2)}}) == []


def test_effective_deletions_of_what_a_readable_relation_did_not_have() -> None:
    given_ = warehouse("v(X, Y) :- r(X), s(Y).", {"v": set()})
    found = problems(given_, None, {"r": {(1,), (2,)}}, effective=True, readable={"r": {(2,)}})
    assert found == [(Code.CONTRADICTS, "(c0=1)")]


@pytest.mark.parametrize("part", ["inserted", "deleted", "present", "readable"])
def test_null_in_a_column_that_is_never_null(part: str) -> None:
    rows: Relations = {"r": {(1, None), (None, 2)}}
    given_ = warehouse(
        ".decl r(id: int, n: int) key(id). v(X, Y) :- r(X, Y).",
        {"v": set()},
        present=rows if part == "present" else None,
    )
    parts = {part: rows} if part != "present" else {}
    found = problems(given_, **parts)  # type: ignore[arg-type]
    assert (Code.COLUMNS_DIFFER, "(id=null, n=2)") in found
    assert not any("id=1" in culprits for _, culprits in found)


# --------------------------------------------------------------------------------------------- all together


def test_every_problem_is_told_at_once_with_a_few_rows_each() -> None:
    given_ = warehouse(
        "v(X, 'a') :- r(X). w(X) :- r(X), s(X).", {"v": {(n, "b") for n in range(9)}, "w": {(None,)}}
    )
    found = problems(given_, {"s": {(1,)}}, {"s": {(1,)}})
    assert [code for code, _ in found] == [Code.HEAD_MISMATCH, Code.NULL_IN_JOIN, Code.BOTH_CHANGED]
    assert found[0][1].count("x=") == SHOWN_ROWS


def test_rows_are_shown_in_order_with_names_and_quotes() -> None:
    assert shown_rows(("a", "b"), [(2, "it's"), (1, None)]) == "(a=1, b=null); (a=2, b='it''s')"


def test_check_and_maintain_refuse_what_cannot_be() -> None:
    given_ = warehouse("v(X, 'a') :- r(X).", {"v": {(1, "b")}})
    update: Update[Rows] = Update(sets({"r": {(2,)}}))
    for call in (check, maintain):
        with pytest.raises(InputError, match=r"SM201.*`v`.*\(x=1, c1='b'\)"):
            call(given_, update)


def test_an_unknown_relation_in_the_update_is_told_with_a_near_miss() -> None:
    given_ = warehouse("v(X) :- orders(X).", {"v": set()})
    with pytest.raises(InputError, match="SM102") as caught:
        check(given_, Update(sets({"order": {(1,)}})))
    assert caught.value.diagnostics[0].hint == "a base relation `orders` exists"


# ---------------------------------------------------------------------------------------- random situations


def outcome(case: Case, *, full: bool) -> bool:
    """Whether the checks find nothing."""
    record = case_of({"id": "random", **case, "expected": {}})
    schema = catalog(record.program)
    contents = {view.name: record.contents[view.predicate] for view in schema.views}
    situation = Situation.of(
        (p for p in record.contents if p.name in schema.relations), effective=record.effective
    )
    try:
        require_possible(
            Warehouse(schema, MemoryEngine(), contents), Facts(record.contents), situation, full=full
        )
    except InputError:
        return False
    return True


patient = settings(suppress_health_check=[HealthCheck.too_slow])


@given(cases(Limits(odd_heads=True)))
@patient
def test_what_a_database_explains_is_not_refused(case: Case) -> None:
    """Oracle: cases are drawn around a database that explains them."""
    assert outcome(case, full=False)
    assert outcome(case, full=True)


@given(cases(Limits(odd_heads=True)), st.data())
@patient
def test_what_no_database_explains_is_refused_in_full(case: Case, data: st.DataObject) -> None:
    """Oracle: brute force, on cases in which a row more or less is given somewhere."""
    changed: Any = {key: value for key, value in case.items() if key != "access"}  # as in a warehouse
    part = data.draw(st.sampled_from(["views", "views", "views", "present", "absent", "insert", "delete"]))
    relations = {name: [*map(tuple, rows)] for name, rows in changed.get(part, {}).items()}
    known = sorted(relations if part == "views" else case["relations"])
    assume(known)
    name = data.draw(st.sampled_from(known))
    heads = {rule.head.name: len(rule.head.terms) for rule in parse_program(case["program"])}
    width = heads[name] if part == "views" else case["relations"][name]
    row = data.draw(st.tuples(*[st.sampled_from(["a", "b", 1, None])] * width))
    assume(part != "delete" or None not in row)  # refused where a column is never null, and harmless
    rows = relations.get(name, [])
    relations[name] = [other for other in rows if other != row] if row in rows else [*rows, row]
    changed[part] = relations
    try:
        answers = solve(changed)
    except ValueError:  # a row that is inserted and deleted, or a null that cannot be
        assert not outcome(changed, full=True)
        return
    assert outcome(changed, full=True) == (answers is not None)


def test_a_row_whose_foreign_key_leads_to_a_null_may_be_missing_in_a_view() -> None:
    """`v` has no row of order 20: its customer has no city, as a foreign key that may be null allows."""
    program = """
        .decl city(id: int not null, name: string not null) key(id).
        .decl customer(id: int not null, name: string not null, city: int) key(id) foreign(city) references city(id).
        .decl orders(id: int not null, customer: int not null) key(id) foreign(customer) references customer(id).
        v(O, C, I, N) :- orders(O, C), customer(C, _, I), city(I, N).
    """
    here = build(program, {"v": frozenset({(10, 1, 5, "Bern")})}, MemoryEngine())
    gone = Update({}, {"orders": frozenset({(20, 2)})}, effective=True)
    assert check(here, gone)["v"]
    assert maintain(here, gone).deltas["v"].lost == frozenset()
