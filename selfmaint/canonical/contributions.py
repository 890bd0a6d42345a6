"""What the rows of views tell of base relations: a row of one view, or rows of several that are of one base row.

    orders@known(I, C, D) :- orders_by_customer(I, C, _), order_days(I, D).        I: the key of `orders`

Conditions of soundness:

1. Every body variable of a view is in its head, so a view row grounds every subgoal; of a view outside the
   exact class only the subgoals without a projected variable contribute.
2. A contribution may be dropped when it is contained, as a query over the base relations, in another one:
   the views are what their rules say, so the containment holds for their contents too.
3. A view that groups proves the subgoals all of whose variables are group columns: a stored group has a row.
4. A view that joins a relation to others only by foreign keys that are never null, and tests nothing, has a row for
   each of its rows: where it shows all of its columns, the relation is wholly known, and none of its rows is new.
5. Rows of several views that show one key of a relation, with equal values there, are of the same row of it, and what
   each shows is in it. A key whose equal values may be written otherwise, as 0.0 and -0.0, is not taken. Where each
   view has a row for each row of the relation (condition 4), and they show all of its columns, it is wholly known.
6. A row of a view of rows without a match is one of the relation that is kept. A group that a HAVING lets through has
   rows as any other (condition 3). What such views do not show tells nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from datalog.containment import contained_in, containment_mapping
from datalog.copies import replace
from datalog.model import (
    Atom,
    Constant,
    Literal,
    NullTest,
    OpaqueView,
    Predicate,
    Rule,
    Term,
    Variable,
    Version,
    ViewDefinition,
    apply_atom,
    apply_literal,
    variables_of,
)
from datalog.rewrite import guarded_variables
from selfmaint.canonical.evidence import Evidence, evidence
from selfmaint.warehouse.base_relations import BaseRelation, certain_variables, row_atom
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.constraints import compose, unifier
from selfmaint.warehouse.grouped import Grouped
from selfmaint.warehouse.promised import promised

_MOST_TOGETHER = 4
"""So many ways of putting rows of a relation together are taken where none tells all of them."""


class Contribution(Struct, frozen=True):
    """What rows of a view, or of several, tell about a relation.

    Attributes:
        view: the view, or one of them.
        subgoal: index into its body: what it is told about; 0 of a view of rows without a match, which has none.
        rule: `relation@known(...) :- view(...).`
        meaning: the same as a query over the base relations: the views unfolded.
        is_exact: whether the views have rows for each match of their bodies, as one with filters has not.
        is_copy: whether it is the whole relation (conditions 4 and 5).
    """

    view: View
    subgoal: int
    rule: Rule
    meaning: Rule
    is_exact: bool = True
    is_copy: bool = False

    @property
    def stored(self) -> tuple[Predicate, ...]:
        """The views whose rows tell it."""
        return tuple(atom.predicate for atom in self.rule.atoms)


def contributions(catalog: Catalog) -> tuple[Contribution, ...]:
    """What views tell about the base relations, without what another contribution tells anyway."""
    kept: list[Contribution] = []
    for new in all_contributions(catalog):
        rivals = [c for c in kept if c.rule.head.predicate == new.rule.head.predicate]
        if any(rival.is_exact and contained_in(new.meaning, rival.meaning) for rival in rivals):
            continue
        if new.is_exact:
            kept = [c for c in kept if c not in rivals or not contained_in(c.meaning, new.meaning)]
        kept.append(new)
    return tuple(kept)


def all_contributions(catalog: Catalog) -> tuple[Contribution, ...]:
    """What views tell about the base relations, even what another one tells by condition 2."""
    return catalog.once("what views tell", None, lambda: tuple(_all_contributions(catalog)))


def _all_contributions(catalog: Catalog) -> Iterator[Contribution]:
    alone = [its for view in catalog.views for its in _told(catalog, view)]
    yield from alone
    copies = {its.rule.head.predicate.name for its in alone if its.is_copy}
    for relation in catalog.relations.values():
        if relation.name not in copies:
            yield from _together(catalog, relation)


def copied(catalog: Catalog) -> Mapping[str, Contribution]:
    """The relations that views copy (conditions 4 and 5), and what tells them."""
    return {c.rule.head.predicate.name: c for c in all_contributions(catalog) if c.is_copy}


def untold(catalog: Catalog) -> Mapping[str, frozenset[int]]:
    """What is missing to condition 5: columns of relations of which views with each row show a key, and more."""
    found, copies = dict[str, frozenset[int]](), copied(catalog)
    for relation in (its for its in catalog.relations.values() if its.name not in copies):
        shown = [one for one in evidence(catalog, relation) if _lists(catalog, one)] if relation.keys else []
        for key in relation.keys:
            listing = [one for one in shown if one.shows(key)]
            left = frozenset(i for i in range(relation.arity) if not any(one.shows([i]) for one in listing))
            if listing and relation.arity - len(left) > len(key):
                found[relation.name] = left
    return found


def _told(catalog: Catalog, view: View) -> Iterator[Contribution]:
    """What the rows of one view tell."""
    if isinstance(view, GroupedView) and not view.grouped.is_hidden:
        yield from _of_groups(catalog, view.core, view.grouped)
    anti = view.definition.anti if isinstance(view.definition, OpaqueView) else None
    if anti is not None and anti.definition is not None:  # the others are not examined
        yield from _of_kept(view, anti.kept)
    if view.shown_groups is not None:
        its = _of_groups(catalog, view.shown_groups.core, view.shown_groups.grouped)
        yield from (replace(one, is_exact=False, is_copy=False) for one in its)
    if view.limitation is None:
        for index, atom in enumerate(view.body):
            if set(variables_of([atom])) <= set(view.head.terms):
                made = _contribution(view, index, view.head)
                yield replace(made, is_copy=_has_each_row(catalog, view, atom))


def _of_groups(catalog: Catalog, core: View, grouped: Grouped) -> Iterator[Contribution]:
    """Condition 3: what the groups tell; nothing of a view that has a row even over none."""
    stored = grouped.stored(core.rule.head.predicate.of(Version.STORED), "Q")
    for index, atom in enumerate(core.body):
        if not grouped.is_total and set(atom.terms) <= {*grouped.group_terms.values(), *_constants(atom)}:
            is_exact = grouped.tells_absence
            is_copy = is_exact and _has_each_row(catalog, core, atom)
            yield replace(_contribution(core, index, stored), is_exact=is_exact, is_copy=is_copy)


def _of_kept(view: View, kept: ViewDefinition) -> Iterator[Contribution]:
    """Condition 6: what rows without a match tell of the one relation that they are of."""
    (one,) = kept.blocks
    (row,) = one.core.atoms
    shown = (
        its if isinstance(its, Variable | Constant) else Variable(f"Q{i}")
        for i, its in enumerate(one.outputs)
    )
    stored = Atom(view.predicate, tuple(shown))
    if set(variables_of([row])) <= set(stored.terms):
        head = row.of(Version.KNOWN)
        rule, meaning = Rule(head, (stored, *_guards(head))), Rule(head, one.core.body)
        yield Contribution(view, 0, rule, meaning, is_exact=False)


def _contribution(view: View, index: int, stored: Atom) -> Contribution:
    """What a stored row tells of a subgoal of which it shows all."""
    head = view.body[index].of(Version.KNOWN)
    meaning = Rule(head, (*view.body, *view.filters))
    return Contribution(view, index, Rule(head, (stored, *_guards(head))), meaning)


def _guards(head: Atom) -> Iterator[NullTest]:
    return (NullTest(v) for v in guarded_variables([head]))


def _constants(atom: Atom) -> Iterator[Term]:
    return (t for t in atom.terms if isinstance(t, Constant))


def _has_each_row(catalog: Catalog, view: View, atom: Atom) -> bool:
    """Condition 4: what foreign keys promise beside any row matches the view, which tests nothing."""
    own = variables_of([atom])
    if len(own) < atom.arity or view.comparisons:
        return False
    rows = promised(catalog, atom)
    found = containment_mapping(view.body, rows, {v: v for v in own})
    certain = certain_variables(rows, catalog.relations)
    return found is not None and all(found[v] in certain for v in view.not_null if v in found)


def _together(catalog: Catalog, relation: BaseRelation) -> Iterator[Contribution]:
    """Condition 5: what views tell of a relation of which each shows a part, with a key."""
    shown = list(evidence(catalog, relation)) if relation.keys else []
    for key in relation.keys:
        mine = [one for one in shown if one.shows(key)]
        if any(relation.types[i].name.has_signed_zeros for i in key) or len(mine) < 2:  # noqa: PLR2004 - by oneself none tells all
            continue
        listing = [one for one in mine if _lists(catalog, one)]
        whole = _joined(relation, key, _covering(relation, listing))
        if whole is not None:
            yield replace(whole, is_copy=True)
            return
        ways = dict.fromkeys(_covering(relation, [one, *listing, *mine]) for one in mine)
        made = (_joined(relation, key, parts) for parts in list(ways)[:_MOST_TOGETHER])
        yield from (one for one in made if one is not None)


def _lists(catalog: Catalog, shown: Evidence) -> bool:
    """Whether a view has a row for each row of the relation of which it shows a part."""
    view = shown.view
    return view.grouped.tells_absence and _has_each_row(catalog, view.core, view.core.body[shown.index])


def _covering(relation: BaseRelation, parts: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """The first of some parts, and those that show what is left; none if they do not show all columns."""
    found, left = list[Evidence](), set(range(relation.arity))
    for part in parts:
        more = {i for i in left if part.shows([i])}
        if more:
            found.append(part)
            left -= more
    return () if left else tuple(found)


def _joined(relation: BaseRelation, key: Sequence[int], parts: Sequence[Evidence]) -> Contribution | None:
    """Rows that show parts of one row, as that row; None if there are no parts, or they cannot be of one."""
    row, left = row_atom(relation, Version.KNOWN), set(range(relation.arity))
    one: dict[Variable, Term] | None = {}
    same: dict[Variable, Term] | None = {}
    stored, body = list[Atom](), list[Literal]()
    for number, part in enumerate(parts):
        apart = {v: Variable(f"P{number}_{v.name}") for v in variables_of([part.stored, *part.body])}
        subgoal = apply_atom(apart, part.subgoal)
        mine = {i for i in left if part.shows([i])}
        one = _unified(one, row, subgoal, [*key, *sorted(mine.difference(key))])
        same = _unified(same, row, subgoal, range(relation.arity))
        left -= mine
        stored.append(apply_atom(apart, part.stored))
        body += [apply_literal(apart, li) for li in (*part.body, *part.tests)]
    if not parts or one is None or same is None:
        return None
    head, first = apply_atom(one, row), parts[0]
    rule = Rule(head, (*(apply_atom(one, atom) for atom in stored), *_guards(head)))
    meaning = Rule(apply_atom(same, row), tuple(dict.fromkeys(apply_literal(same, li) for li in body)))
    is_exact = all(part.view.grouped.tells_absence for part in parts)
    return Contribution(first.view.core, first.index, rule, meaning, is_exact)


def _unified(
    before: dict[Variable, Term] | None, row: Atom, other: Atom, columns: Iterable[int]
) -> dict[Variable, Term] | None:
    """A substitution that also makes two atoms equal in some columns; None if none does."""
    if before is None:
        return None
    one, another = (
        apply_atom(before, Atom(row.predicate, tuple(atom.terms[i] for i in columns)))
        for atom in (row, other)
    )
    more = unifier(one, another)
    return None if more is None else compose(before, more)
