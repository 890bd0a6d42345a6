"""What views tell of base rows, one of them or several together.

Random warehouses told in parts are held against every database over small domains (`tests/oracle/sql_shapes.py`).
"""

from __future__ import annotations

import pytest

from datalog.syntax import show
from selfmaint.api.file.programs import catalog_of
from selfmaint.canonical import Contribution, contributions, copied
from selfmaint.warehouse.catalog import Catalog

TABLES = """
CREATE TABLE c (id INT PRIMARY KEY, name STRING NOT NULL);
CREATE TABLE o (id INT PRIMARY KEY, c INT NOT NULL REFERENCES c, day DATE, total INT);
CREATE TABLE m (at DOUBLE PRIMARY KEY, x INT, y INT);
CREATE TABLE u (id INT, x INT, y INT);
"""


def views(*queries: str) -> Catalog:
    return catalog_of(TABLES + "".join(f"CREATE VIEW v{i} AS {q};\n" for i, q in enumerate(queries)))


def of_table(catalog: Catalog, name: str) -> list[Contribution]:
    return [its for its in contributions(catalog) if its.rule.head.predicate.name == name]


def stored(its: Contribution) -> list[str]:
    return [one.name for one in its.stored]


def test_views_that_show_a_key_tell_rows_together() -> None:
    catalog = views(
        "SELECT id, day FROM o",
        "SELECT o.id, c.id AS c, c.name FROM o JOIN c ON o.c = c.id",
        "SELECT id, total FROM o",
    )
    (its,) = of_table(catalog, "o")
    assert its.is_copy
    assert stored(its) == ["v0", "v1", "v2"]
    assert show(its.rule) == ("o@known(X0, X1, X2, X3) :- v0(X0, X2), v1(X0, X1, P1_V2), v2(X0, X3).")
    assert copied(catalog).keys() == {"o"}


def test_a_view_that_is_not_needed_is_left_out() -> None:
    catalog = views("SELECT id, day FROM o", "SELECT id FROM o", "SELECT id, c, total FROM o")
    assert [stored(its) for its in of_table(catalog, "o")] == [["v0", "v2"]]


def test_rows_that_pass_a_test_are_told_and_not_all() -> None:
    catalog = views("SELECT id, day FROM o WHERE total > 5", "SELECT id, c, total FROM o")
    (its,) = of_table(catalog, "o")
    assert not its.is_copy
    assert stored(its) == ["v0", "v1"]


def test_a_constant_is_what_a_view_asks_for() -> None:
    catalog = views("SELECT id, day FROM o WHERE c = 1", "SELECT id, total FROM o")
    (its,) = of_table(catalog, "o")
    assert show(its.rule.head) == "o@known(X0, 1, X2, X3)"
    assert not its.is_copy


def test_rows_that_cannot_be_one_tell_nothing_together() -> None:
    assert not of_table(
        views("SELECT id, day FROM o WHERE c = 1", "SELECT id, total FROM o WHERE c = 2"), "o"
    )


@pytest.mark.parametrize(
    "queries",
    [
        ("SELECT id, day FROM o", "SELECT total, c, day FROM o"),  # the key is shown once
        ("SELECT id, day FROM o", "SELECT id, c FROM o"),  # a column is shown nowhere
        ("SELECT at, x FROM m", "SELECT at, y FROM m"),  # 0.0 and -0.0 are equal, and two values
        ("SELECT DISTINCT id, x FROM u", "SELECT DISTINCT id, y FROM u"),  # no key
        ("SELECT id, day, total FROM o", "SELECT id, max(c) AS c FROM o GROUP BY id"),  # c is computed
    ],
)
def test_other_views_tell_nothing_together(queries: tuple[str, ...]) -> None:
    assert not of_table(views(*queries), queries[0].rpartition(" ")[2])


def test_where_one_view_tells_all_others_are_not_asked() -> None:
    catalog = views("SELECT * FROM o", "SELECT id, day FROM o", "SELECT id, c, total FROM o")
    assert [stored(its) for its in of_table(catalog, "o")] == [["v0"]]
