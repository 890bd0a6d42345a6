"""Which columns the tables have that no dbt model makes: as their files say, else dbt's catalog, else the YAML.

The YAML of a source documents its columns: some of them, most often without types, or none. So the columns are

1. those of the Parquet files or the folder that the warehouse file names for the table (`[relations.NAME]`);
2. those in `catalog.json` beside the manifest, which `dbt docs generate` writes from the database;
3. those that the YAML names.

A `data_type` in the YAML goes before the type that is found otherwise. Source: dbt, "Catalog JSON file".
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from datalog.copies import replace
from datalog.diagnostics import Code as ProgramCode
from datalog.diagnostics import Diagnostic
from datalog.model import Column, ColumnType, Unmodelled
from datalog.model.schema import OTHER_HINT
from datalog.sql.views import column_in, column_of_text
from selfmaint.api.file.dbt_remarks import SPARK
from selfmaint.api.file.toml_tables import read_text
from selfmaint.errors import Code, InputError, input_error

if TYPE_CHECKING:
    from selfmaint.api.file.dbt_keys import Shown
    from selfmaint.duckdb.engine import DuckEngine

_CATALOG = "catalog.json"
_HINT = (
    "run `dbt docs generate`, which writes all columns with their types into `target/catalog.json`: it is read beside "
    "the manifest; or name the table's Parquet files in `[relations.NAME]`; or add its columns to the YAML"
)


class KnownColumns(Struct, dict=True):
    """What is known of columns besides the manifest.

    Attributes:
        catalog: by unique id what dbt's catalog has.
        places: by base relation the file or folder that it is stored in.
        staging: by model what it shows of a base relation, once it is found out: see `dbt_keys.py`.
    """

    catalog: Mapping[str, Any]
    places: Mapping[str, str]
    staging: Mapping[str, Shown] | None = None

    @cached_property
    def stored(self) -> Mapping[str, tuple[Column, ...] | str]:
        """The columns of relations in Parquet files on this machine, or why they do not tell."""
        if not self.places:
            return {}
        from selfmaint.duckdb.engine import DuckEngine  # noqa: PLC0415 - only where files tell

        engine = DuckEngine()
        return {name: _stored(engine, place, name) for name, place in self.places.items()}

    @classmethod
    def beside(cls, manifest: Path, places: Mapping[str, str]) -> KnownColumns:
        """With dbt's catalog in the folder of a manifest, if there is one.

        Raises:
            InputError: SM107 a catalog that is none.
        """
        path = manifest.parent / _CATALOG
        if not path.is_file():
            return cls({}, places)
        try:
            data = json.loads(read_text(path, "dbt catalog"))
        except (ValueError, RecursionError):
            data = None
        sections = [data.get(name) for name in ("nodes", "sources")] if isinstance(data, dict) else [None]
        if not all(isinstance(one, dict) for one in sections):
            message = f"`{path}` is no dbt catalog: it has no `nodes` and `sources`"
            raise input_error(Code.MANIFEST, message, "run `dbt docs generate` again, or delete it")
        return cls({i: one for section in sections if section for i, one in section.items()}, places)

    def columns(self, nodes: Mapping[str, Mapping[str, Any]], name: str, adapter: str) -> tuple[Column, ...]:
        """The columns of a relation, of which a manifest has some nodes; none if nothing says."""
        documented = {
            str(one.get("name", key)).casefold(): _column(
                str(one.get("name", key)), one.get("data_type"), adapter
            )
            for node in nodes.values()
            for key, one in (node.get("columns") or {}).items()
        }
        stored = self.stored.get(name, "")
        found = self._in_catalog(nodes, adapter) if isinstance(stored, str) else stored
        if not found:
            return tuple(documented.values())
        folded = Counter(one.name.casefold() for one in found)
        if twice := sorted(one.name for one in found if folded[one.name.casefold()] > 1):
            shown = " and ".join(f"`{one}`" for one in twice)
            message = f"the columns {shown} of `{name}` differ in case alone: Spark takes them for one"
            raise input_error(Code.MANIFEST, message, "rename one, or read the table through a view")
        return tuple(_typed(one, documented.get(one.name.casefold())) for one in found)

    def _in_catalog(self, identifiers: Iterable[str], adapter: str) -> tuple[Column, ...]:
        for identifier in identifiers:
            entry = self.catalog.get(identifier)
            columns = entry.get("columns") if isinstance(entry, dict) else None
            if isinstance(columns, dict) and columns:
                return tuple(_of_catalog(columns, adapter))
        return ()

    def missing(self, manifest: Path, names: Sequence[str]) -> InputError:
        """That nothing says which columns some relations have."""
        shown = ", ".join(f"`{name}`" for name in names)
        message = (
            f"nothing says which columns {shown} of the dbt manifest `{manifest}` have, which models read"
        )
        why = [its for name in names if isinstance(its := self.stored.get(name), str)]
        return InputError([Diagnostic(Code.MANIFEST, message, note="; ".join(why) or None, hint=_HINT)])


def said_of_unknown(one: Diagnostic) -> Diagnostic:
    """What is wrong with a program, with what to know of the columns of a dbt project."""
    if one.code is not ProgramCode.SQL_UNKNOWN_COLUMN or one.note is not None:
        return one
    return replace(one, note=f"of a source whose YAML does not name all columns: {_HINT}")


def _typed(found: Column, documented: Column | None) -> Column:
    """A column with the type that is documented, if one is."""
    said = documented is not None and (
        documented.type != Column("").type or documented.unmodelled is not None
    )
    return replace(documented, name=found.name) if said and documented is not None else found


def _of_catalog(columns: Mapping[str, Any], adapter: str) -> Iterator[Column]:
    entries = [(name, one) for name, one in columns.items() if isinstance(one, dict)]
    for name, one in sorted(entries, key=lambda entry: _index(entry[1])):
        yield _column(str(one.get("name") or name), str(one.get("type") or ""), adapter)


def _column(name: str, text: str | None, adapter: str) -> Column:
    """A column of the type that is said in an adapter's dialect."""
    return column_of_text(name, text) if adapter in SPARK else column_in(name, text, adapter)


def _index(column: Mapping[str, Any]) -> int:
    index = column.get("index")
    return index if isinstance(index, int) else 0


def _stored(engine: DuckEngine, place: str, name: str) -> tuple[Column, ...] | str:
    from selfmaint.duckdb.files import read_as_stored  # noqa: PLC0415 - see above

    try:
        found = read_as_stored(engine.database, place, name)
    except InputError as error:
        return error.diagnostics[0].message
    kinds = zip(found.columns, found.types, strict=True)
    return tuple(
        Column(column, kind)
        if isinstance(kind, ColumnType)
        else Column(column, unmodelled=Unmodelled(kind.lower(), OTHER_HINT))
        for column, kind in kinds
    )
