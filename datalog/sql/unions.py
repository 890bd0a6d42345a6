"""Several queries as one."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from datalog.sql.errors import EmissionError
from datalog.sql.names import casefolded, unique
from datalog.sql.reads import read_set


def union_all(queries: Sequence[exp.Query]) -> exp.Query:
    """One query with the rows of all, duplicates kept.

    Common table expressions move to the front: equal ones become one, different ones of one name are renamed.

    Args:
        queries: at least one, all with the same number of columns; the first names them.

    Raises:
        EmissionError: there is no query.

    >>> from sqlglot import parse_one
    >>> one = parse_one('with "a" as (select 1 as x) select x from "a"')
    >>> other = parse_one('with "a" as (select 2) select * from "a"')
    >>> union_all([one, other]).sql()
    'WITH "a" AS (SELECT 1 AS x), "a2" AS (SELECT 2) SELECT x FROM "a" UNION ALL SELECT * FROM "a2" AS "a"'
    """
    if not queries:
        raise EmissionError("a union of no queries has no columns")
    taken = set(casefolded([name[-1] for query in queries for name in read_set(query)]))
    hoisted: dict[exp.CTE, exp.CTE] = {}
    operands: list[exp.Query] = []
    for query in queries:
        operand = query.copy()
        with_ = operand.args.get("with_")
        operand.set("with_", None)
        expressions: list[exp.CTE] = with_.expressions if with_ else []
        for position, expression in enumerate(expressions):
            if expression not in hoisted:
                name = unique(expression.alias, taken)
                taken.add(name.casefold())
                hoisted[expression] = _named(expression, name)
            if (name := hoisted[expression].alias) != expression.alias:
                _rename(expression.alias, name, [*expressions[position + 1 :], operand])
        operands.append(operand)
    union = _all(operands) if len(operands) > 1 else operands[0]
    if hoisted:
        union.set("with_", exp.With(expressions=list(hoisted.values())))
    return union


def _named(expression: exp.CTE, name: str) -> exp.CTE:
    new = expression.copy()
    new.args["alias"].set("this", exp.to_identifier(name, quoted=True))
    return new


def _all(operands: Sequence[exp.Query]) -> exp.Query:
    return exp.union(*(_closed(operand) for operand in operands), distinct=False, copy=False)


def _closed(query: exp.Query) -> exp.Query:
    """The query in parentheses, if what follows could be read as a part of it."""
    is_open = isinstance(query, exp.SetOperation) or query.args.get("limit") or query.args.get("order")
    return query.subquery(copy=False) if is_open else query


def _rename(old: str, new: str, scope: Sequence[exp.Expr]) -> None:
    """Make the references to a common table expression, in what follows it, refer to its new name."""
    for tree in scope:
        for table in tree.find_all(exp.Table):
            if table.name == old and not table.db:
                if not table.alias:
                    table.set("alias", exp.TableAlias(this=exp.to_identifier(old, quoted=True)))
                table.set("this", exp.to_identifier(new, quoted=True))
