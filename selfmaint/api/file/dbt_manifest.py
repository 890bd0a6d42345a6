"""A dbt project as view definitions: its `manifest.json`, with the compiled SQL and the constraints in it.

- Sources, seeds, snapshots and models in Python are base relations; which columns they have: see `dbt_columns.py`.
- Models stored as tables (`table`, `incremental`, `materialized_view`) are views of the warehouse; models that
  are `view` or `ephemeral` are unfolded wherever they are read.
- `unique` and `not_null` tests, `relationships` tests and constraints of columns and models become keys, not-null
  columns and foreign keys: see `dbt_keys.py`.

Source: dbt, "Manifest JSON file" in its reference.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from datalog.copies import replace
from datalog.diagnostics import Diagnostic, ProgramError, Severity
from datalog.model import Column, Declaration
from datalog.sql.views import SqlText, SqlViews, read_sql
from datalog.sql.views.written_out.as_written import in_backticks
from datalog.sql.views.written_out.asserted import without_assertions
from selfmaint.api.file.dbt_columns import KnownColumns, said_of_unknown
from selfmaint.api.file.dbt_keys import Promises, Shown, carry_down, shown, to_keys
from selfmaint.api.file.dbt_nodes import (
    UNFOLDED,
    Node,
    is_model,
    kind,
    materialized,
    parts,
    reads,
    wrong_parts,
)
from selfmaint.api.file.dbt_remarks import SPARK, more_than_sql, remarks
from selfmaint.api.file.dbt_tests import own_macros
from selfmaint.api.file.programs import TextsAt, catalog_of_sql, digest_of, texts_at
from selfmaint.api.file.toml_tables import read_text
from selfmaint.errors import Code, InputError, input_error
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.clock import MOMENTS, Clock
from selfmaint.warehouse.near import near_miss

_STORED = frozenset({"table", "incremental", "materialized_view", "materializedview", "streaming_table"})


class Given(Struct, frozen=True):
    """What a warehouse file says of a dbt project.

    Attributes:
        places: by base relation the file or folder that it is stored in.
        unstored: models that are not stored in this warehouse, but unfolded where they are read.
    """

    places: Mapping[str, str] = field(default_factory=dict)
    unstored: tuple[str, ...] = ()


def read_dbt_manifest(path: Path, given: Given = Given()) -> SqlViews:  # noqa: B008 - it cannot be changed
    """The views and base relations of a dbt project.

    Args:
        path: its `manifest.json`, written by `dbt compile` (or `run`, `build`) with the Spark or Databricks
            adapter.
        given: what is known of it besides.

    Raises:
        InputError: SM103 no such file; SM107 no manifest, or one without compiled SQL or columns; SM102 no such model.
        ProgramError: SQL that is wrong; see `read_sql`.
    """
    known = KnownColumns.beside(path, given.places)
    return _Project(path, _load(path), known, given.unstored).views()


def catalog_of_dbt(
    path: Path,
    given: Given = Given(),  # noqa: B008 - it cannot be changed
    *,
    helpers: bool = False,
    moment: datetime | None = None,
) -> Catalog:
    """The catalog of a dbt project at a moment; see `read_dbt_manifest`. With `helpers` models that need one get it.

    Raises:
        InputError: also SM107 no model is stored.
    """
    data, known = _load(path), KnownColumns.beside(path, given.places)

    @lru_cache(MOMENTS)
    def at(other: datetime | None) -> Catalog:
        project = _Project(path, data, known, given.unstored, other)
        project.require_stored()
        schema = catalog_of_sql(project.views())
        if helpers:
            from selfmaint.api.following.helper_views import with_helpers  # noqa: PLC0415 - only where there are some

            schema = with_helpers(schema, project.views, project.unfolded())
        return replace(schema, clock=project.clock(at, moment, digest))

    digest = digest_of(data, known.catalog, known.stored, given.unstored, helpers)
    return at(moment)


def _load(path: Path) -> Mapping[str, Any]:
    text = read_text(path, "dbt manifest")
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        raise input_error(
            Code.MANIFEST, f"the dbt manifest `{path}` is not JSON: line {error.lineno}, column {error.colno}"
        ) from None
    except (ValueError, RecursionError):
        message = f"the dbt manifest `{path}` has a number of thousands of digits, or is nested too deeply"
        raise input_error(Code.MANIFEST, message) from None
    if not isinstance(data, dict) or not all(isinstance(data.get(k), dict) for k in ("nodes", "sources")):
        raise input_error(
            Code.MANIFEST,
            f"`{path}` is no dbt manifest: it has no `nodes` and `sources`",
            hint="name the `target/manifest.json` that `dbt compile` writes",
        )
    wrong = [
        Diagnostic(Code.MANIFEST, f"`{where}` in the dbt manifest `{path}` is {what}")
        for where, what in wrong_parts(data)
    ]
    if wrong:
        raise InputError(wrong)
    return data


class _Project(Struct, dict=True):
    """A project.

    Attributes:
        unstored: models that are unfolded, whatever their materialization.
    """

    path: Path
    data: Mapping[str, Any]
    known: KnownColumns
    unstored: tuple[str, ...] = ()
    moment: datetime | None = None

    def __post_init__(self) -> None:
        self._dated: list[TextsAt] = []
        everything = {**self.data["sources"], **self.data["nodes"]}
        self.nodes: dict[str, Node] = {i: n for i, n in everything.items() if isinstance(n, dict)}
        relations = [i for i, n in self.nodes.items() if kind(n) not in ("test", "operation", "analysis")]
        for identifier in relations:
            if not parts(self.nodes[identifier]):
                message = f"the node `{identifier}` of the dbt manifest `{self.path}` has no name"
                raise input_error(Code.MANIFEST, message)
        # A source may be what a seed or a model of the project makes.
        tables = {i: tuple(map(str.casefold, parts(self.nodes[i]))) for i in relations}
        sources = [i for i in relations if kind(self.nodes[i]) == "source"]
        others = [i for i in relations if i not in sources]
        made = {tables[i]: i for i in (*reversed(sources), *others)}
        self.same = {i: made[tables[i]] for i in sources}
        own = [i for i in relations if self.same.get(i, i) == i]
        self.names = _names({i: parts(self.nodes[i]) for i in own})
        models = {self.names[i] for i in own if is_model(self.nodes[i])}
        if unknown := [name for name in self.unstored if name not in models]:
            message = f"`{unknown[0]}` is no model of the dbt manifest `{self.path}`"
            raise input_error(Code.UNKNOWN_RELATION, message, near_miss(unknown[0], sorted(models), "model"))

    def require_stored(self) -> None:
        """Refuses a project of which nothing is stored.

        Raises:
            InputError: SM107.
        """
        if not any(map(self._is_stored, self.names)):
            message = (
                f"no model of the dbt manifest `{self.path}` is stored: all are unfolded where they are read"
            )
            hint = (
                "materialize those that the warehouse keeps as `table`, `incremental` or `materialized_view`"
            )
            raise input_error(Code.MANIFEST, message, hint)

    def _is_stored(self, identifier: str) -> bool:
        node = self.nodes[identifier]
        is_kept = is_model(node) and self.names[identifier] not in self.unstored
        return is_kept and materialized(node) in _STORED

    def _is_unfolded(self, identifier: str) -> bool:
        node = self.nodes[identifier]
        is_left = self.names[identifier] in self.unstored or materialized(node) in UNFOLDED
        return is_model(node) and is_left

    def views(
        self, more: Sequence[SqlText] = (), instead: Mapping[str, str] = MappingProxyType({})
    ) -> SqlViews:
        """What the project defines, with more texts, and by view other queries in place of its own."""
        constraints = Promises(self.nodes, self.names, self.same, own_macros(self.data)).found()
        models = [i for i in self.names if is_model(self.nodes[i])]
        bases = [i for i in self.names if i not in models]
        columns = self._columns(bases, models)
        carry_down(constraints, self._staging(bases, columns), self.names)
        kept = [self.names[i] for i in models if self._is_stored(i)]
        declared = to_keys(
            [constraints[i].applied(Declaration(self.names[i], columns[i])) for i in bases], kept
        )
        stored = (self._text(i, self.nodes[i]) for i in models if self._is_stored(i))
        texts = [*self.unfolded(), *stored, *more]
        names = [self.names[i] for i in models if self._is_unfolded(i)]
        try:
            found = read_sql(texts, declared, unfolded=names, instead=instead, parts=self._whole_names)
        except ProgramError as error:
            raise ProgramError(map(said_of_unknown, error.diagnostics)) from error
        warnings = (*remarks(self.path, self.adapter, declared, found), *found.warnings)
        by_name = {self.names[i]: constraints[i] for i in models}
        return replace(
            found,
            warnings=warnings,
            declarations=to_keys(
                by_name[d.name].applied(d) if d.name in by_name else d for d in found.declarations
            ),
        )

    def _staging(
        self, bases: Iterable[str], columns: Mapping[str, tuple[Column, ...]]
    ) -> Mapping[str, Shown]:
        """The models that show each row of a base relation, in the database, too; the same at every moment."""
        if self.known.staging is None:
            identifiers = {self.names[i]: i for i in bases}
            models = {self.names[i]: i for i in self._over(identifiers.values())}
            texts = [self._text(i, self.nodes[i]) for i in models.values()]
            words = "\n".join(one.text for one in texts).casefold()
            declared = [Declaration(name, _named_in(words, columns[i])) for name, i in identifiers.items()]
            found = self._readable(texts, declared)
            tables = {one.name: one for one in found.declarations if one.name in identifiers}
            all_shown = {models[d.name]: shown(d, identifiers, tables) for d in found.views}
            self.known.staging = {model: its for model, its in all_shown.items() if its is not None}
        return self.known.staging

    def _over(self, bases: Collection[str]) -> list[str]:
        """The models of which dbt stores nothing, over base relations and other such models alone.

        What dbt stores, in `dbt_unstored` or not, may have other rows than its query: an incremental model has fewer.
        """
        found = [i for i in self.names if is_model(self.nodes[i]) and materialized(self.nodes[i]) in UNFOLDED]
        while True:
            known = {*bases, *found}
            left = [i for i in found if self._read_by(i) <= known]
            if len(left) == len(found):
                return left
            found = left

    def _readable(self, texts: Sequence[SqlText], tables: Sequence[Declaration]) -> SqlViews:
        """What those of the texts define that can be read; what is wrong with others is said where all are read."""
        left = list(texts)
        while left:
            try:
                return read_sql(left, tables, parts=self._whole_names)
            except ProgramError as error:
                errors = (one for one in error.diagnostics if one.severity is Severity.ERROR)
                wrong = {one.span.source for one in errors if one.span is not None}
                before, left = left, [one for one in left if one.name not in wrong]
                if len(left) == len(before):
                    break
        return SqlViews((), ())

    def _read_by(self, model: str) -> set[str]:
        """The nodes whose relations a model reads, as dbt knows them."""
        return {self.same.get(i, i) for i in reads(self.nodes[model])}

    @property
    def _whole_names(self) -> Mapping[str, tuple[str, ...]]:
        """By name of a relation all parts of its name: a table of another schema is another one."""
        return {name: parts(self.nodes[i]) for i, name in self.names.items()}

    @property
    def adapter(self) -> str:
        """What the SQL was compiled for; Spark where that is not said."""
        metadata = self.data.get("metadata")
        said = metadata.get("adapter_type") if isinstance(metadata, dict) else None
        return said.lower() if isinstance(said, str) and said else "spark"

    def clock(self, at: Callable[[datetime], Catalog], began: datetime | None, digest: str) -> Clock | None:
        """The clock of the project, from what was read of it."""
        moment = next((one.moment for one in self._dated if one.moment is not None), None)
        return TextsAt([], moment, any(one.reads_time for one in self._dated)).clock(at, began, digest)

    def unfolded(self) -> list[SqlText]:
        """The models that are unfolded where they are read."""
        return [self._text(i, self.nodes[i]) for i in self.names if self._is_unfolded(i)]

    def _text(self, identifier: str, node: Node) -> SqlText:
        sql = node.get("compiled_code") or node.get("compiled_sql")
        name = self.names[identifier]
        if not isinstance(sql, str):
            raise input_error(
                Code.MANIFEST,
                f"the model `{name}` of the dbt manifest `{self.path}` has no compiled SQL",
                hint="run `dbt compile`, and name the `target/manifest.json` that it writes",
            )
        sql = without_assertions(sql) if self.adapter in SPARK else in_backticks(sql, self.adapter)
        text = SqlText(sql, f"{self.path} ({name})", parts(node), name, more_than_sql(node))
        found = texts_at([text], self.moment)
        self._dated.append(found)
        return found.texts[0]

    def _columns(self, bases: Iterable[str], models: Iterable[str]) -> dict[str, tuple[Column, ...]]:
        """The columns of the relations that no model makes.

        Raises:
            InputError: SM107 nothing says which columns one has that a model reads.
        """
        same = {one: [one, *(i for i, of in self.same.items() if of == one)] for one in bases}
        found = {
            one: self.known.columns({i: self.nodes[i] for i in its}, self.names[one], self.adapter)
            for one, its in same.items()
        }
        read = {i for one in models for i in self._read_by(one)}
        if bare := [self.names[one] for one, columns in found.items() if not columns and one in read]:
            raise self.known.missing(self.path, bare)
        return found


def _names(parts_of: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
    """The names of relations, with no more of their schemas and databases than tells them apart."""

    def ends(parts: tuple[str, ...], number: int) -> tuple[str, ...]:
        return tuple(map(str.casefold, parts[:number]))

    counts = [Counter(ends(one, number) for one in parts_of.values()) for number in (1, 2, 3)]
    found = {}
    for identifier, one in parts_of.items():
        needed = next((n for n, count in enumerate(counts, 1) if count[ends(one, n)] == 1), len(one))
        found[identifier] = ".".join(reversed(one[:needed]))
    return found


def _named_in(words: str, columns: Iterable[Column]) -> tuple[Column, ...]:
    """Columns without those that cannot be read and that a text does not name, but by a `*`."""
    return tuple(one for one in columns if one.unmodelled is None or one.name.casefold() in words)
