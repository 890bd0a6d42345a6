"""Upper and lower case: DuckDB's letters are Spark's, or it is an error."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlglot import exp

from datalog.model import ColumnType, Predicate, TypeName
from datalog.sql.duckdb.strings import ALIKE, STRINGS_OF
from datalog.sql.views import SqlText, read_sql
from selfmaint.duckdb import DuckEngine
from selfmaint.engine.protocol import Facts
from selfmaint.errors import Code, InputError
from tests.plain_duckdb import plain_duckdb

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T, TEXT = Predicate("t"), [ColumnType(TypeName.STRING)]
TABLE = SqlText("create table t (u string);", "t")


def cased(function: str, text: str) -> object:
    """What DuckDB's engine gives for one text."""
    engine = DuckEngine(most_few=0)
    given = Facts({T: engine.load([(text,)], ["u"], TEXT)})
    (definition,) = read_sql([TABLE, SqlText(f"select {function}(u) as x from t", "v")]).views
    ((found,),) = engine.sample(engine.evaluate_view(definition, given, {T: TEXT}), 1)
    return found


def test_letters_with_accents() -> None:
    assert cased("upper", "stra\u00dfe") == "STRASSE"
    assert cased("lower", "STRA\u00dfE \u1e9e") == "stra\u00dfe \u00df"
    assert cased("initcap", "gro\u00df STRA\u00dfE") == "Gro\u00df Stra\u00dfe"
    assert cased("initcap", "\u00e9MILE  d'\u00c9tat") == "\u00c9mile  D'\u00e9tat"
    assert cased("upper", "jos\u00e9 \u0142\u00f3d\u017a \u043c\u0438\u0440") == (
        "JOS\u00c9 \u0141\u00d3D\u0179 \u041c\u0418\u0420"
    )
    assert cased("lower", "\u00c4RGER \U0001f600 \u65e5\u672c") == "\u00e4rger \U0001f600 \u65e5\u672c"


@pytest.mark.parametrize(
    ("function", "text"),
    [
        *((function, "\u039f\u0394\u039f\u03a3") for function in ("lower", "initcap")),
        *((function, "\u0130") for function in ("lower", "initcap")),
        *((function, "\u01f0") for function in ("upper", "initcap")),
        ("initcap", "am \u00dfe"),
        *((function, letter) for function in ALIKE for letter in ("\u10d0", "\ufb01")),
    ],
)
def test_letters_of_which_spark_makes_others_are_an_error(function: str, text: str) -> None:
    with pytest.raises(InputError, match=f"`{function}` of a text") as failed:
        cased(function, text)
    assert failed.value.diagnostics[0].code is Code.ENGINE_DIFFERS
    assert "--engine spark" in str(failed.value.diagnostics[0].hint)


def alike(function: str, before: str = "") -> list[str]:
    """All letters of which a function is computed, behind some text."""
    pattern = re.compile(re.sub(r"\\x\{(\w+)\}", lambda its: f"\\U{int(its[1], 16):08x}", ALIKE[function]))
    letters = (chr(number) for number in range(1, 0x110000) if not 0xD800 <= number < 0xE000)
    return [letter for letter in letters if pattern.fullmatch(before + letter)]


def test_the_case_of_all_other_letters_is_sparks(spark: SparkSession, tmp_path: Path) -> None:
    """Alone, between others, and at random beside each other; by either of Spark's libraries."""
    chosen, texts = Random(1), {}
    for function in ALIKE:
        letters = alike(function)
        assert len(letters) > 100_000
        words = ["".join(chosen.choices([*letters[:3000], " "], k=6)) for _ in range(3000)]
        within = [f"a{letter}b" for letter in sorted({*alike(function, "a")} - {*letters})]
        texts[function] = [*words, *within, *(f"{letter} a{letter}b {letter}c" for letter in letters)]
    most = max(map(len, texts.values()))
    columns = {function: [*given, *[None] * (most - len(given))] for function, given in texts.items()}
    pq.write_table(pa.table({"n": range(most), **columns}), tmp_path / "texts.parquet")
    calls = {one: STRINGS_OF[one](one, [(exp.column(one, quoted=True), TEXT[0])]) for one in ALIKE}
    items = ", ".join(f"{call.sql('duckdb')} as made_{one}" for one, call in calls.items())
    with plain_duckdb() as plain:
        found = plain.sql(f"select n, {items} from '{tmp_path}/texts.parquet' order by n").to_arrow_table()
    for library in ("true", "false"):
        spark.conf.set("spark.sql.icu.caseMappings.enabled", library)
        try:
            frame = spark.read.parquet(str(tmp_path / "texts.parquet"))
            right = frame.selectExpr("n", *(f"{one}({one}) as made_{one}" for one in ALIKE)).toArrow()
        finally:
            spark.conf.unset("spark.sql.icu.caseMappings.enabled")
        assert right.sort_by("n").equals(found.cast(right.schema))
