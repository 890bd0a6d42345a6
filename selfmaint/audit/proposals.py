"""What could be added to a warehouse so that more of its views are always self-maintainable.

- A *key* or *foreign key*: it costs nothing but a look at the data, which must confirm it.
- A *copy* of a base relation, as one more view.
- An *auxiliary view*: the rows of a relation that one view can ever use, by its constants and comparisons, and by those
  of the relations that it references (D. Quass, A. Gupta, I. Mumick, J. Widom, Making Views Self-Maintainable for
  Data Warehousing, 1996). Of what only selects it keeps no columns. With a view that projects "always" is sound but
  not exact, so the same view with all columns is offered too.

A proposal is no more than that until the audit has been run with it (`advice.py`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeAlias

from msgspec import Struct

from datalog.copies import replace
from datalog.diagnostics import ProgramError
from datalog.model import (
    Atom,
    Column,
    Constant,
    Declaration,
    ForeignKey,
    Literal,
    OpaqueView,
    Predicate,
    Program,
    Rule,
    Variable,
    ViewDefinition,
    variables_of,
)
from selfmaint.audit.changes import closure
from selfmaint.errors import InputError
from selfmaint.warehouse.catalog import BaseRelation, Catalog, GroupedView, View, catalog, with_inexact_sums


class NewKey(Struct, frozen=True):
    """A key: the values of `columns` identify a row, and are not null."""

    relation: str
    columns: tuple[str, ...]


class NewForeignKey(Struct, frozen=True):
    """A foreign key: the values of `columns`, where none is null, occur in `target`'s `target_columns`."""

    relation: str
    columns: tuple[str, ...]
    target: str
    target_columns: tuple[str, ...]


class NewView(Struct, frozen=True):
    """A view more: a copy of a base relation, or an auxiliary view.

    Attributes:
        relation: the relation whose rows it keeps.
        for_view: the view that it serves; None for a whole copy.
    """

    rule: Rule
    relation: str
    for_view: str | None = None

    @property
    def is_copy(self) -> bool:
        """Whether it keeps every row."""
        return self.for_view is None


Proposal: TypeAlias = NewKey | NewForeignKey | NewView


class Proposals(Struct, frozen=True):
    """What could help a view.

    Attributes:
        constraints: keys and foreign keys; each foreign key to columns that no declared key has, with that key.
        views: auxiliary views, then copies.
    """

    constraints: tuple[frozenset[Proposal], ...]
    views: tuple[NewView, ...]


def proposals(schema: Catalog, view: View, taken: Collection[str] = ()) -> Proposals:
    """What could help a view: constraints on, and views over, its relations and those that they reference.

    No new view gets a name that is `taken`.
    """
    own = [schema.relations[name] for name in closure(schema, view)]
    constraints = tuple(
        frozenset[Proposal]([reference] if key is None else [reference, key])
        for reference, key in _references(schema, own)
    )
    if view.limitation is not None:
        # A row may have a twin as long as no key says that it has none.
        missing = (NewKey(r.name, r.columns[:1]) for r in own if r.is_numbered)
        constraints += tuple(frozenset[Proposal]([key]) for key in missing)
    storable = [relation for relation in own if not relation.is_numbered]
    auxiliary = [made for relation in storable for made in _auxiliary(schema, view, relation, taken)]
    copies = [_copy(schema, relation, taken) for relation in storable if not _has_copy(schema, relation)]
    return Proposals(constraints, (*auxiliary, *copies))


def with_proposals(schema: Catalog, chosen: Iterable[Proposal]) -> Catalog | None:
    """The warehouse with some proposals carried out; None if they make no valid program."""
    wanted = tuple(chosen)
    defined = [v.definition for v in schema.views if isinstance(v.definition, ViewDefinition)]
    opaque = [v.definition for v in schema.views if isinstance(v.definition, OpaqueView)]
    names = {one.name for one in defined}
    rules = [rule for rule in schema.program.rules if rule.head.predicate.name not in names]
    declarations = {d.name: d for d in schema.program.declarations}
    for proposal in sorted(wanted, key=lambda p: isinstance(p, NewForeignKey)):
        match proposal:
            case NewView(rule=rule):
                rules.append(rule)
            case NewKey(relation=name, columns=columns):
                declarations[name] = replace(_declared(schema, declarations, name), key=columns)
            case NewForeignKey():
                old = _declared(schema, declarations, proposal.relation)
                _ = declarations.setdefault(proposal.target, _declared(schema, declarations, proposal.target))
                more = ForeignKey(proposal.columns, proposal.target, proposal.target_columns)
                declarations[proposal.relation] = replace(old, foreign_keys=(*old.foreign_keys, more))
    try:
        made = catalog(Program(tuple(rules), tuple(declarations.values()), tuple(defined)), opaque).apart
    except (ProgramError, InputError):
        return None
    is_inexact = any(isinstance(v, GroupedView) and v.grouped.inexact for v in schema.views)
    return with_inexact_sums(made) if is_inexact else made


def _declared(schema: Catalog, declarations: Mapping[str, Declaration], name: str) -> Declaration:
    if name in declarations:
        return declarations[name]
    relation = schema.relations[name]
    columns = (Column(c, t) for c, t in zip(relation.columns, relation.types, strict=True))
    return Declaration(name, tuple(columns))


def _references(
    schema: Catalog, relations: Iterable[BaseRelation]
) -> Iterator[tuple[NewForeignKey, NewKey | None]]:
    """For each join on all columns of a key: that the rows reference it; with the key, where none is declared."""
    names = {relation.name for relation in relations}
    found: dict[NewForeignKey, NewKey | None] = {}
    for view in schema.views:
        for child in view.body:
            for parent in view.body:
                pair = {child.predicate.name, parent.predicate.name}
                if len(pair) == 2 and pair <= names:  # noqa: PLR2004 - two relations
                    found.update(_suggested(schema, child, parent))
    yield from found.items()


def _suggested(schema: Catalog, child: Atom, parent: Atom) -> Iterator[tuple[NewForeignKey, NewKey | None]]:
    target = schema.relations[parent.predicate.name]
    for key in target.unique:
        made = _reference(schema, child, parent, key)
        if made is not None:
            yield made, None
    joined = _joined_columns(schema, target)
    if not target.unique and joined:
        made = _reference(schema, child, parent, joined[:1])
        if made is not None and _looks_like_parent(schema, made):
            yield made, NewKey(target.name, made.target_columns)


def _looks_like_parent(schema: Catalog, made: NewForeignKey) -> bool:
    """Of two relations that join on the first column of both, the one with more columns that join is the child."""
    source, target = schema.relations[made.relation], schema.relations[made.target]
    mine = _joined_columns(schema, source)
    if made.columns != (source.columns[mine[0]],):
        return True
    return len(mine) > len(_joined_columns(schema, target))


def _joined_columns(schema: Catalog, relation: BaseRelation) -> tuple[int, ...]:
    """The columns that some view joins with another relation."""
    found: dict[int, None] = {}
    for view in schema.views:
        for atom in view.body:
            if atom.predicate.name == relation.name:
                others = {t for o in view.body if o.predicate != atom.predicate for t in o.terms}
                found.update(
                    (i, None) for i, t in enumerate(atom.terms) if isinstance(t, Variable) and t in others
                )
    return tuple(sorted(found))


def _reference(schema: Catalog, child: Atom, parent: Atom, key: tuple[int, ...]) -> NewForeignKey | None:
    """The foreign key that a join suggests, unless it is declared or would close a cycle."""
    source, target = (schema.relations[atom.predicate.name] for atom in (child, parent))
    terms = [parent.terms[i] for i in key]
    if not all(isinstance(term, Variable) and term in child.terms for term in terms):
        return None
    columns = tuple(child.terms.index(term) for term in terms)
    if any(r.target == target.name and r.columns == columns for r in source.references):
        return None
    if _leads_to(schema, target.name, source.name):
        return None
    return NewForeignKey(
        source.name,
        tuple(source.columns[i] for i in columns),
        target.name,
        tuple(target.columns[i] for i in key),
    )


def _leads_to(schema: Catalog, start: str, end: str) -> bool:
    waiting, seen = [start], {start}
    while waiting:
        for reference in schema.relations[waiting.pop()].references:
            if reference.target == end:
                return True
            if reference.target not in seen:
                seen.add(reference.target)
                waiting.append(reference.target)
    return False


def _has_copy(schema: Catalog, relation: BaseRelation) -> bool:
    return any(
        view.limitation is None
        and len(view.body) == 1
        and view.body[0].predicate.name == relation.name
        and len({t for t in view.body[0].terms if isinstance(t, Variable)}) == relation.arity
        and not view.filters
        for view in schema.views
    )


def _copy(schema: Catalog, relation: BaseRelation, taken: Collection[str]) -> NewView:
    variables = tuple(Variable(f"X{i}") for i in range(relation.arity))
    head = Atom(Predicate(_free_name(schema, f"{relation.name}_copy", taken)), variables)
    return NewView(Rule(head, (Atom(Predicate(relation.name), variables),)), relation.name)


def _auxiliary(
    schema: Catalog, view: View, relation: BaseRelation, taken: Collection[str]
) -> Iterator[NewView]:
    """The relation's subgoal with what selects among its rows, there or in what it references: less columns first."""
    atoms = [atom for atom in view.body if atom.predicate.name == relation.name]
    if len(atoms) != 1 or view.limitation is not None:
        return
    needed = _selective(view, _referenced(schema, view, atoms[0]))
    tests = _tests(view, needed)
    if not tests and not any(isinstance(t, Constant) for atom in needed for t in atom.terms):
        return
    if set(needed) == set(view.body):
        return
    own, every = variables_of(atoms), variables_of(needed)
    names = [relation.name]
    for columns in dict.fromkeys((own, every)):
        head = Atom(Predicate(_free_name(schema, f"{'_'.join(names)}_of_{view.name}", taken)), columns)
        yield NewView(Rule(head, (*needed, *tests)), relation.name, view.name)
        names = list(dict.fromkeys(atom.predicate.name for atom in needed))


def _referenced(schema: Catalog, view: View, first: Atom) -> list[Atom]:
    """A subgoal and those that its foreign keys lead to."""
    body = [first]
    for atom in body:
        for reference in schema.relations[atom.predicate.name].references:
            body += [
                other
                for other in view.body
                if other.predicate.name == reference.target
                and reference.key_in(other) == reference.key_of(atom)
                and other not in body
            ]
    return body


def _selective(view: View, body: list[Atom]) -> list[Atom]:
    """The first subgoal, and those that select or that the way to one that selects leads over."""
    compared = set(variables_of(view.comparisons))
    last = max(
        (
            i
            for i, atom in enumerate(body)
            if any(isinstance(t, Constant) or t in compared for t in atom.terms)
        ),
        default=0,
    )
    return body[: last + 1]


def _tests(view: View, atoms: list[Atom]) -> tuple[Literal, ...]:
    bound = set(variables_of(atoms))
    return tuple(test for test in view.comparisons if set(variables_of([test])) <= bound)


def _free_name(schema: Catalog, name: str, others: Collection[str]) -> str:
    taken = {*(view.name for view in schema.views), *schema.relations, *others}
    while name in taken:
        name += "_"
    return name
