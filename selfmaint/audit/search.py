"""The verdict on one view and one kind of change, from rules and constraints alone.

"Always" is exact, and never wrong where it is said:

1. A view is self-maintainable iff no rule of its test has a row (Huyn 1997; `decide/selftest.py`).
2. If a rule has a row in some warehouse, it has one in a candidate of `candidates.py`: the rule's body, unfolded to
   rows of views and of the update, frozen, and chased with the constraints. That instance maps into any
   warehouse in which the rule has a row, so it proves no fact that the warehouse does not prove; what a rule negates
   are conjunctions of such facts (`without_aggregates` leaves out what is not like that).
3. So if all candidates were made and none gives a rule a row, no warehouse does. Where not all could be made the
   verdict is `Unclear`.

4. Views of which only the text is known are left out: knowing more only leaves fewer databases.
5. Parts of a warehouse that share nothing (`parts.py`) are searched each on its own, and what stored aggregates say is
   left out.

"Depends" rests on an example that is held against the definition (`example.py`), and on which the test fails; for
views that have no such test, on one that is found among small databases (`small_examples.py`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cached_property

from msgspec import Struct, field

from datalog.budget import BudgetSpentError, left, limit
from datalog.copies import replace
from datalog.model import OpaqueView
from selfmaint.audit.candidates import Candidate, Candidates
from selfmaint.audit.cell import Cell
from selfmaint.audit.changes import ANYTHING, Change, Kind, relations_of, updatable
from selfmaint.audit.choices import Choices
from selfmaint.audit.example import Always, Depends, Outcome, Replay, Unclear
from selfmaint.audit.fewest import Fewest
from selfmaint.audit.group_search import GroupSearch
from selfmaint.audit.parts import parts
from selfmaint.audit.small_examples import small_example
from selfmaint.audit.unmatched import is_always_told
from selfmaint.audit.unread import leaves_unread
from selfmaint.countermodel.databases import Evaluation
from selfmaint.decide.decision import Decision
from selfmaint.decide.summands import OverQueries
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.situation import Situation


def without_aggregates(catalog: Catalog) -> Catalog:
    """The warehouse as the audit's tests see it. Views have the same names and columns.

    The audit looks at the least warehouses in which a rule of the test has a row. They stand for all others because
    no fact is certain there that is not certain in those. Stored aggregates are not like that: a group of one row
    that is known has no other, and a larger warehouse's group has. So they are left out; with less known, "always"
    still is.
    """
    return replace(catalog, views=tuple(_without_aggregates(view) for view in catalog.views))


def _without_aggregates(view: View) -> View:
    if isinstance(view.definition, OpaqueView):  # what it holds in a least warehouse is not known
        return replace(view, definition=replace(view.definition, anti=None))
    if not isinstance(view, GroupedView):
        return replace(view, shown_groups=None)
    block, columns, is_total = view.grouped.block, view.grouped.columns, view.grouped.is_total
    if block.filters:  # a stored group has a row that passes them, which a least warehouse need not have
        block, columns, is_total = replace(block, groups=None), (), True
    silent = replace(view.grouped, block=block, columns=columns, measures=(), is_total=is_total)
    return replace(view, grouped=silent)


SHARE = 1 / 3
"""How much of the time that is left for a view the search for one verdict may take."""


class Search(Struct, dict=True):
    """Verdicts at definition time for one warehouse.

    Attributes:
        catalog: the views and constraints.
        known: what is known besides the views: partial copies, readable relations, effective updates.
        quick: any example will do: for asking whether a verdict is "always".
        budget_s: how long the search for the verdicts on one view may take.
    """

    catalog: Catalog
    known: Situation
    quick: bool = False
    _like: Search | None = None
    budget_s: float = math.inf
    _found: dict[tuple[str, Change], Outcome] = field(default_factory=dict)
    _grouped: dict[str, GroupSearch] = field(default_factory=dict)
    _readable: dict[frozenset[str], Search] = field(default_factory=dict)

    @cached_property
    def _parts(self) -> Mapping[str, Search]:
        """For each view the search of its part (5); none where the warehouse is one part."""
        found = parts(self.catalog)
        if len(found) == 1:
            return {}
        searches: dict[str, Search] = {}
        for catalog in found:
            known = self.known.of_relations(catalog.relations)
            made = Search(catalog, known, self.quick, budget_s=self.budget_s)
            searches |= {view.name: made for view in catalog.views}
        return searches

    def of(self, view: View) -> Search:
        """The search of the part of the warehouse that a view is in."""
        return self._parts.get(view.name, self)

    @cached_property
    def decision(self) -> Decision:
        """The symbolic side of deciding."""
        return self._like.decision if self._like else Decision(without_aggregates(self.catalog))

    @cached_property
    def evaluation(self) -> Evaluation:
        """The views as functions of a database."""
        return self._like.evaluation if self._like else Evaluation(self.catalog)

    @cached_property
    def choices(self) -> Choices:
        """The choices of values that the views make necessary."""
        return self._like.choices if self._like else Choices(self.decision.catalog)

    @cached_property
    def fewest(self) -> Fewest:
        """The rules that are unfolded."""
        return self._like.fewest if self._like else Fewest(self.decision)

    def candidates(self, change: Change, situation: Situation) -> Candidates:
        """The candidates for a kind of change, in its situation."""
        return Candidates(self.decision, change, situation, self.choices, self.fewest)

    def readable(self, relations: Iterable[str]) -> Search:
        """The same warehouse with some base relations readable; any examples will do."""
        names = frozenset(relations)
        if names == self.known.readable:
            return self
        if names not in self._readable:
            known = replace(self.known, readable=names)
            like = None if self._parts else self
            self._readable[names] = Search(self.catalog, known, True, like, self.budget_s)
        return self._readable[names]

    @cached_property
    def hasty(self) -> Search:
        """The same search with any examples."""
        return Search(self.catalog, self.known, True, self, self.budget_s)

    def outcome(self, view: View, change: Change) -> Outcome:
        """The verdict on a view and a kind of change; each is searched for once."""
        its = self.of(view)
        if its is not self:
            return its.outcome(view, change)
        if change.relation is not None and change.relation not in self.catalog.relations:
            return Always()  # of another part, with which the view shares nothing
        key = (view.name, change)
        if key not in self._found:
            what = f"the audit of {view.shown}"
            try:
                with limit(min(self.budget_s, left() * SHARE), what):
                    self._found[key] = (
                        Always()
                        if self.leaves_unread(view, change) or self._is_over_whole(view, change)
                        else self._inherited(view, change)
                        or self._shown(view, change)
                        or self._with_example(view, change, self._searched(view, change))
                    )
            except BudgetSpentError:
                self._found[key] = Unclear((str(BudgetSpentError(what, self.budget_s)),))
        return self._found[key]

    def widened(self, view: View, change: Change, narrower: Iterable[Outcome]) -> Outcome:
        """The verdict on a kind of change; if it was not found, by an example for a narrower one: it is one."""
        its = self.of(view)
        if its is not self:
            return its.widened(view, change, narrower)
        found = self.outcome(view, change)
        examples = [outcome for outcome in narrower if isinstance(outcome, Depends)]
        if isinstance(found, Unclear) and examples:
            least = min(examples, key=lambda outcome: outcome.example.size)
            found = self._found[view.name, change] = replace(least, is_never=False)
        return found

    def found(self, view: View) -> Mapping[tuple[str, Change], Outcome]:
        """The verdicts on a view that were found so far."""
        return {key: outcome for key, outcome in self._found.items() if key[0] == view.name}

    def learn(self, found: Mapping[tuple[str, Change], Outcome]) -> None:
        """Takes verdicts that a search of the same part found with the same knowledge."""
        self._found.update(found)

    def leaves_unread(self, view: View, change: Change) -> bool:
        """Whether a kind of change changes nothing of what a view reads."""
        return leaves_unread(self.catalog, view, change, effective=self.known.effective)

    def _is_over_whole(self, view: View, change: Change) -> bool:
        """Whether all rows of what a view reads are known, and so is what it becomes, whatever changes."""
        return self.decision.is_over_whole(view, change.situation(self.catalog, self.known))

    def _inherited(self, view: View, change: Change) -> Outcome | None:
        """What follows from a verdict on a wider kind of change: always; or its example, if it is of this kind."""
        wider = [Change(Kind.ANY, change.relation), ANYTHING]
        if change.kind is Kind.UPDATE and change.relation is not None:
            every = updatable(self.catalog, change.relation)
            wider += [replace(change, columns=every)] if every >= change.columns else []
        for one in wider:
            match self._found_before(view, one):
                case Always():
                    return Always()
                case Depends(example=example) as depends if not isinstance(view, GroupedView) or self.quick:
                    situation = change.situation(self.catalog, self.known)
                    if Replay(self.evaluation, situation, change).is_such_a_change(
                        example.inserted, example.deleted
                    ):
                        return self._as_seen(depends, view, change)
        return None

    def _found_before(self, view: View, change: Change) -> Outcome | None:
        """The verdict on a kind of change, if it was found with the same knowledge."""
        like = self._like if self._like is not None and self._like.known == self.known else None
        key = (view.name, change)
        return self._found.get(key) or (None if like is None else like._found.get(key))

    def _shown(self, view: View, change: Change) -> Outcome | None:
        """An example for a mix, of insertions alone or deletions: there are fewer of these to go through."""
        if change.kind is not Kind.ANY or not view.is_decided:
            return None
        names = relations_of(self.catalog, view) if change.relation is None else (change.relation,)
        kinds = (Kind.INSERT,) if not isinstance(view, GroupedView) else (Kind.INSERT, Kind.DELETE)
        narrower = (Change(kind, name) for name in names for kind in kinds)
        outcomes = (self.outcome(view, one) for one in narrower)
        if self.quick:
            return next((outcome for outcome in outcomes if not isinstance(outcome, Always)), None)
        found = (outcome for outcome in outcomes if isinstance(outcome, Depends))
        shown = min(found, key=lambda outcome: outcome.example.size, default=None)
        return None if shown is None else self._as_seen(shown, view, change)

    def _as_seen(self, depends: Depends, view: View, change: Change) -> Depends:
        """What is said of one kind of change, of another."""
        return replace(
            depends, is_never=not isinstance(view, GroupedView) and self._cell(view, change).is_seen_never
        )

    def _with_example(self, view: View, change: Change, outcome: Outcome) -> Outcome:
        """What was found, or an example among small databases where that says nothing of a change."""
        more = self.known.present or self.known.absent or self.known.readable
        if not isinstance(outcome, Unclear) or change.kind is Kind.ANY or self.quick or more:
            return outcome
        with suppress(BudgetSpentError):
            replay = Replay(self.evaluation, change.situation(self.catalog, self.known), change)
            example = small_example(view, replay)
            return outcome if example is None else Depends(example, example.hidden)
        return outcome

    def _searched(self, view: View, change: Change) -> Outcome:
        if isinstance(view, GroupedView):
            return self._groups(view).outcome(change, change.situation(self.catalog, self.known))
        if view.shown_groups is not None:
            groups = self._over_shown_groups._groups(view.shown_groups)
            return groups.outcome(change, change.situation(self.catalog, self.known))
        if view.name in self.catalog.summands:
            return self._summed(view, change)
        if view.name in self.catalog.grouped_summands:
            return self._summed_groups(view, change)
        if view.limitation is not None:
            is_told = is_always_told(self.catalog, view, change.situation(self.catalog, self.known))
            return Always() if is_told else Unclear((str(view.limitation),))
        if any(isinstance(v.definition, OpaqueView) for v in self.catalog.views):
            return self._among_texts(view, change)
        cell = self._cell(view, change)
        return cell.outcome() if cell.rules else Always()

    @cached_property
    def _over_shown_groups(self) -> Search:
        """The search with the groups of views that leave some out by their HAVING, in place of these views."""
        views = tuple(view.shown_groups or view for view in self.catalog.views)
        return Search(replace(self.catalog, views=views), self.known, self.quick, budget_s=self.budget_s)

    @cached_property
    def _over_summands(self) -> Decision:
        """The decision with the rules of unions as views, of which nothing is stored."""
        return Decision(self.catalog.with_summands)

    def _summed(self, view: View, change: Change) -> Outcome:
        """Of a union: always, if no test asks what its rules gain and lose, and no row that is lost may stay."""
        situation = change.situation(self.catalog, self.known)
        loses = not situation.deleted.isdisjoint(relations_of(self.catalog, view))
        if not situation.effective or (loses and view.stands_once):
            return Unclear((str(view.limitation),))
        tests = (self._over_summands.depends(part, situation) for part in self.catalog.summands[view.name])
        return Unclear((str(view.limitation),)) if any(tests) else Always()

    def _summed_groups(self, view: View, change: Change) -> Outcome:
        """Of groups over a union: always, if it is so of the groups over each query, which are not alone in theirs."""
        there = Search(self.catalog.with_summands, self.known, True, budget_s=self.budget_s)
        its = OverQueries(view, self.catalog.grouped_summands[view.name], self.catalog.relations)
        situation = change.situation(self.catalog, self.known)
        every = (
            replace(there._groups(plan.view), nullable=plan.never_null - its.never_null).outcome(
                change, situation
            )
            for plan in its.plans
        )
        is_told = its.whole is not None and all(isinstance(found, Always) for found in every)
        return Always() if is_told else Unclear((str(view.limitation),))

    @cached_property
    def _plain(self) -> Search:
        """The same warehouse without the views of which it cannot be told what they hold."""
        views = tuple(view for view in self.catalog.views if view.is_decided)
        return Search(replace(self.catalog, views=views), self.known, self.quick, budget_s=self.budget_s)

    def _among_texts(self, view: View, change: Change) -> Outcome:
        """The verdict without views of which only the text is known, where knowing them cannot change it (4).

        An example stays one if these views do not tell its two databases apart.
        """
        found = self._plain.outcome(view, change)
        if not isinstance(found, Depends):
            return found
        situation, its = change.situation(self.catalog, self.known), found.example
        given = Candidate(its.first, its.inserted, its.deleted, its.present)
        same = Replay(self.evaluation, situation, change).example(view.name, its.first, its.second, given)
        if same is not None:
            return replace(found, example=same, is_never=False)
        texts = (v.name for v in self.catalog.views if isinstance(v.definition, OpaqueView))
        return Unclear(
            tuple(f"only the text of `{name}` is known, and what it holds cannot be told" for name in texts)
        )

    def _groups(self, view: GroupedView) -> GroupSearch:
        if view.name not in self._grouped:
            self._grouped[view.name] = GroupSearch(
                view, self.decision, self.evaluation, self.choices, self.fewest, self.quick
            )
        return self._grouped[view.name]

    def _cell(self, view: View, change: Change) -> Cell:
        situation = change.situation(self.catalog, self.known)
        return Cell(self, view, change, situation, self.decision.depends(view, situation))
