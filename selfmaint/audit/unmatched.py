"""Kinds of change that a view of rows without a match always follows: see `selfmaint.decide.anti_joins`.

    quiet(id) :- customer(id), not orders(_, id).      a new customer has no order yet; an order that comes is a match

Conditions of soundness:

1. The update is effective. The view is determined where none of the rules of `OPEN` has a row.
2. A rule has none, whatever the data, if from the rows that it asks for something follows that it negates, by rules
   that negate nothing and do not ask for nulls: further rows change nothing of that. Values that it does not say are
   not null are taken to be null, and fail where others ask that they are not.
"""

from __future__ import annotations

from datalog.evaluate import Evaluator
from datalog.model import (
    Atom,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Row,
    Rule,
    Version,
    ground,
    variables_of,
)
from selfmaint.decide.anti_joins import OPEN, UnmatchedRows, anti_join_of
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.situation import Situation


def is_always_told(catalog: Catalog, view: View, situation: Situation) -> bool:
    """Whether what is gained and lost of a view of rows without a match is determined, whatever the data."""
    anti = anti_join_of(view)
    if anti is None or not situation.effective:
        return False
    changed = {Predicate(name, Version.INSERTED) for name in situation.inserted}
    changed |= {Predicate(name, Version.DELETED) for name in situation.deleted}
    rows = UnmatchedRows(catalog, view, anti)
    program = rows.program(rows.given(changed))
    certain = Program(tuple(rule for rule in program.rules if all(map(_is_kept, rule.body))))
    return not any(_may_hold(rule, certain) for rule in program.rules_for(OPEN))


def _is_kept(literal: Literal) -> bool:
    """Whether what is true of a literal stays so when there are more rows, and values for nulls."""
    return isinstance(literal, Atom) or (isinstance(literal, NullTest) and literal.negated)


def _may_hold(rule: Rule, certain: Program) -> bool:
    """Whether a rule may have a row: condition 2."""
    tested = {literal.term for literal in rule.body if isinstance(literal, NullTest)}
    values = {v: v.name if v in tested else None for v in variables_of(rule.body)}
    facts: dict[Predicate, frozenset[Row]] = {}
    for atom in (literal for literal in rule.body if isinstance(literal, Atom)):
        facts[atom.predicate] = facts.get(atom.predicate, frozenset()) | {ground(atom.terms, values)}
    found = Evaluator(certain, facts)
    negated = [one.body[0] for one in rule.body if isinstance(one, Negation) and len(one.body) == 1]
    return not any(
        isinstance(atom, Atom) and ground(atom.terms, values) in found.extension(atom.predicate)
        for atom in negated
    )
