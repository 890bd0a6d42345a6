"""What the audit says of one view and one kind of change."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from datalog.model import Atom
from selfmaint.audit.example import Example


@dataclass(frozen=True)
class Always:
    """The view is self-maintainable whatever the data, for every such change.

    Attributes:
        tested: how many ways of not being so the rules leave open; each was shown not to occur.
    """

    tested: int = 0


@dataclass(frozen=True)
class Depends:
    """It depends on the data.

    Attributes:
        example: data for which the view is not self-maintainable: the smallest that was found.
        unknown: the facts that may or may not exist in it.
        is_never: whether every inserted row leaves the view in doubt, whatever the data.
    """

    example: Example
    unknown: tuple[Atom, ...]
    is_never: bool = False


@dataclass(frozen=True)
class Unclear:
    """The procedure does not say; to be treated as `Depends`."""

    reasons: tuple[str, ...]


Outcome: TypeAlias = Always | Depends | Unclear


def word(outcome: Outcome) -> str:
    """`always`, `depends`, `never` or `undecided`."""
    match outcome:
        case Always():
            return "always"
        case Depends(is_never=is_never):
            return "never" if is_never else "depends"
        case Unclear():
            return "undecided"
