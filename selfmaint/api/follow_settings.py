"""The part of a warehouse file that says which log the views follow.

[follow]
source = "shop"                   # a source of PostgreSQL, in which all base relations are
slot = "selfmaint"                # optional: its replication slot, for this warehouse alone
publication = "selfmaint"         # optional: its publication, of the base relations' tables
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from selfmaint.api.toml_tables import TomlTable
from selfmaint.warehouse.near import near_miss

_KEYS = ("source", "slot", "publication")
_NAME = "selfmaint"


@dataclass(frozen=True, slots=True)
class FollowSettings:
    """Which log the views follow.

    Attributes:
        source: the source of PostgreSQL.
        slot: its logical replication slot.
        publication: the publication of the base relations' tables.
    """

    source: str
    slot: str = _NAME
    publication: str = _NAME


def follow_settings(root: TomlTable, sources: Mapping[str, str | None]) -> FollowSettings | None:
    """What `[follow]` says; what does not fit is reported to the file.

    Args:
        root: the whole file.
        sources: the kind of each source; None for one that is wrong itself.
    """
    table = root.table("follow", _KEYS)
    if "follow" not in root.data:
        return None
    given = {key: table.text(key) for key in _KEYS}
    source = given["source"]
    if source is None:
        if "source" not in table.data:
            table.file.report(table.path, f"{table.shown} has no `source`", hint="name a `[sources.NAME]`")
        return None
    if source not in sources:
        hint = near_miss(source, sources, "source")
        table.file.report((*table.path, "source"), f"there is no source `{source}`", hint=hint)
        return None
    if sources[source] not in (None, "postgres"):
        message = f"the source `{source}` is of kind `{sources[source]}`, which has no log to follow"
        table.file.report((*table.path, "source"), message, hint="name a source of kind `postgres`")
        return None
    return FollowSettings(source, given["slot"] or _NAME, given["publication"] or _NAME)
