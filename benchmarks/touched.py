"""The base rows that a delta join would touch: what incremental maintenance reads that uses no views.

For rows inserted into a subgoal's relation, a delta join looks up the view's other subgoals one after the other, each
in its base relation (after the update) by the values found so far. Counted are the rows that each look-up finds
(distinct ones, once for each changed subgoal of each view). Deleted rows are left out: what a view loses can be taken
from the view itself, which stores every column.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from datalog.model import Atom, Negation, Predicate, Program, Rule, Variable, Version, variables_of
from datalog.syntax import parse_program
from selfmaint.canonical import row_atom
from selfmaint.engine.protocol import Facts
from selfmaint.spark import SparkEngine
from selfmaint.warehouse.catalog import Catalog, View, catalog


def rows_touched(spark: Any, place: Path, update: Path) -> dict[str, int]:
    """The number of rows by base relation."""
    schema = catalog(parse_program((place / "views.dl").read_text(encoding="utf-8")))
    engine = SparkEngine(spark)
    relations = {
        Predicate(n): spark.read.parquet(str(place / "base" / f"{n}.parquet")) for n in schema.relations
    }
    for part, version in (("insert", Version.INSERTED), ("delete", Version.DELETED)):
        for name in schema.relations:
            changed = update / f"{name}.{part}.parquet"
            if changed.exists():
                relations[Predicate(name, version)] = spark.read.parquet(str(changed))
    small = frozenset(p for p in relations if p.version is not Version.STORED)
    after = _after_rules(schema, small)
    not_null = {p: frozenset(range(schema.relations[p.name].arity)) for p in relations}
    facts = Facts(relations, not_null, small)
    counts: dict[str, int] = dict.fromkeys(schema.relations, 0)
    for view in schema.views:
        for anchor, atom in enumerate(view.body):
            if Predicate(atom.predicate.name, Version.INSERTED) in small:
                for rule in _look_ups(view, anchor):
                    found = engine.evaluate(Program((rule, *after)), rule.head.predicate, facts)
                    counts[rule.body[-1].predicate.name] += engine.count(found)  # type: ignore[union-attr]
    return {name: count for name, count in counts.items() if count}


def _after_rules(schema: Catalog, changed: frozenset[Predicate]) -> list[Rule]:
    """The base relations after the update."""
    rules = []
    for relation in schema.relations.values():
        after = row_atom(relation, Version.AFTER)
        gone, new = row_atom(relation, Version.DELETED), row_atom(relation, Version.INSERTED)
        less = (Negation((gone,)),) if gone.predicate in changed else ()
        rules.append(Rule(after, (row_atom(relation, Version.STORED), *less)))
        if new.predicate in changed:
            rules.append(Rule(after, (new,)))
    return rules


def _look_ups(view: View, anchor: int) -> list[Rule]:
    """For each other subgoal, the rows that are found in it by those before."""
    first = view.body[anchor]
    done: list[Atom] = [Atom(first.predicate.of(Version.INSERTED), first.terms)]
    waiting = [atom for index, atom in enumerate(view.body) if index != anchor]
    rules = []
    while waiting:
        bound = set(variables_of(done))
        chosen = max(waiting, key=lambda atom: len(bound.intersection(atom.terms)))
        waiting.remove(chosen)
        done.append(Atom(chosen.predicate.of(Version.AFTER), chosen.terms))
        terms = tuple(term for term in chosen.terms if isinstance(term, Variable))
        rules.append(Rule(Atom(Predicate("touched"), terms), tuple(done)))
    return rules
