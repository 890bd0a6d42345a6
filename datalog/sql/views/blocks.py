"""Drafts of blocks, named, and what their columns are in a union."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_UP, Context, Decimal

from datalog.analysis import united_type
from datalog.copies import replace
from datalog.model import (
    MAX_PRECISION,
    Block,
    Cast,
    ColumnType,
    Constant,
    Expression,
    TypeName,
    Variable,
    block,
    expression_variables,
    terms_of,
    variables_of,
)
from datalog.sql.views.scope import Draft, Query

_EXACTLY = Context(prec=2 * MAX_PRECISION, rounding=ROUND_HALF_UP)


def named_block(name: str, number: int, draft: Draft) -> Block:
    """A draft as the block of that number of a view."""
    made = _with_anonymous(draft)
    return block(
        name,
        number,
        made.body,
        made.outputs,
        filters=made.filters,
        groups=made.groups,
        having=made.having,
    )


def _with_anonymous(draft: Draft) -> Draft:
    """The draft with every variable that occurs only once, in an atom, called `_1`, `_2`, ... in order.

    Before: `r(Id, Name), s(Id, Price)` with the output `Name`
    After:  `r(Id, Name), s(Id, _1)`
    """
    above = expression_variables((*draft.outputs, *draft.filters, *(draft.groups or ()), *draft.having))
    places = Counter(term for literal in draft.body for term in terms_of(literal))
    unused = [v for v in variables_of(draft.body) if places[v] == 1 and v not in above]
    return draft.substituted({v: Variable(f"_{number}") for number, v in enumerate(unused, 1)})


def of_one_type(
    drafts: Sequence[Draft],
    types: Sequence[ColumnType | None],
    type_of: Callable[[Expression], ColumnType | None],
) -> tuple[Draft, ...]:
    """The drafts of a union, whose numbers are cast to the types that its columns have where they are of another.

    Whole numbers of two types, and decimals with as many digits behind the point, are written alike; what is computed
    with them is so with columns of the union's types (`Scope.typed`).
    """
    each = zip(*(draft.outputs for draft in drafts), strict=True)
    columns = [_of_one_type(its, kind, type_of) for its, kind in zip(each, types, strict=True)]
    rows = zip(*columns, strict=True)
    return (
        tuple(replace(draft, outputs=row) for draft, row in zip(drafts, rows, strict=True))
        if columns
        else tuple(drafts)
    )


def of_its_types(query: Query, type_of: Callable[[Expression], ColumnType | None]) -> Query:
    """A query that is no union, whose numbers that are written out are cast where their columns are of another type."""
    if len(query.drafts) != 1:
        return query
    (draft,) = query.drafts
    outputs = (
        Cast(output, kind)
        if isinstance(output, Constant) and kind is not None and _is_other(kind, type_of(output))
        else output
        for output, kind in zip(draft.outputs, query.types, strict=True)
    )
    return replace(query, drafts=(replace(draft, outputs=tuple(outputs)),))


def _is_other(kind: ColumnType, own: ColumnType | None) -> bool:
    return own is not None and kind.family == own.family == "number" and not kind.is_open and kind != own


def _of_one_type(
    outputs: Sequence[Expression],
    to: ColumnType | None,
    type_of: Callable[[Expression], ColumnType | None],
) -> list[Expression]:
    kinds = [type_of(output) for output in outputs]
    known = [kind for kind in kinds if kind is not None]
    if to is None or any(kind.is_open or kind.family != "number" for kind in (to, *known)):
        return [*outputs]
    found = [
        output
        if kind is None or _is_alike(kind, to)
        else _constant(output, to)
        if isinstance(output, Constant)
        else Cast(output, to)
        for output, kind in zip(outputs, kinds, strict=True)
    ]
    now = united_type([kind for kind in map(type_of, found) if kind is not None])
    places = [i for i, output in enumerate(found) if isinstance(output, Constant) and kinds[i] is not None]
    if now != to and places and to.name is TypeName.DECIMAL:
        found[places[0]] = Cast(found[places[0]], to)  # a number that is written out has fewer digits
    return found


def _constant(one: Constant, to: ColumnType) -> Expression:
    """A number as it is of a type; a cast, which fails when it is computed, of one that it cannot hold."""
    if not isinstance(one.value, int | float | Decimal):
        return one
    if to.name is TypeName.DOUBLE:
        return Constant(float(one.value))
    if to.name is TypeName.DECIMAL and not isinstance(one.value, float):
        precision, scale = to.decimal_size
        made = with_scale(Decimal(one.value), scale)
        return Constant(made) if abs(made) < Decimal(10) ** (precision - scale) else Cast(one, to)
    return one


def with_scale(value: Decimal, scale: int) -> Decimal:
    """A number with so many digits behind the point, rounded if it has more."""
    return value.quantize(Decimal(1).scaleb(-scale), context=_EXACTLY)


def _is_alike(kind: ColumnType, to: ColumnType) -> bool:
    if kind == to or (kind.name.is_integer and to.name.is_integer):
        return True
    return kind.name is to.name is TypeName.DECIMAL and kind.scale == to.scale
