"""What views are defined as, as texts: a store keeps those that its rows are of, so that an edit does not go unnoticed.

A text stays the same when what is edited does not matter to the rows: spaces, comments, the names of temporary views,
and, of views that are read as rules, how the query is written, and columns that are not read. It has the types of what
is read. Of a view that is known by its text alone all columns of what it reads are part of it: they may be what `*`, a
natural join or a name in a subquery means.

    CREATE VIEW big AS SELECT id FROM orders WHERE total > 100     big(Id) :- `orders(id int, total int)`(Id, Total) ...
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime

from datalog.copies import replace
from datalog.model import (
    Atom,
    Literal,
    Negation,
    OpaqueView,
    Rule,
    Term,
    TextQuery,
    Variable,
    ViewDefinition,
    terms_of,
    walk,
)
from datalog.syntax import show
from selfmaint.warehouse.base_relations import BaseRelation
from selfmaint.warehouse.catalog import Catalog

_SOME_MOMENT = datetime(1583, 7, 19, 3, 14, 15, 926535, tzinfo=UTC)
"""Definitions that read the current date or time are written as of then, a date that nobody writes: they are not edited
as time goes on."""


def written(catalog: Catalog) -> dict[str, str]:
    r"""The definition of each view, over base relations and the views that are stored.

    >>> from selfmaint.api.file.programs import catalog_of
    >>> written(catalog_of(".decl r(a: int, b: int, c: int). v(A) :- r(A, _, 3)."))
    {'v': 'v(a)\nv(A) :- `r(a int, c int)`(A, 3).'}
    """
    if catalog.clock is not None:
        catalog = replace(catalog.clock.at(_SOME_MOMENT), clock=None)
    rules = dict[str, list[Rule]]()
    for rule in catalog.program.rules:
        rules.setdefault(rule.head.predicate.name, []).append(rule)
    found = {}
    for view in catalog.views:
        if isinstance(view.definition, OpaqueView):
            found[view.name] = _query(view.definition, catalog.relations)
        elif isinstance(view.definition, ViewDefinition):
            found[view.name] = show(_narrowed(view.definition, catalog.relations))
        else:
            its = (_narrowed_rule(rule, catalog.relations) for rule in rules[view.name])
            names = ", ".join(view.stored_columns)
            found[view.name] = "\n".join([f"{view.name}({names})", *map(show, its)])
    return found


def _query(view: OpaqueView, relations: Mapping[str, BaseRelation]) -> str:
    """A query of which no more is known than its text, with the queries that are read within."""
    if not isinstance(view.query, TextQuery):
        every = sorted(relations)
        return " ".join([view.text, *(_columns(relations[name]) for name in every)])
    read = (relations[name] for name in view.query.relations if name in relations)
    return " ".join([_filled(view.query), *map(_columns, read)])


def _columns(relation: BaseRelation, kept: Iterable[int] | None = None) -> str:
    """A relation's columns with their types, all or some."""
    places = range(relation.given) if kept is None else kept
    return f"{relation.name}({', '.join(f'{relation.columns[i]} {relation.types[i]}' for i in places)})"


def _filled(query: TextQuery) -> str:
    from datalog.sql.views.written_out.as_written import without_comments  # noqa: PLC0415 - only where there is SQL

    pieces, at = [], 0
    for read in sorted(query.reads, key=lambda one: one.start):
        inner = f"`{read.of}`" if isinstance(read.of, str) else f"({_filled(read.of)})"
        pieces += [without_comments(query.text[at : read.start]), inner]
        at = read.end
    columns = f" AS ({', '.join(query.columns)})" if query.columns else ""
    pieces.append(without_comments(query.text[at:]))
    return " ".join(piece for piece in pieces if piece) + columns


def _narrowed(view: ViewDefinition, relations: Mapping[str, BaseRelation]) -> ViewDefinition:
    blocks = []
    for one in view.blocks:
        above = (*one.outputs, *one.filters, *(one.groups or ()), *one.having)
        used = [leaf for part in above for leaf in walk(part) if isinstance(leaf, Variable)]
        blocks.append(replace(one, core=_narrowed_rule(one.core, relations, used)))
    return replace(view, blocks=tuple(blocks))


def _narrowed_rule(rule: Rule, relations: Mapping[str, BaseRelation], above: Iterable[Variable] = ()) -> Rule:
    """A rule whose subgoals over base relations name the columns that they use, and have no others."""
    uses = Counter[Term](above)
    uses.update(rule.head.terms)
    uses.update(term for literal in rule.body for term in terms_of(literal))

    def narrowed(literal: Literal) -> Literal:
        if isinstance(literal, Negation):
            return replace(literal, body=tuple(map(narrowed, literal.body)))
        if not isinstance(literal, Atom) or literal.predicate.name not in relations:
            return literal
        kept = [i for i, t in enumerate(literal.terms) if not isinstance(t, Variable) or uses[t] > 1]
        name = _columns(relations[literal.predicate.name], kept)
        return Atom(replace(literal.predicate, name=name), tuple(literal.terms[i] for i in kept))

    return replace(rule, body=tuple(map(narrowed, rule.body)))
