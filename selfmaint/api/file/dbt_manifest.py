"""A dbt project as view definitions: its `manifest.json`, with the compiled SQL and the constraints in it.

- Sources, seeds and snapshots are base relations, with the columns that are documented (`data_type`).
- Models stored as tables (`table`, `incremental`, `materialized_view`) are views of the warehouse; models that
  are `view` or `ephemeral` are unfolded wherever they are read.
- `unique` and `not_null` tests, `relationships` tests and constraints of columns and models become keys, not-null
  columns and foreign keys. A test with a `where`, or one that only warns, promises nothing and is passed over.

Source: dbt, "Manifest JSON file" in its reference.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec import Struct, field

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import Declaration, ForeignKey
from datalog.sql.views import SqlText, SqlViews, column_of_text, read_sql
from datalog.sql.views.written_out.as_written import in_backticks
from selfmaint.api.file.dbt_remarks import SPARK, more_than_sql, remarks
from selfmaint.api.file.programs import TextsAt, catalog_of_sql, texts_at
from selfmaint.api.file.toml_tables import read_text
from selfmaint.errors import Code, InputError, input_error
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.clock import MOMENTS, Clock

_Node: TypeAlias = Mapping[str, Any]

_STORED = frozenset({"table", "incremental", "materialized_view", "materializedview", "streaming_table"})
_UNFOLDED = frozenset({"view", "ephemeral"})
_MOST_FOUND = 20


class _Constraints(Struct):
    """What tests and constraints say of one relation."""

    not_null: set[str] = field(default_factory=set)
    unique: list[tuple[str, ...]] = field(default_factory=list)
    key: tuple[str, ...] | None = None
    foreign: list[ForeignKey] = field(default_factory=list)

    def applied(self, to: Declaration) -> Declaration:
        """The declaration with these constraints; what names a column that it has not is left out."""
        names = set(to.column_names)
        columns = tuple(replace(c, not_null=c.not_null or c.name in self.not_null) for c in to.columns)
        unique = [u for u in dict.fromkeys(self.unique) if names.issuperset(u)]
        key = self.key if self.key is not None and names.issuperset(self.key) else None
        if key is None:
            key = next((u for u in unique if self.not_null.issuperset(u)), None)
        foreign = tuple(f for f in dict.fromkeys(self.foreign) if names.issuperset(f.columns))
        return replace(
            to,
            columns=columns,
            key=to.key or key,
            unique=(*to.unique, *(u for u in unique if u != key)),
            foreign_keys=(*to.foreign_keys, *foreign),
        )


def read_dbt_manifest(path: Path) -> SqlViews:
    """The views and base relations of a dbt project.

    Args:
        path: its `manifest.json`, written by `dbt compile` (or `run`, `build`) with the Spark or Databricks
            adapter.

    Raises:
        InputError: SM103 no such file; SM107 no manifest, or one without compiled SQL.
        ProgramError: SQL that is wrong; see `read_sql`.
    """
    return _Project(path, _load(path)).views()


def catalog_of_dbt(path: Path, *, helpers: bool = False, moment: datetime | None = None) -> Catalog:
    """The catalog of a dbt project at a moment; see `read_dbt_manifest`. With `helpers` models that need one get it."""
    data = _load(path)

    @lru_cache(MOMENTS)
    def at(other: datetime | None) -> Catalog:
        project = _Project(path, data, other)
        schema = catalog_of_sql(project.views())
        if helpers:
            from selfmaint.api.following.helper_views import with_helpers  # noqa: PLC0415 - only where there are some

            schema = with_helpers(schema, project.views, project.unfolded())
        return replace(schema, clock=project.clock(at, moment))

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
        for where, what in _wrong_parts(data)
    ]
    if wrong:
        raise InputError(wrong)
    return data


class _Project(Struct, dict=True):
    path: Path
    data: Mapping[str, Any]
    moment: datetime | None = None

    def __post_init__(self) -> None:
        self._dated: list[TextsAt] = []
        everything = {**self.data["sources"], **self.data["nodes"]}
        self.nodes: dict[str, _Node] = {i: n for i, n in everything.items() if isinstance(n, dict)}
        relations = [i for i, n in self.nodes.items() if _kind(n) not in ("test", "operation", "analysis")]
        for identifier in relations:
            if not _parts(self.nodes[identifier]):
                message = f"the node `{identifier}` of the dbt manifest `{self.path}` has no name"
                raise input_error(Code.MANIFEST, message)
        names = [_parts(self.nodes[i])[0].casefold() for i in relations]
        self.names = {
            i: _parts(self.nodes[i])[0]
            if names.count(_parts(self.nodes[i])[0].casefold()) == 1
            else ".".join(reversed(_parts(self.nodes[i])[:2]))
            for i in relations
        }

    def views(
        self, more: Sequence[SqlText] = (), instead: Mapping[str, str] = MappingProxyType({})
    ) -> SqlViews:
        """What the project defines, with more texts, and by view other queries in place of its own."""
        constraints = self._constraints()
        models = {i: n for i, n in self.nodes.items() if _kind(n) == "model"}
        bases = [i for i in self.names if i not in models]
        declared = _to_keys([constraints[i].applied(self._declaration(i)) for i in bases])
        unfolded = self.unfolded()
        texts = [
            *unfolded,
            *(self._text(i, n) for i, n in models.items() if _materialized(n) in _STORED),
            *more,
        ]
        names = [self.names[i] for i, n in models.items() if _materialized(n) in _UNFOLDED]
        found = read_sql(texts, declared, unfolded=names, instead=instead)
        warnings = (*remarks(self.path, self.adapter, declared, found), *found.warnings)
        by_name = {self.names[i]: constraints[i] for i in models}
        return replace(
            found,
            warnings=warnings,
            declarations=_to_keys(
                by_name[d.name].applied(d) if d.name in by_name else d for d in found.declarations
            ),
        )

    @property
    def adapter(self) -> str:
        """What the SQL was compiled for; Spark where that is not said."""
        metadata = self.data.get("metadata")
        said = metadata.get("adapter_type") if isinstance(metadata, dict) else None
        return said.lower() if isinstance(said, str) and said else "spark"

    def clock(self, at: Callable[[datetime], Catalog], began: datetime | None) -> Clock | None:
        """The clock of the project, from what was read of it."""
        moment = next((one.moment for one in self._dated if one.moment is not None), None)
        return TextsAt([], moment, any(one.reads_time for one in self._dated)).clock(at, began)

    def unfolded(self) -> list[SqlText]:
        """The models that are unfolded where they are read."""
        models = ((i, n) for i, n in self.nodes.items() if _kind(n) == "model")
        return [self._text(i, n) for i, n in models if _materialized(n) in _UNFOLDED]

    def _text(self, identifier: str, node: _Node) -> SqlText:
        sql = node.get("compiled_code") or node.get("compiled_sql")
        name = self.names[identifier]
        if not isinstance(sql, str):
            raise input_error(
                Code.MANIFEST,
                f"the model `{name}` of the dbt manifest `{self.path}` has no compiled SQL",
                hint="run `dbt compile`, and name the `target/manifest.json` that it writes",
            )
        sql = sql if self.adapter in SPARK else in_backticks(sql, self.adapter)
        text = SqlText(sql, f"{self.path} ({name})", _parts(node), name, more_than_sql(node))
        found = texts_at([text], self.moment)
        self._dated.append(found)
        return found.texts[0]

    def _declaration(self, identifier: str) -> Declaration:
        columns = self.nodes[identifier].get("columns") or {}
        made = tuple(
            column_of_text(str(c.get("name", key)), c.get("data_type")) for key, c in columns.items()
        )
        return Declaration(self.names[identifier], made)

    # --------------------------------------------------------------------------------------- constraints

    def _constraints(self) -> dict[str, _Constraints]:
        found = {identifier: _Constraints() for identifier in self.names}
        for identifier in self.names:
            node = self.nodes[identifier]
            for one in node.get("constraints") or ():
                self._take(one, tuple(one.get("columns") or ()), found[identifier])
            for key, column in (node.get("columns") or {}).items():
                for one in column.get("constraints") or ():
                    self._take(one, (str(column.get("name", key)),), found[identifier])
        for node in self.nodes.values():
            if _kind(node) == "test" and _promises(node):
                self._take_test(node, found)
        return found

    def _take(self, one: _Node, columns: tuple[str, ...], into: _Constraints) -> None:
        match one.get("type"):
            case "not_null":
                into.not_null.update(columns)
            case "unique":
                into.unique.append(columns)
            case "primary_key":
                into.key = columns
            case "foreign_key" if one.get("to") and one.get("to_columns"):
                target = self._named(str(one["to"]))
                if target is not None:
                    into.foreign.append(ForeignKey(columns, target, tuple(one["to_columns"])))
            case _:
                return

    def _named(self, relation_name: str) -> str | None:
        """The name of the relation that is called so in the database."""
        wanted = tuple(part.strip('`"').casefold() for part in reversed(relation_name.split(".")))
        for identifier, name in self.names.items():
            mine = tuple(part.casefold() for part in _parts(self.nodes[identifier]))
            if mine[: len(wanted)] == wanted[: len(mine)]:
                return name
        return None

    def _take_test(self, node: _Node, found: Mapping[str, _Constraints]) -> None:
        metadata = node.get("test_metadata") or {}
        arguments = metadata.get("kwargs") or {}
        column = arguments.get("column_name") or node.get("column_name")
        reads = list((node.get("depends_on") or {}).get("nodes") or ())
        owner = str(node.get("attached_node") or (reads[-1] if reads else ""))
        together = arguments.get("combination_of_columns")
        if owner in found and metadata.get("name") == "unique_combination_of_columns" and together:
            found[owner].unique.append(tuple(map(str, together)))
        if owner not in found or not isinstance(column, str):
            return
        match metadata.get("name"):
            case "not_null":
                found[owner].not_null.add(column)
            case "unique":
                found[owner].unique.append((column,))
            case "relationships" if arguments.get("field"):
                others = [one for one in reads if one != owner] or [owner]
                if others[0] in self.names:
                    target = self.names[others[0]]
                    found[owner].foreign.append(ForeignKey((column,), target, (str(arguments["field"]),)))
            case _:
                return


def _to_keys(declarations: Iterable[Declaration]) -> tuple[Declaration, ...]:
    """The declarations without references to columns that no test says are unique: such a reference names no row."""
    made = tuple(declarations)
    keys = {d.name: [set(names) for names in (d.key, *d.unique) if names is not None] for d in made}
    return tuple(
        replace(
            d,
            foreign_keys=tuple(
                f for f in d.foreign_keys if f.target not in keys or set(f.target_columns) in keys[f.target]
            ),
        )
        for d in made
    )


def _kind(node: _Node) -> str:
    return str(node.get("resource_type", ""))


def _materialized(model: _Node) -> str:
    return str(_config(model).get("materialized", "view"))


def _config(node: _Node) -> _Node:
    found = node.get("config")
    return found if isinstance(found, dict) else {}


def _parts(node: _Node) -> tuple[str, ...]:
    """The parts of a relation's name, the last one first."""
    name = node.get("identifier") or node.get("alias") or node.get("name")
    return tuple(str(part) for part in (name, node.get("schema"), node.get("database")) if part)


def _promises(test: _Node) -> bool:
    """Whether a test that passes says something of all rows."""
    config = _config(test)
    strict = str(config.get("severity", "error")).lower() == "error"
    none_fails = "".join(str(config.get("error_if") or "!=0").split()) in ("!=0", ">0", "<>0", ">=1")
    counts = "".join(str(config.get("fail_calc") or "count(*)").lower().split()) == "count(*)"
    is_of_all = not config.get("where") and config.get("enabled", True) is not False
    return strict and none_fails and counts and is_of_all


class Each(Struct, frozen=True):
    """A table whose values all have one form, whatever their keys."""

    of: _Form


_Form: TypeAlias = "type[str | dict[str, object]] | Each | Mapping[str, _Form] | tuple[_Form]"
"""Text, any table, such a table, a table with these keys, or a list of one form. All of them may be null or missing."""

_CONSTRAINTS: _Form = ({"type": str, "columns": (str,), "to": str, "to_columns": (str,)},)
_NODE: Mapping[str, _Form] = {
    **dict.fromkeys(("name", "alias", "identifier", "schema", "database", "resource_type"), str),
    **dict.fromkeys(("compiled_code", "compiled_sql", "raw_code", "raw_sql", "attached_node"), str),
    "config": dict,
    "columns": Each({"name": str, "data_type": str, "constraints": _CONSTRAINTS}),
    "constraints": _CONSTRAINTS,
    "depends_on": {"nodes": (str,)},
    "test_metadata": {"name": str, "kwargs": dict},
}
_KINDS: Mapping[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
}


def _wrong_parts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What is not of the form: where it stands, and what is wrong with it; the first ones."""
    found = 0
    for section in ("sources", "nodes"):
        for identifier, node in manifest[section].items():
            for where, what in _wrong(node, _NODE, f"{section}.{identifier}"):
                yield where, what
                found += 1
                if found == _MOST_FOUND:
                    return


def _wrong(value: object, form: _Form, where: str) -> Iterator[tuple[str, str]]:
    if value is None:
        return
    if isinstance(form, tuple):
        if not isinstance(value, list):
            yield where, f"{_json_kind(value)}, not a list"
            return
        for number, one in enumerate(value):
            yield from _in_list(one, form[0], f"{where}[{number}]")
    elif form is str:
        if not isinstance(value, str):
            yield where, f"{_json_kind(value)}, not text"
    elif not isinstance(value, dict):
        yield where, f"{_json_kind(value)}, not a table"
    elif isinstance(form, Each):
        for key, one in value.items():
            yield from _in_list(one, form.of, f"{where}.{key}")
    elif isinstance(form, Mapping):
        for key, inner in form.items():
            yield from _wrong(value.get(key), inner, f"{where}.{key}")


def _in_list(value: object, form: _Form, where: str) -> Iterator[tuple[str, str]]:
    """As `_wrong`, where null is none of the values."""
    if value is None:
        yield where, "null"
    else:
        yield from _wrong(value, form, where)


def _json_kind(value: object) -> str:
    return _KINDS.get(type(value), "a table")
