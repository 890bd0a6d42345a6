"""Texts of SQL as view definitions and declarations: the way in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePath
from types import MappingProxyType

from msgspec import Struct, field
from sqlglot import exp

from datalog.analysis import united_type
from datalog.analysis.expression_types import expression_type
from datalog.copies import replace
from datalog.diagnostics import Code, Diagnostic, ProgramError, Severity, in_text_order
from datalog.model import (
    ANY,
    Column,
    Constant,
    Declaration,
    NotToRun,
    OpaqueView,
    Semantics,
    ViewDefinition,
)
from datalog.sql.views.blocks import named_block, of_its_types
from datalog.sql.views.catalogue import UNREAD, Catalogue, Named, second
from datalog.sql.views.declared.declared_tables import DeclaredTables
from datalog.sql.views.declared.statement import (
    Defined,
    Kind,
    declaration,
    defined,
    query_text,
)
from datalog.sql.views.kept.misread import misread
from datalog.sql.views.kept.otherwise import Otherwise, otherwise
from datalog.sql.views.kept.text_reads import Queries, text_query
from datalog.sql.views.kept.unknown_names import report_unknown
from datalog.sql.views.kept.unread_columns import used_unread
from datalog.sql.views.outside import report_outside
from datalog.sql.views.query import QueryReader
from datalog.sql.views.scope import Query, Variables
from datalog.sql.views.select import default_name
from datalog.sql.views.source import Problems, SqlText, Statement, UnreadableError, counted, statements
from datalog.sql.views.written_out.distinct_on import with_row_numbers
from datalog.sql.views.written_out.grouped_by_all import places_written_out
from datalog.sql.views.written_out.shorthand import written_out

_LONGEST_REASON = 300
"""Characters of a reason; it may quote a name as long as the text."""


class SqlViews(Struct, frozen=True):
    """What texts of SQL define.

    Attributes:
        declarations: of base relations, and of the views' columns.
        views: the views that could be read, in the order of the texts.
        opaque: the views of which only the text is known, with reasons.
        warnings: what keeps views from being read (DL402), statements passed over (DL407), DL408, and DL409.
        undone: the same of views with LEFT JOINs, by view: it counts where what they are made of is not decided.
        queries: those of views that read views, as they are written.
    """

    declarations: tuple[Declaration, ...]
    views: tuple[ViewDefinition, ...]
    opaque: tuple[OpaqueView, ...] = ()
    warnings: tuple[Diagnostic, ...] = ()
    undone: Mapping[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    queries: Queries = field(default_factory=Queries)


def read_sql(
    texts: Iterable[SqlText] | str,
    declarations: Iterable[Declaration] = (),
    *,
    unfolded: Iterable[str] = (),
    instead: Mapping[str, str] = MappingProxyType({}),
    parts: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
) -> SqlViews:
    """The views and tables that texts of Spark SQL define.

    Args:
        texts: the texts, each of any number of statements: `CREATE TABLE` declares a base relation, `CREATE
            [MATERIALIZED] VIEW` and `CREATE TABLE ... AS` a view of the warehouse, `CREATE TEMPORARY VIEW` a
            query to be unfolded where it is read, and a query without a name is a view called like its text.
        declarations: of further base relations.
        unfolded: names of views to be unfolded all the same.
        instead: by view, a query to be read in place of its own.
        parts: by declaration the parts of its whole name, the last one first, where it is called by some of them.

    Returns:
        Each view as a definition over base relations; one that reads a stored view that cannot be unfolded
        (a union, DISTINCT, grouping), and no base relation, reads its rows. What no definition can hold is opaque.

    Raises:
        ProgramError: SQL that is wrong (DL101, DL103, DL104, DL112, DL113, DL301, DL401, DL403 to DL406), all
            problems of all texts.

    >>> found = read_sql('''create table sale (id int primary key, item string, price decimal(9,2));
    ...                     create view totals as select item, sum(price) as total from sale group by item;''')
    >>> [(view.name, view.columns) for view in found.views]
    [('totals', ('item', 'total'))]
    """
    given = [SqlText(texts)] if isinstance(texts, str) else list(texts)
    names = frozenset(name.casefold() for name in unfolded)
    return _Reading(given, tuple(declarations), names, instead, parts).run()


_COLLATED = NotToRun(
    "it has a collation of its own, in which equal texts may differ",
    "leave `DEFAULT COLLATION` out, and cast or fold the texts in the query",
)


class _Reading(Struct, dict=True):
    texts: Sequence[SqlText]
    given: tuple[Declaration, ...]
    unfolded: frozenset[str]
    instead: Mapping[str, str]
    parts: Mapping[str, tuple[str, ...]]
    found: list[Diagnostic] = field(default_factory=list)
    opaque: dict[str, OpaqueView] = field(default_factory=dict)
    definitions: dict[str, ViewDefinition] = field(default_factory=dict)
    undone: dict[str, tuple[Diagnostic, ...]] = field(default_factory=dict)
    refused: dict[str, NotToRun] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.catalogue = Catalogue(self._read)
        for one in self.given:
            self.catalogue.declare(self.parts.get(one.name) or tuple(reversed(one.name.split("."))), one)
        self.tables = DeclaredTables(self.catalogue, len(self.catalogue.declarations))

    def run(self) -> SqlViews:
        for text in self.texts:
            for statement in statements(text, self.found, self.catalogue.unread):
                self._collect(statement, defined(statement))
        self.found += self.tables.settle()
        self.given = tuple(self.catalogue.declarations.values())[: self.tables.given]
        for view in self.catalogue.views:
            self._read(view)
            self.found += view.problems.found
        if any(one.severity is Severity.ERROR for one in self.found):
            raise ProgramError(one for one in self.found if not one.message.endswith(UNREAD))
        self._say_what_is_read()
        names = {name.casefold() for one in (*self.given, *self.tables.every) for name in one.column_names}
        self.found += (one for text in self.texts for one in misread(text, names))
        declared = (*self.given, *self.tables.every)
        stored = [view for view in self.catalogue.views if view.stored]
        columns = [Declaration(v.name, v.columns_found, span=v.span) for v in stored if v.columns_found]
        return SqlViews(
            (*declared, *columns),
            tuple(self.definitions[v.name] for v in stored if v.name in self.definitions),
            tuple(self.opaque.values()),
            in_text_order(self.found),
            self.undone,
            Queries(self.catalogue),
        )

    def _collect(self, statement: Statement, found: Defined) -> None:
        problems = Problems(statement.source)
        match found.kind:
            case Kind.TABLE if isinstance(found.body, exp.Schema):
                name = self._new_name(found.parts)
                table = declaration(name, found.body, problems)
                self._require_new(table.name, found.parts, found.name_tree, problems)
                self.catalogue.declare(found.parts, table)
                self.found += problems.found
            case Kind.VIEW | Kind.UNFOLDED | Kind.QUERY:
                self._collect_view(statement, found, problems)
            case Kind.UNREADABLE_VIEW:
                problems.outside(
                    "this form of CREATE VIEW", found.body, "write `create view NAME as select ...`"
                )
                place = replace(problems.found[0], span=statement.span)
                self.found.append(place)
                query = query_text(statement)
                self._opaque(found.parts[0], query, [place], (), statement)
                if "collation" in statement.text[: -len(query)].casefold():
                    self.refused[found.parts[0]] = _COLLATED
            case _:
                self.tables.take(statement, found, problems)
                self.found += problems.found

    def _collect_view(self, statement: Statement, found: Defined, problems: Problems) -> None:
        assert found.body is not None
        parts = found.parts or statement.source.parts or (PurePath(statement.source.name).stem.strip("<>"),)
        self._require_new(parts[0], parts, found.name_tree or found.body, problems)
        self.found += problems.found
        problems.found.clear()
        name = (statement.source.relation if not found.parts else None) or self._new_name(parts)
        stored = found.kind is not Kind.UNFOLDED and name.casefold() not in self.unfolded
        place = problems.source.span_of(found.name_tree) or statement.span
        tree, text = found.body, query_text(statement)
        if name in self.instead:
            text = self.instead[name]
            source = SqlText(text, statement.source.name, place=place)
            tree = next(statements(source, self.found)).tree
            problems = Problems(source)
        self.catalogue.add(Named(name, parts, tree, found.columns, stored, problems, text, place))

    def _new_name(self, parts: tuple[str, ...]) -> str:
        """The relation's name: the last part, or all of it if another relation has that name."""
        is_taken = parts[0].casefold() in self.catalogue.names
        return ".".join(reversed(parts)) if is_taken and len(parts) > 1 else parts[0]

    def _require_new(
        self, name: str, parts: tuple[str, ...], tree: exp.Expr | None, problems: Problems
    ) -> None:
        same = self.catalogue.called(parts)
        if same is not None:
            problems.error(
                Code.DECLARED_TWICE,
                f"`{name}` is defined twice",
                tree,
                "the second definition",
                hint="keep one of them; a file may hold one query without a name",
                context=second(same.span),
            )

    def _read(self, view: Named) -> None:
        """Reads a view, once; what is wrong is among its problems."""
        if view.failed or view.columns_found:
            return
        self.catalogue.reading.append(view)
        try:
            self._define(view)
        except UnreadableError as error:
            view.failed = True
            self._check_names(view)
            if not view.problems.errors and view.stored:
                self._otherwise(view, error)
        finally:
            self.catalogue.reading.pop()

    def _define(self, view: Named) -> None:
        self._require_read(view)
        every = [one.tree for one in self.catalogue.views]
        view.tree, view.text = with_row_numbers(view.tree, view.text, self._apart(view, view.problems))
        by_places = places_written_out(view.tree, view.text, every, (*self.given, *self.tables.every))
        view.tree, view.text = written_out(by_places[0], default_name), by_places[1]
        report_outside(view.tree, view.problems)
        if view.problems.source.outside is not None:
            view.problems.outside(
                view.problems.source.outside + ", which", None, "give the query of all rows"
            )
        if view.problems.found:
            raise UnreadableError
        variables = Variables()
        query = QueryReader(self.catalogue, variables, view.problems).query(view.tree)
        if view.problems.found:
            raise UnreadableError
        self._defined(view, *self._unfolded(view, query, variables))

    def _require_read(self, view: Named) -> None:
        for column, kind, hint in used_unread(view.tree, self.catalogue):
            view.uses_unread = True
            raise view.problems.outside(f"column {column} of type `{kind.text}`", view.tree, hint)

    def _defined(self, view: Named, query: Query, variables: Variables, *, is_split: bool = False) -> None:
        """Takes up what a view is read as."""
        names, query = self._names(view, query), of_its_types(query, variables.type_of)
        blocks = [named_block(view.name, number, draft) for number, draft in enumerate(query.drafts)]
        outputs = zip(*(draft.outputs for draft in query.drafts), strict=True)
        view.columns_found = tuple(
            Column(
                name,
                united_type(
                    [expression_type(one, variables.types) or ANY for one in its if one != Constant(None)]
                ),
            )
            for name, its in zip(names, outputs, strict=True)
        )
        semantics = Semantics.SET if query.distinct else Semantics.BAG
        self.definitions[view.name] = ViewDefinition(
            view.name, names, tuple(blocks), semantics, view.text, view.span, is_split=is_split
        )

    def _unfolded(self, view: Named, query: Query, variables: Variables) -> tuple[Query, Variables]:
        """A query in the form that is followed best.

        One that joins rows of views with base relations is decided over these alone, if it can be read so. One that
        counts equal values once is never decided: over views alone it is computed from their rows.
        """
        unfolds = True if self._is_mixed(query.reads) else False if query.counts_once else None
        if unfolds is not None:
            reader = replace(self._apart(view), unfolds=unfolds)
            with suppress(UnreadableError):
                found = reader.query(view.tree)
                is_of_views = not found.reads.isdisjoint(one.name for one in self.catalogue.views)
                if (
                    not reader.problems.found
                    and is_of_views is not unfolds
                    and not self._is_mixed(found.reads)
                ):
                    return found, reader.variables
        return query, variables

    def _is_mixed(self, read: Iterable[str]) -> bool:
        """Whether what is read are rows of views, and base relations."""
        stored = {view.name for view in self.catalogue.views if view.stored}
        return len({name in stored for name in read}) > 1

    def _check_names(self, view: Named) -> None:
        """What is wrong with the names of a view that could not be read; no other problem then matters."""
        if not view.problems.errors:
            view.names = report_unknown(view.tree, self.catalogue, view.problems)
        view.problems.found = view.problems.errors or view.problems.found

    def _otherwise(self, view: Named, error: UnreadableError) -> None:
        """A view that could not be read, with what is told of it all the same."""
        found = Otherwise() if view.uses_unread else otherwise(view, error, lambda: self._apart(view))
        if found.query is not None:
            view.failed = False
            view.problems.found.clear()
            self._defined(view, *found.query, is_split=True)
            return
        names = view.columns or _select_names(view.tree)
        if _has_nameless(view.tree):
            view.columns = names  # engines call them otherwise
        self._opaque(view.name, view.text, view.problems.unsupported, names, view)
        self.opaque[view.name] = replace(self.opaque[view.name], **found.told)
        if "outer" in found.told:
            self.undone[view.name] = tuple(replace(one, hint=found.hint) for one in view.problems.found)
        if found.is_read:
            view.problems.found.clear()
        elif found.label is not None:
            view.problems.found = [replace(one, label=found.label) for one in view.problems.found]
        elif found.hint is not None and len(view.problems.found) == 1:
            view.problems.found = [replace(one, hint=found.hint) for one in view.problems.found]
        self._twice(view, names)

    def _apart(self, view: Named, problems: Problems | None = None) -> QueryReader:
        """What reads a view once more, its problems apart: what is not read so stays as it was."""
        return QueryReader(self.catalogue, Variables(), problems or Problems(view.problems.source))

    def _names(self, view: Named, query: Query) -> tuple[str, ...]:
        names = view.columns or query.columns
        if len(names) != len(query.columns):
            raise view.problems.error(
                Code.SQL_WIDTH,
                f"view `{view.name}` names {counted(len(names))}, its query has {len(query.columns)}",
                view.tree,
                f"{counted(len(query.columns))} here",
            )
        if (error := self._twice(view, names)) is not None:
            raise error
        return names

    def _twice(self, view: Named, names: Iterable[str]) -> UnreadableError | None:
        """Notes a name that two columns of a view have."""
        seen: set[str] = set()
        for name in names:
            if name.casefold() in seen:
                return view.problems.error(
                    Code.DUPLICATE_COLUMN,
                    f"view `{view.name}` has two columns `{name}`",
                    view.tree,
                    hint="give each column a name of its own: `... as name`",
                )
            seen.add(name.casefold())
        return None

    def _say_what_is_read(self) -> None:
        """What the queries read of which only the text is known, now that all relations are."""
        named = {view.name: view for view in self.catalogue.views}
        for name, view in self.opaque.items():
            known = named.get(name)
            outside = None if known is None else known.problems.source.outside
            refused = NotToRun(outside) if outside else self.refused.get(name)
            query = refused or text_query(view.text, self.catalogue, known)
            self.opaque[name] = replace(view, query=query)

    def _opaque(
        self,
        name: str,
        text: str,
        reasons: Iterable[Diagnostic],
        columns: tuple[str, ...],
        place: Named | Statement,
    ) -> None:
        words = dict.fromkeys(f"`{name}`: {one.message[:_LONGEST_REASON]}" for one in reasons)
        self.opaque[name] = OpaqueView(name, text, tuple(words), columns, place.span)


def _select_names(tree: exp.Expr) -> tuple[str, ...]:
    """The names of a query's columns, if the select list has them all."""
    selects = tree.selects if isinstance(tree, exp.Query) else []
    names = tuple(one.alias if isinstance(one, exp.Alias) else default_name(one) for one in selects)
    return () if any(one.is_star for one in selects) else names


def _has_nameless(tree: exp.Expr) -> bool:
    """Whether a column of a query's select list has no name of its own."""
    selects = tree.selects if isinstance(tree, exp.Query) else []
    return not all(isinstance(one, exp.Alias | exp.Column) for one in selects)
