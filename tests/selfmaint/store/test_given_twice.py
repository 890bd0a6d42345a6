"""An update that the views have, or one of them has, and that is given again: a view that shows its keys says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.selfmaint.store.test_lake import PROGRAM, Shop

IN_PART = PROGRAM.replace("select s.id, s.amount, c.id as customer", "select s.id, c.id as customer").replace(
    "create view customers as select id, region", "create view customers as select id"
)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """One whose views show the keys of base rows, and no sale whole."""
    made = Shop(tmp_path)
    (tmp_path / "views.sql").write_text(IN_PART, encoding="utf-8")
    assert made.command("init").status == 0
    return made


def test_a_new_id_does_not_make_it_another_one(shop: Shop) -> None:
    update = shop.update("monday", {"sale": {(9, 1, 1)}}, {})
    assert shop.command("maintain", "--update", update, "--id", "monday").status == 0
    before = shop.stored()
    again = shop.command("maintain", "--update", update, "--id", "again")
    assert again.status == 2
    assert (
        "error[SM303]: rows inserted into `sale` have the key (id) of rows that `lines` shows" in again.stderr
    )
    assert shop.stored() == before


def test_without_an_id_it_is_known(shop: Shop) -> None:
    there, back = (
        shop.update("monday", {"sale": {(9, 1, 1)}}, {}),
        shop.update("tuesday", {}, {"sale": {(9, 1, 1)}}),
    )
    for update in (there, back):
        assert shop.command("maintain", "--update", update).status == 0
    refused = shop.command("maintain", "--update", there)
    assert refused.status == 2
    assert "SM409" in refused.stderr
    assert "if it was sent again, leave it; if its rows come once more" in refused.stderr


@pytest.mark.parametrize("side", ["insert", "delete"])
def test_a_view_brought_in_from_a_source_that_has_it_already(shop: Shop, side: str) -> None:
    changes = ({"sale": {(9, 1, 1)}}, {}) if side == "insert" else ({}, {"sale": {(3, 2, 5)}})
    update = shop.update("waits", *changes)
    assert shop.command("import", "--view", "lines").status == 0
    before = shop.stored()
    refused = shop.command("maintain", "--update", update)
    assert refused.status == 2
    assert "`lines` shows" in refused.stderr if side == "insert" else "`lines` lacks" in refused.stderr
    assert shop.stored() == before
    assert shop.command("import").status == 0
    assert shop.stored()["totals"] == shop.expected()["totals"]
