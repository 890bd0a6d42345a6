"""Random star schemas with views that group and views that do not, small enough to list every database."""

from __future__ import annotations

from random import Random
from typing import Any

from .aggregates import Aggregate, Computed, Database, Relation, Row, Schema, View

_KEYS, _REGIONS, _AMOUNTS = ("k1", "k2", "k3"), ("eu", "us"), (-1, 0, 2)
_BODIES: dict[str, tuple[tuple[str, tuple[Any, ...]], ...]] = {
    "sale": (("sale", ("I", "C", "A")),),
    "cust": (("cust", ("C", "R")),),
    "reg": (("reg", ("R", "N")),),
    "sale cust": (("sale", ("I", "C", "A")), ("cust", ("C", "R"))),
    "cust reg": (("cust", ("C", "R")), ("reg", ("R", "N"))),
    "sale cust reg": (("sale", ("I", "C", "A")), ("cust", ("C", "R")), ("reg", ("R", "N"))),
    "sale sale": (("sale", ("I", "C", "A")), ("sale", ("J", "C", "B"))),
    "in eu": (("sale", ("I", "C", "A")), ("cust", ("C", ("constant", "eu")))),
}


def random_star(random: Random, bags: float = 0.0) -> Schema:
    """Sales and customers, perhaps regions; constraints and views by chance.

    Args:
        random: the chance.
        bags: of the views that are not plain, how many keep or remove duplicates instead of grouping.
    """
    wide = random.random() < 0.3
    null = [random.random() < 0.15 for _ in range(3)]
    keyed = [random.random() < 0.9 for _ in range(3)]
    refer = [random.random() < 0.6 for _ in range(2)]
    keys, ids = (_KEYS[:2], ("s1", "s2")) if wide else (_KEYS, ("s1", "s2", "s3"))
    amounts = _AMOUNTS[:2] if wide else random.choice((_AMOUNTS, _AMOUNTS[1:]))
    sale = Relation(
        "sale",
        (ids, (*keys, *([None] if null[0] else [])), (*amounts, *([None] if null[1] else []))),
        0 if keyed[0] else None,
        ((1, "cust"),) if refer[0] and keyed[1] else (),
    )
    cust = Relation(
        "cust",
        (keys, (*_REGIONS, *([None] if null[2] else []))),
        0 if keyed[1] else None,
        ((1, "reg"),) if wide and refer[1] else (),
    )
    relations: tuple[Relation, ...] = (sale, cust)
    most = (2, 2) if not all(keyed[:2]) or any(null) else (3, len(keys))
    if wide:
        relations, most = (*relations, Relation("reg", (_REGIONS, ("n", "m")))), (2, 2, 2)
    names = {r.name for r in relations}
    bodies = [b for b in _BODIES.values() if {name for name, _ in b} <= names]
    views = tuple(
        random_view(random, f"v{n}", random.choice(bodies), bags) for n in range(random.randint(1, 3))
    )
    return Schema(relations, most, views)


def random_roll_up(random: Random) -> Schema:
    """A star with a finer view that groups and a coarser one, perhaps copies of relations and other views."""
    schema = random_star(random)
    names = {r.name for r in schema.relations}
    finer = random.choice(("sale", "sale", "sale cust"))
    coarse = random.choice([b for b in _ABOVE[finer] if set(b.split()) <= names])
    groups = tuple(v for v in ("C", "R", "A") if v in _variables(finer) and random.random() < _KEPT[v])
    rows = _aggregates(random, ("A", "A", "A", *groups))
    fine = View("fine", groups or ("C",), (Aggregate("count", "*"), *rows), _BODIES[finer])
    kept = [a for a in rows if random.random() < 0.7] + _aggregates(random, (*groups, "A"))[
        : random.randint(0, 1)
    ]
    if random.random() < 0.6 or not kept:
        kept = [Aggregate("count", "*"), *kept]
    by = [v for v in ("C", "R", "N") if v in _variables(coarse) and random.random() < {"C": 0.15}.get(v, 0.6)]
    views = [fine, View("coarse", tuple(by), tuple(kept), _BODIES[coarse])]
    copied = [name for name in sorted(names) if random.random() < 0.3]
    views += [View(f"all_{name}", _variables(name), (), _BODIES[name]) for name in copied]
    if random.random() < 0.3:
        views.append(random.choice(schema.views))
    random.shuffle(views)
    return Schema(schema.relations, schema.most, tuple(views))


_ABOVE = {
    "sale": ("sale", "sale cust", "sale cust", "sale cust reg"),
    "sale cust": ("sale cust", "sale cust reg"),
}
_KEPT = {"C": 0.9, "R": 0.7, "A": 0.1}


def random_bag_above(random: Random) -> Schema:
    """A star with a bag that coarser views may be rolled up from."""
    schema = random_roll_up(random)
    own = ("A",) if random.random() < 0.6 else ()
    views = (
        View("fine", tuple(dict.fromkeys((*v.columns, *own))), (), v.body, semantics="bag")
        if v.name == "fine"
        else v
        for v in schema.views
    )
    return Schema(schema.relations, schema.most, tuple(views))


def _variables(body: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(t for _, terms in _BODIES[body] for t in terms if isinstance(t, str)))


def _aggregates(random: Random, variables: tuple[str, ...]) -> list[Aggregate]:
    """Some aggregates; of names only extrema and counts."""
    found = []
    for variable in random.sample(variables, random.randint(1, min(3, len(variables)))):
        functions = ("sum", "min", "max", "max", "count") if variable == "A" else ("min", "count")
        found.append(Aggregate(random.choice(functions), variable))
    return list(dict.fromkeys(found))


def random_view(
    random: Random, name: str, body: tuple[tuple[str, tuple[Any, ...]], ...], bags: float = 0.0
) -> View:
    """A view over a body: plain with all its variables, or grouped, or, with some chance, a bag or a DISTINCT."""
    variables = tuple(dict.fromkeys(t for _, terms in body for t in terms if isinstance(t, str)))
    compared = (
        ((random.choice([v for v in ("A",) if v in variables]), random.choice(("<", ">", "!=")), 0),)
        if "A" in variables and random.random() < 0.1
        else ()
    )
    if random.random() < 0.3:
        return View(name, variables, (), body, compared)
    if bags and random.random() < bags:
        return random_bag(random, name, body, compared)
    wanted = [v for v in variables if random.random() < {"C": 0.5, "R": 0.6, "N": 0.4}.get(v, 0.1)]
    numbers = [v for v in variables if v in ("A", "B")]
    aggregates = [Aggregate("count", "*")] if random.random() < 0.75 else []
    more = random.randint(0 if aggregates else 1, 2) if numbers else 0
    functions = ("sum", "min", "max", "count", "sum")
    aggregates += [Aggregate(random.choice(functions), random.choice(numbers)) for _ in range(more)]
    return View(name, tuple(wanted), tuple(aggregates or [Aggregate("count", "*")]), body, compared)


def random_bag(
    random: Random,
    name: str,
    body: tuple[tuple[str, tuple[Any, ...]], ...],
    compared: tuple[tuple[str, str, Any], ...],
) -> View:
    """A view that keeps duplicates, or one that removes them, with some columns, perhaps computed."""
    variables = tuple(dict.fromkeys(t for _, terms in body for t in terms if isinstance(t, str)))
    numbers = [v for v in variables if v in ("A", "B")]
    often = {"C": 0.5, "R": 0.6, "N": 0.4, "A": 0.4}
    columns: list[Any] = [v for v in variables if random.random() < often.get(v, 0.1)]
    if numbers and random.random() < 0.4:
        columns.append(random_column(random, numbers))
    if not columns or random.random() < 0.1:
        columns.insert(random.randint(0, len(columns)), ("constant", random.choice((7, "x"))))
    where = ()
    if numbers and random.random() < 0.2:
        where = ((random_column(random, numbers), random.choice(("<", ">", "!=")), 0),)
    semantics = "bag" if random.random() < 0.7 else "set"
    return View(name, tuple(columns), (), body, compared, semantics, where)


def random_column(random: Random, numbers: list[str]) -> Computed:
    """A column that is computed: different values may become one."""
    return Computed(random.choice(numbers), random.choice(("+", "*")), random.choice((0, 1, 2)))


def random_database(random: Random, schema: Schema) -> dict[str, frozenset[Row]]:
    """Rows of each relation that satisfy the constraints, referenced relations first."""
    rows: dict[str, frozenset[Row]] = {}
    for relation in reversed(schema.relations):
        rows[relation.name] = frozenset()
        made = [random_row(random, relation, rows) for _ in range(random.randint(0, 4))]
        rows[relation.name] = with_keys(relation, frozenset(), [row for row in made if row is not None])
    return rows


def random_row(random: Random, relation: Relation, rows: Database) -> Row | None:
    """A row whose references are there; None if there are none to refer to."""
    targets = dict(relation.references)
    values = []
    for column, domain in enumerate(relation.domains):
        options = [*domain]
        if column in targets:
            keys = {row[0] for row in rows[targets[column]]}
            options = [v for v in domain if v is None or v in keys]
        if not options:
            return None
        values.append(random.choice(options))
    return tuple(values)


def with_keys(relation: Relation, rows: frozenset[Row], more: list[Row]) -> frozenset[Row]:
    """Some rows, and those of more that have a key of their own."""
    found = set(rows)
    for row in more:
        taken = relation.key is not None and any(row[relation.key] == o[relation.key] for o in found)
        if not taken:
            found.add(row)
    return frozenset(found)


def changed(random: Random, schema: Schema, before: Database) -> dict[str, frozenset[Row]]:
    """The database after a mixed batch of changes, again satisfying the constraints."""
    after: dict[str, frozenset[Row]] = {}
    for relation in reversed(schema.relations):
        old = sorted(before[relation.name], key=repr)
        gone = random.sample(old, min(len(old), random.choice((0, 0, 1, 2))))
        kept = frozenset(row for row in old if row not in gone and _refers(relation, row, after))
        after[relation.name] = frozenset()
        made = [random_row(random, relation, after) for _ in range(random.choice((0, 1, 1, 2)))]
        after[relation.name] = with_keys(relation, kept, [row for row in made if row is not None])
    return after


def _refers(relation: Relation, row: Row, rows: Database) -> bool:
    """Whether the rows that a row references are there."""
    return all(
        row[column] is None or any(row[column] == target[0] for target in rows[name])
        for column, name in relation.references
    )


def renamed(rows: Database, prefix: str) -> dict[str, frozenset[Row]]:
    """The rows with another prefix in every string: databases with different ones have nothing in common."""
    return {
        name: frozenset(tuple(prefix + v if isinstance(v, str) else v for v in row) for row in found)
        for name, found in rows.items()
    }
