"""A view definition as one query for DuckDB; its expressions and conditions as trees, with their types in Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import assert_never

from msgspec import Struct
from sqlglot import exp

from datalog.analysis.expression_types import average_type, expression_type, settled, sum_type
from datalog.copies import replace
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    AllOf,
    AnyOf,
    Arithmetic,
    Block,
    Call,
    Case,
    Cast,
    ColumnType,
    Compared,
    Condition,
    Constant,
    Expression,
    Holds,
    IsNull,
    Minus,
    Predicate,
    Rule,
    Semantics,
    TypeName,
    Variable,
    ViewDefinition,
    expression_variables,
    map_condition,
    map_expression,
)
from datalog.rewrite.guards import guard_joins
from datalog.sql.block import Frame
from datalog.sql.conditions import OPERATORS, Writer
from datalog.sql.duckdb.functions import called, computed, quotient
from datalog.sql.duckdb.relations import numbered_items
from datalog.sql.duckdb.rules import Derived, Types, require_comparable, term_type, without_void
from datalog.sql.duckdb.text_casts import cast_text
from datalog.sql.duckdb.types import (
    DOUBLE,
    SqlType,
    Typed,
    UnlikeSparkError,
    as_type,
    cast,
    common,
    value_type,
)
from datalog.sql.tables import Table

_BOOLEAN, _BIGINT, _STRING = (ColumnType(n) for n in (TypeName.BOOLEAN, TypeName.BIGINT, TypeName.STRING))


class Trees(Struct, frozen=True):
    """The trees of expressions over a body.

    Attributes:
        frame: what the body's variables are.
    """

    frame: Frame
    kinds: Mapping[Variable, SqlType]

    def typed(self, expression: Expression) -> Typed:
        """The tree of an expression and its type.

        Raises:
            UnlikeSparkError: DuckDB would compute another value for some rows.
        """
        found = self._type(expression)
        return self._tree(expression, found), found

    def _type(self, expression: Expression) -> SqlType:
        if isinstance(expression, Variable):
            return self.kinds[expression]
        if isinstance(expression, Constant):
            return value_type(expression.value)
        if isinstance(expression, Call) and expression.function in (
            "coalesce",
            "greatest",
            "least",
            "nullif",
        ):
            given = expression.arguments[:1] if expression.function == "nullif" else expression.arguments
            return common(self._type(one) for one in given)
        if isinstance(expression, Case):
            return common(self._type(e) for e in (*(e for _, e in expression.branches), expression.otherwise))
        if isinstance(expression, Aggregate) and expression.function in (
            AggregateFunction.MIN,
            AggregateFunction.MAX,
        ):
            assert expression.operand is not None
            return self._type(expression.operand)
        known = {
            v: kind for v in expression_variables([expression]) if not isinstance(kind := self.kinds[v], str)
        }
        return expression_type(expression, known) or ANY

    def _tree(self, expression: Expression, found: SqlType) -> exp.Expr:
        match expression:
            case Variable():
                return self.frame.tree(expression)
            case Constant(value):
                is_whole = isinstance(value, int) and not isinstance(value, bool)
                tree = self.frame.tree(expression)
                return tree if is_whole else cast(tree, found)
            case Minus(operand):
                return exp.Neg(this=exp.Paren(this=self._number(operand)[0]))
            case Arithmetic(operator, left, right):
                one, other = self._number(left), self._number(right)
                if ANY in (one[1], other[1]):
                    return exp.Null()
                assert not isinstance(found, str)
                return computed(operator, one, other, found)
            case Cast(operand, to, safe=safe):
                tree, kind = self.typed(operand)
                of_text = cast_text(tree, settled(to), safe=safe) if kind == _STRING else None
                if safe and of_text is None and not kind == to == _STRING:
                    raise UnlikeSparkError(f"`try_cast` of `{kind}` to `{to}`")
                return of_text or as_type(tree, kind, settled(to))
            case Call("nullif", (left, right)):
                equal = exp.If(this=self.condition(Compared("=", left, right)), true=exp.Null())
                return exp.Case(ifs=[equal], default=self.typed(left)[0])
            case Call(function, arguments):
                return called(function, [self.typed(argument) for argument in arguments], found)
            case Case(branches, otherwise):
                ifs = [
                    exp.If(this=self.condition(test), true=as_type(*self.typed(result), found))
                    for test, result in branches
                ]
                return exp.Case(ifs=ifs, default=as_type(*self.typed(otherwise), found))
            case Aggregate():
                return self._aggregate(expression)
            case _:
                assert_never(expression)

    def _number(self, expression: Expression) -> tuple[exp.Expr, ColumnType]:
        tree, kind = self.typed(expression)
        if isinstance(kind, str) or kind.family not in ("number", "any"):
            raise UnlikeSparkError(f"arithmetic on `{kind}`")
        return tree, kind

    def _aggregate(self, one: Aggregate) -> exp.Expr:
        if one.operand is None:
            return exp.Count(this=exp.Star())
        tree, kind = self.typed(one.operand)
        inner = exp.Distinct(expressions=[tree]) if one.distinct else tree
        match one.function:
            case AggregateFunction.COUNT:
                return exp.Count(this=inner)
            case AggregateFunction.MIN:
                return exp.Min(this=inner)
            case AggregateFunction.MAX:
                return exp.Max(this=inner)
            case AggregateFunction.SUM | AggregateFunction.AVG:
                return self._total(one, inner, kind)
            case _:
                assert_never(one.function)

    def _total(self, one: Aggregate, inner: exp.Expr, kind: SqlType) -> exp.Expr:
        if kind == ANY:
            return exp.Null()
        if isinstance(kind, str) or kind.family != "number":
            raise UnlikeSparkError(f"`{one.function.value}` of `{kind}`")
        total = cast(exp.Sum(this=inner), sum_type(kind))
        if one.function is AggregateFunction.SUM:
            return total
        number = exp.Count(this=inner.copy())
        if kind.name.is_integer or kind.name.is_floating:
            whole = exp.Sum(this=inner.copy())
            return exp.Div(this=cast(whole, DOUBLE), expression=number, typed=False, safe=True)
        return quotient((total, sum_type(kind)), (number, _BIGINT), average_type(kind), guarded=False)

    def condition(self, condition: Condition) -> exp.Expr:
        """The tree of a condition."""
        match condition:
            case Compared(operator, left, right):
                return OPERATORS[operator](**self._sides(left, right))
            case IsNull(operand, negated):
                test = exp.Not(this=exp.Null()) if negated else exp.Null()
                return exp.Is(this=exp.Paren(this=self.typed(operand)[0]), expression=test)
            case Holds(operand, negated):
                tree, kind = self.typed(operand)
                if kind not in (_BOOLEAN, ANY):
                    raise UnlikeSparkError(f"a condition of type `{kind}`")
                held = cast(exp.Paren(this=tree), _BOOLEAN)
                return exp.Not(this=held) if negated else held
            case AllOf(()):
                return exp.true()
            case AnyOf(()):
                return exp.false()
            case AllOf(conditions):
                return exp.and_(*self._each(conditions), copy=False)
            case AnyOf(conditions):
                return exp.or_(*self._each(conditions), copy=False)
            case _:
                assert_never(condition)

    def _each(self, conditions: Sequence[Condition]) -> list[exp.Expr]:
        return [exp.Paren(this=self.condition(one)) for one in conditions]

    def _sides(self, left: Expression, right: Expression) -> dict[str, exp.Expr]:
        """Two expressions in the type in which Spark compares them."""
        (one, kind), (other, of) = self.typed(left), self.typed(right)
        known = [k for k in (kind, of) if not isinstance(k, str)]
        if any(k.name.is_floating for k in known) and all(k.family in ("number", "any") for k in known):
            wanted: SqlType = DOUBLE
        else:
            wanted = common([kind, of])
        return {
            "this": exp.Paren(this=as_type(one, kind, wanted)),
            "expression": exp.Paren(this=as_type(other, of, wanted)),
        }


def view(
    definition: ViewDefinition, tables: Mapping[Predicate, Table], types: Types, *, distinct: bool
) -> tuple[exp.Query, tuple[SqlType, ...]]:
    """The query whose rows are a view's, columns `c0`, `c1`, ..., and their types.

    With `distinct` each row comes once, whatever the definition says.

    Raises:
        UnlikeSparkError: DuckDB would compute another value for some rows.
        EmissionError: a relation without a table, or an unsafe body.
    """
    blocks = [_query(one, tables, types) for one in definition.blocks]
    width = len(definition.columns)
    united = tuple(common(made.types[i] for made in blocks) for i in range(width))
    queries = [_named(made, united) for made in blocks]
    once = distinct or definition.semantics is Semantics.SET
    if len(queries) == 1:
        if once:
            queries[0].set("distinct", exp.Distinct())
        return queries[0], united
    return exp.union(*queries, distinct=once, copy=False), united


def _named(made: Derived, united: tuple[SqlType, ...]) -> exp.Select:
    (query,) = made.queries
    items = zip(query.expressions, made.types, united, strict=True)
    query.set("expressions", numbered_items([as_type(*item) for item in items]))
    return query


def _query(one: Block, tables: Mapping[Predicate, Table], types: Types) -> Derived:
    """The rows of a block, each as often as it stands, the outputs not yet named."""
    one = _without_void(replace(one, core=guard_joins(one.core)), types)
    require_comparable(one.core.body, types, {})
    body = Writer(tables).block(one.core.body)
    kinds = {v: term_type(body, v, types) for v in one.variables}
    trees = Trees(body.frame, kinds)
    outputs = [trees.typed(output) for output in one.outputs]
    filters = tuple(exp.Paren(this=trees.condition(condition)) for condition in one.filters)
    query = replace(body, where=(*body.where, *filters)).query(
        [tree for tree, _ in outputs], distinct=False, hint=False
    )
    if one.groups:
        query.set("group", exp.Group(expressions=[_group(trees, group) for group in one.groups]))
    having = [exp.Paren(this=trees.condition(condition)) for condition in one.having]
    if having:
        query.set("having", exp.Having(this=exp.and_(*having, copy=False)))
    return Derived((query,), tuple(kind for _, kind in outputs))


def _group(trees: Trees, group: Expression) -> exp.Expr:
    """A grouping expression; a bare constant in its place would be the number of a column."""
    tree, kind = trees.typed(group)
    return cast(tree, kind) if isinstance(tree, exp.Null | exp.Literal | exp.Boolean) else tree


def _without_void(one: Block, types: Types) -> Block:
    """The block with null for the variables that columns of nothing but nulls bind."""
    core: Rule = without_void(one.core, types)
    pairs = zip(one.core.head.terms, core.head.terms, strict=True)
    nulls = {old for old, new in pairs if isinstance(old, Variable) and isinstance(new, Constant)}
    if not nulls:
        return replace(one, core=core)

    def change(expression: Expression) -> Expression | None:
        return Constant(None) if expression in nulls else None

    return replace(
        one,
        core=core,
        outputs=tuple(map_expression(change, output) for output in one.outputs),
        filters=tuple(map_condition(change, condition) for condition in one.filters),
        groups=None if one.groups is None else tuple(map_expression(change, group) for group in one.groups),
        having=tuple(map_condition(change, condition) for condition in one.having),
    )
