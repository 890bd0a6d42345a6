"""View definitions that are just rules: no computed column, no aggregate, and no row twice.

Before: `.view v(a, b) bag.   v(A, B) :- r(A, B) where any(B = 1, B is null).`   with `key(a)` of r
After:  `v(A, B) :- r(A, B), B = 1.   v(A, B) :- r(A, B), B is null.`

Conditions of soundness:

1. Relations are sets. A table of SQL is one only if a key is declared: else a deleted row may have a twin.
2. The rows stand once anyway, so that the bag is the set: the view says so, or each block's outputs determine
   a row of every subgoal, through keys without nulls, and no row is of two blocks. Then no column makes one of two
   numbers of a block, because others have numbers of another type there.
3. A filter is a union of conjunctions of literals; the rules overlap, which a set does not show.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum, unique
from itertools import product
from math import prod

from msgspec import Struct

from datalog.analysis import are_kept_apart, determined, head_types
from datalog.model import (
    AllOf,
    AnyOf,
    Atom,
    Block,
    Compared,
    Comparison,
    Condition,
    Constant,
    Declaration,
    IsNull,
    Literal,
    NullTest,
    Predicate,
    Rule,
    Semantics,
    Term,
    Variable,
    ViewDefinition,
)
from datalog.rewrite.branches import are_apart, are_told_apart

MOST_RULES = 16
"""How many rules a view's disjunctions may make."""


@unique
class Beyond(Enum):
    """Why a view definition is more than rules."""

    AGGREGATE = "aggregate"
    BAG = "bag"
    COMPUTED = "computed"


class MoreThanRules(Struct, frozen=True):
    """A view definition is more than rules: what kind of more, and why, in words."""

    kind: Beyond
    text: str


def plain_rules(
    definition: ViewDefinition, declarations: Iterable[Declaration]
) -> tuple[Rule, ...] | MoreThanRules:
    """The rules that a view definition is, or why it is more.

    A view that was read from SQL is over tables, which may hold a row twice: `declarations` tell their keys.

    >>> from datalog.model import Column, block
    >>> x, y = Variable("X"), Variable("Y")
    >>> view = ViewDefinition("v", ("x",), (block("v", 0, [Atom(Predicate("r"), (x, y))], [x]),))
    >>> keyed = Declaration("r", (Column("a"), Column("b")), key=("a",))
    >>> len(plain_rules(view, [keyed]))
    1
    >>> plain_rules(view, [Declaration("r", keyed.columns, key=("b",))]).text
    '`v` keeps duplicates: its columns do not determine the row of `r`'
    """
    known = {declaration.name: declaration for declaration in declarations}
    if definition.is_grouped:
        functions = dict.fromkeys(a.function.value for b in definition.blocks for a in b.aggregates)
        shown = ", ".join(functions) or "no aggregate"
        return MoreThanRules(Beyond.AGGREGATE, f"`{definition.name}` groups ({shown})")
    twins = _twins(definition, known)
    if twins is not None:
        return MoreThanRules(Beyond.BAG, twins)
    found = [list(_rules(definition, block)) for block in definition.blocks]
    rules = [rule for its in found for rule in its if rule is not None]
    if len(rules) < max(sum(map(len, found)), len(found)) or len(rules) > MOST_RULES:
        return MoreThanRules(
            Beyond.COMPUTED, f"`{definition.name}` has a computed column, or a condition on one"
        )
    if len(found) == 1 and not are_told_apart(rules):
        return MoreThanRules(Beyond.COMPUTED, f"`{definition.name}` has a condition with OR, or IN")
    return tuple(rules)


def _twins(definition: ViewDefinition, known: Mapping[str, Declaration]) -> str | None:
    """How a row may stand twice, in the view or in what it reads; None if it cannot."""
    if definition.text is not None:
        for predicate in definition.reads:
            if not (_keys(predicate, known) or _is_numbered(predicate, known)):
                return (
                    f"`{definition.name}` reads `{predicate}`, which has no key: a row of it may have a twin"
                )
    if definition.semantics is Semantics.SET:
        return None
    if definition.is_split:
        return f"`{definition.name}` has rows with partners in its LEFT JOINs, and rows without"
    if len(definition.blocks) > 1 and not _are_apart(definition, known):
        return f"`{definition.name}` is a union that keeps duplicates (UNION ALL)"
    loose = next((atom for block in definition.blocks if (atom := undetermined(block, known))), None)
    if loose is None:
        return None
    return (
        f"`{definition.name}` keeps duplicates: its columns do not determine the row of `{loose.predicate}`"
    )


def _are_apart(definition: ViewDefinition, known: Mapping[str, Declaration]) -> bool:
    """Whether no row is of two blocks, each of which is one rule, and rows of one stay apart."""
    rules = [list(_rules(definition, block)) for block in definition.blocks]
    plain = [rule for its in rules for rule in its if rule is not None]
    types = {Predicate(name): tuple(c.type for c in one.columns) for name, one in known.items()}
    heads = [head_types(rule, types) for rule in plain]
    return (
        all(len(its) == 1 for its in rules)
        and len(plain) == len(rules)
        and all(map(are_kept_apart, zip(*heads, strict=True)))
        and are_apart(plain)
    )


def _is_numbered(predicate: Predicate, known: Mapping[str, Declaration]) -> bool:
    return predicate.name in known and known[predicate.name].is_numbered


def _keys(predicate: Predicate, known: Mapping[str, Declaration]) -> list[tuple[int, ...]]:
    """The keys of a relation, as positions."""
    declaration = known.get(predicate.name)
    keys: list[tuple[int, ...]] = []
    if declaration is None:
        return keys
    names = declaration.column_names
    given = [*([declaration.key] if declaration.key is not None else []), *declaration.unique]
    for key in given:
        positions = tuple(names.index(name) for name in key if name in names)
        if len(positions) == len(key) and all(declaration.is_not_null(p) for p in positions):
            keys.append(positions)
    return keys


def undetermined(block: Block, known: Mapping[str, Declaration]) -> Atom | None:
    """A subgoal whose row the outputs do not determine through keys without nulls; None if they determine all."""
    given: set[Term] = {output for output in block.outputs if isinstance(output, Variable)}
    for literal in block.core.body:
        # Equal columns of two types may be equal to several values: those of one type are one variable.
        if isinstance(literal, Comparison) and literal.operator == "=":
            sides = (literal.left, literal.right)
            if any(isinstance(side, Constant) and not isinstance(side.value, float) for side in sides):
                given.update(sides)
    found = determined(given, block.core.atoms, lambda atom: _keys(atom.predicate, known))
    return next((atom for atom in block.core.atoms if not found.issuperset(atom.terms)), None)


def _rules(definition: ViewDefinition, block: Block) -> Iterator[Rule | None]:
    """The rules of a block, one for each choice among its disjunctions; None for what no rule says."""
    head = [output for output in block.outputs if isinstance(output, Variable | Constant)]
    choices = alternatives(block.filters)
    if len(head) < len(block.outputs) or choices is None:
        yield None
        return
    for extra in choices:
        # Equal atoms stay: a variable at two places of the body is never null.
        body = (*block.core.body, *(literal for literal in extra if literal not in block.core.body))
        yield Rule(Atom(definition.predicate, tuple(head)), body, definition.span)


def alternatives(conditions: Iterable[Condition]) -> list[tuple[Literal, ...]] | None:
    """Conditions that all hold, as a disjunction of conjunctions of literals; None where no few literals say it.

    What compares with null is never true: it is one of them only where all are like that.

    >>> x, y = Variable("X"), Variable("Y")
    >>> len(alternatives([IsNull(x), AnyOf((Compared("=", y, Constant(1)), IsNull(y)))]) or ())
    2
    """
    choices = [list(_choices(condition)) for condition in conditions]
    if any(None in found for found in choices) or prod(map(len, choices)) > MOST_RULES:
        return None
    found = [
        tuple(dict.fromkeys(literal for literals in choice for literal in literals or ()))
        for choice in product(*choices)
    ]
    return [one for one in found if not any(map(_is_of_null, one))] or found


def _is_of_null(literal: Literal) -> bool:
    return isinstance(literal, Comparison) and Constant(None) in (literal.left, literal.right)


def _choices(condition: Condition) -> Iterator[tuple[Literal, ...] | None]:
    """A condition as a disjunction of conjunctions of literals; None where no literal says it."""
    match condition:
        case Compared(operator, (Variable() | Constant()) as left, (Variable() | Constant()) as right):
            yield (Comparison(operator, left, right, condition.span),)
        case IsNull(Variable() as term, negated):
            yield (NullTest(term, negated, condition.span),)
        case AnyOf(conditions):
            for one in conditions:
                yield from _choices(one)
        case AllOf(conditions):
            for combination in product(*(list(_choices(one)) for one in conditions)):
                if None in combination:
                    yield None
                else:
                    yield tuple(literal for literals in combination for literal in literals or ())
        case _:
            yield None
