"""Bags in DuckDB: rows that may stand several times, and counted rows, each once with its number of copies."""

from __future__ import annotations

from collections.abc import Sequence

from datalog.sql import duckdb as sql
from selfmaint.duckdb.database import Database, Relation, writing_sql


class RelationBags:
    """`Bags` over DuckDB's relations."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def recounted(self, parts: Sequence[tuple[Relation, int]]) -> Relation:
        """The sum of some bags, each with 1 or -1."""
        with writing_sql():
            query, types = sql.recounted([(one.stored.name, one.types, sign) for one, sign in parts])
        parents = [one.stored for one, _ in parts]
        return Relation(self._database.view(query, types, parents), parts[0][0].columns)

    def counted(self, bag: Relation, names: Sequence[str]) -> Relation:
        """The counted rows of a bag; the last of the names is that of the number of copies."""
        query, types = sql.counted(bag.stored.name, bag.types)
        return Relation(self._database.view(query, types, [bag.stored]), tuple(names))

    def copies(self, data: Relation) -> int:
        """The sum of the last column."""
        query = sql.copies(data.stored.name, len(data.types))
        ((number,),) = self._database.plain_rows(query, [data.stored.name])
        return int(number)

    def expanded(self, data: Relation) -> Relation:
        """Each row as many times as its last column says."""
        query = sql.expanded(data.stored.name, len(data.types))
        return Relation(self._database.view(query, data.types[:-1], [data.stored]), data.columns[:-1])

    def matching(self, data: Relation, columns: Sequence[int], keys: Relation) -> Relation:
        """The rows whose values in some columns are a row of `keys`, computed now."""
        names = [data.stored.name, keys.stored.name]
        with writing_sql():
            query = sql.matching((names[0], data.types), columns, (names[1], keys.types))
        return Relation(self._database.table(query, data.types, names), data.columns)

    def numbered(self, data: Relation, sign: int, name: str) -> Relation:
        """The rows with their numbers among equal ones, computed now."""
        with writing_sql():
            query, types = sql.numbered(data.stored.name, data.types, sign)
        return Relation(self._database.table(query, types, [data.stored.name]), (*data.columns, name))

    def together(self, parts: Sequence[Relation]) -> Relation:
        """All rows of some relations."""
        with writing_sql():
            query, types = sql.together([(one.stored.name, one.types) for one in parts])
        return Relation(self._database.view(query, types, [one.stored for one in parts]), parts[0].columns)
