"""Views that show a part of joins along foreign keys: brute force, and for views that group recomputing in DuckDB."""

from __future__ import annotations

import re
from decimal import Decimal
from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from datalog.model import Predicate, Row, Version
from selfmaint.api.file.programs import catalog_of
from selfmaint.conformance.run import run_case
from selfmaint.decide.decision import Decision
from selfmaint.decide.procedure import check
from selfmaint.decide.searched import determined_delta
from selfmaint.decide.verdict import SelfMaintainable, Undecided
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.situation import Situation
from tests.effort import effort
from tests.large_engine import LargeEngine
from tests.oracle.bruteforce import SearchTooLongError, solve
from tests.oracle.keyed_chains import chain_case
from tests.oracle.sql_views import contents, some_condition, update_between
from tests.selfmaint.decide.test_constrained_decision import recorded

STEPS = 20_000
seeds = st.integers(0, 2**40)
patient = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much], deadline=None)


@pytest.mark.parametrize("nulls", [False, True])
@given(seed=seeds)
@patient
def test_what_is_decided_is_what_brute_force_says(nulls: bool, seed: int) -> None:
    case = chain_case(Random(seed), nulls=nulls)
    try:
        answers = solve(case, steps=STEPS)
    except SearchTooLongError:
        assume(False)
        raise
    assert answers is not None
    for outcome in run_case(recorded(case, answers), LargeEngine()):
        assert outcome.disagreement not in {"unsound", "wrong state"}


DECLARED = """
CREATE TABLE t (m INT PRIMARY KEY, n INT NOT NULL);
CREATE TABLE s (h INT PRIMARY KEY, d INT NOT NULL REFERENCES t(m), e INT, f INT NOT NULL);
CREATE TABLE r (k INT PRIMARY KEY, a INT NOT NULL REFERENCES s(h), b INT, c INT NOT NULL);
"""
COLUMNS = {"t": ("m", "n"), "s": ("h", "d", "e", "f"), "r": ("k", "a", "b", "c")}
JOINS = ("r", "r JOIN s ON r.a = s.h", "r JOIN s ON r.a = s.h JOIN t ON s.d = t.m", "s JOIN t ON s.d = t.m")
JOINS += (
    "r JOIN s ON r.b = s.e",
    "s JOIN r ON r.a = s.h JOIN r AS o ON r.b = o.b",
    "r JOIN r AS o ON r.b = o.b",
)
Tables = dict[str, dict[int, Row]]


def view(random: Random, name: str) -> str:
    """A random view that groups, computes or projects."""
    source = random.choice(JOINS)
    columns = [
        f"{table}.{c}" for table, its in COLUMNS.items() if re.search(rf"\b{table}\b", source) for c in its
    ]
    shown = random.sample(columns, random.randint(1, 3))
    where = some_condition(random, columns)
    listed = ", ".join(f"{c} AS c{i}" for i, c in enumerate(shown))
    match random.randrange(3):
        case 0:
            summed = random.choice(columns)
            measures = f"COUNT(*) AS n, SUM({summed}) AS total, COUNT({summed}) AS number"
            text = f"SELECT {listed}, {measures} FROM {source}{where} GROUP BY {', '.join(shown)}"
        case 1:
            text = f"SELECT DISTINCT {listed}, {random.choice(columns)} + 1 AS more FROM {source}{where}"
        case _:
            text = f"SELECT DISTINCT {listed} FROM {source}{where}"
    return f"CREATE VIEW {name} AS {text};"


def database(random: Random) -> Tables:
    """Some rows that fit the foreign keys."""
    t = {m: (m, random.randint(0, 2)) for m in range(random.randint(1, 3))}
    s = {
        h: (h, random.choice(list(t)), random.choice([0, 1, 2, None]), random.randint(0, 2)) for h in range(3)
    }
    r = {
        k: (k, random.choice(list(s)), random.choice([0, 1, 2, None]), random.randint(0, 2))
        for k in range(random.randint(2, 5))
    }
    return {"t": t, "s": s, "r": r}


def changed(random: Random, before: Tables) -> Tables:
    """The tables after an update of one or two of them."""
    after = {name: dict(rows) for name, rows in before.items()}
    for name in random.choice(["r", "r", "s", "t", "rs"]):
        for key in random.sample(list(after[name]), random.randint(1, 2) if len(after[name]) > 1 else 1):
            row = list(after[name][key])
            at = random.randrange(1, len(row))
            others = {("r", 1): list(after["s"]), ("s", 1): list(after["t"])}
            row[at] = random.choice(others.get((name, at), [0, 1, 2]))
            after[name][key] = tuple(row)
    if random.random() < 0.5:
        after["r"][9] = (9, random.choice(list(after["s"])), 1, random.randint(0, 2))
    if random.random() < 0.4:
        after["r"].pop(random.choice(list(after["r"])))
    return after


def alike(random: Random) -> str:
    """Views that are one but for the constants of their conditions, most of them over the same relations."""
    start = random.getrandbits(30)
    every = [view(Random(start), f"v{i}") for i in range(random.randint(2, 4))]
    tests = ("= 0", "= 1", "= 2", "< 2")
    return "\n".join(re.sub("(?<!a )= 1|< 2", lambda _: random.choice(tests), one) for one in every)


def verdicts(seed: int, *, are_alike: bool = False) -> tuple[int, int]:
    """How many views are self-maintainable, and of how many only their own relations tell it; all deltas are right."""
    random = Random(seed)
    text = "\n".join(view(random, f"v{i}") for i in range(random.randint(1, 4)))
    text = alike(random) if are_alike else text
    before = database(random)
    after = changed(random, before)
    old, new = (contents(COLUMNS, tables, text) for tables in (before, after))
    made = catalog_of(DECLARED + text)
    stored = {Predicate(name): frozenset(rows) for name, rows in old.items()}
    facts = Facts(update_between(before, after) | stored)
    situation = Situation.of(facts.relations, effective=True)
    engine = LargeEngine()
    known = Decision(made).knowledge(engine, facts, situation)
    found = check(known, [v for v in made.views if not v.is_counted])
    yes = [verdict for verdict in found.values() if isinstance(verdict, SelfMaintainable)]
    for verdict in yes:
        change = determined_delta(known, verdict)
        assert (stored[Predicate(verdict.view)] - change.lost) | change.gained == set(new[verdict.view]), (
            verdict.view
        )
    return len(yes), sum(verdict.delta is not None for verdict in yes)


@given(seed=seeds, are_alike=st.booleans())
@patient
def test_deltas_of_views_that_group_are_those_of_recomputing(seed: int, are_alike: bool) -> None:
    verdicts(seed, are_alike=are_alike)


def test_views_that_are_alike_are_told_by_each_other() -> None:
    answers = [verdicts(seed, are_alike=True) for seed in range(40, 40 + effort(32, 400))]
    assert sum(own for _, own in answers) > 5


def test_views_over_the_same_relations_are_decided_in_one_schema() -> None:
    """Of a customer whose first order in one shop comes in, another shop's view tells the name."""
    source = "FROM orders o JOIN customer c ON o.customer = c.id WHERE o.shop = {}"
    queries = (
        f"SELECT o.id, o.customer, c.name {source}",
        f"SELECT o.id, o.customer, c.name {source} AND o.total > 3",
        f"SELECT c.city, COUNT(*) AS n {source} GROUP BY c.city",
    )
    made = catalog_of(
        """
        CREATE TABLE customer (id INT PRIMARY KEY, name STRING NOT NULL, city INT NOT NULL, rest INT);
        CREATE TABLE orders (id INT PRIMARY KEY, customer INT NOT NULL REFERENCES customer, shop INT NOT NULL,
          total INT NOT NULL, rest INT);
        """
        + "\n".join(f"CREATE VIEW v{i} AS {queries[i // 2].format(i % 2)};" for i in range(6))
    )
    rows = {
        "v0": [(1, 1, "Ann")],
        "v1": [(2, 2, "Bob")],
        "v2": [(1, 1, "Ann")],
        "v4": [(7, 1)],
        "v5": [(8, 1)],
    }
    rows["v3"] = []
    facts = {Predicate(name): frozenset[Row](its) for name, its in rows.items()}
    facts |= {Predicate("orders", Version.INSERTED): frozenset({(3, 1, 1, 5, 0)})}
    situation = Situation.of(facts, effective=True)
    decision = Decision(made)
    schemas = [decision.over_own_relations(view, situation) for view in made.views]
    assert [schemas.index(one) for one in schemas] == [0, 0, 2, 2, 4, 4]
    found = check(decision.knowledge(LargeEngine(), Facts(facts), situation), made.views)
    assert [name for name, verdict in found.items() if verdict] == ["v0", "v1", "v2", "v3", "v4"]


def test_their_own_relations_tell_of_many_views() -> None:
    answers = [verdicts(seed) for seed in range(effort(30, 400))]
    assert sum(own for _, own in answers) > 5


NULLS = """
CREATE TABLE s (h INT PRIMARY KEY, k INT NOT NULL);
CREATE TABLE r (k INT PRIMARY KEY, a INT NOT NULL, b INT);
CREATE VIEW w AS SELECT DISTINCT k, a FROM r;
"""


@pytest.mark.parametrize(
    ("views", "stored", "update"),
    [
        (
            "CREATE VIEW v AS SELECT DISTINCT s.h FROM s JOIN r ON s.k = r.k WHERE r.b IS NOT NULL;",
            {"v": [], "w": [(1, 5)]},
            {("s", Version.INSERTED): [(1, 1)]},
        ),
        (
            "CREATE VIEW v AS SELECT s.h, COUNT(*) AS n FROM s JOIN r ON s.k = r.k WHERE r.b IS NOT NULL GROUP BY s.h;",
            {"v": [], "w": [(1, 5)]},
            {("s", Version.INSERTED): [(1, 1)]},
        ),
        (
            "CREATE VIEW v AS SELECT DISTINCT a FROM r WHERE b IS NOT NULL;",
            {"v": [(5,)], "w": [(1, 5), (2, 5)]},
            {("r", Version.DELETED): [(1, 5, 7)]},
        ),
        (
            "CREATE VIEW v AS SELECT DISTINCT s.h FROM s JOIN r ON s.k = r.k JOIN r AS o ON r.b = o.b;",
            {"v": [], "w": [(1, 5)]},
            {("s", Version.INSERTED): [(1, 1)]},
        ),
    ],
)
def test_what_may_be_null_is_not_taken_for_a_partner(
    views: str, stored: dict[str, list[Row]], update: dict[tuple[str, Version], list[Row]]
) -> None:
    made = catalog_of(NULLS + views)
    given_facts = {Predicate(name): frozenset(rows) for name, rows in stored.items()}
    given_facts |= {Predicate(*key): frozenset(rows) for key, rows in update.items()}
    situation = Situation.of(given_facts, effective=True)
    known = Decision(made).knowledge(LargeEngine(), Facts(given_facts), situation)
    found = check(known, made.views)
    assert not isinstance(found["v"], SelfMaintainable)


def test_a_deleted_row_tells_what_a_view_hides() -> None:
    """Of an order that changes its total the view shows the customer, and hides which contract that goes by."""
    made = catalog_of("""
    CREATE TABLE customer (c INT PRIMARY KEY, name STRING NOT NULL);
    CREATE TABLE contract (k INT PRIMARY KEY, c INT NOT NULL REFERENCES customer(c));
    CREATE TABLE orders (o INT PRIMARY KEY, k INT NOT NULL REFERENCES contract(k), total INT NOT NULL);
    CREATE VIEW v AS SELECT o, total, contract.c FROM orders JOIN contract ON orders.k = contract.k;
    """)
    stored = {Predicate("v"): frozenset({(1, 10, 7), (2, 10, 8)})}
    changes: dict[str, dict[Predicate, frozenset[Row]]] = {
        "a new total": {
            Predicate("orders", Version.DELETED): frozenset({(1, 5, 10)}),
            Predicate("orders", Version.INSERTED): frozenset({(1, 5, 11)}),
        },
        "another contract": {
            Predicate("orders", Version.DELETED): frozenset({(1, 5, 10)}),
            Predicate("orders", Version.INSERTED): frozenset({(1, 6, 10)}),
        },
    }
    found = {}
    for name, update in changes.items():
        facts = Facts(stored | update)
        situation = Situation.of(facts.relations, effective=True)
        known = Decision(made).knowledge(LargeEngine(), facts, situation)
        verdict = check(known, made.views)["v"]
        if isinstance(verdict, SelfMaintainable):
            found[name] = determined_delta(known, verdict)
    assert list(found) == ["a new total"]
    assert (found["a new total"].lost, found["a new total"].gained) == ({(1, 10, 7)}, {(1, 11, 7)})


@pytest.mark.parametrize(
    ("types", "shown"),
    [
        (("DECIMAL(10,2)", "INT"), "CAST(s.h AS STRING)"),
        (("DECIMAL(10,2)", "DECIMAL(10,1)"), "CONCAT('n', s.h)"),
        (("DOUBLE", "BIGINT"), "s.h"),
    ],
)
def test_what_a_join_carries_over_from_another_type_is_not_computed_with(
    types: tuple[str, str], shown: str
) -> None:
    """1.00 of `r` joins 1 of `s`, but is written otherwise; of doubles several may be one."""
    made = catalog_of(f"""
    CREATE TABLE s (h {types[1]} NOT NULL, d INT PRIMARY KEY);
    CREATE TABLE r (k INT PRIMARY KEY, a {types[0]} NOT NULL);
    CREATE TABLE x (i INT PRIMARY KEY);
    CREATE VIEW v AS SELECT r.k, r.a, s.d FROM r JOIN s ON r.a = s.h;
    CREATE VIEW w AS SELECT s.d, {shown} AS t FROM s JOIN x ON s.d = x.i;
    """)
    value = 9007199254740992.0 if types[0] == "DOUBLE" else Decimal("1.00")
    facts = {
        Predicate("v"): frozenset({(1, value, 5)}),
        Predicate("w"): frozenset[Row](),
        Predicate("x", Version.INSERTED): frozenset({(5,)}),
    }
    situation = Situation.of(facts, effective=True)
    found = check(Decision(made).knowledge(LargeEngine(), Facts(facts), situation), made.views)
    assert not isinstance(found["w"], SelfMaintainable)


def test_each_join_stands_in_the_place_of_its_subgoals() -> None:
    """Whatever the relations are called: an order of a known contract and of a known parcel is told."""
    made = catalog_of("""
    CREATE TABLE zone (z INT PRIMARY KEY, title STRING NOT NULL);
    CREATE TABLE yard (y INT PRIMARY KEY, z INT NOT NULL REFERENCES zone);
    CREATE TABLE area (a INT PRIMARY KEY, size INT NOT NULL);
    CREATE TABLE bill (b INT PRIMARY KEY, a INT NOT NULL REFERENCES area, note INT NOT NULL);
    CREATE TABLE orders (o INT PRIMARY KEY, y INT NOT NULL REFERENCES yard, b INT NOT NULL REFERENCES bill);
    CREATE VIEW v AS SELECT o, orders.y, title, orders.b, note, size FROM orders JOIN yard ON orders.y = yard.y
      JOIN zone ON yard.z = zone.z JOIN bill ON orders.b = bill.b JOIN area ON bill.a = area.a;
    """)
    facts = {Predicate("v"): frozenset[Row]({(1, 10, "north", 20, 5, 7), (2, 11, "south", 21, 6, 8)})}
    facts |= {Predicate("orders", Version.INSERTED): frozenset({(3, 10, 21)})}
    known = Decision(made).knowledge(LargeEngine(), Facts(facts), Situation.of(facts, effective=True))
    verdict = check(known, made.views)["v"]
    assert isinstance(verdict, SelfMaintainable)
    assert determined_delta(known, verdict).gained == {(3, 10, "north", 21, 6, 8)}


def test_what_a_view_does_not_read_is_no_reason() -> None:
    """The payer is in the view, but for a column that nothing shows; in doubt is what becomes of the only paid row."""
    catalog = catalog_of(
        """CREATE TABLE payer (id INT PRIMARY KEY, name STRING NOT NULL, kind STRING NOT NULL);
        CREATE TABLE bill (id INT PRIMARY KEY, payer INT REFERENCES payer, amount INT NOT NULL, status INT NOT NULL);
        CREATE VIEW v AS SELECT p.id, p.name, count(*) AS n, sum(CASE WHEN b.status = 1 THEN b.amount END) AS paid
          FROM bill b JOIN payer p ON b.payer = p.id GROUP BY p.id, p.name;"""
    )
    facts: dict[Predicate, frozenset[Row]] = {
        Predicate("v"): frozenset({(7, "Ann", 2, 5)}),
        Predicate("bill", Version.DELETED): frozenset({(1, 7, 5, 1)}),
        Predicate("bill", Version.INSERTED): frozenset({(1, 7, 5, 0)}),
    }
    known = Decision(catalog).knowledge(LargeEngine(), Facts(facts), Situation.of(facts, effective=True))
    found = check(known, catalog.views)["v"]
    assert isinstance(found, Undecided)
    assert "a value that an aggregate of `v` rests on is lost" in found.because
    assert "payer" not in found.because
