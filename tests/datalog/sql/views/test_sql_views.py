"""Views in SQL as definitions: each spelling, what it becomes, and what stays text."""

from __future__ import annotations

import re
from decimal import Decimal

import pytest

from datalog.analysis import united_type
from datalog.analysis.expression_types import expression_type
from datalog.diagnostics import Code, ProgramError
from datalog.model import (
    ANY,
    Cast,
    ColumnType,
    Constant,
    Declaration,
    NotToRun,
    Program,
    Semantics,
    TextQuery,
    TypeName,
    Variable,
    ViewDefinition,
)
from datalog.rewrite import MoreThanRules, plain_rules
from datalog.sql.views import SqlText, SqlViews, read_sql
from datalog.syntax import parse_program, show

TABLES = """
create table customer (id int primary key, name string, region string);
create table sale (id int primary key, customer int not null references customer, price decimal(9,2), day date);
create table log (customer int, note string);
"""


def read(sql: str) -> SqlViews:
    return read_sql(TABLES + sql)


def view(query: str) -> ViewDefinition:
    found = read(f"create view v as {query}")
    assert not found.opaque, found.opaque
    return found.views[-1]


def clauses(query: str) -> list[str]:
    """The definition as it is shown, without its heading."""
    return show(view(query)).replace("\n    ", " ").splitlines()[1:]


JOINED = "v(Name, Price) :- customer(Id, Name, _), sale(_, Id, Price, _)."


@pytest.mark.parametrize(
    "from_",
    [
        "customer c, sale s where c.id = s.customer",
        "customer c join sale s on c.id = s.customer",
        "customer as c inner join sale as s on (s.customer = c.id and true)",
        "customer c cross join sale s where s.customer = c.id",
        "customer join sale on customer.id = sale.customer",
        "(customer c join sale s on c.id = s.customer)",
        "customer c join (select customer as id, price from sale) s using (id)",
        "customer c natural join (select customer as id, price from sale) s",
        "customer c join (select customer, price from sale) as s(who, price) on s.who = c.id",
    ],
)
def test_inner_joins_in_every_spelling_are_one_rule(from_: str) -> None:
    (found,) = clauses(f"select name, price from {from_}")
    # The two columns become one variable, called after whichever comes first.
    assert found.replace("Customer", "Id") == JOINED


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id = 3", "Id = 3"),
        ("3 < id and name <> 'x'", "3 < Id, Name != 'x'"),
        ("not id < 3", "Id >= 3"),
        ("id between 1 and 3", "Id >= 1, Id <= 3"),
        ("name is null", "Name is null"),
        ("not (name is null or id = 1)", "Name is not null, Id != 1"),
        ("id in (1)", "Id = 1"),
        ("id = id", "Id is not null"),
        ("not (id not between 1 and 3)", "Id >= 1, Id <= 3"),
        ("-1 <= id", "-1 <= Id"),
        ('name = "it\'s"', "Name = 'it''s'"),
    ],
)
def test_conjunctive_conditions_are_literals(where: str, expected: str) -> None:
    assert clauses(f"select id, name from customer where {where}") == [
        f"v(Id, Name) :- customer(Id, Name, _), {expected}."
    ]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id in (1, 2)", "any(Id = 1, Id = 2)"),
        ("id = 1 or name is null", "any(Id = 1, Name is null)"),
        ("name like 'a%'", "holds(like(Name, 'a%'))"),
        ("id + 1 > 2", "Id + 1 > 2"),
        ("coalesce(name, '') = ''", "coalesce(Name, '') = ''"),
        ("not name like 'a%'", "not holds(like(Name, 'a%'))"),
    ],
)
def test_other_conditions_are_filters(where: str, expected: str) -> None:
    assert clauses(f"select id, name from customer where {where}") == [
        f"v(Id, Name) :- customer(Id, Name, _) where {expected}."
    ]


def test_dates_are_dates_however_they_are_written() -> None:
    for written in ("date '2024-02-29'", "'2024-02-29'", "cast('2024-02-29' as date)", "date('2024-02-29')"):
        assert clauses(f"select id from sale where day >= {written}") == [
            "v(Id) :- sale(Id, _, _, Day), Day >= date '2024-02-29'."
        ]


def test_columns_of_different_types_stay_two_variables() -> None:
    assert clauses("select c.id from customer c join sale s on c.id = s.price") == [
        "v(Id) :- customer(Id, _, _), sale(_, _, Price, _), Id = Price."
    ]


def test_stars_names_and_aliases() -> None:
    assert view("select * from customer natural join (select id, day from sale)").columns == (
        *("id", "name", "region", "day"),
    )
    assert view("select c.*, s.price as p from customer c, sale s").columns == ("id", "name", "region", "p")
    assert view("select ID as one, customer.Name from Customer").columns == ("one", "Name")
    assert view("select min(price) from sale s").columns == ("min(price)",)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "select region, count(*) n, sum(id * 2) t from customer group by region having count(*) > 1",
            "v(Region, count(*), sum(Id * 2)) :- customer(Id, _, Region) having count(*) > 1.",
        ),
        ("select count(distinct name) n from customer", "v(count(distinct Name)) :- customer(_, Name, _)."),
        (
            "select count(*) n from customer group by 1 + id",
            "v(count(*)) :- customer(Id, _, _) group 1 + Id.",
        ),
        (
            "select upper(name) u, max(id) m from customer group by u",
            "v(upper(Name), max(Id)) :- customer(Id, Name, _).",
        ),
        ("select name from customer group by name", "v(Name) :- customer(_, Name, _) group Name."),
        (
            "select n * 2 as d from (select region, count(*) as n from customer group by region) x where n > 1",
            "v(count(*) * 2) :- customer(_, _, Region) group Region having count(*) > 1.",
        ),
    ],
)
def test_grouping(query: str, expected: str) -> None:
    assert [" ".join(clauses(query))] == [expected]


def test_derived_tables_common_table_expressions_and_views_are_unfolded() -> None:
    sql = """create temporary view north as select * from customer where region = 'n';
             create view sales as select s.id, n.name, price from north n join sale s on s.customer = n.id;
             create view v as with big as (select * from sales where price > 100)
                              select b.id, name from big b, (select 1 as one) o where o.one = 1;"""
    found = read(sql)
    assert [one.name for one in found.views] == ["sales", "v"]
    assert show(found.views[1]).replace("\n    ", " ").splitlines()[1] == (
        "v(Id_2, Name) :- customer(Customer, Name, Region), Region = 'n', sale(Id_2, Customer, Price, _), "
        "Price > 100, 1 = 1."
    )
    assert {p.name for p in found.views[1].reads} == {"customer", "sale"}


@pytest.mark.parametrize(
    ("query", "reads"),
    [
        ("select name, t from customer join per on per.customer = customer.id", {"customer", "sale"}),
        ("select t, count(*) as n from per group by t", {"per"}),  # of views alone it is computed
        ("select note, t from log join per on per.customer = log.customer", {"log", "per"}),  # without a key
    ],
)
def test_stored_groups_are_unfolded_where_they_are_joined_by_keys_with_tables(
    query: str, reads: set[str]
) -> None:
    per = "create view per as select customer, sum(price) t from sale group by customer;"
    assert {p.name for p in read(f"{per} create view v as {query}").views[1].reads} == reads


@pytest.mark.parametrize(
    ("query", "reads"),
    [
        ("select name, count(distinct price) as n from named group by name", {"named"}),
        ("select name, sum(distinct price) as n, count(*) as k from named group by name", {"named"}),
        ("select name, count(price) as n from named group by name", {"customer", "sale"}),  # is decided
        (
            "select region, count(distinct price) as n from named join log on note = name group by region",
            set(),
        ),
    ],
)
def test_rows_of_views_are_read_where_equal_values_count_once(query: str, reads: set[str]) -> None:
    named = "create view named as select s.id, name, region, price from customer c join sale s on s.customer = c.id;"
    found = read(f"{named} create view v as {query}").views[1].reads
    assert {p.name for p in found} == (reads or {"customer", "sale", "log"})


def test_stored_groups_are_unfolded_under_a_left_join_too() -> None:
    found = read(
        "create view per as select customer, count(*) as t from sale group by customer;"
        "create view v as select customer.id, name, t from customer left join per on per.customer = customer.id"
    )
    outer = found.opaque[0].outer
    assert outer is not None
    assert [{p.name for p in part.reads} for part, _ in outer.parts] == [{"customer"}, {"customer", "sale"}]


def test_unions_and_distinct() -> None:
    assert view("select id from customer union all select id from sale").semantics is Semantics.BAG
    assert view("select id from customer union select id from sale").semantics is Semantics.SET
    assert len(view("select id from customer union select id from sale union select 1").blocks) == 3
    assert view("select distinct name from customer").semantics is Semantics.SET
    # The grouping columns are all there: no row twice anyway.
    assert view("select distinct name, count(*) from customer group by name").semantics is Semantics.BAG
    # Whoever removes duplicates does not care about those below.
    assert len(view("select distinct id from (select distinct id, name from customer)").blocks) == 1


def test_a_union_inside_a_join_is_a_union_of_joins() -> None:
    found = view(
        "select name, x.id from customer join (select id from sale union all select customer from log) x "
        "on x.id = customer.id"
    )
    assert [{p.name for p in (a.predicate for a in b.core.atoms)} for b in found.blocks] == [
        {"customer", "sale"},
        {"customer", "log"},
    ]


# ------------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize(
    "query",
    [
        "select c.name from customer c left join sale s on s.customer = c.id",
        "select c.name from customer c full outer join sale s on s.customer = c.id",
        "select name from customer left semi join sale on customer.id = sale.customer",
        "select name, rank() over (order by id) r from customer",
        "select name from customer order by id limit 3",
        "select name from customer where id in (select customer from sale)",
        "select name from customer where exists (select 1 from sale)",
        "select (select max(price) from sale) m from customer",
        "select rand() r from customer",
        "select current_timestamp() t from customer",
        "select my_function(name) n from customer",
        "select name from customer except select note from log",
        "select name from customer tablesample (10 percent)",
        "select region, count(*) n from customer group by rollup(region)",
        "with recursive t as (select 1 as x union all select x + 1 from t) select x from t",
        "select e from customer lateral view explode(array(1, 2)) x as e",
        "select collect_list(name) l from customer",
        "select day + interval 1 hour d from sale",
        "select count(*) n from (select id from customer union all select id from sale) u",
        "select distinct id from customer union all select id from sale",
        "select try_cast(id as string) n from customer",
        "select name from customer qualify 1 = 1",
        "select count(distinct *) n from customer",
        "select s.* from log natural join sale s",
        "select count(id, name) n from customer",
        "select * from range(3)",
        "select name from customer timestamp as of '2024-01-01'",
        "select trim(leading 'x' from name) n from customer",
        "select id from customer where name rlike name",
        "select id ^ 2 r from customer",
        "select 1 as one from log, customer natural join sale",
    ],
)
def test_what_no_definition_holds_stays_text_with_a_reason_and_a_place(query: str) -> None:
    found = read(f"create view w as select name from customer; create materialized view v as\n{query};")
    assert [one.name for one in found.views] == ["w"]
    (kept,) = found.opaque
    assert kept.name == "v"
    assert kept.text == query
    assert kept.reasons
    for warning in found.warnings:
        assert warning.code is Code.SQL_UNSUPPORTED
        assert warning.span is not None
        assert warning.span.line >= 5
        assert warning.hint


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("select transform(name) using 'sh -c date' as (d) from customer", "TRANSFORM with USING"),
        ("select reflect('java.lang.System', 'getenv', name) e from customer", "`reflect`"),
        ("select `Try_Reflect`('java.lang.System', 'getenv', name) e from customer", "`try_reflect`"),
        ("select java_method('java.lang.System', 'setProperty', 'a', name) e from customer", "`java_method`"),
        ("select my_function(name) n from customer", "`my_function`"),
        ("select main.shop.my_function(name) n from customer", "`main.shop.my_function(name)`"),
        ("select name from customer left join sale on raise_error(name) is null", "`raise_error`"),
        ("select raise_error(name) n from customer", "`raise_error`"),
        (
            "select cast(min(name collate utf8_lcase) as string) n from customer",
            "collation that is not compared",
        ),
        (
            "select name from customer order by name collate unicode_ci limit 1",
            "collation that is not compared",
        ),
        ("select input_file_name() n from customer", "`input_file_name`"),
        ("select rand() r from customer", "`rand`"),
        ("select uuid() r from customer", "`uuid`"),
        ("select version() r from customer", "`version`"),
        ("select current_user r from customer", "`current_user`"),
        ("select current_timestamp() t from customer", "`current_timestamp`"),
        ("select now() t from customer", "`now`"),
        ("select unix_timestamp() t from customer", "`current_timestamp`"),
        ("select session_window(day, '1 hour') t from sale", "`session_window`"),
        ("select from_protobuf(note, 'm', '/file') t from log", "`from_protobuf`"),
        ("select xpath(note, 'a') t from log", "`xpath`"),
        ("select identifier('upper') n from customer", "`identifier`"),
        ("select :parameter n from customer", "`placeholder`"),
        ("select e from customer lateral view inline(reflect('a', name)) x as e", "`reflect`"),
        ("select name from customer where id in (select reflect('a', note) from log)", "`reflect`"),
        ("with a as (select reflect('a', name) e from customer) select e from a limit 1", "`reflect`"),
        ("select transform(array(1), x -> reflect('a', name)) e from customer", "`reflect`"),
        ("select rank() over (order by reflect('a', name)) e from customer", "`reflect`"),
        ("select * from (values (reflect('a', 'b'))) as e (x) left join log on true", "`reflect`"),
        ("select '${env:HOME}' h, rank() over (order by name) r from customer", "`${`"),
        ("select name from customer -- ${env:HOME}\nlimit 1", "`${`"),
        ("select name from customer full join parquet.`/a` on true", "nothing that is known"),
        ("select name from customer left join read_files('/a') on true", "no name of a relation"),
        ("select name from customer left join identifier('a') on true", "no name of a relation"),
    ],
)
def test_what_a_text_may_not_use_is_refused_by_name(query: str, named: str) -> None:
    """Running such a query could write, start something, tell secrets, or give other rows each time."""
    more = "create view w as select name from customer;"
    text = f"{more} create view v as\n{query};"
    (kept,) = read(text).opaque
    assert isinstance(kept.query, NotToRun)
    assert named in kept.query.why
    if named[0] in "`T":
        assert kept.query.hint
        assert kept.query.span is not None
        assert kept.query.span.line == (5 if named == "`${`" else 6)


def test_the_place_of_what_is_refused_is_that_in_the_text_that_it_stands_in() -> None:
    text = "create temporary view below as select reflect(name) e from customer limit 1;\n"
    found = read(f"{text}create view v as select e from below limit 1;")
    (query,) = [one.query for one in found.opaque if one.name == "v"]
    assert isinstance(query, NotToRun)
    assert query.span is not None
    assert (query.span.line, query.span.column, query.span.length) == (5, 39, 12)


def test_all_errors_of_all_statements_come_at_once() -> None:
    with pytest.raises(ProgramError) as caught:
        read("create view v as select nam from customer; create view w as select from where; select x from q")
    codes = [d.code for d in caught.value.diagnostics]
    assert set(codes) == {Code.SQL_UNKNOWN_COLUMN, Code.SQL_SYNTAX, Code.UNKNOWN_RELATION}


@pytest.mark.parametrize(
    ("query", "at"),
    [
        ("select id,, name from customer", ","),
        ("select id, from customer", "from"),
        ("select max(id,) from customer", ")"),
    ],
)
def test_a_comma_stands_before_something(query: str, at: str) -> None:
    with pytest.raises(ProgramError, match=f"at `{re.escape(at)}`"):
        read(f"create view v as {query};")


def test_a_query_without_a_name_is_called_like_its_text() -> None:
    found = read_sql([SqlText(TABLES, "t.sql"), SqlText("select name from customer", "views/names.sql")])
    assert [one.name for one in found.views] == ["names"]


# -------------------------------------------------------------------------------------------------- tables


def test_create_table_is_a_declaration() -> None:
    found = read_sql(
        "create table db.a (x bigint not null, y decimal(5), z varchar(10) unique, primary key (x, Y),"
        " constraint f foreign key (y) references b (y), unique (z, x)) using parquet;"
        " create table b (y int primary key)"
    )
    first, second = (show(one) for one in found.declarations)
    columns = ".decl a(x: bigint not null, y: decimal(5,0), z: string)"
    assert first == f"{columns} key(x, y) unique(z) unique(z, x) foreign(y) references b(y)."
    assert second == ".decl b(y: int) key(y)."


def test_declarations_of_rules_are_known_too() -> None:
    (given,) = parse_program(".decl item(id: int, name: string) key(id).").declarations
    found = read_sql([SqlText("select name from item", "v.sql")], [given])
    assert found.views[0].columns == ("name",)


# -------------------------------------------------------------------------------------- rules, or more


def rules(query: str, tables: str = TABLES) -> tuple[str, ...] | str:
    found = read_sql(f"{tables} create view v as {query}")
    made = plain_rules(found.views[0], found.declarations)
    return made.text if isinstance(made, MoreThanRules) else tuple(show(rule) for rule in made)


def test_keys_tell_where_a_bag_is_a_set() -> None:
    assert rules("select id, name from customer") == ("v(Id, Name) :- customer(Id, Name, _).",)
    assert rules("select distinct name from customer") == ("v(Name) :- customer(_, Name, _).",)
    joined = "customer c join sale s on c.id = s.customer"
    # The sale's key determines its customer, and that the customer's name.
    assert len(rules(f"select s.id, name from {joined}")) == 1
    assert "do not determine the row of `sale`" in rules(f"select c.id, name from {joined}")
    assert len(rules("select name from customer where id = 3")) == 1
    assert "do not determine" in rules("select name from customer")


def test_tables_without_a_key_may_hold_a_row_twice() -> None:
    assert "has no key" in rules("select customer, note from log")
    assert "has no key" in rules("select distinct customer from log")
    nullable = "create table u (a int unique, b int);"
    assert "has no key" in rules("select a, b from u", nullable)
    assert len(rules("select a, b from u", "create table u (a int not null unique, b int);")) == 1


def test_a_disjunction_is_a_union_of_rules() -> None:
    """Where the columns tell which; else it is a condition of one rule."""
    assert rules("select * from customer where region in ('n', 's') and (id = 1 or name is null)") == tuple(
        f"v(Id, Name, Region) :- customer(Id, Name, Region), Region = '{region}', {other}."
        for region in "ns"
        for other in ("Id = 1", "Name is null")
    )
    assert "OR, or IN" in rules("select id from customer where region in ('n', 's')")
    assert "OR, or IN" in rules("select id from customer where id in (1, 2, 3, 4, 5, 6, 7, 8, 9)")


def test_a_union_of_parts_that_have_no_row_in_common_is_a_set() -> None:
    one, other = ("select id, name from customer where region = 'n' and id {}" for _ in range(2))
    assert len(rules(f"{one.format('< 3')} union all {other.format('>= 3')}")) == 2
    assert "UNION ALL" in rules(f"{one.format('< 3')} union all {other.format('>= 2')}")
    assert "do not determine" in rules(
        "select name, 1 a from customer union all select name, 2 from customer"
    )


def test_what_is_more_than_rules_says_why() -> None:
    assert "groups (count, sum)" in rules("select region, count(*), sum(id) from customer group by region")
    assert "UNION ALL" in rules("select id from customer union all select id from sale")
    assert "computed column" in rules("select id, id + 1 as next from customer")
    assert "computed column" in rules("select id from customer where id * 2 > 3")


def test_a_reason_is_short_whatever_it_quotes() -> None:
    (found,) = read_sql(f"{TABLES} create view v as select {'f' * 5000}(id) from customer").opaque
    assert all(0 < len(reason) < 500 for reason in found.reasons)


def test_declarations_have_the_columns_of_views() -> None:
    items = "region, sum(price) s, avg(sale.id) a, count(*) n"
    found = read(f"create view v as select {items} from customer, sale group by 1")
    declared = {one.name: one for one in found.declarations}
    assert isinstance(declared["v"], Declaration)
    assert show(declared["v"]) == ".decl v(region: string, s: decimal(19,2), a: double, n: bigint)."


# -------------------------------------------------------------------------------------------- bad SQL, deep SQL

SMALL = "create table t (a int primary key, b int, c string); create table s (a int primary key, d int);"


def codes_of(query: str) -> list[str]:
    try:
        return [one.code.value for one in read_sql(f"{SMALL} create view v as {query}").warnings]
    except ProgramError as error:
        return [one.code.value for one in error.diagnostics]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("select a from t where " + "(" * 10_000 + "a = 1" + ")" * 10_000, "DL013"),
        ("select a from t where " + "not " * 10_000 + "a = 1", "DL013"),
        (
            "select " + "case when a = 1 then " * 10_000 + "1" + " else 0 end" * 10_000 + " as x from t",
            "DL013",
        ),
        ("select a from " + "(select a from " * 10_000 + "t" + ")" * 10_000, "DL013"),
        ("select " + "a + " * 10_000 + "a as x from t", "DL013"),
        ("select a from t " + "join t " * 40, "DL013"),
        ("select a from t" + " union all select a from t" * 2000, "DL402"),
        ("select a from t where a < " + "9" * 5000, "DL008"),
        ("select cast(a as decimal(30, c)) as x from t", "DL402"),
        ("\u00e9 except select a from t", "DL402"),
        ("select 1e-a as x from t", "DL402"),
        ("select a from t /*+ broadcast(t) where a = 1", "DL401"),
        ("select and(*) from t", "DL401"),
        ("select x.a from (t natural join s) x (p, q)", "DL406"),
        ("select substring(c) as x from t", "DL102"),
    ],
)
def test_what_cannot_be_read_has_a_code(query: str, code: str) -> None:
    assert code in codes_of(query)


@pytest.mark.parametrize(
    "start", ["view stg", "or replace view db.stg", "table if not exists `stg`", "materialized view Stg (x)"]
)
def test_what_reads_a_view_that_cannot_be_parsed_is_not_wrong_too(start: str) -> None:
    readers = "create view v as select a from stg; create view w as select b from nowhere;"
    text = f"{SMALL} create {start} as select a frm t; {readers}"
    with pytest.raises(ProgramError) as caught:
        read_sql(text)
    assert [one.code.value for one in caught.value.diagnostics] == ["DL401", "DL101"]
    assert "nowhere" in caught.value.diagnostics[1].message


def test_what_reads_a_table_that_cannot_be_read_is_not_wrong_too() -> None:
    with pytest.raises(ProgramError) as caught:
        read_sql("create table stg (a int primary key,, b int); create view v as select a from stg;")
    assert [one.code.value for one in caught.value.diagnostics] == ["DL401"]


MIXED = "create table p (id int not null primary key, x int); create table q (id int not null primary key, x bigint);"
BOTH = "(select id, x from p union all select id, x from q)"


CONSTANT, NULL = "select id, 3 as x from p", "select id, null as x from p"
SIZED = "select id, cast(1 as decimal(9,2)) from q"


@pytest.mark.parametrize(
    ("query", "kinds"),
    [
        (f"select id, 1.00 / x as m from {BOTH} u", ["decimal(24,23)"] * 2),
        (f"select id, x * 2 as m from {BOTH} u", ["bigint"] * 2),
        (f"select id, -x as m from {BOTH} u", ["bigint"] * 2),
        (f"select id, abs((x)) as m from {BOTH} u", ["bigint"] * 2),
        (f"select id, x as m from {BOTH} u", ["int", "bigint"]),
        (
            f"select id, y / 3.0 as m from (select id, x as y from {BOTH} u where id = 1) w",
            ["decimal(27,6)"] * 2,
        ),
        (
            f"select id, 1.00 / x as m from ({CONSTANT} union all select id, x from q) u",
            ["decimal(24,23)"] * 2,
        ),
        (f"select id, 1.00 / x as m from ({CONSTANT}) u", ["decimal(14,13)"]),
        ("select id, 1.00 / 3 as m from p", ["decimal(7,6)"]),
        ("select id, 1.00 / cast(3 as bigint) as m from p", ["decimal(24,23)"]),
        (
            "select id, 1.00 / x as m from (select id, cast('3' as decimal(9,4)) as x from p) u",
            ["decimal(17,12)"],
        ),
        (f"select id, coalesce(x, 7) as m from ({NULL} union all select id, x from q) u", ["bigint"] * 2),
        (f"select id, x * 2 as m from ({CONSTANT} union all select id, 3000000000 from q) u", ["bigint"] * 2),
        (
            f"select id, coalesce(x, .5) as m from (select * from ({NULL} union all {SIZED}) u) w",
            ["decimal(9,2)"] * 2,
        ),
    ],
)
def test_what_is_computed_with_columns_is_so_with_their_types(query: str, kinds: list[str]) -> None:
    """Those of the query within, as Spark gives them, and not those of values that stand in them."""
    (view,) = read_sql(f"{MIXED} create view v as {query};").views
    declared = {"p": ("int", "int"), "q": ("int", "bigint")}
    found = []
    for one in view.blocks:
        (atom,) = one.core.atoms
        its = zip(atom.terms, declared[atom.predicate.name], strict=True)
        types = {t: ColumnType(TypeName(name)) for t, name in its if isinstance(t, Variable)}
        found.append(str(expression_type(one.outputs[1], types)))
    assert found == kinds


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        (f"{CONSTANT} union all select id, 1.5 from q", "decimal(11,1)"),
        ("select id, cast(3 as bigint) as x from p union all select id, 3.0 from q", "decimal(21,1)"),
        (f"select id, x as y from ({CONSTANT} union all {SIZED}) u", "decimal(12,2)"),
        ("select id, cast('3' as decimal(9,4)) as x from p union select id, 3 from q", "decimal(14,4)"),
        (f"{CONSTANT} union all select id, 5 from q", "int"),
    ],
)
def test_columns_of_a_union_have_its_types_where_numbers_are_written_out(query: str, kind: str) -> None:
    (view,) = read_sql(f"{MIXED} create view v as {query};").views
    assert str(united_type([expression_type(one.outputs[1], {}) or ANY for one in view.blocks])) == kind


def test_a_decimal_that_is_written_as_text_has_the_digits_of_its_type() -> None:
    (view,) = read_sql(f"{MIXED} create view v as select id, cast('3' as decimal(9,4)) as x from p;").views
    assert view.blocks[0].outputs[1] == Cast(Constant(Decimal("3.0000")), ColumnType(TypeName.DECIMAL, 9, 4))
    assert "3.0000" in repr(view.blocks[0].outputs[1])  # it is equal to 3


def test_constants_beside_single_precision_are_doubles() -> None:
    found = read_sql(
        "create table f (id int not null primary key, x float);"
        "create view v as select id, cast(x as int) as i"
        " from (select id, 16777217 as x from f union all select id, x from f) u;"
    )
    (first, _) = found.views[0].blocks
    assert "16777217" in repr(first.outputs)


@pytest.mark.parametrize(
    ("items", "columns"),
    [
        ("c.a, max(t.b), rank() over (order by c.a) as p", ("a", "max(b)", "p")),
        ("c.a, count(*), rank() over (order by c.a)", ("a", "count(1)", "RANK() OVER (ORDER BY a)")),
        ("c.*, rank() over (order by c.a)", ()),
        ("c.a, rank() over (order by c.a) as p", ()),
    ],
)
def test_text_has_names_for_all_columns(items: str, columns: tuple[str, ...]) -> None:
    text = f"{SMALL} create view v as select {items} from t join s c on c.a = t.b group by c.a;"
    (kept,) = read_sql(text).opaque
    assert isinstance(kept.query, TextQuery)
    assert kept.query.columns == columns


@pytest.mark.parametrize(
    "items",
    [
        "a, a, rank() over (order by b) as p from t",
        "max(a) over (), max(A) over () from t",
        "t.a, s.a from t left join s on s.a = t.b",
    ],
)
def test_text_with_two_columns_of_one_name_is_refused(items: str) -> None:
    assert "DL104" in codes_of(f"select {items}")


@pytest.mark.parametrize(("word", "blocks"), [("and", 1), ("or", 1)])
def test_a_long_chain_is_no_nesting(word: str, blocks: int) -> None:
    found = read_sql(f"{SMALL} create view v as select a from t where " + f" {word} ".join(["b < 9"] * 2000))
    assert [len(view.blocks) for view in found.views] == [blocks]


def test_what_is_just_not_too_deep_is_read_to_the_end() -> None:
    deep = "case when a > 1 then " * 20 + "a" + " else 0 end" * 20 + " + a" * 40
    found = read_sql(
        f"{SMALL} create view v as select a, {deep} as x from t where " + "(" * 60 + "b > 1" + ")" * 60
    )
    program = Program((), found.declarations, found.views)
    assert parse_program(show(program)) == program


def test_many_names_are_found_soon() -> None:
    views = "".join(
        f"create view v{i} as select a, b from {f'v{i - 1}' if i % 50 else 't'};\n" for i in range(300)
    )
    assert len(read_sql(SMALL + views).views) == 300


def test_a_number_stands_for_a_column_as_the_column_holds_it() -> None:
    table = (
        "create table t (i bigint primary key, d decimal(5,1) not null, x double not null, f float not null);"
    )
    assert rules("select i, d from t where d = 1.00", table) == ("v(I, D) :- t(I, D, _, _), D = 1.0.",)
    assert rules("select i from t where i = 2.0", table) == ("v(I) :- t(I, _, _, _), I = 2.",)
    assert rules("select i, x from t where x = 0.1", table) == ("v(I, X) :- t(I, _, X, _), X = 0.1e0.",)
    assert rules("select i, d from t where d in (1.00, 2)", table) == tuple(
        f"v(I, D) :- t(I, D, _, _), D = {n}." for n in ("1.0", "2.0")
    )
    assert rules("select i from t where i = 2e0", table) == ("v(I) :- t(I, _, _, _), I = 2.",)
    several = ("i = 9007199254740992e0", "i in (1e19, 2)")
    for test in (
        "x = 0.0",
        "x = 0",
        "0 = x",
        "x in (0, 1)",
        "f = 0.1",
        "f = 1",
        "x = 1e-400",
        "x = 1e400",
        *several,
    ):
        assert "computed" in rules(f"select i, x, f from t where {test}", table)
    assert len(rules("select i, x from t where x <> 0 and i < 3.5", table)) == 1


def test_natural_joins_put_common_columns_first_in_the_order_of_the_left_side() -> None:
    tables = (
        "create table r (a int primary key, b int, c int); create table s (d int primary key, c int, b int); "
    )
    for join in ("r natural join s", "(select * from r natural join s) as u", "r natural left join s"):
        found = read_sql(f"{tables} create view v as select * from {join};")
        assert [view.columns for view in (*found.views, *found.opaque)] == [("b", "c", "a", "d")], join


@pytest.mark.parametrize("sizes", ["10.2", "40,2", "2,10", "10,2,1", "0"])
def test_a_decimal_that_there_is_none_of_is_refused(sizes: str) -> None:
    with pytest.raises(ProgramError) as caught:
        read_sql(
            f"create table t (id int primary key, price decimal({sizes})); create view v as select id from t;"
        )
    (found,) = caught.value.diagnostics
    assert found.code is Code.UNKNOWN_TYPE
    assert "column `price` of `t`" in found.message
