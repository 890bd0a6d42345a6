"""Views whose new state is not to be had, and the error that says so."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from datalog.diagnostics import Diagnostic
from selfmaint.decide.verdict import Undecided, Verdict, Verdicts
from selfmaint.errors import Code, SelfmaintError
from selfmaint.warehouse.catalog import GroupedView, View
from selfmaint.warehouse.situation import Situation

RECOMPUTE = "recompute it from its sources, `--recompute`"
"""The way out where nothing may follow a view."""


class NotMaintainedError(SelfmaintError):
    """A view's new state is not determined by what may be read; nothing was changed.

    `verdicts` holds the verdicts before any read.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], verdicts: Mapping[str, Verdict]) -> None:
        super().__init__(diagnostics)
        self.verdicts = Verdicts(verdicts)

    def without(self, names: Collection[str]) -> NotMaintainedError:
        """The same, with no verdicts on some views."""
        left = {name: one for name, one in self.verdicts.items() if name not in names}
        return NotMaintainedError(self.diagnostics, left)


def uncountable(views: Sequence[View], situation: Situation) -> list[View]:
    """The views that group over what an update changes of which it is not known whether its rows were there before."""
    changed = situation.inserted | situation.deleted
    if situation.effective:
        return []
    return [
        v for v in views if isinstance(v, GroupedView) and changed & {a.predicate.name for a in v.core.body}
    ]


def countable(
    views: Sequence[GroupedView], situation: Situation, verdicts: Mapping[str, Verdict]
) -> Sequence[GroupedView]:
    """The views; refuses an update of which it is not known whether its rows were there before."""
    doubtful = uncountable(views, situation)
    if doubtful:
        raise NotMaintainedError([_uncountable(view) for view in doubtful], verdicts)
    return views


def _uncountable(view: View) -> Diagnostic:
    return not_maintained(
        view,
        f"{'it keeps duplicates' if view.is_counted else 'it groups'}, and the update is not effective",
        "give the net changes, and say `effective = true`: a change feed of a database is effective",
        "a row inserted that was there before, or deleted that was not, would be counted",
    )


def not_maintained(view: View, why: str, hint: str, note: str | None = None) -> Diagnostic:
    """That a view, or the part of one that is decided by itself, cannot be maintained."""
    named = f"`{view.name}`" if view.rule_of is None else f"`{view.rule_of[0]}`, {view.part},"
    message = f"the view {named} cannot be maintained: {why}"
    return Diagnostic(Code.NOT_MAINTAINED, message, note=note, hint=hint)


def not_determined(names: set[str], verdicts: Mapping[str, Verdict], *, strict: bool) -> NotMaintainedError:
    """That the new states of some views are not determined by what may be read."""
    return NotMaintainedError(
        [_unsettled(name, verdicts[name], strict=strict) for name in sorted(names)], verdicts
    )


def _unsettled(name: str, verdict: Verdict, *, strict: bool) -> Diagnostic:
    reason = (
        "and base relations must not be read" if strict else "and no source is given for what would settle it"
    )
    explained = f"`selfmaint explain WAREHOUSE.toml {name}`, with the same update,"
    read = "without `--strict` the rows that settle it are read, where sources are given"
    if isinstance(verdict, Undecided):
        way = read if strict else "give a source for the base relations that it reads"
        return Diagnostic(
            code=Code.NOT_MAINTAINED,
            message=f"the new state of `{name}` is not decided by what is known, {reason}",
            note="; ".join(verdict.because.splitlines()),
            hint=f"{way}; {explained} says more",
        )
    return Diagnostic(
        code=Code.NOT_MAINTAINED,
        message=f"the new state of `{name}` is not determined by what is known, {reason}",
        note="two databases that agree with everything known give the view different new states",
        hint=f"{explained} shows them, and what would settle it{f'; {read}' * strict}",
    )
