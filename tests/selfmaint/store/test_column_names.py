"""Columns that are not those expected: one error that says which, where they are named, and what to do."""

from __future__ import annotations

import pytest

from datalog.model import ANY, Span
from datalog.syntax import parse_program
from selfmaint.api.columns import columns_of
from selfmaint.errors import Code, InputError
from selfmaint.store.expected import Expected, require_names
from selfmaint.warehouse.catalog import catalog


def expected(*names: str, naming: str | None = None) -> Expected:
    return Expected("v", names, (ANY,) * len(names), Span(3, 1, 9, "views.dl"), naming)


@pytest.mark.parametrize(
    ("found", "difference", "hint"),
    [
        (["b"], "`a` missing", "give these columns, or correct the declaration"),
        (["a", "b", "c"], "`c` not expected", "leave `c` out, or correct the declaration"),
        (["a", "b", "b"], "`b` there more than once", "give these columns, or correct the declaration"),
        (["A", "b"], "`a` missing; `A` not expected", "rename `A` to `a`"),
        (
            ["7", "x"],
            "`a`, `b` missing; `7`, `x` not expected",
            "of a CSV file the first line names the columns: put `a,b` above the rows",
        ),
        (
            ["a;b"],
            "`a`, `b` missing; `a;b` not expected",
            "a CSV file has commas between its columns, and this line has semicolons: write it with `,`",
        ),
        ([], "`a`, `b` missing", "give these columns, or correct the declaration"),
    ],
)
def test_one_error_for_all_differences(found: list[str], difference: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        require_names(found, expected("a", "b"))
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code is Code.COLUMNS_DIFFER
    assert diagnostic.message == f"the columns of `v` do not fit: {difference}"
    assert str(diagnostic.span) == "views.dl:3:1"
    listed = ", ".join(f"`{name}`" for name in found) or "none"
    assert diagnostic.note == f"there are {listed}; expected are `a`, `b`"
    assert diagnostic.hint == hint


@pytest.mark.parametrize(
    ("rules", "declaration"),
    [
        ("v(X, I) :- r(X, I, J).", ".decl v(x, `item id`)."),
        ("v(X, count(*)) :- r(X, I, J).", ".view v(x, `item id`)."),
        (".view v bag. v(X, I) :- r(X, I, J).", ".view v(x, `item id`) bag."),
    ],
)
def test_names_made_from_a_head_may_be_declared(rules: str, declaration: str) -> None:
    base = ".decl r(a, b, c). "
    made = columns_of(catalog(parse_program(base + rules)))["v"]
    with pytest.raises(InputError) as caught:
        require_names(["x", "item id"], expected(*made.names, naming=made.naming))
    hint = caught.value.diagnostics[0].hint
    assert hint is not None
    assert hint.endswith(f"name the view's columns by a declaration, such as `{declaration}`")
    named = columns_of(catalog(parse_program(f"{base} {declaration} {rules.removeprefix('.view v bag.')}")))[
        "v"
    ]
    assert named.names == ("x", "item id")


def test_each_stored_name_is_meant_once() -> None:
    with pytest.raises(InputError) as caught:
        require_names(["key_"], expected("key1", "key2"))
    assert caught.value.diagnostics[0].hint == "rename `key_` to `key1`"


def test_any_order_and_where_allowed_more_columns() -> None:
    require_names(["b", "a"], expected("a", "b"))
    require_names(["b", "c", "a"], expected("a", "b"), extra_allowed=True)
