"""A warehouse's schema: its views' definitions and the base relations that they are over.

The classes of view that the decision is exact for are conjunctive views without projection: one rule, every
body variable in the head, constants anywhere, `is not null` guards and equalities allowed. Any other view has a
`limitation`, and its verdict is `Undecided` with that reason.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from datalog.analysis import atoms_of, diagnose, validate
from datalog.copies import replace
from datalog.diagnostics import Code, Diagnostic, ProgramError, in_text_order
from datalog.graphs import components
from datalog.model import (
    ANY,
    Atom,
    Comparison,
    Constant,
    OpaqueView,
    OuterJoin,
    Predicate,
    Program,
    Row,
    TextQuery,
    Version,
    ViewDefinition,
    value_kind,
)
from datalog.rewrite.branches import Branch
from datalog.syntax import show
from selfmaint.warehouse.alike import types_met
from selfmaint.warehouse.base_relations import BaseRelation, add_undeclared, base_relations, certain_variables
from selfmaint.warehouse.branches import queries_apart, query_branches, told_apart
from selfmaint.warehouse.clock import Clock
from selfmaint.warehouse.computed_columns import are_computed_alike
from selfmaint.warehouse.constraints import Reference
from selfmaint.warehouse.cores import core_rules, projected, with_core, without_core
from selfmaint.warehouse.definitions import rules_by_name, separated, unfolded_rules, view_of
from selfmaint.warehouse.emptiness import with_empty_views
from selfmaint.warehouse.outer_joins import joins_of, outer_parts, parts_of
from selfmaint.warehouse.reads import reads
from selfmaint.warehouse.summands import decided_by, summands
from selfmaint.warehouse.views import GroupedView, Limitation, Outside, View

if TYPE_CHECKING:
    from collections import Counter

    from selfmaint.warehouse.own_relations import OwnRelation

__all__ = [
    "BaseRelation",
    "Catalog",
    "GroupedView",
    "Limitation",
    "Outside",
    "Reference",
    "View",
    "catalog",
    "certain_variables",
    "with_inexact_sums",
]

T = TypeVar("T")
Texts: TypeAlias = Callable[
    [View, Mapping[str, BaseRelation], Mapping[str, frozenset[Row]]], "Counter[Row] | None"
]


@dataclass(frozen=True)
class Catalog:
    """The views and base relations of a warehouse.

    Attributes:
        program: the program as written.
        views: every view, in order of definition.
        relations: the base relations by name.
        remarks: what was found odd when the definitions were read, such as SQL that cannot be analysed.
        unions: the branches of the unions whose rows tell them apart, each with the view that it is; likewise what
            views with LEFT JOINs are made of.
        outer: how the rows of these views are put together.
        summands: the rules of the other unions, as views of which nothing is stored.
        grouped_summands: those of the unions that views group over, with the groups of these.
        helpers: views that are kept for others to be computed from, each with the view that it is for.
        near: of views with helpers, the columns whose last digits may differ from Spark's.
        clock: of definitions that read the current date or time, the moment that they are of.
        over_rows: the same views, where those with such definitions are computed from helpers that have none.
        own: the relations that only views' bodies are over: their rows come from those of others (`own_relations.py`).
        texts: runs the views of which only the text is known over rows at hand; None of what cannot be told.
        queries: by name, the query as it is written of a view that reads views, or one of some tables.
        loose: says why a view's rows may be stored as other values than its query gives, as texts for numbers.
        held: what was found of single queries; catalogs that are made of this one have it, too.
    """

    program: Program
    views: tuple[View, ...]
    relations: Mapping[str, BaseRelation]
    remarks: tuple[Diagnostic, ...] = ()
    unions: Mapping[str, Mapping[Branch, View]] = field(default_factory=dict)
    outer: Mapping[str, OuterJoin] = field(default_factory=dict)
    summands: Mapping[str, tuple[GroupedView, ...]] = field(default_factory=dict)
    grouped_summands: Mapping[str, tuple[GroupedView, ...]] = field(default_factory=dict)
    helpers: Mapping[str, str] = field(default_factory=dict)
    near: Mapping[str, frozenset[int]] = field(default_factory=dict)
    clock: Clock | None = None
    over_rows: Catalog | None = None
    own: tuple[OwnRelation, ...] = ()
    texts: Texts | None = field(default=None, compare=False, repr=False)
    queries: Callable[[str, Container[str]], TextQuery | None] | None = field(
        default=None, compare=False, repr=False
    )
    loose: Callable[[str], str | None] | None = field(default=None, compare=False, repr=False)
    held: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    _found: dict[object, tuple[View | None, Any]] = field(
        default_factory=dict, init=False, compare=False, repr=False
    )

    @cached_property
    def apart(self) -> Catalog:
        """The catalog with branches as views, in place of the unions: it says the same, and is what is decided."""
        if not self.unions:
            return self
        parts = (self.unions[v.name].values() if v.name in self.unions else (v,) for v in self.views)
        return replace(self, views=tuple(view for some in parts for view in some))

    @cached_property
    def sides_as_views(self) -> Catalog:
        """The catalog with what views with LEFT JOINs are made of in place of these, as if written so."""
        sides = {name: tuple(self.unions[name].values()) for name in self.outer}
        views = (part for view in self.views for part in sides.get(view.name, (view,)))
        plain = (part.rule for its in sides.values() for part in its if not part.is_more_than_rules)
        program = replace(self.program, rules=(*self.program.rules, *plain))
        unions = {name: its for name, its in self.unions.items() if name not in self.outer}
        return replace(self, program=program, views=tuple(views), unions=unions, outer={})

    @cached_property
    def with_summands(self) -> Catalog:
        """The catalog with summands in place of the unions that have some: what is known is what the others tell."""
        every = {**self.summands, **self.grouped_summands}
        kept = (view for view in self.views if view.name not in every)
        views = (*kept, *(one for its in every.values() for one in its))
        rules = (rule for rule in self.program.rules if rule.head.predicate.name not in every)
        program = replace(self.program, rules=tuple(rules))
        return replace(self, program=program, views=views, summands={}, grouped_summands={})

    @cached_property
    def selections(self) -> tuple[tuple[Predicate, Predicate, ViewDefinition], ...]:
        """For each branch its predicate, that of its union, and what of the union's rows are its rows."""
        return tuple(
            (view.predicate, branch.selection.predicate, replace(branch.selection, columns=view.columns))
            for parts in self.unions.values()
            for branch, view in parts.items()
        )

    @cached_property
    def _wholes(self) -> Mapping[str, str]:
        return {part.name: name for name, parts in self.unions.items() for part in parts.values()}

    def whole(self, name: str) -> str:
        """The union that a branch is of; of another view its own name."""
        return self._wholes.get(name, name)

    def parts(self, view: View) -> tuple[View, ...]:
        """The views that decide on a view: itself, or a union's branches."""
        return tuple(self.unions[view.name].values()) if view.name in self.unions else (view,)

    def view(self, name: str) -> View:
        """The view of that name."""
        return next(view for view in self.views if view.name == name)

    def once(self, what: str, view: View | None, find: Callable[[], T]) -> T:
        """What is found for a view, or for all, from the schema alone; found once."""
        key = (what, "" if view is None else view.name)
        if key not in self._found or self._found[key][0] is not view:
            self._found[key] = (view, find())
        found: T = self._found[key][1]
        return found

    @cached_property
    def limited_views(self) -> tuple[View, ...]:
        """The views outside the class that is decided exactly."""
        return tuple(view for view in self.views if view.limitation)

    @cached_property
    def grouped_views(self) -> tuple[GroupedView, ...]:
        """The views that group, over cores that are decided, and are stored."""
        return tuple(v for v in self.views if isinstance(v, GroupedView) and not v.grouped.is_hidden)

    @cached_property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What is odd about the program but no reason to refuse it, in the order of the text: DL codes and SM106."""
        own = [*self.remarks, *diagnose(self.program)]
        return in_text_order(with_empty_views(own, self.program, self.views))

    def warnings_of(self, views: Collection[str]) -> tuple[Diagnostic, ...]:
        """The warnings about some views and what they read: in the last definition that begins before; or nowhere."""
        heads = [(one.rule.span, one.name) for one in self.views]
        heads += [(rule.span, rule.head.predicate.name) for rule in self.program.rules]
        heads += [(one.span, one.name) for one in self.program.declarations]
        starts = sorted((s.source, s.line, s.column, name) for s, name in heads if s is not None)
        wanted, found = {*views}.union(*(reads(self).get(name, ()) for name in views)), []
        for one in self.warnings:
            place = one.span and (one.span.source, one.span.line, one.span.column)
            before = [start for start in starts if place and start[0] == place[0] and start[:3] <= place]
            if not before or before[-1][3] in wanted:
                found.append(one)
        return tuple(found)

    @cached_property
    def is_in_sql(self) -> bool:
        """Whether some view is written in SQL."""
        return any(getattr(view.definition, "text", None) for view in self.views)

    @cached_property
    def is_constrained(self) -> bool:
        """Whether some relation has a key, a unique constraint or a foreign key."""
        return any(relation.unique or relation.references for relation in self.relations.values())

    @cached_property
    def leaves_fresh(self) -> bool:
        """Whether nothing but new facts binds a variable of theirs: no reference, null, group or comparison does."""
        given = any(relation.references or relation.nullable for relation in self.relations.values())
        return not given and not self.grouped_views and not any(view.comparisons for view in self.views)

    @cached_property
    def referenced_by(self) -> Mapping[str, tuple[tuple[BaseRelation, Reference], ...]]:
        """For each relation, the foreign keys that reference it, with the relation they are of."""
        found: dict[str, list[tuple[BaseRelation, Reference]]] = {name: [] for name in self.relations}
        for relation in self.relations.values():
            for reference in relation.references:
                found[reference.target].append((relation, reference))
        return {name: tuple(references) for name, references in found.items()}

    @cached_property
    def number_columns(self) -> frozenset[tuple[str, int]]:
        """Columns of undeclared types that are compared in order, with numbers or each other: taken to hold numbers."""
        same: list[tuple[object, object]] = []
        in_order: set[object] = set()
        for relation in self.relations.values():
            for reference in relation.references:
                pairs = zip(reference.columns, reference.target_columns, strict=True)
                same += (((relation.name, i), (reference.target, j)) for i, j in pairs)
        for view in self.views:
            written = view.rule.body if view.always_empty else ()  # it has no comparisons else
            for atom in (*view.body, *(li for li in written if isinstance(li, Atom))):
                places = ((atom.predicate.name, i) for i in range(atom.arity))
                for place, term in zip(places, atom.terms, strict=True):
                    same.append((place, term if isinstance(term, Constant) else (view.name, term)))
            for comparison in (*view.comparisons, *(li for li in written if isinstance(li, Comparison))):
                ends = (comparison.left, comparison.right)
                one, other = (t if isinstance(t, Constant) else (view.name, t) for t in ends)
                same.append((one, other))
                if comparison.operator != "!=":
                    in_order.add(one)
        found = set()
        for component in components((), same):
            kinds = {value_kind(t.value) for t in component if isinstance(t, Constant)}
            if kinds <= {"number"} and not in_order.isdisjoint(component):
                found.update(component)
        return frozenset(
            (name, i)
            for name, relation in self.relations.items()
            for i in range(relation.arity)
            if (name, i) in found and relation.types[i] == ANY
        )

    def not_null(self, view: View) -> frozenset[int]:
        """Positions of a view's stored rows that never hold null."""
        if isinstance(view, GroupedView):
            known = view.core.not_null | view.core.certain
            places = view.grouped.group_terms.items()
            return frozenset(
                i for i, t in places if t in known or (isinstance(t, Constant) and t.value is not None)
            )
        if view.limitation is not None and view.limitation.kind is Outside.UNION:
            return frozenset()  # the head is that of its first rule
        certain = view.not_null | view.certain
        return frozenset(
            i
            for i, t in enumerate(view.head.terms)
            if t in certain or (isinstance(t, Constant) and t.value is not None)
        )


def catalog(
    program: Program, opaque: Iterable[OpaqueView] = (), remarks: Iterable[Diagnostic] = ()
) -> Catalog:
    """The catalog of a program of view rules and declarations.

    Args:
        program: one rule for each view (several rules are a union, which is not decided yet), view definitions,
            and declarations of base relations and, if wanted, of views.
        opaque: views of which only the text is known.
        remarks: warnings from reading the definitions.

    Raises:
        ProgramError: the program is not valid (every problem at once).
        InputError: SM105 a rule without a body, which defines no view.
    """
    validate(program)
    _require_plain_names(program)
    taken = _taken(program, opaque := tuple(opaque))
    joins = joins_of([*program.views, *opaque], taken, program.declarations)
    written, made_of = program, {one.name: one for one in parts_of(joins.values())}
    written_alone = [v for v in program.views if v.name not in joins and v.name.casefold() not in taken]
    queries = query_branches(written_alone)
    made_of |= {part.name: part for its in queries.values() for part in its.values()}
    program, beyond = separated(replace(program, views=(*program.views, *made_of.values())), opaque)
    stored = {rule.head.predicate.name for rule in program.rules} | set(beyond)
    cores = core_rules(beyond)
    with_cores = replace(program, rules=(*program.rules, *cores.values()))
    definitions = unfolded_rules(with_cores)
    relations = base_relations(program, definitions, stored)
    for one in (*written.views, *made_of.values()):
        add_undeclared(relations, stored, (a for b in one.blocks for a in b.core.atoms))
    by_name = {**rules_by_name(program), **{name: [] for name in beyond}}
    plain = {name: view_of(program, name, rules, relations, by_name) for name, rules in definitions.items()}
    met = types_met((plain.atoms for rules in definitions.values() for _, plain in rules), relations)
    beyond = {n: with_core(v, cores.get(n), plain.get(n), relations, met) for n, v in beyond.items()}
    known = {**{one.name: one for one in written.views}, **made_of}
    views = {name: replace(view, definition=known.get(name)) for name, view in plain.items()}
    views = {name: projected(view, relations) for name, view in views.items()} | beyond
    order = dict.fromkeys([*(p.name for p in written.heads), *known, *views])
    limited = {n: views[n] for n in order if n not in made_of and views[n].limitation is not None}
    unions = {
        name: found
        for name, view in limited.items()
        if name.casefold() not in taken
        and (found := told_apart(program, view, definitions.get(name, ()), relations, by_name))
    }
    told = {name: (cores.get(name) or plain[name].rule, plain[name]) for name in made_of if name in plain}
    alike = {n: one for n, one in joins.items() if are_computed_alike(one, told, relations, met)}
    sides = {name: outer_parts(views[name], one, views, relations) for name, one in alike.items()}
    outer = {name: one for name, one in alike.items() if sides[name]}
    views |= {name: without_core(views[name]) for name in outer}
    unions |= {name: sides[name] for name in outer} | queries_apart(queries, views, relations)
    views = {name: view for name, view in views.items() if name not in made_of}
    program = replace(program, rules=tuple(r for r in program.rules if r.head.predicate.name not in made_of))
    others = {n: view for n, view in views.items() if n not in unions and n.casefold() not in taken}
    sums = summands(program, others, relations, by_name)
    views |= {name: decided_by(views[name]) for name in sums}
    every = tuple(views[name] for name in order if name in views)
    return Catalog(program, every, relations, tuple(remarks), unions, outer, *_by_kind(views, sums))


def _by_kind(
    views: Mapping[str, View], sums: Mapping[str, tuple[GroupedView, ...]]
) -> tuple[dict[str, tuple[GroupedView, ...]], dict[str, tuple[GroupedView, ...]]]:
    """The summands of unions, and those of views that group over unions."""
    of_groups = {name: its for name, its in sums.items() if isinstance(views[name].definition, OpaqueView)}
    return {name: its for name, its in sums.items() if name not in of_groups}, of_groups


def _atoms(program: Program) -> Iterator[Atom]:
    """All atoms of a program as written."""
    bodies = (li for view in program.views for block in view.blocks for li in block.core.body)
    literals = (*(li for rule in program.rules for li in (rule.head, *rule.body)), *bodies)
    return (atom for literal in literals for atom in atoms_of(literal))


def _taken(program: Program, opaque: Iterable[OpaqueView]) -> frozenset[str]:
    """The names, folded, of which some relation has what a part of such a view would be called."""
    named = [one.name for its in (program.declarations, program.views, opaque) for one in its]
    named += [atom.predicate.name for atom in _atoms(program)]
    return frozenset(name.casefold().rpartition("#")[0] for name in named)


def _require_plain_names(program: Program) -> None:
    """Refuses versions: a view's rule speaks of relations as they are, whatever the update."""
    found = [
        Diagnostic(
            Code.UNKNOWN_VERSION,
            f"`{show(atom.predicate)}` is a version of a relation, which no view is defined by",
            atom.span,
            "a version",
            note="versions such as `@inserted` are for the programs that are made of the views' rules",
            hint=f"write `{show(Predicate(atom.predicate.name))}`",
        )
        for atom in _atoms(program)
        if atom.predicate.version is not Version.STORED
    ]
    if found:
        raise ProgramError(found)


def with_inexact_sums(schema: Catalog) -> Catalog:
    """The catalog where views that add up doubles are maintained, though the result depends on the order of adding."""
    clock = schema.clock
    if clock is not None:
        at = clock.at
        clock = replace(clock, at=lambda moment: with_inexact_sums(at(moment)))
    over_rows = None if schema.over_rows is None else with_inexact_sums(schema.over_rows)
    views = tuple(view.if_inexact or view for view in schema.views)
    return replace(schema, views=views, clock=clock, over_rows=over_rows)
