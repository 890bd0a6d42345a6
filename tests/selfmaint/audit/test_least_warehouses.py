"""The least warehouse of a row that the views prove, does prove it: the search for "always" rests on that.

Oracle: the views evaluated by the definition on each warehouse that is made for a row of the canonical database, and
all rules of the canonical database over what they hold. Views are random ones in SQL, of several shapes beside each
other, unions also by their queries. Rows that rest on what is not inserted are left out: a warehouse may be made for
them in which it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from random import Random

import pytest

from datalog.copies import replace
from datalog.evaluate import Evaluator
from datalog.model import Atom, Negation, Program, Rule, Variable, Version
from selfmaint.api.file.programs import catalog_of
from selfmaint.audit.changes import ANYTHING
from selfmaint.audit.search import Search
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.situation import Situation
from tests.effort import effort
from tests.oracle.sql_schemas import names_read, tables
from tests.oracle.sql_shapes import MOST_TABLES, views

SHAPES = [
    "inner join",
    "self join",
    "COUNT, SUM",
    "MIN, MAX",
    "DISTINCT",
    "UNION ALL",
    "join of three tables",
]
CASES, CANDIDATES, MOST = effort(12, 1_000), 10, 500


def catalogs(random: Random) -> Iterator[Catalog]:
    """A warehouse of views of two shapes, and the same with the queries of its unions in their place."""
    first, second = (views(random, random.choice(SHAPES)) for _ in range(2))
    texts = {**{f"{name}_0": text for name, text in first.items()}, **second}
    texts = texts if len(names_read(texts.values())) <= MOST_TABLES else second
    declared = [table.declared for table in tables(random, texts.values(), MOST)]
    made = [f"create view {name} as {text};" for name, text in texts.items()]
    catalog = catalog_of("\n".join([*declared, *made])).apart
    for one in (catalog, catalog.with_summands) if catalog.summands else (catalog,):
        yield replace(one, views=tuple(view for view in one.views if view.is_decided))


def is_certain(rule: Rule) -> bool:
    """Whether a rule rests on stored rows and those of the update alone."""
    certain = (Version.STORED, Version.DELETED, Version.KNOWN)
    return not any(
        isinstance(li, Negation) or (isinstance(li, Atom) and li.predicate.version not in certain)
        for li in rule.body
    )


def hold(catalog: Catalog) -> int:
    """Looks at warehouses that are made for each relation's rows; how many there were."""
    search, held = Search(catalog, Situation(effective=True)), 0
    situation = ANYTHING.situation(catalog, search.known)
    known = search.decision.known(situation)
    for predicate, rules in Program(known).by_head().items():
        if not all(map(is_certain, rules)):
            continue
        row = Atom(predicate, tuple(Variable(f"X{i}") for i in range(rules[0].head.arity)))
        for one in islice(search.candidates(ANYTHING, situation).holding([row]), CANDIDATES):
            facts = one.facts(search.evaluation, situation)
            assert Evaluator(Program(known), facts.relations).extension(predicate), (catalog.program, one)
            held += 1
    return held


@pytest.mark.parametrize("block", range(2))
def test_a_least_warehouse_proves_the_row_that_it_is_made_for(block: int) -> None:
    seeds = range(block * CASES, (block + 1) * CASES)
    assert sum(hold(catalog) for seed in seeds for catalog in catalogs(Random(seed))) > CASES
