"""Numbers that engines compare as doubles, as which different ones may be one: 2^53 is 2^53 + 1."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain

from datalog.analysis import are_kept_apart, head_types
from datalog.model import (
    ColumnType,
    Comparison,
    Constant,
    Predicate,
    Rule,
    Term,
    TypeName,
    Variable,
    value_kind,
)
from selfmaint.warehouse.base_relations import BaseRelation

_EXACT = {
    TypeName.FLOAT: (TypeName.TINYINT, TypeName.SMALLINT),
    TypeName.DOUBLE: (TypeName.FLOAT, TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT),
}
"""Of which types every number is one of a floating-point type."""


def joined_as_double(rule: Rule, relations: Mapping[str, BaseRelation]) -> Variable | None:
    """A variable by which a rule joins floating-point numbers with others that these do not tell apart, if any."""
    for term, its in _kinds(rule, relations).items():
        floating = [kind.name for kind in its if kind.name.is_floating]
        numbers = {kind.name for kind in its if kind.family == "number"}
        if isinstance(term, Variable) and any(
            numbers - {one, TypeName.DOUBLE, *_EXACT[one]} for one in floating
        ):
            return term
    return None


def hold_alike(rules: Sequence[Rule], relations: Mapping[str, BaseRelation]) -> bool:
    """Whether the columns of a union of rules have the numbers of each rule apart, whatever the others' types are."""
    types = {Predicate(name): one.types for name, one in relations.items()}
    heads = [head_types(rule, types) for rule in rules]
    return all(map(are_kept_apart, zip(*heads, strict=True)))


def too_close(rule: Rule, relations: Mapping[str, BaseRelation]) -> bool:
    """Whether a rule may compare numbers that differ, but are one as doubles.

    They are constants, or a floating-point number and one of another type.
    """
    compared = [(li.left, li.right) for li in rule.body if isinstance(li, Comparison)]
    numbers = {
        t.value for t in chain(*compared) if isinstance(t, Constant) and value_kind(t.value) == "number"
    }
    as_doubles = Counter(float(n) for n in numbers if isinstance(n, int | float | Decimal))
    kinds = _kinds(rule, relations)
    met = [*compared, *((t, t) for t in kinds if isinstance(t, Constant))]
    return any(times > 1 for times in as_doubles.values()) or any(
        _is_inexact(kind, floating)
        for one, other in (*met, *(pair[::-1] for pair in met))
        for floating in _floating(one, kinds)
        for kind in kinds.get(other, ())
    )


def _floating(term: Term, kinds: Mapping[Term, Sequence[ColumnType]]) -> Iterator[TypeName | float]:
    """A term's floating-point types; of a constant the double that it is, or is compared as.

    A constant in a column may stand where that column did: of `L > K, K = 5` only `L > 5` is left.
    """
    names = [kind.name for kind in kinds.get(term, ()) if kind.name.is_floating]
    if isinstance(term, Constant) and TypeName.FLOAT not in names:
        if isinstance(term.value, float) or (names and isinstance(term.value, int | Decimal)):
            yield float(term.value)
    else:
        yield from names


def _is_inexact(kind: ColumnType, floating: TypeName | float) -> bool:
    """Whether numbers of a type may differ, and be one where they are compared with a double, or with all of a type."""
    if kind.family != "number" or kind.name.is_floating:
        return False
    if isinstance(floating, float):
        return not kind.has_one_near(floating)
    if kind.name is TypeName.DECIMAL:
        return floating is TypeName.FLOAT or not kind.has_one_near(math.inf)
    return kind.name not in _EXACT[floating]


def _kinds(rule: Rule, relations: Mapping[str, BaseRelation]) -> Mapping[Term, list[ColumnType]]:
    """The types of the columns that each term stands in."""
    found: dict[Term, list[ColumnType]] = {}
    for atom in rule.atoms:
        if atom.predicate.name in relations:
            for term, kind in zip(atom.terms, relations[atom.predicate.name].types, strict=True):
                found.setdefault(term, []).append(kind)
    return found
