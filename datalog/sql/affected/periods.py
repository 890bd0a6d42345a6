"""Columns that show the day, month or year of a base column: one value of them is a span of that column's values.

    SELECT date_trunc('day', at) AS day, count(DISTINCT customer) FROM visit GROUP BY 1
    a demand for a day asks for the visits from its beginning to its end, which an index or the files' order finds

    SELECT year(at), month(at), ...     a year and the number of a month, or quarter, in it are shown together

Conditions of soundness:

1. What a view shows is f(x) of a base column x, and `Demands.of` says where a demand for any values of x may be put to:
   so may one for those x of which f(x) is wanted. Null is shown of null, or of times beyond the years from 1 to 9999.
2. For each function v = f(x) below, x lies between v (its beginning, for years and texts) less `back`, and that plus
   `ahead`. A span that is too long is as right as the shortest one: rows that are left in change nothing.
3. `ahead` of a function of another one is the longer of both, since the shorter units fit into the longer ones; weeks
   do not fit into months, and there both are added.
4. Where the clock is another zone's than that of the values, or changes, spans are longer by `pad` at both ends.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TypeAlias

from msgspec import Struct
from sqlglot import exp

from datalog.copies import replace
from datalog.model import Call, Cast, ColumnType, Constant, Expression, TypeName, Variable
from datalog.model.times import DATE_UNITS, TIME_UNITS, pattern_parts
from datalog.sql.affected.demands import Demands, Place
from datalog.sql.affected.plan import (
    Aggregate,
    Combined,
    Distinct,
    Filter,
    Join,
    Plan,
    Project,
    Windows,
    number_of,
)

VALUE = Variable("Value")
"""The base column, in an expression."""
ZONES = dt.timedelta(days=1)
"""No clock is further from that of UTC."""
Span: TypeAlias = tuple[dt.datetime | None, dt.datetime | None]
"""From a time, to before another one, on the clock of UTC; None where there is no end."""

_LENGTHS: Mapping[str, dt.timedelta] = {
    "microsecond": dt.timedelta(microseconds=1),
    "millisecond": dt.timedelta(milliseconds=1),
    "second": dt.timedelta(seconds=1),
    "minute": dt.timedelta(minutes=1),
    "hour": dt.timedelta(hours=1),
    "day": dt.timedelta(days=1),
    "week": dt.timedelta(days=7),
    "month": dt.timedelta(days=31),
    "quarter": dt.timedelta(days=92),
    "year": dt.timedelta(days=366),
}
_FIELDS = {"yyyy": "year", "MM": "month", "dd": "day", "HH": "hour", "mm": "minute", "ss": "second"}
_MONTHS = {"month": 1, "quarter": 3}
_OUTSIDE = frozenset({"month", "quarter", "year"})
_TIMES = frozenset({TypeName.DATE, TypeName.TIMESTAMP, TypeName.TIMESTAMP_NTZ})
_DATE = ColumnType(TypeName.DATE)


class Period(Struct, frozen=True):
    """What a view shows of a column of dates or times.

    Attributes:
        expressions: over `VALUE`; of two the first is a year, and the second the number of a month or quarter in it.
        units: what it cuts times to, one for each function in it.
        back: how far before a value what it is of may lie.
        is_time: whether it shows dates or times, and no years as numbers, or texts.
        pattern: that of the texts.
    """

    expressions: tuple[Expression, ...] = (VALUE,)
    units: tuple[str, ...] = ()
    back: dt.timedelta = dt.timedelta()
    is_time: bool = True
    pattern: str | None = None

    @property
    def ahead(self) -> dt.timedelta:
        """Condition 3."""
        lengths = [_LENGTHS[unit] for unit in self.units]
        fit = not self.back and not ("week" in self.units and _OUTSIDE.intersection(self.units))
        return max(lengths) if fit else sum(lengths, dt.timedelta())

    def span(self, shown: Sequence[object], pad: dt.timedelta) -> Span:
        """The values of the column of which some values may be shown, none of them null; one for each expression."""
        start = self._start(*shown)
        ends = (start, -self.back - pad), (start, self.ahead + pad)
        first, last = (None if at is None else _moved(at, by) for at, by in ends)
        return first, last

    def _start(self, value: object, number: object = None) -> dt.datetime | None:
        try:
            match value:
                case dt.datetime():
                    return value.replace(tzinfo=None)
                case dt.date():
                    return dt.datetime(value.year, value.month, value.day)  # noqa: DTZ001 - on the clock of UTC
                case int():
                    month = 1 if number is None else (int(str(number)) - 1) * _MONTHS[self.units[-1]] + 1
                    return dt.datetime(value, month, 1)  # noqa: DTZ001 - see above
                case str() if self.pattern is not None:
                    return _read(self.pattern, value)
                case _:
                    return None
        except ValueError:  # a year that is no datetime's
            return None


_Shown: TypeAlias = tuple[Period, frozenset[Place]] | None
_OfTree: TypeAlias = "Callable[[Demands, Plan, exp.Expr], _Shown]"


def _moved(at: dt.datetime, by: dt.timedelta) -> dt.datetime | None:
    try:
        return at + by
    except OverflowError:
        return None


def _read(pattern: str, text: str) -> dt.datetime | None:
    """The first time that a pattern of `date_format` writes so.

    >>> _read("dd.MM.yyyy", "28.02.2026")
    datetime.datetime(2026, 2, 28, 0, 0)
    """
    parts = pattern_parts(pattern) or ()
    looked_for = "".join(
        f"(?P<{_FIELDS[p]}>[0-9]{{{len(p)}}})" if is_field else re.escape(p) for p, is_field in parts
    )
    found = re.fullmatch(looked_for, text)
    if found is None:
        return None
    given = {"month": 1, "day": 1, **{name: int(digits) for name, digits in found.groupdict().items()}}
    return dt.datetime(**given)  # type: ignore[arg-type]  # noqa: DTZ001 - on the clock of UTC


def merged(spans: Iterable[Span], most: int) -> tuple[Span, ...]:
    """Spans that have all of some, in order, apart from each other, at most so many: the nearest are put together."""
    first, last = dt.datetime.min, dt.datetime.max  # noqa: DTZ901 - only compared
    found: list[list[dt.datetime]] = []
    for start, end in sorted((start or first, end or last) for start, end in spans):
        if found and start <= found[-1][1]:
            found[-1][1] = max(found[-1][1], end)
        else:
            found.append([start, end])
    if len(found) > most:
        gaps = sorted(range(1, len(found)), key=lambda i: found[i][0] - found[i - 1][1], reverse=True)
        cuts = [0, *sorted(gaps[: most - 1]), len(found)]
        found = [[found[a][0], found[b - 1][1]] for a, b in pairwise(cuts)]
    return tuple((None if a == first else a, None if b == last else b) for a, b in found)


def periods_of(
    demands: Demands, plan: Plan, numbers: Sequence[int]
) -> Iterator[tuple[tuple[int, ...], Period, frozenset[Place]]]:
    """Those of some columns of a plan, by their positions, that show days, months or years of base columns.

    With what they show, and where a demand for it may be put to: condition 1.
    """
    years = []
    for i, number in enumerate(numbers):
        shown = _below(demands, plan, number, _of_tree)
        if shown is not None and shown[0].units:
            yield (i,), *shown
            years += [(i, *shown)] if shown[0].units[-1] == "year" and not shown[0].is_time else []
    for j, number in enumerate(numbers) if years else ():
        part = _below(demands, plan, number, _of_number)
        for i, year, places in years if part else ():
            if part and part[1] == places and year.pattern is None and _inside(part[0]) == _inside(year):
                yield (i, j), replace(part[0], expressions=(*year.expressions, *part[0].expressions)), places


def _inside(period: Period) -> Expression:
    """Of what a year or a month is shown."""
    (shown,) = period.expressions
    of = shown.arguments[0] if isinstance(shown, Call) else shown
    while isinstance(of, Cast) and of.type == _DATE:  # which has the same year and month
        of = of.operand
    return of


def _below(demands: Demands, plan: Plan, number: int, of_tree: _OfTree) -> _Shown:
    """What a column of a plan shows, as its tree says, and where a demand for it may be put to."""
    if number not in plan.columns:
        return None
    match plan:
        case Filter(input) | Distinct(input):
            return _below(demands, input, number, of_tree)
        case Project(input, items):
            tree = next((tree for n, tree in items if n == number), None)
            return _below(demands, input, number, of_tree) if tree is None else of_tree(demands, input, tree)
        case Join("inner" | "left" | "semi" | "anti" as kind, left, right):
            if number in left.columns:
                return _below(demands, left, number, of_tree)
            return _below(demands, right, number, of_tree) if kind == "inner" else None
        case Aggregate(input, _, common):
            return _below(demands, input, number, of_tree) if number in common else None
        case Windows(input, items):
            parts = [{number_of(one) for one in tree.args.get("partition_by") or ()} for _, tree in items]
            return _below(demands, input, number, of_tree) if all(number in part for part in parts) else None
        case Combined(_, _, left, right, pairs):
            one, other = next((a, b) for own, a, b in pairs if own == number)
            sides = _below(demands, left, one, of_tree), _below(demands, right, other, of_tree)
            if sides[0] is None or sides[1] is None or sides[0][0] != sides[1][0]:
                return None
            return sides[0][0], sides[0][1] | sides[1][1]
        case _:
            return None


def _of_tree(demands: Demands, plan: Plan, tree: exp.Expr) -> _Shown:
    """The same of an expression over a plan's columns."""
    if (number := number_of(tree)) is not None:
        if (below := _below(demands, plan, number, _of_tree)) is not None:
            return below
        places = frozenset(p for p in demands.of(plan, number) if demands.type_of(p).name in _TIMES)
        return (Period(), places) if places and demands.alike(places) else None
    match tree:
        case exp.Paren():
            return _of_tree(demands, plan, tree.this)
        case exp.Cast(this=inside) if tree.to.is_type("date") and not tree.args.get("format"):
            return _over(_of_tree(demands, plan, inside), "day", lambda one: Cast(one, _DATE))
        case exp.TsOrDsToDate(this=inside) if not tree.args.get("format"):
            return _over(_of_tree(demands, plan, inside), "day", lambda one: Cast(one, _DATE))
        case exp.Year(this=inside):
            return _year_of(_of_tree(demands, plan, inside))
        case exp.Extract(this=exp.Var() as unit, expression=inside) if unit.name.lower() == "year":
            return _year_of(_of_tree(demands, plan, inside))
        case exp.LastDay(this=inside) if not tree.args.get("unit"):
            found = _over(_of_tree(demands, plan, inside), "day", lambda one: Call("last_day", (one,)))
            return found and (replace(found[0], back=found[0].back + _LENGTHS["month"]), found[1])
        case exp.Anonymous(expressions=[_, _]):
            return _of_call(demands, plan, tree)
        case _:
            return None


def _of_number(demands: Demands, plan: Plan, tree: exp.Expr) -> _Shown:
    """The same of the number of a month or quarter."""
    if (number := number_of(tree)) is not None:
        return _below(demands, plan, number, _of_number)
    match tree:
        case exp.Paren():
            return _of_number(demands, plan, tree.this)
        case exp.Month(this=inside) | exp.Quarter(this=inside):
            unit = "month" if isinstance(tree, exp.Month) else "quarter"
        case exp.Extract(this=exp.Var() as word, expression=inside) if word.name.lower() in _MONTHS:
            unit = word.name.lower()
        case _:
            return None
    found = _over(_of_tree(demands, plan, inside), unit, lambda one: Call(unit, (one,)))
    return found and (replace(found[0], is_time=False), found[1])


def _of_call(demands: Demands, plan: Plan, tree: exp.Anonymous) -> _Shown:
    """The same of a call whose unit or pattern is written out."""
    function = tree.name.lower()
    place = 0 if function == "date_trunc" else 1
    word, inside = tree.expressions[place], _of_tree(demands, plan, tree.expressions[1 - place])
    if not isinstance(word, exp.Literal) or not word.is_string:
        return None
    written = Constant(word.name)
    match function:
        case "date_trunc":
            unit = TIME_UNITS.get(word.name.lower())
            return _over(inside, unit, lambda one: Call(function, (written, one)))
        case "trunc":
            unit = DATE_UNITS.get(word.name.lower())
            return _over(inside, unit, lambda one: Call(function, (one, written)))
        case "date_format":
            found = _over(inside, _last_field(word.name), lambda one: Call(function, (one, written)))
            return found and (replace(found[0], is_time=False, pattern=word.name), found[1])
        case _:
            return None


def _year_of(inside: _Shown) -> _Shown:
    found = _over(inside, "year", lambda one: Call("year", (one,)))
    return found and (replace(found[0], is_time=False), found[1])


def _last_field(pattern: str) -> str | None:
    """The shortest unit of a pattern that has it and all longer ones, each once."""
    fields = [text for text, is_field in pattern_parts(pattern) or () if is_field]
    longest = list(_FIELDS)[: len(fields)]
    return _FIELDS[longest[-1]] if fields and sorted(fields) == sorted(longest) else None


def _over(inside: _Shown, unit: str | None, made: Callable[[Expression], Expression]) -> _Shown:
    """A function of what is shown, which cuts it to a unit; None if that is a number or a text."""
    if inside is None or unit is None or not inside[0].is_time:
        return None
    period, places = inside
    return replace(period, expressions=(made(*period.expressions),), units=(*period.units, unit)), places
