"""Functions of texts as Spark has them; a character is a code point."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from functools import lru_cache

from datalog.model import Value
from datalog.model.pattern_trees import Pattern, written
from datalog.model.patterns import known_pattern, pattern_of_group, replaced


def _substring(text: str, position: int, length: int | None = None) -> str:
    """As in Spark: from 1, where 0 is 1 too; a negative position counts from the end."""
    start = position - 1 if position > 0 else len(text) + position if position < 0 else 0
    end = len(text) if length is None else start + length
    return text[max(start, 0) : max(end, 0)] if end > max(start, 0) else ""


def _like(text: str, pattern: str) -> bool:
    r"""`%` any text, `_` any character, `\` before either takes it as it is."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    special = {"%": ".*", "_": "."}
    regex = "".join(special.get(part) or re.escape(part[-1]) for part in parts)
    return re.fullmatch(regex, text, re.DOTALL) is not None


def _sha2(text: str, bits: int) -> str | None:
    name = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return None if name is None else hashlib.new(name, text.encode()).hexdigest()


def _initcap(text: str) -> str:
    return " ".join(f"{word[:1].title()}{word[1:]}" for word in text.lower().split(" "))


def _padded(text: str, length: int, padding: str, *, left: bool) -> str:
    """A text of so many characters: cut, or filled up."""
    if length <= len(text) or not padding:
        return text[: max(length, 0)] if length <= len(text) else text
    more = (padding * length)[: length - len(text)]
    return more + text if left else text + more


def _part(text: str, separator: str, number: int) -> str:
    """A part, from 1, or from the end where the number is negative."""
    parts = text.split(separator) if separator else [text]
    if number == 0:
        raise ValueError
    place = number - 1 if number > 0 else len(parts) + number
    return parts[place] if 0 <= place < len(parts) else ""


def _translated(text: str, old: str, new: str) -> str:
    """Characters in place of others; those that have none go."""
    changes = {one: new[place : place + 1] for place, one in reversed(list(enumerate(old)))}
    return "".join(changes.get(one, one) for one in text)


def _place(sought: str, text: str, start: int = 1) -> int:
    """Where a text stands in another, from 1, at some place or behind it; 0 where it does not."""
    if start < 1 or not sought:
        return int(start >= 1)
    return text.find(sought, start - 1) + 1


_END = r"(?:\Z|(?=\r\n\Z)|(?<!\r)(?=\n\Z)|(?=[\r\u0085\u2028\u2029]\Z))"
"""Where Java finds the end of a text."""


@lru_cache(maxsize=1024)
def _compiled(pattern: Pattern | None) -> re.Pattern[str]:
    if pattern is None:
        raise ValueError
    return re.compile(written(pattern.tree, lambda code: f"\\U{code:08x}", _END))


def _without_matches(text: str, pattern: str, instead: str) -> str:
    known, parts = replaced(pattern, instead) or (None, ())

    def made(found: re.Match[str]) -> str:
        return "".join(part if isinstance(part, str) else found[part] or "" for part in parts)

    return _compiled(known).sub(made, text)


def _match(text: str, pattern: str, group: int) -> str:
    """What a group matches first; an empty text where nothing does."""
    found = _compiled(pattern_of_group(pattern, group)).search(text)
    return found[group] or "" if found else ""


STRINGS: Mapping[str, Callable[..., Value]] = {
    "ascii": lambda text: ord(text[0]) if text else 0,
    "initcap": _initcap,
    "length": len,
    "like": _like,
    "locate": _place,
    "lower": str.lower,
    "lpad": lambda text, length, padding: _padded(text, length, padding, left=True),
    "ltrim": lambda text: text.lstrip(" "),
    "md5": lambda text: hashlib.md5(text.encode(), usedforsecurity=False).hexdigest(),
    "regexp_extract": _match,
    "regexp_replace": _without_matches,
    "repeat": lambda text, times: text * max(times, 0),
    "replace": lambda text, old, new: text.replace(old, new) if old else text,
    "reverse": lambda text: text[::-1],
    "right": lambda text, length: text[-length:] if length > 0 else "",
    "rlike": lambda text, pattern: _compiled(known_pattern(pattern)).search(text) is not None,
    "rpad": lambda text, length, padding: _padded(text, length, padding, left=False),
    "rtrim": lambda text: text.rstrip(" "),
    "sha1": lambda text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(),
    "sha2": _sha2,
    "split_part": _part,
    "substring": _substring,
    "translate": _translated,
    "trim": lambda text: text.strip(" "),
    "upper": str.upper,
}
"""The functions by their names; arguments are never null."""
