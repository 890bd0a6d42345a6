"""Where views and partial copies are kept: places of their own, or a store.

A view is replaced as a whole, so what lies in its path goes with it: of two paths neither may lie inside the other.
Whether stored files changed since they were looked at is told by names, sizes, times and identities, no contents.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from selfmaint.api.file.secrets import has_password
from selfmaint.api.file.toml_tables import KeyPath, TomlFile, TomlTable, dotted
from selfmaint.errors import Code, input_error
from selfmaint.store.lake_server import LakeServer
from selfmaint.store.place import DeltaPlace, LakePlace, Objects, Place
from selfmaint.warehouse.catalog import Catalog

_STORES = ("files", "lake", "delta")
"""Where views may be kept."""
_STORE_KEYS = ("kind", "path", "catalog_url", "catalog_url_env", "schema", "helpers", "data", "endpoint")
_SCHEMA = "selfmaint_lake"
_OBJECTS = re.compile(r"s3://[a-z0-9][a-z0-9.-]+[a-z0-9](?:/[\w.=+-]+)+/?")
_ENDPOINT = re.compile(r"https?://[\w.:\[\]-]+/?")


class Location(Struct, frozen=True):
    """Where some rows are: a path or URI of files, a table of Spark's catalog, or one of the lake."""

    text: str
    is_table: bool = False
    in_store: bool = False

    @property
    def is_local(self) -> bool:
        """Whether it is a file or folder on this machine."""
        return not (self.is_table or self.in_store or "://" in self.text)


class CopyEntry(Struct, frozen=True):
    """A partial copy: where the rows are that are known to be there, and those known not to be."""

    present: Location | None = None
    absent: Location | None = None


def is_in_store(root: TomlTable) -> bool:
    """Whether the views are meant to be in a store, though what is said of it may be wrong."""
    entry = root.data.get("store")
    return entry is not None and not (isinstance(entry, dict) and entry.get("kind") == "files")


def store(root: TomlTable) -> Place | None:
    """Where the store is, if there is one; plain files are none."""
    table = root.table("store", _STORE_KEYS)
    if "store" not in root.data:
        return None
    listed = ", ".join(f"`{kind}`" for kind in _STORES)
    kind = table.required("kind", f"one of {listed}")
    if kind is None or table.among("kind", _STORES, "`{}` is no kind of store", "store") is None:
        return None
    if kind == "files":
        table.refuse(_STORE_KEYS[1:], "plain files have a `path` for each view, and no `{}` here")
        return None
    path = table.required("path", "name the folder of the store")
    if path is None:
        return None
    if "://" in path:
        message = "the `path` of a store is a folder on this machine: it has the lock of who writes"
        more = 'a lake may have its files elsewhere: `data = "s3://BUCKET/FOLDER"` beside `path`'
        table.report("path", message, more if kind == "lake" else None)
        return None
    folder = (root.file.path.parent / path).absolute()
    if kind == "lake":
        if table.flag("helpers") and not {"program", "program_text", "dbt_manifest"} & root.data.keys():
            message = "only views in SQL of `program`, `program_text` or `dbt_manifest` have helpers"
            table.report("helpers", message)
        return LakePlace(folder, server=_catalog_server(table), objects=_objects(table))
    return _delta_place(root, table, folder)


def _delta_place(root: TomlTable, table: TomlTable, folder: Path) -> DeltaPlace:
    """A Delta store, with the tables that stand elsewhere."""
    table.refuse(_STORE_KEYS[2:], "`{}` is of a lake, and this is a Delta store")
    views = root.data.get("views")
    entries = views.items() if isinstance(views, dict) else ()
    paths = {n: e["path"] for n, e in entries if isinstance(e, dict) and isinstance(e.get("path"), str)}
    return DeltaPlace(folder, given={n: (root.file.path.parent / p).absolute() for n, p in paths.items()})


def has_helpers(root: TomlTable) -> bool:
    """Whether views are to have helpers in the lake, as the file says."""
    given = root.data.get("store")
    return isinstance(given, dict) and given.get("kind") == "lake" and given.get("helpers") is True


def _catalog_server(table: TomlTable) -> LakeServer | None:
    """Where the lake's catalog is, if not in its folder."""
    if not {"catalog_url", "catalog_url_env"} & table.data.keys():
        if "schema" in table.data:
            message = "`schema` is of a catalog in PostgreSQL, and none is named"
            table.report("schema", message, "name it: `catalog_url_env`")
        return None
    given, schema = url_in(table, "catalog_url"), table.text("schema") or _SCHEMA
    if given is None:
        return None
    key, value = given
    from selfmaint.postgres.lake_server import catalog_at  # noqa: PLC0415 - the driver only where it is needed

    return catalog_at(partial(_url, value) if key == "catalog_url_env" else lambda: value, schema)


def _objects(table: TomlTable) -> Objects | None:
    """Where the lake's files are, if not in its folder."""
    url, endpoint = table.text("data"), table.text("endpoint")
    if url is None:
        if endpoint is not None:
            message = "`endpoint` is of a lake with its files in object storage, and none is named"
            table.report("endpoint", message, 'name it: `data = "s3://BUCKET/FOLDER"`')
        return None
    if _OBJECTS.fullmatch(url) is None:
        message = f"`{url}` is no folder in object storage"
        hint = "a bucket and a folder in it: `s3://BUCKET/FOLDER`"
        if "@" in url:
            message = "`data` names a user or password"
            hint = "leave it out: credentials stand where AWS's own programs look for them"
        table.report("data", message, hint)
        return None
    if endpoint is not None and _ENDPOINT.fullmatch(endpoint) is None:
        hint = "such as `https://storage.example.com:9000`"
        table.report("endpoint", "`endpoint` is no URL of a server", hint)
        return None
    return Objects(url.rstrip("/"), endpoint)


def url_in(table: TomlTable, key: str) -> tuple[str, str] | None:
    """A URL, or the environment variable that holds it under `key_env`, with the key; none with a password."""
    given = table.one_of(f"{key}_env", key)
    if given is None or given[0] != key or not has_password(given[1]):
        return given
    hint = f"put the URL into an environment variable, and its name into `{key}_env`"
    table.report(key, f"`{key}` in {table.shown} holds a password", hint)
    return None


def _url(variable: str) -> str:
    """The URL in an environment variable."""
    found = os.environ.get(variable, "")
    if not found:
        message = f"the lake's catalog has no URL: the environment variable `{variable}` is not set"
        raise input_error(Code.LAKE, message, f"set `{variable}`")
    return found


def views_of(root: TomlTable, schema: Catalog | None, place: Place | None) -> dict[str, Location | None]:
    """Where the views are."""
    given = root.tables("views", ("path", "table"))
    if place is None:
        return {name: _location(table) for name, table in given.items()}
    for table in given.values():
        for key in table.data:
            if key == "path" and isinstance(place, DeltaPlace):
                if "://" in str(table.text(key)):
                    table.report(key, "a Delta store is of tables on this machine")
                continue
            message = f"{table.shown} has a `{key}`, and the views are kept in the {place.kind}"
            hint = "leave it out; `selfmaint init WAREHOUSE.toml --from VIEW=PATH` brings in what is there"
            table.report(key, message, hint)
    return {v.name: Location(v.name, in_store=True) for v in (schema.views if schema is not None else ())}


def copy_of(name: str, table: TomlTable, *, in_store: bool) -> CopyEntry:
    """Where the partial copy of a relation is."""
    if not table.data:
        message = f"{table.shown} has neither `present` nor `absent`"
        table.file.report(table.path, message, hint="say where the rows are that are known to be there")
    if in_store:
        present, absent = (
            Location(f"{name}@{key}", in_store=True) if table.flag(key) else None
            for key in ("present", "absent")
        )
        return CopyEntry(present, absent)
    found = {key: table.text(key) for key in ("present", "absent")}
    placed = {key: resolved(table, "path", text) for key, text in found.items() if text is not None}
    return CopyEntry(placed.get("present"), placed.get("absent"))


def _location(table: TomlTable) -> Location | None:
    given = table.one_of("path", "table")
    return None if given is None else resolved(table, *given)


def resolved(table: TomlTable, key: str, text: str) -> Location:
    """A table, or a path that is relative to the file's folder, made absolute: Spark's own may be another."""
    if key == "table":
        return Location(text, is_table=True)
    return Location(text) if "://" in text else Location(str((table.file.path.parent / text).absolute()))


_Place: TypeAlias = tuple[int, int] | str
"""What a path leads to: a device and a number there; for what is not there yet the path without links."""

_OWN = "a view is replaced as a whole when it is written: give everything else a path outside it"

_OWN_NAME = "give the path of a file or directory"


def report_overlaps(
    file: TomlFile,
    written: Mapping[KeyPath, str],
    sources: Mapping[KeyPath, str],
    inputs: Mapping[KeyPath, str],
) -> None:
    """Notes (SM101) what lies inside the path of something that is written: it would be lost, or read with it.

    The paths of base relations, `sources`, may have no view inside, either.
    """
    for key, path in [*written.items(), *sources.items()]:
        if "\0" in path:
            file.report(key, f"{_shown(key)} holds the character NUL, which no path can", hint=_OWN_NAME)
            return
    owners: dict[_Place, KeyPath] = {}
    for key, path in written.items():
        owner = owners.setdefault(_places(path)[0], key)
        if owner != key:
            file.report(key, f"{_shown(key)} leads to the same place as {_shown(owner)}", hint=_OWN)
    read: dict[_Place, KeyPath] = {_places(path)[0]: key for key, path in sources.items()}
    for key, path in [*written.items(), *sources.items(), *inputs.items()]:
        around = _places(path)[1:] if key in written else _places(path)
        owner_ = next((owners[place] for place in around if place in owners), None)
        if owner_ is None and key in written:
            owner_ = next((read[place] for place in around if place in read), None)
        if owner_ is not None:
            file.report(key, f"{_shown(key)} lies inside {_shown(owner_)}", hint=_OWN)


def require_outside(paths: Iterable[str], views: Mapping[str, str]) -> None:
    """Refuses parts of an update that lie inside the path of a view.

    Raises:
        InputError: SM101.
    """
    owners = {_places(path)[0]: name for name, path in views.items()}
    for path in filter(None, map(local_path, paths)):
        owner = next((owners[place] for place in _places(path) if place in owners), None)
        if owner is not None:
            message = f"`{path}`, a part of the update, lies inside the path of `{owner}`"
            raise input_error(Code.WAREHOUSE_FILE, message, _OWN)


def local_path(text: str) -> str | None:
    """The path of a location in the local file system, if it is one.

    >>> local_path("views/v"), local_path("file:///a%20b"), local_path("s3://bucket/v")
    ('views/v', '/a b', None)
    """
    if text.startswith("file:/"):
        return unquote(urlsplit(text).path)
    return None if "://" in text else text


def _shown(key: KeyPath) -> str:
    match key:
        case ():
            return "the warehouse file"
        case (one,):
            return f"`{one}`"
        case _:
            return f"`{key[-1]}` of `[{dotted(key[:-1])}]`"


def _places(path: str) -> list[_Place]:
    """What a path leads to, and the folders around it, innermost first."""
    whole = Path(os.path.realpath(path))
    return [_place(one) for one in (whole, *whole.parents)]


def _place(path: Path) -> _Place:
    try:
        found = path.stat()
    except OSError:
        return str(path)
    return found.st_dev, found.st_ino


def fingerprints(paths: Iterable[str]) -> dict[str, str]:
    """A digest of each path's files; of a path where nothing is, that of nothing."""
    return {path: _fingerprint(Path(path)) for path in paths}


def _fingerprint(path: Path) -> str:
    files = [path, *sorted(path.rglob("*"))] if path.is_dir() else [path] if path.exists() else []
    digest = hashlib.sha256()
    for file in files:
        found = file.stat()
        mark = (str(file.relative_to(path)), found.st_size, found.st_mtime_ns, found.st_ino)
        digest.update(repr(mark).encode())
    return digest.hexdigest()


def require_unchanged(before: Mapping[str, str]) -> None:
    """Refuses to go on where files are no longer what they were.

    Raises:
        InputError: SM405, naming the paths.
    """
    after = fingerprints(before)
    changed = [path for path, digest in before.items() if after[path] != digest]
    if changed:
        raise input_error(
            Code.WRITE_FAILED,
            f"{', '.join(f'`{path}`' for path in changed)} changed since the warehouse was loaded",
            note="what was computed from the old contents is out of date; nothing was written",
            hint="another process maintains the same views: run the command again",
        )


def paths_of_relations(root: TomlTable) -> dict[str, str]:
    """Where base relations are stored in files; what is wrong with an entry is said elsewhere."""
    entries = root.data.get("relations")
    found = (
        {}
        if not isinstance(entries, dict)
        else {n: one for n, one in entries.items() if isinstance(one, dict)}
    )
    paths = {name: one.get("path") for name, one in found.items()}
    return {n: str(root.file.path.parent / path) for n, path in paths.items() if isinstance(path, str)}
