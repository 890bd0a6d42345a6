"""What was read of large relations is used again, and never wrongly.

Oracle: the rows that the definition gives, computed row by row (`sql_programs.meaning`). One engine evaluates some
programs, one after the other, over the same relations, which are computed when they are used, as files are.
"""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datalog.model import Atom, ColumnType, Predicate, Program, TypeName, Variable
from datalog.sql import duckdb as sql
from datalog.syntax import parse_program
from selfmaint.duckdb import DuckEngine, Relation, fetched
from selfmaint.engine.protocol import Facts
from tests.datalog.sql.sql_programs import PLAIN, Generator, meaning, random_facts, relations

STORED = relations(PLAIN)
SMALL, NEW, BIG, V = (Predicate(name) for name in ("small", "new", "big", "v"))
TYPES = {"int": ColumnType(TypeName.INT), "name": ColumnType(TypeName.STRING)}


def in_files(engine: DuckEngine, data: Relation) -> Relation:
    """The same rows, not known to be few."""
    query = sql.rows(data.stored.name, len(data.types))
    return Relation(engine.database.view(query, data.types, [data.stored]), data.columns)


@given(random=st.randoms(use_true_random=False))
def test_one_program_after_the_other_has_its_meaning(random: Random) -> None:
    """Every rule starts at a small relation, so that there is something to look up with."""
    engine, facts = DuckEngine(most_few=random.choice([0, 20_000])), random_facts(random, STORED)
    stored = {}
    for one in STORED:
        names = [f"c{i}" for i in range(len(one.types))]
        rows = engine.load(facts[one.predicate], names, [TYPES[t] for t in one.types])
        stored[one.predicate] = in_files(engine, rows)
    for _ in range(3):
        program, _, _ = Generator(random, STORED).program()
        some = random.sample(
            sorted(facts[STORED[0].predicate], key=repr), min(2, len(facts[STORED[0].predicate]))
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
        for goal in anchored.heads:
            expected = meaning(anchored, goal, {**facts, SMALL: keys})
            assert frozenset(engine.sample(engine.evaluate(anchored, goal, given_), 10_000)) == expected


def test_the_rows_of_one_key_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = DuckEngine()
    int_ = TYPES["int"]
    big = in_files(engine, engine.load([(n, n % 3, -n) for n in range(100)], ["k", "g", "x"], [int_] * 3))
    asked: list[int] = []
    plain = fetched.Fetched.rows

    def spied(self, lookup, keys, name, read):  # type: ignore[no-untyped-def]
        def counted(rule, missing):  # type: ignore[no-untyped-def]
            asked.append(missing.stored.rows)
            return read(rule, missing)

        return plain(self, lookup, keys, name, counted)

    monkeypatch.setattr(fetched.Fetched, "rows", spied)
    program = parse_program("v(X) :- new(K), big(K, G, X).")
    for keys, missing in (((1, 2), [2]), ((2, 3, 4), [2]), ((1, 4), []), ((1, 2), [])):
        new = engine.load([(k,) for k in keys], ["k"], [int_])
        facts = Facts({NEW: new, BIG: big}, small=frozenset({NEW}))
        found = engine.evaluate(program, V, facts)
        assert set(engine.sample(found, 99)) == {(-k,) for k in keys}
        assert asked == missing
        asked.clear()
    engine.release()
    new = engine.load([(1,)], ["k"], [int_])
    engine.evaluate(program, V, Facts({NEW: new, BIG: big}, small=frozenset({NEW})))
    assert asked == [1]


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
