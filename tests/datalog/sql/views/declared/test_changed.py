"""Statements that change what is defined, or what SQL means, are no statements to pass over."""

from __future__ import annotations

import pytest

from datalog.diagnostics import Code, ProgramError, Severity
from datalog.sql.views import SqlText, read_sql

BEGUN = "create table s.t (id bigint primary key, a int, b int); create view v as select id, a from s.t;"


@pytest.mark.parametrize(
    "statement",
    [
        "alter view v as select id, b from s.t",
        "ALTER VIEW v RENAME TO w",
        "alter table t add column c int",
        "alter table s.t add columns (c int, d string)",
        "alter table if exists only t add c int",
        "alter table v alter column a type bigint",
        "alter table t change column a z int",
        "alter table t replace columns (id bigint)",
        "alter table `s`.`t` rename column a to z",
        "alter table t rename to u",
        "alter table t drop column b",
        "drop view v",
        "drop table if exists s.t",
        "set spark.sql.ansi.enabled = false",
        "SET spark.sql.timestampType=TIMESTAMP_NTZ",
        "set time zone 'Asia/Tokyo'",
        "set spark.sql.session.timeZone = +09:00",
        "create or replace temporary function Upper(x string) returns string return lower(x)",
        "create function s.`sum` as 'com.example.Sum'",
        "create schema x default collation utf8_lcase",
        "insert into v values (1, 2)",
        "INSERT OVERWRITE TABLE v SELECT 1, 2",
        "insert /* more */ into v by name select 1 as id",
        "with x as (select 1 as a, 2 as b) insert into v select * from x",
        "from s.t insert into v select id, b",
        "delete from v where id = 1",
        "update v set a = 1",
        "merge into v using s.t on v.id = t.id when matched then delete",
        "truncate table v",
        "copy into v from '/files'",
        "load data inpath '/files' into table v",
        "insert into s.t select id, a, b from other",
        "merge into t using other on t.id = other.id when not matched then insert *",
    ],
)
def test_it_is_an_error(statement: str) -> None:
    with pytest.raises(ProgramError) as refused:
        read_sql(f"{BEGUN} {statement};")
    (found,) = refused.value.diagnostics
    assert (found.code, found.severity) == (Code.SQL_SKIPPED, Severity.ERROR)
    assert found.span is not None
    assert found.span.column == len(BEGUN) + 2


@pytest.mark.parametrize(
    "statement",
    [
        "alter table t set tblproperties ('a' = 'b')",
        "alter table t alter column a set default 3",
        "alter table t alter column a comment 'as rename column'",
        "alter table t add partition (a = 3)",
        "alter table t add key ka (a)",
        "alter table t owner to me",
        "alter view other as select 1 as one",
        "drop table u",
        "set spark.sql.ansi.enabled = TRUE",
        "set spark.sql.shuffle.partitions = 4",
        "set time zone 'UTC'",
        "use other",
        "create function area(x int) returns int return x * x",
        "insert into t values (1, 2, 3)",
        "insert into other select id from v",
        "delete from t where id = 1",
        "copy t from stdin",
        "create schema x default collation UTF8_BINARY",
    ],
)
def test_what_changes_nothing_is_passed_over(statement: str) -> None:
    found = read_sql(f"drop view if exists v; {BEGUN} {statement};")
    assert {one.code for one in found.warnings} == {Code.SQL_SKIPPED}
    assert len(found.warnings) == 2


def test_columns_of_partitions_are_columns() -> None:
    text = "create table t (id bigint primary key) partitioned by (day date, `n` int comment 'x'); select * from t"
    (table,) = read_sql(text).declarations[:1]
    assert table.column_names == ("id", "day", "n")
    assert [str(column.type) for column in table.columns] == ["bigint", "date", "int"]
    again = read_sql(
        "create table t (id bigint, day date) using delta partitioned by (day, bucket(3, id)); select * from t"
    )
    assert again.declarations[0].column_names == ("id", "day")


def test_a_view_that_is_written_to_may_be_defined_in_another_text() -> None:
    texts = [
        SqlText("insert into d select 2 as x", "a.sql"),
        SqlText("create table d as select 1 as x", "d.sql"),
    ]
    with pytest.raises(ProgramError, match="a statement `insert` writes rows of `d`, which a query defines"):
        read_sql(texts)


@pytest.mark.parametrize(
    "statement", ["{0} type {1}", "{0} set data type {1}", "{0} type {1} using code::{1}"]
)
@pytest.mark.parametrize("kind", ["string", "decimal(9, 2)", "json"])
def test_the_type_of_a_column_may_be_changed(statement: str, kind: str) -> None:
    """In another text, too, whichever comes first: so a dump need not be edited."""
    texts = [
        SqlText(f"alter table s.t alter column `Code` {statement.format('', kind)}", "a.sql"),
        SqlText(
            "create table s.t (id int primary key, code char(2)); create view v as select id from t", "t.sql"
        ),
    ]
    for order in (texts, texts[::-1]):
        found = read_sql(order)
        assert not found.warnings
        (table,) = found.declarations[:1]
        kinds = {
            one.name: str(one.type) if one.unmodelled is None else one.unmodelled.text
            for one in (*table.columns, *table.unread)
        }
        assert kinds["code"].replace(" ", "") == kind.replace(" ", "")


def test_a_column_whose_type_is_changed_is_there() -> None:
    with pytest.raises(ProgramError, match="`t` has no column `cod`") as refused:
        read_sql(
            "create table t (id int primary key, code char(2)); alter table t alter cod type string; select id from t"
        )
    (found,) = refused.value.diagnostics
    assert "code" in (found.hint or "")
