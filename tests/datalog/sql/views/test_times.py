"""Functions of dates and times: what is read, and what is not known or differs from Spark."""

from __future__ import annotations

import datetime as dt

import pytest

from datalog.model import ColumnType, Predicate, TypeName
from datalog.sql.views import SqlText, read_sql
from datalog.sql.views.written_out.as_written import parsed
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.protocol import Facts
from selfmaint.errors import InputError

TABLE = "create table t (k int not null primary key, d date, at timestamp, month string, s string);\n"
T = Predicate("t")
KINDS = [ColumnType(TypeName(name)) for name in ("int", "date", "timestamp", "string", "string")]


@pytest.mark.parametrize(
    "expression",
    [
        *(
            "date_trunc(month, at)",
            "date_trunc(t.month, at)",
            "date_trunc('decade', at)",
            "date_trunc(concat('mon', 'th'), at)",
        ),
        *(
            "date_format(at, month)",
            "date_format(at, 'MMM y')",
            "date_format(at, 'yyyyy')",
            "trunc(d, 'day')",
        ),
        *(
            "extract(second from at)",
            "date_part(month, at)",
            "date_part('second', at)",
            "at + interval 1 day 2 hours",
        ),
        *("d + interval 1 hour", "d + interval '1-2' year to month", "interval 1 day", "d * interval 1 day"),
        *("datediff(dayofyear, d, d)", "to_date(s, 'yyyy')", "date_add(d, interval 1 day)"),
    ],
)
def test_what_is_not_written_out_or_not_known_stays_text(expression: str) -> None:
    found = read_sql([SqlText(TABLE, "tables"), SqlText(f"select k, {expression} as x from t", "v")])
    assert not found.views
    assert found.opaque


def test_a_unit_is_what_is_written() -> None:
    """To sqlglot the unit `month` is the same whether it is a text or a column."""
    texts = ["DATE_TRUNC('month', AT)", "DATE_TRUNC(month, a)", "DATE_FORMAT(a, 'y')", "TRUNC(a, b.c)"]
    assert [parsed(f"select {text}").expressions[0].sql("spark") for text in texts] == texts
    nested = "DATE_FORMAT(DATE_TRUNC(IF(a, 'week', 'day'), b), 'yyyy')"
    assert parsed(f"select {nested}").expressions[0].sql("spark") == nested


@pytest.mark.parametrize("expression", ["cast({} as string)", "concat({}, 'x')", "date_format({}, 'yyyy')"])
@pytest.mark.parametrize("days", [-800_000, 3_000_000])
def test_a_text_of_a_far_year_is_an_error(expression: str, days: int) -> None:
    engine = DuckEngine()
    given = engine.load([(1, dt.date(2026, 1, 1), None, None, None)], ["k", "d", "at", "month", "s"], KINDS)
    query = f"select k, {expression.format(f'date_add(d, {days})')} as x from t"
    (view,) = read_sql([SqlText(TABLE, "tables"), SqlText(query, "v")]).views
    with pytest.raises(InputError, match="year before 1 or after 9999"):
        engine.sample(engine.evaluate_view(view, Facts({T: given}), {T: KINDS}), 1)
