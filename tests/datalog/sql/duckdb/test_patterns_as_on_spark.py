"""Regular expressions: what DuckDB and the reference evaluator give is what Spark, of which they are, gives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from sqlglot import exp

from datalog.evaluate.strings import STRINGS
from datalog.model import ColumnType, TypeName
from datalog.model.patterns import known_pattern, pattern_of_group, replaced
from datalog.sql.duckdb.patterns import PATTERNS_OF
from datalog.sql.duckdb.types import OTHERWISE, UnlikeSparkError
from datalog.sql.views import SqlText, read_sql
from tests.effort import effort
from tests.many_statements import interpreting_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TEXT, INT = ColumnType(TypeName.STRING), ColumnType(TypeName.INT)
LETTERS = "aAbBzZ09_ -.\n\r\u0085\u2028é€\U0001d4b3kKsS\u212a\u017f\t\x0b\x0c/+"
TEXTS = ["", "a\n", "a\r\n", "\r\n", "\n", "a\n\n", "ab\u2028", "\r\r\n", "\u212a", "aaab", "a b", "0a9"]
REPLACEMENTS = ["", "x", "[$1]", "$2$1", "<$0>", "a/b"]
SINGLE = [*"aAbzkKsS09_ -/]}", "é", "€", "\U0001d4b3", "\u0085", *(rf"\{one}" for one in r".-+/nrt[($\^")]
CLASSES = [".", r"\d", r"\w", r"\s", r"\D", r"\W", r"\S"]
IN_CLASSES = [
    *r"ab._ +*$(",
    "a-z",
    "A-Z",
    "0-9",
    "é-ö",
    "k-s",
    "\u2028",
    *(rf"\{one}" for one in r"dwsSDW.-n]\t"),
]
REPEATED = [*[""] * 8, "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{1,}", "{0,2}?", "{2}?"]
OTHER = re.compile("[\n\r\u0085\u2028\u2029]\\Z|[\u017f\u212a]")
"""Texts that may be an error: with a line terminator at the end, or with what is another letter's case."""


class Maker:
    """Makes random patterns."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def choice(self, depth: int) -> str:
        return "|".join(self.sequence(depth) for _ in range(self.random.choice([1, 1, 1, 2, 3])))

    def sequence(self, depth: int) -> str:
        number = self.random.choice([1, 1, 2, 2, 3, 0])
        edges = self.random.choice(["", "", "^"]), self.random.choice(["", "", "$"])
        parts = "".join(self.part(depth) + self.random.choice(REPEATED) for _ in range(number))
        return f"{edges[0]}{parts}{edges[1]}"

    def part(self, depth: int) -> str:
        chance = self.random.random()
        if chance < 0.2 and depth:
            return f"{self.random.choice(['(', '(', '(?:'])}{self.choice(depth - 1)})"
        if chance < 0.4:
            inside = "".join(self.random.choice(IN_CLASSES) for _ in range(self.random.randint(1, 3)))
            first, last = (self.random.choice(["", "", "", "-"]) for _ in range(2))
            return f"[{self.random.choice(['', '', '^'])}{first}{inside}{last}]"
        return self.random.choice(CLASSES if chance < 0.55 else SINGLE)


def patterns(random: Random, number: int) -> Iterator[tuple[str, str, int]]:
    """Patterns that are known, each with a replacement and the number of a group."""
    maker = Maker(random)
    while number:
        text = random.choice(["", "", "", "(?i)"]) + maker.choice(2)
        pattern = known_pattern(text)
        if pattern is None:
            continue
        fit = [one for one in REPLACEMENTS if replaced(text, one) is not None]
        numbers = [one for one in range(pattern.groups + 1) if pattern_of_group(text, one) is not None]
        yield text, random.choice(fit or [""]), random.choice(numbers)
        number -= 1


def by_duckdb(texts: list[str], function: str, given: tuple[str | int, ...]) -> dict[str, Any]:
    """The values by text; of those that are an error none."""
    kinds = [
        (exp.Literal.number(one), INT) if isinstance(one, int) else (exp.Literal.string(one), TEXT)
        for one in given
    ]
    value = PATTERNS_OF[function](function, [(exp.column("t"), TEXT), *kinds])
    is_guarded = isinstance(value, exp.Case)
    plain = [one for one in texts if not is_guarded or OTHER.search(one) is None]
    with duckdb.connect() as database:
        found = {}
        for one in (plain, [t for t in texts if t not in plain]):
            database.register("texts", pa.table({"t": pa.array(one, pa.string())}))
            try:
                found |= dict(database.sql(f"select t, {value.sql('duckdb')} from texts").fetchall())
            except duckdb.Error as error:
                if OTHERWISE not in str(error) or one is plain:
                    raise
    return found


@pytest.mark.parametrize("seed", range(effort(1, 20)))
def test_patterns(seed: int, spark: SparkSession) -> None:
    random = Random(seed)
    more = ["".join(random.choice(LETTERS) for _ in range(random.randint(1, 7))) for _ in range(40)]
    texts = list(dict.fromkeys([*TEXTS, *more]))
    given = list(dict.fromkeys(patterns(random, 60)))
    session = interpreting_session(spark)
    for name, rows in (
        ("texts", pa.table({"t": texts})),
        ("patterns", pa.Table.from_pylist([dict(zip("prg", one, strict=True)) for one in given])),
    ):
        session.createDataFrame(rows).coalesce(1).createOrReplaceTempView(name)
    right = session.sql(
        "select p, r, g, t, rlike(t, p) as rlike, regexp_replace(t, p, r) as regexp_replace,"
        " regexp_extract(t, p, cast(g as int)) as regexp_extract from texts cross join patterns"
    )
    its = {(row["p"], row["r"], row["g"], row["t"]): row for row in right.toArrow().to_pylist()}
    assert len(its) == len(given) * len(texts)
    for text, replacement, group in given:
        called = {"rlike": (text,), "regexp_replace": (text, replacement), "regexp_extract": (text, group)}
        if replaced(text, replacement) is None:
            with pytest.raises(UnlikeSparkError):
                by_duckdb(texts, "regexp_replace", called.pop("regexp_replace"))
        for function, arguments in called.items():
            found = by_duckdb(texts, function, arguments)
            for one in texts:
                wanted = its[text, replacement, group, one][function]
                assert found.get(one, wanted) == wanted, (function, arguments, one)
                assert STRINGS[function](one, *arguments) == wanted, (function, arguments, one)


VIEWS = """
create table o (id bigint primary key, phone string, mail string not null);
create view stg as select id, regexp_replace(phone, r'[^\\d+]', '') as phone, regexp_extract(mail, '@(.+)$') as domain,
  mail rlike '^[^@\\\\s]+@' as is_one from o where not regexp_like(mail, '(?i)test') and phone regexp '\\\\d';
"""


def test_views_of_patterns_are_read() -> None:
    found = read_sql([SqlText(VIEWS, "views")])
    assert not found.opaque
    text = str(found.views[0])
    assert all(f"'{name}'" in text for name in ("regexp_replace", "regexp_extract", "rlike"))
    assert r"'[^\\d+]'" in text


@pytest.mark.parametrize(
    "call",
    [
        r"mail rlike r'\bfoo'",
        "mail rlike phone",
        "regexp_replace(mail, 'a*', 'b')",
        "regexp_replace(mail, '(a|b)+', '$1')",
        "regexp_replace(mail, '(a)', '$2')",
        "regexp_replace(mail, 'a', 'b', 2)",
        "regexp_extract(mail, '(a)(b)', 3)",
        "regexp_extract(mail, '(?=a)', 0)",
    ],
)
def test_other_patterns_are_left_to_spark(call: str) -> None:
    tables = VIEWS.split("create view", maxsplit=1)[0]
    found = read_sql([SqlText(f"{tables} create view v as select id, {call} as x from o;", "views")])
    assert [view.name for view in found.opaque] == ["v"]


def test_the_place_of_an_edge() -> None:
    known = ["^a|b$", "(^a)b", "(?:a|^b$)", "^$", "$"]
    assert all(known_pattern(text) is not None for text in known)
    assert all(known_pattern(text) is None for text in ("a^", "$a", "^^a", "(a^)", "(^a)+", "x*^"))
