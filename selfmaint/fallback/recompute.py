"""Recomputing views from their sources: what maintains a view that is not decided, if it is told to.

A view that reads other stored views reads their new contents, so views are recomputed in the order in which they read
each other. Rules are evaluated down to the base relations; definitions and texts are evaluated as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic

from msgspec import Struct, field

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import NotToRun, OpaqueView, Predicate, Program, TextQuery, Version, ViewDefinition
from datalog.rewrite import drop_unreachable, guard_joins
from datalog.rewrite.reachable import predicates_of
from selfmaint.decide.knowledge import Knowledge
from selfmaint.engine.protocol import D, Facts
from selfmaint.errors import Code, SourceError, in_view
from selfmaint.fallback.settle import Progress, Readable, require_not_moved
from selfmaint.fallback.states import is_before, rows_after, rows_of, signs_of_state, twins_of_deleted
from selfmaint.sources.protocol import Read, Source
from selfmaint.warehouse.catalog import BaseRelation, Catalog, View

_Contents = Callable[[View], D]
"""The new contents of a view that is not recomputed."""


class Recomputed(Struct, Generic[D], frozen=True):
    """Views' new contents from their sources.

    Attributes:
        contents: by view, all its rows; counted rows of views that keep duplicates and are decided.
        reads: every read of a base relation, in order.
    """

    contents: Mapping[str, D] = field(default_factory=dict)
    reads: tuple[Read, ...] = ()


def obstacles(catalog: Catalog, views: Sequence[View], readable: Iterable[str]) -> list[Diagnostic]:
    """Why views cannot be recomputed; nothing is read for that.

    The new rows of all other views are at hand.
    """
    return [one for _, one in views_with_obstacles(catalog, views, readable)]


def views_with_obstacles(
    catalog: Catalog, views: Sequence[View], readable: Iterable[str]
) -> Iterator[tuple[View, Diagnostic]]:
    """The same, each with its view."""
    given, anew = set(readable), {view.name for view in views}
    for view in views:
        reason = _obstacle(catalog, view, given, anew)
        if reason is not None:
            yield (
                view,
                Diagnostic(
                    Code.NOT_MAINTAINED,
                    f"the view `{view.name}` cannot be recomputed: {reason.why}",
                    reason.span,
                    hint=reason.hint or _DECLARE,
                ),
            )


_DECLARE = "declare every base relation that it reads, and give it a source in the warehouse file"


def _obstacle(catalog: Catalog, view: View, given: set[str], anew: set[str]) -> NotToRun | None:
    waiting, seen = [view.name], {view.name}
    while waiting:
        one = catalog.view(waiting.pop())
        reason = one.definition.refused if isinstance(one.definition, OpaqueView) else None
        if reason is not None:
            return reason if one is view else replace(reason, why=f"`{one.name}`: {reason.why}")
        for name in reads(catalog, one):
            if name == view.name:
                return NotToRun("it depends on itself")
            if name in catalog.relations and name not in given:
                return NotToRun(f"`{name}` has no source")
            if name in anew - seen:
                waiting.append(name)
                seen.add(name)
    return None


def reads(catalog: Catalog, view: View) -> tuple[str, ...]:
    """The base relations and stored views whose rows a view is recomputed from."""
    program = rules_of(catalog, view)
    if program.rules:
        heads = {p.name for p in program.heads}
        used = (p.name for rule in program.rules for p in predicates_of(rule.body))
        return tuple(dict.fromkeys(name for name in used if name not in heads))
    match view.definition:
        case OpaqueView(query=TextQuery() as query):
            return query.relations
        case ViewDefinition() as definition:
            return tuple(p.name for p in definition.reads)
        case _:
            return ()


def rules_of(catalog: Catalog, view: View) -> Program:
    """The rules of a view and of the views of rules below; none if it is more than rules."""
    if not catalog.program.rules_for(view.predicate):
        return Program()
    guarded = Program(tuple(guard_joins(rule) for rule in catalog.program.rules))
    return drop_unreachable(guarded, [view.predicate])


class Recomputing(Struct, Generic[D], dict=True):
    """Recomputes views, each base relation read once.

    Attributes:
        known: the views' old contents, the update and what else is known.
        readable: the base relations that have a source.
        followed: the new contents of other views.
        progress: told of every read.
        now: the views' definitions, where these are others than those that the facts are of.
        is_doubted: whether the views' rows prove nothing of the sources: they are what is to be judged.
    """

    known: Knowledge[D]
    readable: Mapping[str, Readable[D]]
    followed: _Contents[D]
    progress: Progress = lambda _message: None
    now: Catalog | None = None
    is_doubted: bool = False

    def __post_init__(self) -> None:
        self.catalog = self.now or self.known.catalog
        self._rows: dict[str, D] = {}
        self._reads: list[Read] = []

    def with_(self, bases: Mapping[str, D]) -> Recomputing[D]:
        """This, which reads no more of base relations whose rows are at hand."""
        self._rows.update(bases)
        return self

    def recomputed(self, views: Sequence[View]) -> Recomputed[D]:
        """The new contents of some views that nothing stands in the way of recomputing.

        Raises:
            SourceError: a source that does not answer, or is in another state (SM402); SM104 other columns, of all
                base relations at once.
            InputError: SM404 a query that Spark refuses, or one that this engine cannot run; SM104 other columns.
        """
        mine = {view.name: view for view in views}
        self._read_bases(mine)
        contents = {name: self._contents(name, mine) for name in mine}
        return Recomputed(contents, tuple(self._reads))

    def _read_bases(self, mine: Mapping[str, View]) -> None:
        """Reads the base relations that views read."""
        problems: list[Diagnostic] = []
        for name in dict.fromkeys(one for view in mine.values() for one in reads(self.catalog, view)):
            if name in self.catalog.relations:
                try:
                    self._contents(name, mine)
                except SourceError as error:
                    if any(one.code is not Code.COLUMNS_DIFFER for one in error.diagnostics):
                        raise
                    problems += error.diagnostics
        if problems:
            raise SourceError(problems)

    @property
    def bases(self) -> Mapping[str, D]:
        """The rows of the base relations that were read."""
        return {name: rows for name, rows in self._rows.items() if name in self.catalog.relations}

    def _contents(self, name: str, mine: Mapping[str, View]) -> D:
        """The rows of a base relation or view after the update."""
        if name not in self._rows:
            catalog = self.catalog
            if name in catalog.relations:
                self._rows[name] = self._read(name)
            elif name in mine:
                needed = {one: self._as_stored(one, mine) for one in reads(catalog, mine[name])}
                self.progress(f"recomputing {name}")
                self._rows[name] = self.evaluated(mine[name], needed)
            else:
                self._rows[name] = self.followed(catalog.view(name))
        return self._rows[name]

    def _as_stored(self, name: str, mine: Mapping[str, View]) -> D:
        """The rows of a base relation or view after the update, each as often as it stands."""
        # Contents stay in the form that they have, whatever the definitions are now.
        rows, catalog = self._contents(name, mine), self.known.catalog
        is_counted = name not in catalog.relations and catalog.view(name).is_counted
        return self.known.engine.bags.expanded(rows) if is_counted else rows

    def _read(self, name: str) -> D:
        relation = self.known.catalog.relations[name]
        source = self.readable[name].source
        rows, read = read_after(self.known, relation, source, is_doubted=self.is_doubted)
        self._reads.append(read)
        self.progress(f"read all {read.rows_read} rows of {name}")
        return rows

    def evaluated(self, view: View, needed: Mapping[str, D]) -> D:
        """A view's rows, given those that it reads."""
        catalog, engine = self.catalog, self.known.engine
        old = self.known.facts.relations[view.predicate]
        relations = {n: catalog.relations[n] for n in needed if n in catalog.relations}
        not_null = {Predicate(n): frozenset(range(r.arity)) - r.nullable for n, r in relations.items()}
        facts = Facts({Predicate(n): rows for n, rows in needed.items()}, not_null)
        program = rules_of(catalog, view)
        if program.rules:
            rows = engine.evaluate(program, view.predicate, facts, engine.columns(old))
            return engine.keep(engine.like(rows, old))
        declared = {Predicate(d.name): tuple(c.type for c in d.columns) for d in catalog.program.declarations}
        types = declared | {Predicate(n): r.types for n, r in relations.items()}
        # Contents stay in the form that they have, whatever the view is computed from now.
        is_counted = self.known.catalog.view(view.name).is_counted
        definition = view.grouping if is_counted else view.definition
        assert definition is not None
        with in_view(view.shown):
            return engine.recompute(definition, facts, types, old)


def read_after(
    known: Knowledge[D], relation: BaseRelation, source: Source[D], *, is_doubted: bool = False
) -> tuple[D, Read]:
    """All rows of a base relation after the update.

    Conditions of soundness:

    1. Deleted and inserted rows are disjoint, so deleting and inserting them makes the state before the update the
       state after it, and leaves that one as it is.
    2. A relation without a key may hold a row twice, which this would not keep: its source must be right after the
       update.
    3. An effective update is either in the source or not. One that is there in part, or whose rows clash with others by
       key, shows that the source is in a third state; so do rows that the views prove and that are not there.

    The source is right before or right after the update; rows that the views prove may be missing if it `is_doubted`.

    Raises:
        SourceError: the source's own; SM402 a source in another state.
    """
    rows, read = rows_of(known.engine, relation, source, [], None)
    name, found = relation.name, Predicate(relation.name, Version.FOUND)
    held = known.learning(known.facts.extended({found: rows}, small=False))
    if name in known.situation.inserted | known.situation.deleted:
        signs = signs_of_state(held, relation)
        rows = rows_after(held, relation, signs)
        read = replace(read, is_before=is_before(signs), has_twins=twins_of_deleted(signs, known.situation))
        held = known.learning(known.facts.extended({found: rows}, small=False))
    if not is_doubted:
        require_not_moved(held, relation)
    return rows, read
