"""Outer joins whose rows tell what they are made of: views of inner joins, each a selection of the stored rows.

Here LEFT JOINs, and what is written as one (`scalar_subqueries.py`); of a FULL JOIN see `full_joins.py`.

    v:      SELECT o.id, o.day, c.id AS c, c.name FROM orders o LEFT JOIN customer c ON c.id = o.customer
    kept:   SELECT o.id, o.day FROM orders o           with `o.customer AS c`, if that references `customer (id)`
    side 1: SELECT o.id, o.day, c.id AS c, c.name FROM orders o JOIN customer c ON c.id = o.customer

The rows of `v` are those of side 1, and with nulls those of `kept` that have none there; the rows of `kept` are those
of `v` cut to `id` and `day`, and those of side 1 are the rows of `v` in which `c` is not null. Whoever knows `v` knows
both, and the other way round: so `v` is determined if and only if both are. The same holds of a view that groups by the
kept side's columns, with the groups of side 1 where there are some.

Conditions of soundness:

1. Rows of `kept` stand once, and so do those of each side: keys say so, which whoever makes views of them finds out.
   Then a row of the kept side, and what is joined with it, is what its columns in the view are.
2. Each column is computed from the kept side alone, from one side alone, or from other columns of the view
   (`outer_computed.py`). Of a side's sources all columns are of tables, or of a query that groups (`outer_sources.py`):
   one that a query in FROM computes is null in a row without a partner, whatever it is computed from.
3. One column of each side tells rows without a partner: it is null in these alone, or a count that is 0 in these alone.
   Or a row of the kept side has at most one partner, by a key: then a row without one, and one with a partner all of
   whose columns are null, are the same row of the view, and the side is that of the other partners. Of a side that
   shows no column, at most one partner says nothing at all. Or a side shows nothing but sums of what is never null, 0
   for none: then it is that of the groups in which one is not 0, and nothing else is computed from what is joined.
4. A condition of a join with what is joined before is false or unknown where that has no partner.
5. WHERE asks of the kept side alone, or is not true of a row without a partner: then that join is an inner one.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from sqlglot import exp

from datalog.copies import replace
from datalog.model import (
    Aggregate,
    ComputedColumn,
    Condition,
    Constant,
    Expression,
    Literal,
    Negation,
    NullTest,
    OuterJoin,
    OuterSide,
    Variable,
    ViewDefinition,
    aggregates_of,
    expression_variables,
    has_one_value,
    map_expression,
)
from datalog.rewrite.branches import column
from datalog.sql.views.blocks import named_block
from datalog.sql.views.conditions import some_value
from datalog.sql.views.nested.innermost import innermost
from datalog.sql.views.nested.semi_joins import taken_out
from datalog.sql.views.outer.full_joins import full_join, is_full_join
from datalog.sql.views.outer.outer_columns import Columns
from datalog.sql.views.outer.outer_computed import computed_value
from datalog.sql.views.outer.outer_sources import NotToldError, Sides
from datalog.sql.views.outside import report_outside
from datalog.sql.views.query import QueryReader
from datalog.sql.views.scope import Draft
from datalog.sql.views.select import groups_of, is_grouped, items_of
from datalog.sql.views.source import UnreadableError
from datalog.sql.views.split.row_keys import RowKeys
from datalog.sql.views.written_out.chained_groups import join_chains
from datalog.sql.views.written_out.distinct_values import without_distinct
from datalog.sql.views.written_out.scalar_subqueries import join_scalars


class Told(Struct, frozen=True):
    """A view with outer joins.

    Attributes:
        names: its columns' names.
        outer: what it is made of, if the rows of that stand once.
        hint: what to show so that they do.
    """

    names: tuple[str, ...]
    outer: OuterJoin
    hint: str


def outer_join(reader: QueryReader, tree: exp.Expr, view: str, columns: Sequence[str]) -> Told | None:
    """What a view with outer joins is made of; None of another view.

    `columns` are the names that are given with the view's. The reader's problems are not to be shown: what is not read
    here stays as it was.

    Raises:
        NotToldError: its rows do not tell.
    """
    tree = tree.copy()
    try:
        select, reader = innermost(tree, reader)
        if not isinstance(select, exp.Select):
            return None
        join_scalars(select)
        join_chains(select, reader)
        if not any(j.side for j in select.args.get("joins") or ()):
            return None
        if is_full_join(select):
            full = full_join(reader, select, view, columns)
            return None if full is None or reader.problems.found else Told(*full)
        _turn(select)
        report_outside(tree, reader.problems)
        if reader.problems.found:
            return None
        if taken_out(select).subqueries:
            raise NotToldError("make the query without the subquery in its condition a view, and read that")
        found = _Reading(Sides(reader, select), view, tuple(columns)).read()
    except UnreadableError:
        return None
    return None if reader.problems.found else found


def _turn(select: exp.Select) -> None:
    """Makes `a RIGHT JOIN b` `b LEFT JOIN a`, where it stands first and no `*` asks for the order."""
    first, (join, *_) = select.args["from_"], select.args["joins"]
    stars = any(isinstance(one, exp.Star) for one in select.expressions)
    if join.side == "RIGHT" and not stars and not join.args.get("using") and not join.method:
        kept, other = join.this, first.this
        first.set("this", kept), join.set("this", other), join.set("side", "LEFT")


class _Reading(Struct, frozen=True):
    """One SELECT.

    Attributes:
        its: what it joins.
        view: the view's name.
        given_names: those of its columns that are given with it.
    """

    its: Sides
    view: str
    given_names: tuple[str, ...]

    @property
    def columns(self) -> Columns:
        """What its columns are."""
        return Columns(self.its)

    def read(self) -> Told:
        """What it is made of.

        Raises:
            UnreadableError: it cannot be read.
            NotToldError: a condition of soundness does not hold.
        """
        its, select = self.its, self.its.select
        if select.args.get("having") is not None:
            raise NotToldError("leave HAVING out, and choose the groups when reading the view")
        is_aggregated = is_grouped(select)
        if is_aggregated and its.grouped:
            raise NotToldError("group in the queries that are joined, or around them, and not in both")
        reader = its.reader.reader.within(its.piece.scope)
        items, aliases = items_of(select, reader.within(reader.scope, aggregates=is_aggregated))
        named = reader.within(replace(reader.scope, aliases=aliases))
        groups = groups_of(select, items, named) if is_aggregated else None
        names = self.given_names or tuple(name for name, *_ in items)
        if len(names) < len(items) or len(names) > len({name.casefold() for name in names}):
            raise NotToldError("give each column a name of its own: `... as name`")
        joined = Draft(its.piece.draft.body, tuple(what for _, what, *_ in items), groups=groups)
        whats = without_distinct(joined, its.reader.variables, its.reader.relations.declared).outputs
        if not is_aggregated:
            whats = tuple(map_expression(its.referencing, what) for what in whats)
        found = self._made_of(whats, groups, names)
        hint = its.missing_keys(whats, is_aggregated=is_aggregated)
        return Told(names, found, hint)

    def _made_of(
        self, whats: Sequence[Expression], groups: tuple[Expression, ...] | None, names: Sequence[str]
    ) -> OuterJoin:
        """What the rows of these columns are made of."""
        its, columns = self.its, self.columns
        apart = [columns.without_coalesce(what, is_grouped=bool(groups)) for what in whats]
        outputs = [what for what, _ in apart]
        of = [columns.side_of(what) for what in outputs]
        self._require_kept_groups(groups, outputs, of)
        places = tuple(i for i, one in enumerate(of) if one == 0)
        rows = columns.draft(set(), [outputs[i] for i in places], None)
        kept, key = self._definition(names, 0, rows, places), self._key(rows, places)
        sides, told = list[OuterSide](), dict[int, Literal]()
        for number in its.sides:
            if number in of or not its.has_one(number):
                side, has_partner = self._side(number, len(sides) + 1, apart, of, groups, names, key)
                sides.append(side)
                told |= {number: side.told} if has_partner else {}
        shown = [(i, whats[i], *apart[i], one) for i, one in enumerate(of) if one is not None]
        computed = list[ComputedColumn]()
        for i, name in enumerate(names):
            value = None if of[i] is not None else computed_value(its, whats[i], shown, told)
            if value is not None:
                computed.append(ComputedColumn(i, name, value))
            elif of[i] is None:
                raise NotToldError(f"show what `{name}` is computed from in columns of their own")
        computed += [
            ComputedColumn(i, names[i], value)
            for i, whole, plain, _, _ in shown
            if (value := its.as_shown(whole, plain, column(i))) != column(i)
        ]
        return OuterJoin(kept, places, tuple(sides), tuple(computed), key)

    def _side(
        self,
        number: int,
        part: int,
        apart: Sequence[tuple[Expression, Constant | None]],
        of: Sequence[int | None],
        groups: tuple[Expression, ...] | None,
        names: Sequence[str],
        key: Sequence[int],
    ) -> tuple[OuterSide, bool]:
        """What one join adds, and whether it tells rows without a partner."""
        its, columns, outputs = self.its, self.columns, [what for what, _ in apart]
        before = its.before(number)
        own = tuple(i for i, one in enumerate(of) if one == number)
        is_of_groups = groups is not None or number in its.grouped
        kept = [i for i, one in enumerate(of) if one == 0 and (before or not is_of_groups or i in key)]
        with_ = tuple(i for i, one in enumerate(of) if i in kept or one in {number, *before})
        defaults = [apart[i][1] or columns.default(outputs[i]) for i in own]
        references = [i for i in kept if its.refers_to(outputs[i], number)]
        told = columns.told(number, [(i, *apart[i]) for i in own]) or _some_value(references[:1])
        partners = list[Condition]()
        if told is None and not is_of_groups and its.has_one(number) and {*defaults} == {Constant(None)}:
            told = _some_value(own)
            partners = [some_value([outputs[i] for i in own])]
        has_partner = told is not None
        if told is None and is_of_groups:
            nonzero = columns.nonzero(number, [(i, outputs[i]) for i in own], defaults)
            told, partners = (None, partners) if nonzero is None else (nonzero[0], [nonzero[1]])
        if told is None:
            raise NotToldError(self._what_tells(number, is_aggregated=groups is not None))
        known = tuple(one for one in defaults if one is not None)
        if len(known) < len(own):
            name = names[next(i for i, one in zip(own, defaults, strict=True) if one is None)]
            raise NotToldError(f"show what `{name}` is computed from, and compute it when reading the view")
        shown = [columns.counted(outputs[i], number) for i in with_]
        by = self._by(number, shown) if is_of_groups else None
        draft = columns.draft({number, *before}, shown, by, partners)
        if number in its.grouped and not all(has_one_value(o, draft.groups or ()) for o in draft.outputs):
            raise NotToldError(f"join `{its.shown(number)}` by columns of one type")
        made = self._definition(names, part, draft, with_)
        return OuterSide(made, with_, own, known, told, its.shown(number)), has_partner

    def _key(self, rows: Draft, places: Sequence[int]) -> tuple[int, ...]:
        """The columns that tell the rows of the kept side apart."""
        keys = RowKeys.of(rows.body, self.its.reader.relations.declared)
        return tuple(places) if keys is None else tuple(places[i] for i in keys.fewest(rows.outputs))

    def _by(self, number: int, outputs: Sequence[Expression]) -> tuple[Expression, ...]:
        """What a side is grouped by: the rows that it is joined with."""
        others = (o for o in outputs if not self.its.sources([o]) & {number} and not aggregates_of([o]))
        return tuple(what for what in others if expression_variables([what]))

    def _definition(
        self, names: Sequence[str], number: int, draft: Draft, columns: Sequence[int]
    ) -> ViewDefinition:
        name = f"{self.view}#{number}"
        return ViewDefinition(name, tuple(names[i] for i in columns), (named_block(name, 0, draft),))

    def _what_tells(self, number: int, *, is_aggregated: bool) -> str:
        """What to show so that rows without a partner are told: condition 3."""
        side = self.its.shown(number)
        never = [
            name
            for name, what in self.its.pieces[number].scope.star()
            if isinstance(what, Variable) and self.its.is_never_null(what, number)
        ]
        if not never:
            return f"declare a column of `{side}` not null, or a key, and show it"
        if is_aggregated:
            return f"show how many rows of `{side}` there are: `count({side}.{never[0]})`"
        return f"show a column of `{side}` that is never null: `{side}.{never[0]}`"

    def _require_kept_groups(
        self, groups: Sequence[Expression] | None, outputs: Sequence[Expression], of: Sequence[int | None]
    ) -> None:
        """That a query that groups has a group for each row of the kept side, and aggregates of one side beside."""
        if groups is None:
            return
        kept = {what for what, number in zip(outputs, of, strict=True) if number == 0}
        others = [what for what, number in zip(outputs, of, strict=True) if number]
        self.columns.only_side()
        if not self.its.sources(groups) <= self.its.kept:
            raise NotToldError("group by columns of the kept side alone")
        if kept != set(groups) or not all(isinstance(what, Aggregate) for what in others):
            raise NotToldError("show all columns that are grouped by, and aggregates beside them")


def _some_value(places: Sequence[int]) -> Literal | None:
    """That some of a row's columns is not null; None of no columns."""
    tests = tuple(NullTest(column(i), negated=len(places) == 1) for i in places)
    return Negation(tests) if len(tests) > 1 else next(iter(tests), None)
