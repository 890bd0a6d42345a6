"""The shape of a view definition: its operators, as those of a query's text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import reduce

from sqlglot import exp

from datalog.model import (
    Aggregate,
    AggregateFunction,
    Atom,
    Block,
    Comparison,
    Expression,
    NullTest,
    Semantics,
    Variable,
    ViewDefinition,
    aggregates_of,
    expression_variables,
    variables_of,
)
from datalog.sql.affected.names import UnknownShapeError
from datalog.sql.affected.plan import Aggregate as Grouping
from datalog.sql.affected.plan import (
    Combined,
    Distinct,
    Filter,
    Join,
    Plan,
    Project,
    Query,
    Scan,
    Table,
    column,
)


def plan_of_definition(definition: ViewDefinition, tables: Mapping[str, Table]) -> Query:
    """The operators of a definition.

    Raises:
        UnknownShapeError: it reads something else, or has a negation.
    """
    missing = [p.name for p in definition.reads if p.name not in tables]
    if missing:
        raise UnknownShapeError(f"it reads `{missing[0]}`, which is no base relation")
    making = _Making(tables)
    plan = reduce(making.united, [making.block(one) for one in definition.blocks])
    outputs = tuple(zip((c.casefold() for c in definition.columns), plan.columns, strict=True))
    return Query(Distinct(plan) if definition.semantics is Semantics.SET else plan, outputs)


_CALLS: Mapping[AggregateFunction, type[exp.Expr]] = {
    AggregateFunction.COUNT: exp.Count,
    AggregateFunction.SUM: exp.Sum,
    AggregateFunction.AVG: exp.Avg,
}


@dataclass
class _Making:
    tables: Mapping[str, Table]
    _columns: int = 0
    _scans: int = 0
    _places: dict[Variable, int] = field(default_factory=dict)

    def _number(self) -> int:
        self._columns += 1
        return self._columns

    def united(self, left: Plan, right: Plan) -> Plan:
        """Two blocks' rows."""
        sides = zip(left.columns, right.columns, strict=True)
        return Combined("union", False, left, right, tuple((self._number(), a, b) for a, b in sides))

    def block(self, block: Block) -> Plan:
        """A block's rows."""
        self._places.clear()
        plan = self._body(block)
        if block.filters:
            plan = Filter(
                plan, tuple(self._of_variables(expression_variables([one])) for one in block.filters)
            )
        if block.groups is None:
            return Project(plan, tuple((self._number(), self._tree(one)) for one in block.outputs))
        computed = [one for one in block.groups if not isinstance(one, Variable)]
        new = {one: self._number() for one in computed}
        if new:
            plan = Project(plan, tuple((n, self._tree(one)) for one, n in new.items()), extends=True)
        groups = tuple(
            dict.fromkeys(self._places[g] if isinstance(g, Variable) else new[g] for g in block.groups)
        )
        calls = aggregates_of((*block.outputs, *block.having))
        items = {one: (self._number(), self._call(one)) for one in calls}
        plan = Grouping(plan, groups, frozenset(groups), tuple(items.values()))
        if block.having:
            plan = Filter(plan, (exp.Anonymous(this="having"),))
        made: dict[Expression, exp.Expr] = {group: column(number) for group, number in new.items()}
        made |= {one: column(number) for one, (number, _) in items.items()}
        outputs = [made.get(one) or self._tree(one) for one in block.outputs]
        return Project(plan, tuple((self._number(), tree) for tree in outputs))

    def _body(self, block: Block) -> Plan:
        plan: Plan | None = None
        tests: list[exp.Expr] = []
        for literal in block.core.body:
            match literal:
                case Atom():
                    table = self.tables[literal.predicate.name]
                    self._scans += 1
                    scan = Scan(table, self._scans, tuple(self._number() for _ in table.columns))
                    plan = scan if plan is None else Join("inner", plan, scan)
                    for term, number in zip(literal.terms, scan.columns, strict=True):
                        if not isinstance(term, Variable):
                            tests.append(exp.Anonymous(this="constant", expressions=[column(number)]))
                        elif term in self._places:
                            tests.append(_equal(self._places[term], number))
                        else:
                            self._places[term] = number
                case Comparison() | NullTest():
                    pass
                case _:
                    raise UnknownShapeError("it has a negation")
        for one in block.core.body:
            match one:
                case Comparison("=", Variable() as left, Variable() as right):
                    tests.append(_equal(self._places[left], self._places[right]))
                case Comparison() | NullTest():
                    tests.append(self._of_variables(variables_of([one])))
        if plan is None:
            raise UnknownShapeError("it reads nothing")
        return Filter(plan, tuple(tests)) if tests else plan

    def _call(self, call: Aggregate) -> exp.Expr:
        if call.distinct or call.function not in _CALLS:
            return self._of([call])
        if call.operand is None:
            return exp.Count(this=exp.Star())
        return _CALLS[call.function](this=self._tree(call.operand))

    def _tree(self, expression: Expression) -> exp.Expr:
        if isinstance(expression, Variable):
            return column(self._places[expression])
        return self._of([expression])

    def _of(self, expressions: Iterable[Expression]) -> exp.Expr:
        return self._of_variables(expression_variables(tuple(expressions)))

    def _of_variables(self, variables: Iterable[Variable]) -> exp.Expr:
        """Anything that is computed from some columns."""
        return exp.Anonymous(this="computed", expressions=[column(self._places[one]) for one in variables])


def _equal(one: int, other: int) -> exp.Expr:
    return exp.EQ(this=column(one), expression=column(other))
