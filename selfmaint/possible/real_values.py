"""From an answer set to a database: values of the columns' types for what the solver knows by number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations, pairwise

from datalog.model import ANY, ColumnType, Comparison, Constant, Operator, Row, Value, Variable, value_kind
from datalog.order import assign
from selfmaint.countermodel.databases import Rows
from selfmaint.countermodel.values import NUMBER, fresh_value
from selfmaint.possible.encoding import BEFORE, Encoding
from selfmaint.possible.solver import Model
from selfmaint.possible.value_classes import NULL, ValueClass, fits

_TRIED = 50
"""How many values of a type are tried for one that is fresh."""


def real_database(encoding: Encoding, model: Model, attempt: int) -> Rows | None:
    """The database of an answer set; None if values of some type do not do.

    Each `attempt`, from 0, gives other values where nothing tells them.
    """
    relations = encoding.instance.known.catalog.relations
    numbers = {name: model[f"{BEFORE}{number}"] for name, number in encoding.numbers.items()}
    columns: dict[int, set[tuple[str, int]]] = {}
    for name, rows in numbers.items():
        for row in rows:
            for i, number in enumerate(row):
                columns.setdefault(number, set()).add((name, i))
    values: dict[int, Value] = {NULL: None}
    for one in encoding.instance.classes.every:
        values.update({number: c.value for c, number in one.constants.items()})
        used = {n: its for n, its in columns.items() if n in one.places}
        found = _fresh(encoding, one, used, attempt)
        if found is None:
            return None
        values.update(found)
    database: dict[str, frozenset[Row]] = {}
    for name, rows in numbers.items():
        made = frozenset(tuple(values[n] for n in row) for row in rows)
        types = relations[name].types
        if not all(v is None or fits(v, t) for row in made for v, t in zip(row, types, strict=True)):
            return None
        database[name] = made
    return database


def _fresh(
    encoding: Encoding, one: ValueClass, used: Mapping[int, set[tuple[str, int]]], attempt: int
) -> dict[int, Value] | None:
    """Values for the numbers of a class that are no constants."""
    types = {n: _compared_type(one, _type(encoding, columns)) for n, columns in used.items()}
    if one.is_ordered:
        return _placed(one, types)
    taken = set(one.values)
    found: dict[int, Value] = {}
    for at, (number, its) in enumerate(sorted(types.items())):
        start = 1 + at + (attempt * len(types))
        tried = (fresh_value(its, start + _TRIED * step) for step in range(_TRIED))
        value = next((v for v in tried if Constant(v) not in taken and fits(v, its)), None)
        if value is None:
            return None
        taken.add(Constant(value))
        found[number] = value
    return found


def _placed(one: ValueClass, types: Mapping[int, ColumnType]) -> dict[int, Value] | None:
    """Values in order, between the constants, or in one region in any order."""
    if not types:
        return {}
    told = {number: constant for constant, number in one.constants.items()}
    names = {number: Variable(f"P{number}") for number in types}
    comparisons: list[Comparison] = []
    if one.is_related:
        points = sorted([*types, *told])
        terms = [told[n] if n in told else names[n] for n in points]
        comparisons += [Comparison("<", low, high) for low, high in pairwise(terms)]
    else:
        for number, name in names.items():
            for at, constant in told.items():
                operator: Operator = ">" if at < number else "<"
                comparisons.append(
                    Comparison(operator if constant in one.landmarks else "!=", name, constant)
                )
        comparisons += [Comparison("!=", *both) for both in combinations(names.values(), 2)]
    found = assign(names.values(), comparisons, {}, {names[n]: its for n, its in types.items()})
    return None if found is None else {n: found[name] for n, name in names.items()}


def _compared_type(one: ValueClass, its: ColumnType) -> ColumnType:
    """Of an undeclared column of numbers, or that is compared, a number; else its own type."""
    compared = one.is_ordered or one.is_related or one.landmarks
    kinds = {value_kind(c.value) for c in one.values}
    return NUMBER if its == ANY and (kinds == {"number"} or (compared and not kinds)) else its


def _type(encoding: Encoding, columns: Iterable[tuple[str, int]]) -> ColumnType:
    """The type of a value that stands in some columns: the narrowest that is declared."""
    relations = encoding.instance.known.catalog.relations
    types = {relations[name].types[i] for name, i in columns}
    declared = sorted(types - {ANY}, key=lambda its: _WIDTH.get(its.name.value, 9))
    if declared:
        return declared[0]
    numbers = all(c in encoding.instance.known.catalog.number_columns for c in columns)
    return NUMBER if numbers else ANY


_WIDTH = {"boolean": 0, "tinyint": 1, "smallint": 2, "int": 3, "bigint": 4, "decimal": 5, "float": 6}
