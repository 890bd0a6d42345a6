"""Statements, as Datalog or objects for JSON, and what a view in SQL became.

That is rules, or a definition that is more than rules; with the query that recomputes it.
"""

from __future__ import annotations

from collections.abc import Sequence

from datalog.model import OpaqueView, Predicate, Program
from datalog.sql import Table, select_view, text
from datalog.syntax import show
from selfmaint.api.printed import Statement, one_line
from selfmaint.report.values import Json
from selfmaint.warehouse.catalog import Catalog, View


def statements_datalog(found: Sequence[Statement]) -> str:
    """The rules of each query, with a comment before."""
    return "\n".join(f"% {one_line(f'{s.kind.value}: {s.about}')}\n{show(s.program)}" for s in found)


def statements_json(found: Sequence[Statement]) -> Json:
    """A list of `{kind, name, about, reads, sql, datalog}`; of tests and open groups also `exact`."""
    return [
        {
            "kind": statement.kind.value,
            "name": statement.name,
            "about": statement.about,
            "reads": list(statement.reads),
            "sql": statement.sql,
            "datalog": show(statement.program),
            **({} if statement.exact is None else {"exact": statement.exact}),
        }
        for statement in found
    ]


def definition_datalog(view: View, program: Program) -> str:
    """The rules that a view is, or its definition; the text of one that could not be read, as a comment."""
    rules = program.rules_for(view.predicate)
    if rules:
        return f"% view: {view.name}\n" + show(Program(rules))
    if isinstance(view.definition, OpaqueView):
        lines = [f"view, as text: {view.name}", *view.definition.text.splitlines()]
        return "\n".join(f"% {line}" for line in lines) + "\n"
    return "" if view.definition is None else f"% view: {view.name}\n{show(view.definition)}\n"


def recomputing_sql(view: View, catalog: Catalog) -> str:
    """The query that recomputes a view from its base relations, as a script; empty for a view of rules.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    if isinstance(view.definition, OpaqueView):
        query = view.definition.text
    elif view.definition is not None:
        tables = {Predicate(r.name): Table((r.name,), r.columns) for r in catalog.relations.values()}
        tables |= {other.predicate: Table((other.name,), other.columns) for other in catalog.views}
        query = text(select_view(view.definition, tables))
    else:
        return ""
    return f"-- recomputes {' '.join(view.name.split())} from what it reads\n{query};\n"
