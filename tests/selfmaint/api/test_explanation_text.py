"""`str()` of an explanation: the verdict and what it hangs on."""

from __future__ import annotations

from datalog.model import Row
from selfmaint.api.explain import explain
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.engine.memory import MemoryEngine

NOTHING: frozenset[Row] = frozenset()


def text(program: str, inserted: dict[str, frozenset[Row]], view: str = "v", **stored: frozenset[Row]) -> str:
    warehouse = build(program, stored, MemoryEngine())
    return str(explain(warehouse, Update(inserted), view))


def test_a_no_names_the_unknown_facts_and_what_settles_them() -> None:
    program = ".decl r(a: int). .decl s(b: int not null). v(X, Y) :- r(X), s(Y)."
    assert text(program, {"r": frozenset({(1,)})}, v=NOTHING) == (
        "`v` is not self-maintainable: two databases that explain what is known differ on it\n"
        "  s(Y) may or may not exist\n"
        "  reading `s` whole would settle that"
    )


def test_a_yes_names_what_rules_the_unknown_out() -> None:
    program = "v(X) :- r(X), s(X). w(X) :- s(X)."
    found = text(program, {"r": frozenset({(1,)})}, v=NOTHING, w=frozenset({(1,)}))
    assert found.splitlines() == [
        "`v` is self-maintainable: all databases that explain what is known agree on it",
        "  s(X) cannot be unknown: `w` would tell",
    ]


def test_an_undecided_view_gives_its_reasons() -> None:
    found = text("v(X, count(*)) :- r(X, Y).", {"r": frozenset({(1, 2)})}, v=NOTHING)
    assert found.splitlines() == [
        "`v` is undecided, which counts as not self-maintainable",
        "  `v` groups (count)",
        "  whether the rows of the update were there before is not known: say that it is effective",
    ]


def test_an_empty_view_says_so() -> None:
    found = text("v(X) :- r(X), X = 3, X = 4.", {"r": frozenset({(3,)})}, v=NOTHING)
    assert found.splitlines()[1] == "  `v` can have no rows: `3 = 4` is never true"
