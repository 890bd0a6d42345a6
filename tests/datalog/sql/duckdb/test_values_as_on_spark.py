"""Every type, comparison and expression: DuckDB's answer is Spark's, or it is refused."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING

import pytest

from datalog.model import ColumnType, Predicate, Row, TypeName, Value, ViewDefinition, WallClock
from datalog.sql.views import SqlText, read_sql
from datalog.syntax import parse_program
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.protocol import Facts
from selfmaint.errors import Code, InputError
from selfmaint.store.expected import Expected

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from selfmaint.spark import SparkEngine

NAN, INFINITY = math.nan, math.inf
COLUMNS: dict[str, tuple[str, list[Value]]] = {
    "b": ("boolean", [True, False, None, True, False, True, True]),
    "i1": ("tinyint", [1, -5, None, 127, 0, 2, -128]),
    "i2": ("smallint", [1, -5, 300, None, 0, 2, -32768]),
    "i4": ("int", [1, -5, 300, 2_000_000_000, None, 2, 0]),
    "i8": ("bigint", [1, -5, 300, 2**53 + 1, -(2**62), None, 0]),
    "d": ("double", [1.0, -5.0, NAN, -0.0, INFINITY, 2.5, None]),
    "f": ("float", [1.0, -5.0, NAN, 0.0, None, 2.5, -0.0]),
    "p": (
        "decimal(9,2)",
        [*map(Decimal, ("1.00", "-5.00", "2.50", "0.01", "9999999.99")), None, Decimal("-2.55")],
    ),
    "q": (
        "decimal(30,12)",
        [*map(Decimal, ("1", "-5", "2.5", "0.000000000001", "-123456789012345.678")), None, 0],
    ),
    "s": ("string", ["1", "abc", "", "B c ", "a%_\\", None, "it's \0 \n ${x}"]),
    "u": ("string", ["ß", "\U0001f600x", "e\u0301", "\uff21", None, "\uffff", "  x "]),
    "e": (
        "date",
        [dt.date(2024, 2, 29), dt.date(1, 1, 1), None, dt.date(9999, 12, 31), dt.date(1582, 10, 15)],
    ),
    "m": ("timestamp", [dt.datetime(2024, 2, 29), dt.datetime(1969, 12, 31, 23, 59, 59, 999999), None]),
    "w": ("timestamp_ntz", [WallClock(2024, 2, 29), WallClock(1969, 12, 31, 23, 59, 59, 999999), None]),
}
ROWS = 7
T = Predicate("t")


def column_type(kind: str) -> ColumnType:
    name, _, sizes = kind.partition("(")
    return ColumnType(TypeName(name), *(int(n) for n in sizes.rstrip(")").split(",") if sizes))


def types() -> list[ColumnType]:
    return [column_type("int"), *(column_type(kind) for kind, _ in COLUMNS.values())]


def rows() -> list[Row]:
    filled = [(values * ROWS)[:ROWS] if len(values) < ROWS else values for _, values in COLUMNS.values()]
    return [(number, *row) for number, row in enumerate(zip(*filled, strict=True))]


TRIED = [
    ("int", ["1", " -12 ", "1.5", "", "2147483648", "+5", "1e3"]),
    ("bigint", ["9223372036854775808", "1_000", "- 5", "12L", "--5", "007", "abc"]),
    ("decimal(7,2)", ["1", "-1.9", " .5 ", "1.", "123456.78", "abc", ",5"]),
    ("double", ["1e3", "-0", ".5", "abc", "1.25", "x1", ""]),
    ("date", ["2026-01-05", "2026-02-30", "2026-01-05 25:00:00", "2026-01-05T10", " 2026-01-05", "abc", ""]),
    (
        "timestamp",
        ["2026-01-05", "2026-01-05 10:11:12", "now", "2026-01-05T10:11:12.5Z", "", "x", "2026-01-05 10:11"],
    ),
    (
        "timestamp_ntz",
        ["2026-01-05 10:11:12.123456", "2026-01-05 10:11", "epoch", "x", "", "y", "2026-01-05"],
    ),
    ("boolean", ["true", "T", "yes", "0", "no ", "2", "tr"]),
    ("decimal(38,0)", ["9" * 38, f"-{'9' * 38}", "9" * 39, "-0", "12", "x", "+1"]),
    (
        "timestamp",
        [f"2026-01-05 10:11:12{zone}" for zone in ("+18:00", "-18:00", "+17:59", "Z", "-00:30", "", ".5Z")],
    ),
    ("string", [" a", "a ", "", "a", "1", "\t", " "]),
]


def tried(texts: list[str]) -> str:
    return f"case {' '.join(f'when k = {k} then {text!r}' for k, text in enumerate(texts))} end"


CREATE = f"create table t (k int, {', '.join(f'{name} {kind}' for name, (kind, _) in COLUMNS.items())});\n"
NUMBERS = ("i1", "i2", "i4", "i8", "d", "f", "p", "q")

EXPRESSIONS = [
    *(f"-{x}" for x in ("i4", "i8", "d", "f", "p", "q")),
    *(f"{x} {sign} 1" for x in ("i4", "d", "f", "p", "q") for sign in "+-*"),
    *(
        "i2 + i4",
        "i4 + i8 / 2",
        "i8 - 1",
        "i1 * i8",
        "i4 * p",
        "p * p",
        "p * p * p",
        "p + i8",
        "q + p",
        "q - i4",
    ),
    *("1 - p", "p * (1 - p)", "p * (1 - p) * (1 + p)", "d * 3", "d + i4", "d * f", "f + f", "p * d", "q + d"),
    *(
        "i4 / 4",
        "i8 / 7",
        "d / 4",
        "p / 3",
        "p / 7.0",
        "p / coalesce(nullif(i8, 0), 3)",
        "q / 3",
        "q / 0.7",
        "1 / 3.0",
        "i4 / 7.00",
    ),
    *(
        "cast(p as decimal(30,12)) / 3",
        "p / (p * p + 1)",
        "p / 3 / 3",
        "null / 0",
        "cast(null as decimal(9,2)) / 0",
        "-p / 8",
    ),
    *(f"cast({x} as string)" for x in ("b", "i1", "i4", "i8", "p", "q", "s", "e", "m", "w")),
    *(f"cast({x} as double)" for x in (*NUMBERS, "b")),
    *(
        "cast(i1 as bigint)",
        "cast(i4 as decimal(12,2))",
        "cast(p as decimal(9,1))",
        "cast(p as decimal(9,0))",
    ),
    *(
        "cast(p as int)",
        "cast(p as bigint)",
        "cast(q as bigint)",
        "cast(q as decimal(20,3))",
        "cast(b as int)",
    ),
    *(
        "cast(i4 as boolean)",
        "cast(e as timestamp)",
        "cast(m as date)",
        "cast(w as date)",
        "cast(w as timestamp)",
        "cast(m as timestamp_ntz)",
        "cast(e as timestamp_ntz)",
        "cast(i8 as double)",
        "cast(f as double)",
    ),
    *(
        "cast(i4 / 100 as decimal(16,2))",
        "cast(i4 / 1000 as decimal(16,2))",
        "cast(i8 / 7e12 as decimal(9,2))",
    ),
    *("cast(if(abs(d) < 100, d / 40, -0.0) as decimal(5,1))", "cast(i4 / 3e10 as decimal(20,4))"),
    *("cast(if(d < 100, d, 0.0) as int)", "cast(if(d < 100, d * 0.7, -2.5) as bigint)"),
    *(
        "abs(i4)",
        "abs(d)",
        "abs(p)",
        "abs(q)",
        "coalesce(i4, i8, 0)",
        "coalesce(s, u, 'x')",
        "coalesce(p, q)",
    ),
    *("concat(s, u)", "concat(s, i4)", "concat(p, '|', e)", "s || 'x'", "length(s)", "length(u)", "trim(u)"),
    *(
        "greatest(i4, i8)",
        "greatest(d, 1.5)",
        "least(d, f)",
        "greatest(p, q)",
        "least(s, u)",
        "greatest(e, e)",
    ),
    *("lower(s)", "upper(s)", "nullif(i4, 2)", "nullif(p, 1)", "nullif(s, 'abc')", "nullif(d, 0)"),
    *("day(e)", "month(e)", "year(e)", "quarter(e)", "year(m)", "day(m)", "year(w)", "day(w)"),
    *("greatest(w, timestamp_ntz '2000-01-01 00:00:00')", "least(m, timestamp '2000-01-01 00:00:00')"),
    *(
        "md5(s)",
        "sha2(u, 256)",
        "md5(coalesce(s, '_') || '-' || cast(i4 as string))",
        "left(s, 2)",
        "left(u, 1)",
    ),
    *(
        "replace(s, 'b', 'xy')",
        "replace(s, '', 'x')",
        "replace(u, 'x')",
        "replace(s, s, u)",
        "replace(s, u, '')",
    ),
    *(f"{x} % {y}" for x in ("i1", "i2", "i4", "i8") for y in ("3", "-1", "(-2)", "nullif(i4, 0)")),
    *("mod(i8, 7)", "nullif(i4, 0) % nullif(i4, 0)", "null % 0"),
    *(f"{way}({x})" for way in ("ceil", "floor") for x in ("i1", "i8", "p", "q", "p * p", "p / 3")),
    *("substring(s, 2, 2)", "substring(u, 1, 1)", "substring(s, 3)", "substring(s, 1, 0)"),
    *("case when b then i4 else i8 end", "case when d > 1 then p when b then q else 0 end", "if(b, s, null)"),
]
CALLS = [
    *(f"{way}(u)" for way in ("ltrim", "rtrim", "btrim", "reverse", "ascii", "sha1")),
    *(
        f"{way}(s)"
        for way in ("ltrim", "rtrim", "reverse", "ascii", "sha1", "initcap", "isnull", "isnotnull")
    ),
    *(f"{way}({x}, {n})" for way in ("right", "repeat") for x in "su" for n in (0, 1, 3)),
    *(f"{way}({x}, {n}, '\u00e9x')" for way in ("lpad", "rpad") for x in "su" for n in (0, 1, 2, 7)),
    *("lpad(s, 4)", "rpad(u, 4)", "space(2)", "concat(space(0), s)"),
    *("split_part(s, 'b', 1)", "split_part(u, 'x', 2)", "split_part(s, ' ', 9)"),
    *(
        "split_part(s, 'b', -1)",
        "split_part(u, 'x', -2)",
        "split_part(s, ' ', -9)",
        "split_part(s, 'bb', -1)",
    ),
    *("substring_index(s, 'b', -1)", "substring_index(u, 'x', -1)", "substring_index(s, ' ', -1)"),
    *("translate(s, 'abB', 'xy')", "translate(u, '\u0301\U0001f600', 'e')", "translate(s, 'aa', '12')"),
    *(
        "instr(s, 'b')",
        "instr(u, 'x')",
        "instr(s, '')",
        "instr(u, s)",
        "locate('b', s, 2)",
        "locate('', s, 3)",
    ),
    *("position('x' in u)", "locate(s, s, 1)", "locate('c', s, 4)"),
    *(f"{way}({x})" for way in ("sign", "sqrt") for x in ("i1", "i8", "d", "f", "p", "q")),
    *(f"pmod({x}, {y})" for x in ("i1", "i4", "i8") for y in ("3", "-3", "nullif(i4, 0)")),
    *(f"{x} div {y}" for x in ("i1", "i4", "i8") for y in ("2", "(-2)", "nullif(i4, 0)")),
    *("pmod(null, 0)", "null div 0", "isnan(d)", "isnan(f)", "isnan(d + 1)"),
    *(
        "ceil(if(abs(d) < 100, d, null))",
        "floor(if(isnan(d), d, 1.5D))",
        "floor(if(abs(d) < 100, d - 0.5, null))",
    ),
    *(
        "ceil(-0.5D)",
        "floor(9.2233720368547748E18D)",
        "ceil(if(abs(f) < 100, f, null))",
        "floor(-9223372036854775808.0D)",
    ),
    *("make_date(2024, 2, 29)", "make_date(2000 + i1, 1, 1)", "make_date(null, 1, 1)"),
    *(f"{way}({x})" for way in ("unix_timestamp",) for x in "emw"),
    *("unix_seconds(m)", "unix_timestamp(timestamp '1969-12-31 23:59:59.5')"),
    *("nvl2(i4, s, u)", "nvl2(d, 1, 2)", "nullifzero(i4)", "nullifzero(p)", "zeroifnull(i8)"),
    *("decode(i4, 1, 'a', null, 'n', 'other')", "decode(s, 'abc', 1)", "decode(i4, 1, i8, -5, 0, i2)"),
    *(
        "concat_ws('-', s, u)",
        "concat_ws('', s, i4, p, e, b)",
        "concat_ws('\u00e9%', u, null, s)",
        "concat_ws('-', null)",
    ),
    *("negative(i4)", "negative(d)", "bigint(i1)", "smallint(i1)", "bigint(p)"),
    *(
        "try_divide(i4, i8)",
        "try_divide(p, i1)",
        "try_divide(d, d)",
        "dayname(e)",
        "dayname(m)",
        "monthname(w)",
    ),
    *("substring_index(s, 'c', 1)", "substring_index(u, 'x', 1)", "split(s, 'b')[0]", "split(u, ' ')[0]"),
    *(
        f"cast(cast({x} as string) as {COLUMNS[x][0]})"
        for x in ("b", "i1", "i2", "i4", "i8", "p", "q", "e", "m", "w")
    ),
    *(
        "cast(concat('  ', cast(i8 as string), ' ') as bigint)",
        "to_date(cast(m as string))",
        "date(cast(w as string))",
    ),
    *(
        *(f"try_cast(if(k = 6, null, s) as {kind})" for kind in ("int", "bigint", "boolean", "tinyint")),
        *(f"try_cast({tried(texts)} as {kind})" for kind, texts in TRIED),
        "cast(if(s = '1', s, null) as double)",
        "cast(cast(q as string) as double)",
        "cast(cast(i1 - i1 + 1 as string) as boolean)",
    ),
]
"""Functions that need more than a name."""
EXPRESSIONS += [*CALLS, "zeroifnull(p)"]
TESTS = [
    *(
        "startswith(s, 'a')",
        "endswith(s, '')",
        "contains(s, '%_')",
        "contains(u, '\u0301')",
        "endswith(s, '\\\\')",
    ),
    *("s ilike 'B%'", "s not ilike '%C %'", "s like any ('a%', '1')", "s not like all ('a%', '1')"),
    *(
        "s like all ('%b%', '%c')",
        "s not like any ('a%', '%c')",
        "equal_null(s, u)",
        "equal_null(i4, 1)",
        "isnan(d)",
    ),
    *("isnull(s)", "isnotnull(i4)", "not isnull(d)"),
]
"""Conditions that are calls, or short for several."""
CONDITIONS = [
    *TESTS,
    *("s like 'a%'", r"s like '%\\%\\_%'", "s like '_'", "u like '_'", "u like '%x%'", "s like ''"),
    *(
        "i4 between 0 and 5",
        "s in ('1', '', 'zz')",
        "not b",
        "b and d > 0",
        "b or d > 0",
        "p is null",
        "d = 1.1",
    ),
]
EXPRESSIONS += [f"case when {one} then 1 when not ({one}) then 2 end" for one in CONDITIONS]

AGGREGATES = [
    *(f"{name}({x})" for name in ("min", "max", "count", "count(distinct") for x in COLUMNS),
    *(f"{name}({x})" for name in ("sum", "avg") for x in ("i1", "i2", "i4", "p", "q")),
    *(
        "sum(distinct p)",
        "avg(distinct i4)",
        "sum(p * (1 - p))",
        "avg(p * p)",
        "sum(d)",
        "count(*)",
        "avg(1.5)",
    ),
    *(
        "stddev(i1)",
        "stddev_samp(p)",
        "stddev_pop(i2)",
        "std(p * 2)",
        "variance(i4)",
        "var_samp(i1)",
        "var_pop(p)",
    ),
    *("sum(i4) / count(*)", "sum(p) / count(p)", "sum(p) * 2 - min(p)", "avg(p) / 3"),
]


def view(query: str) -> ViewDefinition:
    found = read_sql([SqlText(CREATE, "tables"), SqlText(query, "v")])
    assert not found.opaque, (query, found.opaque[0].reasons)
    return found.views[0]


def shown(value: Value) -> str:
    """A value so that what Spark takes for equal is equal: there is one zero."""
    return repr(0.0) if isinstance(value, float) and value == 0 else repr(value)


@pytest.fixture(scope="module")
def duck() -> DuckEngine:
    return DuckEngine(most_few=0)


@pytest.fixture
def engine(spark: SparkSession) -> SparkEngine:
    from selfmaint.spark import SparkEngine

    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    return SparkEngine(spark, near_values=0)


def loaded(engine: DuckEngine | SparkEngine, predicate: Predicate = T) -> Facts:
    return Facts({predicate: engine.load(rows(), ["k", *COLUMNS], types())})


def computed(duck: DuckEngine, queries: dict[str, str]) -> tuple[dict[str, ViewDefinition], list[str]]:
    """The views that DuckDB does not refuse, and the names of those that it does."""
    facts, taken, refused = loaded(duck), {}, []
    for name, query in queries.items():
        definition = view(query)
        try:
            duck.evaluate_view(definition, facts, {T: types()})
        except InputError as error:
            if error.diagnostics[0].code is not Code.ENGINE_DIFFERS:
                raise
            refused.append(name)
        else:
            taken[name] = definition
    return taken, refused


def in_chunks(names: list[str], size: int = 40) -> list[list[str]]:
    return [names[i : i + size] for i in range(0, len(names), size)]


def require_equal(engine: SparkEngine, duck: DuckEngine, names: list[str], query: str) -> None:
    definition = view(query)
    found, expected = (
        sorted(
            one.sample(one.evaluate_view(definition, loaded(one), {T: types()}), 10_000), key=lambda r: r[0]
        )
        for one in (duck, engine)
    )
    assert len(found) == len(expected)
    differing = [
        (name, shown(mine), shown(its))
        for row, right in zip(found, expected, strict=True)
        for name, mine, its in zip(["k", *names], row, right, strict=True)
        if shown(mine) != shown(its)
    ]
    assert differing == []


def test_expressions(engine: SparkEngine, duck: DuckEngine) -> None:
    taken, refused = computed(duck, {e: f"select k, {e} as x from t" for e in EXPRESSIONS})
    assert refused == []
    for names in in_chunks(list(taken)):
        items = ", ".join(f"{e} as x{i}" for i, e in enumerate(names))
        require_equal(engine, duck, names, f"select k, {items} from t")


def test_aggregates(engine: SparkEngine, duck: DuckEngine) -> None:
    every = [e if e.count("(") == e.count(")") else f"{e})" for e in AGGREGATES]
    taken, refused = computed(duck, {e: f"select 1 as k, {e} as x from t" for e in every})
    assert refused == []
    for names in in_chunks(list(taken)):
        items = ", ".join(f"{e} as x{i}" for i, e in enumerate(names))
        require_equal(engine, duck, names, f"select b as k, {items} from t where b is not null group by b")
        require_equal(engine, duck, names, f"select 1 as k, {items} from t where k > 100")


def test_variances_are_near_to_sparks(spark: SparkSession, duck: DuckEngine) -> None:
    """Spark's own, which it computes from row to row, have other last digits."""
    items = [
        f"{name}({x})" for name in ("stddev", "stddev_pop", "variance", "var_pop") for x in ("i1", "i4", "p")
    ]
    query = f"select {', '.join(f'{one} as x{i}' for i, one in enumerate(items))} from t"
    (mine,) = duck.sample(duck.evaluate_view(view(query), loaded(duck), {T: types()}), 9)
    places = [1 + list(COLUMNS).index(name) for name in ("i1", "i4", "p")]
    plain = [tuple(row[place] for place in places) for row in rows()]
    session = spark.newSession()
    session.createDataFrame(plain, "i1 tinyint, i4 int, p decimal(9,2)").createOrReplaceTempView("t")
    (its,) = session.sql(query).collect()
    for name, one, other in zip(items, mine, its, strict=True):
        assert math.isclose(one, other, rel_tol=1e-12), name  # type: ignore[arg-type]


def test_comparisons_of_all_pairs(engine: SparkEngine, duck: DuckEngine) -> None:
    def query(pairs: list[tuple[str, str]]) -> str:
        def item(left: str, right: str) -> str:
            tests = f"case when l.{left} < r.{right} then 1 when l.{left} = r.{right} then 2"
            return f"{tests} when l.{left} > r.{right} then 3 end"

        items = ", ".join(f"{item(*pair)} as x{i}" for i, pair in enumerate(pairs))
        return f"select l.k * 100 + r.k as k, {items} from t l cross join t r"

    groups = [NUMBERS, ("s", "u"), ("b",), ("e",), ("m",), ("w",)]
    pairs = [pair for group in groups for pair in product(group, repeat=2)]
    taken, refused = computed(duck, {" ".join(pair): query([pair]) for pair in pairs})
    assert refused == []
    for names in in_chunks(list(taken)):
        require_equal(engine, duck, names, query([tuple(name.split()) for name in names]))


def test_rules_join_and_compare(engine: SparkEngine, duck: DuckEngine) -> None:
    """Joins of all pairs of types, null and NaN equal to themselves, and what is refused."""
    places = {name: number + 1 for number, name in enumerate(COLUMNS)}
    groups = [NUMBERS, ("s", "u"), ("b",), ("e",), ("m",), ("w",)]
    refused = []
    rules = []
    for number, (left, right) in enumerate(pair for group in groups for pair in product(group, repeat=2)):
        one = [f"_{i}" for i in range(len(places) + 1)]
        other = [f"__{i}" for i in range(len(places) + 1)]
        one[0], other[0], one[places[left]], other[places[right]] = "K", "L", "X", "X"
        rule = f"v({number}, K, L) :- t({', '.join(one)}), t({', '.join(other)})."
        try:
            duck.evaluate(parse_program(rule), Predicate("v"), loaded(duck))
        except InputError as error:
            if error.diagnostics[0].code is not Code.ENGINE_DIFFERS:
                raise
            refused.append(f"{left} {right}")
        else:
            rules.append(rule)
    floats = {"f i4", "f i8", "f p", "f q", "d q"}
    assert set(refused) == floats | {" ".join(reversed(pair.split())) for pair in floats}
    program = parse_program("\n".join(rules))
    found, expected = (
        set(one.sample(one.evaluate(program, Predicate("v"), loaded(one)), 100_000)) for one in (duck, engine)
    )
    assert found == expected


REFUSED = [
    *("cast(s as int)", "cast(s as date)", "cast(d as string)", "cast(d as decimal(30,12))"),
    *(
        "right(s, i4)",
        "lpad(s, 3, '')",
        "split_part(s, u, 1)",
        "split_part(s, 'b', 0)",
        "translate(s, u, 'x')",
    ),
    *("concat_ws('-', d)", "p div 2", "pmod(d, 2)", "sign(s)", "unix_timestamp(s)", "repeat(s, -1)"),
    *("substring(s, 0, 2)", "substring(s, -2)", "substring(s, i4)", "cast(i4 as float)", "q * q * q"),
]


@pytest.mark.parametrize("expression", REFUSED)
def test_what_differs_is_refused_without_spark(expression: str) -> None:
    _, refused = computed(DuckEngine(), {expression: f"select k, {expression} as x from t"})
    assert refused == [expression]


FAILING = ["i4 / 0", "p / 0", "d / 0", "i8 * i8 * 4", "i1 * i1", "cast(i8 as int)", "cast(q as decimal(9,2))"]
FAILING += ["pmod(i4, 0)", "i4 div 0", "ceil(d)", "floor(d * 1e30)", "make_date(2024, 2, 30)"]
FAILING += ["(-9223372036854775807L - 1) div -1"]
FAILING += ["cast(d as int)", "-i1 * 2", "abs(i1)", "sum(9000000000000000000)", "p / (p - p)"]


@pytest.mark.parametrize("expression", FAILING)
def test_what_has_no_value_is_an_error(expression: str, engine: SparkEngine, duck: DuckEngine) -> None:
    definition = view(f"select {expression} as x from t")
    for one in (duck, engine):
        with pytest.raises(InputError, match="a value cannot be computed") as failed:
            one.sample(one.evaluate_view(definition, loaded(one), {T: types()}), 10)
        assert failed.value.diagnostics[0].code is Code.COLUMNS_DIFFER


@pytest.mark.parametrize("rule", ["v(K) :- t(K, X), X > {}.", "v(K) :- t(K, {})."])
def test_a_number_of_more_than_38_digits_is_refused(rule: str, engine: SparkEngine, duck: DuckEngine) -> None:
    program = parse_program(rule.format("9" * 39))
    for one in (duck, engine):
        given = one.load([(1, 2)], ["k", "x"], [ColumnType(TypeName.BIGINT)] * 2)
        with pytest.raises(InputError, match="38") as failed:
            one.sample(one.evaluate(program, Predicate("v"), Facts({T: given})), 10)
        assert failed.value.diagnostics[0].code in (Code.COLUMNS_DIFFER, Code.ENGINE_DIFFERS)


TEXTS: dict[str, tuple[str, str]] = {
    "i1": ("tinyint", "-128 +7 127 0"),
    "i8": ("bigint", "-9223372036854775808 9223372036854775807 007 -0"),
    "d": ("double", "NaN Inf -Inf Infinity -0.0 1e400 1e-400 5. .5 1.7976931348623159e308 4.9E-324 0.1"),
    "f": ("float", "NaN -Inf 1e39 16777217 1.4E-45 -0.0"),
    "p": ("decimal(5,2)", "999.99 9.990 -0.00 .5 5. 1E-2 +1"),
    "q": ("decimal(38,0)", f"{'9' * 38} -{'9' * 38}"),
    "b": ("boolean", "true FALSE"),
    "e": ("date", "0001-01-01 1582-10-10 9999-12-31"),
    "m": (
        "timestamp",
        "0001-01-01T00:00:00 9999-12-31T23:59:59.999999Z 2024-01-01T00:00:00+18:00 2024-01-01",
    ),
    "h": (
        "timestamp",
        "2024-01-01T10:00:00+02 2024-01-01T10:00:00.25-05 2024-01-01T10:00:00+00 2024-01-01T10:00:00-18",
    ),
    "w": ("timestamp_ntz", "0001-01-01T00:00:00 2024-03-31T02:30:00 9999-12-31T23:59:59.999999"),
}
"""Columns of text files, by their declared types."""


def test_text_files_hold_the_same_values(engine: SparkEngine, duck: DuckEngine, tmp_path: Path) -> None:
    """In CSV files, and in JSON lines where JSON has such values: numbers bare, decimals in quotes too."""
    from selfmaint.duckdb.files import read_contents as by_duckdb
    from selfmaint.spark.tables import read_contents as by_spark

    declared = {name: column_type(kind) for name, (kind, _) in TEXTS.items()}
    lines, objects = [",".join(["k", *TEXTS])], []
    cells = {name: texts.split() for name, (_, texts) in TEXTS.items()}
    for number in range(max(map(len, cells.values()))):
        row = {name: its[number] for name, its in cells.items() if number < len(its)}
        lines.append(",".join([str(number), *(row.get(name, "") for name in TEXTS)]))
        objects.append({"k": number, **{n: json_value(declared[n], text) for n, text in row.items()}})
    (tmp_path / "v.csv").write_text("\n".join(lines))
    (tmp_path / "v.jsonl").write_text("\n".join(map(json.dumps, objects)))
    expected = Expected("v", ("k", *TEXTS), (ColumnType(TypeName.INT), *declared.values()))
    for name in ("v.csv", "v.jsonl"):
        here = by_duckdb(duck.database, str(tmp_path / name), expected, declared=True)
        there = by_spark(engine.spark, str(tmp_path / name), expected)
        found = [sorted(map(repr, one)) for one in (duck.sample(here, 99), engine.sample(there, 99))]
        assert found[0] == found[1]
        assert len(found[0]) == len(objects)


def json_value(kind: ColumnType, text: str) -> object:
    """A value of JSON that is written as such a text is, as far as there is one."""
    if kind.name in (TypeName.DOUBLE, TypeName.FLOAT):
        number = float(text)
        return (
            number if math.isfinite(number) else f"{number}".replace("inf", "Infinity").replace("nan", "NaN")
        )
    if kind.name in (TypeName.TINYINT, TypeName.BIGINT):
        return int(text)
    return {"true": True, "FALSE": False}[text] if kind.name is TypeName.BOOLEAN else text


BAD_TEXTS = [("tinyint", "x\n128\n", "v.csv"), ("tinyint", '{"x": 128}\n', "v.jsonl")]
BAD_TEXTS += [("double", "x\n1\nNAN\n", "v.csv"), ("date", '{"x": "infinity"}\n', "v.jsonl")]


@pytest.mark.parametrize(("kind", "text", "name"), BAD_TEXTS)
def test_a_text_that_is_no_value_has_its_place(
    kind: str, text: str, name: str, engine: SparkEngine, tmp_path: Path
) -> None:
    """Of the number 128 of JSON Spark would make the tinyint -128."""
    from selfmaint.spark.tables import read_contents

    (tmp_path / name).write_text(text)
    found = read_contents(engine.spark, str(tmp_path / name), Expected("v", ("x",), (column_type(kind),)))
    with pytest.raises(InputError, match="which cannot hold") as refused:
        engine.sample(found, 9)
    assert refused.value.diagnostics[0].span is not None
