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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from datalog.analysis.expression_types import expression_type
from datalog.evaluate import EvaluationError
from datalog.evaluate.order import is_nan
from datalog.evaluate.scalars import Scalars
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    Call,
    Comparison,
    Condition,
    Constant,
    Expression,
    Literal,
    Negation,
    NullTest,
    OuterJoin,
    OuterSide,
    Value,
    Variable,
    ViewDefinition,
    aggregates_of,
    expression_variables,
)
from datalog.rewrite.branches import column
from datalog.sql.views.blocks import named_block
from datalog.sql.views.conditions import conjuncts, in_one, some_value
from datalog.sql.views.innermost import innermost
from datalog.sql.views.outer_sources import NotToldError, Sides
from datalog.sql.views.outside import report_outside
from datalog.sql.views.query import QueryReader
from datalog.sql.views.scope import Draft
from datalog.sql.views.select import groups_of, is_grouped, items_of, with_conditions
from datalog.sql.views.semi_joins import taken_out
from datalog.sql.views.source import UnreadableError


@dataclass(frozen=True, slots=True)
class Told:
    """A view with LEFT JOINs.

    Attributes:
        names: its columns' names.
        outer: what it is made of, if the rows of that stand once.
        hint: what to show so that they do.
    """

    names: tuple[str, ...]
    outer: OuterJoin
    hint: str


def outer_join(reader: QueryReader, tree: exp.Expr, view: str, columns: Sequence[str]) -> Told | None:
    """What a view with LEFT JOINs is made of; None of another view.

    `columns` are the names that are given with the view's. The reader's problems are not to be shown: what is not read
    here stays as it was.

    Raises:
        NotToldError: its rows do not tell.
    """
    tree = tree.copy()
    try:
        select, reader = innermost(tree, reader)
        if not isinstance(select, exp.Select) or not any(j.side for j in select.args.get("joins") or ()):
            return None
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


@dataclass(frozen=True)
class _Reading:
    """One SELECT.

    Attributes:
        its: what it joins.
        view: the view's name.
        given_names: those of its columns that are given with it.
    """

    its: Sides
    view: str
    given_names: tuple[str, ...]

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
        reader = its.reader.reader.within(its.piece.scope)
        items, aliases = items_of(select, reader.within(reader.scope, aggregates=is_aggregated))
        named = reader.within(replace(reader.scope, aliases=aliases))
        groups = groups_of(select, items, named) if is_aggregated else None
        names = self.given_names or tuple(name for name, _, _ in items)
        if len(names) < len(items) or len(names) > len({name.casefold() for name in names}):
            raise NotToldError("give each column a name of its own: `... as name`")
        apart = [self._without_coalesce(what) for _, what, _ in items]
        outputs, given = [what for what, _ in apart], [default for _, default in apart]
        of = [self._of(name, what) for name, what in zip(names, outputs, strict=True)]
        self._require_kept_groups(groups, outputs, of)
        columns = tuple(i for i, one in enumerate(of) if one == 0)
        kept = self._definition(names, 0, self._draft(set(), [outputs[i] for i in columns], None), columns)
        sides = list[OuterSide]()
        for number in its.sides:
            before = its.before(number)
            own = tuple(i for i, one in enumerate(of) if one == number)
            is_one = its.has_one(number)
            if is_one and not own:
                continue
            with_ = tuple(i for i, one in enumerate(of) if one in {0, number, *before})
            defaults = [given[i] or self._default(outputs[i]) for i in own]
            plain = [(i, outputs[i]) for i in own if given[i] is None]
            told, partners = self._told(number, plain), list[Condition]()
            if told is None and is_one and groups is None and all(one == Constant(None) for one in defaults):
                told = _some_value([column(i) for i in own])
                partners = [some_value([outputs[i] for i in own])]
            if told is None:
                raise NotToldError(self._what_tells(number, is_aggregated=is_aggregated))
            known = tuple(one for one in defaults if one is not None)
            if len(known) < len(own):
                name = names[next(i for i, one in zip(own, defaults, strict=True) if one is None)]
                raise NotToldError(
                    f"show what `{name}` is computed from, and compute it when reading the view"
                )
            shown = [self._counted(outputs[i], number) for i in with_]
            draft = self._draft({number, *before}, shown, groups, partners)
            made = self._definition(names, len(sides) + 1, draft, with_)
            sides.append(OuterSide(made, with_, own, known, told, its.shown(number)))
        hint = its.missing_keys(outputs, is_aggregated=is_aggregated)
        return Told(names, OuterJoin(kept, columns, tuple(sides)), hint)

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

    def _without_coalesce(self, what: Expression) -> tuple[Expression, Constant | None]:
        """An aggregate in place of `coalesce(aggregate, constant)` where it is never null, and that constant.

        So are the sum, the extrema and the average of what is never null in a row that has a partner.
        """
        match what:
            case Call("coalesce", (Aggregate(operand=Variable() as operand) as its, Constant() as other)):
                of, types = self.its.owners[operand], self.its.reader.variables.types
                kinds = [expression_type(one, types) for one in (what, its)]
                alike = kinds[0] == kinds[1] and its.function is not AggregateFunction.COUNT
                if (
                    alike
                    and other.value is not None
                    and of in self.its.sides
                    and self.its.is_never_null(operand, of)
                ):
                    return its, other
        return what, None

    def _require_kept_groups(
        self, groups: Sequence[Expression] | None, outputs: Sequence[Expression], of: Sequence[int]
    ) -> None:
        """That a query that groups has a group for each row of the kept side, and aggregates of one side beside."""
        if groups is None:
            return
        kept = {what for what, number in zip(outputs, of, strict=True) if number == 0}
        others = [what for what, number in zip(outputs, of, strict=True) if number != 0]
        self._only_side()
        if not self.its.sources(groups) <= self.its.kept:
            raise NotToldError("group by columns of the kept side alone")
        if kept != set(groups) or not all(isinstance(what, Aggregate) for what in others):
            raise NotToldError("show all columns that are grouped by, and aggregates beside them")

    def _only_side(self) -> int:
        if not self.its.sides:
            raise NotToldError("write JOIN for the LEFT JOIN: here each row that counts has a partner")
        if len(self.its.sides) > 1:
            raise NotToldError("count the rows of each joined table in a view of its own")
        return next(iter(self.its.sides))

    def _of(self, name: str, what: Expression) -> int:
        """The side that a column is of; 0 for the kept one."""
        every = self.its.sources([what])
        sources = every - self.its.kept
        if aggregates_of([what]):
            if not isinstance(what, Aggregate) or what.distinct or every & self.its.kept:
                raise NotToldError(
                    f"show what `{name}` is computed from, aggregates of the joined table: `sum(x)`, `count(x)`"
                )
            return self._only_side()
        if not sources:
            return 0
        if every & self.its.kept or len(sources) > 1:
            raise NotToldError(
                f"show the columns that `{name}` is computed from, and compute it when reading the view"
            )
        return sources.pop()

    def _draft(
        self,
        numbers: set[int],
        outputs: Sequence[Expression],
        groups: tuple[Expression, ...] | None,
        more: Iterable[Condition] = (),
    ) -> Draft:
        """The kept side joined with some sides."""
        numbers = numbers | self.its.kept
        body = tuple(literal for n in sorted(numbers) for literal in self.its.pieces[n].draft.body)
        filters = tuple(one for n in sorted(numbers) for one in self.its.pieces[n].draft.filters)
        tests = [
            *self.its.given,
            *(test for n in sorted(numbers - self.its.kept) for test in self.its.sides[n]),
        ]
        draft = Draft(body, tuple(outputs), filters, groups)
        return with_conditions(draft, map(in_one, [*conjuncts(tests), *more]), self.its.reader.variables)

    def _default(self, what: Expression) -> Constant | None:
        """What a column of a side holds in a row without a partner; None if no literal can compare with that."""
        nulls: dict[Variable, Value] = dict.fromkeys(expression_variables([what]))
        operand = what.operand if isinstance(what, Aggregate) else what
        try:
            value = 1 if operand is None else Scalars(self.its.reader.variables.types, nulls).value(operand)
        except EvaluationError:
            return None
        function = what.function if isinstance(what, Aggregate) else None
        if function is AggregateFunction.COUNT:
            return Constant(0 if value is None else 1)
        is_average = function is AggregateFunction.AVG and value is not None
        is_mixed = value is not None and expression_type(what, self.its.reader.variables.types) in (None, ANY)
        return None if is_average or is_mixed or is_nan(value) else Constant(value)

    def _counted(self, what: Expression, number: int) -> Expression:
        """`count(x)` of what is never null as the number of partners that it is."""
        if not isinstance(what, Aggregate) or what.function is not AggregateFunction.COUNT:
            return what
        counts = isinstance(what.operand, Variable) and self.its.is_never_null(what.operand, number)
        return Aggregate(AggregateFunction.COUNT) if counts else what

    def _told(self, number: int, own: Iterable[tuple[int, Expression]]) -> Literal | None:
        """What of a row says that it has a partner: condition 3."""
        for i, what in own:
            if isinstance(what, Variable) and self.its.is_never_null(what, number):
                return NullTest(column(i))
            if not isinstance(what, Aggregate) or not isinstance(what.operand, Variable):
                continue
            if not self.its.is_never_null(what.operand, number):
                continue
            if what.function is AggregateFunction.COUNT:
                return Comparison(">", column(i), Constant(0))
            return NullTest(column(i))
        return None


def _some_value(columns: Sequence[Variable]) -> Literal:
    """That some of a row's columns is not null."""
    if len(columns) == 1:
        return NullTest(columns[0])
    return Negation(tuple(NullTest(one, negated=False) for one in columns))
