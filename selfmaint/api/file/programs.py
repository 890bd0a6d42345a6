"""The definitions of views as they are given: Datalog, SQL, or a dbt manifest; told apart by what they are."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from datalog import syntax
from datalog.copies import replace
from datalog.model import Declaration, Program
from selfmaint.api.file.toml_tables import read_text
from selfmaint.errors import Code, input_error
from selfmaint.warehouse.catalog import Catalog, catalog
from selfmaint.warehouse.clock import MOMENTS, Clock

if TYPE_CHECKING:
    from datalog.sql.views import SqlText, SqlViews

# What reads SQL is loaded only where there is some.
# ruff: noqa: PLC0415

_SQL = re.compile(
    r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/)*(?:create|select|with)\b(?!\s*(?:[(@.]|:-))|\s*\(\s*select\b",
    re.IGNORECASE | re.DOTALL,
)


def is_sql(text: str) -> bool:
    r"""Whether a text is SQL and not rules, by how it begins.

    >>> is_sql("-- sales\ncreate view v as select 1"), is_sql("select(X) :- r(X)."), is_sql(".decl r(a: int).")
    (True, False, False)
    """
    return _SQL.match(text) is not None


def catalog_of(
    program: str | Program | SqlViews,
    source: str = "<program>",
    *,
    helpers: bool = False,
    moment: datetime | None = None,
) -> Catalog:
    """The catalog of definitions that are at hand.

    Args:
        program: rules or SQL as text, a program, or views that were read from SQL.
        source: the text's name for diagnostics.
        helpers: whether views in SQL that need one get a helper; see `helper_views`.
        moment: what the current date and time are in SQL; without it views that read them are not analysed.

    Raises:
        ProgramError: the definitions are not valid.
        InputError: SM105 definitions that are no views.
    """
    if isinstance(program, Program):
        return catalog(program)
    if not isinstance(program, str):
        return catalog_of_sql(program)
    if is_sql(program):
        from datalog.sql.views import SqlText

        return _catalog_of_texts([SqlText(program, source)], helpers=helpers, moment=moment)
    return _catalog_of_rules(syntax.parse_program(program, source))


def _catalog_of_rules(program: Program) -> Catalog:
    from datalog.rewrite.numbered import require_unnumbered

    require_unnumbered(program.declarations)
    return catalog(program)


def catalog_of_sql(found: SqlViews) -> Catalog:
    """The catalog of what texts of SQL define."""
    from datalog.rewrite.numbered import numbered, over_numbered, require_unnumbered
    from selfmaint.duckdb.small_databases import SmallDatabases

    require_unnumbered(found.declarations)
    views = {*(view.name for view in found.views), *(view.name for view in found.opaque)}
    tables = {one.name: numbered(one) for one in found.declarations if one.name not in views}
    declared = tuple(tables.get(one.name, one) for one in found.declarations)
    definitions = tuple(over_numbered(view, tables) for view in found.views)
    opaque = tuple(
        replace(
            view,
            parts=tuple(over_numbered(part, tables) for part in view.parts),
            outer=view.outer and view.outer.over(lambda part: over_numbered(part, tables)),
            anti=view.anti and view.anti.over(lambda part: over_numbered(part, tables)),
        )
        for view in found.opaque
    )
    made = catalog(Program((), declared, definitions), opaque, found.warnings)
    undone = (one for name, its in found.undone.items() if name not in made.outer for one in its)
    texts = SmallDatabases() if opaque else None
    return replace(made, remarks=(*made.remarks, *undone), texts=texts, queries=found.queries)


def _catalog_of_texts(
    texts: Sequence[SqlText],
    declarations: Sequence[Declaration] = (),
    *,
    helpers: bool,
    moment: datetime | None,
) -> Catalog:
    from datalog.sql.views import read_sql

    @lru_cache(MOMENTS)
    def at(other: datetime | None) -> Catalog:
        given = texts_at(texts, other)
        schema = catalog_of_sql(read_sql(given.texts, declarations))
        if helpers:
            from selfmaint.api.following.helper_views import with_helpers

            schema = with_helpers(
                schema, lambda more, instead: read_sql([*given.texts, *more], declarations, instead=instead)
            )
        return replace(schema, clock=given.clock(at, moment, digest))

    said = [(one.text, Path(one.name).name, one.parts, one.relation, one.outside) for one in texts]
    digest = digest_of(said, declarations, helpers)
    return at(moment)


def digest_of(*parts: object) -> str:
    """A digest of what definitions are read from, and of the version of what reads them."""
    from importlib import metadata

    try:
        reader = metadata.version("selfmaint")
    except metadata.PackageNotFoundError:  # run from a checkout that is not installed
        reader = ""
    return hashlib.sha256(repr((reader, *parts)).encode()).hexdigest()


class TextsAt(Struct, frozen=True):
    """Texts at a moment: see `current_time`.

    Attributes:
        moment: the moment; None where none is given, or none of them reads it.
        reads_time: whether they read more of it than the date.
    """

    texts: list[SqlText]
    moment: datetime | None = None
    reads_time: bool = False

    def clock(self, at: Callable[[datetime], Catalog], began: datetime | None, digest: str) -> Clock | None:
        """The clock of what they define; `began`: when they were read first; see `digest_of`."""
        return None if self.moment is None else Clock(self.moment, self.reads_time, at, began, digest)


def texts_at(texts: Sequence[SqlText], moment: datetime | None) -> TextsAt:
    """Texts at a moment, if one is given."""
    if moment is None:
        return TextsAt(list(texts))
    from datalog.sql.views.written_out.current_time import at_moment

    found = [at_moment(one.text, moment) for one in texts]
    made = [replace(one, text=its.text) for one, its in zip(texts, found, strict=True)]
    if not any(its.reads_date or its.reads_time for its in found):
        return TextsAt(made)
    return TextsAt(made, moment, any(its.reads_time for its in found))


def catalog_of_path(path: Path, *, helpers: bool = False, moment: datetime | None = None) -> Catalog:
    """The catalog of a file of rules or of SQL (`.sql`), or of a directory of `.sql` and `.dl` files.

    In a directory the files of rules hold declarations only; the views are those of the SQL files. With `helpers`
    those that need one get a helper. The current date and time are those of `moment`.

    Raises:
        ProgramError: the definitions are not valid.
        InputError: SM101 a file that cannot be read, or a directory without SQL; SM103 no such file.
    """
    if path.is_dir():
        return _directory(path, helpers=helpers, moment=moment)
    text = read_text(path, "program")
    if path.suffix.lower() == ".sql":
        from datalog.sql.views import SqlText

        return _catalog_of_texts([SqlText(text, str(path))], helpers=helpers, moment=moment)
    return _catalog_of_rules(syntax.parse_program(text, source=str(path)))


def _below(path: Path, suffix: str) -> list[Path]:
    """The files of a folder and its subfolders, in order, but for what is hidden."""
    found = (one for one in path.rglob(f"*{suffix}") if one.is_file())
    return sorted(one for one in found if not any(p.startswith(".") for p in one.relative_to(path).parts))


def _directory(path: Path, *, helpers: bool, moment: datetime | None) -> Catalog:
    from datalog.sql.views import SqlText

    texts = [SqlText(read_text(one, "program"), str(one)) for one in _below(path, ".sql")]
    if not texts:
        raise input_error(
            Code.WAREHOUSE_FILE,
            f"the directory `{path}` has no `.sql` files",
            hint="name a file of rules, a file of SQL, or a directory of files of SQL",
        )
    declarations: list[Declaration] = []
    for one in _below(path, ".dl"):
        declarations += syntax.parse_program(read_text(one, "program"), str(one)).declarations
    return _catalog_of_texts(texts, declarations, helpers=helpers, moment=moment)
