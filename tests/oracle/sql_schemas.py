"""Random small tables for views in SQL: keys or none, foreign keys, nulls, and all types."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Iterable
from decimal import Decimal
from random import Random
from typing import Any

from tests.oracle.sql_tables import NAN, Table

COLUMNS = {
    "r": ("a", "b", "c"),
    "s": ("f", "d", "e"),
    "t": ("x", "y"),
    "w": ("k", "n", "m"),
    "o": ("i", "g", "day", "seen", "price", "rate", "ok", "name"),
    "h": ("code", "since", "cap", "top"),
}
TYPED = ("o", "h")
"""Tables that have only those columns that are read, besides their key."""

_REFERENCES = [
    ("b", "s", 0.5),
    ("x", "s", 0.5),
    ("d", "w", 0.5),
    ("b", "r", 0.2),
    ("d", "r", 0.15),
    ("name", "h", 0.4),
]
"""Columns, tables whose keys they may hold, and how often; some go round in circles."""

_DAYS = [dt.date(2025, 12, 31), dt.date(2026, 1, 31), dt.date(2026, 2, 1), dt.date(2024, 2, 29)]
_TIMES = [
    dt.datetime(2026, 1, 31, 23, 59, 59, 999999),
    dt.datetime(2026, 2, 1),
    dt.datetime(2026, 2, 1, 13, 30),
]
_PRICES = [Decimal(text) for text in ("1.50", "2.25", "0.00", "-1.50", "0.01", "9999.99")]
_RATES = [0.5, 1.5, 0.0, -0.0, NAN, NAN, math.inf, -2.0]
_NAMES = ["", "a", "A", "ab", "b"]
_OF_TYPE: dict[str, tuple[str, list[Any]]] = {
    "g": ("int", [1, 2]),
    "day": ("date", _DAYS),
    "since": ("date", _DAYS),
    "seen": ("timestamp", _TIMES),
    "price": ("decimal(6,2)", _PRICES),
    "cap": ("decimal(6,2)", _PRICES),
    "rate": ("double", _RATES),
    "top": ("double", _RATES),
    "ok": ("boolean", [True, False]),
    "name": ("string", _NAMES),
    "code": ("string", _NAMES),
}
NEEDS_KEY = re.compile(r"order by [a-z]\b(?!\.)|order by [^()]*, i\b|\(select e from s")
"""Orders of rows whose ties only a key breaks, and what may be more than one value without."""


def names_read(texts: Iterable[str]) -> tuple[str, ...]:
    """The tables that some queries read."""
    words = {word for text in texts for word in re.findall(r"\b(?:from|join) (\w+)", text)}
    return tuple(name for name in COLUMNS if name in words)


def tables(random: Random, texts: Iterable[str], most: int) -> tuple[Table, ...]:
    """Tables that queries read, with not more databases than `most` (of three tables few more) before foreign keys."""
    its = list(texts)
    drawn = [_tables(random, its) for _ in range(240)]
    sizes = [math.prod(table.size for table in one) for one in drawn]
    fitting = [one for one, size in zip(drawn, sizes, strict=True) if most / 12 <= size <= most]
    return fitting[0] if fitting else drawn[sizes.index(min(sizes))]


def _tables(random: Random, texts: list[str]) -> tuple[Table, ...]:
    names = names_read(texts)
    often = 0.0 if any(map(NEEDS_KEY.search, texts)) else random.choice([0.0, 0.8])
    keyed = [name for name in names if random.random() >= often]
    return tuple(_table(random, name, keyed, " ".join(texts)) for name in names)


def _table(random: Random, name: str, keyed: list[str], text: str) -> Table:
    key = 0 if name not in keyed else 2 if name == "t" else 1
    columns = COLUMNS[name]
    if name in TYPED:
        words = set(re.findall(r"\w+", text))
        its = tuple(c for i, c in enumerate(columns) if c in words or i < key)
        columns = its or columns[:1]
    may_be_null = not key and "order by" not in text and random.random() < 0.3
    kept = 0 if may_be_null else max(1, key)
    domains, types = [], []
    for i, column in enumerate(columns):
        kind, domain = _domain(random, column, is_key=i < kept)
        types.append(kind)
        domains.append(domain)
    if key > 1 and random.random() < 0.5:
        domains[random.randrange(key)] = (random.choice([1, 2]),)
    if key == 1 and types[0] == "int" and random.random() < 0.3:
        domains[0] = (1, 2, 3)
    references = []
    for column, target, often in _REFERENCES:
        if column in columns and target in keyed and random.random() < often:
            references.append((columns.index(column), target))
            break
    unique = (1,) if key == 1 and len(columns) > 1 and random.random() < 0.1 else ()
    most = random.choice([2, 2, 3])
    return Table(name, columns, tuple(types), tuple(domains), key, tuple(references), unique, most)


def _domain(random: Random, column: str, *, is_key: bool) -> tuple[str, tuple[Any, ...]]:
    """A column's type, and the values that it may have."""
    if column in _OF_TYPE:
        kind, values = _OF_TYPE[column]
        some: list[Any] = random.sample(values, min(2, len(values)))
        # Equal values, of which a domain has one.
        some = [v for i, v in enumerate(some) if v not in some[:i]]
        return kind, tuple(some if is_key else random.choice([some, some, [*some[:1], None], [*some, None]]))
    if column == "n":
        return "string", random.choice([("a", "ab"), ("ab", "b"), ("b", "ab", None)])
    if is_key:
        return "int", (1, 2)
    choices = [(1, 2), (1, 2), (1,), (1, None), (1, 2, None), (1, 3), (2, 3, None), (0, 2)]
    return "int", random.choice(choices)
