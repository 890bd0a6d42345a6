"""The part of a warehouse file that says how change feeds are to be read.

[feed]
ignored = ["audit_log"]           # source tables whose events are left out
decimals = "text"                 # or "base64": how decimals are written where the feed has no schemas
timestamps = "us"                 # or "ms", "ns": what integers count where the feed has no schemas
full_before_images = true         # the source logs whole rows (REPLICA IDENTITY FULL)
[feed.tables]                     # source tables that are not called like their relations
"public.orders_2026" = "orders"
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import TypeVar

from selfmaint.api.toml_tables import TomlTable
from selfmaint.errors import Code
from selfmaint.feeds.settings import DecimalText, FeedSettings, TimeUnit
from selfmaint.warehouse.near import near_miss

_Choice = TypeVar("_Choice", bound=Enum)
_KEYS = ("tables", "ignored", "decimals", "timestamps", "full_before_images")


def feed_settings(root: TomlTable, relations: Mapping[str, object] | None) -> FeedSettings:
    """What `[feed]` says; what does not fit is reported to the file.

    Args:
        root: the whole file.
        relations: the base relations, None if the program could not be read.
    """
    table = root.table("feed", _KEYS)
    named = table.table("tables", tuple(table.data.get("tables") or ()))
    tables = {name: relation for name in named.data if (relation := named.text(name)) is not None}
    for name, relation in tables.items():
        if relations is not None and relation not in relations:
            hint = near_miss(relation, relations, "base relation")
            message = f"`{relation}` is no base relation of the program"
            table.file.report((*named.path, name), message, hint=hint, code=Code.UNKNOWN_RELATION)
    return FeedSettings(
        tables=tables,
        ignored=frozenset(table.texts("ignored")),
        decimals=_choice(table, "decimals", DecimalText),
        timestamps=_choice(table, "timestamps", TimeUnit),
        full_before_images=bool(table.flag("full_before_images")),
    )


def _choice(table: TomlTable, key: str, choices: type[_Choice]) -> _Choice | None:
    text = table.text(key)
    known = [choice.value for choice in choices]
    if text is not None and text not in known:
        hint = f"one of {', '.join(f'`{k}`' for k in known)}"
        table.file.report((*table.path, key), f"`{key}` in {table.shown} is `{text}`", hint=hint)
        return None
    return None if text is None else choices(text)
