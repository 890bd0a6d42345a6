"""Which steps of a demand transformation stand in a query, and which stay expressions of their own."""

from __future__ import annotations

from datalog.model import Predicate, Version
from datalog.rewrite import demand, drop_unused_columns
from datalog.sql import Table, select, text
from datalog.syntax import parse_program

GOAL = Predicate("p")
SMALL = {Predicate("new"), Predicate("old")}
TABLES = {
    Predicate("new"): Table(("new",), ("x", "y"), frozenset({0, 1})),
    Predicate("old"): Table(("old",), ("x", "y"), frozenset({0, 1})),
    Predicate("r"): Table(("r",), ("y", "z"), frozenset({0, 1})),
    Predicate("s"): Table(("s",), ("y", "z"), frozenset({0, 1})),
}


def asked(program: str, goal: Predicate = GOAL) -> str:
    """The query for a goal that is reached from small relations."""
    made = demand(parse_program(program), [goal], SMALL, together=False)
    query = select(drop_unused_columns(made, [goal]), goal, TABLES)
    return text(query, pretty=False).replace("`", "")


def test_a_query_that_starts_at_the_update_asks_by_keys_without_demands() -> None:
    assert asked("p(X, Z) :- new(X, Y), r(Y, Z).") == (
        "SELECT DISTINCT new.x, r.z FROM new JOIN r ON r.y = new.y"
    )


def test_a_chain_in_a_negation_is_two_lookups() -> None:
    assert asked("p(X) :- new(X, Y), not (r(Y, Z), s(Z, W)).") == (
        "SELECT DISTINCT new.x FROM new WHERE NOT EXISTS(SELECT 1 FROM r WHERE r.y = new.y"
        " AND EXISTS(SELECT 1 FROM s WHERE s.y = r.z))"
    )


def test_what_does_not_show_all_that_it_reads_is_held_apart_and_distinct() -> None:
    """Else each row of `new` would meet all rows of `r`, and then be made distinct again."""
    assert asked("p(X, U) :- new(X, Y), k(Y, U). k(Y, U) :- r(Y, Z), s(Z, U).") == (
        "WITH k AS (SELECT DISTINCT r.y, s.z FROM r JOIN s ON s.y = r.z"
        " WHERE EXISTS(SELECT 1 FROM new WHERE new.y = r.y))"
        " SELECT DISTINCT new.x, k.z FROM new JOIN k ON k.y = new.y"
    )


def test_what_several_rules_define_has_the_rows_that_are_demanded() -> None:
    assert asked(
        "p(X, Z) :- new(X, Y), k(Y, Z). k(Y, Z) :- r(Y, Z). k(Y, Z) :- s(Y, Z). k(Y, Z) :- old(Y, Z)."
    ) == (
        "WITH k AS (SELECT r.y, r.z FROM r WHERE EXISTS(SELECT 1 FROM new WHERE new.y = r.y)"
        " UNION SELECT s.y, s.z FROM s WHERE EXISTS(SELECT 1 FROM new WHERE new.y = s.y)"
        " UNION SELECT old.x, old.y FROM old)"
        " SELECT DISTINCT new.x, k.z FROM new JOIN k ON k.y = new.y"
    )


def test_a_demand_asks_for_no_more_than_binds_its_values() -> None:
    """Not by the bindings of the whole body before it, which would be computed wherever the demand is read."""
    found = asked(
        "p(X) :- new(X, Y), k(Y, Z), not (r(Y, U), k(U, Y)). k(Y, Z) :- r(Y, Z). k(Y, Z) :- s(Y, Z), not old(Y, Z)."
    )
    assert "step" not in found
    assert found.count("EXISTS(SELECT 1 FROM new") == 3


def test_a_test_is_no_product() -> None:
    """`old` shares no variable with the body around: only through `r`, which is therefore no test."""
    found = asked("p(X) :- new(X, Y), not (old(Z, U), r(Z, Y)).")
    assert "CROSS JOIN" not in found


def test_steps_have_names_without_numbers() -> None:
    program = "p(X) :- new(X, Y), not k(Y). k(Y) :- r(Y, Z), not s(Y, Z). k(Y) :- s(Y, Y)."
    assert "WITH k AS (" in asked(program)
    assert not any(version.value in asked(program) for version in (Version.DEMAND, Version.DEMANDED))
