"""Statements: Datalog, or objects for JSON."""

from __future__ import annotations

from collections.abc import Sequence

from datalog.syntax import show
from selfmaint.api.printed import one_line
from selfmaint.api.statements import Statement
from selfmaint.report.values import Json


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
