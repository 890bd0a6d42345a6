"""LEFT JOINs as inner ones where a condition leaves out the rows without a partner.

    SELECT c.name, o.total FROM c LEFT JOIN o ON o.customer = c.id WHERE o.total > 1
    SELECT c.name, o.total FROM c JOIN o ON o.customer = c.id WHERE o.total > 1

are the same: of a customer without orders `o.total` is null, and a comparison with null is not true. So it is with the
condition of an inner join behind the LEFT JOIN, and with one of another LEFT JOIN that is an inner one in this way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sqlglot import exp

from datalog.sql.views.limits import parts_of

_COMPARISONS = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_STRICT = (
    *(exp.Paren, exp.Cast, exp.TryCast, exp.Add, exp.Sub, exp.Mul, exp.Neg, exp.Lower, exp.Upper),
    *(exp.Year, exp.Month, exp.TsOrDsToDate),
)
"""What is null where something in it is."""


def with_inner_joins(tree: exp.Select) -> exp.Select:
    """A SELECT without LEFT JOINs whose rows without a partner its other conditions leave out."""
    joins = [one for one in tree.args.get("joins") or () if isinstance(one, exp.Join)]
    if not any(map(_is_left, joins)):
        return tree
    inner = {number for number, one in enumerate(joins) if not one.side and one.kind in ("", "INNER")}
    made = set[int]()
    where = tree.args.get("where")
    rejected = _rejected([] if where is None else [where.this])
    while True:
        later = {
            number: rejected.union(
                *(_rejected([joins[i].args.get("on")]) for i in inner | made if i > number)
            )
            for number, one in enumerate(joins)
            if _is_left(one) and number not in made
        }
        more = {number for number, names in later.items() if joins[number].alias_or_name.casefold() in names}
        if not more:
            break
        made |= more
    if not made:
        return tree
    found = tree.copy()
    for number in made:
        found.args["joins"][number].set("side", None)
        found.args["joins"][number].set("kind", None)
    return found


def _is_left(join: exp.Join) -> bool:
    return join.side == "LEFT" and join.kind in ("", "OUTER") and not join.method


def _rejected(conditions: Iterable[exp.Expr | None]) -> frozenset[str]:
    """The aliases whose rows of nulls conditions leave out."""
    parts = (part for one in conditions if one is not None for part in parts_of(one, exp.And))
    return frozenset(
        column.table.casefold() for part in parts for column in _never_null(part) if column.table
    )


def _never_null(condition: exp.Expr) -> Iterator[exp.Column]:
    """Columns that are not null where a condition is true."""
    match condition:
        case exp.Not(this=exp.Is(this=value, expression=exp.Null())):
            yield from _strictly(value)
        case exp.In() if condition.args.get("unnest") is None and condition.args.get("field") is None:
            yield from _strictly(condition.this)
        case exp.Between() | exp.Like():
            yield from _strictly(condition.this)
        case _ if type(condition) in _COMPARISONS:
            yield from _strictly(condition.this)
            yield from _strictly(condition.expression)


def _strictly(value: exp.Expr) -> Iterator[exp.Column]:
    """The columns that have to have a value for a value to be one."""
    if isinstance(value, exp.Column):
        yield value
    elif type(value) in _STRICT:
        for part in (value.this, value.args.get("expression")):
            if isinstance(part, exp.Expr):
                yield from _strictly(part)
