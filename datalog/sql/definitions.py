"""A view definition as one query: what recomputes the view from the relations that it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import assert_never

from msgspec import Struct
from sqlglot import exp

from datalog.copies import replace
from datalog.errors import EmissionError
from datalog.model import (
    Aggregate,
    AggregateFunction,
    AllOf,
    AnyOf,
    Arithmetic,
    Atom,
    Block,
    Call,
    Case,
    Cast,
    Compared,
    Condition,
    Constant,
    Expression,
    Holds,
    IsNull,
    Minus,
    NullTest,
    Predicate,
    Program,
    Rule,
    Semantics,
    Variable,
    Version,
    ViewDefinition,
)
from datalog.rewrite.guards import guard_joins
from datalog.rewrite.in_place import STEPS
from datalog.rewrite.inline import inline
from datalog.sql.block import Frame
from datalog.sql.conditions import OPERATORS, Writer
from datalog.sql.names import casefolded, plain_name, unique
from datalog.sql.tables import Table
from datalog.sql.unions import Union

_ARITHMETIC: Mapping[str, type[exp.Binary]] = {"+": exp.Add, "-": exp.Sub, "*": exp.Mul}
_AGGREGATES: Mapping[AggregateFunction, type[exp.AggFunc]] = {
    AggregateFunction.COUNT: exp.Count,
    AggregateFunction.SUM: exp.Sum,
    AggregateFunction.AVG: exp.Avg,
    AggregateFunction.MIN: exp.Min,
    AggregateFunction.MAX: exp.Max,
}
_DECLARED = (
    Version.STORED,
    Version.INSERTED,
    Version.DELETED,
    Version.BEFORE,
    Version.KNOWN,
    Version.AFTER,
    Version.GAINED,
    Version.LOST,
)
"""Versions whose rows are rows of the relation, so that its declaration names their columns."""


def _expression_tree(expression: Expression, frame: Frame) -> exp.Expr:
    """The tree of an expression over a body's variables."""
    match expression:
        case Variable() | Constant():
            return frame.tree(expression)
        case Arithmetic(operator, left, right):
            one, other = _operand(left, frame), _operand(right, frame)
            if operator == "/":
                return exp.Div(this=one, expression=other, typed=False, safe=True)
            return _ARITHMETIC[operator](this=one, expression=other)
        case Minus(operand):
            return exp.Neg(this=exp.Paren(this=_expression_tree(operand, frame)))
        case Cast(operand, column_type, safe=safe):
            inner = _expression_tree(operand, frame)
            to = exp.DataType.build(str(column_type), dialect="spark")
            return exp.TryCast(this=inner, to=to, safe=True) if safe else exp.Cast(this=inner, to=to)
        case Call("like", (text, pattern)):
            return exp.Like(this=_operand(text, frame), expression=_operand(pattern, frame))
        case Call("timestampadd" | "timestampdiff" as function, (Constant(unit), *times)):
            named: list[exp.Expr] = [exp.Var(this=str(unit).upper())]
            trees = [_expression_tree(one, frame) for one in times]
            return exp.Anonymous(this=function.upper(), expressions=named + trees)
        case Call(function, arguments):
            trees = [_expression_tree(argument, frame) for argument in arguments]
            return exp.Anonymous(this=function.upper(), expressions=trees)
        case Case(branches, otherwise):
            ifs = [
                exp.If(this=_condition_tree(test, frame), true=_expression_tree(result, frame))
                for test, result in branches
            ]
            return exp.Case(ifs=ifs, default=_expression_tree(otherwise, frame))
        case Aggregate(function, operand, distinct):
            inner = exp.Star() if operand is None else _expression_tree(operand, frame)
            return _AGGREGATES[function](this=exp.Distinct(expressions=[inner]) if distinct else inner)
        case _:
            assert_never(expression)


def _condition_tree(condition: Condition, frame: Frame) -> exp.Expr:
    """The tree of a condition over a body's variables."""
    match condition:
        case Compared(operator, left, right):
            return OPERATORS[operator](this=_operand(left, frame), expression=_operand(right, frame))
        case IsNull(operand, negated):
            test = exp.Not(this=exp.Null()) if negated else exp.Null()
            return exp.Is(this=_operand(operand, frame), expression=test)
        case Holds(operand, negated):
            held = _operand(operand, frame)
            return exp.Not(this=held) if negated else held
        case AllOf(()):
            return exp.true()
        case AnyOf(()):
            return exp.false()
        case AllOf(conditions):
            return exp.and_(*(exp.Paren(this=_condition_tree(one, frame)) for one in conditions), copy=False)
        case AnyOf(conditions):
            return exp.or_(*(exp.Paren(this=_condition_tree(one, frame)) for one in conditions), copy=False)
        case _:
            assert_never(condition)


def _operand(expression: Expression, frame: Frame) -> exp.Expr:
    """An operand, in parentheses unless it is a name, a function or a constant without a sign."""
    tree = _expression_tree(expression, frame)
    closed = isinstance(tree, exp.Column | exp.Func | exp.Literal | exp.Null | exp.Boolean)
    closed = closed and not isinstance(tree, exp.Case | exp.Predicate)
    return tree if closed else exp.Paren(this=tree)


def select_view(definition: ViewDefinition, tables: Mapping[Predicate, Table]) -> exp.Query:
    """The query whose rows are a view's.

    Raises:
        EmissionError: a relation without a table, or an unsafe body.

    >>> from datalog.model import Aggregate, AggregateFunction, Atom, Variable, block
    >>> from datalog.sql.text import text
    >>> x, y = Variable("X"), Variable("Y")
    >>> total = [x, Aggregate(AggregateFunction.SUM, y)]
    >>> body = [Atom(Predicate("r"), (x, y))]
    >>> view = ViewDefinition("v", ("x", "s"), (block("v", 0, body, total, groups=[x]),))
    >>> text(select_view(view, {Predicate("r"): Table(("r",), ("a", "b"))}), pretty=False)
    'SELECT `r`.`a` AS `x`, SUM(`r`.`b`) AS `s` FROM `r` GROUP BY `r`.`a`'
    """
    once = definition.semantics is Semantics.SET
    single = len(definition.blocks) == 1
    queries: list[exp.Query] = [
        _block_query(one, definition, tables, distinct=once and single) for one in definition.blocks
    ]
    return reduce(lambda left, right: exp.Union(this=left, expression=right, distinct=once), queries)


def select_above(definitions: Sequence[ViewDefinition], facts: Mapping[Predicate, Program]) -> exp.Query:
    """The query whose rows are those of the last of some views, over those before it and tables with written rows.

    Args:
        definitions: each behind those that it reads.
        facts: the rows of each table, as rules.

    Raises:
        EmissionError: a relation that is neither.

    >>> from datalog.model import Atom, Constant, Variable, block
    >>> from datalog.sql.text import text
    >>> r, x = Predicate("r"), Variable("X")
    >>> view = ViewDefinition("v", ("x",), (block("v", 0, [Atom(r, (x,))], [x]),))
    >>> rows = Program((Rule(Atom(r, (Constant(1),)), ()),))
    >>> text(select_above([view], {r: rows}), pretty=False)
    'WITH `r` AS (SELECT 1 AS `c0`) SELECT `r`.`c0` AS `x` FROM `r`'
    """
    tables: dict[Predicate, Table] = {}
    before: list[tuple[str, exp.Query]] = []
    for relation, rows in facts.items():
        arity = next(rule.head.arity for rule in rows.rules)
        columns = tuple(f"c{i}" for i in range(arity))
        before.append((relation.name, select(rows, relation, {}, columns=columns)))
        tables[relation] = Table((relation.name,), columns)
    for one in definitions:
        before.append((one.name, select_view(one, tables)))
        tables[Predicate(one.name)] = Table((one.name,), one.columns)
    _, query = before.pop()
    for name, its in before:
        query = query.with_(exp.to_identifier(name, quoted=True), as_=its)
    return query


def _block_query(
    one: Block, definition: ViewDefinition, tables: Mapping[Predicate, Table], *, distinct: bool
) -> exp.Select:
    body = Writer(tables).block(guard_joins(one.core).body)
    frame = body.frame
    filters = tuple(_condition_tree(condition, frame) for condition in one.filters)
    items = [
        exp.alias_(_expression_tree(output, frame), name, quoted=True)
        for output, name in zip(one.outputs, definition.columns, strict=True)
    ]
    wrapped = tuple(exp.Paren(this=condition) for condition in filters)
    query = replace(body, where=(*body.where, *wrapped)).query(items, distinct=False, hint=False)
    if distinct:
        query.set("distinct", exp.Distinct())
    if one.groups:
        query.set("group", exp.Group(expressions=[_expression_tree(group, frame) for group in one.groups]))
    having = [exp.Paren(this=_condition_tree(condition, frame)) for condition in one.having]
    if having:
        query.set("having", exp.Having(this=exp.and_(*having, copy=False)))
    return query


def select(
    program: Program,
    goal: Predicate,
    tables: Mapping[Predicate, Table],
    *,
    columns: Sequence[str] | None = None,
    hints: bool = False,
    distinct: bool = True,
) -> exp.Query:
    """The query whose rows are a predicate's extension.

    Duplicates: whoever reads a common table expression tests existence or removes duplicates itself, so these are
    UNION ALL without DISTINCT; only the goal's own query removes duplicates, and those of the steps that lead there.

    Args:
        program: safe, non-recursive rules.
        goal: the predicate asked for, one with rules or with a table.
        tables: where the rows of the predicates without rules are; a predicate with rules is never read.
        columns: names of the result's columns, one for each term of the goal (for a goal without terms, one:
            its only column is TRUE). By default those of the goal's declaration, else of the columns that
            the first rule takes them from.
        hints: whether to hint at broadcasts of the tables marked so.
        distinct: whether each row is to come once; else equal rows may come several times.

    Raises:
        EmissionError: the program is recursive or unsafe, or a predicate has neither rules nor a table.

    Semantics:
        Sets: no row twice, whatever duplicates the tables hold. Null is a value (equal to itself) where a
        variable occurs in several atoms; a comparison is false on null.

    >>> from datalog.model import Atom, Negation
    >>> from datalog.sql.text import text
    >>> r, s, p = Predicate("r"), Predicate("s"), Predicate("p")
    >>> x = Variable("X")
    >>> rule = Rule(Atom(p, (x,)), (Atom(r, (x,)), Negation((Atom(s, (x,)),))))
    >>> here = {r: Table(("r",), ("a",), frozenset({0})), s: Table(("s",), ("b",))}
    >>> text(select(Program((rule,)), p, here), pretty=False)
    'SELECT DISTINCT `r`.`a` FROM `r` WHERE NOT EXISTS(SELECT 1 FROM `s` WHERE `s`.`b` = `r`.`a`)'
    """
    return _written(program, goal, tables, columns=columns, hints=hints).query(distinct=distinct)


def select_table(
    program: Program, goal: Predicate, tables: Mapping[Predicate, Table]
) -> tuple[exp.Query, Table]:
    """The query whose rows are a predicate's extension, each once, and the table that they make, named like it.

    Raises:
        EmissionError: see `select`.
    """
    made = _written(program, goal, tables)
    return made.query(distinct=True), made.result.table(plain_name(goal))


class _Written(Struct, frozen=True):
    """A query, and its common table expressions by name."""

    result: Union
    expressions: Mapping[str, exp.Query]

    def query(self, *, distinct: bool) -> exp.Query:
        found = self.result.query(distinct=distinct)
        for name, query in self.expressions.items():
            found = found.with_(exp.to_identifier(name, quoted=True), as_=query, copy=False)
        return found


def _written(
    program: Program,
    goal: Predicate,
    tables: Mapping[Predicate, Table],
    *,
    columns: Sequence[str] | None = None,
    hints: bool = False,
) -> _Written:
    found = inline(program, goal) if goal in program.heads else {goal: (_stored(goal, tables),)}
    definitions = dict(found)
    arity = (program.rules_for(goal) or definitions[goal])[0].head.arity
    if columns is not None and len(columns) != max(arity, 1):
        raise EmissionError(f"predicate `{goal}` has arity {arity}, not {len(columns)} columns")
    rules = definitions.pop(goal, ()) or (_nothing(goal, arity),)
    known, expressions = _expressions(program, definitions, tables, hints=hints)
    names = columns or _declared(program, goal, arity)
    return _Written(Union.of(rules, Writer(known, hints), names), expressions)


def _expressions(
    program: Program,
    definitions: Mapping[Predicate, tuple[Rule, ...]],
    tables: Mapping[Predicate, Table],
    *,
    hints: bool,
) -> tuple[Mapping[Predicate, Table], Mapping[str, exp.Query]]:
    """Common table expressions of some predicates, by name, and the tables with them among it."""
    known = dict(tables)
    taken = set(casefolded([table.name[-1] for table in tables.values()]))
    expressions: dict[str, exp.Query] = {}
    for predicate, rules in definitions.items():
        names = _declared(program, predicate, rules[0].head.arity)
        union = Union.of(rules, Writer(known, hints), names)
        name = unique(plain_name(predicate), taken)
        taken.add(name.casefold())
        known[predicate] = union.table(name)
        expressions[name] = union.query(distinct=predicate.version in STEPS)
    return known, expressions


def _stored(goal: Predicate, tables: Mapping[Predicate, Table]) -> Rule:
    """A rule for all rows of a table."""
    if goal not in tables:
        raise EmissionError(f"predicate `{goal}` has neither rules nor a table")
    atom = Atom(goal, tuple(Variable(f"X{position}") for position in range(len(tables[goal].columns))))
    return Rule(atom, (atom,))


def _nothing(goal: Predicate, arity: int) -> Rule:
    """A rule that derives nothing."""
    return Rule(Atom(goal, (Constant(None),) * arity), (NullTest(Constant(None)),))


def _declared(program: Program, predicate: Predicate, arity: int) -> tuple[str, ...] | None:
    """The declared names of the columns, if the predicate's rows are rows of the relation."""
    declaration = program.declaration(predicate.name)
    if declaration is None or declaration.arity != arity or predicate.version not in _DECLARED:
        return None
    return declaration.column_names or None
