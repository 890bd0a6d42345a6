"""Reads of base relations, as sets of rows: equal rows of a table without a key are numbered."""

from __future__ import annotations

from collections.abc import Sequence

from datalog.model import NUMBER
from selfmaint.engine.protocol import D, Engine
from selfmaint.sources.protocol import Read, Source
from selfmaint.warehouse.base_relations import BaseRelation


def rows_of(
    engine: Engine[D], relation: BaseRelation, source: Source[D], key_columns: Sequence[str], keys: D | None
) -> tuple[D, Read]:
    """What a source gives of a base relation: see `Source.read`, and `datalog.rewrite.numbered` for the numbers.

    Rows that are equal have equal keys, so all of them are read, or none.
    """
    rows, read = source.read(relation.name, key_columns, keys)
    if not relation.is_numbered:
        return rows, read
    return engine.keep(engine.bags.numbered(rows, 1, NUMBER)), read
