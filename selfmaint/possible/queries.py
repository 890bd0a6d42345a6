"""Views as unions of conjunctive queries under set semantics: what the search takes exactly.

Of views of another class (groups, bags, texts) nothing is asserted here. So the databases that the search looks at
explain the other views and perhaps not these: all the sounder is a "yes", and a "no" has to be shown by two
databases that explain these as well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from datalog.model import Atom, Comparison, NullTest, Rule, Term, Variable, variables_of
from selfmaint.warehouse.catalog import Catalog, Outside, View
from selfmaint.warehouse.definitions import unfolded_rules

_RULES = (Outside.UNION, Outside.OTHER)
"""Limited views that may be rules all the same."""


class Query(Struct, frozen=True):
    """One rule: a row for each match of the body that passes the filters.

    Attributes:
        view: the view that it is a rule of.
        number: which of its rules.
        body: the subgoals, over base relations.
        filters: tests of single values and comparisons.
    """

    view: str
    number: int
    head: tuple[Term, ...]
    body: tuple[Atom, ...]
    filters: tuple[NullTest | Comparison, ...]

    @property
    def hidden(self) -> tuple[Variable, ...]:
        """The variables that a row does not tell."""
        return tuple(v for v in variables_of(self.body) if v not in self.head)

    @property
    def not_null(self) -> frozenset[Variable]:
        """The variables that a match never has null for."""
        compared = variables_of([f for f in self.filters if isinstance(f, Comparison)])
        tested = (f.term for f in self.filters if isinstance(f, NullTest) and f.negated)
        return frozenset(compared).union(t for t in tested if isinstance(t, Variable))


Queries = Mapping[str, Sequence[Query]]
"""By view."""


def queries(catalog: Catalog) -> Mapping[str, tuple[Query, ...]]:
    """For each view that is a union of conjunctive queries, these."""
    unfolded: Mapping[str, list[tuple[Rule, Rule]]] | None = None
    found: dict[str, tuple[Query, ...]] = {}
    for view in catalog.views:
        if view.unchanging:
            continue
        if view.limitation is None or view.limitation.kind is Outside.PROJECTION:
            found[view.name] = (Query(view.name, 0, view.head.terms, view.body, view.filters),)
        elif view.limitation.kind in _RULES:
            unfolded = unfolded_rules(catalog.program) if unfolded is None else unfolded
            its = _of_rules(catalog, view, [plain for _, plain in unfolded.get(view.name, ())])
            if its:
                found[view.name] = its
    return found


def _of_rules(catalog: Catalog, view: View, rules: list[Rule]) -> tuple[Query, ...]:
    """The rules of a union; none if one of them is more than a conjunctive query."""
    made = []
    for number, rule in enumerate(rules):
        filters = [li for li in rule.body if isinstance(li, NullTest | Comparison)]
        atoms = tuple(dict.fromkeys(rule.atoms))
        plain = all(atom.predicate.name in catalog.relations for atom in atoms)
        if not plain or not atoms or len(filters) + len(rule.atoms) < len(rule.body):
            return ()
        made.append(Query(view.name, number, rule.head.terms, atoms, tuple(filters)))
    return tuple(made)
