"""Hash values that are computed once: the symbolic side asks for the same deep values again and again."""

from __future__ import annotations

from collections.abc import Hashable


class HashedOnce:
    """A base of frozen dataclasses that hold others; `_hashed` says what of an instance is hashed.

    Equal instances must hash equal parts. The value is not kept where an instance is pickled, for the hashes of strings
    differ from process to process. A dataclass says `__hash__ = HashedOnce.__hash__`, or it makes one of its own.
    """

    __slots__ = ("_hash",)
    _hash: int

    def _hashed(self) -> Hashable:
        raise NotImplementedError

    def __hash__(self) -> int:
        try:
            return self._hash
        except AttributeError:
            value = hash(self._hashed())
            object.__setattr__(self, "_hash", value)
            return value
