"""What is joined by LEFT JOINs: whose columns are whose, and what tells a row that has no partner.

A grouped query that is joined stands as a table of its columns, `query.n`, which its view has as what they are,
`count(*)`: in a row without a partner they are null, whatever they are computed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

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
    Case,
    Compared,
    Comparison,
    Condition,
    Constant,
    Expression,
    IsNull,
    Literal,
    NullTest,
    Value,
    Variable,
    aggregates_of,
    expressed_by,
    expression_variables,
    map_condition,
    map_expression,
    variables_of,
)
from datalog.rewrite.branches import column
from datalog.sql.views.coalesced import plain_aggregate
from datalog.sql.views.conditions import in_one
from datalog.sql.views.joins import Piece
from datalog.sql.views.query import QueryReader
from datalog.sql.views.scope import Draft, Scope, Source
from datalog.sql.views.select import with_conditions


@dataclass
class Sides:
    """The sources of a FROM.

    Attributes:
        pieces: the sources, in order.
        owners: which of them a variable is of.
        kept: those of the kept side.
        joined: the conditions of each LEFT JOIN, by its source.
        given: the conditions on the kept side.
        grouped: of the sources that group, what their columns are.
    """

    reader: QueryReader
    pieces: list[Piece] = field(default_factory=list)
    owners: dict[Variable, int] = field(default_factory=dict)
    kept: set[int] = field(default_factory=lambda: {0})
    joined: dict[int, list[Condition]] = field(default_factory=dict)
    given: list[Condition] = field(default_factory=list)
    grouped: dict[int, dict[Variable, Expression]] = field(default_factory=dict)

    def add(self, piece: Piece) -> Piece:
        """Takes a source up; one that groups with variables for its columns."""
        number = len(self.pieces)
        if piece.draft.groups is not None:
            (source,) = piece.scope.sources
            variables, columns = self.reader.variables, list[tuple[str, Expression]]()
            self.grouped[number] = {}
            for name, what in source.columns:
                variable = variables.fresh(name, variables.type_of(what) or ANY)
                self.grouped[number][variable] = what
                columns.append((name, variable))
            piece = replace(piece, scope=Scope((Source(source.alias, tuple(columns)),)))
            self.owners.update(dict.fromkeys(self.grouped[number], number))
        self.pieces.append(piece)
        self.owners.update(dict.fromkeys(variables_of(piece.draft.body), number))
        return piece

    def sources(self, values: Iterable[Expression | Condition]) -> set[int]:
        """The sources that some values are of."""
        return {self.owners[variable] for variable in expression_variables(values)}

    def side_of(self, what: Expression) -> int | None:
        """The side that a column is of; 0 for the kept one, None where it is computed from several."""
        sources = self.sources([what]) - self.kept
        if aggregates_of([what]):
            if not isinstance(what, Aggregate) or what.distinct or self.sources([what]) & self.kept:
                return None
            return next(iter(self.joined), None) if len(sources) <= 1 else None
        if not sources:
            return 0
        if self.sources([what]) & self.kept or len(sources) > 1:
            return None
        number = sources.pop()
        return number if number not in self.grouped or self._is_shown(what, number) else None

    def _is_shown(self, what: Expression, number: int) -> bool:
        """Whether a column is one that a grouped query gives: an aggregate, or what it groups by."""
        groups = self.pieces[number].draft.groups or ()
        its = self.grouped[number].get(what) if isinstance(what, Variable) else None
        return its is not None and ((isinstance(its, Aggregate) and not its.distinct) or its in groups)

    def before(self, number: int) -> set[int]:
        """The sides that one joins with, and those that these do."""
        found: set[int] = set()
        waiting = [number]
        while waiting:
            more = self.sources(self.joined[waiting.pop()]) - self.kept - found - {number}
            found |= more
            waiting += more
        return found

    def is_strict(self, test: Condition, sources: set[int]) -> bool:
        """Whether a test is not true where each of some sources has no partner."""
        match test:
            case Compared(left=left, right=right):
                plain = {self.owners[v] for v in (left, right) if isinstance(v, Variable)}
            case IsNull(Variable() as operand, negated=True):
                plain = {self.owners[operand]}
            case _:
                plain = set()
        return sources <= plain

    def has_one(self, number: int) -> bool:
        """Whether a row that is joined with a side has at most one partner there, by a key of it."""
        equal = {
            mine
            for one in self.joined[number]
            if isinstance(one, Compared) and one.operator == "="
            for mine, other in ((one.left, one.right), (one.right, one.left))
            if isinstance(mine, Variable) and number not in self.sources([other])
        }
        draft = self.pieces[number].draft
        if number in self.grouped:
            return {what for one, what in self.grouped[number].items() if one in equal} >= set(
                draft.groups or ()
            )
        atoms = [literal for literal in draft.body if isinstance(literal, Atom)]
        table = self.reader.relations.declared(atoms[0].predicate.name) if len(atoms) == 1 else None
        if table is None:
            return False
        keys = [key for key in (table.key, *table.unique) if key]
        return any(
            all(atoms[0].terms[table.column_names.index(name)] in equal for name in key) for key in keys
        )

    def shown(self, number: int) -> str:
        """What a side is called."""
        sources = self.pieces[number].scope.sources
        return sources[0].alias[0] if len(sources) == 1 and sources[0].alias else str(number)

    def default(self, what: Expression) -> Constant | None:
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

    def without_coalesce(self, what: Expression, *, is_grouped: bool) -> tuple[Expression, Constant | None]:
        """What is never null in a row that has a partner in place of its `coalesce` with a constant, and that constant.

        So are a count, and the sum, the extrema and the average of what is never null; of a side, not of its columns:
        these may be of the same value.
        """
        match what:
            case Call("coalesce", ((Aggregate() | Variable()) as its, Constant() as other)):
                types = self.reader.variables.types
                kinds = [expression_type(one, types) for one in (what, its)]
                if kinds[0] == kinds[1] and other.value is not None and self._is_aggregate(its):
                    return its, other
        plain = plain_aggregate(what, self.reader.variables, lambda _: False) if is_grouped else None
        return what if plain is None else plain, None

    def _is_aggregate(self, what: Expression) -> bool:
        """Whether a value is an aggregate of one side that is never null in a row that has a partner there."""
        if isinstance(what, Variable):
            number = self.owners[what]
            its = self.grouped.get(number, {}).get(what)
            return number in self.joined and isinstance(its, Aggregate) and self.is_never_null(what, number)
        if not isinstance(what, Aggregate) or not isinstance(what.operand, Variable):
            return False
        of = self.owners[what.operand]
        is_count = what.function is AggregateFunction.COUNT
        return not is_count and of in self.joined and self.is_never_null(what.operand, of)

    def counted(self, what: Expression, number: int) -> Expression:
        """`count(x)` of what is never null as the number of partners that it is."""
        if not isinstance(what, Aggregate) or what.function is not AggregateFunction.COUNT:
            return what
        counts = isinstance(what.operand, Variable) and self.is_never_null(what.operand, number)
        return Aggregate(AggregateFunction.COUNT) if counts else what

    def told(self, number: int, own: Iterable[tuple[int, Expression, Constant | None]]) -> Literal | None:
        """What of a row says that it has a partner: condition 3; of columns with what they are, and stand for null."""
        for i, what, given in own:
            if given is not None:
                if self._counts(what) and isinstance(given.value, int) and given.value <= 0:
                    return Comparison(">", column(i), Constant(0))
                continue
            if isinstance(what, Variable) and self.is_never_null(what, number):
                return NullTest(column(i))
            if not isinstance(what, Aggregate) or not isinstance(what.operand, Variable):
                continue
            if not self.is_never_null(what.operand, number):
                continue
            if what.function is AggregateFunction.COUNT:
                return Comparison(">", column(i), Constant(0))
            return NullTest(column(i))
        return None

    def _counts(self, what: Expression) -> bool:
        """Whether a column of a grouped query counts what there is at least one of."""
        number = self.owners[what] if isinstance(what, Variable) else None
        its = self.grouped.get(number, {}).get(what) if isinstance(what, Variable) and number else None
        if number is None or not isinstance(its, Aggregate) or its.function is not AggregateFunction.COUNT:
            return False
        operand = its.operand
        return operand is None or (isinstance(operand, Variable) and self.is_never_null(operand, number))

    def is_never_null(self, variable: Variable, number: int) -> bool:
        """Whether a column of a side is null in no row that has a partner."""
        if self.owners[variable] != number:
            return False
        if any(isinstance(c, Compared) and variable in (c.left, c.right) for c in self.joined[number]):
            return True
        its = self.grouped.get(number, {}).get(variable)
        if isinstance(its, Aggregate):
            is_count = its.function is AggregateFunction.COUNT
            return is_count or (isinstance(its.operand, Variable) and self.is_never_null(its.operand, number))
        variable = its if isinstance(its, Variable) else variable
        for atom in self.pieces[number].draft.body:
            table = self.reader.relations.declared(atom.predicate.name) if isinstance(atom, Atom) else None
            if table is not None and isinstance(atom, Atom) and variable in atom.terms:
                return table.is_not_null(atom.terms.index(variable))
        return False

    def draft(
        self,
        numbers: set[int],
        outputs: Sequence[Expression],
        groups: tuple[Expression, ...] | None,
        more: Iterable[Condition] = (),
    ) -> Draft:
        """The kept side joined with some sides, of which one may group."""
        numbers = numbers | self.kept
        its = [self.pieces[n].draft for n in sorted(numbers)]
        columns = {v: w for n in sorted(numbers) for v, w in self.grouped.get(n, {}).items()}
        body = tuple(literal for one in its for literal in one.body)
        filters = tuple(test for one in its for test in one.filters)
        having = tuple(test for one in its for test in one.having)
        tests = [*self.given, *(test for n in sorted(numbers - self.kept) for test in self.joined[n])]
        tests = [in_one(_written_out(columns, test)) for test in [*tests, *more]]
        outputs = [_written(columns, what) for what in outputs]
        if columns:
            groups = tuple(dict.fromkeys(_written(columns, what) for what in groups or ()))
        draft = Draft(body, tuple(outputs), filters, groups, having)
        made = with_conditions(draft, tests, self.reader.variables)
        return made if made.groups is None else replace(made, groups=tuple(dict.fromkeys(made.groups)))


def _written(columns: Mapping[Variable, Expression], what: Expression) -> Expression:
    """An expression with what columns of grouped queries are."""
    return map_expression(lambda one: columns.get(one) if isinstance(one, Variable) else None, what)


def _written_out(columns: Mapping[Variable, Expression], test: Condition) -> Condition:
    return map_condition(lambda one: columns.get(one) if isinstance(one, Variable) else None, test)


def computed_value(
    sides: Sides,
    what: Expression,
    shown: Iterable[tuple[int, Expression, Expression, Constant | None, int]],
    told: Mapping[int, Literal],
) -> Expression | None:
    """A column that is computed from several sides, or from aggregates, over the view's other columns.

    Args:
        sides: the sources.
        what: what it is.
        shown: of the other columns which they are, what they are, what of that a row with a partner has, what one
            without has instead of null, and the side.
        told: for each side what of a row says that it has a partner.

    Returns:
        The value over `branches.column(i)`; None if the other columns do not tell it.
    """
    values: dict[str, Expression] = {}
    for i, whole, its, given, number in shown:
        values.setdefault(repr(whole), column(i))
        if given is not None and number in told:
            values.setdefault(repr(its), _with_partner(told[number], column(i)))
    for number, columns in sides.grouped.items():
        inner = {repr(w): values[repr(one)] for one, w in columns.items() if repr(one) in values}
        for one, whats in columns.items():
            found = expressed_by(whats, inner)
            if repr(one) not in values and found is not None and number in told:
                values[repr(one)] = _with_partner(told[number], found)
    return expressed_by(what, values)


def _with_partner(told: Literal, value: Expression) -> Expression:
    """A value in rows that have a partner; in others null."""
    match told:
        case NullTest(term, negated):
            test: Condition = IsNull(term, negated)
        case Comparison(operator, left, right):
            test = Compared(operator, left, right)
        case _:
            return value  # all that it is of is null in a row without a partner
    return Case(((test, value),), Constant(None))
