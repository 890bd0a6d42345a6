"""Values that nothing known holds, for showing a counterexample.

A value is only likely to be fresh: the counterexample is evaluated again with it, and another value is tried if
it turns out to be known.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping
from decimal import Decimal

from datalog.model import ColumnType, TypeName, Value, Variable, WallClock
from selfmaint.decide.new_facts import NewFacts
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog

NUMBER = ColumnType(TypeName.DOUBLE)
"""The type that is assumed of undeclared columns that are compared in order."""

_TOP = {TypeName.TINYINT: 127, TypeName.SMALLINT: 32_767, TypeName.INT: 2_147_483_647}
_LAST_DAY = dt.date(9999, 12, 31)


def fresh_values(catalog: Catalog, new_facts: NewFacts, attempt: int) -> dict[Variable, Value]:
    """A value for each fresh variable of new facts, pairwise different; any order is as good as another.

    Args:
        catalog: for the columns' types.
        new_facts: the new facts.
        attempt: 0, 1, ...; each gives other values.
    """
    types = fresh_types(catalog, new_facts)
    return {
        v: fresh_value(t, number + attempt * len(types))
        for number, (v, t) in enumerate(_ordered(types).items(), 1)
    }


def fresh_types(catalog: Catalog, new_facts: NewFacts) -> dict[Variable, ColumnType]:
    """The type of each fresh variable."""
    types = variable_types(new_facts.atoms, catalog.relations)
    found = {v: its for v, its in types.items() if v in new_facts.fresh}
    for atom in new_facts.atoms:
        for i, term in enumerate(atom.terms):
            if term in found and (atom.predicate.name, i) in catalog.number_columns:
                assert isinstance(term, Variable)
                found[term] = NUMBER
    return found


def _ordered(types: Mapping[Variable, ColumnType]) -> dict[Variable, ColumnType]:
    return dict(sorted(types.items(), key=lambda item: item[0].name))


def fresh_value(type_: ColumnType, number: int, *, high: bool = False) -> Value:
    """A value of a type that is likely to be fresh; each number gives another.

    Args:
        type_: the type.
        number: 1, 2, ...
        high: from the other end of the type's order, where that is known.
    """
    value = _value(type_, number)
    if high and isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return -value
    return dt.date(1, 1, 1) + dt.timedelta(days=number) if high and type_.name is TypeName.DATE else value


def _value(type_: ColumnType, number: int) -> Value:
    match type_.name:
        case TypeName.STRING | TypeName.ANY:
            return f"new{number}"
        case TypeName.BOOLEAN:
            return number % 2 == 0  # one of the two: whether it will do is asked afterwards
        case TypeName.DATE:
            return _LAST_DAY - dt.timedelta(days=number)
        case TypeName.TIMESTAMP:
            return dt.datetime(9999, 12, 31) - dt.timedelta(days=number)
        case TypeName.TIMESTAMP_NTZ:
            return WallClock(9999, 12, 31) - dt.timedelta(days=number)
        case TypeName.FLOAT | TypeName.DOUBLE:
            return -1e6 - number
        case TypeName.DECIMAL:
            digits = (type_.precision or 10) - (type_.scale or 0)
            return (
                -(Decimal(10) ** max(digits, 1)) + number
                if digits > 0
                else Decimal(number).scaleb(-(type_.scale or 0))
            )
        case _:
            return -_TOP.get(type_.name, 9_000_000_000) + number
