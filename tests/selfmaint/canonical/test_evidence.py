"""Base rows that views show in part, against updates: every database over small domains is tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import pytest

from selfmaint.api.file.programs import catalog_of
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import InputError
from tests.effort import effort
from tests.large_engine import LargeEngine
from tests.oracle.sql_databases import Everything
from tests.oracle.sql_tables import Database, Rows, State, Table, updated

TABLES = (
    Table("patient", ("id", "region"), ("int", "string"), ((1, 2), ("n", "s"))),
    Table(
        "visit",
        ("id", "patient", "fee"),
        ("int", "int", "int"),
        ((1, 2), (None, 1, 2), (0, 1)),
        references=((1, "patient"),),
    ),
)
JOINED = "visit v join patient p on v.patient = p.id"
VIEWS = (
    f"select v.id, p.id as patient, p.region from {JOINED}",
    f"select p.region, count(*) as n, sum(v.fee) as fee from {JOINED} group by p.region",
    f"select distinct p.region, v.patient from {JOINED} where v.fee < 1",
    f"select v.id, p.region from {JOINED}",
    "select distinct patient from visit",
    "select patient, count(*) as n, sum(fee) as fee from visit group by patient",
    "select id from visit where patient = 1",
    "select distinct patient, fee from visit where fee > 0",
    "select id, patient from visit",
    "select patient from visit",
    "select id from patient",
    "select id, fee from visit",
    "select count(*) as n from visit",
    "select id, patient, fee + 1 as more from visit",
    "select id, patient from visit where fee < 1",
    "select distinct a.patient from visit a join visit b on a.patient = b.patient and a.fee < b.fee",
    "select id, region || '!' as label from patient",
    "select distinct 'visit' as kind, patient as id from visit union select 'patient', id from patient",
    "select cast(id as bigint) as id, cast(patient as bigint) as patient from visit",
    "select id, patient, fee + 1 as more from visit union select null, id, 0 from patient",
    "select id, patient, fee + 1 as more from visit union select 2, id, null from patient",
    "select id, patient, fee + 1 as more from visit union select id, null, 0 from patient",
)
TELLING = (
    VIEWS[0],
    "select id, patient, fee + 1 as more from visit",
    "select id, patient from visit",
    "select cast(id as bigint) as id, cast(patient as bigint) as patient from visit",
    "select id, patient, fee + 1 as more from visit union select null, null, fee - fee from visit",
    "select 'a' as kind, id, patient, fee - fee as no from visit union select 'b', id, id, 0 from visit",
)
"""Views that show a visit's key and its patient, though no visit whole."""
LISTING = (
    "select id, region || '!' as label from patient",
    "select id from patient",
    "select id, count(*) as n from patient group by id",
    "select v.id, v.patient, p.id as other, p.region || '!' as label from visit v join patient p on v.id = p.id",
    "select id, region || '!' as label from patient where region < 'p'",
)
"""Views of patients: the first three show which there are."""
ASKED = 160


class World:
    """Some views, and which updates some database explains."""

    def __init__(self, texts: Sequence[str], engine: Any) -> None:
        views = {f"v{i}": text for i, text in enumerate(texts)}
        program = "\n".join(
            [*(t.declared for t in TABLES), *(f"create view {n} as {v};" for n, v in views.items())]
        )
        self.every, self.engine = Everything(TABLES, views), engine
        self.legal = set(self.every.databases)
        self.catalog = catalog_of(program)
        self.counted = {name for name in views if self.catalog.view(name).is_counted}
        self.with_states: dict[tuple[State, ...], list[Database]] = {}
        held = [self.every.held[name] for name in views]
        for database, *states in zip(self.every.databases, *held, strict=True):
            self.with_states.setdefault(tuple(states), []).append(database)

    def warehouse(self, states: Mapping[str, State]) -> Warehouse[Any]:
        rows = {
            name: frozenset((*r, n) if name in self.counted else r for r, n in state)
            for name, state in states.items()
        }
        return Warehouse(self.catalog, self.engine, rows, {}, {}, {})

    def explained(
        self,
        states: Mapping[str, State],
        inserted: Sequence[Rows],
        deleted: Sequence[Rows],
        *,
        effective: bool,
    ) -> bool:
        """Whether a database with these views is legal before and after the update."""
        return any(
            updated(one, inserted, deleted, is_effective=effective) in self.legal
            for one in self.with_states[tuple(states.values())]
        )

    def asked(self, random: Random, sure: float = 0.7) -> tuple[bool, bool]:
        """Whether some database explains a random update, and whether it is refused."""
        database = random.choice(self.every.databases)
        states, effective = self.every.states(database), random.random() < sure
        inserted, deleted = changed(random, database)
        legal = self.explained(states, inserted, deleted, effective=effective)
        sides = (
            {t.name: rows for t, rows in zip(TABLES, side, strict=True) if rows}
            for side in (inserted, deleted)
        )
        warehouse, update = self.warehouse(states), Update(*sides, effective=effective)
        if legal:
            assert len(warehouse.check(update)) == len(states)
        return legal, not legal and is_refused(warehouse, update)


def is_refused(warehouse: Warehouse[Any], update: Update[Any]) -> bool:
    try:
        warehouse.check(update)
    except InputError:
        return True
    return False


def changed(random: Random, database: Database) -> tuple[list[Rows], list[Rows]]:
    """Rows to insert and to delete: some of what is there, perhaps others."""
    inserted, deleted = [], []
    for table, rows in zip(TABLES, database, strict=True):
        old = {row for row in sorted(rows, key=repr) if random.random() < 0.4}
        other = [tuple(map(random.choice, table.domains)) for _ in range(2)]
        old |= {row for row in other[:1] if random.random() < 0.1}
        new = {row for row in [*other, *sorted(old, key=repr)] if random.random() < 0.3} - old
        inserted.append(frozenset(new))
        deleted.append(frozenset(old))
    return inserted, deleted


@pytest.mark.parametrize("engine", [MemoryEngine, LargeEngine])
@pytest.mark.parametrize("seed", range(effort(1, 8)))
def test_an_update_that_some_database_explains_is_never_refused(seed: int, engine: Any) -> None:
    random, found = Random(seed), Counter[tuple[bool, bool]]()
    for _ in range(8):
        world = World(random.sample(VIEWS, 3), engine())
        found.update(world.asked(random) for _ in range(ASKED // 8))
    assert found[True, False] > ASKED // 3
    assert found[False, True] > 4 * found[False, False], found


@pytest.mark.parametrize("seed", range(len(TELLING)))
def test_one_that_none_explains_is_refused_where_a_view_shows_key_and_reference(seed: int) -> None:
    random, found = Random(seed), Counter[tuple[bool, bool]]()
    world = World([TELLING[seed]], MemoryEngine())
    found.update(world.asked(random, sure=1) for _ in range(ASKED))
    assert found[True, False] > ASKED // 4 < found[False, True]
    assert not found[False, False], found


def test_a_row_that_a_view_shows_in_part_is_named_by_its_columns_there() -> None:
    """Not by those of the view, whose count tells nothing."""
    view = "create view v as select patient as of, count(*) as n from visit group by patient;"
    program = "\n".join([*(t.declared for t in TABLES), view])
    here = build(program, {"v": frozenset({(1, 2), (2, 1)})}, MemoryEngine())
    with pytest.raises(InputError) as refused:
        here.check(Update({}, {"patient": frozenset({(1, "n")})}, effective=True))
    assert "as `v` shows: (patient=1)" in str(refused.value)


@pytest.mark.parametrize("view", LISTING)
def test_a_row_that_references_none_of_those_listed_is_refused(view: str) -> None:
    random, found = Random(LISTING.index(view)), Counter[tuple[bool, bool]]()
    world = World([view], MemoryEngine())
    visits = [(1, patient, 0) for patient in (None, 1, 2)]
    for _ in range(ASKED):
        states = world.every.states(random.choice(world.every.databases))
        visit, patient = frozenset({random.choice(visits)}), frozenset({(random.choice((1, 2)), "n")})
        inserted = [frozenset(), visit] if random.random() < 0.5 else [patient, visit]
        legal = world.explained(states, inserted, [frozenset(), frozenset()], effective=True)
        sides = {t.name: rows for t, rows in zip(TABLES, inserted, strict=True) if rows}
        refused = is_refused(world.warehouse(states), Update(sides, effective=True))
        assert not (legal and refused)
        found[legal, refused] += 1
    assert found[True, False]
    if view in LISTING[:3]:
        assert found[False, True] > ASKED // 8, found
        assert not found[False, False], found
