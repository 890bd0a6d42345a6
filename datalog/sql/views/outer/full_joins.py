"""FULL JOINs by `=` of columns that are shown: the rows of a view tell all rows of both sides.

    v:      SELECT coalesce(a.day, b.day) AS day, a.sold, b.bought FROM a FULL JOIN b ON a.day = b.day
    side 0: SELECT a.day, a.sold FROM a             the rows of `v` in which `sold` is not null
    side 1: SELECT b.day, b.bought FROM b           those in which `bought` is not null

Whoever knows `v` knows both, and the other way round: so `v` is determined if and only if both are.

Conditions of soundness:

1. Rows of each side stand once: keys, or what it groups by, say so, which whoever makes views of them finds out.
2. The sides are joined by `=` of columns of one type, no doubles, and by nothing else. Each of these is shown, or both
   as one by `coalesce`, or USING.
3. Every other column is computed from one side alone, or from other columns of the view. Of a side all columns are of
   tables, or of a query that groups: others are null in rows that have none of it, whatever they are computed from.
4. One column of each side is null in the rows that have none of it, and in these alone; or a count that is 0 there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec import Struct, field
from sqlglot import exp

from datalog.copies import replace
from datalog.model import (
    Aggregate,
    AggregateFunction,
    Call,
    Compared,
    Comparison,
    ComputedColumn,
    Condition,
    Constant,
    Expression,
    FullJoin,
    Literal,
    NullTest,
    OuterJoin,
    OuterSide,
    Variable,
    ViewDefinition,
    expressed_by,
    expression_variables,
    variables_of,
)
from datalog.rewrite.branches import column
from datalog.sql.views.blocks import named_block
from datalog.sql.views.conditions import conjuncts
from datalog.sql.views.joins import Piece, join_pair
from datalog.sql.views.outer.outer_columns import filled_sum
from datalog.sql.views.outer.outer_computed import with_partner
from datalog.sql.views.outer.outer_sources import (
    NotToldError,
    as_table,
    is_never_null,
    may_be_joined,
    value_without,
)
from datalog.sql.views.outside import report_outside
from datalog.sql.views.query import QueryReader
from datalog.sql.views.select import is_grouped, items_of, with_conditions

_OTHERS = ("where", "group", "having", "distinct", "qualify", "limit", "laterals", "windows")


def is_full_join(select: exp.Select) -> bool:
    """Whether a query is one FULL JOIN of two sources, and nothing else."""
    joins = select.args.get("joins") or []
    is_one = [(join.side, join.method) for join in joins] == [("FULL", "")]
    return is_one and not any(select.args.get(part) for part in _OTHERS) and not is_grouped(select)


def full_join(
    reader: QueryReader, select: exp.Select, view: str, given_names: Sequence[str]
) -> tuple[tuple[str, ...], OuterJoin, str] | None:
    """The columns' names of a view with a FULL JOIN, what it is made of, and what to show so that rows stand once.

    None if it is not read.

    Raises:
        UnreadableError: it cannot be read.
        NotToldError: a condition of soundness does not hold.
    """
    if not _by_on(select):
        return None
    (join,) = select.args["joins"]
    join.set("side", None)
    join.set("kind", None)
    report_outside(select, reader.problems)
    if reader.problems.found:
        return None
    its = [_side(reader, tree) for tree in (select.args["from_"].this, join.this)]
    both = join_pair(its[0].piece, its[1].piece, join, reader.reader)
    made = conjuncts(both.conditions[sum(len(one.piece.conditions) for one in its) :])
    items, _ = items_of(select, reader.reader.within(both.scope))
    if reader.problems.found:
        return None
    names = tuple(given_names) or tuple(name for name, *_ in items)
    if len(names) < len(items) or len(names) > len({name.casefold() for name in names}):
        raise NotToldError("give each column a name of its own: `... as name`")
    found = _Reading(reader, view, names, its, [what for _, what, *_ in items]).read(list(made))
    return names, found, f"show a key of `{its[0].name}`, and one of `{its[1].name}`"


def _by_on(select: exp.Select) -> bool:
    """Writes USING as ON, and its columns as `coalesce` of both; whether there is a condition."""
    (join,) = select.args["joins"]
    using = {one.name.casefold(): one.name for one in join.args.get("using") or ()}
    sides = [select.args["from_"].this.alias_or_name, join.this.alias_or_name]
    if not using or not all(sides) or any(one.find(exp.Star) for one in select.expressions):
        return join.args.get("on") is not None
    pairs = {folded: [exp.column(name, side) for side in sides] for folded, name in using.items()}
    for item in select.expressions:
        for node in list(item.find_all(exp.Column)):
            if not node.table and node.name.casefold() in pairs:
                one, other = (part.copy() for part in pairs[node.name.casefold()])
                whole = exp.Coalesce(this=one, expressions=[other])
                node.replace(exp.alias_(whole, node.name) if node is item else whole)
    join.set("on", exp.and_(*(exp.EQ(this=one, expression=other) for one, other in pairs.values())))
    join.set("using", None)
    return True


class _Side(Struct, frozen=True):
    """One source.

    Attributes:
        columns: of one that groups what its columns are.
        known: its columns' variables.
        name: what it is called.
    """

    piece: Piece
    columns: dict[Variable, Expression]
    known: frozenset[Variable]
    name: str


def _side(reader: QueryReader, tree: exp.Expr) -> _Side:
    (piece, *others) = reader.source(tree)
    if others or piece.distinct or not (piece.draft.groups is None or may_be_joined(piece)):
        raise NotToldError(f"make the query `{tree.alias_or_name}` a materialized view of its own")
    made, columns = as_table(piece, reader.variables)
    if not all(isinstance(what, Variable) for _, what in made.scope.star()):
        # In a row that has none of it its columns are null, whatever they are computed from.
        raise NotToldError(f"let the query that is joined as `{tree.alias_or_name}` compute nothing")
    known = frozenset(columns) or frozenset(variables_of(piece.draft.body))
    return _Side(made, columns, known, tree.alias_or_name or "the other table")


class _Reading(Struct):
    """One SELECT.

    Attributes:
        whats: what its columns are.
        pairs: the columns that the join makes equal.
    """

    reader: QueryReader
    view: str
    names: Sequence[str]
    sides: Sequence[_Side]
    whats: Sequence[Expression]
    pairs: list[tuple[Variable, Variable]] = field(default_factory=list)

    def read(self, tests: Sequence[Condition]) -> OuterJoin:
        """What it is made of.

        Raises:
            NotToldError: a condition of soundness does not hold.
        """
        self.pairs = [self._pair(test) for test in tests]
        if any(len({pair[side] for pair in self.pairs}) < len(tests) for side in (0, 1)):
            raise NotToldError("join by each column once")
        places: list[dict[int, Expression]] = [{}, {}]
        for i, what in enumerate(self.whats):
            for places_of, its in zip(places, self._of_sides(what), strict=True):
                if its is not None:
                    places_of[i] = its
        joined = tuple((self._shown(a, places[0]), self._shown(b, places[1])) for a, b in self.pairs)
        merged = places[0].keys() & places[1].keys()
        own = [tuple(i for i in its if i not in merged) for its in places]
        none = [tuple(self._without(i) for i in its) for its in own]
        told = [self._told(number, own[number]) for number in (0, 1)]
        kept, other = (self._definition(number, its) for number, its in enumerate(places))
        side = OuterSide(other, tuple(places[1]), own[1], none[1], told[1], self.sides[1].name)
        full = FullJoin(own[0], none[0], told[0], self.sides[0].name, joined)
        return OuterJoin(kept, tuple(places[0]), (side,), tuple(self._computed(places, told)), full=full)

    def _pair(self, test: Condition) -> tuple[Variable, Variable]:
        """Columns that the join makes equal, that of the first side first: condition 2."""
        one, other = (its.known for its in self.sides)
        match test:
            case Compared("=", Variable() as a, Variable() as b) if {a, b} & one and {a, b} & other:
                a, b = (a, b) if a in one else (b, a)
            case _:
                raise NotToldError("join by `=` of columns of both sides, and by nothing else")
        if not self.reader.variables.are_one_where_equal(a, b):
            raise NotToldError("join by columns of one declared type, neither float nor double")
        return a, b

    def _of_sides(self, what: Expression) -> tuple[Expression | None, Expression | None]:
        """What a column is of each side: of both where the join makes it one, of none where it is of several."""
        match what:
            case Call("coalesce", (Variable() as a, Variable() as b)):
                pair = next((pair for pair in self.pairs if {*pair} == {a, b}), None)
                if pair is not None:
                    return pair
        used = set(expression_variables([what]))
        of = [bool(used) and used <= its.known for its in self.sides]
        return what if of[0] else None, what if of[1] else None

    def _shown(self, variable: Variable, places: dict[int, Expression]) -> int:
        place = next((i for i, what in places.items() if what == variable), None)
        if place is None:
            raise NotToldError("show the columns that are joined by, or `coalesce` of both")
        return place

    def _without(self, place: int) -> Constant:
        """What a column of a side holds in a row that has none of it."""
        found = value_without(self.whats[place], self.reader.variables.types)
        if found is None:
            name = self.names[place]
            raise NotToldError(f"show what `{name}` is computed from, and compute it when reading the view")
        return found

    def _told(self, number: int, own: Iterable[int]) -> Literal:
        """What of a row says that it has one of a side: condition 4."""
        its, declared = self.sides[number], self.reader.relations.declared
        for i in own:
            match self.whats[i]:
                case Variable() as one if is_never_null(one, its.piece, its.columns, declared):
                    return NullTest(column(i))
                case Call("coalesce", (Variable() as one, Constant(int() as least))) if least <= 0:
                    if self._counts(its, one):
                        return Comparison(">", column(i), Constant(0))
        raise NotToldError(
            f"show a column of `{its.name}` that is never null: what it is joined by, or a count"
        )

    def _counts(self, its: _Side, one: Variable) -> bool:
        """Whether a column of a grouped query counts what there is at least one of."""
        what, declared = its.columns.get(one), self.reader.relations.declared
        if not isinstance(what, Aggregate) or what.function is not AggregateFunction.COUNT:
            return False
        counted = what.operand
        return counted is None or (
            isinstance(counted, Variable) and is_never_null(counted, its.piece, {}, declared)
        )

    def _definition(self, number: int, places: dict[int, Expression]) -> ViewDefinition:
        """A side with the columns of the view that are of it."""
        its, name = self.sides[number], f"{self.view}#{number}"
        whats = [self._in_its_rows(its, what) for what in places.values()]
        if its.columns and not all(isinstance(what, Variable) for what in whats):
            raise NotToldError(f"compute from what `{its.name}` counts when reading the view")
        outputs = tuple(its.columns.get(what, what) if isinstance(what, Variable) else what for what in whats)
        draft = replace(its.piece.draft, outputs=outputs)
        made = with_conditions(draft, its.piece.conditions, self.reader.variables)
        return ViewDefinition(name, tuple(self.names[i] for i in places), (named_block(name, 0, made),))

    def _in_its_rows(self, its: _Side, what: Expression) -> Expression:
        """What a column is in the rows that have one of its side: there a constant stands for no null."""
        match what:
            case Call("coalesce", (Variable() as one, Constant(value))) if value is not None:
                types, declared = self.reader.variables, self.reader.relations.declared
                if types.type_of(what) == types.type_of(one):
                    if is_never_null(one, its.piece, its.columns, declared):
                        return one
                    return filled_sum(its.columns, one, Constant(value), types) or what
        return what

    def _computed(
        self, places: Sequence[dict[int, Expression]], told: Sequence[Literal]
    ) -> Iterable[ComputedColumn]:
        """The columns that are computed from others: condition 3."""
        of = places[0].keys() | places[1].keys()
        values: dict[str, Expression] = {repr(self.whats[i]): column(i) for i in sorted(of, reverse=True)}
        for its, shown, test in zip(self.sides, places, told, strict=True):
            for i, what in shown.items():
                plain = self._in_its_rows(its, what)
                values.setdefault(repr(plain), with_partner(test, column(i)))
        for i, (name, what) in enumerate(zip(self.names, self.whats, strict=True)):
            if i not in of:
                value = expressed_by(what, values)
                if value is None:
                    raise NotToldError(f"show what `{name}` is computed from in columns of their own")
                yield ComputedColumn(i, name, value)
