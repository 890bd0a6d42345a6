"""What few rows of a large join tell is what all of them do.

Oracle: the rows that the definition gives, row by row (`sql_programs.meaning`), over joins of random relations.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalog.model import ColumnType, Predicate, TypeName
from datalog.sql.duckdb import relations as sql
from datalog.syntax import parse_program
from selfmaint.duckdb import DuckEngine, Relation, representatives
from selfmaint.engine.protocol import Dependencies, Facts, Layout
from selfmaint.warehouse.catalog import catalog
from tests.datalog.sql.sql_programs import meaning

NEW, SALES, V = Predicate("new"), Predicate("sales"), Predicate("v")
COLUMNS = ("order", "part", "supplier", "name", "price")
TYPES = [ColumnType(TypeName.STRING if c == "name" else TypeName.INT) for c in COLUMNS]
JOINED = (frozenset({0, 1, 2}), frozenset({2, 3}), frozenset({1, 4}))
"""The columns of lines(order, part, supplier), suppliers(supplier, name), prices(part, price)."""
DETERMINED = ((1, frozenset({4})), (2, frozenset({3})))
"""What their keys say if a supplier has one name, and a part one price."""
LOOKS = [
    "v(S) :- new(S), sales(O, P, S, N, C).",
    "v(S, N) :- new(S), sales(O, P, S, N, C).",
    "v(S, C) :- new(S), sales(O, P, S, N, C).",
    "v(P, C) :- new(P), sales(O, P, S, N, C).",
    "v(P, N) :- new(P), sales(O, P, S, N, C).",
    "v(O, C) :- new(O), sales(O, P, S, N, C).",
]


@pytest.fixture(scope="module")
def small_ones_are_large() -> Iterator[pytest.MonkeyPatch]:
    """A slice may be of any relation, has few rows, and lies wherever it does; no key is looked for by itself."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"ROWS_FOR_A_KEY": 1, "SHARE": 0, "NARROW": 0}.items():
            patch.setattr(representatives, name, value)
        patch.setattr("selfmaint.duckdb.programs.APART", 0)
        yield patch


def in_files(engine: DuckEngine, data: Relation) -> Relation:
    """The same rows, of which is known what files tell."""
    spreads = dict.fromkeys((0, 1, 2, 4), 3)
    layout = Layout(data.stored.known_rows, spreads, frozenset({0, 1, 2, 4}))
    query = sql.rows(data.stored.name, len(data.types))
    return Relation(engine.database.view(query, data.types, [data.stored], layout), data.columns)


@given(random=st.randoms(use_true_random=False))
def test_few_rows_of_a_join_tell_what_all_do(
    small_ones_are_large: pytest.MonkeyPatch, random: Random
) -> None:
    """Looked up one after the other in one engine, with the promise and without it."""
    lines = {
        (random.randrange(9), random.randrange(3), random.randrange(4))
        for _ in range(random.randrange(1, 30))
    }
    suppliers = {(random.randrange(4), random.choice("abc")) for _ in range(6)}
    prices = {(random.randrange(3), random.randrange(9)) for _ in range(4)}
    is_functional = random.random() < 0.5
    if is_functional:
        suppliers, prices = set(dict(suppliers).items()), set(dict(prices).items())
    promise = Dependencies(JOINED, DETERMINED if is_functional else ())
    sales = {
        (o, p, s, name, price)
        for o, p, s in lines
        for t, name in suppliers
        for q, price in prices
        if (s, p) == (t, q)
    }
    if not sales:
        return
    engine = DuckEngine(most_few=random.choice([0, 20_000]))
    stored = in_files(engine, engine.load(sorted(sales), COLUMNS, TYPES))
    for look in random.sample(LOOKS, 4):
        keys = {(random.randrange(5),) for _ in range(3)}
        new = engine.load(keys, ["k"], [TYPES[0]])
        promised = {SALES: promise} if random.random() < 0.7 else {}
        small_ones_are_large.setattr(representatives, "SHARE", random.choice([0, 1, 3]))
        facts = Facts({NEW: new, SALES: stored}, small=frozenset({NEW}), dependencies=promised)
        program = parse_program(look)
        expected = meaning(program, V, {NEW: keys, SALES: sales})
        assert set(engine.sample(engine.evaluate(program, V, facts), 999)) == expected


def test_without_a_promise_all_rows_are_read(small_ones_are_large: pytest.MonkeyPatch) -> None:
    """Rows that are no join: each order has a name of the supplier of its own."""
    small_ones_are_large.setattr(representatives, "SHARE", 0)
    engine, program = DuckEngine(most_few=0), parse_program(LOOKS[1])
    sales = {(order, 1, 1, name, 1) for order, name in enumerate("abcdefgh")}
    stored = in_files(engine, engine.load(sorted(sales), COLUMNS, TYPES))
    new = engine.load([(1,)], ["k"], [TYPES[0]])
    facts = Facts(
        {NEW: new, SALES: stored}, small=frozenset({NEW}), dependencies={SALES: Dependencies(JOINED)}
    )
    told = set(engine.sample(engine.evaluate(program, V, facts), 99))
    assert len(told) == 1  # which is how it is seen that few rows are read
    facts = Facts({NEW: new, SALES: stored}, small=frozenset({NEW}))
    assert set(engine.sample(engine.evaluate(program, V, facts), 99)) == {(1, name) for name in "abcdefgh"}


RULES = """
v(O, P, S, N, C) :- lines(O, P, S), suppliers(S, N), prices(P, C).
w(O, P, S, N) :- lines(O, P, S), suppliers(S, N), prices(P, C).
u(O, P, S, N) :- lines(O, P, S), suppliers(S, N), O < S.
"""


def test_views_that_show_all_of_their_bodies_are_joins() -> None:
    """A comparison joins what it compares; a view that projects is no join of what it shows."""
    found = {view.name: view.joined for view in catalog(parse_program(RULES)).views}
    assert set(found["v"]) == set(JOINED)
    assert found["w"] == ()
    assert set(found["u"]) == {frozenset({0, 1, 2}), frozenset({2, 3}), frozenset({0, 2})}


def test_a_relation_given_again_is_no_longer_promised_to_be_a_join() -> None:
    facts = Facts({SALES: frozenset()}, dependencies={SALES: Dependencies(JOINED)})
    assert not facts.extended({SALES: frozenset()}).dependencies
    assert facts.extended({NEW: frozenset()}).dependencies


def test_what_a_key_determines_any_of_its_rows_tells() -> None:
    """Each order has a name of its own, against the promise: which is how it is seen that not all rows are read."""
    engine, program = DuckEngine(most_few=0), parse_program(LOOKS[1])
    sales = {(order, 1, supplier, f"{supplier}{order}", 1) for order in range(9) for supplier in (1, 2, 3)}
    stored = in_files(engine, engine.load(sorted(sales), COLUMNS, TYPES))
    new = engine.load([(1,), (2,), (3,), (4,)], ["k"], [TYPES[0]])
    for share in (0, 9):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {"ROWS_FOR_A_KEY": 1, "SHARE": share}.items():
                patch.setattr(representatives, name, value)
            promise = Dependencies(determined=((2, frozenset({3})),))
            facts = Facts({NEW: new, SALES: stored}, small=frozenset({NEW}), dependencies={SALES: promise})
            engine.release()
            told = engine.sample(engine.evaluate(program, V, facts), 99)
            assert {supplier for supplier, _ in told} == {1, 2, 3}
            assert len(told) < len(sales)


def test_keys_determine_what_stands_in_their_rows() -> None:
    """And what these reference; a view that groups promises nothing."""
    program = parse_program(
        """.decl lines(o: int, s: int not null) key(o).
        .decl suppliers(s: int, n: string not null, t: int not null) key(s).
        .decl towns(t: int, w: string not null) key(t).
        v(O, S, N, T, W) :- lines(O, S), suppliers(S, N, T), towns(T, W).
        w(S, N) :- lines(O, S), suppliers(S, N, T)."""
    )
    made = catalog(program)
    found = dict(made.view("v").dependencies(made.relations).determined)
    assert found == {
        0: frozenset({1, 2, 3, 4}),
        1: frozenset({2, 3, 4}),
        3: frozenset({4}),
    }
    assert made.view("w").dependencies(made.relations) == Dependencies()
