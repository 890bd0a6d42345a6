"""SQL of other dialects: what is said of it, and that what is said can be done."""

from __future__ import annotations

import re

import pytest

from datalog.diagnostics import ProgramError
from datalog.model import NotToRun
from datalog.sql.views import read_sql
from datalog.sql.views.other_dialects import _CALLED
from datalog.sql.views.text_allowed import TEXT_FUNCTIONS

TABLE = "create table r (id int primary key, a int, d date);\n"


def test_whole_numbers_are_divided_otherwise() -> None:
    with pytest.raises(ProgramError) as refused:
        read_sql(f"{TABLE}create view v as select id, a // 7 as b from r;")
    assert refused.value.diagnostics[0].hint == "whole numbers are divided by `a div b`"


@pytest.mark.parametrize("name", ["iff", "strftime", "list", "unnest"])
def test_a_function_of_another_dialect_has_another_name(name: str) -> None:
    (view,) = read_sql(f"{TABLE}create view v as select id, {name}(d) as b from r;").opaque
    assert isinstance(view.query, NotToRun)
    assert view.query.hint == f"Spark's is `{_CALLED[name]}`"


def test_what_is_named_instead_may_be_used() -> None:
    called = {name for text in _CALLED.values() for name in re.findall(r"(\w+)\(", text)}
    assert called - {"type"} <= TEXT_FUNCTIONS
    assert TEXT_FUNCTIONS.isdisjoint(_CALLED)
