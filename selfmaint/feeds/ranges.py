"""The ranges of several feeds: one for all, and for some relations' feeds one of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from selfmaint.errors import Code, input_error
from selfmaint.feeds.positions import Bounds, bounds

End: TypeAlias = str | int | None
"""A position, or None for an open side."""

Ends: TypeAlias = "End | Mapping[str | None, str | int] | Mapping[str, str | int]"
"""One end for all feeds, or by relation; that under None is for all others."""


@dataclass(frozen=True)
class Ranges:
    """Where the feeds of a batch begin and end.

    Attributes:
        after: by relation, the position where the batch before ended; under None that of all others.
        upto: by relation, the position where this batch ends.
    """

    after: Mapping[str | None, str | int]
    upto: Mapping[str | None, str | int]

    def of(self, relation: str | None) -> Bounds:
        """The range of the feed that is of a relation; None: of a feed that says its relations itself.

        >>> ranges({"orders": 17, None: 3}, 20, ["orders", None]).of("orders")
        Bounds(after=(17,), upto=(20,))

        Raises:
            InputError: SM603 what is no position, or an empty range.
        """
        after, upto = (part.get(relation, part.get(None)) for part in (self.after, self.upto))
        return bounds(after, upto)


def ranges(after: Ends, upto: Ends, feeds: Iterable[str | None]) -> Ranges:
    """The ranges that are said for some feeds.

    Args:
        after: where they begin.
        upto: where they end.
        feeds: the relation of each feed; None for one that says its relations itself.

    Raises:
        InputError: SM102 an end of a relation that has no feed of its own; SM603 what is no position, or an empty
            range.
    """
    known = list(feeds)
    found = Ranges(by_relation(after), by_relation(upto))
    for name in (*found.after, *found.upto):
        if name is not None and name not in known:
            raise input_error(
                Code.UNKNOWN_RELATION,
                f"a position is given for `{name}`, which has no feed of its own",
                hint="a feed that holds several relations has one position: give it without a relation",
            )
    for name in known:
        found.of(name)
    return found


def by_relation(ends: Ends) -> dict[str | None, str | int]:
    """Ends by relation; under None that of all others."""
    if isinstance(ends, Mapping):
        return dict(ends.items())
    return {} if ends is None else {None: ends}
