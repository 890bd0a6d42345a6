"""Cross-examining, within `check` and `maintain`: the verdicts and changes that were found, held against a solver.

What is handed over is what is *given*, the views' rows, the update, the copies, not what the decision made of it; and
the new states that the verdicts promise, row by row.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Generic, Literal

from msgspec import Struct, field

from datalog.budget import BudgetSpentError, limit
from datalog.copies import replace
from datalog.diagnostics import Diagnostic, Severity
from datalog.model import Row
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.countermodel.model_check import may_repeat
from selfmaint.cross_examine.examine import MOST_TO_CONFIRM, CrossExamination, Examined, Outcome, examined
from selfmaint.cross_examine.neighbourhood import TooManyRowsError, fetched, fetched_rows, near, without
from selfmaint.cross_examine.question import Question, Rows
from selfmaint.decide.differing import is_text
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.pairs import given, two_databases
from selfmaint.decide.saturation import saturated
from selfmaint.decide.searched import determined_delta
from selfmaint.decide.unions import deltas_of_unions
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided, Verdict
from selfmaint.engine.protocol import D, Engine
from selfmaint.errors import Code
from selfmaint.maintain import Delta
from selfmaint.warehouse.catalog import Catalog, View

_WITNESSES = 3
"""So many witnesses of a "no" are tried for two databases."""

_LOG = logging.getLogger(__name__)


class CrossExamined(Struct, Generic[D], frozen=True):
    """What came of it.

    Attributes:
        deltas: the changes that were examined, of views and branches with a "yes".
    """

    views: Mapping[str, Examined] = field(default_factory=dict)
    deltas: Mapping[str, Delta[D]] = field(default_factory=dict)

    @property
    def contradicted(self) -> Mapping[str, Examined]:
        """Those that are defects."""
        return {name: its for name, its in self.views.items() if its.outcome is Outcome.CONTRADICTS}

    def less(self, verdicts: Mapping[str, Verdict], whole: Mapping[str, str]) -> dict[str, Verdict]:
        """The verdicts; of those that are contradicted nothing is left, nor of those that rest on them."""
        lost = dict(self.contradicted)
        found = dict(verdicts)
        for name, verdict in verdicts.items():
            over = getattr(verdict, "over", ())
            at = next((lost[n] for n in (whole.get(name, name), *over) if n in lost), None)
            if at is not None:
                lost[name] = at
                reason = f"cross-examination contradicts the verdict on `{at.view}` (SM801)"
                found[name] = Undecided(name, (reason,), semantics=verdict.semantics, is_cut=True)
        return found


def cross_examined(
    warehouse: Warehouse[D],
    update: Update[D],
    known: Knowledge[D],
    found: Mapping[str, Verdict],
    verdicts: Mapping[str, Verdict],
    asked_for: CrossExamination | Literal[True],
) -> CrossExamined[D]:
    """Examines verdicts, and tells of those that are contradicted (SM801).

    `found` has the branches of unions apart, `verdicts` are those that were asked for.
    """
    budget = CrossExamination() if asked_for is True else asked_for
    engine, catalog = warehouse.engine, _evaluated(warehouse.catalog)
    facts, situation = warehouse.given(update)
    stored = {view.name for view in catalog.views}
    deltas = _deltas(warehouse, known, found, verdicts)
    texts = {view.name for view in warehouse.catalog.views} - {view.name for view in catalog.views}
    texts -= warehouse.catalog.outer.keys()
    apart = _of_sides(warehouse.catalog, found, verdicts)
    skipped = {name: _skipped(its, texts) for name, its in apart.items()}
    asked = [view for view in catalog.views if skipped.get(view.name, "not asked for") is None]
    none = {n: Examined(n, Outcome.NOT_EXAMINED, why) for n, why in skipped.items() if why is not None}
    if not asked:
        return CrossExamined(_of_wholes(warehouse.catalog, none, verdicts), deltas)
    whole = deltas_of_unions(warehouse.catalog.sides_as_views, engine, facts, deltas)
    try:
        rows = near(engine, catalog, facts, situation, budget.rows)
        open_ = frozenset(
            name for name, its in apart.items() if isinstance(its, SelfMaintainable) and its.is_computed
        )
        question = Question(rows.catalog, situation, rows.rows, {}, open_, budget.candidates)
        far = [view for view in asked if view not in rows.catalog.views]
        none |= _all_skipped(far, "its rows may stand twice, and there are too many to count")
        question = _promising(engine, question, [v for v in asked if v not in far], whole, budget.rows)
    except TooManyRowsError as error:
        none |= _all_skipped(asked, str(error))
        return CrossExamined(_of_wholes(warehouse.catalog, none, verdicts), deltas)

    def everything() -> Question | None:
        if rows.is_whole:
            return question
        wanted = {p: d for p, d in facts.relations.items() if p in rows.rows or p.name in stored}
        every = fetched(engine, catalog, wanted, MOST_TO_CONFIRM)
        if every is None:
            return None
        of_all = replace(question, catalog=catalog, rows=every)
        return _promising(engine, of_all, asked, whole, MOST_TO_CONFIRM)

    def certificates(name: str) -> Sequence[tuple[Rows, Rows]]:
        return _certificates(known, apart[name]) if rows.is_whole else ()

    result = {**none, **examined(question, certificates, budget, everything)}
    outcome = CrossExamined[D](_of_wholes(warehouse.catalog, result, verdicts), deltas)
    for one in outcome.contradicted.values():
        _LOG.warning("%s", one.because, extra={"diagnostic": contradiction(one, verdicts[one.view])})
    return outcome


def _of_sides(
    catalog: Catalog, found: Mapping[str, Verdict], verdicts: Mapping[str, Verdict]
) -> dict[str, Verdict]:
    """The verdicts, those on what views with LEFT JOINs are made of in place of these: they are views as any other."""
    parts = {name: catalog.parts(catalog.view(name)) for name in verdicts if name in catalog.outer}
    its = {part.name: found[part.name] for every in parts.values() for part in every}
    return {**{name: verdict for name, verdict in verdicts.items() if name not in parts}, **its}


def _of_wholes(catalog: Catalog, result: Mapping[str, Examined], names: Iterable[str]) -> dict[str, Examined]:
    """What is said of some views: of one with LEFT JOINs the worst of what it is made of."""
    worst_first = [Outcome.CONTRADICTS, Outcome.NOT_EXAMINED, Outcome.AGREES]
    found = {}
    for name in names:
        parts = [part.name for part in catalog.parts(catalog.view(name))] if name in catalog.outer else [name]
        worst = min((result[part] for part in parts), key=lambda one: worst_first.index(one.outcome))
        found[name] = replace(worst, view=name)
    return found


def contradiction(one: Examined, verdict: Verdict) -> Diagnostic:
    """What is to be said of a verdict that is contradicted."""
    where = "its file could not be written" if one.file is None else f"`{one.file}` has all of it"
    return Diagnostic(
        code=Code.CONTRADICTED,
        message=f"the verdict on `{one.view}` was `{verdict.kind.value}`, and that is wrong: {one.because}",
        severity=Severity.WARNING,
        note=f"{where}; the view is taken as undecided",
        hint="this is a defect of selfmaint: send the file, unless its rows must stay with you",
    )


def _evaluated(catalog: Catalog) -> Catalog:
    """The catalog without the views of which only the text is known: no "yes" rests on what they hold.

    It does on rows without a match: of these it is known what they are.
    """
    apart = catalog.sides_as_views
    return without(apart, {v.name for v in apart.views if is_text(v)})


def _skipped(verdict: Verdict, texts: Collection[str]) -> str | None:
    """Why a verdict is not examined; None if it is."""
    if isinstance(verdict, Undecided):
        return "it is undecided"
    if isinstance(verdict, NotSelfMaintainable) and texts:
        return "of some views only the text is known, and these may tell more"
    if verdict.view in texts:
        return "only text is known of it, or of a view that it reads"
    return None


def _all_skipped(views: Sequence[View], why: str) -> dict[str, Examined]:
    return {view.name: Examined(view.name, Outcome.NOT_EXAMINED, why) for view in views}


def _deltas(
    warehouse: Warehouse[D],
    known: Knowledge[D],
    found: Mapping[str, Verdict],
    verdicts: Mapping[str, Verdict],
) -> dict[str, Delta[D]]:
    """The changes of the views with a "yes", by branch; of a union that is computed none, for some have no change."""
    catalog = warehouse.catalog
    unions = catalog.unions.keys() - catalog.outer.keys()

    def is_promised(name: str, its: SelfMaintainable) -> bool:
        view = catalog.whole(name)
        whole = verdicts.get(view)
        is_computed = its.is_computed or (view in unions and getattr(whole, "is_computed", False))
        return isinstance(whole, SelfMaintainable) and not is_computed

    return {
        name: determined_delta(known, its)
        for name, its in found.items()
        if isinstance(its, SelfMaintainable) and is_promised(name, its)
    }


def _promising(
    engine: Engine[D], question: Question, views: Sequence[View], deltas: Mapping[str, Delta[D]], most: int
) -> Question:
    """The question with the states that the changes make of the rows that are looked at."""
    promised: dict[str, frozenset[Row] | None] = {}
    for view in views:
        change = deltas.get(view.name)
        if change is None:
            promised[view.name] = None
            continue
        gained, lost = (
            fetched_rows(engine, rows, most, repeating=may_repeat(view))
            for rows in (change.gained, change.lost)
        )
        if gained is None or lost is None:
            raise TooManyRowsError(f"the change of `{view.name}` has more than {most:,} rows")
        stored, is_counted = question.stored(view), question.keeps_duplicates(view)
        promised[view.name] = _after(stored, gained, lost, is_counted=is_counted)
    return replace(question, promised=promised)


def _after(
    stored: frozenset[Row], gained: Iterable[Row], lost: Iterable[Row], *, is_counted: bool
) -> frozenset[Row]:
    """Some rows of a view after a change."""
    if not is_counted:
        return stored - frozenset(lost) | frozenset(gained)
    copies: Counter[Row] = Counter()
    for rows, sign in ((stored, 1), (gained, 1), (lost, -1)):
        for *row, number in rows:
            assert isinstance(number, int)
            copies[tuple(row)] += sign * number
    return frozenset((*row, number) for row, number in copies.items() if number > 0)


def _certificates(known: Knowledge[D], verdict: Verdict) -> Sequence[tuple[Rows, Rows]]:
    """Two databases that a "no" rests on, if it has some."""
    if not isinstance(verdict, NotSelfMaintainable):
        return ()
    if verdict.databases is not None:
        return [(verdict.databases.first, verdict.databases.second)]
    with suppress(BudgetSpentError), limit(known.decision.budget_s, "finding the two databases of a verdict"):
        at_hand = given(saturated(known))
        for witness in verdict.witnesses[:_WITNESSES] if at_hand is not None else ():
            pair = two_databases(at_hand, witness) if at_hand is not None else None
            if pair is not None:
                return [tuple(pair.database(second, after=False) for second in (False, True))]  # type: ignore[list-item]
    return ()
