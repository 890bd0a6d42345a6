"""Groups whose counts and sums follow from the rows that they gain and lose.

    SELECT o_orderpriority, count(*) FROM orders WHERE EXISTS (...) GROUP BY o_orderpriority

The rows that are grouped are followed by a key of theirs, an order's number: the query is run over the base rows of the
orders that change, as they were and as they are, and what differs is added to the stored counts. No other row of a
group is read.

Conditions of soundness:

1. Both times the query is run over the same rows but for those that change: all that rows with an affected key depend
   on, before or after. So what it gives of rows with another key, which depend on no changed row, is the same, and
   what differs is what rows with an affected key add and take away.
2. Counts and sums of whole numbers and decimals are exact, so what rows add can be taken away again.
3. A group is gone if its count(*) is 0. Without one a group is there whose sums are not all 0; else it is not known.
   Rows of several grouping sets are told apart by their nulls, if what is grouped by is never null, or by `grouping`.
4. What was there before is computed again, so it has to come out as it did: nothing may depend on the order of rows.
5. An average is the quotient of its sum and its count, which stand beside it.
6. A sum is null if no value is left. A count of the values beside it says that, or where a value cannot be null a
   count(*); else a sum that is 0 says nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec import Struct, field
from sqlglot import exp

from datalog.model import TypeName
from datalog.sql.affected.choice import Keyed, NotKeyed, keyed
from datalog.sql.affected.demands import Demands
from datalog.sql.affected.determined import is_determined
from datalog.sql.affected.plan import Aggregate, Plan, Project, Query, never_null, number_of

_SETS = (exp.Grouping, exp.GroupingId)


class Additive(Struct, frozen=True):
    """How groups follow from the rows that they gain and lose.

    Attributes:
        rows: how the rows that are grouped are followed.
        groups: 0-based positions of the view's columns that are grouped by; none if there is one group of all rows.
        counts: positions of counts.
        sums: positions of sums.
        size: the position of count(*), if there is one.
        whole_sums: the sums whose values are never null.
        counted: by sum, the position of a count of its values.
        averages: by average, the positions of the sum and the count of its values.
    """

    rows: Keyed
    groups: tuple[int, ...]
    counts: tuple[int, ...]
    sums: tuple[int, ...]
    size: int | None
    whole_sums: frozenset[int]
    counted: Mapping[int, int] = field(default_factory=dict)
    averages: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def is_certain(self) -> bool:
        """Whether a group's new values are known whatever its values are (conditions 3 and 6)."""
        known = all(one in self.whole_sums or one in self.counted for one in self.sums)
        return known and not (self.groups and self.size is None)


def additive(query: Query, changed: Collection[str]) -> Additive | NotKeyed:
    """How the groups of a query follow from the rows that they gain and lose, under a change of some relations."""
    top = query.plan
    if not (isinstance(top, Project) and isinstance(top.input, Aggregate)):
        return NotKeyed("it is more than groups with counts and sums")
    grouping, trees = top.input, dict(top.items)
    shown = _Shown(grouping, Demands(query.plan))
    found = [number_of(trees[number]) for _, number in query.outputs]
    if not _are_told_apart(grouping, found):
        return NotKeyed("its groups of several grouping sets are not told apart")
    if not all(shown.takes(position, inside) for position, inside in enumerate(found)):
        return NotKeyed("it has more than counts and sums of its groups")
    if not set(shown.averages.values()) <= shown.sums.keys() & shown.numbers.keys():
        return NotKeyed("it has an average without its sum and its count")
    if not set(grouping.groups) <= set(found) or not (shown.counts or shown.sums):
        return NotKeyed("it does not show what it groups by")
    if not is_determined(grouping.input):
        return NotKeyed("its rows may depend on the order in which others come")
    inner = Query(grouping.input, tuple((f"c{number}", number) for number in grouping.input.columns))
    rows = keyed(inner, changed)
    return rows if isinstance(rows, NotKeyed) else shown.followed_by(rows)


class _Shown(Struct):
    """What the columns of a query that groups are.

    Attributes:
        demands: where its values come from.
        groups: positions of columns grouped by.
        counts: positions of counts.
        sizes: positions of count(*).
        numbers: positions of counts of values, by these.
        sums: positions of sums, by the values; the last of equal ones.
        totals: positions of all sums.
        averages: by position, the values of an average.
        certain: positions of sums whose values are never null.
    """

    grouping: Aggregate
    demands: Demands
    groups: list[int] = field(default_factory=list)
    counts: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    sums: dict[str, int] = field(default_factory=dict)
    totals: list[int] = field(default_factory=list)
    averages: dict[int, str] = field(default_factory=dict)
    certain: set[int] = field(default_factory=set)

    def takes(self, position: int, inside: int | None) -> bool:
        """Notes what a column is; whether that is known."""
        match dict(self.grouping.items).get(inside) if inside is not None else None:
            case None if inside in self.grouping.groups:
                self.groups.append(position)
            case exp.Grouping() | exp.GroupingId():
                self.groups.append(position)
            case exp.Count(this=exp.Star() | exp.Literal()):
                self.sizes.append(position)
                self.counts.append(position)
            case exp.Count(this=one, expressions=more) if not isinstance(one, exp.Distinct) and not more:
                self.counts.append(position)
                self.numbers[one.sql()] = position
            case exp.Sum(this=one) if _is_exact(self.demands, one):
                self.totals.append(position)
                self.sums[one.sql()] = position
                if _is_never_null(self.grouping.input, one):
                    self.certain.add(position)
            case exp.Avg(this=one) if _is_exact(self.demands, one):
                self.averages[position] = one.sql()
            case _:
                return False
        return True

    def followed_by(self, rows: Keyed) -> Additive:
        """How the groups follow from rows."""
        return Additive(
            rows,
            tuple(self.groups),
            tuple(self.counts),
            tuple(self.totals),
            self.sizes[0] if self.sizes else None,
            frozenset(self.certain),
            {position: self.numbers[sql] for sql, position in self.sums.items() if sql in self.numbers},
            {position: (self.sums[sql], self.numbers[sql]) for position, sql in self.averages.items()},
        )


def _are_told_apart(grouping: Aggregate, shown: Collection[int | None]) -> bool:
    """Whether what is shown says which group, and of which grouping set, a row is."""
    calls = [tree for number, tree in grouping.items if number in shown and isinstance(tree, _SETS)]
    told = {number_of(one) for tree in calls for one in tree.expressions}
    among = {number for some in grouping.sets for number in some} - grouping.common - told
    never = all(never_null(grouping.input, number) for number in among)
    return never and len(set(grouping.sets)) == len(grouping.sets)


def _is_exact(demands: Demands, tree: exp.Expr) -> bool:
    """Whether an expression is a whole number or a decimal: sums, differences and products of base columns that are."""
    number = number_of(tree)
    if number is not None:
        places = demands.origins(number)
        return bool(places) and all(
            (kind := demands.type_of(place).name).is_integer or kind is TypeName.DECIMAL for place in places
        )
    if isinstance(tree, exp.Case):
        ends = [tree.args.get("default"), *(one.args["true"] for one in tree.args["ifs"])]
        return all(one is None or _is_exact(demands, one) for one in ends)
    if isinstance(tree, exp.Coalesce):
        return all(_is_exact(demands, one) for one in (tree.this, *tree.expressions))
    if isinstance(tree, exp.Cast):
        return tree.to.is_type(*exp.DataType.INTEGER_TYPES, "decimal") and _is_exact(demands, tree.this)
    if isinstance(tree, exp.Literal):
        return not tree.is_string and "e" not in tree.name.lower()
    if not isinstance(tree, exp.Add | exp.Sub | exp.Mul | exp.Paren | exp.Neg):
        return False
    return all(_is_exact(demands, one) for one in (tree.this, tree.args.get("expression")) if one is not None)


def _is_never_null(plan: Plan, tree: exp.Expr) -> bool:
    """Whether an expression is certainly not null: arithmetic that cannot fail on columns that are not."""
    if isinstance(tree, exp.Column):
        number = number_of(tree)
        return number is not None and never_null(plan, number)
    if isinstance(tree, exp.Case):
        ends = [tree.args.get("default"), *(one.args["true"] for one in tree.args["ifs"])]
        return all(one is not None and _is_never_null(plan, one) for one in ends)
    if not isinstance(tree, exp.Add | exp.Sub | exp.Mul | exp.Paren | exp.Neg):
        return isinstance(tree, exp.Literal)
    return all(
        _is_never_null(plan, one) for one in (tree.this, tree.args.get("expression")) if one is not None
    )
