"""Ranges of several feeds of one batch: for all, or by relation."""

from __future__ import annotations

from typing import Any

import pytest

from selfmaint import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import InputError
from selfmaint.feeds.ranges import Ends

PROGRAM = """\
.decl r(id: int) key(id).
.decl s(id: int) key(id).
v(I) :- r(I).  w(I) :- s(I).
"""


def warehouse() -> Warehouse[Any]:
    nothing: frozenset[Any] = frozenset()
    return build(PROGRAM, {"v": nothing, "w": nothing}, MemoryEngine())


def rows(*versions: int) -> list[dict[str, Any]]:
    return [{"id": v, "_change_type": "insert", "_commit_version": v} for v in versions]


def inserted(after: Ends = None, upto: Ends = None) -> dict[str, set[int]]:
    feeds = {"r": rows(1, 2, 3, 4), "s": rows(1, 2, 3, 4)}
    found = Update.from_feed(warehouse(), feeds, after=after, upto=upto)
    return {name: {key for (key,) in part} for name, part in found.inserted.items()}


@pytest.mark.parametrize(
    ("after", "upto", "expected"),
    [
        (2, None, {"r": {3, 4}, "s": {3, 4}}),
        ({"r": 3}, None, {"r": {4}, "s": {1, 2, 3, 4}}),
        ({"r": "3", "s": 1}, 3, {"s": {2, 3}}),
        ({None: 2, "s": 0}, {"s": 1, None: 4}, {"r": {3, 4}, "s": {1}}),
    ],
)
def test_each_feed_has_its_range(after: Ends, upto: Ends, expected: dict[str, set[int]]) -> None:
    assert inserted(after, upto) == expected


def test_a_position_of_no_feed_is_refused() -> None:
    with pytest.raises(InputError, match="SM102"):
        Update.from_feed(warehouse(), {"r": rows(1)}, after={"s": 1})
    with pytest.raises(InputError, match="SM603"):
        Update.from_feed(warehouse(), {"r": rows(1)}, upto={"r": "then"})
    with pytest.raises(InputError, match="is empty"):
        inserted({"r": 3, None: 1}, {None: 3, "r": 2})
