"""Advice: every piece flips the verdicts that it says, in a warehouse audited afresh."""

from __future__ import annotations

from pathlib import Path

import pytest

from datalog.evaluate import evaluate
from datalog.model import Predicate
from datalog.syntax import parse_program
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.printing.confirming import proposal_sql
from selfmaint.audit.advice import Flip, advised
from selfmaint.audit.changes import Change, Kind, changes_of
from selfmaint.audit.example import Always
from selfmaint.audit.proposals import NewForeignKey, NewKey, NewView, with_proposals
from selfmaint.audit.search import Search
from selfmaint.report.audit.words import proposal_lines, proposal_text
from selfmaint.warehouse.catalog import Catalog, catalog
from selfmaint.warehouse.situation import Situation

ROOT = Path(__file__).resolve().parents[3]
EFFECTIVE = Situation(effective=True)
PROGRAMS = {
    "tpch": (ROOT / "examples/tpch/views.dl").read_text(encoding="utf-8"),
    "star": (ROOT / "examples/star/views.dl").read_text(encoding="utf-8"),
    "chain": "v(X, Y, Z) :- r(X, Y), s(Y, Z).",
    "snowflake": """
        .decl levels(g: int not null, level: string not null, descr: string not null) key(g).
        .decl customers(c: int not null, name: string not null, g: int not null) key(c)
            foreign(g) references levels(g).
        .decl sales(s: int not null, c: int not null) key(s) foreign(c) references customers(c).
        v(S, C, N, G, D) :- sales(S, C), customers(C, N, G), levels(G, 'gold', D).
    """,
}


def schema(name: str) -> Catalog:
    return catalog(parse_program(PROGRAMS[name]))


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_advice_flips_what_it_says(name: str) -> None:
    given = schema(name)
    found = advised(Search(given, EFFECTIVE))
    assert found
    for advice in found:
        made = with_proposals(given, advice.proposals)
        assert made is not None
        before, after = Search(given, EFFECTIVE), Search(made, EFFECTIVE)
        assert advice.flips
        for flip in advice.flips:
            columns = next(
                (c.columns for c in _changes(given, flip.relation) if c.kind is flip.kind), frozenset[int]()
            )
            change = Change(flip.kind, flip.relation, columns)
            assert not isinstance(before.outcome(given.view(flip.view), change), Always)
            assert isinstance(after.outcome(made.view(flip.view), change), Always)


def _changes(given: Catalog, relation: str | None) -> list[Change]:
    return [] if relation is None else list(changes_of(given, relation))


def test_part_of_a_relation_comes_before_all_of_it() -> None:
    settling = [advice for advice in advised(Search(schema("star"), EFFECTIVE)) if advice.settles]
    first, second = (advice.proposals[0] for advice in settling)
    assert isinstance(first, NewView)
    assert isinstance(second, NewView)
    assert not first.is_copy
    assert second.is_copy
    assert proposal_text(first) == (
        "customers_of_gold_sales(Customer, Customer_name) :- customers(Customer, Customer_name, 'gold')."
    )


def test_what_settles_one_relation_keeps_only_needed_rows_and_columns() -> None:
    sizes = {"levels": 10, "customers": 10_000, "sales": 1_000_000}
    found = advised(Search(schema("snowflake"), EFFECTIVE), sizes=sizes)
    of_sales = [a for a in found if not a.settles and Flip("v", "sales", Kind.ANY) in a.flips]
    assert [tuple(map(proposal_text, a.proposals)) for a in of_sales] == [
        (
            "levels_of_v(G, D) :- levels(G, 'gold', D).",
            "customers_of_v(C, N, G) :- customers(C, N, G), levels(G, 'gold', D).",
        ),
        ("customers_levels_of_v(C, N, G, D) :- customers(C, N, G), levels(G, 'gold', D).",),
    ]
    settling = min(a.stored_rows or 0 for a in found if a.settles)
    assert all(a.stored_rows is not None and a.stored_rows < settling for a in of_sales)


def test_constraints_that_store_nothing_come_first_where_they_settle_it() -> None:
    settling = [
        a for a in advised(Search(schema("tpch"), EFFECTIVE)) if a.settles and a.view == "order_lines"
    ]
    assert not any(isinstance(proposal, NewView) for proposal in settling[0].proposals)
    assert NewForeignKey("lineitem", ("l_orderkey",), "orders", ("o_orderkey",)) in settling[0].proposals


def test_stored_rows_are_estimated_from_sizes() -> None:
    found = advised(Search(schema("star"), EFFECTIVE), sizes={"customers": 300})
    assert [advice.stored_rows for advice in found] == [300, 300]


def test_the_queries_that_confirm_constraints() -> None:
    given = schema("tpch")
    key = proposal_sql(given, NewKey("orders", ("o_orderkey",)))
    assert "HAVING" in key
    assert "COUNT(*) > 1" in key
    foreign = proposal_sql(given, NewForeignKey("lineitem", ("l_orderkey",), "orders", ("o_orderkey",)))
    assert "NOT EXISTS" in foreign


def test_a_hostile_name_stays_a_name() -> None:
    given = catalog(parse_program("v(X, Y) :- `r; drop`(X), `s``t`(X, Y)."))
    assert "`r; drop`" in proposal_sql(given, NewKey("r; drop", ("c0",)))
    for advice in advised(Search(given, EFFECTIVE)):
        for proposal in advice.proposals:
            proposal_sql(given, proposal)


def test_an_auxiliary_view_keeps_what_its_rule_says() -> None:
    (advice, *_) = advised(Search(schema("star"), EFFECTIVE))
    (proposal,) = advice.proposals
    assert isinstance(proposal, NewView)
    program = parse_program(proposal_text(proposal))
    rows = {Predicate("customers"): frozenset({(1, "a", "gold"), (2, "b", "plain")})}
    assert evaluate(program, proposal.rule.head.predicate, rows) == {(1, "a")}


def test_keys_are_proposed_and_no_copy_of_rows_that_have_no_numbers() -> None:
    text = (
        "create table r(x int not null, y int not null); create table s(y int not null, z int not null); "
        "create view v as select r.x, r.y, s.z from r join s on r.y = s.y;"
    )
    given = catalog_of(text)
    proposed = {one for advice in advised(Search(given, EFFECTIVE)) for one in advice.proposals}
    assert proposed == {NewKey("r", ("x",)), NewKey("s", ("y",))}


def test_advice_on_views_in_sql_is_in_sql() -> None:
    given = catalog_of(
        """create table `or der` (id int not null, kind string not null, n int not null);
        create table line (id int not null primary key, `or der` int not null);
        create view v as select o.id, l.id as line, o.n from `or der` o
            join line l on l.`or der` = o.id where o.kind = 'x';
        """
    )
    told = [
        *proposal_lines(given, NewKey("or der", ("id",))),
        *proposal_lines(given, NewKey("line", ("or der",))),
        *proposal_lines(given, NewForeignKey("line", ("or der",), "or der", ("id",))),
    ]
    assert told == [
        "CREATE TABLE `or der` (..., PRIMARY KEY (id))",
        "CREATE TABLE line (..., UNIQUE (`or der`))",
        "CREATE TABLE line (..., FOREIGN KEY (`or der`) REFERENCES `or der` (id))",
    ]
    views = {
        text
        for advice in advised(Search(given, EFFECTIVE))
        for proposal in advice.proposals
        if isinstance(proposal, NewView)
        for text in [" ".join(proposal_lines(given, proposal))]
    }
    assert views
    made = catalog_of(
        "create table `or der` (id int, kind string, n int); create table line (id int, `or der` int);"
        + ";".join(views)
    )
    assert all(view.is_decided for view in made.views)
