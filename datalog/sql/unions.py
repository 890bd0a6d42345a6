"""Several queries as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
    expressions, operands = in_front(queries, ())
    union = _all(operands) if len(operands) > 1 else operands[0]
    if expressions:
        union.set("with_", exp.With(expressions=expressions))
    return union


def in_front(queries: Iterable[exp.Query], taken: Iterable[str]) -> tuple[list[exp.CTE], list[exp.Query]]:
    """The common table expressions of some queries, to stand before all of them, and the queries without them.

    Equal ones become one, different ones of one name are renamed: so are those that hide a table that another reads.

    Args:
        queries: the queries; none has such expressions further in.
        taken: further names that the expressions must not have.
    """
    every = list(queries)
    used = set(casefolded([*taken, *(name[-1] for query in every for name in read_set(query))]))
    found: dict[exp.CTE, exp.CTE] = {}
    operands: list[exp.Query] = []
    for query in every:
        operand = query.copy()
        with_ = operand.args.get("with_")
        operand.set("with_", None)
        names: dict[str, str] = {}
        for expression in with_.expressions if with_ else ():
            _rename(names, expression)
            if expression not in found:
                name = unique(expression.alias, used)
                used.add(name.casefold())
                found[expression] = _named(expression, name)
            names[expression.alias] = found[expression].alias
        _rename(names, operand)
        operands.append(operand)
    return list(found.values()), operands


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


def _rename(names: Mapping[str, str], tree: exp.Expr) -> None:
    """Make the references to common table expressions refer to their new names, all at once."""
    for table in tree.find_all(exp.Table):
        old = table.name
        if not table.db and names.get(old, old) != old:
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(old, quoted=True)))
            table.set("this", exp.to_identifier(names[old], quoted=True))
