"""FROM and WHERE of a query with LEFT JOINs: the side that is kept, and what each join adds to it.

Conditions 4 and 5 of `outer_joins`. Where they do not hold it is said what to write instead.

A grouped query that is joined stands as a table of its columns, `query.n`, which its view has as what they are,
`count(*)`: in a row without a partner they are null, whatever they are computed from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from datalog.analysis.expression_types import expression_type
from datalog.analysis.lossless import inside, is_lossless
from datalog.copies import replace
from datalog.evaluate import EvaluationError
from datalog.evaluate.order import is_nan
from datalog.evaluate.scalars import Scalars
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    Atom,
    Call,
    ColumnType,
    Compared,
    Condition,
    Constant,
    Expression,
    IsNull,
    Term,
    Value,
    Variable,
    expressed_by,
    expression_variables,
    is_some,
    variables_of,
)
from datalog.sql.views.conditions import conjuncts
from datalog.sql.views.joins import Declared, Piece, ReadSource, foreign_keys_of, has_partner, join_pair
from datalog.sql.views.query import QueryReader
from datalog.sql.views.scope import Scope, Source, Variables
from datalog.sql.views.select import conditions_of


class NotToldError(Exception):
    """A view whose rows do not tell what they are made of: what to write instead."""


@dataclass
class Sides:
    """The sources of a SELECT with LEFT JOINs.

    Attributes:
        piece: what is joined so far.
        owners: which source a variable is of.
        pieces: the sources of FROM, in order.
        kept: the sources of the kept side.
        sides: the conditions of each LEFT JOIN, by its source.
        given: the conditions on the kept side.
        grouped: of the sources that group, what their columns are.
        filled: a column of a source that groups, which sums what may be null, for the one that holds 0 for null.
        referenced: the column of a side that a foreign key of the kept side leads to, and the column that references.
    """

    reader: QueryReader
    select: exp.Select
    piece: Piece = field(init=False)
    owners: dict[Variable, int] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)
    kept: set[int] = field(default_factory=lambda: {0})
    sides: dict[int, list[Condition]] = field(default_factory=dict)
    given: list[Condition] = field(default_factory=list)
    grouped: dict[int, dict[Variable, Expression]] = field(default_factory=dict)
    filled: dict[Expression, Variable] = field(default_factory=dict)
    referenced: dict[Variable, Variable] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Reads FROM and WHERE.

        Raises:
            UnreadableError: it cannot be read.
            NotToldError: a condition of soundness does not hold.
        """
        self._join()
        self._filter()
        for number in self.sides:
            shown = [what for _, what in self.pieces[number].scope.star()]
            if number not in self.grouped and not all(map(self._is_null_alone, shown)):
                its = (
                    f"let the query that is joined as `{self.shown(number)}` compute nothing of what is null"
                )
                raise NotToldError(its)

    def _is_null_alone(self, what: Expression) -> bool:
        """Whether a column is null where all that it is computed from is: so it is in rows without a partner."""
        types = self.reader.variables.types
        return isinstance(what, Variable) or value_without(what, types) == Constant(None)

    def _join(self) -> None:
        """Reads FROM: condition 4."""
        read: ReadSource = self.reader.source
        joins = self.select.args["joins"]
        for number, tree in enumerate((self.select.args["from_"].this, *(join.this for join in joins))):
            alternatives = read(tree)
            (piece, *others) = alternatives
            is_left = number > 0 and joins[number - 1].side == "LEFT"
            may_group = piece.draft.groups is None or (is_left and may_be_joined(piece))
            if others or piece.distinct or not may_group:
                shown = f" `{tree.alias_or_name}`" if tree.alias_or_name else ""
                raise NotToldError(f"make the query{shown} that is joined a materialized view of its own")
            self._add(number, piece)
        self.piece = self.pieces[0]
        self.given += self.piece.conditions
        for number, (join, right) in enumerate(zip(joins, self.pieces[1:], strict=True), 1):
            assert join.side in ("", "LEFT")  # other sides are outside what is read
            before = self.piece
            self.piece = join_pair(before, right, join, self.reader.reader)
            made = list(conjuncts(self.piece.conditions[len(before.conditions) :]))
            of_kept = self.sources(made) <= self.kept | {number}
            if (self.sources(made) - {number}) & self.grouped.keys():
                raise NotToldError("join with columns of tables, and with none that groups are counted in")
            if not join.side and not of_kept:
                raise NotToldError(
                    "join what may be missing with LEFT JOIN, or make the join before an inner one"
                )
            declared = self.reader.relations.declared
            if not join.side or (of_kept and has_partner(before, right, self.piece, declared)):
                self.kept.add(number)
                self.given += made
            elif all(self._is_strict(one, self.sources([one]) - self.kept - {number}) for one in made):
                self.sides[number] = made
                if of_kept:
                    self.referenced |= self._reference(before, right)
            else:
                raise NotToldError(f"join `{self.shown(number)}` with what may be missing by `=` of columns")
            if number in self.grouped and not self.has_one(number):
                raise NotToldError(f"join `{self.shown(number)}` by `=` of all that it groups by")

    def _reference(self, before: Piece, right: Piece) -> dict[Variable, Variable]:
        """The column that a foreign key leads a join to, with the one that references: one value, or both are null."""
        found = dict[Variable, Variable]()
        for pairs in foreign_keys_of(before, right, self.piece, self.reader.relations.declared):
            ((mine, its, _), *others) = pairs
            if not others and isinstance(mine, Variable) and isinstance(its, Variable):
                is_one = self.reader.variables.are_one_where_equal(mine, its)
                found |= {its: mine} if is_one else {}
        return found

    def referencing(self, one: Expression) -> Variable | None:
        """The column of the kept side that is always a column of a side, by a foreign key."""
        return self.referenced.get(one) if isinstance(one, Variable) else None

    def refers_to(self, what: Expression, number: int) -> bool:
        """Whether what is shown is null in those rows alone that have no partner in a side, by a foreign key."""
        return any(what == mine and self.owners[its] == number for its, mine in self.referenced.items())

    def _add(self, number: int, piece: Piece) -> None:
        """Takes a source up; one that groups with variables for its columns."""
        piece, columns = as_table(piece, self.reader.variables, plainly=True)
        if piece.draft.groups is not None:
            self.grouped[number] = columns
            self.owners.update(dict.fromkeys(columns, number))
        self.pieces.append(piece)
        self.owners.update(dict.fromkeys(variables_of(piece.draft.body), number))

    def _filter(self) -> None:
        """Reads WHERE: condition 5."""
        where = self.select.args.get("where")
        reader = self.reader.reader.within(self.piece.scope)
        waiting = [] if where is None else list(conjuncts(conditions_of(reader, where.this)))
        while waiting:
            ready = [one for one in waiting if self.sources([one]) <= self.kept]
            self.given += ready
            waiting = [one for one in waiting if one not in ready]
            inner = next((number for one in waiting if (number := self._made_inner(one)) is not None), None)
            if inner is None:
                break
            self.kept.add(inner)
            self.given += self.sides.pop(inner)
        for one in waiting:
            its = " and ".join(f"`{self.shown(n)}`" for n in sorted(self.sources([one]) - self.kept))
            raise NotToldError(f"ask in WHERE of the kept side alone, and of {its} when reading the view")

    def _made_inner(self, test: Condition) -> int | None:
        """The side of which a test is not true where it has no partner, and that joins with the kept one alone."""
        for number in self.sources([test]) - self.kept - self.grouped.keys():
            if self._is_strict(test, {number}) and self.sources(self.sides[number]) <= self.kept | {number}:
                return number
        return None

    def sources(self, values: Iterable[Expression | Condition]) -> set[int]:
        """The sources that some values are computed from."""
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

    def before(self, number: int) -> set[int]:
        """The sides that one joins with, and those that these do."""
        found: set[int] = set()
        waiting = [number]
        while waiting:
            more = self.sources(self.sides[waiting.pop()]) - self.kept - found - {number}
            found |= more
            waiting += more
        return found

    def _keys(self, number: int) -> list[dict[str, Term]]:
        """The keys of the table that a source is, by the columns' names; none of what is no table."""
        atoms = [literal for literal in self.pieces[number].draft.body if isinstance(literal, Atom)]
        table = self.reader.relations.declared(atoms[0].predicate.name) if len(atoms) == 1 else None
        if table is None:
            return []
        places = {name: i for i, name in enumerate(table.column_names)}
        keys = [key for key in (table.key, *table.unique) if key]
        return [{name: atoms[0].terms[places[name]] for name in key} for key in keys]

    def has_one(self, number: int) -> bool:
        """Whether a row that is joined with a side has at most one partner there, by a key of it."""
        equal = {
            mine
            for one in self.sides[number]
            if isinstance(one, Compared) and one.operator == "="
            for mine, other in ((one.left, one.right), (one.right, one.left))
            if isinstance(mine, Variable)
            and number not in self.sources([other])
            and self._is_exact(mine, other)
        }
        if number in self.grouped:
            groups = set(self.pieces[number].draft.groups or ())
            return {what for one, what in self.grouped[number].items() if one in equal} >= groups
        return any(equal.issuperset(key.values()) for key in self._keys(number))

    def _is_exact(self, mine: Variable, other: Expression) -> bool:
        """Whether a value equals one value of a column at most: not several whole numbers or decimals one double."""
        one, its = (self.reader.variables.type_of(side) for side in (mine, other))
        return one is None or its is None or one.is_found_by(its)

    def missing_keys(self, outputs: Iterable[Expression], *, is_aggregated: bool) -> str:
        """What to show so that rows of the kept side stand once, and those of each joined side: condition 1."""
        shown, found = frozenset(outputs), list[str]()
        several = () if is_aggregated else [number for number in self.sides if not self.has_one(number)]
        for number in (0, *several):
            side, keys = self.shown(number), self._keys(number)
            if not any(shown.issuperset(key.values()) for key in keys):
                named = " and ".join(f"`{side}.{name}`" for name in (keys[0] if keys else ()))
                found.append(f"a key of `{side}` ({named or 'declare one'})")
        return f"show {' and '.join(found) or 'keys of all tables of the kept side'}"

    def shown(self, number: int) -> str:
        """What a side is called."""
        sources = self.pieces[number].scope.sources
        return sources[0].alias[0] if len(sources) == 1 and sources[0].alias else str(number)

    def as_shown(self, whole: Expression, plain: Expression, place: Expression) -> Expression:
        """A column that shows `whole`, given the place of `plain`: that, perhaps with casts and roundings around.

        Raises:
            NotToldError: it is written otherwise.
        """
        its = self.filled.get(plain, plain)
        found = expressed_by(whole, {repr(its): place}) or expressed_by(whole, {repr(inside(whole)): place})
        match found:
            case None:
                raise NotToldError("cast and round outside of `coalesce`")
            case Call("coalesce", (one, Constant())) if one == place:  # it holds what stands for null
                return place
            case _:
                return found

    def has_some(self, value: Expression, number: int) -> bool:
        """Whether a value over columns of a side is null in no row that has a partner."""
        return is_some(value, lambda one: self.is_never_null(one, number))

    def is_never_null(self, variable: Variable, number: int) -> bool:
        """Whether a column of a side is null in no row that has a partner."""
        if self.owners[variable] != number:
            return False
        if any(isinstance(c, Compared) and variable in (c.left, c.right) for c in self.sides[number]):
            return True
        grouped = self.grouped.get(number, {})
        its = grouped.get(variable)
        if isinstance(its, Aggregate) and its.operand is not None and self.has_some(its.operand, number):
            return True
        return is_never_null(variable, self.pieces[number], grouped, self.reader.relations.declared)


def as_table(
    piece: Piece, variables: Variables, *, plainly: bool = False
) -> tuple[Piece, dict[Variable, Expression]]:
    """A source; one that groups with variables for its columns, and what these are.

    With `plainly`, for aggregates without casts and roundings that lose no digit.
    """
    if piece.draft.groups is None:
        return piece, {}
    (source,) = piece.scope.sources
    found = dict[Variable, Expression]()
    columns = list[tuple[str, Expression]]()
    for name, what in source.columns:
        its = inside(what) if plainly and is_lossless(what, variables.types) else what
        its = its if isinstance(its, Aggregate) else what
        variable = variables.fresh(name, variables.type_of(its) or ANY)
        found[variable] = its
        columns.append((name, expressed_by(what, {repr(its): variable}) or variable))
    return replace(piece, scope=Scope((Source(source.alias, tuple(columns), source.types),))), found


def value_without(what: Expression, types: Mapping[Variable, ColumnType]) -> Constant | None:
    """What a column of a side holds in a row that has none of it; None if no literal can compare with that."""
    nulls: dict[Variable, Value] = dict.fromkeys(expression_variables([what]))
    operand = what.operand if isinstance(what, Aggregate) else what
    try:
        value = 1 if operand is None else Scalars(types, nulls).value(operand)
    except EvaluationError:
        return None
    function = what.function if isinstance(what, Aggregate) else None
    if function is AggregateFunction.COUNT:
        return Constant(0 if value is None else 1)
    is_average = function is AggregateFunction.AVG and value is not None
    is_mixed = value is not None and expression_type(what, types) in (None, ANY)
    return None if is_average or is_mixed or is_nan(value) else Constant(value)


def is_never_null(
    variable: Variable, piece: Piece, columns: Mapping[Variable, Expression], declared: Declared
) -> bool:
    """Whether a column of a source is null in none of its rows; of one that groups, `columns` are what its are."""
    its = columns.get(variable)
    if isinstance(its, Aggregate):
        return its.function is AggregateFunction.COUNT or (
            its.operand is not None
            and is_some(its.operand, lambda one: is_never_null(one, piece, columns, declared))
        )
    variable = its if isinstance(its, Variable) else variable
    for atom in piece.draft.body:
        table = declared(atom.predicate.name) if isinstance(atom, Atom) else None
        if table is not None and isinstance(atom, Atom) and variable in atom.terms:
            return table.is_not_null(atom.terms.index(variable))
    return False


def may_be_joined(piece: Piece) -> bool:
    """Whether a grouped query has no row of no rows, and stands as one source."""
    return bool(piece.draft.groups) and len(piece.scope.sources) == 1 and not piece.conditions
