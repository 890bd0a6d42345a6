"""Random warehouses of views that tell of the same groups: what one does not tell of a group another one may."""

from __future__ import annotations

from decimal import Decimal
from random import Random

from .aggregates import Aggregate, Asked, Relation, Schema, View

_SALE, _JOIN = (("sale", ("I", "C", "A")),), (("sale", ("I", "C", "A")), ("cust", ("C", "R")))
_COUNT = Aggregate("count", "*")
_FUNCTIONS = ("sum", "min", "max", "max", "count", "avg")


def random_groups(random: Random) -> Schema:
    """Sales alone, or with customers that they refer to; up to three views, most of which group.

    The amounts have room below, above and between those that are likely: what a group leaves open shows.
    """
    joined = random.random() < 0.4
    null = (None,) if random.random() < 0.2 else ()
    ids = ("s1", "s2", "s3") if joined or null else ("s1", "s2", "s3", "s4")
    refers = ((1, "cust"),) if joined and random.random() < 0.8 else ()
    amounts = random.choice(((0, 1, 2, 3), tuple(map(Decimal, ("0.00", "1.00", "1.50", "2.25")))))
    sale = Relation("sale", (ids, ("k1", "k2"), (*amounts, *null)), 0, refers)
    cust = Relation("cust", (("k1", "k2"), ("eu", "us")))
    relations = (sale, cust) if joined else (sale,)
    most = (3, 2) if joined else (len(ids),)
    first = _view(random, "v0", joined=joined)
    views = [first]
    for number in range(1, random.choice((1, 2, 3, 3))):
        own = _view(random, f"v{number}", joined=joined)
        beside = View(own.name, first.columns, own.aggregates or (_COUNT,), first.body)
        views.append(beside if random.random() < 0.5 and first.columns else own)
    if joined and random.random() < 0.5:
        views.append(View("all_cust", ("C", "R"), (), (("cust", ("C", "R")),)))
    random.shuffle(views)
    return Schema(relations, most, tuple(views))


def _view(random: Random, name: str, *, joined: bool) -> View:
    """A view that groups; or one of some columns, each row once; or all sales of a customer."""
    body = _JOIN if joined and random.random() < 0.6 else _SALE
    columns = [v for v in ("C", "R") if body is _JOIN or v == "C"]
    groups = tuple(v for v in columns if random.random() < 0.7)
    kind = random.random()
    if kind < 0.2:
        shown = (*groups, *(["A"] if random.random() < 0.4 or not groups else []))
        return View(name, shown, (), body, semantics="set")
    if kind < 0.25:
        return View(name, ("I", "A"), (), (("sale", ("I", ("constant", "k1"), "A")),))
    aggregates = [_COUNT] if random.random() < 0.6 else []
    more = random.randint(0 if aggregates else 1, 3)
    aggregates += [Aggregate(f, "A") for f in random.sample(_FUNCTIONS, more)]
    aggregates = list(dict.fromkeys(aggregates))
    having = ()
    if random.random() < 0.15 and groups:
        having = (Asked(random.choice(aggregates), random.choice((">", ">", "<")), random.choice((1, 2))),)
    return View(name, groups, tuple(aggregates), body, having=having)
