"""Which columns tell a view's rows apart."""

import pytest

from datalog.syntax import parse_program
from selfmaint.api.file.programs import catalog_of
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.row_key import row_key

DECLARED = """
.decl orders(o: bigint not null, c: bigint not null, s: string) key(o).
.decl lines(o: bigint not null, l: int not null, p: string) key(o, l).
.decl loose(a: bigint, b: string).
"""
SQL = """
create table orders (o bigint not null primary key, c bigint not null, s string);
create table lines (o bigint not null references orders, l int not null, p string, primary key (o, l));
"""


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("v(S, O, C) :- orders(O, C, S).", ("o",)),
        ("v(S, P, L, O) :- lines(O, L, P), orders(O, C, S).", ("l", "o")),
        ("v(L, O, M) :- lines(O, L, P), lines(O, M, P).", ("l", "o", "m")),
        ("v(B, A) :- loose(A, B).", ("b", "a")),
        ("v(B, O, C) :- loose(O, B), orders(O, C, S).", ("b", "o")),
        ("v(O) :- lines(O, 1, P).", ("o",)),
        ("v(P, O) :- lines(O, 1, P).", ("o",)),
        # A projection: what is left tells its rows apart, but no key does.
        ("v(P, C) :- lines(O, L, P), orders(O, C, S).", ("p", "c")),
        ("v(P, C, O) :- lines(O, L, P), orders(O, C, S).", ("p", "o")),
        # Groups: what they are grouped by, without what a key among it determines.
        ("v(S, O, C, count(*)) :- lines(O, L, P), orders(O, C, S).", ("o",)),
        ("v(S, C, max(P)) :- lines(O, L, P), orders(O, C, S).", ("s", "c")),
        ("v(count(*), sum(L)) :- lines(O, L, P).", ("count", "sum_l")),
    ],
)
def test_the_key_of_a_view_s_rows(rule: str, expected: tuple[str, ...]) -> None:
    made = catalog(parse_program(DECLARED + rule))
    (view,) = made.views
    names = tuple(column.lower() for column in view.columns)
    assert tuple(names[i] for i in row_key(view, made.relations)) == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("select o, upper(s) as s, c + 1 as d from orders", ("o",)),
        ("select upper(s) as s, l, orders.o from lines join orders on lines.o = orders.o", ("l", "o")),
        ("select upper(s) as s, c from orders", ("s", "c", "copies")),  # kept with its copies
        ("select distinct upper(s) as s, c from orders", ("s", "c")),
        ("select o + 1 as o, c from orders", ("o", "c", "copies")),
    ],
)
def test_the_key_of_rows_with_computed_columns(query: str, expected: tuple[str, ...]) -> None:
    made = catalog_of(f"{SQL} create view v as {query};")
    view = made.view("v")
    names = tuple(column.lower() for column in view.columns)
    assert tuple(names[i] for i in row_key(view, made.relations)) == expected[: len(view.stored_columns)]
