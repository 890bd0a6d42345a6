"""Regular expressions as trees of sets of characters, and how another dialect writes them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from itertools import pairwise
from typing import TypeAlias, assert_never

from msgspec import Struct, field

Range: TypeAlias = tuple[int, int]
"""The first and the last code point."""

_LAST = 0x10FFFF


class Characters(Struct, frozen=True):
    """One character of a set, as ranges of code points in their order."""

    ranges: tuple[Range, ...]

    @property
    def others(self) -> tuple[Range, ...]:
        """All other characters."""
        ends = [(-1, -1), *self.ranges, (_LAST + 1, _LAST + 1)]
        gaps = ((low[1] + 1, high[0] - 1) for low, high in pairwise(ends))
        return tuple((low, high) for low, high in gaps if low <= high)


class Edge(Struct, frozen=True):
    """The start of a text, or its end: before a last line terminator, too."""

    is_start: bool


class Sequence(Struct, frozen=True):
    """One part behind another."""

    parts: tuple[Node, ...]


class Choice(Struct, frozen=True):
    """The first part that leads to a match."""

    parts: tuple[Node, ...]


class Group(Struct, frozen=True):
    """A part in parentheses; one with a number is remembered."""

    part: Node
    number: int | None


class Repeated(Struct, frozen=True):
    """A part so many times: as often as possible, or as seldom if it is `lazy`."""

    part: Node
    least: int
    most: int | None
    lazy: bool


Node: TypeAlias = Characters | Edge | Sequence | Choice | Group | Repeated


class Pattern(Struct, frozen=True):
    """A pattern that is known.

    Attributes:
        groups: how many parts are remembered.
        repeated: those of them that stand in a repetition.
    """

    tree: Node
    groups: int
    repeated: frozenset[int] = field(default_factory=frozenset)

    @property
    def may_be_empty(self) -> bool:
        """Whether it matches an empty text."""
        return may_be_empty(self.tree)

    def tells(self, numbers: Collection[int]) -> bool:
        """Whether it is certain what these groups match: of one that is repeated another match may be remembered."""
        return all(0 <= number <= self.groups and number not in self.repeated for number in numbers)

    @property
    def has_end(self) -> bool:
        """Whether it asks for the end of a text."""
        return any(isinstance(node, Edge) and not node.is_start for node in nodes(self.tree))


def written(tree: Node, character: Callable[[int], str], end: str) -> str:
    r"""A pattern in another dialect: how that writes a character of a code point, and the end of a text.

    >>> dot = Characters(Characters(((10, 10),)).others)
    >>> written(Repeated(Sequence((dot, Edge(False))), 1, None, False), "<{}>".format, r"\z")
    '[^<10>]\\z+'
    """

    def of_set(ranges: Iterable[Range]) -> str:
        ends = (sorted({low, high}) for low, high in ranges)
        return "".join("-".join(map(one, both)) for both in ends)

    def one(code: int) -> str:
        text = chr(code)
        return text if text.isascii() and text.isalnum() else character(code)

    def of(node: Node) -> str:
        match node:
            case Characters(((low, high),)) if low == high:
                return one(low)
            case Characters(ranges):
                others = node.others
                return f"[^{of_set(others)}]" if 0 < len(others) < len(ranges) else f"[{of_set(ranges)}]"
            case Edge(is_start):
                return "^" if is_start else end
            case Sequence(parts):
                return "".join(map(of, parts))
            case Choice(parts):
                return "|".join(map(of, parts))
            case Group(part, number):
                return f"(?:{of(part)})" if number is None else f"({of(part)})"
            case Repeated(part, least, most, lazy):
                bounds = f"{least}," if most is None else f"{least},{most}" if most != least else f"{least}"
                sign = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((least, most), f"{{{bounds}}}")
                return of(part) + sign + "?" * lazy
            case _:
                assert_never(node)

    return of(tree)


def nodes(tree: Node) -> Iterator[Node]:
    """A tree and all in it."""
    yield tree
    match tree:
        case Sequence(parts) | Choice(parts):
            for part in parts:
                yield from nodes(part)
        case Group(part) | Repeated(part):
            yield from nodes(part)


def may_be_empty(tree: Node) -> bool:
    """Whether it matches an empty text."""
    match tree:
        case Characters():
            return False
        case Edge():
            return True
        case Sequence(parts):
            return all(map(may_be_empty, parts))
        case Choice(parts):
            return any(map(may_be_empty, parts))
        case Group(part):
            return may_be_empty(part)
        case Repeated(part, least):
            return least == 0 or may_be_empty(part)
        case _:
            assert_never(tree)


def has_edges_outside(tree: Node, *, at_start: bool, at_end: bool) -> bool:
    """Whether nothing is before a `^` and behind a `$`: DuckDB takes others wrong."""
    match tree:
        case Characters():
            return True
        case Edge(is_start):
            return at_start if is_start else at_end
        case Sequence(parts):
            last = len(parts) - 1
            return all(
                has_edges_outside(part, at_start=at_start and i == 0, at_end=at_end and i == last)
                for i, part in enumerate(parts)
            )
        case Choice(parts):
            return all(has_edges_outside(part, at_start=at_start, at_end=at_end) for part in parts)
        case Group(part):
            return has_edges_outside(part, at_start=at_start, at_end=at_end)
        case Repeated(part):
            return has_edges_outside(part, at_start=False, at_end=False)
        case _:
            assert_never(tree)


def size(tree: Node) -> int:
    """How many nodes there are where repetitions are written out."""
    match tree:
        case Sequence(parts) | Choice(parts):
            return sum(map(size, parts))
        case Group(part):
            return size(part)
        case Repeated(part, least, most):
            return size(part) * max(least + 1, most or 0)
        case _:
            return 1
