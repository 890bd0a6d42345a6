"""Random cases whose views show a part of joins along foreign keys: what warehouses hold, with two or three rows."""

from __future__ import annotations

from random import Random

from tests.oracle.bruteforce import Case
from tests.oracle.rules import Atom, Rule, Value, Variable, contents, ordered
from tests.oracle.strategies import spelled

Row = tuple[Value, ...]
Tables = dict[str, dict[Value, Row]]

K, A, B, D, E, N = (Variable(name) for name in ("K", "A", "B", "D", "E", "N"))
SUBGOALS = {"r": Atom("r", (K, A, B)), "s": Atom("s", (A, D, E)), "t": Atom("t", (D, N))}
"""`r` refers to `s`, and `s` to `t`; the first column of each is its key."""
BODIES = ("r", "s", "t", "rs", "st", "rst", "rs", "rst")
VALUES = ("a", "b")


def chain_case(random: Random, *, nulls: bool = False) -> Case:
    """Draw a case; its update mostly changes a column of some rows."""
    before = _database(random, nulls=nulls)
    after = _changed(random, before, nulls=nulls)
    rules = [_view(random, f"v{i}") for i in range(random.choice((1, 2, 2, 3)))]
    hidden = {name: frozenset(rows.values()) for name, rows in before.items()}
    new = {name: frozenset(rows.values()) for name, rows in after.items()}
    case: Case = {
        "relations": {"r": 3, "s": 3, "t": 2},
        "program": "\n".join(map(spelled, rules)),
        "views": {rule.head.name: ordered(contents([rule], hidden)) for rule in rules},
        "insert": {n: ordered(rows - hidden[n]) for n, rows in new.items() if rows - hidden[n]},
        "delete": {n: ordered(rows - new[n]) for n, rows in hidden.items() if rows - new[n]},
        "effective": True,
        "types": {"r": ["string"] * 3, "s": ["string"] * 3, "t": ["string"] * 2},
        "keys": {"r": [0], "s": [0], "t": [0]},
        "foreign_keys": [("r", [1], "s", [0]), ("s", [1], "t", [0])],
    }
    if nulls:
        case["nullable"] = {"r": [2], "s": [2]}
    return case


def _database(random: Random, *, nulls: bool) -> Tables:
    values = (*VALUES, None) if nulls else VALUES
    t = {m: (m, random.choice(VALUES)) for m in random.sample(("m", "o"), random.choice((1, 2, 2)))}
    s = {h: (h, random.choice(list(t)), random.choice(values)) for h in random.sample(("h", "i"), 2)}
    r = {k: (k, random.choice(list(s)), random.choice(values)) for k in random.sample(("k", "l", "x"), 2)}
    return {"r": r, "s": s, "t": t}


def _changed(random: Random, tables: Tables, *, nulls: bool) -> Tables:
    values = (*VALUES, None) if nulls else VALUES
    after = {name: dict(rows) for name, rows in tables.items()}
    for name in random.choice(("r", "r", "s", "t", "rs", "st")):
        for key in random.sample(list(after[name]), 1):
            row = list(after[name][key])
            at = random.randrange(1, len(row))
            others = {("r", 1): list(after["s"]), ("s", 1): list(after["t"])}
            row[at] = random.choice(others.get((name, at), list(values if name != "t" else VALUES)))
            after[name][key] = tuple(row)
    if random.random() < 0.4:
        after["r"]["n"] = ("n", random.choice(list(after["s"])), random.choice(values))
    if random.random() < 0.3:
        after["r"].pop(random.choice(list(after["r"])))
    return after


def _view(random: Random, name: str) -> Rule:
    body = tuple(SUBGOALS[one] for one in random.choice(BODIES))
    if random.random() < 0.15:
        at = random.randrange(len(body))
        terms = list(body[at].terms)
        terms[-1] = random.choice(VALUES)
        body = (*body[:at], Atom(body[at].name, tuple(terms)), *body[at + 1 :])
    variables = list(dict.fromkeys(t for atom in body for t in atom.terms if isinstance(t, Variable)))
    shown = [v for v in variables if random.random() < (0.8 if v in (K, A) else 0.5)]
    return Rule.of(Atom(name, tuple(shown or variables[:1])), body)
