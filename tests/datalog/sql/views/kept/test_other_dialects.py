"""SQL of other dialects: what is said of it, and that what is said can be done."""

from __future__ import annotations

import re

import pytest

from datalog.diagnostics import ProgramError
from datalog.model import NotToRun
from datalog.sql.views import read_sql
from datalog.sql.views.kept.other_dialects import _CALLED, _PARTS
from datalog.sql.views.kept.text_allowed import TEXT_FUNCTIONS

TABLE = "create table r (id int primary key, a int, d date, at timestamp, till timestamp, c string);\n"


def test_whole_numbers_are_divided_otherwise() -> None:
    with pytest.raises(ProgramError) as refused:
        read_sql(f"{TABLE}create view v as select id, a // 7 as b from r;")
    assert refused.value.diagnostics[0].hint == "whole numbers are divided by `a div b`"


@pytest.mark.parametrize("name", ["iff", "strftime", "list", "unnest"])
def test_a_function_of_another_dialect_has_another_name(name: str) -> None:
    (view,) = read_sql(f"{TABLE}create view v as select id, {name}(d) as b from r;").opaque
    assert isinstance(view.query, NotToRun)
    assert view.query.hint == f"Spark's is `{_CALLED[name]}`"


OTHERWISE = {
    "to_char(at, 'YYYY-MM-DD HH24:MI:SS')": ("`to_char`", "`date_format(at, 'yyyy-MM-dd HH:mm:ss')`"),
    "to_char(d, 'DD Mon YY')": ("`to_char`", "`date_format(d, 'dd MMM yy')`"),
    "extract(epoch from (till - at))": ("`epoch`", "`unix_timestamp(till) - unix_timestamp(at)`"),
    "extract(epoch from at) / 60": ("`epoch`", "`unix_timestamp(at)`"),
    "date_part('epoch', till - at)": ("`epoch`", "`unix_timestamp(till) - unix_timestamp(at)`"),
    "DATE_PART('isodow', at)": ("`isodow`", "`weekday(time) + 1`"),
    "at at time zone 'Europe/Berlin'": ("AT TIME ZONE", "`from_utc_timestamp(time, 'zone')`"),
    "c similar to 'a%'": ("SIMILAR TO", "`text rlike"),
    "c ~* 'a'": ("`~*`", "`text rlike '(?i)pattern'`"),
    "c ->> 'a'": ("`->>`", "`get_json_object(text, '$.name')`"),
    "split_part(c, ',', 1)[1]": ("an element of a text", "`split_part(text, ',', 1)`"),
    "age(till, at)": ("the function `age`", "`months_between(a, b)`"),
    "regexp_match(c, 'a')": ("the function `regexp_match`", "`regexp_extract(text, 'pattern', 0)`"),
}


@pytest.mark.parametrize(("value", "said"), OTHERWISE.items(), ids=str)
def test_what_spark_does_not_have_is_said_with_what_to_write(value: str, said: tuple[str, str]) -> None:
    found = read_sql(f"{TABLE}create view v as select id, {value} as b from r;")
    (view,) = found.opaque
    (warning,) = (one for one in found.warnings if one.code.value == "DL402")
    assert warning.span is not None
    assert isinstance(view.query, NotToRun)
    for message, hint in ((warning.message, warning.hint), (view.query.why, view.query.hint)):
        assert said[0] in message
        assert said[1] in (hint or "")


@pytest.mark.parametrize(
    "value",
    [
        "to_char(at, 'yyyy-MM-dd HH:mm:ss')",
        "to_char(a, '999.99MI')",
        "extract(dow from at)",
        "extract(days from (till - at))",
        "get_json_object(c, '$.a')",
        "split(c, ',')[1]",
    ],
)
def test_what_spark_has_is_run(value: str) -> None:
    found = read_sql(f"{TABLE}create view v as select id, {value} as b from r;")
    assert not any(isinstance(view.query, NotToRun) for view in found.opaque)


def test_a_series_in_from_is_no_relation() -> None:
    (view,) = read_sql(
        f"{TABLE}create view v as select id, g.x from r, generate_series(1, 3) as g(x);"
    ).opaque
    assert isinstance(view.query, NotToRun)
    assert view.query.hint == f"Spark's is `{_CALLED['generate_series']}`"


def test_the_first_element_of_a_list_is_another_one() -> None:
    found = read_sql(f"{TABLE}create view v as select id, (string_to_array(c, ','))[1] as b from r;")
    assert any("lists begin at 0 in Spark" in (one.hint or "") for one in found.warnings)


@pytest.mark.parametrize("operator", ["~", "!~"])
def test_patterns_are_asked_for_otherwise(operator: str) -> None:
    with pytest.raises(ProgramError) as refused:
        read_sql(f"{TABLE}create view v as select id from r where c {operator} '^a';")
    assert "text rlike 'pattern'`" in (refused.value.diagnostics[0].hint or "")


def test_what_is_named_instead_may_be_used() -> None:
    said = [*_CALLED.values(), *_PARTS.values(), *(hint for _, hint in OTHERWISE.values())]
    called = {name.lower() for text in said for name in re.findall(r"([\w`]+)\(", text)}
    assert called - {"type", "extract", "`extract"} <= TEXT_FUNCTIONS.union(
        f"`{one}" for one in TEXT_FUNCTIONS
    )
    assert TEXT_FUNCTIONS.isdisjoint(_CALLED)
