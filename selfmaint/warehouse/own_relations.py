"""A view that projects, as one that shows more of its body: over relations that have only what it uses.

    v(O, C, N) :- orders(O, C, Status), customer(C, K), nation(K, N).
    v(O, C, N) :- :orders(O, C), :customer+nation(C, N).   orders changes; customer and nation do not

Every database gives one of these relations too: `:orders` is a projection of `orders`, the other one a join. So what
all databases over the larger schema agree on, those of the warehouse agree on: "yes" carries over, with the delta. "No"
does not, for not every database over the larger schema comes from one of the warehouse.

Conditions of soundness:

1. A relation that changes is projected with a key of it. Then its projection changes by the projected rows of the
   update, but for those on both sides, and this is effective if the update is.
2. Subgoals are put together only if their relations do not change: nor does their join, then. The columns that it
   equates bind nothing else: no column of the view, no comparison, no other subgoal.
3. Where copies count, a row of a new relation comes from one row: a projection has a key, and the rows of a join are
   those of one subgoal, which by keys determines the rows of the others. Else what does not change needs no key.
4. The keys of the new relations are keys of the old ones, of a join those of that subgoal. Foreign keys are those that
   lead from what is kept to what is kept of another projection.
5. Other views say what they said, and of the new relations what their bodies imply: wherever the old relations stand in
   a body as they are defined to, joined by what is never null, the new one is added.
6. Where a relation stands once in the body, its projection may have those rows alone that satisfy the view's conditions
   on them, and so may a join. Its keys and its own foreign keys hold of these rows; none leads to it, and no other view
   implies rows of it. Of what does not change the view asks nothing more then: the same rows pass after the update.
7. What the view tests stays a column: comparisons, and that a column is not null, unless a join says so.
8. Views of which these relations are the same, with the same columns, keys and conditions, are put over them together:
   over them each has the rows that it has over the base relations, whatever the database.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

from msgspec import Struct

from datalog.copies import replace
from datalog.graphs import components
from datalog.model import (
    Atom,
    Condition,
    Literal,
    Predicate,
    Term,
    Variable,
    apply_literal,
    expression_variables,
    map_condition,
    variables_of,
)
from datalog.rewrite import alternatives
from selfmaint.warehouse.base_relations import BaseRelation, determined_terms
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.constraints import Reference
from selfmaint.warehouse.over_own_relations import over, with_implied
from selfmaint.warehouse.views import GroupedView, Outside, View

_MOST_MATCHES = 8
"""So often a join is looked for in the body of a view."""

_Place = tuple[int, int]
"""A column of a join: which subgoal, and which position in it."""


class OwnRelation(Struct, frozen=True):
    """A relation of a view's own: some columns of a base relation, or of a join of several.

    Attributes:
        relation: its columns, keys and foreign keys.
        of: the base relations that it is made of.
        equal: the columns that a join equates; none of a projection.
        kept: the columns that it has, in order.
        tests: what its rows satisfy, of a projection: one of these conjunctions, over `X0`, `X1`, ... for the base
            relation's columns.
        selected: the conditions of the view that its rows satisfy, in words; what it is made of does not change.
    """

    relation: BaseRelation
    of: tuple[str, ...]
    equal: tuple[tuple[_Place, ...], ...]
    kept: tuple[_Place, ...]
    tests: tuple[tuple[Literal, ...], ...] = ((),)
    selected: frozenset[str] = frozenset()

    @property
    def is_whole(self) -> bool:
        """Whether each row of what it is made of gives one."""
        return self.tests == ((),) and not self.selected

    def atom(self, subgoals: Sequence[Atom]) -> Atom:
        """Its row that rows of the base relations give."""
        return Atom(Predicate(self.relation.name), tuple(subgoals[i].terms[p] for i, p in self.kept))

    def origin(
        self, row: Atom, relations: Mapping[str, BaseRelation], fresh: Iterator[Variable]
    ) -> list[Atom]:
        """Rows of the base relations that give a row; what else is in them are fresh variables."""
        places = {place: next(fresh) for places in self.equal for place in places[:1]}
        places |= {place: places[its[0]] for its in self.equal for place in its}
        terms: dict[_Place, Term] = {**places, **dict(zip(self.kept, row.terms, strict=True))}
        return [
            Atom(
                Predicate(name),
                tuple(terms.get((i, p)) or next(fresh) for p in range(relations[name].arity)),
            )
            for i, name in enumerate(self.of)
        ]

    def implied(self, body: Sequence[Atom], never_null: Collection[Term]) -> Iterator[Atom]:
        """Its rows that a body implies, some of whose terms are never null: a join never matches null."""
        if not self.is_whole:
            return
        choices = [[atom for atom in body if atom.predicate.name == name] for name in self.of]
        for subgoals in islice(product(*choices), _MOST_MATCHES**2):
            met = [{subgoals[i].terms[p] for i, p in places} for places in self.equal]
            if all(len(its) == 1 and its.issubset(never_null) for its in met):
                yield self.atom(subgoals)


class OwnSchema(Struct, frozen=True):
    """A catalog in which some views are over relations of their own, the same ones.

    Attributes:
        catalog: with these relations, and with all views.
        changing: for each relation that changes, its projection.
    """

    catalog: Catalog
    changing: Mapping[str, OwnRelation]


def own_relations(catalog: Catalog, changed: Collection[str]) -> dict[str, tuple[OwnRelation, ...]]:
    """The relations of its own of each view that has some: that show more of its body, by the conditions."""
    found, taken = {}, {*catalog.relations, *(view.name for view in catalog.views)}
    for view in catalog.views:
        work = _work(catalog, view, changed)
        made = None if work is None else work.made()
        if made is not None and taken.isdisjoint(own.relation.name for own in made):
            found[view.name] = tuple(made)
    return found


def own_schema(
    catalog: Catalog, changed: Collection[str], made: Sequence[OwnRelation], names: Collection[str]
) -> OwnSchema:
    """Some views, by name, over the relations of their own, which are the same."""
    relations = {**catalog.relations, **{own.relation.name: own.relation for own in made}}

    def moved(view: View) -> View:
        work = _work(catalog, view, changed) if view.name in names else None
        return with_implied(view, made) if work is None else over(work.view, work.body_over(made), relations)

    views = tuple(map(moved, catalog.views))
    changing = {own.of[0]: own for own in made if own.of[0] in changed}
    return OwnSchema(replace(catalog, views=views, relations=relations, own=tuple(made)), changing)


def _work(catalog: Catalog, view: View, changed: Collection[str]) -> _Work | None:
    if not isinstance(view, GroupedView) or view.unchanging or view.core.limitation is not None:
        return None
    block, asked = view.grouped.block, dict[int, set[str]]()
    filters = []
    for condition in block.filters:
        at = _asks_of(view, condition, changed)
        if at is None:
            filters.append(condition)
            continue
        terms = {
            v: Variable(f"X{view.core.body[at].terms.index(t)}")
            for v, t in view.grouped.terms.items()
            if t in view.core.body[at].terms
        }
        asked.setdefault(at, set()).add(repr(_named(condition, terms)))
    view = replace(view, grouped=replace(view.grouped, block=replace(block, filters=tuple(filters))))
    return _Work(catalog, view, frozenset(changed), view.core.body, _used(view), asked)


def _named(condition: Condition, terms: Mapping[Variable, Variable]) -> Condition:
    return map_condition(lambda one: terms.get(one) if isinstance(one, Variable) else None, condition)


def _asks_of(view: GroupedView, condition: Condition, changed: Collection[str]) -> int | None:
    """The subgoal that a condition is on, of a relation that does not change and stands once; None if there is none."""
    times = Counter(atom.predicate.name for atom in view.core.body)
    terms = {view.grouped.terms[v] for v in expression_variables([condition])}
    return next(
        (
            i
            for i, atom in enumerate(view.core.body)
            if terms.issubset(atom.terms)
            and times[atom.predicate.name] == 1
            and atom.predicate.name not in changed
        ),
        None,
    )


def _used(view: GroupedView) -> frozenset[Term]:
    """The terms of a view's core that the view shows, computes with or tests."""
    block = view.grouped.block
    above = expression_variables([*block.outputs, *(block.groups or ()), *block.filters, *block.having])
    times = Counter(term for atom in view.core.body for term in atom.terms)
    # That a joined column is not null its join says, too.
    guarded = (v for v in variables_of(view.core.guards) if times[v] == 1)
    tested = [*variables_of(view.core.comparisons), *guarded]
    return frozenset([*(view.grouped.terms[v] for v in above), *tested])


@dataclass
class _Work:
    """What the relations of a view's own are found from."""

    catalog: Catalog
    view: GroupedView
    changed: frozenset[str]
    body: tuple[Atom, ...]
    used: frozenset[Term]
    asked: Mapping[int, Collection[str]]
    groups: list[tuple[int, ...]] = field(init=False)
    internal: frozenset[Term] = field(init=False)

    def __post_init__(self) -> None:
        """Finds the subgoals that are put together."""
        still = [i for i, atom in enumerate(self.body) if atom.predicate.name not in self.changed]
        places: dict[Term, set[int]] = {}
        for i, atom in enumerate(self.body):
            for term in atom.terms:
                if isinstance(term, Variable) and term not in self.used:
                    places.setdefault(term, set()).add(i)
        joining = {term: its for term, its in places.items() if len(its) > 1 and its.issubset(still)}
        self.internal = frozenset(joining)
        edges = [(min(its), other) for its in joining.values() for other in its]
        self.groups = [tuple(group) for group in components(range(len(self.body)), edges)]

    def made(self) -> list[OwnRelation] | None:
        """The relations: of single subgoals by base relation, then of each group of several, in the body's order."""
        relations = self.catalog.relations
        if any(atom.predicate.name not in relations for atom in self.body):
            return None
        kept: dict[str, set[int]] = {}
        for (i,) in (group for group in self.groups if len(group) == 1):
            kept.setdefault(self.body[i].predicate.name, set()).update(p for p, _ in self._needed(i))
        found = [self._projection(relations[name], its) for name, its in sorted(kept.items())]
        if any(own is None for own in found):
            return None
        found = [own and self._selected(own) for own in found]
        joins = [self._join(group) for group in self.groups if len(group) > 1]
        made = [own for own in found if own is not None] + joins
        if self.counts_copies and not all(own.relation.keys for own in made):
            return None
        if not joins and all(
            own.is_whole and own.relation.arity == relations[own.of[0]].arity for own in made
        ):
            return None
        return [self._with_references(own, made) for own in made]

    @property
    def counts_copies(self) -> bool:
        """Whether it matters how many matches a row of the view has."""
        limitation = self.view.limitation
        is_set = not (self.view.is_counted or self.view.grouped.measures)
        return limitation is None or not (
            limitation.kind is Outside.PROJECTION or (limitation.kind is Outside.COMPUTED and is_set)
        )

    def _needed(self, i: int) -> Iterator[tuple[int, Term]]:
        """The columns of a subgoal that the view needs, apart from those that only a join needs."""
        times = Counter(term for atom in self.body for term in atom.terms)
        for position, term in enumerate(self.body[i].terms):
            is_needed = not isinstance(term, Variable) or term in self.used or times[term] > 1
            if is_needed and term not in self.internal:
                yield position, term

    def _projection(self, relation: BaseRelation, needed: Collection[int]) -> OwnRelation | None:
        """Some columns of a base relation, with a key; None if it changes and condition 1 does not hold."""
        every = relation.with_key(needed)
        if needed and not self.counts_copies and relation.name not in self.changed:
            every = tuple(sorted(needed))
        if every is None:
            if relation.name in self.changed:
                return None
            every = tuple(sorted({*needed, *(i for key in relation.keys[:1] for i in key)}))
        places = tuple((0, i) for i in every)
        return self._relation(relation.name, (relation,), (), places, relation)

    def _selected(self, own: OwnRelation) -> OwnRelation:
        """A projection with those rows alone that the view's conditions let through, if it changes."""
        places = [i for i, atom in enumerate(self.body) if atom.predicate.name == own.of[0]]
        its = [self.body[i] for i in places]
        if not self.asked.keys().isdisjoint(places):
            return replace(own, selected=frozenset(self.asked[places[0]]))
        # What other views say of the rows that a foreign key leads to tells more than a test does.
        leading = {relation.name for relation, _ in self.catalog.referenced_by[own.of[0]]}
        if own.of[0] not in self.changed or len(its) > 1 or leading & {a.predicate.name for a in self.body}:
            return own
        columns: dict[Term, Variable] = {t: Variable(f"X{p}") for p, t in enumerate(its[0].terms)}
        terms = self.view.grouped.terms
        tests = [
            condition
            for condition in self.view.grouped.block.filters
            if all(terms[v] in columns for v in expression_variables([condition]))
        ]
        found = alternatives(tests)
        if found is None:
            return own
        values = {v: columns[terms[v]] for v in expression_variables(tests)}
        return replace(own, tests=tuple(tuple(apply_literal(values, li) for li in each) for each in found))

    def _join(self, group: Sequence[int]) -> OwnRelation:
        """A join of base relations that do not change."""
        atoms = [self.body[i] for i in group]
        its = tuple(self.catalog.relations[atom.predicate.name] for atom in atoms)
        equal: dict[Term, list[_Place]] = {}
        for i, atom in enumerate(atoms):
            for position, term in enumerate(atom.terms):
                if term in self.internal:
                    equal.setdefault(term, []).append((i, position))
        kept = {(i, position) for i, place in enumerate(group) for position, _ in self._needed(place)}
        root = _root(atoms, its, self.internal)
        key = set() if root is None else {(root, position) for position in its[root].keys[0]}
        joined = {place for places in equal.values() for place in places}
        if key & joined:
            root = None
        elif root is not None:
            kept |= key
        name = "+".join(relation.name for relation in its) + f"#{min(group)}"
        found = tuple(tuple(places) for places in equal.values())
        made = self._relation(
            name, its, found, tuple(sorted(kept)), None if root is None else its[root], root or 0
        )
        asked = (f"{n}: {one}" for n, i in enumerate(group) for one in self.asked.get(i, ()))
        return replace(made, selected=frozenset(asked))

    def _relation(
        self,
        name: str,
        its: Sequence[BaseRelation],
        equal: tuple[tuple[_Place, ...], ...],
        kept: tuple[_Place, ...],
        root: BaseRelation | None,
        at: int = 0,
    ) -> OwnRelation:
        """A relation with the keys of one that it is made of."""
        keys = () if root is None else root.unique
        unique = (tuple((at, p) for p in key) for key in keys)
        made = BaseRelation(
            f":{name}",
            tuple(f"{its[i].columns[p]}_{i}" for i, p in kept),
            tuple(its[i].types[p] for i, p in kept),
            frozenset(n for n, (i, p) in enumerate(kept) if p in its[i].nullable),
            tuple(tuple(map(kept.index, key)) for key in unique if set(key) <= set(kept)),
        )
        return OwnRelation(made, tuple(one.name for one in its), equal, kept)

    def _with_references(self, own: OwnRelation, made: Sequence[OwnRelation]) -> OwnRelation:
        """The same, with the foreign keys of its base relation that lead to projections among the view's own."""
        found = []
        for i, name in enumerate(own.of):
            for reference in self.catalog.relations[name].references:
                columns = [(i, p) for p in reference.columns]
                for other in made:
                    target = [(0, p) for p in reference.target_columns]
                    if (
                        other.of == (reference.target,)
                        and other.is_whole
                        and {*columns} <= {*own.kept}
                        and {*target} <= {*other.kept}
                    ):
                        places = tuple(map(own.kept.index, columns)), tuple(map(other.kept.index, target))
                        found.append(Reference(places[0], other.relation.name, places[1]))
        return replace(own, relation=replace(own.relation, references=tuple(found)))

    def body_over(self, made: Sequence[OwnRelation]) -> tuple[Atom, ...]:
        """The view's body over its own relations."""
        single = {own.of[0]: own for own in made if len(own.of) == 1}
        joins = iter([own for own in made if len(own.of) > 1])
        found = []
        for group in self.groups:
            own = next(joins) if len(group) > 1 else single[self.body[group[0]].predicate.name]
            found.append(own.atom([self.body[i] for i in group]))
        return tuple(dict.fromkeys(found))


def _root(atoms: Sequence[Atom], relations: Sequence[BaseRelation], internal: Collection[Term]) -> int | None:
    """The subgoal whose row determines those of the others, by the keys that a join equates with its columns."""
    if not all(relation.keys for relation in relations):
        return None
    met = [
        replace(
            atom, terms=tuple(t if t in internal else Variable(f"{i}.{p}") for p, t in enumerate(atom.terms))
        )
        for i, atom in enumerate(atoms)
    ]
    by_name = {relation.name: relation for relation in relations}
    every = variables_of(met)
    return next(
        (i for i, a in enumerate(met) if determined_terms(a.terms, met, by_name).issuperset(every)), None
    )
