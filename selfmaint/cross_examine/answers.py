"""What a search came to, for one view."""

from __future__ import annotations

from dataclasses import dataclass

from selfmaint.cross_examine.question import Rows


@dataclass(frozen=True)
class NothingFound:
    """No database was found on which the new state is another one: among so many candidate rows.

    Attributes:
        view: the view.
        candidates: the number of rows that databases were chosen from.
    """

    view: str
    candidates: int


@dataclass(frozen=True)
class Differing:
    """Databases before the update that explain what is known, and contradict the promised state, or each other.

    Attributes:
        view: the view.
        databases: one whose new state is not the promised one; or two with different new states.
    """

    view: str
    databases: tuple[Rows, ...]


@dataclass(frozen=True)
class NotExamined:
    """Nothing is said.

    Attributes:
        view: the view.
        reason: why, in words.
    """

    view: str
    reason: str


Answer = NothingFound | Differing | NotExamined


def better(one: Answer | None, other: Answer) -> Answer:
    """Of two answers for a view the one that says more; the second of two that say as much.

    >>> better(NothingFound("v", 10), NotExamined("v", "no time"))
    NothingFound(view='v', candidates=10)
    """
    worth = {NotExamined: 0, NothingFound: 1, Differing: 2}
    return one if one is not None and worth[type(one)] > worth[type(other)] else other
