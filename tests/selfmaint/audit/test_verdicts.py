"""Verdicts at definition time on small warehouses whose answers are known by hand."""

from __future__ import annotations

import pytest

from datalog.diagnostics import ProgramError
from datalog.syntax import parse_program
from selfmaint.audit.changes import ANYTHING, Change, Kind, relations_of, updatable
from selfmaint.audit.example import Depends, Unclear, word
from selfmaint.audit.matrix import audited
from selfmaint.audit.needs import loss, needs
from selfmaint.audit.search import Search
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation

STAR = """
.decl sales(sale: int not null, customer: int not null) key(sale) foreign(customer) references customers(customer).
.decl customers(customer: int not null, region: string not null) key(customer).
joined(S, C, R) :- sales(S, C), customers(C, R).
"""
CHAIN = """
.decl r(x: int not null, y: int not null).
.decl s(y: int not null, z: int not null).
v(X, Y, Z) :- r(X, Y), s(Y, Z).
"""


def search(program: str, *, effective: bool = True) -> Search:
    return Search(catalog(parse_program(program)), Situation(effective=effective))


def said(its: Search, view: str, change: Change) -> str:
    return word(its.outcome(its.catalog.view(view), change))


def test_a_new_dimension_row_has_no_facts_but_a_changed_one_may_have() -> None:
    star = search(STAR)
    assert said(star, "joined", Change(Kind.INSERT, "customers")) == "always"
    assert said(star, "joined", Change(Kind.DELETE, "customers")) == "always"
    assert said(star, "joined", Change(Kind.INSERT, "sales")) == "depends"
    # Every sale is in the view, since its customer is there: so it is known which rows change.
    assert (
        said(star, "joined", Change(Kind.UPDATE, "customers", updatable(star.catalog, "customers")))
        == "always"
    )


def test_every_relation_of_a_union_is_told() -> None:
    union = search("v(X) :- r(X, Y).  v(X) :- s(X, Y).  w(X) :- v(X), t(X).")
    assert {name: relations_of(union.catalog, union.catalog.view(name)) for name in ("v", "w")} == {
        "v": ("r", "s"),
        "w": ("t", "r", "s"),
    }


def test_an_update_of_other_columns_than_those_joined_is_followed() -> None:
    """A row that was there shows its partners in the view, but a new key may meet others."""
    star = search(STAR.replace("foreign(customer) references customers(customer)", ""))
    assert said(star, "joined", Change(Kind.UPDATE, "customers", frozenset([1]))) == "always"
    assert said(star, "joined", Change(Kind.UPDATE, "customers", frozenset([0]))) == "depends"
    assert said(star, "joined", Change(Kind.UPDATE, "customers", frozenset())) == "always"


def test_a_row_under_a_new_key_can_never_be_followed_without_what_it_meets() -> None:
    """No other row has shown in the view what the key meets; without the key one may have."""
    for key, said_of_r in (("", "depends"), (" key(y)", "never")):
        chain = search(CHAIN.replace("y: int not null).\n.decl s", f"y: int not null){key}.\n.decl s"))
        assert said(chain, "v", Change(Kind.INSERT, "r")) == said_of_r
        assert said(chain, "v", Change(Kind.INSERT, "s")) == "depends"
        assert said(chain, "v", Change(Kind.DELETE, "r")) == "always"
        (need,) = needs(chain, chain.catalog.view("v"), Change(Kind.INSERT, "r"), {})
        assert need.relations == ("s",)


def test_a_copy_of_the_one_makes_always_of_the_other() -> None:
    chain = search(CHAIN + "copy(Y, Z) :- s(Y, Z).")
    assert said(chain, "v", Change(Kind.INSERT, "r")) == "always"
    assert said(chain, "v", Change(Kind.INSERT, "s")) == "depends"


def test_the_example_is_small_and_differs() -> None:
    chain = search(CHAIN)
    outcome = chain.outcome(chain.catalog.view("v"), Change(Kind.INSERT, "r"))
    assert isinstance(outcome, Depends)
    example = outcome.example
    assert example.first == {}
    assert {name: len(rows) for name, rows in example.second.items()} == {"s": 1}
    assert {name: len(rows) for name, rows in example.inserted.items()} == {"r": 1}
    assert len(example.difference) == 1


def test_all_smallest_sets_are_found_cheapest_first() -> None:
    program = CHAIN.replace("s(Y, Z).\n", "s(Y, Z), t(Z).\n") + ".decl t(z: int not null).\n"
    chain = search(program)
    view = chain.catalog.view("v")
    found = needs(chain, view, Change(Kind.INSERT, "s"), {"r": 5.0})
    assert [need.relations for need in found] == [("r", "t")]
    assert found[0].cost == 6.0


def test_comparisons_rule_out_changes_whatever_the_data() -> None:
    program = """
    .decl r(x: int not null, y: int not null).
    .decl s(y: int not null, region: string not null).
    v(X, Y) :- r(X, Y), s(Y, 'EMEA'), X > 5.
    low(X, Y) :- r(X, Y), X <= 5.
    high(X, Y) :- r(X, Y), X > 5.
    """
    its = search(program)
    assert said(its, "v", Change(Kind.INSERT, "s")) == "always"
    assert said(its, "v", Change(Kind.INSERT, "r")) == "depends"


GROUPS = """
.decl sale(i: int not null, c: int not null, a: int not null, b: int) key(i) foreign(c) references cust(c).
.decl cust(c: int not null, r: string not null) key(c).
customers(C, R) :- cust(C, R).
"""


def groups(view: str, *more: str) -> dict[str, str]:
    """The verdicts after an insertion, a deletion, an update, and any mix of sales."""
    its = search(GROUPS + view + "".join(more))
    name = view.split("(", 1)[0]
    kinds = (Kind.INSERT, Kind.DELETE, Kind.ANY)
    found = {kind.value: said(its, name, Change(kind, "sale")) for kind in kinds}
    for column in ("a", "b", "c"):
        position = its.catalog.relations["sale"].columns.index(column)
        found[column] = said(its, name, Change(Kind.UPDATE, "sale", frozenset([position])))
    return found


def test_counts_and_sums_over_a_core_that_is_known_are_always_followed() -> None:
    assert set(groups("t(R, count(*), sum(A)) :- sale(I, C, A, B), cust(C, R).").values()) == {"always"}
    counted = "t(R, count(*), sum(B), count(B)) :- sale(I, C, A, B), cust(C, R)."
    assert set(groups(counted).values()) == {"always"}


def test_an_extremum_may_be_lost() -> None:
    found = groups("t(R, count(*), max(A)) :- sale(I, C, A, B), cust(C, R).")
    assert found == {
        "insert": "always",
        "delete": "depends",
        "any": "depends",
        "a": "depends",
        "b": "always",
        "c": "depends",
    }
    copy = "copy(I, C, A, B) :- sale(I, C, A, B).\n"
    assert set(groups("t(R, count(*), max(A)) :- sale(I, C, A, B), cust(C, R).", copy).values()) == {"always"}


def test_the_smallest_example_of_a_lost_minimum_has_three_rows() -> None:
    its = search(GROUPS + "t(C, count(*), min(A)) :- sale(I, C, A, B).")
    outcome = its.outcome(its.catalog.view("t"), Change(Kind.DELETE, "sale"))
    assert isinstance(outcome, Depends)
    sales = [part["sale"] for part in (outcome.example.first, outcome.example.second)]
    assert [len(rows) for rows in sales] == [2, 2]
    assert len(sales[0] & sales[1]) == 1
    assert not outcome.is_never


def test_without_a_count_the_last_row_of_a_group_may_be_lost() -> None:
    found = groups("t(R, sum(A)) :- sale(I, C, A, B), cust(C, R).")
    assert (found["insert"], found["delete"], found["b"]) == ("always", "depends", "always")
    # The values of b may be null, and a sum over none is null.
    found = groups("t(R, count(*), sum(B)) :- sale(I, C, A, B), cust(C, R).")
    assert (found["insert"], found["delete"], found["a"]) == ("always", "depends", "always")


def test_a_join_with_what_is_not_known_depends_or_is_undecided() -> None:
    its = search(GROUPS.split("customers", maxsplit=1)[0] + "t(R, count(*)) :- sale(I, C, A, B), cust(C, R).")
    assert said(its, "t", Change(Kind.INSERT, "sale")) == "depends"
    assert said(its, "t", Change(Kind.DELETE, "sale")) == "depends"
    assert said(its, "t", Change(Kind.INSERT, "cust")) == "always"
    assert said(its, "t", Change(Kind.DELETE, "cust")) == "always"
    needed = needs(its, its.catalog.view("t"), ANYTHING, {})
    assert [need.relations for need in needed] == [("sale", "cust")]


def test_a_view_that_groups_needs_effective_updates() -> None:
    its = search(GROUPS + "t(C, count(*)) :- sale(I, C, A, B).", effective=False)
    outcome = its.outcome(its.catalog.view("t"), Change(Kind.INSERT, "sale"))
    assert isinstance(outcome, Unclear)
    assert "effective" in outcome.reasons[0]


def test_a_view_outside_the_class_is_undecided_with_its_reason() -> None:
    its = search(CHAIN + "p(X) :- r(X, Y).  p(X) :- s(X, Y).")
    outcome = its.outcome(its.catalog.view("p"), ANYTHING)
    assert isinstance(outcome, Unclear)
    assert outcome.reasons


def test_losing_a_relation_says_what_breaks_and_when() -> None:
    chain = search(CHAIN + "copy(Y, Z) :- s(Y, Z).")
    assert loss(chain, ["s"]).broken == ()
    lost = loss(chain, ["r"])
    assert [(one.view, one.changed) for one in lost.broken] == [("v", "s")]
    assert lost.by_others == lost.broken
    star = loss(search(STAR), ["customers"])
    assert [(one.view, one.changed) for one in star.broken] == [("joined", "sales")]


def test_the_matrix_has_a_line_for_each_relation_and_one_for_all() -> None:
    audit = audited(search(STAR))
    (its,) = audit.views
    assert [line.relation for line in its.every_line] == ["sales", "customers", None]
    assert audit.words()["joined", "*", "any"] == "depends"
    assert its.anything.needs[0].relations == ("customers",)
    assert its.lines[0].updated == ("customer",)


def test_an_example_shows_the_partial_copy_that_it_needs() -> None:
    its = Search(
        catalog(parse_program(CHAIN + "w(X, Y) :- r(X, Y).")),
        Situation(effective=True, present=frozenset({"s"})),
    )
    outcome = its.outcome(its.catalog.view("v"), Change(Kind.INSERT, "s"))
    assert word(outcome) == "always"
    alone = Search(catalog(parse_program(CHAIN)), Situation(effective=True, present=frozenset({"s"})))
    found = alone.outcome(alone.catalog.view("v"), Change(Kind.INSERT, "r"))
    assert isinstance(found, Depends)
    for name, rows in found.example.present.items():
        assert rows <= found.example.first[name]


def test_what_is_readable_never_makes_it_worse() -> None:
    chain = search(CHAIN + "copy(Y, Z) :- s(Y, Z).")
    view = chain.catalog.view("v")
    for relation in ("r", "s"):
        for change in (Change(Kind.INSERT, "r"), Change(Kind.INSERT, "s"), ANYTHING):
            before, after = chain.outcome(view, change), chain.readable([relation]).outcome(view, change)
            assert word(after) == "always" or word(before) != "always"


REFERRING = """
.decl t(k: int not null, u: int KIND) key(k) unique(u).
.decl s(x: int not null, y: int) key(x) foreign(y) references t(COLUMN).
.decl z(x: int not null).
known(Z, T, U) :- z(Z), t(T, U).
wanted(X, Y) :- s(X, Y), z(X).
"""


@pytest.mark.parametrize(("kind", "column"), [("", "u"), ("not null", "u"), ("not null", "k")])
def test_a_row_that_references_nothing_proves_nothing(kind: str, column: str) -> None:
    """Where a row of `t` is there, `known` shows all of `z`; a null brings none along."""
    text = REFERRING.replace("KIND", kind).replace("COLUMN", column)
    assert said(search(text), "wanted", Change(Kind.INSERT, "s")) == "depends"
    assert said(search(text).readable(["t"]), "wanted", Change(Kind.INSERT, "s")) == "depends"
    never_null = text.replace("y: int)", "y: int not null)")
    assert said(search(never_null), "wanted", Change(Kind.INSERT, "s")) == "always"


GROUPED_PART = """
.decl sale(sale: int not null, day: date, amount: int not null) key(sale).
.decl due(amount: int not null, day: date not null).
part(S, D, A, count(*)) :- sale(S, D, A), TEST.
most(A, count(*), max(S)) :- sale(S, D, A).
wanted(A, E, S, D) :- due(A, E), sale(S, D, A).
"""


@pytest.mark.parametrize("test", ["A < 100", "A > 100", "A != 100", "D is not null", "D > date '2026-01-01'"])
def test_groups_of_some_rows_say_nothing_of_the_others(test: str) -> None:
    its = search(GROUPED_PART.replace("TEST", test))
    assert said(its, "most", Change(Kind.DELETE, "sale")) != "always"
    assert said(its, "wanted", Change(Kind.INSERT, "due")) != "always"
    every = search(GROUPED_PART.replace(", TEST", ""))
    assert said(every, "most", Change(Kind.DELETE, "sale")) == "always"
    assert said(every, "wanted", Change(Kind.INSERT, "due")) == "always"


@pytest.mark.parametrize(
    "part", ["part(Y, Z) :- s(Y, Z), Y < 100.", "part(Y, Z, count(*)) :- s(Y, Z), Y < 100."]
)
def test_a_column_that_joins_with_a_compared_one_is_put_in_order_too(part: str) -> None:
    """No row of the least warehouse stands in the column that is compared: it is the one that is not known."""
    assert said(search(CHAIN + part), "v", Change(Kind.INSERT, "r")) == "depends"


@pytest.mark.parametrize("over", ["set", "bag"])
def test_a_view_over_a_view_that_is_not_unfolded_is_undecided_for_all_relations_below(over: str) -> None:
    text = f"""
        .decl r(k: int not null, a: int not null) key(k).
        .decl s(a: int not null, k: int not null).
        .view v(a) {over}.
        v(A + 1) :- r(K, A).
        w(A, K) :- v(A), s(A, K).
    """
    words = audited(search(text)).words()
    assert {relation for view, relation, _ in words if view == "w"} == {"s", "r", "*"}
    assert {word for (view, _, _), word in words.items() if view == "w"} == {"undecided"}


def test_a_view_that_groups_over_a_view_is_followed_for_the_relations_below() -> None:
    text = """
        .decl r(k: int not null, a: int not null) key(k).
        .decl s(a: int not null, b: int not null).
        v(A, K) :- r(K, A).
        w(B, count(*)) :- v(A, K), s(A, B).
    """
    words = audited(search(text)).words()
    assert {relation for view, relation, _ in words if view == "w"} == {"s", "r", "*"}
    assert words["w", "r", "insert"] == "depends"
    assert words["w", "s", "insert"] == "always"


@pytest.mark.parametrize("computed", ["A + 1", "-A", "1 / A", "cast(A as int)", "abs(A)", "upper(A)"])
def test_what_no_value_that_is_tried_can_be_computed_from_is_undecided(computed: str) -> None:
    for declared in ("", ".decl r(k: int not null, a: string).\n"):
        try:
            words = audited(search(f"{declared}v(K, {computed}) :- r(K, A).")).words()
        except ProgramError:
            assert declared
        else:
            assert words["v", "r", "insert"] != "depends"
