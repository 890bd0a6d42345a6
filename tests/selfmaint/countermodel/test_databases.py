"""What views hold on a database, by the definition."""

from __future__ import annotations

from collections import Counter

from selfmaint.api.file.programs import catalog_of
from selfmaint.countermodel.databases import Evaluation

PROGRAM = """
    create table r (a int not null primary key, b int not null, c int not null);
    create view v as select b, count(distinct c) as n from r group by b;
"""


def test_a_view_may_be_computed_from_one_that_is_defined_behind_it() -> None:
    catalog = catalog_of(PROGRAM, helpers=True)
    first, second = (view.name for view in catalog.views)
    assert (first, catalog.helpers) == ("v", {second: "v"})
    rows = {"r": frozenset({(1, 1, 4), (2, 1, 4), (3, 2, 5)})}
    assert Evaluation(catalog).contents(rows)["v"] == Counter([(1, 1), (2, 1)])
