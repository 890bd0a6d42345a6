"""The verdict on a view that groups and one kind of change, from rules and constraints alone.

"Always" is sound, not exact:

1. The core rows that the view gains and loses are determined if the test for its core never has a row: shown as in
   `search.py`, without what aggregates say of the views; knowing more only leaves fewer databases.
2. Given them, no value may stay open: `LostValues`. That no core row can be lost, or that all are known, is shown
   by the most general databases with a core row: what the views tell of them they tell wherever these map to.

"Depends" rests on an example that is held against the definition, with every view of the warehouse.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain, islice

from msgspec import Struct, field

from datalog.copies import replace
from datalog.evaluate import Evaluator
from datalog.model import (
    AggregateFunction,
    Atom,
    Literal,
    Predicate,
    Program,
    Rule,
    Variable,
    Version,
    variables_of,
)
from datalog.model.expressions import expression_variables
from selfmaint.audit.candidates import Candidates, Firing, by_turns
from selfmaint.audit.changes import Change, Kind
from selfmaint.audit.choices import Choices
from selfmaint.audit.example import Always, Depends, Example, Outcome, Replay, Unclear, second_databases
from selfmaint.audit.fewest import Fewest
from selfmaint.audit.group_examples import Tried, group_examples
from selfmaint.countermodel.databases import CannotEvaluateError, Evaluation
from selfmaint.decide.decision import Decision
from selfmaint.decide.selftest import compact_program
from selfmaint.decide.verdict import Witness
from selfmaint.maintain.core_rows import anchored
from selfmaint.maintain.group_plan import GroupPlan
from selfmaint.maintain.nonzero_sums import NonzeroSums
from selfmaint.warehouse.catalog import Catalog, GroupedView
from selfmaint.warehouse.grouped import Grouped, Measure
from selfmaint.warehouse.situation import Situation

_TRIED = 6
"""So many databases in which a core row is not determined are tried for an example."""

_WITNESSES = 3
"""So many rows of the test are tried in each of them."""

_NOT_EFFECTIVE = (
    "whether the rows of an update were there before is not known: say that updates are effective"
)
_NOT_KNOWN = "which rows join with those of the update is not always known"
_TOO_MANY = "there are too many kinds of data to go through"

_EXTREMA = (AggregateFunction.MIN, AggregateFunction.MAX)


class GroupSearch(Struct, dict=True):
    """The search for one view that groups.

    Attributes:
        decision: of the warehouse without aggregates.
        evaluation: all views as functions of a database.
        choices: those that the views make necessary.
        fewest: the rules that are unfolded.
        quick: whether examples are not wanted.
        nullable: of a summand of a union the columns that are null in rows of others; None of a view of its own.
    """

    view: GroupedView
    decision: Decision
    evaluation: Evaluation
    choices: Choices
    fewest: Fewest
    quick: bool
    nullable: frozenset[int] | None = None
    _tried: Tried = field(default_factory=set)

    @cached_property
    def _silent(self) -> Catalog:
        """The views that are knowledge here, each of which can be evaluated."""
        catalog = self.decision.catalog
        return replace(catalog, views=tuple(v for v in catalog.views if v.is_decided))

    @cached_property
    def _silent_evaluation(self) -> Evaluation:
        return Evaluation(self._silent)

    def outcome(self, change: Change, situation: Situation) -> Outcome:
        """The verdict on a kind of change, in its situation."""
        try:
            return self._outcome(change, situation)
        except CannotEvaluateError as error:
            return Unclear((str(error),))

    def _outcome(self, change: Change, situation: Situation) -> Outcome:
        changed = situation.inserted | situation.deleted
        if not changed & {atom.predicate.name for atom in self.view.core.body}:
            return Always()
        if not situation.effective:
            return Unclear((_NOT_EFFECTIVE,))
        rules = self.decision.depends(self._silent.view(self.view.name), situation)
        candidates = Candidates(self.decision, change, situation, self.choices, self.fewest)
        # In these a core row that is gained or lost is not determined.
        support, known = self.decision.support(situation), self._silent_evaluation
        firing = by_turns(candidates.firing(one, compact_program(support, [one]), known) for one in rules)
        first = next(firing, None)
        if first is None and not candidates.are_all:
            return Unclear((_TOO_MANY,))
        reasons = [_NOT_KNOWN] if first is not None else list(self._open(change, situation))
        if not reasons:
            return Always(len(rules))
        tried = () if first is None else chain([first], islice(firing, _TRIED - 1))
        try:
            example = None if self.quick else self._example(tried, change, situation)
        except CannotEvaluateError as error:
            return Unclear((*reasons, str(error)))
        return Unclear(tuple(reasons)) if example is None else Depends(example, example.hidden)

    def _open(self, change: Change, situation: Situation) -> Iterator[str]:
        """What may be open although the core rows that are gained and lost are determined."""
        if self.view.grouped.block.having:
            plan = GroupPlan(self.view, self.evaluation.catalog.relations)
            if not isinstance(plan.values, NonzeroSums):
                yield str(self.view.limitation)
            return
        values = LostValues(self.evaluation.catalog, self.view, change, False, self.nullable)
        yield from values.averages()
        loses = self._may_lose(change, situation)
        if loses is False:
            return
        if loses is None:
            yield _TOO_MANY
        matters = self.nullable is None and any(
            m.aggregate.function in _EXTREMA for m in self.view.grouped.measures
        )
        known = matters and self._knows_core(change, situation)
        yield from replace(values, is_known=known).open()

    def _may_lose(self, change: Change, situation: Situation) -> bool | None:
        """Whether the view can lose core rows; None if not all cases could be looked at."""
        candidates = Candidates(self.decision, change, situation, self.choices, self.fewest)
        for index, atom in enumerate(self.view.core.body):
            if atom.predicate.name in situation.deleted:
                body = anchored(self.view.core, index, Version.DELETED, Version.BEFORE)
                if next(candidates.holding(body), None) is not None:
                    return True
        return False if candidates.are_all else None

    def _knows_core(self, change: Change, situation: Situation) -> bool:
        """Whether every core row there is, is always among those that the views prove."""
        evaluation = self._silent_evaluation
        candidates = Candidates(self.decision, change, situation, self.choices, self.fewest)
        known = self.decision.known(situation)
        body: list[Literal] = [a.of(Version.BEFORE) for a in self.view.core.body]
        goal = Predicate("core", Version.STEP)
        head = Atom(goal, self.view.core.head.terms)
        every = Rule(head, (*self.view.core.body, *self.view.core.filters))
        proved = Rule(head, (*(a.of(Version.KNOWN) for a in self.view.core.body), *self.view.core.filters))
        for candidate in candidates.holding((*body, *self.view.core.filters)):
            there = Evaluator(Program((every,)), {Predicate(n): r for n, r in candidate.database.items()})
            facts = candidate.facts(evaluation, situation)
            if there.extension(goal) != Evaluator(Program((*known, proved)), facts.relations).extension(goal):
                return False
        return candidates.are_all

    def _example(self, firing: Iterable[Firing], change: Change, situation: Situation) -> Example | None:
        """Two databases that all views agree on, and of which the update makes different ones.

        Raises:
            CannotEvaluateError: none was found, and some view is known only as text.
        """
        replay = Replay(self.evaluation, situation, change)
        for one, candidate, rows in firing:
            for row in rows[:_WITNESSES]:
                witness = Witness(one.new_facts, dict(zip(one.new_facts.bound, row, strict=True)))
                for second in second_databases(self.evaluation.catalog, candidate, witness):
                    found = replay.example(self.view.name, candidate.database, second, candidate)
                    if found is not None:
                        return replay.shrunk(found)
        pairs = group_examples(self.evaluation, self.view, change, situation, self._tried)
        for first, second, candidate in pairs:
            found = replay.example(self.view.name, first, second, candidate)
            if found is not None:
                return replay.shrunk(found)
        self.evaluation.contents({})
        return None


class LostValues(Struct, frozen=True):
    """What may be open in one view after one kind of change by which it loses core rows.

    The conditions under which a value is determined are those of `maintain/group_values.py`, for every group at
    once. Core rows that are gained leave nothing open but an average (5): a group with a new row is there, counts and
    sums add, an extremum moves. Of core rows that are lost:

    1. A group may be gone, unless its rows are counted, or it has one at most.
    2. A sum may be over nothing, unless its operands are counted, or are never null in a group that is there.
    3. An extremum may be the lost one, unless all core rows of the group are known, so that the others can be looked
       at.
    4. An update of columns that nothing joins, compares, filters or groups puts a row in the place of each lost one:
       the group stays, and so do values that do not rest on these columns.
    5. An average may be open whose sum or number of values the view does not show, but for such an update.

    Attributes:
        view: a view that groups.
        change: the kind of change.
        is_known: whether all core rows of any group are always known; matters where there are extrema.
        nullable: of a summand the columns that are null in others; its groups have other rows, too. None of a view.
    """

    catalog: Catalog
    view: GroupedView
    change: Change
    is_known: bool
    nullable: frozenset[int] | None = None

    @property
    def grouped(self) -> Grouped:
        """What the view's columns are."""
        return self.view.grouped

    def open(self) -> Iterator[str]:
        """What may be open, in words."""
        grouped = self.grouped
        if not grouped.is_total and not self._has_rows and self._replaced is None:
            yield self.view.uncounted
        for measure in grouped.measures:
            function = measure.aggregate.function
            name = self.view.columns[measure.column]
            if self._is_replaced(measure):
                continue
            if function is AggregateFunction.SUM and not self._sum_is_closed(measure):
                yield f"`{name}` may be the sum of no value: add the count of its values to the view"
            if function in _EXTREMA and not self._extremum_is_closed(measure):
                yield f"the row that `{name}` rests on may be lost, and other rows of the group are not known"

    def averages(self) -> Iterator[str]:
        """Condition 5, of rows that are gained, too."""
        alone = [m for m in self.grouped.measures if m.column in self.grouped.alone]
        if self.view.alone is not None and not all(map(self._is_replaced, alone)):
            yield self.view.alone

    @property
    def _has_rows(self) -> bool:
        """Condition 1."""
        is_single = self.grouped.is_single and self.nullable is None
        return self.grouped.count_column is not None or (not self.grouped.is_total and is_single)

    def _counts(self, measure: Measure) -> bool:
        """Whether the number of a measure's values that are not null is known."""
        same = any(
            other.aggregate.function is AggregateFunction.COUNT
            and other.aggregate.operand == measure.aggregate.operand
            for other in self.grouped.measures
        )
        return same or (self._is_never_null(measure) and self._has_rows)

    def _is_never_null(self, measure: Measure) -> bool:
        never_null = GroupPlan(self.view, self.catalog.relations).never_null
        return measure.column in never_null.difference(self.nullable or ())

    def _sum_is_closed(self, measure: Measure) -> bool:
        """Condition 2."""
        return self._counts(measure) or (self._is_never_null(measure) and not self.grouped.is_total)

    def _extremum_is_closed(self, measure: Measure) -> bool:
        """Condition 3; the other rows are looked for by the group's values, which have to be columns of the core."""
        plain = all(isinstance(group, Variable) for group in self.grouped.groups)
        if plain and self.grouped.groups and self.grouped.is_single and self.nullable is None:
            return True
        return plain and self.is_known and (self._has_rows or self._counts(measure))

    @property
    def _replaced(self) -> frozenset[Variable] | None:
        """Condition 4: the variables that an update changes, if it only puts rows in the places of others."""
        core, grouped = self.view.core, self.grouped
        assert core is not None
        if self.change.kind is not Kind.UPDATE:
            return None
        atoms = [atom for atom in core.body if atom.predicate.name == self.change.relation]
        terms = [atom.terms[i] for atom in atoms for i in self.change.columns]
        times = Counter(t for atom in core.body for t in atom.terms)
        fixed = set(variables_of(core.filters))
        used = expression_variables((*grouped.groups, *grouped.block.filters))
        fixed |= {t for v in used if isinstance(t := grouped.terms.get(v, v), Variable)}
        if any(not isinstance(t, Variable) or times[t] > 1 or t in fixed for t in terms):
            return None
        return frozenset(t for t in terms if isinstance(t, Variable))

    def _is_replaced(self, measure: Measure) -> bool:
        replaced = self._replaced
        if replaced is None:
            return False
        operand = measure.aggregate.operand
        used = () if operand is None else expression_variables([operand])
        return not any(self.grouped.terms.get(v, v) in replaced for v in used)
