"""Tests of a dbt project: of which relation one is, which one it names, and whether it speaks of all rows.

    model: {{ get_where_subquery(ref('orders')) }}     to: source('raw', 'customers')

A test names a relation by `ref(..)` or `source(..)` alone: a table's name as text, a subquery, or what a macro makes is
none that is known.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any

from selfmaint.api.file.dbt_nodes import Node, config, reads

_OF_DBT = ("macro.dbt.", "macro.dbt_utils.")
"""How the macros begin that are known."""
_WHERE = "get_where_subquery"
_CALL = re.compile(r"(?:\{\{-?)?\s*(ref|source)\s*\(([^()]*)\)\s*(?:-?\}\})?")
_OF_MODEL = re.compile(rf"(?:\{{\{{-?)?\s*{_WHERE}\s*\((.*)\)\s*(?:-?\}}\}})?", re.DOTALL)
_ARGUMENT = re.compile(r"""\s*(v(?:ersion)?\s*=)?\s*(?:'([^'\\]*)'|"([^"\\]*)"|([\d.]+))\s*""")
_REFERENCED = ("model", "seed", "snapshot")


def owner(test: Node) -> str | None:
    """The unique id of what a test is of; None where that is not certain."""
    if test.get("attached_node"):
        return str(test["attached_node"])
    model, every = str(arguments(test).get("model") or "").strip(), reads(test)
    around = _OF_MODEL.fullmatch(model)
    found = _named(around[1] if around else model, every)
    return found or (every[0] if len(every) == 1 else None)


def target(test: Node, of: str) -> str | None:
    """The unique id of what the columns `of` a relation reference; None where that is not certain."""
    to, every = arguments(test).get("to"), reads(test)
    if to is None:
        others = [one for one in every if one != of]
        return others[0] if len(others) == 1 else None
    return _named(str(to), every)


def arguments(test: Node) -> Node:
    """What a test is called with."""
    return (test.get("test_metadata") or {}).get("kwargs") or {}


def _named(text: str, among: Collection[str]) -> str | None:
    """The one of some nodes that a call of `ref` or `source` names; None where the text is anything else."""
    call = _CALL.fullmatch(text.strip())
    given = [_ARGUMENT.fullmatch(one) for one in call[2].split(",")] if call else []
    words = [(bool(one[1]), one[2] or one[3] or one[4] or "") for one in given if one is not None]
    names = [word for is_version, word in words if not is_version]
    versions = [word for is_version, word in words if is_version]
    if call is None or len(words) < len(given) or len(versions) > 1:
        return None
    found = [one for one in among if _is_named(one, call[1], names, versions)]
    return found[0] if len(found) == 1 else None


def _is_named(identifier: str, how: str, names: list[str], versions: list[str]) -> bool:
    kind, _, rest = identifier.partition(".")
    package, _, name = rest.partition(".")
    if how == "source":
        return kind == how and not versions and name == ".".join(names) and len(names) == 2  # noqa: PLR2004
    *around, wanted = names or [""]
    if kind not in _REFERENCED or around not in ([], [package]):
        return False
    if versions:
        return name == f"{wanted}.v{versions[0]}"
    return name == wanted or name.startswith(f"{wanted}.v")


def own_macros(manifest: Mapping[str, Any]) -> frozenset[str]:
    """The macros that a project has itself, called as what they stand for: `default__test_unique` is `test_unique`."""
    metadata, macros = manifest.get("metadata"), manifest.get("macros")
    project = metadata.get("project_name") if isinstance(metadata, dict) else None
    every = macros if isinstance(macros, dict) else ()
    mine = (one for one in every if one.startswith(f"macro.{project}."))
    return frozenset(one.rpartition(".")[2].rpartition("__")[2] for one in mine)


def promises(test: Node, own: Collection[str]) -> bool:
    """Whether a test that passes says something of all rows, and is dbt's; `own` are the project's macros."""
    its = config(test)
    strict = str(its.get("severity", "error")).lower() == "error"
    none_fails = "".join(str(its.get("error_if") or "!=0").split()) in ("!=0", ">0", "<>0", ">=1")
    counts = "".join(str(its.get("fail_calc") or "count(*)").lower().split()) == "count(*)"
    is_of_all = not its.get("where") and its.get("limit") is None and its.get("enabled", True) is not False
    return strict and none_fails and counts and is_of_all and _is_of_dbt(test, own)


def _is_of_dbt(test: Node, own: Collection[str]) -> bool:
    called = (test.get("depends_on") or {}).get("macros") or ()
    name = (test.get("test_metadata") or {}).get("name")
    return all(one.startswith(_OF_DBT) for one in called) and not {_WHERE, f"test_{name}"} & {*own}
