"""A query with everything it is made of unfolded: derived tables, common table expressions, views, unions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct, field
from sqlglot import exp

from datalog.analysis import united_type
from datalog.copies import replace
from datalog.diagnostics import Code
from datalog.model import (
    AllOf,
    AnyOf,
    Atom,
    Column,
    ColumnType,
    Compared,
    Condition,
    Constant,
    Declaration,
    Expression,
    IsNull,
    Predicate,
)
from datalog.sql.views.blocks import of_one_type
from datalog.sql.views.expressions import Reader
from datalog.sql.views.joins import MOST_BLOCKS, Piece, column_names, joined, renamed
from datalog.sql.views.limits import chain
from datalog.sql.views.nested.joined_groups import with_keys
from datalog.sql.views.nested.semi_joins import once, taken_out, with_semi_join
from datalog.sql.views.outer.null_rejecting import with_inner_joins
from datalog.sql.views.outer.partners import with_and_without
from datalog.sql.views.scope import Draft, Query, Scope, Source, Variables, family
from datalog.sql.views.select import GroupedUnionError, is_grouped, select_query, with_conditions
from datalog.sql.views.source import Problems, UnreadableError, counted
from datalog.sql.views.written_out.distinct_values import without_distinct
from datalog.sql.views.written_out.plain_aggregates import with_plain_aggregates


class Stored(Struct, frozen=True):
    """A stored relation or view that a query reads rows of; `unread` are columns of the table that it does not have."""

    name: str
    columns: tuple[Column, ...]
    unread: tuple[Column, ...] = ()


class Inlined(Struct, frozen=True):
    """A query to put in place of a name.

    Attributes:
        columns: the names of its columns; none for those of the query.
        problems: about the text that it is from.
        expressions: the common table expressions that it may use.
        stored: for a view whose rows are stored: what to read where it cannot be unfolded.
    """

    tree: exp.Expr
    columns: tuple[str, ...]
    problems: Problems
    expressions: Mapping[str, Inlined] = field(default_factory=dict)
    stored: Stored | None = None


class Relations(Protocol):
    """What the names of tables and views mean."""

    def find(self, table: exp.Table, problems: Problems) -> Stored | Inlined:
        """What a name means.

        Raises:
            UnreadableError: no such relation, or one that cannot be read.
        """
        ...

    def declared(self, name: str) -> Declaration | None:
        """What is declared of a base relation."""
        ...


class QueryReader(Struct, frozen=True):
    """Reads queries in one place.

    Attributes:
        relations: what names of tables mean.
        variables: makes the block's variables.
        problems: about the text that is read.
        expressions: common table expressions around, by case-folded name.
        dedup: whether whoever uses the rows takes equal ones for one.
        unfolds: of views whose rows are stored: True to unfold those that group or are unions, too, False to read the
            rows of all; None to unfold what is one rule.
        splits: whether a LEFT JOIN along a foreign key is read as two queries, with partners and without.
    """

    relations: Relations
    variables: Variables
    problems: Problems
    expressions: Mapping[str, Inlined] = field(default_factory=dict)
    dedup: bool = False
    unfolds: bool | None = None
    splits: bool = False

    @property
    def reader(self) -> Reader:
        """What reads expressions, without columns in sight."""
        return Reader(Scope(), self.variables, self.problems)

    def query(self, tree: exp.Expr) -> Query:
        """A query.

        Raises:
            UnreadableError: what is wrong is among the problems.
        """
        match tree:
            case exp.Subquery() | exp.Paren():
                return self.within(tree).query(tree.this)
            case exp.Union():
                return self.within(tree)._union(tree)
            case exp.Intersect():
                return self.within(tree)._intersection(tree)
            case exp.Select():
                return self.within(tree)._select(tree)
            case _:
                raise self.problems.outside("this query", tree, "begin it with SELECT")

    def within(self, tree: exp.Expr) -> QueryReader:
        """The reader that also knows the query's common table expressions."""
        with_ = tree.args.get("with_")
        if with_ is None:
            return self
        known = dict(self.expressions)
        for one in with_.expressions:
            columns = tuple(column.name for column in one.args["alias"].columns)
            known[one.alias.casefold()] = Inlined(one.this, columns, self.problems, dict(known))
        return replace(self, expressions=known)

    # ------------------------------------------------------------------------------------------- unions

    def _union(self, tree: exp.Union) -> Query:
        queries = sum(1 for _ in chain(tree))
        if queries > MOST_BLOCKS:
            raise self._too_many(tree, queries)
        distinct = bool(tree.args.get("distinct"))
        inner = replace(self, dedup=self.dedup or distinct)
        sides = [inner.query(side) for side in (tree.this, tree.expression)]
        left, right = sides
        if len(left.columns) != len(right.columns):
            raise self._of_other_width(tree, "a union", left, right)
        self._check_families(tree, left, right)
        if not inner.dedup and any(side.distinct for side in sides):
            raise self.problems.outside(
                "DISTINCT on one side of UNION ALL", tree.expression, "make that side a view of its own"
            )
        pairs = zip(left.types, right.types, strict=True)
        types = tuple(united_type([kind for kind in pair if kind]) if any(pair) else None for pair in pairs)
        drafts = of_one_type((*left.drafts, *right.drafts), types, self.variables.type_of)
        if len(drafts) > MOST_BLOCKS:
            raise self._too_many(tree, len(drafts))
        return Query(left.columns, drafts, distinct and not self.dedup, types)

    def _intersection(self, tree: exp.Intersect) -> Query:
        """The rows that both sides have, once: a join by all columns, where null is equal to null."""
        hint = "join the two on all columns, with DISTINCT"
        if not tree.args.get("distinct"):
            raise self.problems.outside("INTERSECT ALL", tree, hint)
        inner = replace(self, dedup=True)
        left, right = (inner.query(side) for side in (tree.this, tree.expression))
        if len(left.columns) != len(right.columns):
            raise self._of_other_width(tree, "an intersection", left, right)
        self._check_families(tree, left, right)
        if any(len(side.drafts) > 1 or side.drafts[0].groups is not None for side in (left, right)):
            raise self.problems.outside("INTERSECT of unions or groups", tree, hint)
        (one,), (other,) = left.drafts, right.drafts
        pairs = list(zip(one.outputs, other.outputs, strict=True))
        if left.types != right.types or None in left.types:  # Spark finds no rows of bare nulls
            raise self.problems.outside("INTERSECT of columns of different types", tree, hint)
        same = [self._same(a, b, one, other) for a, b in pairs]
        draft = Draft((*one.body, *other.body), one.outputs, (*one.filters, *other.filters))
        made = with_conditions(draft, same, self.variables)
        return Query(left.columns, (made,), not self.dedup, left.types)

    def _same(self, a: Expression, b: Expression, one: Draft, other: Draft) -> Condition:
        """That two values are equal or both null."""
        equal = Compared("=", a, b)
        if self.is_never_null(a, one) or self.is_never_null(b, other):
            return equal
        return AnyOf((equal, AllOf((IsNull(a), IsNull(b)))))

    def is_never_null(self, value: Expression, draft: Draft) -> bool:
        """Whether it is a column that is declared not null, or a value."""
        if isinstance(value, Constant):
            return value.value is not None
        for atom in (literal for literal in draft.body if isinstance(literal, Atom)):
            table = self.relations.declared(atom.predicate.name)
            if table is not None and value in atom.terms:
                return table.is_not_null(atom.terms.index(value))
        return False

    def _of_other_width(
        self, tree: exp.SetOperation, what: str, left: Query, right: Query
    ) -> UnreadableError:
        return self.problems.error(
            Code.SQL_WIDTH,
            f"{what} of {len(left.columns)} and {len(right.columns)} columns",
            tree.expression,
            f"{len(right.columns)} here",
            hint=f"both sides of {what} have the same columns, by position",
        )

    def _too_many(self, tree: exp.Union, queries: int) -> UnreadableError:
        return self.problems.outside(
            f"a union of {queries} queries", tree, "make parts of it views of their own"
        )

    def _check_families(self, tree: exp.SetOperation, left: Query, right: Query) -> None:
        what = "a union" if isinstance(tree, exp.Union) else "an intersection"
        for name, one, other in zip(
            left.columns, left.drafts[0].outputs, right.drafts[0].outputs, strict=True
        ):
            families = [family(self.variables.type_of(side)) for side in (one, other)]
            if len({"date", "timestamp", "timestamp_ntz"} & {*families}) > 1:
                raise self.problems.outside(f"{what} of dates and times", tree.expression, "cast the dates")
            if "any" not in families and families[0] != families[1]:
                self.problems.error(
                    Code.HEAD_TYPE,
                    f"column `{name}` of {what} is a {families[0]} and a {families[1]}",
                    tree.expression,
                    f"a {families[1]} here",
                    hint="cast one of them",
                )

    # ------------------------------------------------------------------------------------------ selects

    def _select(self, tree: exp.Select) -> Query:
        written, tree = tree, with_inner_joins(tree)
        from_ = tree.args.get("from_")
        dedup = self.dedup or tree.args.get("distinct") is not None
        inner = replace(self, dedup=dedup and not is_grouped(tree))
        pieces = [Piece(Draft(), Scope())]
        if from_ is not None:
            joins = tree.args.get("joins") or []
            pieces = inner._joined(from_.this, joins)
        found = taken_out(tree)
        if found.subqueries and len(pieces) > 1:
            raise self.problems.outside(
                "a subquery in a condition on a union", tree, "make the union a view of its own"
            )
        if found.subqueries and (is_grouped(tree) or pieces[0].draft.groups is not None):
            hint = "join the tables, and make that a view of its own"
            raise self.problems.outside("grouping over a subquery in a condition", tree, hint)
        outside = sum(isinstance(literal, Atom) for literal in pieces[0].draft.body)
        for node in found.subqueries:
            pieces = [with_semi_join(pieces[0], node, inner._from, self.reader)]
        try:
            query = select_query(found.tree, pieces, self.reader)
        except GroupedUnionError as error:
            error.select = error.select or written
            raise
        if pieces[0].beside:
            query = self._with_keys(query, pieces[0], tree)
        drafts = (self._with_plain_aggregates(draft) for draft in query.drafts)
        drafts = (without_distinct(one, self.variables, self.relations.declared) for one in drafts)
        query = replace(query, drafts=tuple(drafts))
        if found.subqueries and not dedup:
            query = once(query, outside, tree, self.relations.declared, self.problems)
        return replace(query, distinct=query.distinct and not self.dedup)

    def _with_plain_aggregates(self, draft: Draft) -> Draft:
        return with_plain_aggregates(draft, self.variables, lambda one: self.is_never_null(one, draft))

    def _with_keys(self, query: Query, piece: Piece, tree: exp.Select) -> Query:
        draft = with_keys(query.drafts[0], piece.beside, self.relations.declared)
        if draft is None:
            what = "grouping inside a join with what has no key"
            raise self.problems.outside(
                what, tree, "declare a key, or make it a materialized view of its own, and join that"
            )
        is_distinct = tree.args.get("distinct") is not None and not set(draft.groups or ()) <= set(
            draft.outputs
        )
        return replace(query, drafts=(draft,), distinct=query.distinct or is_distinct)

    def _from(self, tree: exp.Select) -> list[Piece]:
        """The alternatives of the FROM of a subquery in a condition."""
        return self._joined(tree.args["from_"].this, tree.args.get("joins") or [])

    def _joined(self, first: exp.Expr, joins: list[exp.Join]) -> list[Piece]:
        either = with_and_without if self.splits else None
        return joined(first, joins, self.source, self.relations.declared, self.reader, either)

    def source(self, tree: exp.Expr) -> list[Piece]:
        """The alternatives of one table or subquery of FROM."""
        alias = tree.args.get("alias")
        columns = [] if alias is None else [column.name for column in alias.columns]
        if isinstance(tree, exp.Subquery) and isinstance(tree.this, exp.Table):
            found = self._joined(tree.this, tree.this.args.get("joins") or [])
            if alias is None:
                return found
            names = self._named(tree, tuple(column_names(found[0])), columns)
            return [renamed(piece, alias.name, names) for piece in found]
        if isinstance(tree, exp.Subquery):
            return self._inlined(tree, self.query(tree), tree.alias or None, columns)
        if isinstance(tree, exp.From | exp.Select):
            raise self.problems.error(
                Code.SQL_SYNTAX, "SQL that cannot be read, in FROM", tree, "no table and no subquery"
            )
        if not isinstance(tree, exp.Table):
            raise self.problems.outside("this source of rows", tree, "read tables, views and subqueries")
        return self._table(tree, tree.alias or None, columns)

    def _table(self, tree: exp.Table, alias: str | None, columns: list[str]) -> list[Piece]:
        parts = tuple(part.name for part in reversed(tree.parts))
        qualifier = (alias,) if alias else parts
        known = self.expressions.get(tree.name.casefold()) if len(parts) == 1 else None
        meaning = known or self.relations.find(tree, self.problems)
        stored = meaning if isinstance(meaning, Stored) else meaning.stored
        if stored is not None and (isinstance(meaning, Stored) or self.unfolds is False):
            return [self._stored(tree, stored, qualifier, columns)]
        assert isinstance(meaning, Inlined)
        reader = replace(self, problems=meaning.problems, expressions=meaning.expressions)
        before = len(meaning.problems.found)
        try:
            query = reader.query(meaning.tree)
            alone = len(query.drafts) == 1 and not query.distinct and query.drafts[0].groups is None
            if meaning.stored is not None and not (alone or self.unfolds):
                return [self._stored(tree, meaning.stored, qualifier, columns)]
        except UnreadableError:
            if meaning.stored is None:
                raise
            del meaning.problems.found[before:]
            return [self._stored(tree, meaning.stored, qualifier, columns)]
        if meaning.columns:
            query = replace(query, columns=self._named(tree, query.columns, list(meaning.columns)))
        return self._inlined(tree, query, qualifier, columns)

    def _stored(
        self, tree: exp.Expr, stored: Stored, qualifier: tuple[str, ...], columns: list[str]
    ) -> Piece:
        names = self._named(tree, tuple(column.name for column in stored.columns), columns)
        for column in stored.columns:
            if column.unmodelled is not None:
                what = f"column `{column.name}` of `{stored.name}` of type `{column.unmodelled.text}`"
                raise self.problems.outside(what, tree, column.unmodelled.hint)
        variables = tuple(self.variables.fresh(c.name, c.type) for c in stored.columns)
        atom = Atom(Predicate(stored.name), variables, self.problems.source.span_of(tree))
        pairs = tuple(zip(names, variables, strict=True))
        unread = frozenset(column.name.casefold() for column in stored.unread)
        return Piece(Draft((atom,)), Scope((Source(qualifier, pairs, unread=unread),)))

    def _inlined(
        self, tree: exp.Expr, query: Query, alias: str | tuple[str, ...] | None, columns: list[str]
    ) -> list[Piece]:
        names = self._named(tree, query.columns, columns)
        qualifier = (alias,) if isinstance(alias, str) else alias or ()
        found = []
        for draft in query.drafts:
            pairs = tuple(zip(names, draft.outputs, strict=True))
            scope = Scope((Source(qualifier, pairs, self._types(query, draft)),))
            found.append(Piece(replace(draft, outputs=()), scope, distinct=query.distinct))
        return found

    def _types(self, query: Query, draft: Draft) -> tuple[ColumnType | None, ...]:
        """The types of the query's columns that are not those of what they are in one of its blocks.

        A number that is written out has fewer digits than its column where quotients are computed.
        """
        found = list[ColumnType | None]()
        for output, kind in zip(draft.outputs, query.types, strict=True):
            own = self.variables.type_of(output)
            is_number = kind is not None and kind.family == "number"
            is_other = isinstance(output, Constant) or (own is not None and own != kind and not own.is_open)
            matters = own is None or (is_number and is_other)
            found.append(kind if kind is not None and not kind.is_open and matters else None)
        return tuple(found)

    def _named(self, tree: exp.Expr, own: tuple[str, ...], given: list[str]) -> tuple[str, ...]:
        if not given:
            return own
        if len(given) != len(own):
            raise self.problems.error(
                Code.SQL_WIDTH,
                f"{len(given)} name{'' if len(given) == 1 else 's'} for {counted(len(own))}",
                tree,
                f"it has {counted(len(own))}",
                hint="name every column, or none",
            )
        return tuple(given)
