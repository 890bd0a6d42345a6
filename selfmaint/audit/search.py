"""The verdict on one view and one kind of change, from rules and constraints alone.

"Always" is exact, and never wrong where it is said:

1. A view is self-maintainable iff no rule of its test has a row (Huyn 1997; `decide/selftest.py`).
2. If a rule has a row in some warehouse, it has one in a candidate of `candidates.py`: the rule's body, unfolded to
   rows of views and of the update, frozen, and chased with the constraints. That instance maps into any
   warehouse in which the rule has a row, so it proves no fact that the warehouse does not prove; what a rule negates
   are conjunctions of such facts (`parts.py` leaves out what is not like that).
3. So if all candidates were made and none gives a rule a row, no warehouse does. Where not all could be made the
   verdict is `Unclear`.

4. Views of which only the text is known are left out: knowing more only leaves fewer databases.
5. Parts of a warehouse that share nothing are searched each on its own (`parts.py`).

"Depends" rests on an example that is held against the definition (`example.py`), and on which the test fails.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from datalog.budget import BudgetSpentError, left, limit
from datalog.model import Atom, Literal, Negation, OpaqueView, Predicate, Program, Row, Variable, Version
from selfmaint.audit.candidates import Candidate, Candidates, by_turns
from selfmaint.audit.changes import ANYTHING, Change, Kind, relations_of, updatable
from selfmaint.audit.choices import Choices
from selfmaint.audit.example import Example, Replay, second_databases
from selfmaint.audit.fewest import Fewest
from selfmaint.audit.group_search import GroupSearch
from selfmaint.audit.outcome import Always, Depends, Outcome, Unclear
from selfmaint.audit.parts import parts, without_aggregates
from selfmaint.audit.ruled_out import views_of
from selfmaint.countermodel.databases import CannotEvaluateError, Evaluation
from selfmaint.decide.procedure import Decision
from selfmaint.decide.selftest import DependsRules, compact_program
from selfmaint.decide.verdict import Witness
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.situation import Situation

SHARE = 1 / 3
"""How much of the time that is left for a view the search for one verdict may take."""

FIRING_LIMIT = 12
"""For one rule, after so many candidates with a row but no example the search goes on to the next rule."""

WITNESSES = 20
"""So many rows of a rule are tried in one candidate."""

NOT_FOUND = "the decision says no, but two databases that show it were not found"


@dataclass
class Search:
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
                        self._inherited(view, change)
                        or self._shown(view, change)
                        or self._searched(view, change)
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

    def _searched(self, view: View, change: Change) -> Outcome:
        if isinstance(view, GroupedView):
            return self._groups(view).outcome(change, change.situation(self.catalog, self.known))
        if view.name in self.catalog.summands:
            return self._summed(view, change)
        if view.limitation is not None:
            return Unclear((str(view.limitation),))
        if any(isinstance(v.definition, OpaqueView) for v in self.catalog.views):
            return self._among_texts(view, change)
        cell = self._cell(view, change)
        return cell.outcome() if cell.rules else Always()

    @cached_property
    def _over_summands(self) -> Search:
        """The same warehouse with the rules of unions as views, of which nothing is stored."""
        return Search(self.catalog.with_summands, self.known, True, budget_s=self.budget_s)

    def _summed(self, view: View, change: Change) -> Outcome:
        """Of a union: always, if what each of its rules gains and loses always is, and no row that is lost may stay."""
        situation = change.situation(self.catalog, self.known)
        loses = not situation.deleted.isdisjoint(relations_of(self.catalog, view))
        if not situation.effective or (loses and view.stands_once):
            return Unclear((str(view.limitation),))
        for part in self.catalog.summands[view.name]:
            if not isinstance(self._over_summands.outcome(part, change), Always):
                return Unclear((str(view.limitation),))
        return Always()

    @cached_property
    def _plain(self) -> Search:
        """The same warehouse without the views of which it cannot be told what they hold."""
        views = tuple(view for view in self.catalog.views if view.is_decided)
        return Search(replace(self.catalog, views=views), self.known, self.quick, budget_s=self.budget_s)

    def _among_texts(self, view: View, change: Change) -> Outcome:
        """The verdict without views of which only the text is known, where knowing them cannot change it (4)."""
        found = self._plain.outcome(view, change)
        if not isinstance(found, Depends):
            return found
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

    def _cell(self, view: View, change: Change) -> _Cell:
        situation = change.situation(self.catalog, self.known)
        return _Cell(self, view, change, situation, self.decision.depends(view, situation))


@dataclass
class _Cell:
    """The search for one view and one kind of change."""

    search: Search
    view: View
    change: Change
    situation: Situation
    rules: tuple[DependsRules, ...]
    reasons: dict[str, None] = field(default_factory=dict)
    best: Depends | None = None
    programs: dict[Predicate, Program] = field(default_factory=dict)

    def outcome(self) -> Outcome:
        """The verdict."""
        candidates = self.search.candidates(self.change, self.situation)
        try:
            self._look(candidates)
        except BudgetSpentError:
            if self.best is None:
                raise
        except CannotEvaluateError as error:
            return Unclear((str(error),))
        if self.best is not None:
            return replace(self.best, is_never=self.is_seen_never)
        if self.reasons:
            return Unclear(tuple(self.reasons))
        if not candidates.are_all:
            return Unclear(("there are too many kinds of data to go through",))
        return Always(len(self.rules))

    def _look(self, candidates: Candidates) -> None:
        """Looks for an example: the smallest of those that one turn finds."""
        ordered = sorted(self.rules, key=lambda r: r.new_facts.facts.bit_count())
        for found in by_turns(self._depends(rules, candidates) for rules in ordered):
            if self.best is None or found.example.size < self.best.example.size:
                self.best = found
            if self.search.quick:
                break

    @property
    def is_seen_never(self) -> bool:
        """Whether it is seen to be "never" before the budget is spent."""
        try:
            return self.is_never
        except BudgetSpentError:
            return False

    def _depends(self, rules: DependsRules, candidates: Candidates) -> Iterator[Depends | None]:
        """An example for the rules of one J, from its first few candidates with a row; None for each step."""
        program = self._program(rules)
        if not program.rules_for(rules.goal):
            return
        views = views_of(program)
        fired = 0
        for candidate in candidates.of(rules, self.search.evaluation):
            rows = () if candidate is None else self._rows(candidate, program, views, rules)
            if candidate is None or not rows:
                yield None
                continue
            for row in sorted(rows, key=repr)[:WITNESSES]:
                witness = Witness(rules.new_facts, dict(zip(rules.new_facts.bound, row, strict=True)))
                example = self._example(candidate, witness)
                if example is not None:
                    yield Depends(example, witness.unknown)
                    return
            doubts = self.search.decision.doubts(self.view, self.situation, [rules.new_facts])
            self.reasons.update(dict.fromkeys(doubts or (NOT_FOUND,)))
            fired += 1
            if fired == FIRING_LIMIT:
                return

    def _program(self, rules: DependsRules) -> Program:
        if rules.goal not in self.programs:
            support = self.search.decision.support(self.situation)
            self.programs[rules.goal] = compact_program(support, [rules])
        return self.programs[rules.goal]

    def _rows(
        self, candidate: Candidate, program: Program, views: frozenset[str], rules: DependsRules
    ) -> frozenset[Row]:
        """The rows of the rules in a candidate."""
        facts = candidate.facts(self.search.evaluation, self.situation, views)
        return MemoryEngine().evaluate(program, rules.goal, facts)

    def _example(self, candidate: Candidate, witness: Witness) -> Example | None:
        replay = Replay(self.search.evaluation, self.situation, self.change)
        for second in second_databases(self.search.catalog, candidate, witness):
            found = replay.example(self.view.name, candidate.database, second, candidate)
            if found is not None:
                if not self._may_shrink:
                    return found
                smaller = replay.shrunk(found)
                try:
                    return smaller if self._fails(smaller) else found
                except BudgetSpentError:
                    return found
        return None

    @property
    def _may_shrink(self) -> bool:
        """Whether a smaller example is wanted, and nothing is known that it would have to be told of."""
        known = self.situation
        return not (self.search.quick or known.present or known.absent or known.readable)

    def _fails(self, smaller: Example) -> bool:
        """Whether the view's test fails on an example, as it must."""
        none: frozenset[Row] = frozenset()
        given = {Predicate(n, Version.INSERTED): none for n in self.situation.inserted}
        given |= {Predicate(n, Version.DELETED): none for n in self.situation.deleted}
        facts = Facts({**given, **smaller.facts(self.search.catalog).relations})
        return any(MemoryEngine().nonempty(self._program(one), [one.goal], facts) for one in self.rules)

    @cached_property
    def is_never(self) -> bool:
        """Whether some rule has a row for every inserted row: what it negates can never hold of one."""
        if self.change.relation is None:
            return False
        return any(
            any(self._is_unconditional(positive, rules.negative) for positive in rules.positive)
            and not self.search.decision.doubts(self.view, self.situation, [rules.new_facts])
            for rules in self.rules
        )

    def _is_unconditional(self, positive: tuple[Literal, ...], negative: tuple[Literal, ...]) -> bool:
        if not _is_any_row(positive):
            return False
        candidates = self.search.candidates(self.change, self.situation)
        for literal in negative:
            if not isinstance(literal, Negation) or any(isinstance(li, Negation) for li in literal.body):
                return False
            if next(candidates.holding((*positive, *literal.body)), None) is not None:
                return False
        return candidates.are_all


def _is_any_row(positive: tuple[object, ...]) -> bool:
    match positive:
        case (Atom(terms=terms),):
            return len(set(terms)) == len(terms) and all(isinstance(t, Variable) for t in terms)
        case _:
            return False
