"""Deciding self-maintainability of the views of a warehouse in one situation, with its data.

The symbolic part (which sets J survive, and the programs) depends on the rules alone and is made once. On data:

- `check` runs TEST as one program, which the engine evaluates from the update outwards.
- A view that passes is self-maintainable. One that fails is not, unless the class of a view, a view left out or a
  foreign key makes that doubtful: then it is undecided, unless two databases can be shown.
- What is undecided then is searched for among all databases: of all rows where these are few, else of those near the
  update (`searched.py`). Where views group two databases are looked for, and no more (`differing.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from datalog.budget import BudgetSpentError, limit
from datalog.copies import replace
from datalog.evaluate.order import one_nan
from datalog.model import Version
from selfmaint.countermodel.model_check import is_evaluated
from selfmaint.decide.anti_joins import UNMATCHED, Unmatched, anti_join_of
from selfmaint.decide.decision import Decision
from selfmaint.decide.evaluation import Sampled, failing_first, is_failing, passing, tested
from selfmaint.decide.held_values import may_misfit
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.open_groups import INEXACT, UNCOUNTABLE, group_verdict, may_stay_open
from selfmaint.decide.own_columns import known_there
from selfmaint.decide.pairs import confirmed
from selfmaint.decide.saturation import decide_with, followed, following, learns, saturated
from selfmaint.decide.summands import OverQueries, Summed, SummedGroups, Told, untold
from selfmaint.decide.unread_columns import untouched
from selfmaint.decide.verdict import (
    Change,
    NotSelfMaintainable,
    SelfMaintainable,
    Undecided,
    Verdict,
    Witness,
    copies_of,
)
from selfmaint.engine.protocol import D, Engine
from selfmaint.errors import Code, InputError
from selfmaint.maintain import delta
from selfmaint.warehouse.catalog import GroupedView, View
from selfmaint.warehouse.over_stored import copies_without_keys
from selfmaint.warehouse.own_relations import OwnSchema

_SAMPLE = 20
"""How many witnesses of one J are looked at."""

_TRIED = 2
"""How many witnesses of one J are tried for two databases, where none were asked for."""

_MOST_UNTOLD = 2
"""So many relations to store are named where a view is undecided."""

_MANY_CHANGES = 1_000
"""An update of more rows is large."""

NO_TWO_DATABASES = (
    "foreign keys prove rows of which little is known, and no two databases were found that differ"
)
"""Why a failing test is not believed."""

TOO_LARGE = (
    "foreign keys prove rows of which little is known and which could rule out what else is unknown, "
    "and there is too much data to show two databases"
)
"""Why it is not on large data."""
MAY_STAY = "a row that one of its queries loses may be given by another row"
"""Why a UNION is not decided by its queries."""

LOST_IN_UNION = (
    "a group loses rows, and nobody knows whether it is empty, or what a value of it is without them"
)
"""Why a view that groups over a union is not decided by its queries."""


def check(known: Knowledge[D], views: Iterable[View], sample: int = _SAMPLE) -> dict[str, Verdict]:
    """The verdict on each view.

    What stored groups tell is found out here. `sample` is how many witnesses to fetch for each failing J; none if 0.

    Returns:
        A verdict for each view's name, in the order given.
    """
    wanted, given = tuple(views), known
    told = _over_whole(known, wanted)
    left = [view for view in wanted if view.name not in told]
    known = with_enough(known, left)
    decide_with(given, known)
    told |= _told(known, left)
    left = [view for view in wanted if view.name not in told]
    tests = tested(known, left)
    result: dict[str, Verdict] = {}
    for view in wanted:
        verdict = told.get(view.name) or _not_told(known, view, *tests[view.name], sample)
        result[view.name] = replace(verdict, semantics=view.semantics)
    _spared(known, wanted, result)
    if any(isinstance(verdict, Undecided) for verdict in result.values()):
        from selfmaint.decide.differing import with_differing  # noqa: PLC0415 - see `searched`

        return with_differing(known, result)
    return result


def with_enough(known: Knowledge[D], views: Sequence[View]) -> Knowledge[D]:
    """What is known, with what stored groups tell where tests fail, if some of the views need that."""
    views = [view for view in views if not known.decision.is_over_whole(view, known.situation)]
    if not views:
        return known
    first = followed(known)
    if not learns(known):
        return first
    told = _told(first, views)
    left = (view for view in views if view.name not in told)
    return saturated(known) if any(_may_be_told(known, view) for view in left) else first


def _over_whole(known: Knowledge[D], views: Iterable[View]) -> dict[str, SelfMaintainable]:
    """The verdicts on those of some views that are over relations all of whose rows are known."""
    decision, situation, found = known.decision, known.situation, dict[str, SelfMaintainable]()
    for view in views:
        if decision.is_over_whole(view, situation):
            remarks = (INEXACT,) if isinstance(view, GroupedView) and view.grouped.inexact else ()
            is_plain = view.limitation is None and decision.is_exact(situation)
            exact = is_plain or decision.is_unchanged(view, situation)
            found[view.name] = SelfMaintainable(view.name, remarks, view.semantics, exact=exact)
    return found


def _may_be_told(known: Knowledge[D], view: View) -> bool:
    """Whether a view that is not self-maintainable by what is known may be so by more."""
    catalog = known.catalog
    is_union = view.name in catalog.summands or view.name in catalog.grouped_summands
    is_told_apart = is_union or view.shown_groups is not None or anti_join_of(view) is not None
    return view.decided.limitation is None or is_told_apart


def _told(known: Knowledge[D], views: Sequence[View]) -> dict[str, SelfMaintainable]:
    """Those of some views that are self-maintainable by what is known as it is; each is tried once."""
    tried: dict[str, Verdict] = known.kept.setdefault(_told, {})
    left = [view for view in views if view.name not in tried]
    unread = untouched(known, left) if left else frozenset()
    same = unread | known.situation.unmet
    for view in (view for view in left if view.name in same):
        none = Change(frozenset(), frozenset())
        is_plain = view.limitation is None and known.decision.is_exact(known.situation)
        exact = view.name in unread or is_plain
        tried[view.name] = SelfMaintainable(view.name, semantics=view.semantics, change=none, exact=exact)
    left = [view for view in left if view.name not in same]
    passed = passing(known, left)
    tried.update((v.name, _of_test(known, v, [], 0)) for v in left if v.name in passed)
    tried.update(_over_own_relations(known, [v for v in left if not tried.get(v.name)]))
    for view in (view for view in left if not tried.get(view.name)):
        tried[view.name] = _apart(known, view, Undecided(view.name, ()))
    return {v.name: its for v in views if isinstance(its := tried[v.name], SelfMaintainable)}


def _not_told(
    known: Knowledge[D], view: View, failing: Sampled[D], spent: BudgetSpentError | None, sample: int
) -> Verdict:
    """The verdict on a view that is not self-maintainable by what is known."""
    verdict: Verdict | None = None
    if failing or spent is None:
        verdict = _of_test(known, view, failing, sample)
    if isinstance(verdict, Undecided):  # rows that it does not read make no difference, and are no reason
        verdict = known.kept.get(_over_own_relations, {}).get(view.name, verdict)
    if spent is not None and not isinstance(verdict, NotSelfMaintainable):
        verdict = Undecided(view.name, (str(spent),), is_cut=True)
    assert verdict is not None
    verdict = _apart(known, view, verdict)
    if isinstance(verdict, Undecided) and not verdict.is_cut:
        from selfmaint.decide.searched import searched  # noqa: PLC0415 - few need a search, and it loads much

        verdict = searched(known, verdict)
    return verdict


def _apart(known: Knowledge[D], view: View, verdict: Verdict) -> Verdict:
    """The verdict on a view that is put together, by what it is put together of; on another view as it was."""
    verdict = _unmatched(known, view, _over_summands(known, view, verdict))
    if isinstance(verdict, Undecided) and view.shown_groups is not None:
        verdict = _over_shown_groups(known, view.shown_groups, verdict)
    return verdict


def _of_test(known: Knowledge[D], view: View, failing: Sampled[D], sample: int) -> Verdict:
    """The verdict on a view whose test is known."""
    decision, doubtful_last = known.decision, sorted(failing, key=lambda one: one[0].new_facts.is_doubtful)
    found = _witnesses(known.engine, doubtful_last, sample) if sample else ()
    sets = [rules.new_facts for rules, _ in failing]
    verdict = _verdict(known, view, doubtful_last, found)
    exact = not isinstance(view, GroupedView) and all(
        is_evaluated(known.catalog, v) for v in known.catalog.views
    )
    try:
        if exact and sets and (isinstance(verdict, Undecided) or decision.half_known.forced):
            with limit(decision.budget_s, f"looking for two databases in which {view.shown} differs"):
                shown = confirmed(known, found or _witnesses(known.engine, doubtful_last, _TRIED))
                if shown:
                    verdict = NotSelfMaintainable(view.name, found)
                elif isinstance(verdict, NotSelfMaintainable):
                    reason = _not_shown(known, view, sets, is_large=shown is None)
                    verdict = verdict if reason is None else Undecided(view.name, (reason,), found)
        if isinstance(view, GroupedView) and not sets:
            with limit(decision.budget_s, f"finding the groups of {view.shown} that stay open"):
                verdict = group_verdict(known, view)
    except BudgetSpentError as spent:
        doubts = verdict.reasons if isinstance(verdict, Undecided) else ()
        verdict = Undecided(view.name, (*doubts, str(spent)), found)
    return verdict


def _over_own_relations(known: Knowledge[D], views: Iterable[View]) -> dict[str, SelfMaintainable]:
    """Those of some views that are self-maintainable over relations that have only what they use.

    Of a large update no more branches of a union are tried where one is not: that would take longer than reading.
    """
    found, together = {}, dict[Knowledge[D], list[View]]()
    for there, view in _passing_over_own(known, views):
        verdict = _of_test(there, view, [], 0)
        if isinstance(verdict, SelfMaintainable):
            among = together.setdefault(there, [])
            among.append(view)
            found[view.name] = replace(verdict, delta=partial(delta, there, view, among=among), exact=False)
        elif isinstance(verdict, Undecided):
            known.kept.setdefault(_over_own_relations, {})[view.name] = verdict  # see `_not_told`
    return found


def _passing_over_own(known: Knowledge[D], views: Iterable[View]) -> Iterator[tuple[Knowledge[D], View]]:
    """Some views over relations that have only what they use, if their tests pass there."""
    schemas: dict[int, tuple[OwnSchema, Decision, list[str]]] = {}
    for view in views:
        own = known.decision.over_own_relations(view, known.situation)
        if own is not None:
            schemas.setdefault(id(own[1]), (*own, []))[2].append(view.name)
    whole, failing = known.catalog.whole, set[str]()
    is_large = len(schemas) > 1 and _changed_rows(known) > _MANY_CHANGES
    spared: set[str] = known.kept.setdefault(_spared, set())
    for schema, decision, names in schemas.values():
        asked = [view for view in schema.catalog.views if view.name in names]
        spared |= {view.name for view in asked if whole(view.name) in failing}
        asked = [view for view in asked if whole(view.name) not in failing]
        if asked:
            there = known_there(known, schema, decision)
            passed = passing(there, asked)
            failing |= {whole(v.name) for v in asked if is_large and v.name not in passed}
            yield from ((there, view) for view in asked if view.name in passed)


def _spared(known: Knowledge[D], views: Sequence[View], result: dict[str, Verdict]) -> None:
    """Tries the branches that were not tried since another one failed, where all others are determined after all."""
    spared: set[str] = known.kept.get(_spared, set())
    for view in (view for view in views if view.name in spared and not result[view.name]):
        whole = known.catalog.whole(view.name)
        if all(result[o.name] for o in views if o is not view and known.catalog.whole(o.name) == whole):
            found = _over_own_relations(known, [view]).values()
            result.update((view.name, replace(one, semantics=view.semantics)) for one in found)


def _changed_rows(known: Knowledge[D]) -> int:
    """How many rows the update has."""
    changes = (p for p in known.facts.relations if p.version in (Version.INSERTED, Version.DELETED))
    return sum(known.engine.count(known.facts.relations[p]) for p in changes)


def _over_summands(known: Knowledge[D], view: View, verdict: Verdict) -> Verdict:
    """The verdict on a union by what each of its queries gains and loses; on another view as it was."""
    catalog, situation = known.catalog, known.situation
    summands = catalog.summands.get(view.name) or catalog.grouped_summands.get(view.name)
    if summands is None or not isinstance(verdict, Undecided):
        return verdict
    if not situation.effective:
        return verdict.because_of(UNCOUNTABLE)
    changed = situation.inserted | situation.deleted
    with suppress(BudgetSpentError):
        told: list[Told[D]] = []
        for part in summands:
            if not changed.isdisjoint(atom.predicate.name for atom in part.core.body):
                found = _told_of(known.over_summands, part)
                if found is None:
                    return verdict.because_of(untold(part))
                told.append(found)
        if view.name in catalog.grouped_summands:
            groups = SummedGroups(known, OverQueries(view, summands, catalog.relations), told)
            if groups.is_open():
                return verdict.because_of(LOST_IN_UNION)
            return SelfMaintainable(view.name, delta=groups.delta)
        summed = Summed(known, view, told)
        if summed.is_open():
            return verdict.because_of(MAY_STAY)
        return SelfMaintainable(view.name, delta=summed.delta)
    return verdict


def _unmatched(known: Knowledge[D], view: View, verdict: Verdict) -> Verdict:
    """The verdict on a view of rows that have no match; on another view as it was."""
    anti = anti_join_of(view)
    if anti is None or not isinstance(verdict, Undecided):
        return verdict
    if not known.situation.effective:
        return verdict.because_of(UNCOUNTABLE)
    with suppress(BudgetSpentError), limit(known.decision.budget_s, f"looking for matches of {view.shown}"):
        found = Unmatched(known, view, anti)
        try:
            is_open = found.is_open()
        except InputError as error:  # a condition that cannot be computed of a row: the view stays text
            if {one.code for one in error.diagnostics} <= {Code.ENGINE_DIFFERS, Code.COLUMNS_DIFFER}:
                return verdict
            raise
        return (
            replace(verdict, reasons=(UNMATCHED,))
            if is_open
            else SelfMaintainable(view.name, delta=found.delta)
        )
    return verdict


def _over_shown_groups(known: Knowledge[D], groups: GroupedView, verdict: Undecided) -> Verdict:
    """The verdict on a view that leaves groups out by its HAVING (`maintain/shown_groups.py`), if it is undecided."""
    if not known.situation.effective:
        return verdict.because_of(UNCOUNTABLE)
    key, decision = "over shown groups", known.decision.over_shown_groups
    try:
        with limit(decision.budget_s, f"finding what {groups.shown} shows"):
            if key not in known.kept:
                apart = replace(known.situation, ruled_out=frozenset())
                known.kept[key] = following(decision.knowledge(known.engine, known.facts, apart))
            there: Knowledge[D] = known.kept[key]
            if is_failing(there, groups):
                untold = replace(verdict, reasons=(*_untold(there, groups, ()), *verdict.reasons))
                return _over_own_relations(there, [groups]).get(groups.name, untold)
            found = group_verdict(there, groups)
    except BudgetSpentError as spent:
        return verdict.because_of(str(spent))
    if isinstance(found, SelfMaintainable):
        return replace(found, delta=partial(delta, there, groups), exact=False)
    return verdict.because_of(str(found.reasons[-1])) if isinstance(found, Undecided) else verdict


def _told_of(known: Knowledge[D], part: GroupedView) -> Told[D] | None:
    """A summand, where what it gains and loses is determined, perhaps over relations of its own."""
    found = next(_passing_over_own(known, [part]), None) if is_failing(known, part) else (known, part)
    return Told(found[0], found[1]) if found is not None and isinstance(found[1], GroupedView) else None


def _not_shown(known: Knowledge[D], view: View, sets: Sequence[NewFacts], *, is_large: bool) -> str | None:
    """Why failing tests are not believed where no two databases were shown; None if they are."""
    if not is_large:
        return NO_TWO_DATABASES
    decision = known.decision
    sure = (one for one in sets if not decision.doubts(view, known.situation, [one]))
    return TOO_LARGE if all(decision.half_known.may_rule_out(one) for one in sure) else None


def _verdict(known: Knowledge[D], view: View, failing: Sampled[D], found: tuple[Witness, ...]) -> Verdict:
    """The verdict that some failing J's make."""
    decision, situation = known.decision, known.situation
    sets = [rules.new_facts for rules, _ in failing]
    if not sets and (view.limitation is None or decision.is_unchanged(view, situation)):
        exact = view.limitation is None and decision.is_exact(situation)
        return SelfMaintainable(view.name, exact=exact)
    some = partial(_witnesses, known.engine, failing, _SAMPLE)
    doubts = decision.doubts(view, situation, sets) or may_misfit(decision.catalog, sets, some)
    if not doubts:
        return NotSelfMaintainable(view.name, found)
    return Undecided(view.name, (*_untold(known, view, sets), *doubts), found)


def _untold(known: Knowledge[D], view: View, failing: Sequence[NewFacts]) -> Iterator[str]:
    """What would tell: if relations of which each failing J has a fact are wholly known, no test has a row.

    Of groups that may stay open then, and where not all tests were asked, all that the view reads.
    """
    found = frozenset(one.instance.body[j].predicate.name for one in failing for j in one.subgoals)
    if failing_first(known, [view]) or (isinstance(view, GroupedView) and may_stay_open(known, view)):
        found = known.decision.untold(view, known.situation) or frozenset()
    names = sorted(found)
    if 0 < len(names) <= _MOST_UNTOLD and found.isdisjoint(copies_without_keys(known.catalog)):
        shown = ", ".join(f"`{name}`" for name in names)
        views = "a view of all its columns" if len(names) == 1 else "views of all their columns"
        yield f"rows of {shown} that no view shows may change it: {views} would tell, as {copies_of(names)}"


def _witnesses(engine: Engine[D], failing: Sampled[D], number: int) -> tuple[Witness, ...]:
    """A few witnesses of each J."""
    return tuple(
        Witness(rules.new_facts, dict(zip(rules.new_facts.bound, map(one_nan, row), strict=True)))
        for rules, rows in failing
        if rows is not None
        for row in engine.sample(rows, number)
    )
