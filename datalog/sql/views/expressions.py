"""Scalar expressions and aggregates of SQL as the model's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from msgspec import Struct
from sqlglot import exp

from datalog.analysis.expression_types import settled
from datalog.copies import replace
from datalog.diagnostics import Code
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    Arithmetic,
    ArithmeticOperator,
    Case,
    Cast,
    ColumnType,
    Constant,
    Expression,
    Minus,
    TypeName,
    Value,
    takes,
)
from datalog.sql.views.calls import (
    CALLS,
    NAMED,
    PARTS,
    REGULAR,
    SHAPED,
    added,
    added_to_time,
    by_name,
    call,
    extracted,
    is_number_of_places,
    names_moment,
)
from datalog.sql.views.declared.column_types import column_type
from datalog.sql.views.moments import is_moment, moment
from datalog.sql.views.scope import Scope, Variables, family
from datalog.sql.views.source import Problems
from datalog.sql.views.typed_constants import typed_constant

_OF_TIME = ("date", "timestamp", "timestamp_ntz")
_ARITHMETIC: Mapping[type[exp.Expr], ArithmeticOperator] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
}
_AGGREGATES: Mapping[type[exp.Expr], AggregateFunction] = {
    exp.Count: AggregateFunction.COUNT,
    exp.Sum: AggregateFunction.SUM,
    exp.Avg: AggregateFunction.AVG,
    exp.Min: AggregateFunction.MIN,
    exp.Max: AggregateFunction.MAX,
}
_CALLS: Mapping[type[exp.Expr], str] = {
    exp.Abs: "abs",
    exp.Ascii: "ascii",
    exp.Ceil: "ceil",
    exp.Coalesce: "coalesce",
    exp.Concat: "concat",
    exp.DPipe: "concat",
    exp.Floor: "floor",
    exp.Greatest: "greatest",
    exp.IntDiv: "div",
    exp.IsNan: "isnan",
    exp.Least: "least",
    exp.Left: "left",
    exp.Length: "length",
    exp.Like: "like",
    exp.Lower: "lower",
    exp.MD5: "md5",
    exp.Mod: "mod",
    exp.Nullif: "nullif",
    exp.Replace: "replace",
    exp.Reverse: "reverse",
    exp.Right: "right",
    exp.Round: "round",
    exp.SHA: "sha1",
    exp.SHA2: "sha2",
    exp.Sign: "sign",
    exp.Sqrt: "sqrt",
    exp.Substring: "substring",
    exp.UnixSeconds: "unix_seconds",
    exp.Upper: "upper",
    **PARTS,
    **CALLS,
}
_DATE, *_TIMES = map(ColumnType, (TypeName.DATE, TypeName.TIMESTAMP, TypeName.TIMESTAMP_NTZ))


class Reader(Struct, frozen=True):
    """Reads the expressions of one query.

    Attributes:
        variables: the types of the block's variables.
        problems: where what cannot be read is noted.
        aggregates: whether an aggregate may stand here.
        inner: the scope inside aggregates, where it is another one.
    """

    scope: Scope
    variables: Variables
    problems: Problems
    aggregates: bool = False
    inner: Scope | None = None

    def within(self, scope: Scope, *, aggregates: bool = False, inner: Scope | None = None) -> Reader:
        """The same in another scope."""
        return replace(self, scope=scope, aggregates=aggregates, inner=inner)

    def expression(self, node: exp.Expr) -> Expression:
        """An expression.

        Raises:
            UnreadableError: what is wrong is among the problems.
        """
        if isinstance(node, exp.Column):
            return self.scope.resolve(node, self.problems)
        if type(node) in _ARITHMETIC:
            return self._arithmetic(node)
        if type(node) in _AGGREGATES:
            return self._aggregate(node)
        if is_moment(node):
            return self._moment(node)
        if type(node) in _CALLS:
            return self._call(_CALLS[type(node)], node)
        if type(node) in SHAPED or (isinstance(node, exp.Anonymous) and node.name.lower() in NAMED):
            return self._shaped(node)
        return self._other(node)

    def value(self, node: exp.Expr) -> Expression:
        """An expression where its type matters: it is part of another one, or a column."""
        if isinstance(inside := node.unnest(), exp.Column):
            return self.scope.typed(inside, self.problems)
        found = self.expression(inside)
        if isinstance(inside, exp.Cast) and isinstance(found, Constant):
            kind = settled(column_type(inside.to) or ANY)
            return found if kind.is_open or kind == self.variables.type_of(found) else Cast(found, kind)
        return found

    def _shaped(self, node: exp.Expr) -> Expression:
        """A call whose arguments sqlglot keeps in parts of their own, or that has no kind of its own."""
        if isinstance(node, exp.Anonymous):
            found: tuple[str, Sequence[exp.Expr]] | None = NAMED[node.name.lower()], node.expressions
        else:
            found = SHAPED[type(node)](node)
        if found is None:
            if isinstance(node, REGULAR):
                hint = "write a pattern of classes, groups and repetitions out; no flags: all matches are replaced"
                raise self.problems.outside("this regular expression", node, hint)
            raise self.problems.outside("this form of a function", node, "write its usual form")
        return self._checked(found[0], tuple(map(self.value, found[1])), node)

    def _literal(self, node: exp.Literal) -> Value:
        text = str(node.this)
        if node.is_string:
            return text
        try:
            if "e" in text.lower():
                return float(text)
            return Decimal(text) if "." in text else int(text)
        except (ArithmeticError, ValueError):
            raise self.problems.outside(f"the number `{text}`", node, "write its digits out") from None

    def _other(self, node: exp.Expr) -> Expression:
        match node:
            case exp.Paren():
                return self.expression(node.this)
            case exp.Literal():
                return Constant(self._literal(node), self.problems.source.span_of(node))
            case exp.Boolean():
                return Constant(bool(node.this))
            case exp.Null():
                return Constant(None)
            case exp.Neg():
                operand = self.value(node.this)
                match operand:
                    case Constant(Decimal() as value):
                        return replace(operand, value=value.copy_negate())
                    case Constant(int() | float() as value) if not isinstance(value, bool):
                        return replace(operand, value=-value)
                return Minus(operand, self.problems.source.span_of(node))
            case exp.Cast():
                return self._cast(node)
            case exp.Case() | exp.If():
                return self._case(node)
            case exp.TsOrDsToDate() | exp.Extract() | exp.Anonymous():
                return self._of_time(node)
            case exp.Predicate() | exp.And() | exp.Or() | exp.Not():
                return self._truth(node)
            case _:
                hint = "write `case when ... then ... else ... end`"
                raise self.problems.outside("this expression", node, hint)

    def _arithmetic(self, node: exp.Expr) -> Expression:
        if isinstance(node.expression, exp.Interval):
            return self._later(node, node.expression)
        left, right = self._operand(node.this), self._operand(node.expression)
        days = self._days(node, left, right)
        if days is not None:
            return call("date_add", (left, days), self.problems.source.span_of(node))
        for side, tree in ((left, node.this), (right, node.expression)):
            found = family(self.variables.type_of(side))
            if found not in ("number", "any"):
                hint = "`datediff(a, b)` is the number of days between; or compare with a constant date"
                raise self.problems.outside(f"arithmetic on a {found}", tree, hint)
        return Arithmetic(_ARITHMETIC[type(node)], left, right, self.problems.source.span_of(node))

    def _operand(self, node: exp.Expr) -> Expression:
        """A value in arithmetic, where a whole number that is written out has as many digits as it shows."""
        found, inside = self.value(node), node.unnest()
        if isinstance(inside, exp.Cast) and isinstance(found, Constant) and type(found.value) is int:
            return Cast(found, settled(column_type(inside.to) or ANY))
        return found

    def _days(self, node: exp.Expr, left: Expression, right: Expression) -> Expression | None:
        """What is added to a date: a number of days written out."""
        is_of_date = family(self.variables.type_of(left)) == "date" and isinstance(node, exp.Add | exp.Sub)
        if not (is_of_date and isinstance(right, Constant) and type(right.value) is int):
            return None
        return right if isinstance(node, exp.Add) else replace(right, value=-right.value)

    def _later(self, node: exp.Expr, interval: exp.Interval) -> Expression:
        """A date so many days or months later or earlier."""
        left, more = self.expression(node.this), added(interval)
        is_sum = isinstance(node, exp.Add | exp.Sub)
        later = added_to_time(interval)
        if later is not None and is_sum and self.variables.type_of(left) in _TIMES:
            of_unit = Constant(later[0]), Constant(later[1] if isinstance(node, exp.Add) else -later[1]), left
            return call("timestampadd", of_unit, self.problems.source.span_of(node))
        if more is None or not is_sum or family(self.variables.type_of(left)) != "date":
            hint = "add days, weeks, months or years to a date, or hours, too, to a time"
            raise self.problems.outside("this interval", interval, hint)
        number = Constant(more[1] if isinstance(node, exp.Add) else -more[1])
        return call(more[0], (left, number), self.problems.source.span_of(node))

    def _of_time(self, node: exp.Expr) -> Expression:
        if isinstance(node, exp.TsOrDsToDate):
            inside = self.expression(node.this)
            is_written = node.args.get("safe")  # else it is around what a part is of
            return Cast(inside, _DATE, self.problems.source.span_of(node)) if is_written else inside
        found = extracted(node) if isinstance(node, exp.Extract) else by_name(node)
        if found is None:
            said = "extract" if isinstance(node, exp.Extract) else node.name.lower()
            hint = "write a unit out that Spark has, such as `'month'`, or a pattern of yyyy, MM, dd, HH, mm and ss"
            raise self.problems.outside(f"this `{said}`", node, hint)
        name, arguments = found
        return call(name, tuple(map(self.value, arguments)), self.problems.source.span_of(node))

    def _aggregate(self, node: exp.Expr) -> Expression:
        function = _AGGREGATES[type(node)]
        if not self.aggregates:
            raise self.problems.error(
                Code.SQL_GROUPING,
                f"the aggregate `{function.value}` cannot stand here",
                node,
                "aggregates are computed behind WHERE",
                hint="put the condition into HAVING, or aggregate once only",
            )
        distinct = isinstance(node.this, exp.Distinct)
        operands = [*node.this.expressions] if distinct else [node.this, *node.expressions]
        span = self.problems.source.span_of(node)
        if len(operands) != 1:
            raise self.problems.outside("a count of several columns", node, "count one column, or rows")
        if isinstance(operands[0], exp.Star):
            if distinct or function is not AggregateFunction.COUNT:
                raise self.problems.outside(f"`{function.value}` of `*`", node, "name one column")
            return Aggregate(function, None, distinct, span)
        inside = replace(self, aggregates=False, scope=self.inner or self.scope)
        operand = inside.value(operands[0])
        kind = family(self.variables.type_of(operand))
        if function in (AggregateFunction.SUM, AggregateFunction.AVG) and kind not in ("number", "any"):
            raise self.problems.error(
                Code.COMPARISON_TYPE, f"`{function.value}` of a {kind}", node, "only numbers have one"
            )
        return Aggregate(function, operand, distinct, span)

    def _moment(self, node: exp.Expr) -> Expression:
        """A variance or standard deviation, from counts and sums that are exact."""
        value = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
        if isinstance(value, exp.Distinct):
            raise self.problems.outside(
                "DISTINCT in this aggregate", node, "aggregate over a view of different rows"
            )
        inside = replace(self, aggregates=False, scope=self.inner or self.scope)
        kind = self.variables.type_of(inside.expression(value)) or ANY
        made = moment(node, kind)
        if made is None:
            what = f"a variance or standard deviation of `{kind}`"
            hint = "its last digits depend on the order of rows, and `inexact_sums` is of sums and averages alone: "
            raise self.problems.outside(what, node, f"{hint}cast what it is of to a decimal of few digits")
        return self.expression(made)

    def _call(self, name: str, node: exp.Expr) -> Expression:
        arguments = [node.args.get("this"), *node.args.get("expressions", ())]
        arguments += [
            node.args.get(part) for part in ("expression", "replacement", "start", "length", "decimals")
        ]
        read = tuple(self.value(argument) for argument in arguments if isinstance(argument, exp.Expr))
        if name == "round" and not all(is_number_of_places(one) for one in read[1:]):
            hint = "write a number of places: 0 or more"
            raise self.problems.outside("`round` to tens, or to places that are not written out", node, hint)
        if name == "left":
            name, read = "substring", (read[0], Constant(1), *read[1:])
        if name == "replace" and len(read) == 2:  # noqa: PLR2004 - what is replaced goes
            read = (*read, Constant(""))
        return self._checked(name, read, node)

    def _checked(self, name: str, read: tuple[Expression, ...], node: exp.Expr) -> Expression:
        """A call with as many arguments as its function takes."""
        if not takes(name, len(read)):
            message = f"`{name}` does not take {len(read)} argument{'' if len(read) == 1 else 's'}"
            raise self.problems.error(Code.ARITY_DIFFERS, message, node)
        return call(name, read, self.problems.source.span_of(node))

    def _cast(self, node: exp.Cast) -> Expression:
        to = column_type(node.to)
        if to is None:
            what = f"a cast to `{node.to.sql('spark').lower()}`"
            raise self.problems.outside(what, node, "cast to a simple type")
        operand = self.expression(node.this)
        if node.args.get("safe") and family(self.variables.type_of(operand)) != "string":
            raise self.problems.outside(
                "`try_cast` of other than a text", node, "use `cast`, on values that fit"
            )
        if isinstance(operand, Constant):
            constant = typed_constant(operand.value, to)
            if constant is not None:
                return replace(operand, value=constant)
            if isinstance(operand.value, str) and names_moment(operand.value) and family(to) in _OF_TIME:
                hint = "write `current_date`, and add days to it"
                raise self.problems.outside(f"the word `{operand.value.strip()}` as a date", node, hint)
        if self.variables.type_of(operand) == to and not to.is_open:  # as staging models write of each column
            return operand
        return Cast(operand, to, self.problems.source.span_of(node), safe=bool(node.args.get("safe")))

    def _truth(self, node: exp.Expr) -> Expression:
        """A condition as a value: true, false, or null where it is neither."""
        from datalog.sql.views.conditions import condition  # noqa: PLC0415 - they hold each other

        holds, fails = (condition(self, node, negated=negated) for negated in (False, True))
        branches = (holds, Constant(True)), (fails, Constant(False))
        return Case(branches, Constant(None), self.problems.source.span_of(node))

    def _case(self, node: exp.Case | exp.If) -> Expression:
        from datalog.sql.views.conditions import condition  # noqa: PLC0415 - they hold each other

        ifs = [node] if isinstance(node, exp.If) else node.args["ifs"]
        otherwise = node.args.get("false" if isinstance(node, exp.If) else "default")
        branches = []
        for one in ifs:
            test = (
                one.this
                if isinstance(node, exp.If) or node.this is None
                else exp.EQ(this=node.this.copy(), expression=one.this.copy())
            )
            branches.append((condition(self, test), self.value(one.args["true"])))
        last = Constant(None) if otherwise is None else self.value(otherwise)
        return Case(tuple(branches), last, self.problems.source.span_of(node))
