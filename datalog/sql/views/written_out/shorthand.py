"""Forms of SQL that are short for others, written out, so that what reads a query has fewer to know.

    count(*) FILTER (WHERE c)     count(CASE WHEN c THEN 1 END)
    sum(x) FILTER (WHERE c)       sum(CASE WHEN c THEN x END)
    count_if(c)                   count(CASE WHEN c THEN 1 END)
    bool_and(c), bool_or(c)       min(c), max(c)                      false comes before true
    a <=> b                       (a = b AND a IS NOT NULL AND b IS NOT NULL) OR (a IS NULL AND b IS NULL)
    a IS DISTINCT FROM b          NOT (a <=> b)
    a NOT LIKE b                  NOT (a LIKE b)
    (a AND b) OR (a AND c)        a AND (b OR c)
    nvl2(a, b, c)                 CASE WHEN a IS NOT NULL THEN b ELSE c END
    decode(a, 1, 'x', 'y')        CASE WHEN a <=> 1 THEN 'x' ELSE 'y' END
    concat_ws('-', a, b)          substring(concat(coalesce('-' || a, ''), coalesce('-' || b, '')), 2)
    contains(a, 'x')              a LIKE '%x%'
    a LIKE ANY ('x', 'y')         a LIKE 'x' OR a LIKE 'y'
    (a, b) IN ((1, 2), (3, 4))    (a <=> 1 AND b <=> 2) OR (a <=> 3 AND b <=> 4)
    try_divide(a, b)              a / nullif(b, 0)
    dayname(a)                    CASE dayofweek(a) WHEN 1 THEN 'Sun' ... END
    substring_index(a, '-', 1)    split_part(a, '-', 1)
    substring_index(a, '@', -1)   split_part(a, '@', -1)
    split(a, '-')[0]              split_part(a, '-', 1)
    power(2, 10)                  CAST(1024 AS DOUBLE)               which every power function has exactly
    VALUES (1), (2)               SELECT 1 AS col1 UNION ALL SELECT 2

Each has the same value as what it is short for, null and unknown included; `<=>` is never unknown, and a quotient of
too many digits is an error where `try_divide` is null. A column of a select list without an alias keeps the name that
it has as it is written. A separator, or a text that is looked for, is written out; other calls stay as they are.
"""

from __future__ import annotations

import calendar
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlglot import exp

from datalog.sql.views.kept.one_result import sorted_list
from datalog.sql.views.limits import parts_of
from datalog.sql.views.written_out.written_rows import queries_of_values

_Change = Callable[[exp.Expr], exp.Expr]
_SPECIAL = str.maketrans({"\\": "\\\\", "%": "\\%", "_": "\\_"})
"""What means something else in a pattern of LIKE."""
_MOST_BITS = 53
"""Whole numbers of so many bits are doubles."""
_OF_PATTERNS = frozenset(r"\^$.|?*+()[]{}")
"""What means something else in a pattern of `split`."""


def _nvl2(node: exp.Expr) -> exp.Expr:
    known = exp.Is(this=node.this, expression=exp.Null()).not_(copy=False)
    return exp.Case(ifs=[exp.If(this=known, true=node.args["true"])], default=node.args.get("false"))


def _decode(node: exp.Expr) -> exp.Expr:
    value, *rest = node.expressions
    pairs = zip(rest[::2], rest[1::2], strict=False)
    ifs = [exp.If(this=exp.NullSafeEQ(this=value.copy(), expression=one), true=its) for one, its in pairs]
    return exp.Case(ifs=ifs, default=rest[-1] if len(rest) % 2 else exp.Null()) if ifs else node


def _joined(node: exp.Expr) -> exp.Expr:
    separator, *values = node.expressions
    if sorted_list(node) or not isinstance(separator, exp.Literal) or not separator.is_string or not values:
        return node
    empty = exp.Literal.string("")
    parts: list[exp.Expr] = [
        exp.Coalesce(this=exp.Concat(expressions=[separator.copy(), one]), expressions=[empty.copy()])
        for one in values
    ]
    start = exp.Literal.number(len(separator.name) + 1)
    return exp.Substring(this=exp.Concat(expressions=parts), start=start)


def _has(before: str, behind: str, node: exp.Expr) -> exp.Expr:
    sought = node.expression
    if not isinstance(sought, exp.Literal) or not sought.is_string:
        return node
    pattern = f"{before}{sought.name.translate(_SPECIAL)}{behind}"
    return _paren(exp.Like(this=node.this, expression=exp.Literal.string(pattern)))


def _ilike(node: exp.Expr) -> exp.Expr:
    if isinstance(node.expression, exp.Any | exp.All):
        return node
    one, other = (exp.Lower(this=side) for side in (node.this, node.expression))
    return exp.Like(this=one, expression=other, negate=node.args.get("negate"))


def _likes(node: exp.Expr) -> exp.Expr:
    """One of several patterns, or all of them."""
    patterns = node.expression.this.unnest()
    listed = patterns.expressions if isinstance(patterns, exp.Tuple) else [patterns]
    if not all(isinstance(one, exp.Literal) for one in listed):
        return node
    tests: list[exp.Expr] = [exp.Like(this=node.this.copy(), expression=one.copy()) for one in listed]
    if node.args.get("negate"):
        tests = [exp.Not(this=one) for one in tests]
    both = exp.or_ if isinstance(node.expression, exp.Any) else exp.and_
    return _paren(both(*tests, copy=False))


def _among(node: exp.Expr) -> exp.Expr:
    """Several values among rows that are written out: structs, of which nulls are equal."""
    sought, rows = node.this, node.expressions
    if not isinstance(sought, exp.Tuple) or not rows:
        return node
    if not all(
        isinstance(row, exp.Tuple) and len(row.expressions) == len(sought.expressions) for row in rows
    ):
        return node
    tests = []
    for row in rows:
        pairs = zip(sought.expressions, row.expressions, strict=True)
        same = (exp.NullSafeEQ(this=a.copy(), expression=b) for a, b in pairs)
        tests.append(_paren(exp.and_(*same, copy=False)))
    return _paren(exp.or_(*tests, copy=False))


def _named_of(part: type[exp.Func], names: Sequence[str], node: exp.Expr) -> exp.Expr:
    ifs = [
        exp.If(this=exp.Literal.number(i), true=exp.Literal.string(name)) for i, name in enumerate(names, 1)
    ]
    return exp.Case(this=part(this=node.this), ifs=ifs)


def _first_or_last_part(node: exp.Expr) -> exp.Expr:
    """`substring_index` up to the first of some characters, or from the last of one on."""
    delimiter, count = node.args.get("delimiter"), node.args.get("count")
    is_last = count == exp.Neg(this=exp.Literal.number(1))
    if not (is_last or count == exp.Literal.number(1)) or not _is_text(delimiter):
        return node
    if is_last and (
        delimiter is None or len(delimiter.name) != 1
    ):  # of several that overlap it is another one from the end
        return node
    return exp.SplitPart(this=node.this, delimiter=delimiter, part_index=count)


def _first_of_split(node: exp.Expr) -> exp.Expr:
    """The first part, which there always is, of a text that is split at characters that no pattern knows."""
    split, places = node.this, node.expressions
    is_first = places == [exp.Literal.number(0)] and not node.args.get("offset")
    if not is_first or type(split) is not exp.RegexpSplit or split.args.get("limit") is not None:
        return node
    separator = split.expression
    if not _is_text(separator) or not _OF_PATTERNS.isdisjoint(separator.name):
        return node
    return exp.SplitPart(this=split.this, delimiter=separator, part_index=exp.Literal.number(1))


def _power(node: exp.Expr) -> exp.Expr:
    base, exponent = node.this, node.expression
    if not all(isinstance(one, exp.Literal) and one.is_int for one in (base, exponent)):
        return node
    if int(exponent.name) > _MOST_BITS or (found := int(base.name) ** int(exponent.name)) > 2**_MOST_BITS:
        return node
    return exp.Cast(this=exp.Literal.number(found), to=exp.DataType.build("double"))


def _if_not_zero(node: exp.Expr) -> exp.Expr:
    return exp.Nullif(this=node, expression=exp.Literal.number(0))


def _is_text(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Literal) and node.is_string and bool(node.name)


def _cast(kind: str, node: exp.Expr) -> exp.Expr:
    return exp.Cast(this=node.expressions[0], to=exp.DataType.build(kind, dialect="spark"))


_DAYS = [calendar.day_abbr[day] for day in (6, *range(6))]
_BY_TYPE: Mapping[type[exp.Expr], _Change] = {
    exp.Bracket: _first_of_split,
    exp.ConcatWs: _joined,
    exp.Contains: partial(_has, "%", "%"),
    exp.Dayname: partial(_named_of, exp.DayOfWeek, _DAYS),
    exp.DecodeCase: _decode,
    exp.EndsWith: partial(_has, "%", ""),
    exp.EqualNull: lambda node: exp.NullSafeEQ(this=node.this, expression=node.expression),
    exp.ILike: _ilike,
    exp.In: _among,
    exp.LogicalAnd: lambda node: exp.Min(this=node.this),
    exp.LogicalOr: lambda node: exp.Max(this=node.this),
    exp.Monthname: partial(_named_of, exp.Month, calendar.month_abbr[1:]),
    exp.Negative: lambda node: _paren(exp.Neg(this=_paren(node.this))),
    exp.Nvl2: _nvl2,
    exp.Pow: _power,
    exp.RawString: lambda node: exp.Literal.string(node.name),
    exp.SafeDivide: lambda node: _paren(
        exp.Div(this=_paren(node.this), expression=_if_not_zero(node.expression))
    ),
    exp.Space: lambda node: exp.Repeat(this=exp.Literal.string(" "), times=node.this),
    exp.StartsWith: partial(_has, "", "%"),
    exp.SubstringIndex: _first_or_last_part,
    exp.Values: queries_of_values,
}
_BY_NAME: Mapping[str, _Change] = {
    "every": lambda node: exp.Min(this=node.expressions[0]),
    "isnotnull": lambda node: _paren(exp.Not(this=_paren(_is_null(node.expressions[0])))),
    "isnull": lambda node: _paren(_is_null(node.expressions[0])),
    "nullifzero": lambda node: exp.Nullif(this=node.expressions[0], expression=exp.Literal.number(0)),
    "some": lambda node: exp.Max(this=node.expressions[0]),
    "zeroifnull": lambda node: exp.Coalesce(this=node.expressions[0], expressions=[exp.Literal.number(0)]),
    **{name: partial(_cast, name) for name in ("bigint", "smallint", "tinyint")},
}


def short_call(node: exp.Expr) -> _Change | None:
    """How a call that is short for an expression is written out; None of any other node."""
    if isinstance(node, exp.Anonymous):
        return _BY_NAME.get(node.name.lower()) if len(node.expressions) == 1 else None
    if isinstance(node, exp.Like) and isinstance(node.expression, exp.Any | exp.All):
        return _likes
    return _BY_TYPE.get(type(node))


def written_out(query: exp.Expr, name: Callable[[exp.Expr], str]) -> exp.Expr:
    """The query with shorthands written out; itself if it has none.

    It is not changed; `name` says what Spark calls a column without an alias.
    """
    if not _is_short(query):
        return query
    query = query.copy()
    for select in query.find_all(exp.Select):
        select.set("expressions", [_named(item, name) for item in select.expressions])
    query = _inside_out(query, lambda node: (short_call(node) or _as_it_is)(node))
    return _inside_out(query, lambda node: _WRITTEN_OUT.get(type(node), _as_it_is)(node))


def _is_short(tree: exp.Expr) -> bool:
    return any(type(node) in _WRITTEN_OUT or short_call(node) is not None for node in tree.walk())


def _inside_out(query: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A query with what a change gives in place of its parts, those inside others first."""
    for node in reversed(list(query.bfs())):
        made = change(node)
        if made is not node:
            if node is query:
                return made
            node.replace(made)
    return query


def _named(item: exp.Expr, name: Callable[[exp.Expr], str]) -> exp.Expr:
    """A column of a select list under its name, if it has a shorthand in it and no alias."""
    if isinstance(item, exp.Alias) or not _is_short(item):
        return item
    return exp.alias_(item, name(item), quoted=True, copy=False)


def _as_it_is(node: exp.Expr) -> exp.Expr:
    return node


_FILTERED = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max, exp.Median, exp.Quantile)


def _filter(node: exp.Expr) -> exp.Expr:
    aggregate, condition = node.this, node.expression.this
    if isinstance(aggregate, exp.CountIf):
        aggregate = _count_if(aggregate)
    operand = aggregate.this
    if not isinstance(aggregate, _FILTERED):
        return node
    if isinstance(operand, exp.Distinct):
        if len(operand.expressions) != 1 and not isinstance(aggregate, exp.Count):
            return node
        operand.set("expressions", [_if(condition.copy(), one) for one in operand.expressions])
        return aggregate
    if aggregate.expressions:
        return node
    aggregate.set("this", _if(condition, exp.Literal.number(1) if isinstance(operand, exp.Star) else operand))
    return aggregate


def _count_if(node: exp.Expr) -> exp.Expr:
    return exp.Count(this=_if(node.this, exp.Literal.number(1)), big_int=True)


def _if(condition: exp.Expr, value: exp.Expr) -> exp.Expr:
    return exp.Case(ifs=[exp.If(this=condition, true=value)])


def _same(node: exp.Expr) -> exp.Expr:
    left, right = node.this, node.expression
    equal = exp.EQ(this=left, expression=right)
    both = exp.and_(equal, *(_is_null(one).not_(copy=False) for one in (left, right)), copy=False)
    neither = exp.and_(_is_null(left), _is_null(right), copy=False)
    return _paren(exp.or_(both, neither, copy=False))


def _like(node: exp.Expr) -> exp.Expr:
    if not node.args.get("negate"):
        return node
    node.set("negate", None)
    return exp.Not(this=node.copy())


def _or(node: exp.Expr) -> exp.Expr:
    """Alternatives without what all of them ask for: an equality of columns there is one that joins."""
    if isinstance(node.parent, exp.Or):
        return node  # one of the alternatives of that
    branches = [list(parts_of(one, exp.And)) for one in parts_of(node, exp.Or)]
    first, *others = ({one.sql() for one in branch} for branch in branches)
    shared = first.intersection(*others)
    if not shared:
        return node
    common = {one.sql(): one.copy() for one in branches[0] if one.sql() in shared}
    left = [[one.copy() for one in branch if one.sql() not in shared] for branch in branches]
    found = [*common.values()]
    if all(left):
        found.append(exp.paren(exp.or_(*(exp.and_(*some) for some in left))))
    return exp.paren(exp.and_(*found))


def _is_null(node: exp.Expr) -> exp.Expr:
    return exp.Is(this=node.copy(), expression=exp.Null())


def _paren(node: exp.Expr) -> exp.Expr:
    return exp.paren(node, copy=False)


_WRITTEN_OUT: dict[type[exp.Expr], Callable[[exp.Expr], exp.Expr]] = {
    exp.Filter: _filter,
    exp.CountIf: _count_if,
    exp.NullSafeEQ: _same,
    exp.NullSafeNEQ: lambda node: exp.Not(this=_same(node)),
    exp.Like: _like,
    exp.Or: _or,
}
