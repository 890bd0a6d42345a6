"""Numbers that engines compare as doubles, as which different ones may be one: 2^53 is 2^53 + 1."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from decimal import Decimal

from datalog.model import ColumnType, Comparison, Constant, Rule, Term, TypeName, Variable, value_kind
from selfmaint.warehouse.base_relations import BaseRelation

_EXACT = {
    TypeName.FLOAT: (TypeName.TINYINT, TypeName.SMALLINT),
    TypeName.DOUBLE: (TypeName.FLOAT, TypeName.TINYINT, TypeName.SMALLINT, TypeName.INT),
}
"""Of which types every number is one of a floating-point type."""


def joined_as_double(rule: Rule, relations: Mapping[str, BaseRelation]) -> Variable | None:
    """A variable by which a rule joins floating-point numbers with others that these do not tell apart, if any."""
    kinds: dict[Term, list[ColumnType]] = {}
    for atom in rule.atoms:
        if atom.predicate.name in relations:
            for term, kind in zip(atom.terms, relations[atom.predicate.name].types, strict=True):
                kinds.setdefault(term, []).append(kind)
    for term, its in kinds.items():
        floating = [kind.name for kind in its if kind.name.is_floating]
        numbers = {kind.name for kind in its if kind.family == "number"}
        if isinstance(term, Variable) and any(
            numbers - {one, TypeName.DOUBLE, *_EXACT[one]} for one in floating
        ):
            return term
    return None


def too_close(rule: Rule) -> bool:
    """Whether constants of comparisons differ, but are one number as doubles: engines may compare them as such."""
    compared = (t for li in rule.body if isinstance(li, Comparison) for t in (li.left, li.right))
    numbers = {t.value for t in compared if isinstance(t, Constant) and value_kind(t.value) == "number"}
    as_doubles = Counter(float(n) for n in numbers if isinstance(n, int | float | Decimal))
    return any(times > 1 for times in as_doubles.values())
