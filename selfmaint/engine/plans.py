"""What is evaluated for some goals, or printed: the program after the passes that all programs go through."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from datalog.copies import replace
from datalog.model import Atom, ColumnType, Literal, Negation, Predicate, Program, Rule, Version
from datalog.rewrite import demand, drop_unreachable, drop_unused_columns
from datalog.rewrite.demand import Choice
from datalog.rewrite.in_place import widened
from datalog.rewrite.reachable import predicates_of
from selfmaint.engine.column_types import is_integer
from selfmaint.engine.guard import require_given, undefined


def prepared(
    program: Program,
    goals: Sequence[Predicate],
    types: Mapping[Predicate, Sequence[ColumnType | str]],
    small: Collection[Predicate],
    found_by: Choice | None = None,
    *,
    all_few: bool = False,
) -> Program:
    """What is evaluated for some goals: everything is reached from the update, by keys.

    `found_by` tells of some columns those that find few rows, if that is known of any; `all_few`, that no relation has
    many.

    Raises:
        ReadRefusedError: SM403 a rule reads a predicate that has neither rules nor facts.
    """
    require_given(drop_unreachable(program, goals), types)
    kinds = {p: [str(kind) for kind in its] for p, its in types.items()}

    def by_keys(predicate: Predicate, columns: tuple[int, ...]) -> tuple[int, ...]:
        """Columns that find few rows, if some are known to; else those of whole numbers: keys mostly are."""
        best = found_by(predicate, columns) if found_by is not None else ()
        return best or tuple(c for c in columns if is_integer(types[predicate][c])) or columns

    return drop_unused_columns(demand(program, goals, small, kinds, by_keys, all_few=all_few), goals)


def without_columns(program: Program, goals: Collection[Predicate]) -> Program:
    """A program whose goals have no columns, but for those that its bodies read."""
    used = {p for rule in program.rules for p in predicates_of(rule.body)}
    bare = frozenset(goals) - used
    rules = (
        replace(rule, head=replace(rule.head, terms=())) if rule.head.predicate in bare else rule
        for rule in program.rules
    )
    return replace(program, rules=tuple(rules))


def in_one_query(program: Program, goal: Predicate) -> Program:
    """What one query asks for a goal: the same program, where each demand has rows of its own, as no rows are held."""
    return drop_unused_columns(demanded_apart(program, goal), [goal])


def demanded_apart(program: Program, goal: Predicate) -> Program:
    """The program for a goal, in which each demand has rows of its own, and reads as little as binds its values."""
    needed = drop_unreachable(program, [goal])
    small = {p for p in undefined(needed) if p.version in (Version.INSERTED, Version.DELETED)}
    return widened(demand(needed, [goal], small, together=False))


def over_tables(rule: Rule, read: Mapping[Predicate, object]) -> tuple[object, ...]:
    """What a rule computes, whatever the predicates are called: equal for rules over the same tables."""
    return rule.head.terms, tuple(_named(literal, read) for literal in rule.body)


def _named(literal: Literal, read: Mapping[Predicate, object]) -> object:
    match literal:
        case Atom(predicate, terms):
            return read[predicate], terms
        case Negation(body):
            return tuple(_named(inner, read) for inner in body)
        case _:
            return literal
