"""What queries see of base relations: one case for each construct. That it is right random queries hold elsewhere."""

from __future__ import annotations

import pytest

from datalog.copies import replace
from datalog.model import ANY
from datalog.sql.affected import UnknownShapeError, seen, selection
from datalog.syntax import show
from tests.datalog.sql.affected.test_affected import known, query

CASES = {
    "select a from r where b > 1": ["r(a) c1 > 1"],
    "select count(*) as n from r where b > 1 and c = b": ["r() c1 > 1, c2 = c1"],
    "select a from (select a, b, c from r) as q where c is not null": ["r(a) NOT c2 IS NULL"],
    "with q as (select * from r where c > 1) select b, percentile(a, 0.5) as m from q group by b": [
        "r(a, b) c2 > 1"
    ],
    "select r.a, s.d from r join s on r.b = s.f and s.e > 1 where r.c > 2": [
        "r(a, b) c2 > 2, NOT c1 IS NULL",
        "s(f, d) c2 > 1",
    ],
    "select r.a, s.d from r left join s on r.b = s.f and s.e > 1 and r.c > 2": [
        "r(a, b, c)",
        "s(f, d) c2 > 1",
    ],
    "select r.a from r left join s on r.b = s.f where s.e > 1 and r.c > 2": ["r(a, b) c2 > 2", "s(f, e)"],
    "select r.a from s right join r on r.b = s.f and r.c > 2 where s.e is null": ["r(a, b, c)", "s(f, e)"],
    "select r.a from r full join s on r.b = s.f and s.e > 1 and r.c > 2": ["r(a, b, c)", "s(f, e)"],
    "select a from r full join s on r.b = s.f where r.c > 2": ["r(a, b, c)", "s(f)"],
    "select a from r semi join s on r.b = s.f and s.e > 1 and r.c > 2": [
        "r(a, b) NOT c1 IS NULL, c2 > 2",
        "s(f) c2 > 1",
    ],
    "select a from r anti join s on r.b = s.f and s.e > 1 and r.c > 2": ["r(a, b, c)", "s(f) c2 > 1"],
    "select a from r where exists (select * from s where s.d = r.b and s.e > 1)": [
        "r(a, b)",
        "s(d) NOT c1 IS NULL, c2 > 1",
    ],
    "select a from r where not exists (select 1 from s where s.d = r.b) and c > 1": [
        "r(a, b) c2 > 1",
        "s(d) NOT c1 IS NULL",
    ],
    "select a from r where b in (select d from s where e > 1)": ["r(a, b)", "s(d) c2 > 1"],
    "select a from r where b not in (select d from s) or c > 1": ["r(a, b, c)", "s(d)"],
    "select a, (select max(e) from s where s.d = r.b) as m from r": ["r(a, b)", "s(d, e) NOT c1 IS NULL"],
    "select n from (select b, c, count(distinct a) as n, sum(a) as m from r group by b, c) as q where b > 1": [
        "r(a, b, c) c1 > 1"
    ],
    "select b from (select b, count(*) as n, max(c) as m from r group by b having max(c) > 1) as q": [
        "r(b, c)"
    ],
    "select b, c, count(*) as n from r group by rollup (b, c) having b > 1": ["r(b, c)"],
    "select b, count(*) as n from r group by grouping sets ((b, c), (b)) having b > 1": ["r(b, c) c1 > 1"],
    "select a from (select a, b, c, row_number() over (partition by b order by c) as n from r) as q where b > 1": [
        "r(a) c1 > 1"
    ],
    "select a from (select a, c, row_number() over (partition by b order by c) as n from r) as q where c > 1": [
        "r(a, c)"
    ],
    "select a, n from (select a, c, row_number() over (partition by b order by a) as n from r) as q where c > 1": [
        "r(a, b, c)"
    ],
    "select a from (select distinct a, b from r where c > 1) as q where b > 1": ["r(a, b) c1 > 1, c2 > 1"],
    "select a from (select distinct a, b from r) as q": ["r(a, b)"],
    "select k from (select a as k, b as l from r union all select f, d from s) as q where l > 1": [
        "r(a) c1 > 1",
        "s(f) c1 > 1",
    ],
    "select k from (select a as k, b as l from r union select f, d from s) as q": ["r(a, b)", "s(f, d)"],
    "select k from (select a as k, b as l from r except all select f, d from s) as q where k > 1": [
        "r(a, b) c0 > 1",
        "s(f, d) c0 > 1",
    ],
    "select k from (select a + 1 as k, b as l from r union all select f, d from s) as q where k > 1": [
        "r(a)",
        "s(f)",
    ],
    "select k from (select day as k from o union all select code from o) as q where k > 'a'": [
        "o(day)",
        "o(code)",
    ],
    "select a from (select a, b from r order by b, a limit 2) as q where a > 1": ["r(a, b)"],
    "select a from r order by b limit 2": ["r(a, b, c)"],
    "select x.a, y.c from r x join r y on x.b = y.a where x.c > 1": [
        "r(a, b) c2 > 1, NOT c1 IS NULL",
        "r(a, c)",
    ],
    "select a from r where b > 1 or c > 1": ["r(a) c1 > 1 OR c2 > 1"],
    "select 1 as one from r, s": ["r()", "s()"],
}
"""What is seen of each occurrence: the columns, and what is true of the rows."""


@pytest.mark.parametrize(("text", "expected"), CASES.items(), ids=CASES)
def test_what_is_seen(text: str, expected: list[str]) -> None:
    found = [
        f"{one.table.name}({', '.join(c for i, c in enumerate(one.table.columns) if i in one.columns)}) "
        + ", ".join(test.sql("spark") for test in one.tests)
        for one in seen(query(text))
    ]
    assert sorted(one.strip() for one in found) == sorted(expected)


@pytest.mark.parametrize(
    ("condition", "shown"),
    [
        ("day >= '2025-01-31' and code in ('a', 'it''s')", 0),
        ("price is null or (price <= 1.5 and not code = 'b')", 0),
        ("code between 'a' and 'b' and id <> -1", 0),
        ("code like 'a%' and id > 3", 1),  # no literal says it: what it asks is shown
        ("length(code) = 1", 1),
        ("code = 'a\\\\b'", 1),
        ("code <=> 'a'", 1),
        ("upper(code) = 'A' or id = 2", 2),
    ],
)
def test_conditions_of_single_rows_are_read(condition: str, shown: int) -> None:
    (part,) = seen(query(f"select count(*) as n from o where {condition}"))
    assert not part.columns
    definition = selection(part)
    assert definition is not None
    (block,) = definition.blocks
    names = [name for name in definition.columns if name != "one"]
    assert len(names) == shown, show(definition)
    literals = [*block.core.body[1:], *block.filters]
    assert bool(literals) == (shown == 0 or " and " in condition), show(definition)


def test_a_comparison_that_spark_would_convert_is_read_as_any_other_is() -> None:
    (part,) = seen(query("select id from o where code > 5"))
    found = selection(part)
    assert found is not None
    assert found.columns == ("c0", "c2")
    assert not found.blocks[0].filters
    assert known()["o"].columns[2] == "code"


def test_a_column_of_which_no_type_is_known_is_compared_with_nothing() -> None:
    """Whether a text is converted for it, or the column for the text, depends on the type."""
    (part,) = seen(query("select id from o where code > 'a' and price > 1"))
    types = tuple(
        ANY if name == "code" else kind
        for name, kind in zip(part.table.columns, part.table.types, strict=True)
    )
    found = selection(replace(part, table=replace(part.table, types=types)))
    assert found is not None
    assert found.columns == ("c0", "c2")
    assert found.blocks[0].core.body[1:]


@pytest.mark.parametrize(
    "text",
    [
        "select a, hash(*) as h from r",
        "select count(distinct *) as n from (select b, c from r) as q",
        "select max(struct(* except (c))) as n from r",
        "select a from r where hash(*) > 3",
        "select a, row_number() over (order by struct(*)) as n from r",
        "select b, count(*) as n from r group by b having count(distinct *) > 1",
        "select r.a from r join s on r.b = s.f and hash(*) > 0",
        "select a, (select max(hash(*)) from s where s.d = r.b) as m from r",
    ],
)
def test_all_columns_in_a_call_are_no_shape_that_is_known(text: str) -> None:
    with pytest.raises(UnknownShapeError, match="it has a star in an expression"):
        query(text)
    query(
        "select b, count(*) filter (where b > 1) as n, count(*) over (partition by b) as m from r group by b"
    )
