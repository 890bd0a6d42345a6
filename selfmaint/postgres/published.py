"""Whether a log says all that there is to say of some tables: what is published of them, and how."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct
from psycopg import sql

from datalog.diagnostics import Diagnostic
from selfmaint.errors import Code, SourceError
from selfmaint.postgres.connection import Connection
from selfmaint.postgres.log import ServerLog, log_error
from selfmaint.postgres.pgoutput import Column
from selfmaint.postgres.types import PostgresColumn, PostgresTable, columns_of
from selfmaint.store.expected import Expected

_NUMERIC = 1700
_TIMES = {1114, 1184}
_PUBLISHES_GENERATED = 180_000
"""From this version on a server publishes generated columns, and refuses to update rows that lack theirs."""
_STORED = "s"
_NOT_UPDATED = "PostgreSQL refuses to update rows of the table until it is run"
_HEADER = 4
"""What PostgreSQL adds to the sizes that a type has."""
_TABLE = """
    SELECT
        c.oid::bigint, n.nspname, c.relname, c.relkind::text, c.relpersistence::text, c.relreplident = 'f',
        EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE inhparent = c.oid), c.relfilenode::text,
        (SELECT json_agg(
            json_build_array(attname, atttypid::bigint, atttypmod, attnum, xmin::text, attgenerated) ORDER BY attnum)
            FROM pg_catalog.pg_attribute WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped)
    FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
    WHERE c.oid = to_regclass(%s)
"""
_PUBLICATION = """
    SELECT pubinsert AND pubupdate AND pubdelete AND pubtruncate,
        (SELECT json_agg(to_jsonb(t)) FROM pg_catalog.pg_publication_tables AS t WHERE t.pubname = p.pubname)
    FROM pg_catalog.pg_publication AS p WHERE pubname = %s
"""


class LoggedTable(Struct, frozen=True):
    """The table of a base relation.

    Attributes:
        mark: what tells it from another that takes its name, or has other types: see `mark`.
        shape: what shows that its rows were rewritten past the log: see `is_rewritten`.
        columns: the columns that are declared.
        stored: those of its columns that are generated and stored, where the server can publish them.
    """

    relation: str
    oid: int
    schema: str
    name: str
    mark: str
    shape: str
    columns: tuple[str, ...] = ()
    stored: frozenset[str] = frozenset()

    @property
    def identifier(self) -> sql.Identifier:
        """Its name in statements."""
        return sql.Identifier(self.schema, self.name)


def mark(oid: int, columns: Iterable[Column], declared: Sequence[str]) -> str:
    """What tells a table from another that takes its name, or is of other types: its id, and its columns' types."""
    known = {column.name: column for column in columns}
    return " ".join([str(oid), *(_type(known[name]) for name in declared if name in known)])


def is_rewritten(before: str, now: str) -> bool:
    """Whether a table's rows may have become others without the log saying so, between two shapes of it.

    A column that is dropped and made anew has another number. A change of type, or of all values of a column (`ALTER
    COLUMN ... TYPE ... USING`), writes the rows into another file and changes what is said of the column; VACUUM FULL
    and CLUSTER do the first alone, and what concerns no values the second.

    >>> is_rewritten("1 c2:7", "5 c2:7"), is_rewritten("1 c2:7", "1 c2:9")
    (False, False)
    >>> is_rewritten("1 c2:7", "5 c2:9"), is_rewritten("1 c2:7", "1 c3:9")
    (True, True)
    """
    (old_file, *old), (file, *new) = before.split(), now.split()
    if [one.partition(":")[0] for one in old] != [one.partition(":")[0] for one in new]:
        return True
    return old_file != file and old != new


def _type(column: Column) -> str:
    """A column's type; of numbers and times with the digits behind the point, which are lost where they get fewer."""
    digits = ""
    if column.type == _NUMERIC and column.modifier >= _HEADER:
        digits = f".{(column.modifier - _HEADER) & 0x7FF}"
    elif column.type in _TIMES and column.modifier >= 0:
        digits = f".{column.modifier}"
    return f"{column.name}:{column.type}{digits}"


def logged_tables(
    log: ServerLog, tables: Mapping[str, str], declarations: Mapping[str, Expected]
) -> list[LoggedTable]:
    """The tables of some base relations, all of whose changes the log says in full.

    Raises:
        SourceError: SM103 no such table; SM104 other columns; SM605 tables whose old rows are not logged whole; SM608
            what is not published; every problem of one kind at once.
    """
    found, problems = tables_of(log, tables, declarations)
    with log.connected("looking at the publication") as connection:
        published = connection.execute(_PUBLICATION, [log.publication]).fetchone()
    if published is None:
        message = f"there is no publication `{log.publication}` in the source `{log.source}`"
        hint = "`selfmaint follow WAREHOUSE.toml --create` makes it"
        names = ", ".join(f'"{one.schema}"."{one.name}"' for one in found)
        raise log_error(
            message, hint, f'it is made by: CREATE PUBLICATION "{log.publication}" FOR TABLE {names};'
        )
    problems += _unpublished(log, found, published)
    if problems:
        raise SourceError(problems)
    return found


def tables_of(
    log: ServerLog, tables: Mapping[str, str], declarations: Mapping[str, Expected]
) -> tuple[list[LoggedTable], list[Diagnostic]]:
    """The tables of some base relations, published or not, and what of them the log would not say.

    Raises:
        SourceError: SM103 no such table; SM104 other columns.
    """
    found, problems = [], []
    with log.connected("looking at the tables") as connection:
        for relation, text in tables.items():
            table, wrong = _table(connection, relation, PostgresTable.parse(text), declarations[relation])
            found.append(table)
            problems += wrong
    return found, problems


_UNLIKE_TEXTS = {
    "enum": "an enumeration, whose values may be renamed without a word of it in the log",
    "bpchar": "of type `char(n)`, whose values may be filled up with blanks",
}


def _not_followed(relation: str, column: PostgresColumn) -> Diagnostic:
    """What is wrong with a column whose texts may be others than those of the log."""
    what = f"column `{column.name}` of `{relation}` is {_UNLIKE_TEXTS[column.kind]}"
    return Diagnostic(Code.LOG, what, hint="give it the type `text`, or bring its changes in by updates")


def _table(
    connection: Connection, relation: str, table: PostgresTable, expected: Expected
) -> tuple[LoggedTable, list[Diagnostic]]:
    read = columns_of(connection, table, expected)
    shown = sql.Identifier(*table.parts).as_string(connection)
    row = connection.execute(_TABLE, [shown]).fetchone()
    assert row is not None
    oid, schema, name, kind, persistence, is_whole, has_children, file, raw = row
    attributes = cast(list[tuple[Any, ...]], raw)
    columns = [Column(str(n), int(t), int(m)) for n, t, m, *_ in attributes]
    what = "is no table that is logged" if kind not in ("r", "p") or persistence != "p" else None
    if has_children or kind == "p":
        what = "has partitions, or others that inherit from it: these may come and go past the log"
    if what is not None:
        hint = "the log of plain tables is followed: declare its parts as tables, and unite them in a view"
        raise log_error(f"`{shown}`, the table of `{relation}`, {what}", hint)
    wrong = Diagnostic(
        Code.FEED_BEFORE_IMAGE,
        f"of rows of `{relation}` that go the log says only their keys",
        hint=f"ALTER TABLE {shown} REPLICA IDENTITY FULL;",
        note="views lose what the old row gave them; changes from before that statement cannot be followed",
    )
    made = {str(n): str(generated) for n, *_, generated in attributes if generated}
    problems = [] if is_whole else [wrong]
    problems += [_not_followed(relation, column) for column in read if column.kind in _UNLIKE_TEXTS]
    problems += _generated(connection, relation, made, expected.columns)
    known = {n: f"c{number}:{xmin}" for n, _, _, number, xmin, _ in attributes}
    shape = " ".join([str(file), *(known[n] for n in expected.columns)])
    sign = mark(int(str(oid)), columns, expected.columns)
    publishes = connection.info.server_version >= _PUBLISHES_GENERATED
    stored = frozenset(column for column, how in made.items() if how == _STORED and publishes)
    found = LoggedTable(
        relation, int(str(oid)), str(schema), str(name), sign, shape, tuple(expected.columns), stored
    )
    return found, problems


def _generated(
    connection: Connection, relation: str, made: Mapping[str, str], declared: Collection[str]
) -> Iterator[Diagnostic]:
    """Generated columns that no log has, or that forbid that the table is published."""
    publishes = connection.info.server_version >= _PUBLISHES_GENERATED
    for column, how in made.items():
        what = f"the column `{column}` of `{relation}` is generated"
        if how != _STORED and publishes:
            message = f"{what} when it is read: with REPLICA IDENTITY FULL no row of a published table can be updated"
            yield Diagnostic(Code.LOG, message, hint="make it STORED, or drop it and compute it in a view")
        elif column in declared and (how != _STORED or not publishes):
            hint = f"leave `{column}` out of the declaration of `{relation}`, and compute it in a view"
            yield Diagnostic(Code.LOG, f"{what}, and this server does not log it", hint=hint)


def _unpublished(
    log: ServerLog, tables: Sequence[LoggedTable], published: Sequence[object]
) -> list[Diagnostic]:
    """What a publication leaves out."""
    is_all, entries = published
    name = sql.Identifier(log.publication).as_string(None)
    shown = f"the publication `{log.publication}`"
    known = {
        (one["schemaname"], one["tablename"]): one for one in (entries if isinstance(entries, list) else ())
    }
    wrong = []
    if not is_all:
        hint = f"ALTER PUBLICATION {name} SET (publish = 'insert, update, delete, truncate');"
        wrong.append(Diagnostic(Code.LOG, f"{shown} leaves some kinds of changes out", hint=hint))
    for table in tables:
        entry = known.get((table.schema, table.name))
        quoted = sql.Identifier(table.schema, table.name).as_string(None)
        if entry is None:
            hint = f"ALTER PUBLICATION {name} ADD TABLE {quoted};"
            note = "changes from before that statement cannot be followed"
            wrong.append(
                Diagnostic(
                    Code.LOG, f"{shown} has no table `{table.schema}.{table.name}`", hint=hint, note=note
                )
            )
        elif entry.get("rowfilter") is not None:
            hint = f"ALTER PUBLICATION {name} SET TABLE ... without WHERE"
            wrong.append(
                Diagnostic(Code.LOG, f"{shown} leaves rows of `{table.schema}.{table.name}` out", hint=hint)
            )
        elif missing := sorted({*table.columns, *table.stored} - {*entry["attnames"]}):
            is_stored = table.stored.issuperset(missing)
            hint = "publish the table without a list of columns"
            if is_stored:
                hint = f"ALTER PUBLICATION {name} SET (publish_generated_columns = stored);"
            what = f"{shown} leaves columns of `{table.schema}.{table.name}` out: {', '.join(missing)}"
            wrong.append(Diagnostic(Code.LOG, what, hint=hint, note=_NOT_UPDATED if is_stored else None))
    return wrong
