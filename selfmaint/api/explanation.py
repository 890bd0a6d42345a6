"""Why a view is, or is not, self-maintainable: what was ruled out, what the data said, and the two databases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from typing import assert_never

from datalog.model import Atom, Program, Row, Rule, Variable, ViewDefinition
from datalog.syntax import show
from selfmaint.decide.pairs import Counterexample
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided, Verdict
from selfmaint.warehouse.catalog import View
from selfmaint.warehouse.situation import Situation


@dataclass(frozen=True)
class RuledOut:
    """Facts that cannot be unknown together, and the view that rules it out: it would have a row more.

    Attributes:
        subgoals: the subgoals whose facts these are.
        referenced: rows that foreign keys of the subgoals' facts ask for, which would be unknown as well; `_` is a
            value of their own.
    """

    subgoals: tuple[Atom, ...]
    referenced: tuple[Atom, ...]
    view: View


@dataclass(frozen=True)
class FreeValue:
    """A variable of unknown facts that nothing known binds, and the first column that it stands in."""

    variable: Variable
    relation: str
    column: str


@dataclass(frozen=True)
class Tested:
    """Subgoals whose facts could be unknown together as far as the rules tell, and what the data said.

    Attributes:
        subgoals: the subgoals of J.
        fresh: the values that nothing known binds.
        test: the rules of TEST for them.
        fails: whether the data has a witness.
    """

    subgoals: tuple[Atom, ...]
    fresh: tuple[FreeValue, ...]
    test: Program
    fails: bool


@dataclass(frozen=True)
class Supply:
    """Where one fact of a gained row comes from: the update, a partial copy, or rows of views."""

    fact: Atom
    sources: tuple[Atom, ...]


@dataclass(frozen=True, repr=False)
class Explanation:
    """Why a view is, or is not, self-maintainable.

    Attributes:
        view: the view.
        situation: which relations change and what is known.
        verdict: the verdict.
        ruled_out: what the rules alone rule out.
        tested: what was left to the data.
        counterexample: for a "no": the two databases.
        settled_by: for a "no": base relations and key columns that a read would settle the first witness with.
        supplies: for a "yes": each gained row (some) with the source of each of its facts, if that was asked.
        rules: the view as rules, if it is a union of conjunctive queries.
        definitions: else the views that it reads, the lowest first, and itself; none where one is known by its text.
    """

    view: View
    situation: Situation
    verdict: Verdict
    ruled_out: tuple[RuledOut, ...]
    tested: tuple[Tested, ...]
    counterexample: Counterexample | None
    settled_by: tuple[tuple[str, tuple[str, ...]], ...]
    supplies: Mapping[Row, tuple[Supply, ...]]
    rules: tuple[Rule, ...]
    definitions: tuple[ViewDefinition, ...] = ()

    @property
    def is_searched(self) -> bool:
        """Whether the verdict was found by a search among all databases, and not by tests."""
        match self.verdict:
            case SelfMaintainable(change=found):
                return found is not None
            case NotSelfMaintainable(databases=databases):
                return databases is not None
            case Undecided():
                return False

    def __str__(self) -> str:
        """The verdict and its reason in a few lines; `selfmaint explain` prints all of it."""
        return "\n".join(_lines(self))

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        return f"Explanation({self.verdict!r})"


def _lines(explanation: Explanation) -> Iterator[str]:
    view, verdict = explanation.view, explanation.verdict
    match verdict:
        case SelfMaintainable():
            kind = "" if verdict.semantics is None else f", as a {verdict.semantics.value}"
            yield f"{view.shown} is self-maintainable: all databases that explain what is known agree on it{kind}"
            if view.unchanging:
                yield f"  {view.unchanging}"
            yield from (f"  {remark}" for remark in verdict.remarks)
            for ruled_out in explanation.ruled_out:
                together = _together((*ruled_out.subgoals, *ruled_out.referenced))
                yield f"  {together} cannot be unknown: {ruled_out.view.shown} would tell"
            for tested in explanation.tested:
                yield f"  {_together(tested.subgoals)} could be unknown, but not with these data"
        case NotSelfMaintainable():
            yield f"{view.shown} is not self-maintainable: two databases that explain what is known differ on it"
            for unknown in verdict.unknown[:1]:
                yield f"  {_together(unknown)} may or may not exist"
            for relation, columns in explanation.settled_by:
                keys = f"for its keys ({', '.join(columns)})" if columns else "whole"
                yield f"  reading `{relation}` {keys} would settle that"
        case Undecided():
            yield f"{view.shown} is undecided, which counts as not self-maintainable"
            yield from (f"  {line}" for line in verdict.because.splitlines())
        case _:
            assert_never(verdict)


def _together(atoms: Iterable[Atom]) -> str:
    return " and ".join(show(atom) for atom in atoms)
