"""Rules over few rows, computed in this process: sooner than DuckDB has planned a statement.

Conditions of soundness:

1. All rows that are read are here, with exactly the values that DuckDB has, equal where it takes them for equal.
2. What meets in a variable or a comparison is of one type, or whole numbers and decimals: nothing is converted.
3. The types of the result are those that a statement would give it.
4. A column that is promised never to be null holds no null.

All else is left to a statement, and so is a join of more than `MOST_JOINED` rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from datalog.evaluate.sets import TooManyRowsError, derived
from datalog.model import (
    ANY,
    Atom,
    Comparison,
    Constant,
    Literal,
    Negation,
    Predicate,
    Row,
    Rule,
    Term,
    Variable,
)
from datalog.rewrite.reachable import asks_for_null, predicates_of
from datalog.sql.duckdb import SqlType
from datalog.sql.duckdb.types import UnlikeSparkError, common, digits, value_type
from selfmaint.duckdb.exact_rows import are_in_python
from selfmaint.duckdb.extensions import Extension
from selfmaint.engine.protocol import Facts

if TYPE_CHECKING:
    from selfmaint.duckdb.relation import Relation

MOST_JOINED = 20_000
"""More rows are joined sooner by a statement."""

_Types = dict[Variable, SqlType]


def computed_here(
    rules: Sequence[Rule], read: Mapping[Predicate, Extension]
) -> tuple[frozenset[Row], tuple[SqlType, ...]] | None:
    """The rows of one predicate and the types of its columns; None if a statement has to find them."""
    try:
        heads = {_head_types(rule, read) for rule in rules}
    except UnlikeSparkError:
        return None
    types = heads.pop()
    if heads or types is None:
        return None
    live = [rule for rule in rules if may_derive(rule, read)]
    facts = {}
    for predicate in dict.fromkeys(p for rule in live for p in predicates_of(rule.body)):
        one = read[predicate]
        rows = one.stored.few
        if rows is None or one.not_null & one.stored.with_null:
            return None
        facts[predicate] = rows
    try:
        return derived(live, facts, MOST_JOINED), types
    except TooManyRowsError:
        return None


def all_few(facts: Facts[Relation], most: int, *, derived_too: bool = True) -> bool:
    """Whether no relation that is given may have more rows: only costs depend on it.

    `derived_too`: what is computed when it is used has few where what it reads has; else that may have many.
    """
    return all(one.stored.most_rows(derived_too=derived_too) <= most for one in facts.relations.values())


def may_derive(rule: Rule, read: Mapping[Predicate, Extension]) -> bool:
    """Whether no subgoal of a rule is known to be empty, and no test asks for a null where there is none."""
    if any(read[atom.predicate].stored.rows == 0 for atom in rule.atoms):
        return False
    return not asks_for_null(rule, {predicate: one.not_null for predicate, one in read.items()})


def _head_types(rule: Rule, read: Mapping[Predicate, Extension]) -> tuple[SqlType, ...] | None:
    """The types of the head, if conditions 2 and 3 hold."""
    kinds = _variable_types(rule.body, read, {})
    if kinds is None:
        return None
    found = tuple(_type_of(term, kinds) for term in rule.head.terms)
    return found if are_in_python(found) else None


def _type_of(term: Term, kinds: _Types) -> SqlType:
    return value_type(term.value) if isinstance(term, Constant) else kinds.get(term, ANY)


def _variable_types(
    body: Iterable[Literal], read: Mapping[Predicate, Extension], around: _Types
) -> _Types | None:
    """The types of a body's variables, if condition 2 holds."""
    body, kinds = tuple(body), dict(around)
    for atom in body:
        if isinstance(atom, Atom):
            for term, kind in zip(atom.terms, read[atom.predicate].stored.types, strict=True):
                if isinstance(term, Variable):
                    if kinds.setdefault(term, kind) != kind:
                        return None
                elif term.value is not None and not _are_alike(value_type(term.value), kind):
                    return None
    for literal in body:
        if isinstance(literal, Negation) and _variable_types(literal.body, read, kinds) is None:
            return None
        if isinstance(literal, Comparison) and not _are_alike(
            _type_of(literal.left, kinds), _type_of(literal.right, kinds)
        ):
            return None
    return kinds


def _are_alike(one: SqlType, other: SqlType) -> bool:
    """Whether values of two types are compared as they are: those of one type, and exact numbers of any two."""
    if isinstance(one, str) or isinstance(other, str) or ANY in {one, other}:
        return False
    exact = digits(one) is not None and digits(other) is not None
    return one == other or (exact and common([one, other]) != ANY)
