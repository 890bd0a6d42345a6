"""LEFT JOINs whose rows tell what they are made of: views of inner joins, each a selection of the stored rows.

    v:      SELECT o.id, o.day, c.id AS c, c.name FROM orders o LEFT JOIN customer c ON c.id = o.customer
    kept:   SELECT o.id, o.day FROM orders o
    side 1: SELECT o.id, o.day, c.id AS c, c.name FROM orders o JOIN customer c ON c.id = o.customer

The rows of `v` are those of side 1, and with nulls those of `kept` that have none there; the rows of `kept` are those
of `v` cut to `id` and `day`, and those of side 1 are the rows of `v` in which `c` is not null. Whoever knows `v` knows
both, and the other way round: so `v` is determined if and only if both are. The same holds of a view that groups by the
kept side's columns, with the groups of side 1 where there are some.

Conditions of soundness:

1. Rows of `kept` stand once, and so do those of each side: keys say so, which whoever makes views of them finds out.
   Then a row of the kept side, and what is joined with it, is what its columns in the view are.
2. Each column is computed from the kept side alone, or from one side alone; of a side's sources all columns are of
   tables: one that a query in FROM computes is null in a row without a partner, whatever it is computed from.
3. One column of each side tells rows without a partner: it is null in these alone, or a count that is 0 in these alone.
   Or a row of the kept side has at most one partner, by a key: then a row without one, and one with a partner all of
   whose columns are null, are the same row of the view, and the side is that of the other partners. Of a side that
   shows no column, at most one partner says nothing at all.
4. A condition of a join with what is joined before is false or unknown where that has no partner.
5. WHERE asks of the kept side alone, or is not true of a row without a partner: then that join is an inner one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from datalog.model import (
    Aggregate,
    ComputedColumn,
    Condition,
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
)
from datalog.rewrite.branches import column
from datalog.sql.views.blocks import named_block
from datalog.sql.views.conditions import conjuncts, some_value
from datalog.sql.views.innermost import innermost
from datalog.sql.views.joins import Piece, ReadSource, has_partner, join_pair
from datalog.sql.views.outer_sides import Sides, computed_value
from datalog.sql.views.outside import report_outside
from datalog.sql.views.query import QueryReader
from datalog.sql.views.row_keys import RowKeys
from datalog.sql.views.scope import Draft
from datalog.sql.views.select import conditions_of, groups_of, is_grouped, items_of
from datalog.sql.views.semi_joins import taken_out
from datalog.sql.views.source import UnreadableError


def outer_join(
    reader: QueryReader, tree: exp.Expr, view: str, columns: Sequence[str]
) -> tuple[tuple[str, ...], OuterJoin | None]:
    """The names of the columns of a view with LEFT JOINs, and what it is made of.

    `columns` are the names that are given with the view's; None if its rows do not tell, or it is read otherwise. The
    reader's problems are not to be shown: what is not read here stays as it was.
    """
    tree = tree.copy()
    try:
        select, reader = innermost(tree, reader)
        if not isinstance(select, exp.Select) or not any(j.side for j in select.args.get("joins") or ()):
            return (), None
        _turn(select)
        report_outside(tree, reader.problems)
        if reader.problems.found or taken_out(select).subqueries:
            return (), None
        names, found = _Reading(reader, select, view, tuple(columns)).read()
    except UnreadableError:
        return (), None
    return (names, found) if not reader.problems.found else ((), None)


def _turn(select: exp.Select) -> None:
    """Makes `a RIGHT JOIN b` `b LEFT JOIN a`, where it stands first and no `*` asks for the order."""
    first, (join, *_) = select.args["from_"], select.args["joins"]
    stars = any(isinstance(one, exp.Star) for one in select.expressions)
    if join.side == "RIGHT" and not stars and not join.args.get("using") and not join.method:
        kept, other = join.this, first.this
        first.set("this", kept), join.set("this", other), join.set("side", "LEFT")


@dataclass
class _Reading:
    """One SELECT.

    Attributes:
        view: the view's name.
        given_names: those of its columns that are given with it.
        piece: what is joined so far.
        sides: the sources of FROM, and what is joined by LEFT JOINs.
    """

    reader: QueryReader
    select: exp.Select
    view: str
    given_names: tuple[str, ...]
    piece: Piece = field(init=False)
    sides: Sides = field(init=False)

    def __post_init__(self) -> None:
        self.sides = Sides(self.reader)

    def read(self) -> tuple[tuple[str, ...], OuterJoin | None]:
        """The names of its columns, and what it is made of; None if a condition of soundness does not hold.

        Raises:
            UnreadableError: it cannot be read.
        """
        if not self._is_joined() or not self._is_filtered() or self.select.args.get("having") is not None:
            return (), None
        sides = self.sides
        stars = (what for n in sides.joined for _, what in sides.pieces[n].scope.star())
        if not all(isinstance(what, Variable) for what in stars):
            return (), None
        is_aggregated = is_grouped(self.select)
        if is_aggregated and sides.grouped:
            return (), None
        reader = self.reader.reader.within(self.piece.scope)
        items, aliases = items_of(self.select, reader.within(reader.scope, aggregates=is_aggregated))
        named = reader.within(replace(reader.scope, aliases=aliases))
        groups = groups_of(self.select, items, named) if is_aggregated else None
        names = self.given_names or tuple(name for name, _, _ in items)
        if not len(names) == len(items) == len({name.casefold() for name in names}):
            return (), None
        found = self._made_of([what for _, what, _ in items], groups, names)
        return (names, found) if found is not None else ((), None)

    def _made_of(
        self, whats: Sequence[Expression], groups: tuple[Expression, ...] | None, names: Sequence[str]
    ) -> OuterJoin | None:
        """What the rows of these columns are made of."""
        all_sides, apart = (
            self.sides,
            [self.sides.without_coalesce(what, is_grouped=bool(groups)) for what in whats],
        )
        outputs, given = [what for what, _ in apart], [default for _, default in apart]
        of = [all_sides.side_of(what) for what in outputs]
        if not self._is_by_kept_rows(groups, outputs, of):
            return None
        columns = tuple(i for i, one in enumerate(of) if one == 0)

        def definition(number: int, draft: Draft, columns: Sequence[int]) -> ViewDefinition:
            name = f"{self.view}#{number}"
            return ViewDefinition(name, tuple(names[i] for i in columns), (named_block(name, 0, draft),))

        rows = all_sides.draft(set(), [outputs[i] for i in columns], None)
        kept, key = definition(0, rows, columns), self._key(rows, columns)
        sides, told_of = list[OuterSide](), dict[int, Literal]()
        for number in all_sides.joined:
            before = all_sides.before(number)
            own = tuple(i for i, one in enumerate(of) if one == number)
            is_one = all_sides.has_one(number)
            if is_one and not own:
                continue
            is_of_groups = groups is not None or number in all_sides.grouped
            kept_too = key if is_of_groups and not before else columns
            with_ = tuple(i for i, one in enumerate(of) if i in kept_too or one in {number, *before})
            defaults = [one for i in own if (one := given[i] or all_sides.default(outputs[i])) is not None]
            told, partners = (
                all_sides.told(number, [(i, outputs[i], given[i]) for i in own]),
                list[Condition](),
            )
            if told is None and is_one and groups is None and number not in all_sides.grouped:
                told = _some_value([column(i) for i in own])
                partners = [some_value([outputs[i] for i in own])]
                defaults = [one for one in defaults if one.value is None]
            if told is None or len(defaults) < len(own):
                return None
            its = [all_sides.counted(outputs[i], number) for i in with_]
            by = self._by(number, its) if is_of_groups else None
            draft = all_sides.draft({number, *before}, its, by, partners)
            if number in all_sides.grouped and not all(
                has_one_value(o, draft.groups or ()) for o in draft.outputs
            ):
                return None
            made = definition(len(sides) + 1, draft, with_)
            sides.append(OuterSide(made, with_, own, tuple(defaults), told, all_sides.shown(number)))
            told_of[number] = told
        shown = [(i, whats[i], *apart[i], one) for i, one in enumerate(of) if one is not None]
        computed = [
            ComputedColumn(i, names[i], value)
            for i, one in enumerate(of)
            if one is None and (value := computed_value(all_sides, whats[i], shown, told_of)) is not None
        ]
        return (
            None
            if len(computed) < of.count(None)
            else OuterJoin(kept, columns, tuple(sides), tuple(computed), key)
        )

    def _key(self, rows: Draft, columns: Sequence[int]) -> tuple[int, ...]:
        """The columns that tell the rows of the kept side apart."""
        keys = RowKeys.of(rows.body, self.reader.relations.declared)
        return tuple(columns) if keys is None else tuple(columns[i] for i in keys.fewest(rows.outputs))

    def _by(self, number: int, outputs: Sequence[Expression]) -> tuple[Expression, ...]:
        """What a side is grouped by: the rows that it is joined with."""
        others = (
            what
            for what in outputs
            if not self.sides.sources([what]) & {number} and not aggregates_of([what])
        )
        return tuple(what for what in others if expression_variables([what]))

    def _is_by_kept_rows(
        self, groups: Sequence[Expression] | None, outputs: Sequence[Expression], of: Sequence[int | None]
    ) -> bool:
        """Whether a query that groups has a group for each row of the kept side, and aggregates of one side beside."""
        if groups is None:
            return True
        kept = {what for what, number in zip(outputs, of, strict=True) if number == 0}
        others = [what for what, number in zip(outputs, of, strict=True) if number]
        return (
            len(self.sides.joined) == 1
            and self.sides.sources(groups) <= self.sides.kept
            and kept == set(groups)
            and all(isinstance(what, Aggregate) for what in others)
        )

    def _is_joined(self) -> bool:
        """Reads FROM; whether condition 4 holds."""
        read: ReadSource = self.reader.source
        joins, sides = self.select.args["joins"], self.sides
        for tree in (self.select.args["from_"].this, *(join.this for join in joins)):
            alternatives = read(tree)
            (piece, *others) = alternatives
            is_grouped_query = piece.draft.groups is not None
            if others or piece.distinct or (is_grouped_query and not _may_be_joined(piece)):
                return False
            sides.add(piece)
        if 0 in sides.grouped:
            return False
        self.piece = sides.pieces[0]
        sides.given += self.piece.conditions
        for number, (join, right) in enumerate(zip(joins, sides.pieces[1:], strict=True), 1):
            if join.side not in ("", "LEFT") or (not join.side and number in sides.grouped):
                return False
            before = self.piece
            self.piece = join_pair(before, right, join, self.reader.reader)
            made = list(conjuncts(self.piece.conditions[len(before.conditions) :]))
            if (sides.sources(made) - {number}) & sides.grouped.keys():
                return False
            of_kept = sides.sources(made) <= sides.kept | {number}
            if not join.side and not of_kept:
                return False
            declared = self.reader.relations.declared
            if not join.side or (of_kept and has_partner(before, right, self.piece, declared)):
                sides.kept.add(number)
                sides.given += made
            elif all(sides.is_strict(one, sides.sources([one]) - sides.kept - {number}) for one in made):
                sides.joined[number] = made
            else:
                return False
            if number in sides.grouped and not sides.has_one(number):
                return False
        return True

    def _is_filtered(self) -> bool:
        """Reads WHERE; whether condition 5 holds."""
        where, sides = self.select.args.get("where"), self.sides
        reader = self.reader.reader.within(self.piece.scope)
        waiting = [] if where is None else list(conjuncts(conditions_of(reader, where.this)))
        while waiting:
            ready = [one for one in waiting if sides.sources([one]) <= sides.kept]
            sides.given += ready
            waiting = [one for one in waiting if one not in ready]
            inner = next((number for one in waiting if (number := self._made_inner(one)) is not None), None)
            if inner is None:
                break
            sides.kept.add(inner)
            sides.given += sides.joined.pop(inner)
        return not waiting

    def _made_inner(self, test: Condition) -> int | None:
        """The side of which a test is not true where it has no partner, and that joins with the kept one alone."""
        sides = self.sides
        for number in sides.sources([test]) - sides.kept - sides.grouped.keys():
            of_kept = sides.sources(sides.joined[number]) <= sides.kept | {number}
            if sides.is_strict(test, {number}) and of_kept:
                return number
        return None


def _may_be_joined(piece: Piece) -> bool:
    """Whether a grouped query has no row of no rows, and stands as one source."""
    return bool(piece.draft.groups) and len(piece.scope.sources) == 1 and not piece.conditions


def _some_value(columns: Sequence[Variable]) -> Literal:
    """That some of a row's columns is not null."""
    if len(columns) == 1:
        return NullTest(columns[0])
    return Negation(tuple(NullTest(one, negated=False) for one in columns))
