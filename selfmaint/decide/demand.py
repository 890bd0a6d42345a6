"""A way in which new facts and known facts make a core row of a view that groups."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from datalog.model import Atom, Literal, Term, Variable, apply_atom, apply_literal, variables_of
from selfmaint.warehouse.catalog import View


@dataclass(frozen=True)
class Demand:
    """One way in which new facts and known facts make a core row of a view that groups.

    Attributes:
        view: the view.
        facts: the new facts used, as a bit mask over the instance's atoms.
        body: what must hold for it, besides.
        group: the view's stored row, a variable of its own where a column is not told.
        operands: for columns that hold an aggregate of a term, the term.
        own: the variables that no new fact has.
    """

    view: View
    facts: int
    body: tuple[Literal, ...]
    group: Atom
    operands: tuple[tuple[int, Term], ...]
    own: frozenset[Variable]

    @cached_property
    def tested(self) -> frozenset[Variable]:
        """The variables of what must hold."""
        return frozenset(variables_of(self.body))

    def renamed(self, number: int) -> Demand:
        """With variables of its own, none of which another demand of a set of new facts has."""
        names = {v: Variable(f"{v.name}_{number}") for v in self.own}
        return replace(
            self,
            body=tuple(apply_literal(names, li) for li in self.body),
            group=apply_atom(names, self.group),
            operands=tuple((c, names.get(t, t) if isinstance(t, Variable) else t) for c, t in self.operands),
            own=frozenset(names.values()),
        )
