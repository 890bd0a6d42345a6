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
from dataclasses import dataclass, field, replace

from sqlglot import exp

from datalog.analysis.expression_types import expression_type
from datalog.evaluate import EvaluationError
from datalog.evaluate.order import is_nan
from datalog.evaluate.scalars import Scalars
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    Atom,
    Call,
    Compared,
    Comparison,
    Condition,
    Constant,
    Expression,
    IsNull,
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
    variables_of,
)
from datalog.rewrite.branches import column
from datalog.sql.views.blocks import named_block
from datalog.sql.views.conditions import conjuncts, in_one, some_value
from datalog.sql.views.innermost import innermost
from datalog.sql.views.joins import Piece, ReadSource, has_partner, join_pair
from datalog.sql.views.outside import report_outside
from datalog.sql.views.query import QueryReader
from datalog.sql.views.scope import Draft
from datalog.sql.views.select import conditions_of, groups_of, is_grouped, items_of, with_conditions
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
        owners: which source a variable is of.
        pieces: the sources of FROM, in order.
        kept: the sources of the kept side.
        sides: the conditions of each LEFT JOIN, by its source.
        given: the conditions on the kept side.
    """

    reader: QueryReader
    select: exp.Select
    view: str
    given_names: tuple[str, ...]
    piece: Piece = field(init=False)
    owners: dict[Variable, int] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)
    kept: set[int] = field(default_factory=lambda: {0})
    sides: dict[int, list[Condition]] = field(default_factory=dict)
    given: list[Condition] = field(default_factory=list)

    def read(self) -> tuple[tuple[str, ...], OuterJoin | None]:
        """The names of its columns, and what it is made of; None if a condition of soundness does not hold.

        Raises:
            UnreadableError: it cannot be read.
        """
        if not self._is_joined() or not self._is_filtered() or self.select.args.get("having") is not None:
            return (), None
        if not all(isinstance(what, Variable) for n in self.sides for _, what in self.pieces[n].scope.star()):
            return (), None
        is_aggregated = is_grouped(self.select)
        reader = self.reader.reader.within(self.piece.scope)
        items, aliases = items_of(self.select, reader.within(reader.scope, aggregates=is_aggregated))
        named = reader.within(replace(reader.scope, aliases=aliases))
        groups = groups_of(self.select, items, named) if is_aggregated else None
        names = self.given_names or tuple(name for name, _, _ in items)
        apart = [self._without_coalesce(what) for _, what, _ in items]
        outputs, given = [what for what, _ in apart], [default for _, default in apart]
        of = [number for number in map(self._of, outputs) if number is not None]
        is_named = len(names) == len(items) == len({name.casefold() for name in names})
        if not is_named or len(of) < len(outputs) or not self._is_by_kept_rows(groups, outputs, of):
            return (), None
        columns = tuple(i for i, one in enumerate(of) if one == 0)

        def definition(number: int, draft: Draft, columns: Sequence[int]) -> ViewDefinition:
            name = f"{self.view}#{number}"
            return ViewDefinition(name, tuple(names[i] for i in columns), (named_block(name, 0, draft),))

        kept = definition(0, self._draft(set(), [outputs[i] for i in columns], None), columns)
        sides = list[OuterSide]()
        for number in self.sides:
            before = self._before(number)
            own = tuple(i for i, one in enumerate(of) if one == number)
            is_one = self._has_one(number)
            if is_one and not own:
                continue
            with_ = tuple(i for i, one in enumerate(of) if one in {0, number, *before})
            defaults = [one for i in own if (one := given[i] or self._default(outputs[i])) is not None]
            plain = [(i, outputs[i]) for i in own if given[i] is None]
            told, partners = self._told(number, plain), list[Condition]()
            if told is None and is_one and groups is None:
                told = _some_value([column(i) for i in own])
                partners = [some_value([outputs[i] for i in own])]
                defaults = [one for one in defaults if one.value is None]
            if told is None or len(defaults) < len(own):
                return (), None
            its = [self._counted(outputs[i], number) for i in with_]
            draft = self._draft({number, *before}, its, groups, partners)
            made = definition(len(sides) + 1, draft, with_)
            sides.append(OuterSide(made, with_, own, tuple(defaults), told, self._shown(number)))
        return names, OuterJoin(kept, columns, tuple(sides))

    def _without_coalesce(self, what: Expression) -> tuple[Expression, Constant | None]:
        """An aggregate in place of `coalesce(aggregate, constant)` where it is never null, and that constant.

        So are the sum, the extrema and the average of what is never null in a row that has a partner.
        """
        match what:
            case Call("coalesce", (Aggregate(operand=Variable() as operand) as its, Constant() as other)):
                of, types = self.owners[operand], self.reader.variables.types
                kinds = [expression_type(one, types) for one in (what, its)]
                alike = kinds[0] == kinds[1] and its.function is not AggregateFunction.COUNT
                if (
                    alike
                    and other.value is not None
                    and of in self.sides
                    and self._is_never_null(operand, of)
                ):
                    return its, other
        return what, None

    def _is_by_kept_rows(
        self, groups: Sequence[Expression] | None, outputs: Sequence[Expression], of: Sequence[int]
    ) -> bool:
        """Whether a query that groups has a group for each row of the kept side, and aggregates of one side beside."""
        if groups is None:
            return True
        kept = {what for what, number in zip(outputs, of, strict=True) if number == 0}
        others = [what for what, number in zip(outputs, of, strict=True) if number != 0]
        return (
            len(self.sides) == 1
            and self._sources(groups) <= self.kept
            and kept == set(groups)
            and all(isinstance(what, Aggregate) for what in others)
        )

    def _is_joined(self) -> bool:
        """Reads FROM; whether condition 4 holds."""
        read: ReadSource = self.reader.source
        joins = self.select.args["joins"]
        for number, tree in enumerate((self.select.args["from_"].this, *(join.this for join in joins))):
            alternatives = read(tree)
            (piece, *others) = alternatives
            if others or piece.distinct or piece.draft.groups is not None:
                return False
            self.pieces.append(piece)
            self.owners.update(dict.fromkeys(variables_of(piece.draft.body), number))
        self.piece = self.pieces[0]
        self.given += self.piece.conditions
        for number, (join, right) in enumerate(zip(joins, self.pieces[1:], strict=True), 1):
            if join.side not in ("", "LEFT"):
                return False
            before = self.piece
            self.piece = join_pair(before, right, join, self.reader.reader)
            made = list(conjuncts(self.piece.conditions[len(before.conditions) :]))
            of_kept = self._sources(made) <= self.kept | {number}
            if not join.side and not of_kept:
                return False
            declared = self.reader.relations.declared
            if not join.side or (of_kept and has_partner(before, right, self.piece, declared)):
                self.kept.add(number)
                self.given += made
            elif all(self._is_strict(one, self._sources([one]) - self.kept - {number}) for one in made):
                self.sides[number] = made
            else:
                return False
        return True

    def _is_filtered(self) -> bool:
        """Reads WHERE; whether condition 5 holds."""
        where = self.select.args.get("where")
        reader = self.reader.reader.within(self.piece.scope)
        waiting = [] if where is None else list(conjuncts(conditions_of(reader, where.this)))
        while waiting:
            ready = [one for one in waiting if self._sources([one]) <= self.kept]
            self.given += ready
            waiting = [one for one in waiting if one not in ready]
            inner = next((number for one in waiting if (number := self._made_inner(one)) is not None), None)
            if inner is None:
                break
            self.kept.add(inner)
            self.given += self.sides.pop(inner)
        return not waiting

    def _made_inner(self, test: Condition) -> int | None:
        """The side of which a test is not true where it has no partner, and that joins with the kept one alone."""
        for number in self._sources([test]) - self.kept:
            if self._is_strict(test, {number}) and self._sources(self.sides[number]) <= self.kept | {number}:
                return number
        return None

    def _sources(self, values: Iterable[Expression | Condition]) -> set[int]:
        return {self.owners[variable] for variable in expression_variables(values)}

    def _is_strict(self, test: Condition, sources: set[int]) -> bool:
        """Whether a test is not true where each of some sources has no partner."""
        match test:
            case Compared(left=left, right=right):
                plain = {self.owners[v] for v in (left, right) if isinstance(v, Variable)}
            case IsNull(Variable() as operand, negated=True):
                plain = {self.owners[operand]}
            case _:
                plain = set()
        return sources <= plain

    def _of(self, what: Expression) -> int | None:
        """The side that a column is of; 0 for the kept one, None where it is computed from several."""
        sources = self._sources([what]) - self.kept
        if aggregates_of([what]):
            if not isinstance(what, Aggregate) or what.distinct or self._sources([what]) & self.kept:
                return None
            return next(iter(self.sides)) if len(sources) <= 1 else None
        if not sources:
            return 0
        return None if self._sources([what]) & self.kept or len(sources) > 1 else sources.pop()

    def _before(self, number: int) -> set[int]:
        """The sides that one joins with, and those that these do."""
        found: set[int] = set()
        waiting = [number]
        while waiting:
            more = self._sources(self.sides[waiting.pop()]) - self.kept - found - {number}
            found |= more
            waiting += more
        return found

    def _draft(
        self,
        numbers: set[int],
        outputs: Sequence[Expression],
        groups: tuple[Expression, ...] | None,
        more: Iterable[Condition] = (),
    ) -> Draft:
        """The kept side joined with some sides."""
        numbers = numbers | self.kept
        body = tuple(literal for n in sorted(numbers) for literal in self.pieces[n].draft.body)
        filters = tuple(one for n in sorted(numbers) for one in self.pieces[n].draft.filters)
        tests = [*self.given, *(test for n in sorted(numbers - self.kept) for test in self.sides[n])]
        draft = Draft(body, tuple(outputs), filters, groups)
        return with_conditions(draft, map(in_one, [*conjuncts(tests), *more]), self.reader.variables)

    def _has_one(self, number: int) -> bool:
        """Whether a row that is joined with a side has at most one partner there, by a key of it."""
        atoms = [literal for literal in self.pieces[number].draft.body if isinstance(literal, Atom)]
        table = self.reader.relations.declared(atoms[0].predicate.name) if len(atoms) == 1 else None
        if table is None:
            return False
        equal = {
            mine
            for one in self.sides[number]
            if isinstance(one, Compared) and one.operator == "="
            for mine, other in ((one.left, one.right), (one.right, one.left))
            if isinstance(mine, Variable) and number not in self._sources([other])
        }
        keys = [key for key in (table.key, *table.unique) if key]
        return any(
            all(atoms[0].terms[table.column_names.index(name)] in equal for name in key) for key in keys
        )

    def _shown(self, number: int) -> str:
        """What a side is called."""
        sources = self.pieces[number].scope.sources
        return sources[0].alias[0] if len(sources) == 1 and sources[0].alias else str(number)

    def _default(self, what: Expression) -> Constant | None:
        """What a column of a side holds in a row without a partner; None if no literal can compare with that."""
        nulls: dict[Variable, Value] = dict.fromkeys(expression_variables([what]))
        operand = what.operand if isinstance(what, Aggregate) else what
        try:
            value = 1 if operand is None else Scalars(self.reader.variables.types, nulls).value(operand)
        except EvaluationError:
            return None
        function = what.function if isinstance(what, Aggregate) else None
        if function is AggregateFunction.COUNT:
            return Constant(0 if value is None else 1)
        is_average = function is AggregateFunction.AVG and value is not None
        is_mixed = value is not None and expression_type(what, self.reader.variables.types) in (None, ANY)
        return None if is_average or is_mixed or is_nan(value) else Constant(value)

    def _counted(self, what: Expression, number: int) -> Expression:
        """`count(x)` of what is never null as the number of partners that it is."""
        if not isinstance(what, Aggregate) or what.function is not AggregateFunction.COUNT:
            return what
        counts = isinstance(what.operand, Variable) and self._is_never_null(what.operand, number)
        return Aggregate(AggregateFunction.COUNT) if counts else what

    def _told(self, number: int, own: Iterable[tuple[int, Expression]]) -> Literal | None:
        """What of a row says that it has a partner: condition 3."""
        for i, what in own:
            if isinstance(what, Variable) and self._is_never_null(what, number):
                return NullTest(column(i))
            if not isinstance(what, Aggregate) or not isinstance(what.operand, Variable):
                continue
            if not self._is_never_null(what.operand, number):
                continue
            if what.function is AggregateFunction.COUNT:
                return Comparison(">", column(i), Constant(0))
            return NullTest(column(i))
        return None

    def _is_never_null(self, variable: Variable, number: int) -> bool:
        """Whether a column of a side is null in no row that has a partner."""
        if self.owners[variable] != number:
            return False
        if any(isinstance(c, Compared) and variable in (c.left, c.right) for c in self.sides[number]):
            return True
        for atom in self.pieces[number].draft.body:
            table = self.reader.relations.declared(atom.predicate.name) if isinstance(atom, Atom) else None
            if table is not None and isinstance(atom, Atom) and variable in atom.terms:
                return table.is_not_null(atom.terms.index(variable))
        return False


def _some_value(columns: Sequence[Variable]) -> Literal:
    """That some of a row's columns is not null."""
    if len(columns) == 1:
        return NullTest(columns[0])
    return Negation(tuple(NullTest(one, negated=False) for one in columns))
