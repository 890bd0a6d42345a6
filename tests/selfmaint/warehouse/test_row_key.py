"""Which columns tell a view's rows apart."""

import pytest

from datalog.syntax import parse_program
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.row_key import row_key

DECLARED = """
.decl orders(o: bigint not null, c: bigint not null, s: string) key(o).
.decl lines(o: bigint not null, l: int not null, p: string) key(o, l).
.decl loose(a: bigint, b: string).
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
