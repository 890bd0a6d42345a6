"""A canonical database with facts added, held against the definition in the engine."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from datalog.model import Atom, Constant, Predicate, Row, Version
from datalog.syntax import parse_program
from selfmaint.canonical import after_rules
from selfmaint.countermodel.added_facts import Extension
from selfmaint.decide.decision import Decision
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation

PROGRAM = """
.decl shop(id: int, city: string not null) key(id).
.decl sale(id: int, shop: int) key(id) foreign key(shop) references shop(id).
v(I, S, C) :- sale(I, S), shop(S, C).
w(I, S) :- sale(I, S).
"""
GIVEN: dict[Predicate, frozenset[Row]] = {
    Predicate("v"): frozenset({(1, 7, "Bonn")}),
    Predicate("w"): frozenset({(1, 7)}),
    Predicate("sale", Version.INSERTED): frozenset({(2, 8)}),
    Predicate("shop", Version.DELETED): frozenset({(7, "Bonn")}),
    Predicate("sale", Version.DELETED): frozenset({(1, 7)}),
}


@pytest.mark.parametrize(
    ("added", "problem"),
    [
        ({"shop": {(8, "Ulm")}}, ""),
        ({"shop": {(8, None)}}, "`shop` would have null in a column that is not null"),
        ({"shop": {(8, "Ulm"), (8, "Bonn")}}, "a key of `shop` would be there twice"),
        ({"shop": {(8, "Ulm")}, "sale": {(3, 8)}}, "`v` would have more rows"),
        ({"shop": {(8, "Ulm")}, "sale": {(3, None)}}, "`w` would have more rows"),
        ({"shop": {(9, "Ulm")}}, "the row is not derived on the second database"),
    ],
)
def test_what_is_wrong_with_new_facts(added: Mapping[str, set[Row]], problem: str) -> None:
    assert why_not(PROGRAM, added) == problem


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ((3, 7), "a row of `sale` would reference none of `shop`"),  # that is deleted
        ((3, 8), ""),  # a row inserted asks for the same
        ((3, 9), "a row of `sale` would reference none of `shop`"),
        ((3, None), ""),
        ((2, 8), "an inserted fact that was there before"),
        ((1, 8), "a key of `sale` would be there twice"),
    ],
)
def test_new_facts_and_the_rows_that_they_reference(row: Row, problem: str) -> None:
    """No view shows the third sale here."""
    program = PROGRAM.replace("w(I, S) :- sale(I, S).", "").replace("shop(S, C).", "shop(S, C), I < 3.")
    derivation = [Atom(Predicate("sale"), tuple(map(Constant, row)))]
    assert why_not(program, {"sale": {row}}, derivation) == problem


def test_beside_a_view_that_projects_nothing_is_shown() -> None:
    program = PROGRAM.replace("w(I, S) :- sale(I, S).", "w(S) :- sale(I, S).")
    assert why_not(program, {"shop": {(8, "Ulm")}}) == "`w` may hide what D^ lacks"


def why_not(program: str, added: Mapping[str, set[Row]], derivation: list[Atom] | None = None) -> str:
    schema = catalog(parse_program(program))
    situation = Situation.of((p for p in GIVEN if p.name in schema.relations), effective=True)
    first = [*Decision(schema).known(situation), *after_rules(schema, situation)]
    extension = Extension(MemoryEngine(), schema, situation, Facts(GIVEN), first)
    new_shop = [Atom(Predicate("shop"), (Constant(8), Constant("Ulm")))]
    return extension.why_not({n: frozenset(rows) for n, rows in added.items()}, derivation or new_shop)
