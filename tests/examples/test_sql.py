"""The examples of views in SQL: each is read, and is what its source says it is."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest

from datalog.evaluate import evaluate_view
from datalog.model import Predicate, ViewDefinition
from datalog.rewrite import Beyond, MoreThanRules, plain_rules
from datalog.sql.views import SqlText, SqlViews, read_sql
from datalog.syntax import show

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "sql"


def read(name: str) -> SqlViews:
    path = FOLDER / name
    found = read_sql([SqlText(path.read_text(encoding="utf-8"), path.name)])
    assert not found.opaque
    assert not found.warnings
    return found


def shown(view: ViewDefinition) -> str:
    return " ".join(show(view).split("\n", 1)[1].split())


def test_every_file_is_looked_at() -> None:
    assert {path.name for path in FOLDER.glob("*.sql")} == {"cheapest.sql", "orders.sql", "retail.sql"}


def test_the_view_of_a_retailer_is_a_rule_although_it_is_written_as_a_bag() -> None:
    found = read("retail.sql")
    view, bag = found.views
    rules = plain_rules(bag, found.declarations)
    assert isinstance(rules, MoreThanRules)
    assert rules.kind is Beyond.BAG
    assert view.columns == ("custId", "name", "score", "itemNo", "quantity")
    rules = plain_rules(view, found.declarations)
    assert isinstance(rules, tuple)
    assert show(rules[0]) == (
        "valued_sales(CustId, Name, Score, ItemNo, Quantity) :-\n    customer(CustId, Name, _, Score),\n"
        "    sales(CustId, ItemNo, Quantity, _),\n    Quantity != 0,\n    Score = 'High'."
    )


def test_totals_by_nation_group_a_join_of_four_tables() -> None:
    totals, abroad = read("orders.sql").views
    assert shown(totals).startswith("totals_by_nation(N_name, C_mktsegment, count(*), sum(L_extendedprice), ")
    assert [p.name for p in totals.reads] == ["customer", "orders", "lineitem", "nation"]
    assert isinstance(plain_rules(abroad, read("orders.sql").declarations), tuple)
    assert "S_nationkey != C_nationkey" in shown(abroad)


@pytest.mark.parametrize(("costs", "expected"), [([], None), (["2.50", "1.25"], Decimal("1.25"))])
def test_the_cheapest_is_a_minimum_even_of_nothing(costs: list[str], expected: Decimal | None) -> None:
    (view,) = read("cheapest.sql").views
    relations = {
        "region": [(1, "MIDDLE EAST"), (2, "ASIA")],
        "nation": [(1, "EGYPT", 1), (2, "INDIA", 2)],
        "supplier": [(1, "s", 1), (2, "t", 2)],
        "partsupp": [*((n, 1, Decimal(cost)) for n, cost in enumerate(costs)), (9, 2, Decimal("0.01"))],
    }
    bags = {Predicate(name): Counter(rows) for name, rows in relations.items()}
    assert evaluate_view(view, bags) == Counter({(expected,): 1})
