"""A counterexample as an SQL script: the view before and after the update, on each of the two databases."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datalog.model import Atom, Comparison, Constant, Predicate, Program, Row, Rule
from datalog.sql import select, text
from selfmaint.decide.pairs import Counterexample
from selfmaint.warehouse.catalog import View


def script(view: View, found: Counterexample) -> str:
    """Four queries that need no table: each carries its database's rows.

    The first two give the same rows, those that the warehouse stores; the last two differ.
    """
    parts = []
    for after in (False, True):
        for second in (False, True):
            when, which = ("after" if after else "before"), ("second" if second else "first")
            parts.append(f"-- the view {when} the update, on the {which} database")
            parts.append(f"{_query(view, found.database(second, after))};")
    return "\n".join(parts)


def _query(view: View, database: Mapping[str, frozenset[Row]]) -> str:
    relations = {atom.predicate: atom.arity for atom in view.body}
    facts = (rule for predicate, arity in relations.items() for rule in _facts(predicate, arity, database))
    rule = Rule(view.head, (*view.body, *view.filters))
    return text(select(Program((rule, *facts)), view.predicate, {}, columns=view.columns))


def _facts(predicate: Predicate, arity: int, database: Mapping[str, frozenset[Row]]) -> Iterator[Rule]:
    """A relation's rows as facts; an empty one as a rule that never holds."""
    rows = sorted(database.get(predicate.name, frozenset()), key=repr)
    for row in rows:
        yield Rule(Atom(predicate, tuple(Constant(value) for value in row)))
    if not rows:
        never = Comparison("=", Constant(1), Constant(0))
        yield Rule(Atom(predicate, tuple(Constant(None) for _ in range(arity))), (never,))
