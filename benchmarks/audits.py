"""How long the audit of a warehouse takes, from rules and declarations alone: processor time of this process."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator

from warehouses import departments, joined_with_itself, tiny, tower, wide

from datalog.syntax import parse_program
from selfmaint.api.audit import AuditOptions, audit_catalog
from selfmaint.warehouse.catalog import catalog
from selfmaint.warehouse.situation import Situation

Record = dict[str, object]


def settings(*, quick: bool) -> Iterator[tuple[str, str]]:
    """Names and texts of warehouses."""
    yield "40 views over 12 relations", departments(40)
    yield "40 views over 12 relations, no keys", departments(40, constrained=False)
    yield "one relation three times, in order", joined_with_itself(3)
    yield "a tower of 10 views", tower(10)
    if not quick:
        yield "300 views over 96 relations", departments(300, 8)
        yield "1,000 views of two subgoals", tiny(1000)
        yield "one view of 200 subgoals", wide(200)
        yield "a tower of 50 views", tower(50)


def run(*, quick: bool, show: Callable[[Record], None]) -> list[Record]:
    """The verdicts, without advice; each record is shown as soon as it is there."""
    found = []
    for name, text in settings(quick=quick):
        schema = catalog(parse_program(text))
        started = time.process_time()
        report = audit_catalog(schema, Situation(effective=True), AuditOptions(advise=False))
        words = Counter(report.audit.words().values())
        record: Record = {"warehouse": name, "audit_s": time.process_time() - started, **words}
        show(record)
        found.append(record)
    return found
