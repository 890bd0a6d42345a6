"""The SQL of small programs, as text. Quotes are left out of the expected text, except where they matter."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from decimal import Decimal

import pytest
from sqlglot import parse_one

from datalog.model import Atom, Constant, Predicate, Program, Rule, Value, Variable, Version
from datalog.sql import EmissionError, Table, read_set, select, text, union_all
from datalog.syntax import parse_program

V = Predicate("v")


def relation(name: str, version: Version = Version.STORED) -> Predicate:
    return Predicate(name, version)


NULLABLE = {
    relation("r"): Table(("r",), ("x", "y")),
    relation("s"): Table(("s",), ("y", "z")),
    relation("t"): Table(("t",), ("x",)),
    relation("k"): Table(("cat", "db", "k_2024"), ("id", "name"), not_null=frozenset({0})),
    relation("r", Version.INSERTED): Table(("r_inserted",), ("x", "y"), broadcast=True),
}


def sql(program: str, goal: Predicate = V, *, hints: bool = False) -> str:
    query = select(parse_program(program), goal, NULLABLE, hints=hints)
    return text(query, pretty=False).replace("`", "")


def test_two_negations_are_two_not_exists_and_nothing_more() -> None:
    every = frozenset({0, 1, 2})
    tables = {
        relation("r", Version.INSERTED): Table(("r_inserted",), ("x", "y"), every),
        relation("v1"): Table(("v1",), ("x", "y", "z"), every),
        relation("v2"): Table(("v2",), ("y", "z"), every),
    }
    program = parse_program(
        "v1@depends(X, Y, Z) :- r@inserted(X, Y), v2(Y, Z), not v1(_, _, Z), not (v1(X2, Y2, _), v2(Y2, Z))."
    )
    query = select(program, relation("v1", Version.DEPENDS), tables)
    expected = """
SELECT DISTINCT
  `i`.`x`,
  `i`.`y`,
  `v2`.`z`
FROM `r_inserted` AS `i`
JOIN `v2`
  ON `v2`.`y` = `i`.`y`
WHERE
  NOT EXISTS(
    SELECT
      1
    FROM `v1`
    WHERE
      `v1`.`z` = `v2`.`z`
  )
  AND NOT EXISTS(
    SELECT
      1
    FROM `v1`
    JOIN `v2` AS `v2_2`
      ON `v2_2`.`y` = `v1`.`y`
    WHERE
      `v2_2`.`z` = `v2`.`z`
  )
"""
    assert text(query) == expected.strip()
    assert read_set(query) == {("r_inserted",), ("v1",), ("v2",)}


# ------------------------------------------------------------------------------------------------- joins


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        # A join matches null unless something says that there is none.
        (
            "v(X, Z) :- r(X, Y), s(Y, Z).",
            "SELECT DISTINCT r.x, s.z FROM r JOIN s ON s.y IS NOT DISTINCT FROM r.y",
        ),
        (
            "v(X, Z) :- r(X, Y), s(Y, Z), Y is not null.",
            "SELECT DISTINCT r.x, s.z FROM r JOIN s ON s.y = r.y",
        ),
        ("v(X) :- r(X, Y), t(Y), Y < 3.", "SELECT DISTINCT r.x FROM r JOIN t ON t.x = r.y WHERE r.y < 3"),
        ("v(N) :- t(X), k(X, N).", "SELECT DISTINCT k.name FROM t JOIN cat.db.k_2024 AS k ON k.id = t.x"),
        ("v(X) :- r(X, X).", "SELECT DISTINCT r.x FROM r WHERE r.y IS NOT DISTINCT FROM r.x"),
        # Atoms that share a variable stand together.
        (
            "v(X, Y) :- t(X), t(Y), k(X, Y).",
            (
                "SELECT DISTINCT t.x, k.name FROM t JOIN cat.db.k_2024 AS k ON k.id = t.x"
                " JOIN t AS t2 ON t2.x IS NOT DISTINCT FROM k.name"
            ),
        ),
        ("v(X) :- t(X), s(_, _).", "SELECT DISTINCT t.x FROM t CROSS JOIN s"),
        # The same subgoal twice is one.
        ("v(X) :- t(X), t(X).", "SELECT DISTINCT t.x FROM t"),
    ],
)
def test_joins(program: str, expected: str) -> None:
    assert sql(program) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("v(X) :- t(X), X is not null.", "SELECT DISTINCT t.x FROM t WHERE t.x IS NOT NULL"),
        ("v(X) :- t(X), X is null.", "SELECT DISTINCT t.x FROM t WHERE t.x IS NULL"),
        ("v(X) :- k(X, _), X is not null.", "SELECT DISTINCT k.id FROM cat.db.k_2024 AS k"),
        ("v(X) :- t(X), X is not null, X > 1.", "SELECT DISTINCT t.x FROM t WHERE t.x > 1"),
        ("v(X) :- r(X, null).", "SELECT DISTINCT r.x FROM r WHERE r.y IS NULL"),
        ("v(X) :- r(X, 'a').", "SELECT DISTINCT r.x FROM r WHERE r.y = 'a'"),
    ],
)
def test_null_tests_are_written_only_where_they_say_something(program: str, expected: str) -> None:
    assert sql(program) == expected


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("v(X) :- X = 3.", "SELECT 3 AS c0"),
        ("v(X, Y) :- t(X), Y = 3.", "SELECT DISTINCT t.x, 3 AS c1 FROM t"),
        ("v(X) :- t(X), X = 3.", "SELECT DISTINCT t.x FROM t WHERE t.x = 3"),
        ("v(X, Y) :- t(X), Y = X.", "SELECT DISTINCT t.x, t.x AS x2 FROM t WHERE t.x IS NOT NULL"),
        ("v(X) :- t(X), r(Y, _), X = Y.", "SELECT DISTINCT t.x FROM t JOIN r ON r.x = t.x"),
        ("v(X) :- t(X), Y = X, Z = Y, Z < 3.", "SELECT DISTINCT t.x FROM t WHERE t.x < 3"),
        ("v(X) :- t(X), X = X.", "SELECT DISTINCT t.x FROM t WHERE t.x IS NOT NULL"),
        ("v(X) :- t(X), 1 < 2, 'a' != 1.", "SELECT DISTINCT t.x FROM t"),
        ("v(X) :- t(X), X = null.", "SELECT NULL AS c0 WHERE FALSE"),
        ("v(X) :- t(X), X < X.", "SELECT NULL AS c0 WHERE FALSE"),
    ],
)
def test_equalities_bind_and_constants_fold(program: str, expected: str) -> None:
    assert sql(program) == expected


# --------------------------------------------------------------------------------------- heads and facts


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("v(X, X, 'a') :- t(X).", "SELECT DISTINCT t.x, t.x AS x2, 'a' AS c2 FROM t"),
        ("v :- t(_).", "SELECT DISTINCT TRUE AS _ FROM t"),
        ("v.", "SELECT TRUE AS _"),
        ("v(1, 'a').", "SELECT 1 AS c0, 'a' AS c1"),
        (
            "v(1, 'a'). v(2, null). v(1, 'a').",
            "SELECT facts.c0, facts.c1 FROM VALUES (1, 'a'), (2, NULL) AS facts(c0, c1)",
        ),
        (
            "v(1). v(2). v(X) :- t(X).",
            "SELECT facts.x FROM VALUES (1), (2) AS facts(x) UNION SELECT t.x FROM t",
        ),
        (".decl v(a: int, b: int). v(X, Y) :- r(X, Y).", "SELECT DISTINCT r.x AS a, r.y AS b FROM r"),
    ],
)
def test_heads(program: str, expected: str) -> None:
    assert sql(program) == expected


def test_stored_goal_is_its_table() -> None:
    assert sql("v(X) :- t(X).", relation("k")) == "SELECT DISTINCT k.id, k.name FROM cat.db.k_2024 AS k"


def test_columns_are_named_as_asked() -> None:
    query = select(parse_program("v(X, 1) :- t(X)."), V, NULLABLE, columns=["a b", "c`"])
    assert text(query, pretty=False) == "SELECT DISTINCT `t`.`x` AS `a b`, 1 AS `c``` FROM `t`"


# --------------------------------------------------------------------------------------------- negations


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("v(X) :- t(X), not (X is null).", "WHERE t.x IS NOT NULL"),
        # A comparison is false on null, so its opposite is true there.
        ("v(X) :- t(X), not (X = 'c').", "WHERE t.x IS DISTINCT FROM 'c'"),
        ("v(X) :- t(X), not (X < 3).", "WHERE NOT COALESCE(t.x < 3, FALSE)"),
        ("v(X) :- t(X), not (X != 3).", "WHERE NOT COALESCE(t.x <> 3, FALSE)"),
        ("v(X) :- t(X), X is not null, not (X < 3).", "WHERE t.x IS NOT NULL AND t.x >= 3"),
        ("v(X) :- t(X), not (X = 1, X is not null).", "WHERE t.x IS DISTINCT FROM 1"),
        (
            "v(X) :- t(X), not (X > 1, X < 3).",
            "WHERE NOT COALESCE(t.x > 1, FALSE) OR NOT COALESCE(t.x < 3, FALSE)",
        ),
        ("v(X) :- t(X), not (not (X > 1)).", "WHERE t.x > 1"),
    ],
)
def test_negated_tests_have_two_values(program: str, expected: str) -> None:
    assert sql(program) == f"SELECT DISTINCT t.x FROM t {expected}"


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("v(X) :- t(X), not s(_, _).", "NOT EXISTS(SELECT 1 FROM s)"),
        (
            "v(X) :- t(X), not s(X, 1).",
            "NOT EXISTS(SELECT 1 FROM s WHERE s.y IS NOT DISTINCT FROM t.x AND s.z = 1)",
        ),
        ("v(X) :- t(X), not t(X).", "NOT EXISTS(SELECT 1 FROM t AS t2 WHERE t2.x IS NOT DISTINCT FROM t.x)"),
        # One condition ties a variable to the outside, the others are joins inside.
        (
            "v(X) :- t(X), not (k(X, _), r(X, _)).",
            "NOT EXISTS(SELECT 1 FROM cat.db.k_2024 AS k JOIN r ON r.x = k.id WHERE k.id = t.x)",
        ),
        ("v(X) :- t(X), not (s(_, Z), Z < X).", "NOT EXISTS(SELECT 1 FROM s WHERE s.z < t.x)"),
        # X is the same value all the way down, taken from the query directly around.
        (
            "v(X) :- k(X, _), not (r(X, Y), not k(X, Y)).",
            (
                "NOT EXISTS(SELECT 1 FROM r WHERE r.x = k.id AND NOT EXISTS("
                "SELECT 1 FROM cat.db.k_2024 AS k2 WHERE k2.id = r.x AND k2.name IS NOT DISTINCT FROM r.y))"
            ),
        ),
        # Spark cannot see X two queries out: the atom that binds it is repeated.
        (
            "v(X) :- k(X, _), not (t(Y), not k(X, Y)).",
            (
                "NOT EXISTS(SELECT 1 FROM t CROSS JOIN cat.db.k_2024 AS k2 WHERE k2.id = k.id AND NOT EXISTS("
                "SELECT 1 FROM cat.db.k_2024 AS k3 WHERE k3.id = k2.id AND k3.name IS NOT DISTINCT FROM t.x))"
            ),
        ),
    ],
)
def test_negated_atoms_are_not_exists(program: str, expected: str) -> None:
    assert sql(program).split(" WHERE ", 1)[1] == expected


def test_an_alias_is_no_column_of_a_subquery() -> None:
    """In a subquery `i.x` is first of all a field of the subquery's own column `i`, as Spark reads it."""
    i, w = Predicate("r", Version.INSERTED), Predicate("w")
    tables = {i: Table(("r_inserted",), ("x", "y")), w: Table(("w",), ("I", "i2"))}
    program = parse_program("v(X) :- r@inserted(X, Y), not (w(X, _), not w(Y, X)).")
    assert text(select(program, V, tables), pretty=False).replace("`", "") == (
        "SELECT DISTINCT i3.x FROM r_inserted AS i3 WHERE NOT EXISTS(SELECT 1 FROM w"
        " JOIN r_inserted AS i4 ON i4.x IS NOT DISTINCT FROM w.I WHERE w.I IS NOT DISTINCT FROM i3.x"
        " AND i4.y IS NOT DISTINCT FROM i3.y"
        " AND NOT EXISTS(SELECT 1 FROM w AS w2 WHERE w2.I IS NOT DISTINCT FROM i4.y"
        " AND w2.i2 IS NOT DISTINCT FROM w.I))"
    )


def test_choice_inside_a_negation_is_two_negations() -> None:
    program = "v(X) :- t(X), not (k(X, Y), not (Y = X, not r(X, Y)))."
    assert sql(program) == (
        "SELECT DISTINCT t.x FROM t"
        " WHERE NOT EXISTS("
        "SELECT 1 FROM cat.db.k_2024 AS k WHERE k.id = t.x AND k.name IS DISTINCT FROM k.id)"
        " AND NOT EXISTS(SELECT 1 FROM cat.db.k_2024 AS k JOIN r ON r.x = k.id AND"
        " r.y IS NOT DISTINCT FROM k.name WHERE k.id = t.x)"
    )


def test_choice_with_an_atom_is_or() -> None:
    assert sql("v(X) :- t(X), not (X = 1, not k(X, _)).") == (
        "SELECT DISTINCT t.x FROM t WHERE t.x IS DISTINCT FROM 1"
        " OR EXISTS(SELECT 1 FROM cat.db.k_2024 AS k WHERE k.id = t.x)"
    )


# ----------------------------------------------------------------------------------- rules used by rules


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("v(X) :- u(X, 1). u(A, B) :- r(A, B).", "SELECT DISTINCT r.x FROM r WHERE r.y = 1"),
        (
            "v(X, Y) :- u(X, Y), t(Y). u(3, B) :- k(B, _).",
            "SELECT DISTINCT 3 AS c0, k.id FROM cat.db.k_2024 AS k JOIN t ON t.x = k.id",
        ),
        ("v(X) :- t(X), not u(X). u(1).", "SELECT DISTINCT t.x FROM t WHERE t.x IS DISTINCT FROM 1"),
        ("v(X) :- t(X), not u(X). u(null).", "SELECT DISTINCT t.x FROM t WHERE t.x IS NOT NULL"),
        ("v(X) :- t(X), not u(X). u(A) :- t(A), 1 = 2.", "SELECT DISTINCT t.x FROM t"),
        # A variable of the inner rule is never one of the outer rule.
        ("v(X) :- u(X), r(_, Y). u(Y) :- t(Y).", "SELECT DISTINCT t.x FROM t CROSS JOIN r"),
    ],
)
def test_single_rules_are_inlined(program: str, expected: str) -> None:
    assert sql(program) == expected


def test_several_rules_are_a_common_table_expression() -> None:
    program = (
        "t@known(X) :- t(X). t@known(X) :- r(X, X), s(X, _). v(X) :- k(X, _), t@known(X), not t@known(3)."
    )
    assert sql(program) == (
        "WITH t_known AS (SELECT t.x FROM t"
        " UNION ALL"
        " SELECT r.x FROM r JOIN s ON s.y IS NOT DISTINCT FROM r.x WHERE r.y IS NOT DISTINCT FROM r.x)"
        " SELECT DISTINCT k.id FROM cat.db.k_2024 AS k JOIN t_known ON t_known.x = k.id"
        " WHERE NOT EXISTS(SELECT 1 FROM t_known AS t_known2 WHERE t_known2.x = 3)"
    )


def test_goal_with_several_rules_is_a_union_of_sets() -> None:
    assert sql("v(X) :- t(X). v(Y) :- r(_, Y).") == "SELECT t.x FROM t UNION SELECT r.y FROM r"


def test_union_over_columns_without_null_joins_plainly() -> None:
    program = "u(X) :- k(X, _). u(1). v(Y) :- u(X), r(X, Y)."
    assert sql(program).endswith("SELECT DISTINCT r.y FROM u JOIN r ON r.x = u.id")


def test_head_that_repeats_a_variable_stays_a_query_where_conditions_cannot_say_it() -> None:
    assert sql("v(X, Y) :- r(X, Y), not u(X, Y). u(A, A) :- t(A).") == (
        "WITH u AS (SELECT t.x, t.x AS x2 FROM t) SELECT DISTINCT r.x, r.y FROM r WHERE NOT EXISTS("
        "SELECT 1 FROM u WHERE u.x IS NOT DISTINCT FROM r.x AND u.x2 IS NOT DISTINCT FROM r.y)"
    )


def test_common_table_expression_never_takes_a_tables_name() -> None:
    program = parse_program("u(X) :- t(X). u(X) :- r(X, _). v(X) :- u(X).")
    tables = {relation("t"): Table(("U",), ("x",)), relation("r"): Table(("db", "u2"), ("x", "y"))}
    query = select(program, V, tables)
    assert text(query, pretty=False).replace("`", "") == (
        "WITH u3 AS (SELECT t.x FROM U AS t UNION ALL SELECT r.x FROM db.u2 AS r)"
        " SELECT DISTINCT u.x FROM u3 AS u"
    )
    assert read_set(query) == {("U",), ("db", "u2")}


def test_what_is_only_asked_for_a_row_is_no_factor() -> None:
    """Two that are joined would give each row as often as the product of their rows, before DISTINCT."""
    asked = sql("v(X) :- r(X, Y), s(Y, Z), k(X, N), Y > 1.")
    assert asked == (
        "SELECT DISTINCT r.x FROM r SEMI JOIN s ON s.y = r.y SEMI JOIN cat.db.k_2024 AS k ON k.id = r.x WHERE r.y > 1"
    )
    used = sql("v(X, Z) :- r(X, Y), s(Y, Z), k(X, N), N > 3.")
    assert "SEMI" not in used


def test_small_tables_are_broadcast_where_they_are_joined() -> None:
    program = "v(X) :- r@inserted(X, Y), t(Y), not r@inserted(Y, _)."
    assert sql(program, hints=True) == (
        "SELECT /*+ BROADCAST(i) */ DISTINCT i.x FROM r_inserted AS i JOIN t ON t.x IS NOT DISTINCT FROM i.y"
        " WHERE NOT EXISTS("
        "SELECT /*+ BROADCAST(i2) */ 1 FROM r_inserted AS i2 WHERE i2.x IS NOT DISTINCT FROM i.y)"
    )
    assert "BROADCAST" not in sql("v(X) :- r@inserted(X, _).", hints=True)
    assert "BROADCAST" not in sql(program)


# ------------------------------------------------------------------------------------- names and values


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (-3, "-3"),
        (2**70, "1180591620717411303424"),
        (Decimal("-1.50"), "-1.50"),
        (Decimal("1E+3"), "1000"),
        (1.5, "1.5E0"),
        (-1e300, "-1e+300"),
        (float("inf"), "CAST('inf' AS DOUBLE)"),
        ("it's", r"'it\'s'"),
        ("\\", r"'\\'"),
        ("a\nb", r"'a\nb'"),
        ('"`--', "'\"`--'"),
        ("${spark.app.name}", "CONCAT('$', '{spark.app.name}')"),
        ("a${b}${c}", "CONCAT('a$', '{b}$', '{c}')"),
        ("$ {", "'$ {'"),
        (dt.date(1, 2, 3), "CAST('0001-02-03' AS DATE)"),
        (dt.datetime(2024, 1, 2, 3, 4, 5, 6), "CAST('2024-01-02 03:04:05.000006' AS TIMESTAMP)"),
    ],
)
def test_constants(value: Value, expected: str) -> None:
    program = Program((Rule(Atom(V, (Constant(value),))),))
    assert text(select(program, V, {}), pretty=False) == f"SELECT {expected} AS `c0`"


def test_hostile_names_are_quoted() -> None:
    hostile = Predicate("x`; drop table y --")
    x = Variable("X")
    tables = {hostile: Table(("a`b", "c.d", hostile.name), ("e`; --",))}
    query = select(Program((Rule(Atom(V, (x,)), (Atom(hostile, (x,)),)),)), V, tables)
    assert text(query, pretty=False) == (
        "SELECT DISTINCT `x_drop_table_y_`.`e``; --`"
        " FROM `a``b`.`c.d`.`x``; drop table y --` AS `x_drop_table_y_`"
    )
    assert read_set(query) == {tables[hostile].name}


# ------------------------------------------------------------------------------------------ more queries


def test_union_all_shares_equal_expressions_and_renames_others() -> None:
    first = "u(X) :- t(X). u(X) :- r(X, _). v(X) :- u(X)."
    second = "u(X) :- t(X). u(X) :- s(X, _). v(X) :- u(X)."
    queries = [select(parse_program(program), V, NULLABLE) for program in (first, second, first, second)]
    assert text(union_all(queries), pretty=False).replace("`", "") == (
        "WITH u AS (SELECT t.x FROM t UNION ALL SELECT r.x FROM r),"
        " u2 AS (SELECT t.x FROM t UNION ALL SELECT s.y FROM s)"
        " SELECT DISTINCT u.x FROM u UNION ALL SELECT DISTINCT u.x FROM u2 AS u"
        " UNION ALL SELECT DISTINCT u.x FROM u UNION ALL SELECT DISTINCT u.x FROM u2 AS u"
    )


def test_union_all_renames_at_once() -> None:
    """The first operand's `a2` and the second's are two; the second's `a` takes neither name."""
    one = parse_one('with "a" as (select 1 as x), "a2" as (select 2 as x) select x from "a", "a2"')
    other = parse_one('with "a" as (select 3 as x), "a2" as (select x from "a") select x from "a", "a2"')
    assert union_all([one, other]).sql() == (
        'WITH "a" AS (SELECT 1 AS x), "a2" AS (SELECT 2 AS x), "a3" AS (SELECT 3 AS x),'
        ' "a2_2" AS (SELECT x FROM "a3" AS "a")'
        ' SELECT x FROM "a", "a2" UNION ALL SELECT x FROM "a3" AS "a", "a2_2" AS "a2"'
    )


def test_union_all_keeps_sets_in_parentheses() -> None:
    sets = select(parse_program("v(X) :- t(X). v(X) :- r(X, _)."), V, NULLABLE)
    assert text(union_all([sets, sets]), pretty=False).replace("`", "") == (
        "(SELECT t.x FROM t UNION SELECT r.x FROM r) UNION ALL (SELECT t.x FROM t UNION SELECT r.x FROM r)"
    )
    assert union_all([sets]) == sets


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("with a as (select * from r), b as (select * from a) select * from b, s", {("r",), ("s",)}),
        ("select 1 from r where x in (select y from s where exists (select 1 from c.d.t))",
         {("r",), ("s",), ("c", "d", "t")}),
        # The name of an expression is a table's name outside the expression's scope and in a database.
        ("with a as (select * from a) select * from a", {("a",)}),
        ("with a as (select 1) select * from a, db.a", {("db", "a")}),
        ("with a as (select 1) select * from r as x, a as x", {("r",)}),
        ("select * from (with a as (select 1 from r) select * from a) as x, a", {("r",), ("a",)}),
        ("select * from values (1) as t(a)", set()),
        ("select (select max(x) from r) from s join t on exists (select 1 from u)",
         {("r",), ("s",), ("t",), ("u",)}),
    ],
)  # fmt: skip
def test_read_set(query: str, expected: set[tuple[str, ...]]) -> None:
    assert read_set(parse_one(query, dialect="spark")) == expected


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("v(X) :- u(X). u(X) :- v(X).", "predicate `v` is recursive"),
        ("v(X) :- t(Y).", "unsafe variable `X`: no positive subgoal binds it"),
        ("v(X) :- t(X), Y < X.", "unsafe variable `Y`: no positive subgoal binds it"),
        ("v(X) :- zz(X).", "predicate `zz` has neither rules nor a table"),
        ("u(X) :- t(X).", "predicate `v` has neither rules nor a table"),
        ("v(X) :- t(X, X).", "predicate `t` has arity 2, its table 1 columns"),
        ("v(X) :- u(X). u(X, X) :- t(X).", "predicate `u` has arity 2, not 1"),
    ],
)
def test_what_has_no_sql_is_refused(program: str, message: str) -> None:
    with pytest.raises(EmissionError) as raised:
        sql(program)
    assert str(raised.value) == message


def test_identifier_that_spark_would_substitute_is_refused() -> None:
    tables = {relation("t"): Table(("${spark.app.name}",), ("x",))}
    with pytest.raises(EmissionError):
        text(select(Program(), relation("t"), tables))


def test_wrong_number_of_columns_is_refused() -> None:
    with pytest.raises(EmissionError):
        select(parse_program("v(X) :- t(X)."), V, NULLABLE, columns=["a", "b"])
    with pytest.raises(EmissionError):
        union_all([])


def test_what_sqlglot_says_is_not_printed_where_nothing_is_logged() -> None:
    code = 'import sqlglot, datalog.sql; sqlglot.parse_one("select sort_array(a)", read="spark").sql()'
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr == ""
