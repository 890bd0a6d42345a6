"""What was read of large relations is used again, and never wrongly.

Oracle: the rows that the definition gives, computed row by row (`sql_programs.meaning`). One engine evaluates some
programs, one after the other, over the same relations, which are computed when they are used, as files are.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalog.copies import replace
from datalog.model import Atom, ColumnType, Predicate, Program, TypeName, Variable
from datalog.sql.duckdb import relations as sql
from datalog.syntax import parse_program
from selfmaint.duckdb import DuckEngine, Relation, fetched, keys_apart
from selfmaint.engine.protocol import Asked, Facts
from tests.datalog.sql.sql_programs import PLAIN, Generator, meaning, random_facts, relations

STORED = relations(PLAIN)
SMALL, NEW, OLD, BIG, V, W = (Predicate(name) for name in ("small", "new", "old", "big", "v", "w"))
TYPES = {"int": ColumnType(TypeName.INT), "name": ColumnType(TypeName.STRING)}


def in_files(engine: DuckEngine, data: Relation) -> Relation:
    """The same rows, not known to be few."""
    query = sql.rows(data.stored.name, len(data.types))
    return Relation(engine.database.view(query, data.types, [data.stored]), data.columns)


@pytest.fixture(scope="module")
def small_ones_are_large() -> Iterator[None]:
    """Two keys are looked for one by one in relations of any size, more in parts if all but one lie together."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"MANY_ROWS": 0, "APART": 2, "LISTED": 1, "NARROW": 1}.items():
            patch.setattr(keys_apart, name, value)
        yield


@pytest.mark.usefixtures("small_ones_are_large")
@given(random=st.randoms(use_true_random=False))
def test_one_program_after_the_other_has_its_meaning(random: Random) -> None:
    """Every rule starts at a small relation, so that there is something to look up with; some programs are foreseen."""
    engine, facts = DuckEngine(most_few=random.choice([0, 20_000])), random_facts(random, STORED)
    stored = {}
    for one in STORED:
        names = [f"c{i}" for i in range(len(one.types))]
        loaded = engine.load(facts[one.predicate], names, [TYPES[t] for t in one.types])
        stored[one.predicate] = in_files(engine, loaded)
    asked = []
    for _ in range(3):
        program, _, _ = Generator(random, STORED).program()
        some = random.sample(
            sorted(facts[STORED[0].predicate], key=repr),
            min(random.choice([2, 6]), len(facts[STORED[0].predicate])),
        )
        keys = frozenset(row[:1] for row in some)
        rules = []
        for rule in program.rules:
            own = (atom.terms[0] for atom in rule.atoms if atom.predicate == STORED[0].predicate)
            terms = [term for term in own if isinstance(term, Variable)]
            rules.append(
                replace(rule, body=(Atom(SMALL, (next(iter(terms), Variable("Other")),)), *rule.body))
            )
        anchored = Program(tuple(rules))
        small = engine.load(keys, ["k"], [TYPES[STORED[0].types[0]]])
        given_ = Facts({**stored, SMALL: small}, small=frozenset({SMALL}))
        asked.append((anchored, given_, {**facts, SMALL: keys}))
        if random.random() < 0.5:
            engine.foresee([Asked(anchored, tuple(anchored.heads), random.random() < 0.5)], given_)
    for anchored, given_, rows in asked:
        expected = {goal: meaning(anchored, goal, rows) for goal in anchored.heads}
        assert engine.nonempty(anchored, list(expected), given_) == {
            goal for goal in expected if expected[goal]
        }
        for goal, its in expected.items():
            assert frozenset(engine.sample(engine.evaluate(anchored, goal, given_), 10_000)) == its


INT = TYPES["int"]
LOOKS = parse_program("v(X) :- new(K), big(K, G, X).")
PAIRS = parse_program("v(K, G) :- new(K), big(K, G, X).")
OTHERS = parse_program("w(K, G) :- old(K), big(K, G, X).")


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Of each read of a large relation how many keys it was for."""
    asked: list[int] = []
    plain = fetched.Fetched.rows

    def spied(self, lookup, keys, relation):  # type: ignore[no-untyped-def]
        def counted(rule, missing, few):  # type: ignore[no-untyped-def]
            asked.append(missing.stored.rows)
            return relation.read(rule, missing, few)

        return plain(self, lookup, keys, replace(relation, read=counted))

    monkeypatch.setattr(fetched.Fetched, "rows", spied)
    return asked


def a_hundred(engine: DuckEngine) -> Relation:
    rows = [(n, n % 3, -n) for n in range(100)]
    return in_files(engine, engine.load(rows, ["k", "g", "x"], [INT] * 3))


def asking(engine: DuckEngine, big: Relation, *keys: int) -> Facts[Relation]:
    new = engine.load([(key,) for key in keys], ["k"], [INT])
    return Facts({NEW: new, BIG: big}, small=frozenset({NEW}))


def test_the_rows_of_one_key_are_read_once(reads: list[int]) -> None:
    engine = DuckEngine()
    big = a_hundred(engine)
    for keys, missing in (((1, 2), [2]), ((2, 3, 4), [2]), ((1, 4), []), ((1, 2), [])):
        found = engine.evaluate(LOOKS, V, asking(engine, big, *keys))
        assert set(engine.sample(found, 99)) == {(-k,) for k in keys}
        assert reads == missing
        reads.clear()
    engine.release()
    engine.evaluate(LOOKS, V, asking(engine, big, 1))
    assert reads == [1]


def test_what_is_foreseen_is_read_along_with_what_it_lies_among(reads: list[int]) -> None:
    engine = DuckEngine()
    big = a_hundred(engine)
    first, among, apart = (asking(engine, big, *keys) for keys in ((1, 5), (2, 3), (50, 60)))
    both = replace(
        among, relations={**among.relations, OLD: apart.relations[NEW]}, small=frozenset({NEW, OLD})
    )
    engine.foresee([Asked(PAIRS, (V,), True)], asking(engine, big, 4))  # forgotten
    engine.foresee([Asked(PAIRS, (V,), True), Asked(OTHERS, (W,), True)], both)
    assert not reads
    engine.evaluate(LOOKS, V, first)
    assert reads == [4]
    assert set(engine.sample(engine.evaluate(PAIRS, V, among), 99)) == {(2, 2), (3, 0)}
    assert reads == [4]
    assert set(engine.sample(engine.evaluate(PAIRS, V, apart), 99)) == {(50, 2), (60, 0)}
    assert reads == [4, 2]


def test_whether_there_is_a_row_does_not_ask_what_it_holds(reads: list[int]) -> None:
    engine = DuckEngine()
    big = a_hundred(engine)
    facts = asking(engine, big, 7)
    assert engine.nonempty(PAIRS, [V], facts) == {V}
    assert set(engine.sample(engine.evaluate(PAIRS, V, facts), 99)) == {(7, 1)}
    assert reads == [1, 1]


NULLS = [(None, "a"), (1, None), (1, "b")]
PLAIN_RULE = "v(K, S) :- new(K), big(K, S)."
PROMISED = [
    (PLAIN_RULE, {BIG: frozenset({0})}),
    (PLAIN_RULE, {NEW: frozenset({0})}),
    (PLAIN_RULE, {BIG: frozenset({1})}),
    ("v(K, S) :- new(K), big(K, S), not (new(K), S is not null).", {BIG: frozenset({1})}),
]
"""Programs, and what of the rows is promised, wrongly, when they are evaluated for the first time."""


@pytest.mark.parametrize(("rules", "promised"), PROMISED)
@pytest.mark.parametrize("between", [(), (2,)])
def test_what_is_read_under_a_promise_hides_no_null_from_who_is_not_promised_it(
    rules: str, promised: dict[Predicate, frozenset[int]], between: tuple[int, ...]
) -> None:
    """Promises are checked so, after other checks on the same engine; `between` other keys are asked for."""
    program, engine = parse_program(rules), DuckEngine()
    big = in_files(engine, engine.load(NULLS, ["k", "s"], list(TYPES.values())))
    new = engine.load([(1,), (None,)], ["k"], [TYPES["int"]])
    facts = Facts({NEW: new, BIG: big}, small=frozenset({NEW}))
    engine.evaluate(program, V, replace(facts, not_null=promised))
    if between:
        other = engine.load([(k,) for k in between], ["k"], [TYPES["int"]])
        engine.evaluate(program, V, facts.extended({NEW: other}))
    expected = meaning(program, V, {NEW: {(1,), (None,)}, BIG: set(NULLS)})
    assert (None, "a") in expected or (1, None) in expected
    assert set(engine.sample(engine.evaluate(program, V, facts), 9)) == expected
