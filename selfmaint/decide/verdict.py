"""Verdicts: values that say whether a view's new state is determined, and why.

`semantics` says, where it makes a difference, what is meant by the new state: the set of its rows, or the bag, in which
rows stand several times. It is None where rows stand once anyway, as keys say or because the view has all columns of
its body, and where the view is of no class that is decided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from datalog.model import Atom, Constant, Semantics, Term, Value, Variable
from datalog.syntax import show
from selfmaint.decide.new_facts import NewFacts, image

_SHOWN = 3


@dataclass(frozen=True, repr=False)
class Witness:
    """A failing J with one assignment of the variables that known facts bind.

    Attributes:
        new_facts: the set J.
        binding: a value for each bound variable.
    """

    new_facts: NewFacts
    binding: Mapping[Variable, Value]

    @property
    def unknown(self) -> tuple[Atom, ...]:
        """The facts that may or may not exist; a variable stands for a value that nothing known tells."""
        values: dict[Variable, Term] = {v: Constant(x) for v, x in self.binding.items()}
        return image(self.new_facts, values)

    def __repr__(self) -> str:
        return f"Witness({', '.join(show(atom) for atom in self.unknown)})"


@dataclass(frozen=True)
class SelfMaintainable:
    """The view's new state is the same for every database that explains what is known.

    Attributes:
        view: the view.
        remarks: what to know of the computed state.
    """

    view: str
    remarks: tuple[str, ...] = ()
    semantics: Semantics | None = None


@dataclass(frozen=True, repr=False)
class NotSelfMaintainable:
    """Two databases explain what is known and give the view different new states; each witness makes a pair."""

    view: str
    witnesses: tuple[Witness, ...]
    semantics: Semantics | None = None

    def __repr__(self) -> str:
        return f"NotSelfMaintainable({self.view!r}, {_some(self.witnesses)})"


@dataclass(frozen=True, repr=False)
class Undecided:
    """The procedure does not say. To be treated as "no".

    Attributes:
        view: the view.
        reasons: why, in words.
        witnesses: what a "no" would rest on, were it not for the reasons.
        semantics: what state is meant.
        is_cut: whether a budget was spent before the test was known: there is nothing to settle the view by.
    """

    view: str
    reasons: tuple[str, ...]
    witnesses: tuple[Witness, ...] = ()
    semantics: Semantics | None = None
    is_cut: bool = False

    def __repr__(self) -> str:
        shown = f", {_some(self.witnesses)}" if self.witnesses else ""
        return f"Undecided({self.view!r}, {self.reasons}{shown})"


def _some(witnesses: Sequence[Witness]) -> str:
    """A few witnesses for one line."""
    shown = [*map(repr, witnesses[:_SHOWN]), *(["..."] if len(witnesses) > _SHOWN else [])]
    return f"({', '.join(shown)})"


Verdict: TypeAlias = SelfMaintainable | NotSelfMaintainable | Undecided
