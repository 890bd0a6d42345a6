"""The DuckDB engine: whole programs over tables and files, in this process, spilling to disk.

Rows may stand several times in bags; counted rows stand once each, with their number of copies.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from datalog.copies import replace
from datalog.model import (
    ANY,
    Atom,
    ColumnType,
    Negation,
    OpaqueView,
    Predicate,
    Program,
    Row,
    Rule,
    Semantics,
    Variable,
    ViewDefinition,
    value_kind,
)
from datalog.sql.duckdb import Query, SqlType
from datalog.sql.duckdb import relations as sql
from datalog.sql.duckdb.expressions import view as view_query
from datalog.sql.duckdb.rules import derived
from selfmaint.duckdb.bags import beyond, minus_all
from selfmaint.duckdb.database import MOST_FEW, Database
from selfmaint.duckdb.exact_rows import (
    ZONE,
    are_exact,
    are_in_python,
    arrow_rows,
    found_rows,
    has_odd_value,
    rows_of,
)
from selfmaint.duckdb.extensions import Extension
from selfmaint.duckdb.failures import writing_sql
from selfmaint.duckdb.few_rows import all_few
from selfmaint.duckdb.layouts import taken
from selfmaint.duckdb.programs import Programs
from selfmaint.duckdb.relation import Relation, Stored
from selfmaint.engine.guard import require_given
from selfmaint.engine.protocol import Asked, Facts

_LEFT, _RIGHT, _FOUND = Predicate("left"), Predicate("right"), Predicate("found")


class DuckEngine:
    """The engine for what one machine holds: no cluster, no Java process."""

    name = "duckdb"

    def __init__(self, settings: Mapping[str, str | int] | None = None, most_few: int = MOST_FEW) -> None:
        """Makes an engine with a database of its own.

        Args:
            settings: DuckDB's own: `memory_limit`, `threads`, `temp_directory`.
            most_few: what has so many rows is computed with in this process; if 0, all is done by statements.
        """
        self.database = Database(settings, most_few)
        self.bags = RelationBags(self.database)
        self.programs = Programs(self.database)

    def load(self, rows: Iterable[Row], names: Sequence[str], types: Sequence[ColumnType]) -> Relation:
        """A relation from a few rows that are at hand; duplicates count once.

        Raises:
            InputError: SM104 values that the types cannot hold, or of several families in one column.
        """
        from selfmaint.engine.arrow_rows import arrow_table  # noqa: PLC0415 - not where nothing is loaded
        from selfmaint.engine.arrow_types import column_type  # noqa: PLC0415

        distinct = list({tuple((value_kind(v), v) for v in row): row for row in rows}.values())
        if not names:
            return Relation(self.database.given(arrow_rows(distinct, ()), ()), ())
        table = arrow_table(distinct, names, types, ZONE)
        kinds = [column_type(f.type) for f in table.schema]
        here = found_rows(table, len(kinds)) if len(distinct) <= self.database.most_few else None
        if here is None or not are_in_python(kinds) or has_odd_value(here, kinds):
            return Relation(self.database.given(table, kinds), tuple(names))
        return Relation(self.database.computed(frozenset(here), kinds), tuple(names))

    def evaluate(
        self, program: Program, goal: Predicate, facts: Facts[Relation], names: Sequence[str] | None = None
    ) -> Relation:
        """The goal's extension: distinct rows.

        Raises:
            ReadRefusedError: SM403 a rule reads a predicate that has neither rules nor facts.
            InputError: SM502 DuckDB compares otherwise than Spark.
        """
        if goal in program.heads:
            stored = self.programs.extensions(program, [goal], facts)[goal]
            return Relation(stored, tuple(names or _numbered(len(stored.types))))
        if goal in facts.relations:
            found = facts.relations[goal]
            return Relation(self.union([found]).stored, tuple(names or found.columns))
        return self.load((), names or (), [ANY] * len(names or ()))

    def evaluate_all(
        self,
        program: Program,
        goals: Mapping[Predicate, Sequence[str]],
        facts: Facts[Relation],
        most: int | None = None,
    ) -> dict[Predicate, Relation]:
        """The extensions of some predicates with rules, in one go; see `evaluate`."""
        found = self.programs.extensions(program, list(goals), facts, most)
        return {g: Relation(found[g], tuple(names)) for g, names in goals.items() if g in found}

    def evaluate_view(
        self,
        definition: ViewDefinition,
        facts: Facts[Relation],
        types: Mapping[Predicate, Sequence[ColumnType]],
    ) -> Relation:
        """The distinct rows of a definition.

        Raises:
            ReadRefusedError: SM403 it reads a predicate of which no facts are given.
            InputError: SM502 it computes what DuckDB computes otherwise; SM104 a value that it does not have.
        """
        return Relation(self._view(definition, facts, distinct=True), definition.columns)

    def selected(self, selection: ViewDefinition, data: Relation) -> Relation:
        """The rows of a relation that a selection leaves, or some of their columns, computed when they are used.

        Raises:
            InputError: SM502 DuckDB compares otherwise than Spark.
        """
        (predicate,) = selection.reads
        stored = data.stored
        given = Extension(stored)
        with writing_sql():
            query, types = view_query(
                selection,
                {predicate: given.table()},
                {predicate: stored.types},
                distinct=selection.semantics is Semantics.SET,
            )
        layout = replace(taken(stored.layout, _places(selection)), rows=None, most=stored.known_rows)
        return Relation(self.database.view(query, types, [stored], layout), selection.columns)

    def recompute(
        self,
        definition: ViewDefinition | OpaqueView,
        facts: Facts[Relation],
        types: Mapping[Predicate, Sequence[ColumnType]],
        like: Relation,
    ) -> Relation:
        """All rows of a definition, each as often as it stands; a text only where its shape is known.

        Raises:
            InputError: SM404 a text that this engine cannot run; see `evaluate_view`.
        """
        if isinstance(definition, OpaqueView):
            from selfmaint.duckdb.text_views import text_rows  # noqa: PLC0415 - texts are read only where there are some

            rows = text_rows(self.database, definition, facts, like.columns)
            return self.keep(self.like(rows, like) if like.columns else rows)  # of `SELECT *` nothing is told
        found = Relation(self._view(definition, facts, distinct=False), definition.columns)
        return self.keep(self.like(found, like))

    def _view(self, definition: ViewDefinition, facts: Facts[Relation], *, distinct: bool) -> Stored:
        require_given(Program(tuple(block.core for block in definition.blocks)), facts.relations)
        given = {
            p: Extension(facts.relations[p].stored, facts.not_null.get(p, frozenset()))
            for p in definition.reads
        }
        tables = {p: one.table() for p, one in given.items()}
        with writing_sql():
            query, types = view_query(
                definition, tables, {p: one.stored.types for p, one in given.items()}, distinct=distinct
            )
        return self.database.table(query, types, [one.stored.name for one in given.values()])

    def nonempty(
        self, program: Program, goals: Sequence[Predicate], facts: Facts[Relation], *, bounded: bool = False
    ) -> frozenset[Predicate]:
        """Which goals have a row.

        Raises:
            ReadRefusedError: SM403 a rule reads a predicate that has neither rules nor facts.
            InputError: SM502 DuckDB compares otherwise than Spark.
        """
        return self.programs.nonempty(program, goals, facts, bounded=bounded)

    def foresee(self, asked: Iterable[Asked], facts: Facts[Relation]) -> None:
        """See `Engine`: rows that are looked up by keys from the update are read with the first of their relation.

        Relations of few rows are read whole.
        """
        are_read_whole = all_few(facts, self.database.most_few, derived_too=False)
        self.programs.foresee(() if are_read_whole else asked, facts)

    def sample(self, data: Relation, limit: int) -> list[Row]:
        """At most `limit` rows, the first ones, as plain Python values."""
        if data.stored.here is not None:
            return sorted(data.stored.here, key=_nulls_first)[:limit]
        stored = self.programs.first_rows(data.stored, limit)
        return rows_of(stored, sql.rows(stored.name, len(data.columns), limit=limit, ordered=True))

    def fetch(self, data: Relation, limit: int) -> Collection[Row] | None:
        """All rows, if there are at most `limit`; distinct."""
        rows = data.stored.known_rows
        if not are_exact(data.types) or (rows is not None and rows > limit):
            return None
        if data.stored.here is not None:
            return data.stored.here
        width = len(data.columns)
        query = sql.rows(data.stored.name, width, limit=limit + 1, distinct=data.stored.rows is None)
        found = rows_of(data.stored, query)
        return frozenset(found) if len(found) <= limit else None

    def count(self, data: Relation) -> int:
        """The number of rows."""
        known = data.stored.known_rows
        if known is not None:
            return known
        ((found,),) = self.database.plain_rows(sql.number(data.stored.name), [data.stored.name])
        return int(found)

    def union(self, parts: Sequence[Relation]) -> Relation:
        """The set union of one or more relations, columns by position, named as the first's; when it is used."""
        terms = tuple(Variable(f"X{i}") for i in range(len(parts[0].columns)))
        sides = {Predicate("part", columns=(i,)): part.stored for i, part in enumerate(parts)}
        rules = [Rule(Atom(_FOUND, terms), (Atom(side, terms),)) for side in sides]
        return self._computed(rules, sides, parts[0].columns)

    def minus(self, left: Relation, right: Relation) -> Relation:
        """The distinct rows of `left` not in `right`, nulls equal, columns by position; when it is used."""
        terms = tuple(Variable(f"X{i}") for i in range(len(left.columns)))
        rule = Rule(Atom(_FOUND, terms), (Atom(_LEFT, terms), Negation((Atom(_RIGHT, terms),))))
        return self._computed([rule], {_LEFT: left.stored, _RIGHT: right.stored}, left.columns)

    def minus_all(self, left: Relation, right: Relation) -> Relation:
        """The rows of `left` without as many equal ones as `right` has, computed now."""
        return minus_all(self.database, left, right)

    def beyond(self, one: Relation, other: Relation) -> tuple[Relation, Relation]:
        """The rows of each without as many equal ones as the other has, computed now."""
        return beyond(self.database, one, other)

    def empty(self, like: Relation) -> Relation:
        """No rows, with the columns of `like`; nothing is read."""
        return Relation(self.database.computed(frozenset(), like.types), like.columns)

    def like(self, data: Relation, other: Relation) -> Relation:
        """The rows with the types and names of another relation's columns; an error where a value does not fit."""
        if data.types == other.types:
            return Relation(data.stored, other.columns)
        wanted = [kind if to == ANY else to for kind, to in zip(data.types, other.types, strict=True)]
        with writing_sql():
            query = sql.cast_rows(data.stored.name, data.types, wanted)
        return Relation(self.database.view(query, wanted, [data.stored]), other.columns)

    def keep(self, data: Relation) -> Relation:
        """The same rows, computed now and held."""
        if data.stored.rows is not None:
            return data
        query = sql.rows(data.stored.name, len(data.columns))
        return Relation(self.database.table(query, data.types, [data.stored.name]), data.columns)

    def release(self) -> None:
        """Lets go of what was computed on the way; a relation lives as long as somebody refers to it."""
        self.programs.release()

    def columns(self, data: Relation) -> tuple[str, ...]:
        """The column names, in order."""
        return data.columns

    def _computed(
        self, rules: Sequence[Rule], tables: Mapping[Predicate, Stored], names: Sequence[str]
    ) -> Relation:
        query, types = self._over(rules, tables, {})
        return Relation(self.database.view(query, types, list(tables.values())), tuple(names))

    def _over(
        self,
        rules: Sequence[Rule],
        tables: Mapping[Predicate, Stored],
        not_null: Mapping[Predicate, frozenset[int]],
    ) -> tuple[Query, tuple[SqlType, ...]]:
        """The query of some rules over tables, and its types."""
        read = {p: Extension(stored, not_null.get(p, frozenset())) for p, stored in tables.items()}
        with writing_sql():
            made = derived(
                rules, {p: one.table() for p, one in read.items()}, {p: s.types for p, s in tables.items()}
            )
        return made.query(), made.types


def _places(selection: ViewDefinition) -> list[int]:
    """The columns of what a selection selects from that its columns are; -1 of what is computed."""
    (one,) = selection.blocks
    (stored,) = one.core.atoms
    return [stored.terms.index(output) if output in stored.terms else -1 for output in one.outputs]


def _numbered(width: int) -> tuple[str, ...]:
    return tuple(f"c{i}" for i in range(width))


def _nulls_first(row: Row) -> list[tuple[bool, Any]]:
    return [(value is not None, value) for value in row]


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
