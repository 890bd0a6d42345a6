"""The command killed at each of its steps: every transaction is in the views once, whenever it dies."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.follow.shops import POINTS, LoggedShop, Views, Writer, killed, logged_shop

pytestmark = pytest.mark.usefixtures("postgres")


@pytest.fixture
def shop(tmp_path: Path, postgres: str) -> Iterator[LoggedShop]:
    with logged_shop(tmp_path, postgres) as made:
        yield made.made()


def transactions(shop: LoggedShop, writer: Writer, number: int) -> list[Views]:
    """The states of the source, before and after each of some transactions."""
    found = [shop.expected()]
    for _ in range(number):
        writer.transaction()
        found.append(shop.expected())
    return found


@pytest.mark.parametrize("point", POINTS)
def test_whenever_it_is_killed_no_transaction_is_skipped_or_repeated(shop: LoggedShop, point: str) -> None:
    writer = Writer(shop, len(point))
    number = 0
    for at in (1, 2):
        states = transactions(shop, writer, 6)
        start = shop.stored()
        assert start == states[0]
        status = killed(shop, point, at, "--once", "--transactions", "2")
        number += status == -signal.SIGKILL
        assert shop.stored() in states
        assert shop.follow("--once").status == 0
        assert shop.stored() == states[-1]
    writer.close()
    print(f"killed {number} times at `{point}`")
    assert number >= 1


def test_whenever_a_statement_of_it_is_killed_the_views_are_at_one_state(shop: LoggedShop) -> None:
    writer = Writer(shop, 3)
    number = 0
    for at in (15, 45, 75):
        states = transactions(shop, writer, 4)
        number += killed(shop, "statement", at, "--once", "--transactions", "1") == -signal.SIGKILL
        assert shop.stored() in states
        assert shop.follow("--once", "--transactions", "3").status == 0
        assert shop.stored() == states[-1]
    writer.close()
    assert number >= 2


def test_the_slot_stays_until_the_views_have_what_it_keeps(shop: LoggedShop) -> None:
    before = shop.confirmed()
    shop.execute("update shop.sale set amount = 0")
    for point in ("read", "commit"):
        assert killed(shop, point, 1, "--once") == -signal.SIGKILL
        assert shop.confirmed() == before
    assert killed(shop, "committed", 1, "--once") == -signal.SIGKILL
    assert shop.confirmed() == before, "the views have it, and the slot keeps it still"
    assert shop.stored() == shop.expected()
    assert [step["transactions"] for step in shop.steps()] == [0]
    assert shop.confirmed() > before


def test_a_delta_store_that_follows_is_found_whole(tmp_path: Path, postgres: str) -> None:
    """Killed after the second of its tables, and before the row of its journal, which the next command writes."""
    with logged_shop(tmp_path, postgres, kind="delta") as made:
        shop = made.made()
        writer = Writer(shop, 5)
        for point, at in (("merged", 2), ("journal", 1)):
            states = transactions(shop, writer, 3)
            assert killed(shop, point, at, "--once") == -signal.SIGKILL
            assert shop.stored() in states
            assert shop.follow("--once").status == 0
            assert shop.stored() == states[-1]
        writer.close()


def test_the_slot_stays_while_the_catalog_is_lost(shop: LoggedShop) -> None:
    catalog, before = shop.folder / "lake" / "catalog.sqlite", shop.confirmed()
    away = catalog.rename(shop.folder / "away")
    shop.execute("update shop.sale set amount = 1")
    ran = shop.follow("--once")
    assert ran.status == 2
    assert f"error[SM408]: the catalog `{catalog}` of the lake is gone" in ran.stderr
    assert not catalog.exists()
    assert shop.confirmed() == before
    away.rename(catalog)
    assert shop.follow("--once").status == 0
    assert shop.stored() == shop.expected()
