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
from selfmaint.engine.protocol import Facts, Layout
from selfmaint.warehouse.catalog import catalog
from tests.datalog.sql.sql_programs import meaning

NEW, SALES, V = Predicate("new"), Predicate("sales"), Predicate("v")
COLUMNS = ("order", "part", "supplier", "name", "price")
TYPES = [ColumnType(TypeName.STRING if c == "name" else TypeName.INT) for c in COLUMNS]
JOINED = (frozenset({0, 1, 2}), frozenset({2, 3}), frozenset({1, 4}))
"""The columns of lines(order, part, supplier), suppliers(supplier, name), prices(part, price)."""
LOOKS = [
    "v(S) :- new(S), sales(O, P, S, N, C).",
    "v(S, N) :- new(S), sales(O, P, S, N, C).",
    "v(S, C) :- new(S), sales(O, P, S, N, C).",
    "v(P, C) :- new(P), sales(O, P, S, N, C).",
    "v(P, N) :- new(P), sales(O, P, S, N, C).",
    "v(O, C) :- new(O), sales(O, P, S, N, C).",
]


@pytest.fixture(scope="module")
def small_ones_are_large() -> Iterator[None]:
    """A slice may be of any relation, has few rows, and lies wherever it does; no key is looked for by itself."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"ROWS_FOR_A_KEY": 1, "SHARE": 0, "NARROW": 0}.items():
            patch.setattr(representatives, name, value)
        patch.setattr("selfmaint.duckdb.programs.APART", 0)
        yield


def in_files(engine: DuckEngine, data: Relation) -> Relation:
    """The same rows, of which is known what files tell."""
    spreads = dict.fromkeys((0, 1, 2, 4), 3)
    layout = Layout(data.stored.known_rows, spreads, frozenset({0, 1, 2, 4}))
    query = sql.rows(data.stored.name, len(data.types))
    return Relation(engine.database.view(query, data.types, [data.stored], layout), data.columns)


@pytest.mark.usefixtures("small_ones_are_large")
@given(random=st.randoms(use_true_random=False))
def test_few_rows_of_a_join_tell_what_all_do(random: Random) -> None:
    """Looked up one after the other in one engine, with the promise and without it."""
    lines = {
        (random.randrange(9), random.randrange(3), random.randrange(4))
        for _ in range(random.randrange(1, 30))
    }
    suppliers = {(random.randrange(4), random.choice("abc")) for _ in range(6)}
    prices = {(random.randrange(3), random.randrange(9)) for _ in range(4)}
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
        joined = {SALES: JOINED} if random.random() < 0.7 else {}
        facts = Facts({NEW: new, SALES: stored}, small=frozenset({NEW}), joined=joined)
        program = parse_program(look)
        expected = meaning(program, V, {NEW: keys, SALES: sales})
        assert set(engine.sample(engine.evaluate(program, V, facts), 999)) == expected


@pytest.mark.usefixtures("small_ones_are_large")
def test_without_a_promise_all_rows_are_read() -> None:
    """Rows that are no join: each order has a name of the supplier of its own."""
    engine, program = DuckEngine(most_few=0), parse_program(LOOKS[1])
    sales = {(order, 1, 1, name, 1) for order, name in enumerate("abcdefgh")}
    stored = in_files(engine, engine.load(sorted(sales), COLUMNS, TYPES))
    new = engine.load([(1,)], ["k"], [TYPES[0]])
    facts = Facts({NEW: new, SALES: stored}, small=frozenset({NEW}), joined={SALES: JOINED})
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
    facts = Facts({SALES: frozenset()}, joined={SALES: JOINED})
    assert not facts.extended({SALES: frozenset()}).joined
    assert facts.extended({NEW: frozenset()}).joined
