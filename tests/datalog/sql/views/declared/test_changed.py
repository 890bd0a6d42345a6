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
        "alter view v /* x */ as select id, b from s.t",
        "alter materialized view s . v as select id, b from s.t",
        "alter table t modify a int null",
        "alter table t alter a set default 3, alter column b type json",
        "alter table t alter column a type int using a::int, drop column b",
        "alter table t alter column a string",
        "create temporary function /* x */ upper(x string) returns string return x",
        "create aggregate function sum(int) (sfunc = f)",
        "create temporary macro upper(x string) x",
        "set `spark.sql.ansi.enabled` = false",
        "drop materialized view v",
        "execute immediate 'drop view v'",
        "insert into identifier('v') values (1, 2)",
        "alter view identifier('v') as select 1 as id",
        "from s.t insert into other select id insert into table v select id, b",
        "insert or replace into v values (1, 2)",
        "insert v select id, b from s.t",
        "delete v where id = 1",
        "truncate u, v",
        "merge v using s.t on v.id = t.id when matched then delete",
        "copy v from '/files'",
        "insert into t table other",
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
        "alter table t set (autovacuum_enabled = false, fillfactor = 70)",
        "alter table t alter a set (n_distinct = 5), alter column b set statistics 100",
        "alter table t alter column id add generated always as identity (sequence name x start with 1)",
        "alter table t enable row level security",
        "alter table only s.t replica identity full",
        "alter table t set unlogged",
        "alter view v set tblproperties ('as select' = 'rename to x')",
        "drop table u",
        "set spark.sql.ansi.enabled = TRUE",
        "set spark.sql.shuffle.partitions = 4",
        "set time zone 'UTC'",
        "use other",
        "create function area(x int) returns int return x * x",
        "insert into t values (1, 2, 3)",
        "insert into other select id from v",
        "insert into t values (1, 'select from v', 3), (2, \"update v or t\", 3)",
        "update t set a = 'insert into v'",
        "set spark.sql.session.timeZone = Etc/UTC",
        "set time zone '+00:00'",
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


@pytest.mark.parametrize(
    ("statement", "key", "not_null"),
    [
        ("alter table t drop constraint t_pkey", None, False),
        ("alter /* x */ table s . t drop constraint t_pkey", None, False),
        ("alter table t alter column a drop not null", None, False),
        ("alter table t owner to me", ("id",), True),
    ],
)
def test_any_of_several_texts_may_be_the_first(
    statement: str, key: tuple[str, ...] | None, not_null: bool
) -> None:
    table = "create table s.t (id int primary key, a int not null); create view v as select a from t"
    for texts in ([statement, table], [table, statement]):
        (found,) = read_sql([SqlText(text, f"{i}.sql") for i, text in enumerate(texts)]).declarations[:1]
        assert (found.key, found.columns[1].not_null) == (key, not_null)
    with pytest.raises(ProgramError, match="`alter` changes `v`"):
        read_sql([SqlText("alter view v as select 1 as a", "a.sql"), SqlText(table, "b.sql")])


@pytest.mark.parametrize(
    "constraint",
    ["constraint c primary key nonclustered (id)", "constraint c unique nonclustered (id)", "primary key"],
)
def test_keys_that_are_read_wrongly_are_none(constraint: str) -> None:
    found = read_sql(
        f"create table t (id int not null, a int, {constraint}); create view v as select a from t"
    )
    assert (found.declarations[0].key, found.declarations[0].unique) == (None, ())


def test_columns_of_another_table_are_not_lost() -> None:
    with pytest.raises(ProgramError, match="unknown table `t`"):
        read_sql(
            "create table u (x int); create table t (like u including all, b int); create view v as select * from t"
        )


def test_an_unknown_type_is_one_in_an_alter_too() -> None:
    for kind in ("citext", "public.citext", "code"):
        text = "create domain code as character(3); create table t (id int primary key, a text);"
        text = f"{text} alter table t alter a type {kind};"
        found = read_sql(f"{text} create view v as select a, count(*) as n from t group by a")
        assert [one.name for one in found.declarations[0].unread] == ["a"]
        assert not found.views
    found = read_sql(
        'create domain ci as text collate "de_DE"; create table t (id int, a ci); create view v as select a from t'
    )
    assert [one.name for one in found.declarations[0].unread] == ["a"]
