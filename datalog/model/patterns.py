r"""Regular expressions of Java, of which Spark's functions are, where they mean the same in other dialects.

    [^0-9]      ^[A-Z]{2}\d+$       (?i)(north|south) (\w+)

They are read to sets of characters, so that each dialect gets what `.`, `\s`, `\d` and `(?i)` are in Java. Source: the
documentation of `java.util.regex.Pattern`. Not read: what looks around or back, boundaries of words, possessive
repetitions, classes in classes, names of classes and groups, `^` and `$` inside, empty alternatives, and repetitions of
what may be empty, of which dialects differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from datalog.model.pattern_trees import (
    Characters,
    Choice,
    Edge,
    Group,
    Node,
    Pattern,
    Range,
    Repeated,
    Sequence,
    has_edges_outside,
    may_be_empty,
    nodes,
    size,
)

_DIGITS: tuple[Range, ...] = ((0x30, 0x39),)
_WORD: tuple[Range, ...] = (*_DIGITS, (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
_BLANKS: tuple[Range, ...] = ((0x09, 0x0D), (0x20, 0x20))
_LINE_ENDS: tuple[Range, ...] = ((0x0A, 0x0A), (0x0D, 0x0D), (0x85, 0x85), (0x2028, 0x2029))
_NAMED = {"d": _DIGITS, "w": _WORD, "s": _BLANKS}
_CONTROLS = {"t": 0x09, "n": 0x0A, "f": 0x0C, "r": 0x0D}
_SPECIAL = frozenset(r"\^$.|?*+()[{")
_MOST_COPIES = 200
"""How large a pattern may become where repetitions are written out."""


class _NotKnownError(Exception):
    """Something that is not read."""


@lru_cache(maxsize=1024)
def known_pattern(text: str) -> Pattern | None:
    r"""A pattern; None of one that is not known.

    >>> known_pattern("[^a-y]")
    Pattern(tree=Characters(ranges=((0, 96), (122, 1114111))), groups=0, repeated=frozenset())
    >>> known_pattern(r"(\w+)@(\w+)").groups
    2
    >>> known_pattern(r"\bword") is known_pattern("(a*)*") is known_pattern("(a") is None
    True
    """
    try:
        reader = _Reader(text)
        tree = reader.whole()
    except (_NotKnownError, RecursionError):
        return None
    repeated = frozenset(
        inner.number
        for node in nodes(tree)
        if isinstance(node, Repeated) and node.most != 1
        for inner in nodes(node.part)
        if isinstance(inner, Group) and inner.number is not None
    )
    is_known = size(tree) <= _MOST_COPIES and has_edges_outside(tree, at_start=True, at_end=True)
    return Pattern(tree, reader.groups, repeated) if is_known else None


def pattern_of_group(text: str, number: int) -> Pattern | None:
    """A pattern that is known, and of which it is certain what a group matches; None of any other."""
    pattern = known_pattern(text)
    return pattern if pattern is not None and pattern.tells({number}) else None


def replaced(text: str, instead: str) -> tuple[Pattern, tuple[str | int, ...]] | None:
    r"""A pattern, and the parts of what each of its matches is replaced by: texts, and numbers of groups.

    None where either is not known, or the pattern matches an empty text: of these dialects find others.

    >>> replaced("(a)(b)", "$2, $1!")[1]
    (2, ', ', 1, '!')
    >>> replaced("a", "$1") is replaced("a", "a\\b") is replaced("a*", "b") is None
    True
    """
    first, *more = instead.split("$")
    found: list[str | int] = [first]
    for one in more:
        if not one or not "0" <= one[0] <= "9" or "0" <= one[1:2] <= "9":
            return None
        found += [int(one[0]), one[1:]]
    pattern = known_pattern(text)
    if pattern is None or pattern.may_be_empty or "\\" in instead:
        return None
    if not pattern.tells({part for part in found if isinstance(part, int)}):
        return None
    return pattern, tuple(part for part in found if part != "")


class _Reader:
    """Reads one pattern from left to right."""

    def __init__(self, text: str) -> None:
        self.ignores_case = text.startswith("(?i)")
        self.text, self.at, self.groups = text, 4 if self.ignores_case else 0, 0

    def whole(self) -> Node:
        tree = self.choice()
        if self.at < len(self.text):
            raise _NotKnownError
        return tree

    def next(self) -> str:
        """The next character; none at the end."""
        return self.text[self.at : self.at + 1]

    def taken(self, wanted: str) -> bool:
        """Whether the next characters are these, which are passed then."""
        found = self.text.startswith(wanted, self.at)
        self.at += len(wanted) if found else 0
        return found

    def take(self) -> str:
        """The next character, which has to be there."""
        found = self.next()
        if not found:
            raise _NotKnownError
        self.at += 1
        return found

    def choice(self) -> Node:
        parts = [self.sequence()]
        while self.taken("|"):
            parts.append(self.sequence())
        return parts[0] if len(parts) == 1 else Choice(tuple(parts))

    def sequence(self) -> Node:
        parts: list[Node] = []
        while self.next() not in ("", "|", ")"):
            parts.append(self.repeated(self.single()))
        if not parts:
            raise _NotKnownError
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def single(self) -> Node:
        one = self.take()
        match one:
            case "^" | "$":
                return Edge(is_start=one == "^")
            case ".":
                return Characters(Characters(_LINE_ENDS).others)
            case "[":
                return self.of_class()
            case "(":
                return self.group()
            case "\\":
                return Characters(self.folded(self.escaped()))
            case _ if one in _SPECIAL:
                raise _NotKnownError
            case _:
                return Characters(self.folded([(ord(one), ord(one))]))

    def group(self) -> Node:
        number = None
        if not self.taken("?:"):
            if self.next() == "?":
                raise _NotKnownError
            self.groups += 1
            number = self.groups
        part = self.choice()
        if self.take() != ")":
            raise _NotKnownError
        return Group(part, number)

    def repeated(self, part: Node) -> Node:
        bounds = self.bounds()
        if bounds is None:
            return part
        if may_be_empty(part):
            raise _NotKnownError
        lazy = self.taken("?")
        if self.next() in ("*", "+", "?", "{"):
            raise _NotKnownError
        return Repeated(part, *bounds, lazy)

    def bounds(self) -> tuple[int, int | None] | None:
        """How often what stands before is repeated; None if it is not."""
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.taken(sign):
                return bounds
        if not self.taken("{"):
            return None
        least = self.number()
        most: int | None = least
        if self.taken(","):
            most = None if self.next() == "}" else self.number()
        if self.take() != "}" or (most is not None and (most < least or most == 0)):
            raise _NotKnownError
        return least, most

    def number(self) -> int:
        start = self.at
        while "0" <= self.next() <= "9":
            self.at += 1
        if not 1 <= self.at - start <= len(str(_MOST_COPIES)):
            raise _NotKnownError
        return int(self.text[start : self.at])

    def escaped(self) -> Iterable[Range]:
        """What a backslash and a character behind it are."""
        one = self.take()
        if one.lower() in _NAMED:
            its = Characters(_NAMED[one.lower()])
            return its.ranges if one.islower() else its.others
        if one in _CONTROLS:
            return [(_CONTROLS[one], _CONTROLS[one])]
        if one.isalnum() or not one.isascii():
            raise _NotKnownError
        return [(ord(one), ord(one))]

    def of_class(self) -> Node:
        """A set in brackets."""
        is_other = self.taken("^")
        found: list[Range] = []
        while not found or self.next() != "]":
            found += self.folded(self.of_class_part(is_first=not found))
        self.at += 1
        its = Characters(_joined(found))
        made = Characters(its.others) if is_other else its
        if not made.ranges:
            raise _NotKnownError
        return made

    def of_class_part(self, *, is_first: bool) -> Iterable[Range]:
        one = self.take()
        if one in ("[", "]", "^", "&") or (one == "-" and not is_first and self.next() != "]"):
            raise _NotKnownError
        first = list(self.escaped()) if one == "\\" else [(ord(one), ord(one))]
        if self.next() != "-" or self.text[self.at + 1 : self.at + 2] == "]":
            return first
        self.at += 1
        last = self.take()
        if len(first) != 1 or first[0][0] != first[0][1] or last in ("[", "]", "^", "&", "-", "\\"):
            raise _NotKnownError
        if ord(last) < first[0][0]:
            raise _NotKnownError
        return [(first[0][0], ord(last))]

    def folded(self, ranges: Iterable[Range]) -> tuple[Range, ...]:
        """Ranges in their order, with the letters of ASCII of the other case if case is ignored."""
        found = list(ranges)
        if self.ignores_case:
            for start, shift in ((0x41, 0x20), (0x61, -0x20)):
                cut = [(max(low, start), min(high, start + 25)) for low, high in found]
                found += [(low + shift, high + shift) for low, high in cut if low <= high]
        return _joined(found)


def _joined(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """Ranges in their order, none of which touches another."""
    found: list[Range] = []
    for low, high in sorted(ranges):
        if found and low <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], high))
        else:
            found.append((low, high))
    return tuple(found)
