"""The nodes of a dbt manifest: their kinds and names, and whether they have the form in which they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from msgspec import Struct

Node: TypeAlias = Mapping[str, Any]
"""What the manifest says of a model, source, seed, snapshot or test."""
UNFOLDED = frozenset({"view", "ephemeral"})
"""How models are kept of which nothing is stored."""
_MOST_FOUND = 20


def kind(node: Node) -> str:
    """Of what kind a node is, as `model` or `source`."""
    return str(node.get("resource_type", ""))


def is_model(node: Node) -> bool:
    """Whether a node is a model whose rows its SQL gives."""
    return kind(node) == "model" and node.get("language") != "python"


def materialized(model: Node) -> str:
    """How a model is kept; as a view where nothing says."""
    return str(config(model).get("materialized", "view"))


def config(node: Node) -> Node:
    """The configuration of a node."""
    found = node.get("config")
    return found if isinstance(found, dict) else {}


def are_checked(node: Node) -> bool:
    """Whether the constraints of a node hold: those of a model do where dbt makes a table with them, by a contract."""
    contract = config(node).get("contract")
    is_enforced = isinstance(contract, dict) and contract.get("enforced") is True
    return kind(node) != "model" or (is_enforced and materialized(node) not in UNFOLDED)


def parts(node: Node) -> tuple[str, ...]:
    """The parts of a relation's name, the last one first."""
    name = node.get("identifier") or node.get("alias") or node.get("name")
    return tuple(str(part) for part in (name, node.get("schema"), node.get("database")) if part)


def reads(node: Node) -> tuple[str, ...]:
    """The unique ids of the nodes that a node reads, each once."""
    return tuple(dict.fromkeys((node.get("depends_on") or {}).get("nodes") or ()))


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
    "depends_on": {"nodes": (str,), "macros": (str,)},
    "test_metadata": {"name": str, "kwargs": dict},
}
_KINDS: Mapping[type, str] = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
}


def wrong_parts(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
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
