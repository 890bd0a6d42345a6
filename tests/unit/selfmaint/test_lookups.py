"""Which look-ups are made: each key once, by the column that the rows are in order of, and never beyond the limit."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import pytest

from datalog.model import Predicate, Row
from selfmaint.engine.lookups import Lookups, Near
from selfmaint.engine.memory import MemoryEngine
from selfmaint.engine.protocol import Facts, Layout
from selfmaint.engine.topdown import OutOfReachError

V = Predicate("v")
ROWS = frozenset((n // 2, n, n % 3, f"t{n}", n % 5) for n in range(20))
ALL = tuple(range(5))
MANY = 10**9
Asked = tuple[tuple[int, ...], frozenset[Row], tuple[int, ...]]


class Recording(MemoryEngine):
    """Remembers what was looked up; relations are laid out as it is told."""

    def __init__(self, layout: Layout) -> None:
        self._layout = layout
        self.asked: list[Asked] = []

    def layout(self, data: frozenset[Row]) -> Layout:
        return self._layout

    def look_up(
        self,
        data: frozenset[Row],
        columns: tuple[int, ...],
        keys: Collection[Row],
        wanted: tuple[int, ...],
        limit: int,
        not_null: frozenset[int] = frozenset(),
    ) -> frozenset[Row] | None:
        self.asked.append((columns, frozenset(keys), wanted))
        return super().look_up(data, columns, keys, wanted, limit, not_null)


class Foreseeing:
    """Some keys of every column, and some columns along with every key."""

    def __init__(self, keys: Iterable[Row] = (), columns: Iterable[int] = ()) -> None:
        self._keys = frozenset(keys)
        self._columns = tuple(columns)

    def keys(self, predicate: Predicate, columns: tuple[int, ...]) -> Iterable[Row]:
        return self._keys

    def along(self, predicate: Predicate, columns: tuple[int, ...], wanted: tuple[int, ...]) -> Iterable[int]:
        return self._columns


def near(engine: Recording, limit: int = 100, expected: Foreseeing | None = None) -> Near[frozenset[Row]]:
    return Lookups(engine, limit).over(Facts({V: ROWS}), expected)


def test_a_key_is_asked_for_once() -> None:
    engine = Recording(Layout())
    given = near(engine)
    assert given.look_up(V, (0,), {(1,)}, (1,))[(1,)] == {(2,), (3,)}
    assert given.look_up(V, (0,), {(1,), (2,)}, (1,))[(2,)] == {(4,), (5,)}
    assert engine.asked == [((0,), frozenset({(1,)}), (0, 1)), ((0,), frozenset({(2,)}), (0, 1))]


def test_by_the_column_of_the_order_whole_rows_are_fetched_and_serve_other_questions() -> None:
    engine = Recording(Layout(ordered_by=0))
    given = near(engine)
    given.look_up(V, (0,), {(1,)}, (1,))
    assert given.look_up(V, (0, 1), {(1, 3)}, (3,)) == {(1, 2): {("t2",)}, (1, 3): {("t3",)}}
    assert engine.asked == [((0,), frozenset({(1,)}), ALL)]


def test_where_another_column_finds_few_rows_these_are_fetched_by_the_column_of_the_order() -> None:
    engine = Recording(Layout(rows=MANY, ordered_by=0, spreads={1: MANY, 2: 3}))
    given = near(engine)
    found = given.look_up(V, (1, 2), {(7, 1)}, (0, 3, 4))
    assert found[7, 1] == {(3, "t7", 2)}
    assert engine.asked == [((1,), frozenset({(7,)}), (0, 1)), ((0,), frozenset({(3,)}), ALL)]


def test_a_column_that_finds_many_rows_is_looked_up_with_the_others() -> None:
    engine = Recording(Layout(rows=MANY, ordered_by=0, spreads={2: 3}))
    near(engine).look_up(V, (2, 4), {(1, 2)}, (0, 3))
    assert engine.asked == [((2, 4), frozenset({(1, 2)}), (0, 2, 3, 4))]


def test_expected_keys_and_columns_come_along_if_there_is_room() -> None:
    engine = Recording(Layout(ordered_by=0))
    given = near(engine, expected=Foreseeing(keys={(2,), (3,)}))
    given.look_up(V, (0,), {(1,)}, (1,))
    given.look_up(V, (0,), {(2,), (3,)}, (1,))
    assert engine.asked == [((0,), frozenset({(1,), (2,), (3,)}), ALL)]
    tight = Recording(Layout(ordered_by=0))
    near(tight, 2, Foreseeing(keys={(2,), (3,)})).look_up(V, (0,), {(1,)}, (1,))
    assert [keys for _, keys, _ in tight.asked] == [frozenset({(1,)})]
    unordered = Recording(Layout())
    near(unordered, expected=Foreseeing(keys={(2,), (3,)}, columns=(4,))).look_up(V, (0,), {(1,)}, (1,))
    assert unordered.asked == [((0,), frozenset({(1,)}), (0, 1, 4))]


def test_beyond_the_limit_nothing_is_given() -> None:
    with pytest.raises(OutOfReachError):
        near(Recording(Layout()), 3).look_up(V, (2,), {(1,)}, (1,))
    with pytest.raises(OutOfReachError):
        near(Recording(Layout())).look_up(V, (), {()}, ALL)


def test_what_the_order_finds_too_much_of_is_asked_for_by_all_columns() -> None:
    engine = Recording(Layout(ordered_by=2))
    assert near(engine, 3).look_up(V, (1, 2), {(4, 1)}, (3,)) == {(4, 1): {("t4",)}}
    assert [columns for columns, _, _ in engine.asked] == [(2,), (1, 2)]


def test_few_rows_are_fetched_whole() -> None:
    engine = Recording(Layout(rows=len(ROWS)))
    given = near(engine)
    assert given.is_near(V)
    assert given.look_up(V, (1,), {(4,)}, (3,))[(4,)] == {("t4",)}
    assert engine.asked == []
