"""Paths of which one lies inside another: a view is replaced as a whole, so what lies in its path goes with it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from selfmaint.api.toml_places import KeyPath
from selfmaint.api.toml_tables import TomlFile, dotted
from selfmaint.errors import Code, input_error

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

    Args:
        file: the warehouse file.
        written: the paths of views and partial copies, by their keys.
        sources: the paths of base relations; none may have a view inside, either.
        inputs: what else is read: the program, and so on.
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

    Args:
        paths: the paths of the parts.
        views: the paths of what may be written, by name.

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
