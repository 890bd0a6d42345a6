"""Expressions: which calls in them look at more than one row, or make several of one; and subqueries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TypeAlias

from msgspec import Struct, field
from sqlglot import exp

from datalog.copies import replace
from datalog.sql.affected.names import Scope, UnknownShapeError
from datalog.sql.affected.plan import Filter, Linked, Plan, Query, column, never_null, number_of
from datalog.sql.views.kept.one_result import sorted_list
from datalog.sql.views.kept.text_allowed import AGGREGATES
from datalog.sql.views.limits import parts_of
from datalog.sql.views.written_out.as_written import with_parts

_GENERATORS = frozenset(
    "explode explode_outer posexplode posexplode_outer inline inline_outer stack json_tuple".split()  # noqa: SIM905
)
_AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)


def called(node: exp.Expr, text: str) -> str:
    """The name by which a function is called in a text; empty of what is no call by name."""
    place = node.meta.get("start") if isinstance(node, exp.Func) else None
    return "" if place is None else text[place : node.meta["end"] + 1].strip("`").casefold()


def is_aggregate(node: exp.Expr, text: str) -> bool:
    """Whether a call, with what is written behind it, aggregates rows."""
    if isinstance(node, _AROUND):
        return is_aggregate(node.this, text)
    return isinstance(node, exp.AggFunc) or called(node, text) in AGGREGATES or bool(sorted_list(node))


def is_generator(node: exp.Expr, text: str) -> bool:
    """Whether a call makes several rows, or columns, of one."""
    return isinstance(node, exp.Explode | exp.Posexplode | exp.Inline) or called(node, text) in _GENERATORS


def windowed(node: exp.Window, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A window with its function's arguments, its partition and its order changed, but not the call itself."""

    def of_call(one: exp.Expr) -> exp.Expr:
        return with_parts(one, of_call) if isinstance(one, _AROUND) else with_parts(one, change)

    def part(one: exp.Expr) -> exp.Expr:
        return of_call(one) if one is node.this else change(one)

    return with_parts(node, part)


def _counts_rows(node: exp.Expr) -> bool:
    """Whether `*` stands in `count(*)`: in any other call, or behind DISTINCT, it is all columns."""
    return isinstance(node, exp.Star) and isinstance(node.parent, exp.Count)


def _names(trees: Iterable[exp.Expr]) -> Iterator[str]:
    return (one.name for tree in trees for one in tree.find_all(exp.Column))


Ctes: TypeAlias = "Mapping[str, Closed]"


class Closed(Struct, frozen=True):
    """A common table expression with those that it may read, and names for its columns."""

    tree: exp.Expr
    ctes: Ctes
    names: tuple[str, ...]


class Inner(Struct):
    """Reads expressions; their subqueries by a function that is given.

    Attributes:
        query: reads a query with the scope around it.
        linked: the subqueries found, by the name that stands for each.
    """

    query: Callable[[exp.Expr, Ctes, Scope | None], Query]
    linked: dict[str, Linked] = field(default_factory=dict)

    def tests(self, tree: exp.Expr, scope: Scope, ctes: Ctes, plan: Plan) -> list[exp.Expr]:
        """The conditions that must all be true."""
        return [self._test(one, scope, ctes, plan) for one in parts_of(tree, exp.And)]

    def _test(self, tree: exp.Expr, scope: Scope, ctes: Ctes, plan: Plan) -> exp.Expr:
        """A condition; of one that looks for a value among rows it is known which of these matter."""
        negated = isinstance(tree, exp.Not)
        inside = tree.this.unnest() if negated else tree
        if not isinstance(inside, exp.In) or inside.args.get("query") is None:
            return self.resolved(tree, scope, ctes)
        found = self.resolved(inside, scope, ctes)
        one = self.linked[found.name]
        assert one.operand is not None
        operands = one.operand.expressions if isinstance(one.operand, exp.Tuple) else [one.operand]
        pairs = [
            (around, its)
            for operand, its in zip(operands, one.columns, strict=True)
            if (around := number_of(operand)) is not None
        ]
        if negated and not all(never_null(plan, a) and never_null(one.plan, b) for a, b in pairs):
            pairs = []  # a null on either side makes `NOT IN` depend on all rows
        if len(operands) > 1 and not negated and not any(name in self.linked for name in _names(operands)):
            # Whether it is false or unknown is one: there is a row that has the values.
            equal = (exp.EQ(this=a, expression=column(b)) for a, b in zip(operands, one.columns, strict=True))
            one = replace(one, kind="exists", plan=Filter(one.plan, tuple(equal)), operand=None)
        self.linked[found.name] = replace(one, matched=tuple(pairs), unknown=None)
        return exp.Not(this=found) if negated else found

    def resolved(self, tree: exp.Expr, scope: Scope, ctes: Ctes) -> exp.Expr:
        """An expression whose columns have numbers, and whose subqueries have names."""

        def change(node: exp.Expr, *, negated: bool | None = False) -> exp.Expr:
            match node:
                case exp.Column():
                    return scope.resolved(node)
                case exp.AggFunc() if scope.added_up is not None:
                    return with_parts(node, partial(self.resolved, scope=scope.added_up, ctes=ctes))
                case exp.Exists() if isinstance(node.this, exp.Query):
                    return self._linked("exists", node.this, None, scope, ctes)
                case exp.In() if node.args.get("query") is not None:
                    # Where it is unknown Spark has false for it, and for NOT of it, which it moves inwards.
                    if negated is None:
                        raise UnknownShapeError("it computes with whether a value is among rows")
                    return self._among(node, change(node.this), scope, ctes, unknown=negated)
                case exp.Subquery():
                    return self._linked("scalar", node, None, scope, ctes)
                case (
                    exp.Query()
                    | exp.Lambda()
                    | exp.Any()
                    | exp.All()
                    | exp.Placeholder()
                    | exp.Collate()
                    | exp.Star()
                ) if not _counts_rows(node):
                    raise UnknownShapeError(f"it has a {type(node).__name__.lower()} in an expression")
                case exp.Not():
                    return with_parts(node, partial(change, negated=None if negated is None else not negated))
                case exp.And() | exp.Or() | exp.Paren():
                    return with_parts(node, partial(change, negated=negated))
                case exp.Alias() | exp.Case() | exp.If() | exp.Coalesce():
                    return with_parts(node, partial(change, negated=None if negated else negated))
                case _:
                    return with_parts(node, partial(change, negated=None))

        return change(tree)

    def _among(self, node: exp.In, operand: exp.Expr, scope: Scope, ctes: Ctes, *, unknown: bool) -> exp.Expr:
        found = self._linked("in", node.args["query"], operand, scope, ctes)
        self.linked[found.name] = replace(self.linked[found.name], unknown=unknown)
        return found

    def _linked(
        self, kind: str, tree: exp.Expr, operand: exp.Expr | None, scope: Scope, ctes: Ctes
    ) -> exp.Expr:
        found = self.query(tree, ctes, scope)
        width = len(operand.expressions) if isinstance(operand, exp.Tuple) else 1
        if kind != "exists" and len(found.outputs) != width:
            raise UnknownShapeError("a subquery has another number of columns than are asked for")
        name = f"s{len(self.linked)}"
        numbers = tuple(number for _, number in found.outputs)
        self.linked[name] = Linked(name, kind, found.plan, numbers, operand)  # type: ignore[arg-type]
        return exp.column(name)
