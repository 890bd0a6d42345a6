"""Statements: Spark SQL with comments, Datalog, or objects for JSON."""

from __future__ import annotations

from collections.abc import Sequence

from datalog.syntax import show
from selfmaint.api.statements import Statement
from selfmaint.report.values import Json


def statements_sql(found: Sequence[Statement]) -> str:
    """The queries as a script: each ends with a semicolon, and says before what its rows are."""
    return "\n".join(f"{_comment(statement)}\n{statement.sql};\n" for statement in found)


def _comment(statement: Statement) -> str:
    reads = ", ".join(statement.reads)
    lines = (f"{statement.kind.value} {statement.name}: {statement.about}", f"reads {reads}")
    return "\n".join(f"-- {_one_line(line)}" for line in lines)


def statements_datalog(found: Sequence[Statement]) -> str:
    """The rules of each query, with a comment before."""
    return "\n".join(f"% {_one_line(f'{s.kind.value}: {s.about}')}\n{show(s.program)}" for s in found)


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


def _one_line(line: str) -> str:
    """A name may hold a line feed, which would end a comment."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
