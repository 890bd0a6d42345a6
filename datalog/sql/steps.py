"""A query in steps: relations that are made of tables and of each other, each a common table expression.

WITH gained_rows AS (...), gained AS (SELECT ... FROM gained_rows GROUP BY ...), ... SELECT ... FROM gained ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sqlglot import exp

from datalog.model import Predicate, Program, Version, ViewDefinition
from datalog.sql.definitions import select, select_view
from datalog.sql.names import casefolded, identifier, unique
from datalog.sql.tables import Table
from datalog.sql.unions import in_front

Steps = Iterable[tuple[Predicate, Program | ViewDefinition, tuple[str, ...]]]
"""Relations in an order in which each is made of tables and of those before it; with the names of their columns."""


def select_in_steps(steps: Steps, result: ViewDefinition, tables: Mapping[Predicate, Table]) -> exp.Query:
    """The query whose rows are a definition's, over relations that are made in steps.

    Args:
        steps: the relations.
        result: the definition.
        tables: where the rows of what is not made are.

    Raises:
        EmissionError: a relation without a table, or unsafe rules.
    """
    known, names, queries = dict(tables), [], []
    taken = set(casefolded([table.name[-1] for table in tables.values()]))
    for predicate, made, columns in steps:
        if isinstance(made, Program):
            queries.append(select(made, predicate, known, columns=columns))
        else:
            queries.append(select_view(made, known))
        plain = predicate.name if predicate.version is Version.STEP else identifier(str(predicate))
        names.append(unique(plain, taken))
        taken.add(names[-1].casefold())
        known[predicate] = Table((names[-1],), columns)
    query = select_view(result, known)
    expressions, operands = in_front(queries, names)
    for name, operand in zip(names, operands, strict=True):
        alias = exp.TableAlias(this=exp.to_identifier(name, quoted=True))
        expressions.append(exp.CTE(this=operand, alias=alias))
    query.set("with_", exp.With(expressions=expressions))
    return query
