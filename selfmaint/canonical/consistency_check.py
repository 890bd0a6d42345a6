"""One check that what is given can be: a rule whose rows are the culprits."""

from __future__ import annotations

from dataclasses import dataclass

from datalog.model import Predicate, Rule
from selfmaint.errors import Code


@dataclass(frozen=True, slots=True)
class Check:
    """A rule whose rows contradict something.

    Attributes:
        code: the diagnostic's code.
        subject: the view or base relation that the rows belong to.
        message: what is wrong, without the rows.
        hint: what to do.
        columns: the names of the rows' columns.
        rules: the rules, all with one head.
    """

    code: Code
    subject: str
    message: str
    hint: str
    columns: tuple[str, ...]
    rules: tuple[Rule, ...]

    @property
    def goal(self) -> Predicate:
        """The predicate of the culprits."""
        return self.rules[0].head.predicate
