"""Advice: what to add so that "depends" becomes "always", each proposal checked by the audit with it.

Nothing is advised on the strength of a rule of thumb: what a piece of advice claims is what the verdicts are in the
warehouse that has it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import combinations

from msgspec import Struct, field

from datalog.budget import BudgetSpentError, left, limit
from datalog.evaluate import evaluate
from datalog.model import Predicate, Program, Row
from datalog.rewrite import guard_joins
from selfmaint.audit.candidates import Relations
from selfmaint.audit.changes import ANYTHING, Change, Kind, changes_of, relations_of
from selfmaint.audit.example import Always, Depends, Example
from selfmaint.audit.matrix import ADVICE, SHARE
from selfmaint.audit.proposals import NewForeignKey, NewKey, NewView, Proposal, proposals, with_proposals
from selfmaint.audit.search import Search
from selfmaint.countermodel.databases import updated
from selfmaint.warehouse.catalog import BaseRelation, Catalog, View

_LARGEST = 3
"""Sets of so many proposals are tried."""

_TRIES = 150
"""How many sets are tried for one view."""


class Flip(Struct, frozen=True):
    """A verdict that becomes "always": of a view, for a kind of change of a relation (None: of all)."""

    view: str
    relation: str | None
    kind: Kind


@dataclass(frozen=True)
class Advice:
    """Some things to add together.

    Attributes:
        view: the view that it is for.
        flips: the verdicts, of all views, that become "always".
        stored_rows: an estimate of the rows that must be stored besides; None if sizes are not known.
    """

    view: str
    proposals: tuple[Proposal, ...]
    flips: tuple[Flip, ...]
    stored_rows: int | None

    @property
    def settles(self) -> bool:
        """Whether the view is then always self-maintainable, whatever changes."""
        return Flip(self.view, None, Kind.ANY) in self.flips


def advised(
    search: Search,
    *,
    sizes: Mapping[str, int] | None = None,
    views: Iterable[View] | None = None,
    progress: Callable[[str], None] = lambda _: None,
    cut: Callable[[str], None] = lambda _: None,
) -> tuple[Advice, ...]:
    """For each view that is not always self-maintainable, what would make it so, or help; cheapest first.

    All of it may take half as long as the verdicts on one view; `cut` is told each view for which that was too short.

    Returns:
        For each view all sets that settle it, of which none contains another; sets that store less and settle
        changes of one relation; and single proposals that flip some verdict. Nothing for a view outside the class
        that is decided, unless a key brings it in.
    """
    found: list[Advice] = []
    adviser = Adviser(search, sizes or {})
    chosen = tuple(search.catalog.views if views is None else views)
    with limit(ADVICE * search.budget_s, "advice"):
        for number, view in enumerate(chosen, 1):
            if isinstance(search.outcome(view, ANYTHING), Always):
                continue
            progress(f"advice on {view.name} ({number} of {len(chosen)})")
            share = left() * min(SHARE / (len(chosen) - number + 1), 1)
            advice, is_cut = adviser.advice(view, share)
            found += advice
            if is_cut:
                cut(view.name)
    return tuple(found)


class Adviser(Struct):
    """Advises on one view after another, and keeps what was found out for one for the next.

    Attributes:
        search: of the warehouse as it is.
        sizes: rows of base relations, where known.
    """

    search: Search
    sizes: Mapping[str, int]
    _tried: dict[int, _Tried] = field(default_factory=dict)

    def advice(self, view: View, seconds: float) -> tuple[list[Advice], bool]:
        """What is found for a view within some seconds, and its budget; and whether they were too few for all."""
        its, catalog = self.search.of(view), self.search.catalog
        tried = self._tried.setdefault(id(its), _Tried(its))
        taken = {*(one.name for one in catalog.views), *catalog.relations}
        found: list[Advice] = []
        with limit(min(self.search.budget_s, seconds), f"advice on {view.shown}"):
            with suppress(BudgetSpentError):
                found = _Advisor(its, view, self.sizes, tried, taken).advice()
            return found, left() <= 0


class _Tried(Struct, dict=True):
    """What is known of sets of proposals for one part of a warehouse.

    Attributes:
        search: of the part as it is.
        made: the searches with sets of proposals carried out; None where these make no valid program.
        refuting: which examples are ones with a proposal carried out.
        examples: for views and kinds of change.
    """

    search: Search
    made: dict[frozenset[Proposal], Search | None] = field(default_factory=dict)
    examples: dict[tuple[str, Change], list[Example]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.refuting = Refuting(self.search.catalog)

    def having(self, chosen: frozenset[Proposal]) -> Search | None:
        """The search with some proposals carried out; None if they make no valid program."""
        if chosen not in self.made:
            found = with_proposals(self.search.catalog, sorted(chosen, key=str))
            self.made[chosen] = (
                None
                if found is None
                else Search(found, self.search.known, True, budget_s=self.search.budget_s)
            )
        return self.made[chosen]

    def is_settled(self, view: View, change: Change, chosen: frozenset[Proposal]) -> bool:
        """Whether a view always follows a kind of change with some proposals carried out."""
        known = self.examples.setdefault((view.name, change), [])
        if not known and isinstance(outcome := self.search.outcome(view, change), Depends):
            known.append(outcome.example)
        if left() <= 0 or any(self.refuting.refutes(example, chosen) for example in known):
            return False
        with_it = self.having(chosen)
        if with_it is None:
            return False
        found = with_it.outcome(with_it.catalog.view(view.name), change)
        if isinstance(found, Depends):
            known.append(found.example)
        return isinstance(found, Always)

    def flipped(self, own: View, chosen: frozenset[Proposal]) -> tuple[Flip, ...]:
        """The verdicts that become "always" with some proposals carried out; those on one view are looked at first."""
        views = self.search.catalog.views
        found = [
            Flip(view.name, change.relation, change.kind)
            for view in sorted(views, key=lambda view: view.name != own.name)
            for change in _all_changes(self.search.catalog, view)
            if not isinstance(self.search.outcome(view, change), Always)
            and self.is_settled(view, change, chosen)
        ]
        order = {view.name: place for place, view in enumerate(views)}
        return tuple(sorted(found, key=lambda flip: order[flip.view]))


class _Advisor(Struct):
    search: Search
    view: View
    sizes: Mapping[str, int]
    tried: _Tried
    taken: Collection[str]

    def advice(self) -> list[Advice]:
        """The checked proposals."""
        offered = proposals(self.search.catalog, self.view, self.taken)
        free = [unit for unit in offered.constraints if self.tried.having(unit) is not None]
        stored = sorted(offered.views, key=self._effort)
        sets = {
            **dict.fromkeys(self._settling(ANYTHING, frozenset[Proposal]().union(*free), stored)),
            **dict.fromkeys(self._settling(ANYTHING, frozenset(), stored) if free else ()),
        }
        made = sorted(
            (self._made(chosen) for chosen in sets), key=lambda made: sum(map(self._effort, made.proposals))
        )
        single = [self._made(unit) for unit in free if unit not in sets]
        if not made:
            single += [self._made(frozenset([view])) for view in stored]
        single += [self._made(chosen) for chosen in self._partly(stored, sets)]
        return [*made, *(one for one in single if any(flip.view == self.view.name for flip in one.flips))]

    def _partly(
        self, stored: Sequence[NewView], settling: Collection[frozenset[Proposal]]
    ) -> Iterator[frozenset[Proposal]]:
        """Sets of views that settle any mix on one relation, and store less than all that settle every mix."""
        least = min(map(self._stored, settling), default=float("inf"))
        seen = set(settling)
        for name in relations_of(self.search.catalog, self.view):
            change = Change(Kind.ANY, name)
            if not isinstance(self.search.outcome(self.view, change), Always):
                found = sorted(self._settling(change, frozenset(), stored, least), key=self._stored)
                for at, chosen in enumerate(found):
                    if chosen not in seen and not any(_covers(less, chosen) for less in found[:at]):
                        seen.add(chosen)
                        yield chosen

    def _settling(
        self,
        change: Change,
        free: frozenset[Proposal],
        stored: Sequence[NewView],
        below: float = float("inf"),
    ) -> list[frozenset[Proposal]]:
        """The least sets of views with which, and with some constraints, a kind of change is always followed."""
        found: list[frozenset[Proposal]] = []
        tries = 0
        for size in range(_LARGEST + 1):
            for several in combinations(stored, size):
                chosen = free | frozenset(several)
                if not chosen or tries == _TRIES or left() <= 0 or any(one <= chosen for one in found):
                    continue
                if self._stored(chosen) >= below:
                    continue
                tries += 1
                if self.tried.is_settled(self.view, change, chosen):
                    found.append(self._least(chosen, change))
        return found

    def _least(self, chosen: frozenset[Proposal], change: Change) -> frozenset[Proposal]:
        """What of a set that settles the view is needed; what is dear is dropped first."""
        for proposal in sorted(chosen, key=lambda p: (-self._effort(p), str(p))):
            smaller = chosen - {proposal}
            if (
                smaller
                and not _is_referenced(proposal, smaller)
                and self.tried.is_settled(self.view, change, smaller)
            ):
                chosen = smaller
        return chosen

    def _stored(self, chosen: Iterable[Proposal]) -> float:
        return sum(self._effort(proposal) for proposal in chosen if isinstance(proposal, NewView))

    def _made(self, chosen: frozenset[Proposal]) -> Advice:
        ordered = tuple(sorted(chosen, key=lambda p: (self._effort(p), str(p))))
        return Advice(self.view.name, ordered, self.tried.flipped(self.view, chosen), self._rows(ordered))

    def _rows(self, chosen: Iterable[Proposal]) -> int | None:
        """Upper bounds, added up: a view over several relations is as large as the first."""
        total = 0
        for proposal in chosen:
            if isinstance(proposal, NewView):
                if proposal.relation not in self.sizes:
                    return None
                total += self.sizes[proposal.relation]
        return total

    def _effort(self, proposal: Proposal) -> float:
        """What to prefer: nothing to store before part of a relation before a whole copy; then the fewer values."""
        match proposal:
            case NewKey() | NewForeignKey():
                return 0.01
            case NewView(relation=relation):
                values = self.sizes.get(relation, 1_000_000) * proposal.rule.head.arity
                return values * (1 if proposal.is_copy else 0.5) + 1


def _covers(less: Iterable[Proposal], more: Iterable[Proposal]) -> bool:
    """Whether one set of views, which stores less, keeps rows of no other relations than another."""
    relations = {view.relation for view in more if isinstance(view, NewView)}
    return {view.relation for view in less if isinstance(view, NewView)} == relations


def _is_referenced(proposal: Proposal, others: Iterable[Proposal]) -> bool:
    """Whether a proposal is the key that a proposed foreign key references."""
    return any(
        isinstance(other, NewForeignKey) and proposal == NewKey(other.target, other.target_columns)
        for other in others
    )


def _all_changes(catalog: Catalog, view: View) -> list[Change]:
    own = [change for name in relations_of(catalog, view) for change in changes_of(catalog, name)]
    return [*own, ANYTHING]


class Refuting(Struct):
    """Whether examples are ones with proposals carried out, too; each is asked for once.

    Held against the definition: the constraints that are proposed hold in both databases, before and after the
    update, and the views that are proposed have the same rows in both. What a set of proposals does is what each of
    them does.

    Attributes:
        catalog: the warehouse as it is.
    """

    catalog: Catalog
    _asked: dict[tuple[int, Proposal], bool] = field(default_factory=dict)
    _examples: dict[int, Example] = field(default_factory=dict)

    def refutes(self, example: Example, chosen: Iterable[Proposal]) -> bool:
        """Whether the example is one with all these proposals carried out."""
        return all(self._withstands(example, proposal) for proposal in chosen)

    def _withstands(self, example: Example, proposal: Proposal) -> bool:
        key = (id(example), proposal)
        if key not in self._asked:
            self._examples[id(example)] = example  # no other one gets its id
            self._asked[key] = self._holds(example, proposal)
        return self._asked[key]

    def _holds(self, example: Example, proposal: Proposal) -> bool:
        databases = (example.first, example.second)
        if isinstance(proposal, NewView):
            one, other = (_rows(proposal, database) for database in databases)
            return one == other
        after = (updated(database, example.inserted, example.deleted) for database in databases)
        return all(self._satisfies(database, proposal) for database in (*databases, *after))

    def _satisfies(self, database: Relations, proposal: NewKey | NewForeignKey) -> bool:
        relation = self.catalog.relations[proposal.relation]
        values = _values(database, relation, proposal.columns)
        if isinstance(proposal, NewKey):
            return len(set(values)) == len(values) and not any(None in value for value in values)
        target = self.catalog.relations[proposal.target]
        there = set(_values(database, target, proposal.target_columns))
        return all(None in value or value in there for value in values)


def _values(database: Relations, relation: BaseRelation, columns: tuple[str, ...]) -> list[Row]:
    places = [relation.columns.index(column) for column in columns]
    return [tuple(row[i] for i in places) for row in database.get(relation.name, frozenset())]


def _rows(proposal: NewView, database: Relations) -> frozenset[Row]:
    facts = {Predicate(name): rows for name, rows in database.items()}
    return evaluate(Program((guard_joins(proposal.rule),)), proposal.rule.head.predicate, facts)
