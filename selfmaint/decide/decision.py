"""The symbolic side of deciding: which sets J survive, and the programs, from the rules alone; made once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from functools import cached_property
from itertools import islice

from msgspec import Struct, field

from datalog.budget import BudgetSpentError, limit
from datalog.copies import replace
from datalog.model import OpaqueView, Program, Rule
from selfmaint.canonical import Contribution, contributions
from selfmaint.canonical.rules import known_rules, wholly_known
from selfmaint.canonical.support import Support
from selfmaint.decide.begun import Begun
from selfmaint.decide.instances import Instance, plain_instance
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.newness import may_be_other
from selfmaint.decide.search_budget import DEFAULT_SEARCH, SearchBudget
from selfmaint.decide.selftest import DependsRules, compact_program, depends_rules, losing_rules
from selfmaint.decide.supports import HalfKnown
from selfmaint.decide.surviving import surviving
from selfmaint.decide.verdict import NOT_USED, PARTLY_USED
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.maintain import maintenance_program, roll_ups
from selfmaint.possible.queries import queries
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.finer import finer_views
from selfmaint.warehouse.own_relations import OwnRelation, OwnSchema, own_relations, own_schema
from selfmaint.warehouse.reads import reads
from selfmaint.warehouse.situation import Situation

_PART = 32
"""Of so many sets J rules are made at a time: where views group no J is compared with others (`Dominance`)."""


class Decision(Struct, dict=True):
    """The symbolic side of deciding: made from a catalog, at definition time.

    Attributes:
        catalog: the views and constraints.
        budget_s: how long it may take to find the rules of one view's test, and again to evaluate them.
        search: how much a search near the update may take.
        patience: so many times as long searches for databases may take; what was found in less is found again.
    """

    catalog: Catalog
    budget_s: float = math.inf
    search: SearchBudget = DEFAULT_SEARCH
    patience: float = 1.0
    _surviving: dict[str, Begun[NewFacts]] = field(default_factory=dict)
    _anchored: dict[str, tuple[str, Begun[NewFacts]]] = field(default_factory=dict)
    _instances: dict[str, Instance] = field(default_factory=dict)
    _known: dict[Situation, tuple[Rule, ...]] = field(default_factory=dict)
    _support: dict[Situation, Support] = field(default_factory=dict)
    _whole: dict[Situation, frozenset[str]] = field(default_factory=dict)
    _rules: dict[tuple[str, Situation], Begun[DependsRules]] = field(default_factory=dict)
    _spent: dict[str, float] = field(default_factory=dict)
    _own: dict[frozenset[str], dict[str, tuple[OwnRelation, ...]]] = field(default_factory=dict)
    _over_own: dict[object, tuple[OwnSchema, Decision]] = field(default_factory=dict)

    def within(self, budget_s: float, search: SearchBudget, patience: float) -> None:
        """From now on with other budgets, here and in the decisions over other relations."""
        self.budget_s, self.search, self.patience = budget_s, search, patience
        made = [self.__dict__.get("over_summands"), self.__dict__.get("over_shown_groups")]
        for other in (*made, *(decision for _, decision in self._over_own.values())):
            if other is not None:
                other.within(budget_s, other.search, other.patience)

    @cached_property
    def contributions(self) -> tuple[Contribution, ...]:
        """What the views tell about the base relations."""
        return contributions(self.catalog)

    @cached_property
    def finer(self) -> Mapping[str, frozenset[str]]:
        """For each view that groups, the views whose rows it may be rolled up from, or computed with."""
        found = {}
        for view in (view for view in self.catalog.views if isinstance(view, GroupedView)):
            plain = (
                f.view.name for f in finer_views(self.catalog, view) if not isinstance(f.view, GroupedView)
            )
            found[view.name] = frozenset([*plain, *(roll.name for roll in roll_ups(self.catalog, view))])
        return found

    @cached_property
    def searchable(self) -> frozenset[str]:
        """The views of a class that a search among all databases takes exactly."""
        return frozenset(queries(self.catalog))

    def known(self, situation: Situation) -> tuple[Rule, ...]:
        """The rules that define the canonical database in a situation."""
        if situation not in self._known:
            self._known[situation] = known_rules(self.catalog, situation, self.contributions)
        return self._known[situation]

    def support(self, situation: Situation) -> Support:
        """The canonical database's rules in a situation, prepared for use in other rules."""
        if situation not in self._support:
            known = self.known(situation)
            self._support[situation] = Support.of(self.catalog, situation, self.contributions, known)
        return self._support[situation]

    def surviving(self, view: View) -> tuple[NewFacts, ...]:
        """The sets J that the rules do not rule out; none for a view of a limited class."""
        found = self._all_surviving(view)
        with nullcontext() if found.is_whole else self._budget(view):
            return found.all

    def _all_surviving(self, view: View) -> Begun[NewFacts]:
        if view.name not in self._surviving:
            none = view.decided.limitation is not None
            self._surviving[view.name] = Begun(
                lambda: iter(()) if none else surviving(self.catalog, view.decided)
            )
        return self._surviving[view.name]

    def _asked(self, view: View, situation: Situation) -> Begun[NewFacts]:
        """The sets J that a test may ask for in the situation: all, if others were asked for before.

        Which these are is settled when they are first asked for: their numbers tell them apart (`ruled_out`).
        """
        changed = _changed(view, situation)
        anchors = [a.predicate.name for a in view.decided.body if a.predicate.name in changed]
        if len(anchors) > 1 or view.decided.limitation:
            return self._all_surviving(view)
        if view.name not in self._anchored and view.name not in self._surviving:
            found = Begun(lambda: surviving(self.catalog, view.decided, anchors[0]))
            self._anchored[view.name] = anchors[0], found
        if view.name in self._anchored:
            anchor, found = self._anchored[view.name]
            if anchor == anchors[0]:
                return found
        return self._all_surviving(view)

    def plain_instance(self, view: View) -> Instance:
        """The view's body as it is, with what contradicts new facts for it."""
        if view.name not in self._instances:
            self._instances[view.name] = plain_instance(self.catalog, view)
        return self._instances[view.name]

    def depends(self, view: View, situation: Situation, part: float = 1) -> tuple[DependsRules, ...]:
        """The rules of TEST, one entry for each J that matters in the situation.

        `part` is how much of the budget may be spent on it.

        Raises:
            BudgetSpentError: finding them takes longer than it may.
        """
        if not _is_touched(view, situation):
            return ()
        found = self._tests(view, situation)
        with nullcontext() if found.is_whole else self._budget(view, part):
            return found.all

    def first_tests(self, view: View, situation: Situation, number: int) -> tuple[DependsRules, ...]:
        """The first entries of `depends`, at most so many.

        Raises:
            BudgetSpentError: finding them takes longer than it may.
        """
        if not _is_touched(view, situation):
            return ()
        found = self._tests(view, situation)
        with nullcontext() if found.has(number) else self._budget(view):
            return found.first(number)

    def _tests(self, view: View, situation: Situation) -> Begun[DependsRules]:
        key = (view.name, situation)
        if key not in self._rules:
            self._rules[key] = Begun(lambda: self._rules_of(view, situation))
        return self._rules[key]

    def _rules_of(self, view: View, situation: Situation) -> Iterator[DependsRules]:
        sets = iter(self._asked(view, situation))
        while part := list(islice(sets, _PART if self.catalog.grouped_views else None)):
            yield from depends_rules(self.catalog, situation, part)
            if isinstance(view, GroupedView):
                yield from losing_rules(self.catalog, situation, part)

    def over_own_relations(self, view: View, situation: Situation) -> tuple[OwnSchema, Decision] | None:
        """A schema in which a view is over relations of its own, and the decision there: one for all views over these.

        Returns:
            None if there is none that helps, or it would not be right.
        """
        if not situation.effective:
            return None
        changed = situation.inserted | situation.deleted
        if changed not in self._own:
            self._own[changed] = own_relations(self.catalog, changed)
        made = self._own[changed].get(view.name)
        if made is None:
            return None
        if (changed, made) not in self._over_own:
            names = {name for name, its in self._own[changed].items() if its == made}
            schema = own_schema(self.catalog, changed, made, names)
            self._over_own[changed, made] = schema, Decision(schema.catalog, self.budget_s)
        return self._over_own[changed, made]

    @cached_property
    def over_summands(self) -> Decision:
        """The decision over the summands of unions, in place of these unions."""
        return Decision(self.catalog.with_summands, self.budget_s)

    @cached_property
    def over_shown_groups(self) -> Decision:
        """The decision with the groups of views that leave some out by their HAVING, in place of these views."""
        views = tuple(view.shown_groups or view for view in self.catalog.views)
        return Decision(replace(self.catalog, views=views), self.budget_s)

    def has_more_tests(self, views: Iterable[View], situation: Situation, most: int) -> bool:
        """Whether some views have more than so many tests together, without those whose budget is spent before."""
        left = most
        for view in views:
            with suppress(BudgetSpentError):
                left -= len(self.first_tests(view, situation, 1 + left))
            if left < 0:
                return True
        return False

    def has_rules(self, view: View, situation: Situation) -> bool:
        """Whether the rules of a view's test are found within the budget."""
        try:
            self.depends(view, situation)
        except BudgetSpentError:
            return False
        return True

    @contextmanager
    def _budget(self, view: View, part: float = 1) -> Iterator[None]:
        """Bounds the search for a view's rules; one that was given up before is not begun again with as much."""
        what, seconds = f"finding what {view.shown} depends on", part * self.budget_s
        if self._spent.get(view.name, 0) >= seconds:
            raise BudgetSpentError(what, seconds)
        try:
            with limit(seconds, what):
                yield
        except BudgetSpentError as spent:
            if spent.what == what:
                self._spent[view.name] = spent.seconds
            raise

    def test(self, view: View, situation: Situation) -> Program:
        """TEST of one view as one program; the view is self-maintainable iff every `depends` is empty."""
        return compact_program(self.support(situation), self.depends(view, situation))

    def knowledge(self, engine: Engine[D], facts: Facts[D], situation: Situation) -> Knowledge[D]:
        """What is known, for one question.

        The facts are the views' contents, the update, and what else is known; no base relation.
        """
        return Knowledge(engine, facts, situation, self)

    def maintenance(self, view: View, situation: Situation) -> Program:
        """The maintenance queries of one view."""
        return maintenance_program(self.support(situation), situation, view)

    @cached_property
    def half_known(self) -> HalfKnown:
        """The rows of which only the key is known."""
        copied = (c.rule.head.predicate.name for c in self.contributions if c.is_copy)
        return HalfKnown(self.catalog, frozenset(copied))

    @cached_property
    def _reads(self) -> Mapping[str, frozenset[str]]:
        return reads(self.catalog)

    def is_unchanged(self, view: View, situation: Situation) -> bool:
        """Whether a view, of whatever class, stays as it is: its definition reads nothing that changes."""
        texts = {one.name for one in self.catalog.views if isinstance(one.definition, OpaqueView)}
        read = self._reads[view.name] | {view.name}
        return read.isdisjoint(situation.inserted | situation.deleted | texts)

    def is_over_whole(self, view: View, situation: Situation) -> bool:
        """Whether all rows of what a view reads are known, and so its new state is: no test is to be asked."""
        return self.untold(view, situation) == frozenset()

    def untold(self, view: View, situation: Situation) -> frozenset[str] | None:
        """The relations that a view reads not all of whose rows are known; None if more would not do, were they.

        All groups that an effective update changes are computed from core rows, if need be (`maintain/groups.py`).
        """
        is_rule, body = view.limitation is None, view.body
        if isinstance(view, GroupedView):
            is_whole = not view.grouped.is_hidden or bool(view.grouped.block.having)
            is_rule, body = situation.effective and is_whole, view.core.body
        names = frozenset(atom.predicate.name for atom in body)
        return names - self.whole(situation) if is_rule and not view.unchanging else None

    def whole(self, situation: Situation) -> frozenset[str]:
        """The relations all of whose rows are known."""
        if situation not in self._whole:
            known = wholly_known(self.catalog, situation, self.contributions)
            self._whole[situation] = known | situation.wholly_known
        return self._whole[situation]

    def is_exact(self, situation: Situation) -> bool:
        """Whether keys and foreign keys are decided with exactly: where updates are effective."""
        return situation.effective or not self.catalog.is_constrained

    def doubts(
        self, view: View, situation: Situation, failing: Iterable[NewFacts] | None = None
    ) -> tuple[str, ...]:
        """Why a failing test of the view would not be a proof.

        `failing` are the sets J whose tests have rows; any of them if None.
        """
        if not view.is_decided:
            return (str(view.limitation),)
        reasons = [str(view.limitation)] if view.limitation else []
        reasons += [
            f"{other.limitation}{PARTLY_USED if isinstance(other, GroupedView) else NOT_USED}"
            for other in self.catalog.limited_views
            if other is not view
        ]
        if not self.is_exact(situation):
            reasons.append(
                "keys and foreign keys are decided with exactly only where the update is effective"
            )
        sets = tuple(self.surviving(view)) if failing is None else tuple(failing)
        if reasons or not sets:
            return tuple(reasons)
        each = [_own_doubts(new_facts, situation) for new_facts in sets]
        return () if not all(each) else tuple(dict.fromkeys(reason for found in each for reason in found))


def _is_touched(view: View, situation: Situation) -> bool:
    """Whether the update could change a view: every rule of its test starts at a row of the update."""
    names = (atom.predicate.name for atom in view.decided.body)
    return view.name not in situation.unmet and not _changed(view, situation).isdisjoint(names)


def _changed(view: View, situation: Situation) -> frozenset[str]:
    """The relations at whose rows in the update tests of a view start."""
    return situation.inserted if not isinstance(view, GroupedView) else situation.inserted | situation.deleted


def _own_doubts(new_facts: NewFacts, situation: Situation) -> tuple[str, ...]:
    """Why rows of the test of one J would not be a proof."""
    reasons = [
        f"{other.shown} and {new_facts.view.shown} have too many subgoals in common"
        for other in new_facts.instance.skipped
    ]
    if new_facts.may_be_forced:
        reasons.append(
            "a foreign key leaves few values for a row of which only the key is known, perhaps one"
        )
    for at, fact in enumerate(new_facts.atoms):
        if fact.predicate.name in situation.absent and may_be_other(new_facts, at):
            reasons.append(f"rows of `{fact.predicate.name}` are known to be absent, some perhaps with null")
    if new_facts.is_approximate:
        reasons.append("a column without values between some others is compared with data")
    if new_facts.is_vague:
        reasons.append(
            "a foreign key leads back to its own relation, or to a row with a column of few values that views look at"
        )
    return tuple(reasons)
