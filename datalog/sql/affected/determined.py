"""Whether a query gives the same rows each time it is run over the same base rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from sqlglot import exp

from datalog.model import ANY, ColumnType, TextQuery, TypeName
from datalog.sql.affected.names import UnknownShapeError
from datalog.sql.affected.plan import (
    Aggregate,
    Combined,
    Distinct,
    Filter,
    Join,
    Limited,
    OneRow,
    Plan,
    Project,
    Query,
    Scan,
    Series,
    Table,
    Windows,
    closed,
    equalities,
    every,
    linked,
    never_null,
    number_of,
)
from datalog.sql.affected.read import plan_of_text

_BIGINT = ColumnType(TypeName.BIGINT)
_MOST_SINGLE = 1 << 24
"""Up to here all whole numbers are different ones in a column of single precision."""
DETERMINED = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)
"""Aggregates that are the same in any order of rows, but for the last digits of sums of doubles."""
PLACES = (
    *(exp.RowNumber, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.First, exp.Last, exp.NthValue),
    *(exp.Ntile, exp.PercentRank, exp.CumeDist),
)
"""Window functions that depend on the order of rows."""


def is_determined(plan: Plan, above: Iterable[Plan] = ()) -> bool:
    """Whether a plan gives the same rows each time: no ties are broken, and no doubles looked at.

    Each row of the operators above makes rows of its own.
    """
    looked_at = frozenset(number for one in (*every(plan), *above) for number in used(one))
    return all(_gives_the_same(one, looked_at) for one in (*every(plan), *above))


def has_one_result_by_keys(query: TextQuery, tables: Mapping[str, Table]) -> bool:
    """Whether a query gives the same rows each time, as the keys of what it reads tell.

    SELECT id, row_number() OVER (PARTITION BY customer ORDER BY placed, id) AS n FROM orders
    SELECT id, placed FROM orders ORDER BY placed, id LIMIT 3
    """
    try:
        plan = plan_of_text(query, tables).plan
    except UnknownShapeError:
        return False
    operators = tuple(every(plan))
    looked_at = frozenset(number for one in operators for number in used(one))
    return all(
        determine(one.input, {number for number, _, _ in one.order})
        if isinstance(one, Limited)
        else _gives_the_same(one, looked_at)
        for one in operators
    )


def key_of(query: Query) -> tuple[int, ...] | None:
    """Positions of columns in which no two rows of a query are equal, null being a value; None if keys tell none."""
    numbers = [number for _, number in query.outputs]
    kept = list(range(len(numbers)))
    if not determine(query.plan, numbers):
        return None
    for place in reversed(range(len(numbers))):
        fewer = [one for one in kept if one != place]
        if determine(query.plan, [numbers[one] for one in fewer]):
            kept = fewer
    return tuple(kept)


def nullable_outputs(query: Query) -> frozenset[int]:
    """Positions of a query's columns that may be null, as far as is declared."""
    return frozenset(i for i, (_, number) in enumerate(query.outputs) if not never_null(query.plan, number))


def used(plan: Plan) -> Iterator[int]:
    """The columns that an operator looks at, and does not only hand on."""
    match plan:
        case Filter(_, trees) | Join(tests=trees):
            pass
        case Project(_, items) | Windows(_, items):
            trees = tuple(tree for _, tree in items)
        case Aggregate(_, groups, _, items):
            yield from groups
            trees = tuple(tree for _, tree in items)
        case Series(_, _, first, last):
            trees = (first, last)
        case Distinct():
            yield from plan.columns
            trees = ()
        case Combined(pairs=pairs):
            yield from (number for pair in pairs for number in pair)
            trees = ()
        case _:
            trees = ()
    operands = tuple(sub.operand for sub in linked(plan) if sub.operand is not None)
    found = (number_of(one) for tree in (*trees, *operands) for one in tree.find_all(exp.Column))
    yield from (number for number in found if number is not None)
    yield from (number for sub in linked(plan) for number in sub.columns)


def _gives_the_same(plan: Plan, used: Collection[int]) -> bool:
    match plan:
        case Limited():
            return False
        case Aggregate(items=items):
            return all(_is_aggregate_determined(plan, tree) for _, tree in items)
        case Windows(input, items):
            return all(_is_window_determined(input, tree) for _, tree in items)
        case Scan(table, _, columns):
            kinds = zip(columns, table.types, strict=True)
            return not any(kind.name.has_signed_zeros and number in used for number, kind in kinds)
        case _:
            return True


def _is_aggregate_determined(plan: Aggregate, tree: exp.Expr) -> bool:
    """Whether an aggregate does not depend on how rows that its order leaves equal come."""
    match tree:
        case exp.ArgMax() | exp.ArgMin():
            by = [tree.expression]
        case exp.GroupConcat(this=exp.Order(this=of, expressions=ordered)) if not isinstance(
            of, exp.Distinct
        ):
            by = [one.this for one in ordered]
        case _:
            return isinstance(tree, (*DETERMINED, exp.Grouping))
    numbers = [number_of(one) for one in by]
    return None not in numbers and determine(
        plan.input, {*plan.common, *(n for n in numbers if n is not None)}
    )


def _is_window_determined(input_: Plan, tree: exp.Window) -> bool:
    """Whether a window's values do not depend on how rows that its order leaves equal come."""
    call, spec = tree.this, tree.args.get("spec")
    if isinstance(call, (*DETERMINED, exp.Rank, exp.DenseRank)) and spec is None:
        return True
    if not isinstance(call, (*DETERMINED, *PLACES)):
        return False
    order = tree.args.get("order")
    by = [*(tree.args.get("partition_by") or ()), *(one.this for one in (order.expressions if order else ()))]
    return determine(input_, {number for one in by if (number := number_of(one)) is not None})


def determine(plan: Plan, columns: Collection[int]) -> bool:
    """Whether no two rows of a plan are equal in some columns, null being a value.

    >>> from datalog.model import ColumnType, TypeName
    >>> from datalog.sql.affected.plan import Table
    >>> int_ = ColumnType(TypeName.INT)
    >>> scan = Scan(Table("r", ("a", "b"), (int_, int_), frozenset({1}), ((0,),)), 0, (1, 2))
    >>> determine(scan, {1}), determine(scan, {2})
    (True, False)
    """
    match plan:
        case Scan(table, _, numbers):
            held = {place for place, number in enumerate(numbers) if number in columns}
            return any(set(key) <= held for key in table.keys)
        case OneRow():
            return True
        case Filter(input, tests):
            return determine(input, closed(columns, _alike(plan, tests)))
        case Windows(input):
            return determine(input, columns)
        case Series(input, own):
            return own in columns and determine(input, columns)
        case Project(input, items):
            inside = {n for number, tree in items if number in columns and (n := number_of(tree)) is not None}
            return determine(input, inside | set(columns) if plan.extends else inside)
        case Join(kind, left, right, tests):
            pairs = _alike(plan, tests)
            if kind in ("semi", "anti"):
                return determine(left, columns)
            sides = ((left, right), (right, left)) if kind == "inner" else ((left, right),)
            given = closed(columns, pairs) if kind == "inner" else columns
            # A row of one side has the partners whose columns are equal to its own, or none.
            return kind != "full" and any(
                determine(one, given) and determine(other, closed({*given, *one.columns}, pairs))
                for one, other in sides
            )
        case Aggregate(input, groups):
            return not plan.sets and set(groups) <= _implied(input, columns)
        case Distinct() | Combined(distinct=True):
            return set(plan.columns) <= set(columns)
        case Combined("union"):
            return _tell_apart(plan, columns)
        case _:
            return False


def _tell_apart(union: Combined, columns: Collection[int]) -> bool:
    """Whether some columns of a UNION ALL determine the rows of each query, and one holds another constant in each.

    Of the columns that hold the values of each query as they are: two numbers may be one as a double.
    """
    parts = list(_united(union, {number: number for number in union.columns}))
    held = ([_constant(one, places.get(number)) for one, places in parts] for number in columns)
    if not any(map(_are_different, held)):
        return False
    types = [_types(one) for one, _ in parts]
    kinds = {
        number: [its.get(places.get(number, -1), ANY) for its, (_, places) in zip(types, parts, strict=True)]
        for number in columns
    }
    kept = {n for n, its in kinds.items() if ANY not in its and (len({*its}) == 1 or _are_whole(its))}
    return all(
        determine(one, {its for number, its in places.items() if number in kept}) for one, places in parts
    )


def _are_whole(kinds: Iterable[ColumnType]) -> bool:
    return all(kind.name.is_integer for kind in kinds)


def _united(plan: Plan, places: Mapping[int, int]) -> Iterator[tuple[Plan, dict[int, int]]]:
    """The queries of a UNION ALL, each with its columns by those of the whole."""
    if isinstance(plan, Combined) and plan.kind == "union" and not plan.distinct:
        for i, side in enumerate((plan.left, plan.right), 1):
            inside = {pair[0]: pair[i] for pair in plan.pairs}
            yield from _united(side, {one: inside[its] for one, its in places.items() if its in inside})
    else:
        yield plan, dict(places)


def _constant(plan: Plan, number: int | None) -> str | int | None:
    """The text or whole number that a column of a query is; None of another."""
    match plan:
        case Project(input, items):
            tree = dict(items).get(number) if number is not None else None
            if isinstance(tree, exp.Literal):
                return tree.name if tree.is_string else int(tree.name) if tree.name.isdigit() else None
            inner = number if tree is None else number_of(tree)
            return _constant(input, inner)
        case Filter(input) | Windows(input) | Limited(input):
            return _constant(input, number)
        case _:
            return None


def _are_different(constants: Sequence[str | int | None]) -> bool:
    """Whether constants of one kind differ, whatever the type that holds them all."""
    is_one_kind = {str} == {*map(type, constants)}
    numbers = [one for one in constants if isinstance(one, int) and one <= _MOST_SINGLE]
    return len({*constants}) == len(constants) and (is_one_kind or len(numbers) == len(constants))


def _implied(plan: Plan, columns: Iterable[int]) -> set[int]:
    """Columns, and those of which all rows that are equal in them hold one value: as keys of what is read tell."""
    found, size = set(columns), -1
    while len(found) > size:
        size = len(found)
        found |= _more(plan, found)
    return found


def _more(plan: Plan, columns: set[int]) -> set[int]:
    match plan:
        case Scan(table, _, numbers):
            held = {place for place, number in enumerate(numbers) if number in columns}
            return set(numbers) if any(set(key) <= held for key in table.keys) else set()
        case Filter(input, tests):
            return _more(input, columns) | set(closed(columns, _alike(plan, tests)))
        case Windows(input) | Series(input):
            return _more(input, columns)
        case Project(input, items):
            same = [(number, inner) for number, tree in items if (inner := number_of(tree)) is not None]
            return _more(input, set(closed(columns, same))) | set(closed(columns, same))
        case Join("inner", left, right, tests):
            given = set(closed(columns, _alike(plan, tests)))
            return given | _more(left, given) | _more(right, given)
        case Join("left", left, right):
            # Without a partner all columns of the right side are null, and with one this one is not.
            has_partner = any(never_null(right, number) for number in columns)
            return _more(left, columns) | (_more(right, columns) if has_partner else set())
        case Join("semi" | "anti", left):
            return _more(left, columns)
        case _:
            return set()


def _alike(plan: Filter | Join, tests: Iterable[exp.Expr]) -> list[tuple[int, int]]:
    """The pairs of columns that are equal where some tests are true, of types of which each value equals one other."""
    types, found = _types(plan), list[tuple[int, int]]()
    for one, other in equalities(tests):
        mine, its = types.get(one), types.get(other)
        if ANY in (mine, its) or mine is None or its is None:
            continue
        if mine.is_found_by(its) and its.is_found_by(mine):
            found.append((one, other))
    return found


def _types(plan: Plan) -> dict[int, ColumnType]:
    """The types of columns that are those of tables, or counts; none of what else is computed."""
    found: dict[int, ColumnType] = {}
    for one in every(plan):
        if isinstance(one, Scan):
            found |= dict(zip(one.columns, one.table.types, strict=True))
    items = [
        pair for one in every(plan) if isinstance(one, Project | Aggregate | Windows) for pair in one.items
    ]
    while items:
        more = {number: kind for number, tree in items if (kind := _type(tree, found)) is not None}
        if not more:
            break
        found |= more
        items = [pair for pair in items if pair[0] not in more]
    return found


def _type(tree: exp.Expr, known: Mapping[int, ColumnType]) -> ColumnType | None:
    while isinstance(tree, exp.Paren | exp.Window | exp.Filter | exp.Min | exp.Max):
        tree = tree.this
    if isinstance(tree, exp.Count | exp.RowNumber | exp.Rank | exp.DenseRank):
        return _BIGINT
    number = number_of(tree)
    return None if number is None else known.get(number)
