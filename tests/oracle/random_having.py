"""Random warehouses of views that leave groups out by HAVING, some beside views that show all groups."""

from __future__ import annotations

from decimal import Decimal
from random import Random

from datalog.copies import replace

from .aggregates import Aggregate, Asked, Relation, Schema, View
from .random_groups import random_groups

_COUNT = Aggregate("count", "*")
_EVERY = (_COUNT, *(Aggregate(f, "A") for f in ("count", "sum", "min", "max", "avg")))
_OPERATORS = (">", ">", ">", ">=", "<", "<=", "=", "!=")
_SALE = (("sale", ("I", "C", "A")),)


def random_having(random: Random) -> Schema:
    """Views of sales alone, of amounts on both sides of 0; or those of `random_groups`, with more of HAVING."""
    if random.random() < 0.4:
        schema = random_groups(random)
        return replace(schema, views=tuple(_leaving_out(random, view) for view in schema.views))
    amounts = random.choice(((-1, 0, 1, 2), tuple(map(Decimal, ("-1.50", "0.00", "1.00", "2.25")))))
    null = (None,) if random.random() < 0.3 else ()
    ids = ("s1", "s2", "s3") if null else ("s1", "s2", "s3", "s4")
    sale = Relation("sale", (ids, ("k1", "k2"), (*amounts, *null)), 0)
    views = []
    for number in range(random.choice((1, 1, 2))):
        groups = ("C",) if random.random() < 0.8 else ()
        shown = [_COUNT] if random.random() < 0.6 else []
        shown += random.sample(_EVERY[1:], random.randint(0 if shown else 1, 2))
        view = View(f"v{number}", groups, tuple(shown), _SALE)
        views.append(view if number else _leaving_out(random, view, always=True))
    return Schema((sale,), (len(ids),), tuple(views))


def _leaving_out(random: Random, view: View, *, always: bool = False) -> View:
    """A view that groups, perhaps with a HAVING."""
    if not view.aggregates or not (always or random.random() < 0.5):
        return view
    having = tuple(_asked(random, view) for _ in range(random.choice((1, 1, 1, 2))))
    if random.random() < 0.15:
        having = (replace(having[0], either=(_asked(random, view),)), *having[1:])
    return replace(view, having=having)


def _asked(random: Random, view: View) -> Asked:
    """What is asked of an aggregate that is shown, mostly; or of the group."""
    if "C" in view.columns and random.random() < 0.1:
        return Asked("C", random.choice(("=", "!=")), "k1")
    one = random.choice(view.aggregates if random.random() < 0.7 else _EVERY)
    if one.function != "count" and random.random() < 0.05:
        return Asked(one, "is null")
    return Asked(one, random.choice(_OPERATORS), random.choice((-1, 0, 1, 1, 2, 3)))
