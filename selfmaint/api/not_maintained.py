"""Views whose new state is not to be had, and the error that says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datalog.diagnostics import Diagnostic
from selfmaint.decide.verdict import Verdict, Verdicts
from selfmaint.errors import SelfmaintError
from selfmaint.warehouse.catalog import GroupedView, View
from selfmaint.warehouse.situation import Situation


class NotMaintainedError(SelfmaintError):
    """A view's new state is not determined by what may be read; nothing was changed.

    `verdicts` holds the verdicts before any read.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], verdicts: Mapping[str, Verdict]) -> None:
        super().__init__(diagnostics)
        self.verdicts = Verdicts(verdicts)


def uncountable(views: Sequence[View], situation: Situation) -> list[View]:
    """The views that group over what an update changes of which it is not known whether its rows were there before."""
    changed = situation.inserted | situation.deleted
    if situation.effective:
        return []
    return [
        v for v in views if isinstance(v, GroupedView) and changed & {a.predicate.name for a in v.core.body}
    ]
