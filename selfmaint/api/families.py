"""Do the types of stored views and of an update agree where no declaration says what they are?

A base column that is not declared has the type of the view columns that come from it, of the constants that
rules compare it with, and of the update's rows. Values of different families are never equal, and an engine
that compares them all the same converts one of them: so they are refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from datalog.diagnostics import Diagnostic
from datalog.model import Constant, value_kind
from selfmaint.errors import Code
from selfmaint.warehouse.catalog import Catalog, View

_OPEN = ("any", "null")


@dataclass
class Families:
    """What is known of each base column's family, and who said it first.

    Attributes:
        catalog: the warehouse's schema.
        problems: columns of which two families were seen.
    """

    catalog: Catalog
    problems: list[Diagnostic] = field(default_factory=list)
    _seen: dict[tuple[str, int], tuple[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for relation in self.catalog.relations.values():
            self.add_rows(relation.name, [t.family for t in relation.types], "its declaration")
        for view in self.catalog.views:
            for name, position, value in _constants(view):
                self._see(name, position, value_kind(value.value), f"the rule of `{view.name}`")

    def add_view(self, name: str, families: Sequence[str]) -> None:
        """The families of a view's stored columns."""
        view = self.catalog.view(name)
        of_term = dict(zip(view.head.terms, families, strict=True))
        for atom in view.body:
            for position, term in enumerate(atom.terms):
                if term in of_term and not isinstance(term, Constant):
                    self._see(atom.predicate.name, position, of_term[term], f"the view `{name}`")

    def add_rows(self, relation: str, families: Sequence[str], where: str) -> None:
        """The families of rows of a base relation."""
        for position, family in enumerate(families):
            self._see(relation, position, family, where)

    def _see(self, relation: str, position: int, family: str, where: str) -> None:
        if family in _OPEN:
            return
        known, first = self._seen.setdefault((relation, position), (family, where))
        if known == family:
            return
        column = self.catalog.relations[relation].columns[position]
        self.problems.append(
            Diagnostic(
                Code.COLUMNS_DIFFER,
                f"column `{column}` of `{relation}` is a {known} in {first} and a {family} in {where}",
                note="values of different families are never equal",
                hint=f"declare `{relation}` with its types, and store the rows accordingly",
            )
        )


def _constants(view: View) -> Iterator[tuple[str, int, Constant]]:
    for atom in view.body:
        for position, term in enumerate(atom.terms):
            if isinstance(term, Constant):
                yield atom.predicate.name, position, term


def of_views(catalog: Catalog, views: Mapping[str, Sequence[str]]) -> Families:
    """What the stored views tell, given the families of their columns."""
    found = Families(catalog)
    for name, families in views.items():
        if not catalog.view(name).is_more_than_rules:
            found.add_view(name, families)
    return found
