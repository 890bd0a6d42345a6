"""A query of people over the views of a warehouse: in a database of its own, which has the views and nothing else.

It opens no file but those of the views, and no setting can be changed: so whatever the query is, it only reads them.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import duckdb

from datalog.diagnostics import Diagnostic
from datalog.model import Span
from datalog.sql.duckdb.texts import escaped
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.failures import as_input_error
from selfmaint.duckdb.file_marks import Mark, mark
from selfmaint.duckdb.relation import Relation
from selfmaint.duckdb.store import files_query, literal, named, quoted
from selfmaint.errors import Code, InputError, QueryError, input_error
from selfmaint.store.stored_tables import TableFiles
from selfmaint.warehouse.near import no_view

if TYPE_CHECKING:
    import pyarrow as pa

SOURCE = "<query>"
"""What places call the text of a query."""

_UNKNOWN = re.compile(r"Catalog Error: Table with name \"?(.*?)\"? does not exist")
_KIND = re.compile(r"^(?:[A-Z][A-Za-z]* )+Error: ")
_PLACE = re.compile(r"^(LINE (\d+): )(.*)\n( *)\^", re.MULTILINE)
_NO_FILE = "file system operations are disabled"


@contextlib.contextmanager
def answered(
    query: str,
    views: Mapping[str, TableFiles | Relation],
    bases: Collection[str],
    settings: Mapping[str, str | int] | None,
) -> Iterator[pa.RecordBatchReader]:
    """What one SELECT gives, in its order, some rows at a time.

    Raises:
        InputError: SM102 it reads something else; SM103 a file is gone; SM104 one is damaged; SM108 it is no SELECT, or
            cannot be run. So may reading the rows.
    """
    files = {path: mark(path) for table in views.values() for path in _files(table)}
    database = Database(settings)
    try:
        _require_select(query)
        used = [name for name in views if name.replace('"', '""').casefold() in query.casefold()]
        held = [_made(database, name, views[name]) for name in used]
        _shut(database, [path for name in used for path in _files(views[name])])
        yield database.answer(query)
        del held
    except (duckdb.Error, OSError) as failure:
        if not _KIND.match(
            str(failure)
        ):  # a reader of Arrow passes on as such what DuckDB says; this is another one
            raise
        raise _refused(failure, query, views, bases, files) from failure


def _files(table: TableFiles | Relation) -> list[str]:
    if isinstance(table, Relation):
        return []
    return [path for file in table.files for path in (file.path, file.deleted) if path is not None]


def _require_select(query: str) -> None:
    """Refuses anything but one SELECT."""
    kinds = [statement.type for statement in duckdb.extract_statements(query)]
    if kinds != [duckdb.StatementType.SELECT]:
        found = ", ".join(kind.name.replace("_", " ") for kind in kinds) or "nothing"
        message = f"a query is one SELECT, and this is {found}"
        raise input_error(Code.QUERY, message, "the views are only read here", "nothing was run")


def _made(database: Database, name: str, table: TableFiles | Relation) -> Relation | None:
    """Gives the database a view by name; what has to be held as long as it is read."""
    if isinstance(table, TableFiles):
        database.run(f"CREATE VIEW {quoted(name)} AS {files_query(table)}")
        return None
    held = Relation(database.given(table.arrow(), table.types), table.columns)
    database.run(f"CREATE TEMP VIEW {quoted(name)} AS {named(held)}")
    return held


def _shut(database: Database, files: list[str]) -> None:
    """Leaves the database nothing but some files to read; it stays so."""
    paths = ", ".join(literal(path) for file in files for path in {file, escaped(file)})
    database.run(f"SET allowed_paths = [{paths}]")
    database.run("SET enable_external_access = false")
    database.lock()


def _refused(
    failure: Exception,
    query: str,
    views: Mapping[str, TableFiles | Relation],
    bases: Collection[str],
    files: Mapping[str, Mark | None],
) -> InputError:
    """What is wrong with a query, with its place."""
    said = str(failure)
    if isinstance(failure, duckdb.Error) and any(file in said for file in files):
        other = as_input_error(failure, files)
        if other is not None:
            return other
    unknown = _UNKNOWN.match(said)
    code, hint = Code.QUERY, None
    if unknown is not None:
        code, (message, hint) = Code.UNKNOWN_RELATION, no_view(unknown[1], views, bases)
    else:
        text = _PLACE.sub("", said).strip()
        message = "DuckDB refuses the query: " + _KIND.sub("", text).replace("\n", " ").rstrip(".")
        words = _keywords(query, views) if isinstance(failure, duckdb.ParserException) else []
        if _NO_FILE in said:
            hint = "a query reads the views of the warehouse, and no files"
        elif words:
            hint = f"words of SQL that are names of views stand in quotes: {', '.join(words)}"
    return QueryError(Diagnostic(code, message, _span(said, query), hint=hint), {SOURCE: query})


def _keywords(query: str, views: Iterable[str]) -> list[str]:
    """The views whose names a query has without quotes, and that are words of DuckDB's SQL, in quotes."""
    with duckdb.connect() as database:
        database.execute("SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category <> 'unreserved'")
        words = {word for (word,) in database.fetchall()}
    names = (name for name in views if name.casefold() in words)
    plain = rf'(?<!["\w])({"|".join(map(re.escape, names)) or "(?!)"})(?!["\w])'
    return [f'"{name}"' for name in dict.fromkeys(re.findall(plain, query, re.IGNORECASE))]


def _span(said: str, query: str) -> Span | None:
    """The place that DuckDB shows, below an excerpt of the line."""
    found = _PLACE.search(said)
    if found is None:
        return None
    line, excerpt, at = int(found[2]), found[3], len(found[4]) - len(found[1])
    whole = query.splitlines()[line - 1]
    plain = excerpt.removeprefix("...").removesuffix("...")
    start = whole.find(plain) - (len(excerpt) - len(excerpt.removeprefix("..."))) if plain in whole else 0
    return Span(line, max(1, start + at + 1), 1, SOURCE)
