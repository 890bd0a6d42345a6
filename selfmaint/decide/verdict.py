"""Verdicts: values that say whether a view's new state is determined, and why.

`semantics` says, where it makes a difference, what is meant by the new state: the set of its rows, or the bag, in which
rows stand several times. It is None where rows stand once anyway, as keys say or because the view has all columns of
its body, and where the view is of no class that is decided.

A verdict is true only if it is a "yes": `if verdict:` never takes what is undecided for one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, unique
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from msgspec import Struct

from datalog.copies import replace
from datalog.model import Atom, Constant, Predicate, Row, Semantics, Term, Value, Variable
from datalog.syntax import show
from selfmaint.decide.new_facts import NewFacts, image

if TYPE_CHECKING:
    from selfmaint.cross_examine.examine import Examined
    from selfmaint.possible.new_state import TwoDatabases

_MOST_FACTS = 4
"""Of two databases that differ in more facts these are not listed."""
_SHOWN = 3
"""How many witnesses are named."""

NOT_USED, PARTLY_USED = (f"; what it rules out is {used} used" for used in ("not", "only partly"))
"""How reasons end that lie in another view."""


@unique
class VerdictKind(StrEnum):
    """What a verdict says."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"


@dataclass(frozen=True, repr=False)
class Witness:
    """A failing J with one assignment of the variables that known facts bind.

    Attributes:
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


class _Stated(ABC):
    """What all verdicts have: a kind, a truth value, words."""

    kind: ClassVar[VerdictKind]
    view: str

    @property
    @abstractmethod
    def because(self) -> str:
        """What the verdict hangs on, in a line or a few."""

    @property
    def word(self) -> str:
        """`yes`, `yes, soundly` where it was not decided exactly, `no` or `undecided`."""
        return self.kind.value

    def __bool__(self) -> bool:
        return self.kind is VerdictKind.YES

    def __str__(self) -> str:
        return _text([self])

    def _repr_html_(self) -> str:
        """The verdict for a notebook."""
        return _html([self])


class Change(Struct, frozen=True):
    """The rows that a view gains and loses, where they were found by search (`possible`)."""

    gained: frozenset[Row]
    lost: frozenset[Row]


class Near(Struct, frozen=True):
    """What was searched of large data: so many rows near the update, and whether other rows meet none of these."""

    rows: int
    is_closed: bool

    def __str__(self) -> str:
        others = "which no other row meets" if self.is_closed else "and at nothing farther away"
        return f"{self.rows} {'row' if self.rows == 1 else 'rows'} near the update, {others}"


@dataclass(frozen=True, repr=False)
class SelfMaintainable(_Stated):
    """The view's new state is the same for every database that explains what is known.

    Attributes:
        remarks: what to know of the computed state.
        semantics: what state is meant.
        change: the view's change, if it was found together with the verdict; else maintenance queries compute it.
        delta: computes the change, held by the engine, where the maintenance queries of the view as it is do not.
        over: the views that it is computed from, if that is why.
        told: the base relations that it is computed from, of which stored rows tell all rows, if that is why.
        exact: whether the view is of a class that is decided exactly, or all databases were searched: a "no" would have
            been proved, too, but for what other views rule out. Without that a "yes" is proved as well.
        near: what was searched, if that was not everything.
    """

    kind: ClassVar[VerdictKind] = VerdictKind.YES
    view: str
    remarks: tuple[str, ...] = ()
    semantics: Semantics | None = None
    change: Change | None = None
    delta: Callable[[], Any] | None = field(default=None, compare=False)
    over: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    exact: bool = False
    near: Near | None = None

    @property
    def word(self) -> str:
        """`yes`, or `yes, soundly`."""
        return "yes" if self.exact else "yes, soundly"

    @property
    def because(self) -> str:
        """That there is one new state, and what to know of it."""
        state = "" if self.semantics is None else f", as a {self.semantics.value}"
        found = f"every database that explains what is known gives one new state{state}"
        return "\n".join([found, *self.remarks, *([self.computed_from] if self.is_computed else [])])

    @property
    def is_computed(self) -> bool:
        """Whether it is determined because all that it is computed from is."""
        return bool(self.over or self.told)

    @property
    def computed_from(self) -> str:
        """What it is computed from, if that is why."""
        views = [f"what {', '.join(f'`{name}`' for name in self.over)} will be"] if self.over else []
        tables = [f"the rows of `{name}`, all of which stored views tell" for name in self.told]
        return f"it is computed from {' and '.join([*views, *tables])}"

    def __repr__(self) -> str:
        return f"SelfMaintainable({self.view!r})"


@dataclass(frozen=True, repr=False)
class NotSelfMaintainable(_Stated):
    """Two databases explain what is known and give the view different new states; each witness makes a pair.

    Attributes:
        witnesses: some of them.
        semantics: what state is meant.
        databases: two databases, if they were found by search; then there are no witnesses.
        near: what was searched, if that was not everything; then they are the part of two databases that matters.
    """

    kind: ClassVar[VerdictKind] = VerdictKind.NO
    view: str
    witnesses: tuple[Witness, ...]
    semantics: Semantics | None = None
    databases: TwoDatabases | None = None
    near: Near | None = None

    @property
    def unknown(self) -> tuple[tuple[Atom, ...], ...]:
        """The distinct sets of facts that may or may not exist, fewest facts first."""
        if self.databases is not None:
            return (self.databases.differing,)
        return unknown_facts(self.witnesses)

    @property
    def because(self) -> str:
        """What may or may not exist: the first few; of many facts the row that hangs on them."""
        if self.databases is not None and len(self.unknown[0]) > _MOST_FACTS:
            differ = f"two databases differ in {len(self.unknown[0])} facts"
            if self.databases.view not in ("", self.view):
                return f"{differ}, and on rows of the view"
            row = show(Atom(Predicate(self.view), tuple(map(Constant, self.databases.shown))))
            return f"{row} may or may not be a row: {differ}"
        lines = [f"{' and '.join(map(show, facts))} may or may not exist" for facts in self.unknown]
        more = len(lines) - _SHOWN
        return "\n".join([*lines[:_SHOWN], *([f"and {more} or more others"] if more > 0 else [])])

    def __repr__(self) -> str:
        return f"NotSelfMaintainable({self.view!r}, {_some(self.witnesses)})"


@dataclass(frozen=True, repr=False)
class Undecided(_Stated):
    """The procedure does not say. To be treated as "no".

    Attributes:
        witnesses: what a "no" would rest on, were it not for the reasons.
        semantics: what state is meant.
        is_cut: whether a budget was spent before the test was known: there is nothing to settle the view by.
        near: what was searched, if that was not everything.
    """

    kind: ClassVar[VerdictKind] = VerdictKind.UNDECIDED
    view: str
    reasons: tuple[str, ...]
    witnesses: tuple[Witness, ...] = ()
    semantics: Semantics | None = None
    is_cut: bool = False
    near: Near | None = None

    @property
    def because(self) -> str:
        """The reasons; of those that lie in other views the first, and how many more there are."""
        return "\n".join(folded(self.reasons))

    def because_of(self, reason: str) -> Undecided:
        """The same with one more reason."""
        return replace(self, reasons=(*self.reasons, reason))

    def __repr__(self) -> str:
        shown = f", {_some(self.witnesses)}" if self.witnesses else ""
        return f"Undecided({self.view!r}, {self.reasons}{shown})"


def _some(witnesses: Sequence[Witness]) -> str:
    """A few witnesses for one line."""
    shown = [*map(repr, witnesses[:_SHOWN]), *(["..."] if len(witnesses) > _SHOWN else [])]
    return f"({', '.join(shown)})"


Verdict: TypeAlias = SelfMaintainable | NotSelfMaintainable | Undecided


@dataclass(frozen=True, slots=True)
class Way:
    """How `maintain` goes on with a view that is no "yes", by what is declared.

    Attributes:
        by: `keyed reads` of rows with the keys that a change affects, the stored `views` that it reads, its `helpers`,
            `reads` of base rows that settle it, `recomputing` if that is asked for, or `nothing`.
        reads: the base relations of which rows are read.
        whole: those of them that are read whole.
    """

    by: str
    reads: tuple[str, ...] = ()
    whole: tuple[str, ...] = ()

    def __str__(self) -> str:
        some = ", ".join(f"`{name}`" for name in self.reads if name not in self.whole)
        every = f"all rows of {', '.join(f'`{name}`' for name in self.whole)}" if self.whole else ""
        match self.by:
            case "helpers":
                return f"from its helpers{some and f', for which rows of {some} are read'}{every and f', and {every}'}"
            case "views":
                return f"from the views that it reads{every and f', and {every}'}"
            case "keyed reads":
                return f"keyed reads of {some}{every and f', and {every}'}" if some else every
            case "reads":
                return f"reads rows of {some}, if they settle it"
            case "recomputing":
                return f"only with `--recompute`{some and f', from all rows of {some}'}"
        return "in no way: a source is missing, or its query cannot be run"


class Verdicts(Mapping[str, Verdict]):
    """The verdict on each view, by the view's name.

    True only if there are some and all are "yes".

    Attributes:
        examined: what a cross-examination says of them, if one was asked for.
        ways: how `maintain` goes on with those that are no "yes", as `check` finds it.
        untold: for those of these that would need no base rows if all rows of some relations were stored, which these
            are.
    """

    def __init__(
        self,
        verdicts: Mapping[str, Verdict],
        examined: Mapping[str, Examined] | None = None,
        ways: Mapping[str, Way] | None = None,
        untold: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self._verdicts = dict(verdicts)
        self.examined: Mapping[str, Examined] = dict(examined or {})
        self.ways: Mapping[str, Way] = dict(ways or {})
        self.untold: Mapping[str, frozenset[str]] = dict(untold or {})

    def __getitem__(self, view: str) -> Verdict:
        return self._verdicts[view]

    def __iter__(self) -> Iterator[str]:
        return iter(self._verdicts)

    def __len__(self) -> int:
        return len(self._verdicts)

    def __bool__(self) -> bool:
        return bool(self._verdicts) and all(self._verdicts.values())

    def __str__(self) -> str:
        return _text(self._verdicts.values())

    def __repr__(self) -> str:
        kinds = ", ".join(f"{name}: {verdict.kind.value}" for name, verdict in self.items())
        return f"Verdicts({{{kinds}}})"

    def _repr_html_(self) -> str:
        """The verdicts for a notebook."""
        return _html(self._verdicts.values())


def copies_of(names: Iterable[str]) -> str:
    """The views of all columns of some relations, as a sentence names them.

    >>> copies_of(["r", "s t"])
    '`SELECT * FROM r`, `SELECT * FROM `s t``'
    """
    return ", ".join(f"`SELECT * FROM {sql_name(name)}`" for name in names)  # noqa: S608 - to be read, not run


def sql_name(name: str) -> str:
    """A name as SQL writes it."""
    return name if name.isidentifier() else f"`{name.replace('`', '``')}`"


def folded(reasons: Iterable[str]) -> Sequence[str]:
    """Some reasons with those that lie in other views as one."""
    given = list(reasons)
    elsewhere = [reason for reason in given if reason.endswith((NOT_USED, PARTLY_USED))]
    if len(elsewhere) <= 1:
        return given
    used = (
        "only partly used"
        if all(one.endswith(PARTLY_USED) for one in elsewhere)
        else "not used, or only partly"
    )
    line = f"what {len(elsewhere)} other views, or parts of views, rule out is {used} (`check --verbose` names them)"
    return [*(reason for reason in given if reason not in elsewhere), line]


def unknown_facts(witnesses: Iterable[Witness]) -> tuple[tuple[Atom, ...], ...]:
    """The distinct sets of unknown facts of some witnesses, fewest facts first."""
    found = dict.fromkeys(witness.unknown for witness in witnesses)
    return tuple(sorted(found, key=lambda facts: (len(facts), [show(fact) for fact in facts])))


def _text(verdicts: Iterable[_Stated]) -> str:
    """A line or a few for each verdict, in columns."""
    given = list(verdicts)
    names = max((len(verdict.view) for verdict in given), default=0)
    kinds = max((len(verdict.word) for verdict in given), default=0)
    lines = []
    for verdict in given:
        first, *more = verdict.because.splitlines() or [""]
        lines.append(f"{verdict.view:<{names}}  {verdict.word:<{kinds}}  {first}".rstrip())
        lines += [f"{'':<{names + kinds + 4}}{line}" for line in more]
    return "\n".join(lines)


def _html(verdicts: Iterable[_Stated]) -> str:
    """The same as a table."""
    return html_table(("view", "verdict", "because"), [(v.view, v.word, v.because) for v in verdicts])


def html_table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Texts as a table for a notebook.

    >>> html_table(["a"], [["1 < 2"]])
    '<table><tr><th>a</th></tr><tr><td>1 &lt; 2</td></tr></table>'
    """
    made = [("th", heads), *(("td", row) for row in rows)]
    lines = (
        "".join(f"<{tag}>{escape(text).replace(chr(10), '<br>')}</{tag}>" for text in cells)
        for tag, cells in made
    )
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
