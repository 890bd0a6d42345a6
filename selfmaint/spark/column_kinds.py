"""The column types of what a program derives, from those of the relations that it reads."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame
from pyspark.sql import types as st

from datalog.model import Atom, Predicate, Program, Rule, Variable


def kinds_of(
    program: Program, goal: Predicate, given: Mapping[Predicate, DataFrame]
) -> list[st.DataType] | None:
    """The types of a goal's columns; None where its rules do not agree, or do not tell.

    Args:
        program: non-recursive rules.
        goal: a predicate with rules, or one that is given.
        given: the relations that the program reads.
    """
    rules = program.rules_for(goal)
    if not rules:
        frame = given.get(goal)
        return None if frame is None else [field.dataType for field in frame.schema.fields]
    found = [_kinds(program, rule, given) for rule in rules]
    return found[0] if all(kinds == found[0] for kinds in found) else None


def _kinds(program: Program, rule: Rule, given: Mapping[Predicate, DataFrame]) -> list[st.DataType] | None:
    known: dict[object, st.DataType] = {}
    for atom in (literal for literal in rule.body if isinstance(literal, Atom)):
        for term, kind in zip(atom.terms, kinds_of(program, atom.predicate, given) or (), strict=False):
            if isinstance(term, Variable):
                known.setdefault(term, kind)
    kinds = [known.get(term) for term in rule.head.terms]
    return None if None in kinds else [kind for kind in kinds if kind is not None]
