"""Random batches of changes of orders and their customers, as Debezium logs them; shares nothing with the product.

The two tables are simulated, and their keys and the foreign key hold after every statement. What the views hold
before and after is the simulation's join.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

REFERENCE = "foreign key(customer) references customer(id)"
PROGRAM = f"""\
.decl customer(id: bigint, name: string, city: string not null) key(id).
.decl orders(id: bigint, customer: bigint not null, total: int not null) key(id) {REFERENCE}.
customers(C, N, Y) :- customer(C, N, Y).
sales(O, C, T, N, Y) :- orders(O, C, T), customer(C, N, Y).
"""
"""A copy of the dimension, and the fact joined with it."""
COLUMNS = {
    "customer": ("id", "name", "city"),
    "orders": ("id", "customer", "total"),
    "customers": ("c", "n", "y"),
    "sales": ("o", "c", "t", "n", "y"),
}

Row = tuple[Any, ...]
Event = dict[str, Any]


@dataclass(frozen=True)
class Shop:
    """One state of the tables, by key."""

    customer: dict[int, Row] = field(default_factory=dict)
    orders: dict[int, Row] = field(default_factory=dict)

    @property
    def relations(self) -> dict[str, frozenset[Row]]:
        return {n: frozenset(t.values()) for n, t in (("customer", self.customer), ("orders", self.orders))}

    @property
    def views(self) -> dict[str, frozenset[Row]]:
        joined = {(*order, *self.customer[order[1]][1:]) for order in self.orders.values()}
        return {"customers": frozenset(self.customer.values()), "sales": frozenset(joined)}


@dataclass(frozen=True)
class Batch:
    """Two states, and the events between."""

    before: Shop
    events: list[Event]
    after: Shop


people = st.tuples(st.sampled_from([None, "Ann", "Bob"]), st.sampled_from(["Aachen", "Bonn", "Cork"]))
totals = st.integers(0, 2)


@st.composite
def batches(draw: st.DrawFn, most: int = 8) -> Batch:
    customer = {key: (key, *draw(people)) for key in sorted(draw(st.sets(st.integers(0, 3))))}
    orders = {}
    if customer:
        orders = {
            key: (key, draw(st.sampled_from(sorted(customer))), draw(totals))
            for key in sorted(draw(st.sets(st.integers(0, 4))))
        }
    tables = {"customer": customer, "orders": orders}
    before = Shop(dict(customer), dict(orders))
    events = []
    for lsn in range(100, 100 + draw(st.integers(0, most))):
        table, old, new = draw(_statement(customer, orders))
        if old is not None:
            del tables[table][old[0]]
        if new is not None:
            tables[table][new[0]] = new
        events += _events(table, old, new, lsn)
    return Batch(before, events, Shop(customer, orders))


@st.composite
def _statement(
    draw: st.DrawFn, customer: dict[int, Row], orders: dict[int, Row]
) -> tuple[str, Row | None, Row | None]:
    """A table, and a row of it before and after."""
    used = {order[1] for order in orders.values()}
    keys = {"customer": range(4), "orders": range(5)}
    table = draw(st.sampled_from(["customer", "orders"] if customer else ["customer"]))
    rows = customer if table == "customer" else orders
    old = rows.get(draw(st.sampled_from(keys[table])))
    held = table == "customer" and old is not None and old[0] in used
    if old is not None and not held and draw(st.booleans()):
        return table, old, None
    free = sorted(set(keys[table]) - set(rows))
    if old is None:
        keys_after = free
    elif held:
        keys_after = [old[0]]
    else:  # an update may change a key that nothing refers to
        keys_after = [old[0], *free]
    key = draw(st.sampled_from(keys_after))
    values = draw(people if table == "customer" else st.tuples(st.sampled_from(sorted(customer)), totals))
    return table, old, (key, *values)


def _events(table: str, old: Row | None, new: Row | None, lsn: int) -> Iterable[Event]:
    """One event, or for a changed key a deletion and an insertion."""
    if old is not None and new is not None and old[0] != new[0]:
        yield from (*_events(table, old, None, lsn), *_events(table, None, new, lsn))
        return
    op = "c" if old is None else "d" if new is None else "u"
    source = {"connector": "postgresql", "schema": "public", "table": table, "lsn": lsn}
    yield {"before": _image(table, old), "after": _image(table, new), "op": op, "source": source}


def _image(table: str, row: Row | None) -> dict[str, Any] | None:
    return None if row is None else dict(zip(COLUMNS[table], row, strict=True))


def side_by_side(found: Iterable[Batch]) -> Batch:
    """One batch of all of them, on keys of their own."""
    before, after, events = Shop(), Shop(), list[Event]()
    for number, batch in enumerate(found):
        for whole, part in ((before, batch.before), (after, batch.after)):
            whole.customer.update({r[0]: r for r in _moved("customer", part.customer.values(), number)})
            whole.orders.update({r[0]: r for r in _moved("orders", part.orders.values(), number)})
        events += [_moved_event(event, number) for event in batch.events]
    # One log: positions rise over all of it, and events of one position stay together.
    events.sort(key=lambda event: event["source"]["lsn"])
    return Batch(before, events, after)


def _moved(table: str, rows: Iterable[Row], number: int) -> Iterable[Row]:
    by = 10 * number
    for row in rows:
        yield (row[0] + by, row[1] + by, row[2]) if table == "orders" else (row[0] + by, *row[1:])


def _moved_event(event: Event, number: int) -> Event:
    table = event["source"]["table"]
    moved = dict(event)
    for image in ("before", "after"):
        if event[image] is not None:
            (row,) = _moved(table, [tuple(event[image].values())], number)
            moved[image] = _image(table, row)
    return moved
