"""The rows of a view definition over bags, from the definition: the reference for everything else.

The conditions of `datalog.model.views` are those of this module, in their numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from decimal import Context, Decimal
from typing import Any, TypeAlias, assert_never

from datalog.analysis.expression_types import average_type, expression_type
from datalog.budget import check
from datalog.evaluate.casts import rounded_to
from datalog.evaluate.order import nan_last, one_nan, unbound
from datalog.evaluate.scalars import Scalars, expression_key
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    Atom,
    Block,
    ColumnType,
    Compared,
    Comparison,
    Constant,
    IsNull,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Row,
    Semantics,
    Term,
    TypeName,
    Value,
    Variable,
    ViewDefinition,
    value_kind,
    value_of,
    variables_of,
)

_EXACT = Context(prec=200)


def aggregate(one: Aggregate, values: Iterable[tuple[Value, int]], operand_type: ColumnType | None) -> Value:
    """An aggregate.

    Values come with their numbers of copies; the digits of an average depend on the operand's type.

    >>> average = Aggregate(AggregateFunction.AVG, None)
    >>> aggregate(average, [(Decimal("1.00"), 2), (None, 5), (Decimal("2.00"), 1)], None)
    Decimal('1.333333')
    """
    if one.operand is None and one.function is AggregateFunction.COUNT:
        return sum(copies for _, copies in values)
    known = [(value, copies) for value, copies in values if value is not None]
    if one.distinct:
        known = [(value, 1) for value in {(value_kind(v), v): v for v, _ in known}.values()]
    if one.function is AggregateFunction.COUNT:
        return sum(copies for _, copies in known)
    if not known:
        return None
    return _of_values(one.function, known, operand_type)


def _of_values(
    function: AggregateFunction, known: Sequence[tuple[Any, int]], operand_type: ColumnType | None
) -> Value:
    number = sum(copies for _, copies in known)
    found: Value
    match function:
        case AggregateFunction.COUNT:
            return number
        case AggregateFunction.SUM:
            found = _total(known)
        case AggregateFunction.AVG:
            found = _average(_total(known), number, operand_type)
        case AggregateFunction.MIN:
            found = min((value for value, _ in known), key=nan_last)
        case AggregateFunction.MAX:
            found = max((value for value, _ in known), key=nan_last)
        case _:
            assert_never(function)
    return one_nan(found)


def _total(known: Sequence[tuple[Any, int]]) -> Any:
    if any(isinstance(value, float) for value, _ in known):
        return math.fsum(float(value) for value, copies in known for _ in range(copies))
    total: Any = 0
    for value, copies in known:
        product = _EXACT.multiply(value, Decimal(copies)) if isinstance(value, Decimal) else value * copies
        total = _EXACT.add(Decimal(total), product) if isinstance(product, Decimal) else total + product
    return total


def _average(total: Any, number: int, operand_type: ColumnType | None) -> Value:
    if not isinstance(total, Decimal):
        return float(total) / number
    if operand_type is not None and operand_type.name is TypeName.DECIMAL:
        scale = average_type(operand_type).scale or 0
    else:
        exponent = total.as_tuple().exponent
        scale = (-exponent if isinstance(exponent, int) else 0) + 4
    return rounded_to(_EXACT.divide(total, Decimal(number)), scale)


_Bags: TypeAlias = Mapping[Predicate, Counter[Row]]
Types: TypeAlias = Mapping[Predicate, Sequence[ColumnType]]
_Binding: TypeAlias = dict[Variable, Value]


def evaluate_view(definition: ViewDefinition, relations: _Bags, types: Types | None = None) -> Counter[Row]:
    """The rows of a view, each with its number of copies.

    A relation that is not given is empty; the digits of decimals depend on the types of columns.

    Returns:
        The rows; with `Semantics.SET` each counts 1.

    Raises:
        EvaluationError: a value that an expression does not have, such as a quotient by zero.
        ValueError: an unsafe body.

    Complexity:
        The number of ways of matching the bodies, with an index on what is bound.

    >>> from datalog.model import Aggregate, AggregateFunction, block
    >>> x, y = Variable("X"), Variable("Y")
    >>> r = Predicate("r")
    >>> rows = Counter({(1, 5): 2, (1, None): 1})
    >>> body = [Atom(r, (x, y))]
    >>> total = [x, Aggregate(AggregateFunction.COUNT), Aggregate(AggregateFunction.SUM, y)]
    >>> view = ViewDefinition("v", ("x", "n", "s"), (block("v", 0, body, total, groups=[x]),))
    >>> evaluate_view(view, {r: rows})
    Counter({(1, 3, 10): 1})
    """
    rows: Counter[Row] = Counter()
    for one in definition.blocks:
        rows.update(_block_rows(one, relations, types or {}))  # condition 6
    return Counter(set(rows)) if definition.semantics is Semantics.SET else rows


def _block_rows(one: Block, relations: _Bags, types: Types) -> Counter[Row]:
    variables = _variable_types(one, types)
    rows: Counter[Row] = Counter()
    if one.groups is None:
        for binding, copies in _passing(one, relations, variables):
            scalars = Scalars(variables, binding)
            rows[tuple(scalars.value(output) for output in one.outputs)] += copies
        return rows
    for known in _groups(one, relations, variables):
        scalars = Scalars(variables, {}, known)
        if all(scalars.truth(condition) for condition in one.having):  # condition 4
            rows[tuple(scalars.value(output) for output in one.outputs)] += 1
    return rows


def _variable_types(one: Block, types: Types) -> dict[Variable, ColumnType]:
    """The type of each variable: of its first column that has one."""
    found: dict[Variable, ColumnType] = {}
    for atom in one.core.atoms:
        for term, column_type in zip(atom.terms, types.get(atom.predicate, ()), strict=False):
            if isinstance(term, Variable) and column_type != ANY:
                found.setdefault(term, column_type)
    return found


def _groups(one: Block, relations: _Bags, types: Mapping[Variable, ColumnType]) -> Iterator[dict[str, Value]]:
    """For each group, the values of its grouping expressions and aggregates (condition 5)."""
    groups = one.groups or ()
    members: dict[tuple[object, ...], list[tuple[Scalars, int]]] = {} if groups else {(): []}
    values: dict[tuple[object, ...], Row] = {(): ()}
    for binding, copies in _passing(one, relations, types):
        scalars = Scalars(types, binding)
        row = tuple(scalars.value(group) for group in groups)
        key: tuple[object, ...] = tuple((value_kind(value), value) for value in row)
        values.setdefault(key, row)
        members.setdefault(key, []).append((scalars, copies))
    for key, rows in members.items():
        known = {expression_key(group): value for group, value in zip(groups, values[key], strict=True)}
        for made in one.aggregates:
            operand = made.operand
            given = [(None if operand is None else s.value(operand), copies) for s, copies in rows]
            known[expression_key(made)] = aggregate(
                made, given, None if operand is None else expression_type(operand, types)
            )
        yield known


def _passing(
    one: Block, relations: _Bags, types: Mapping[Variable, ColumnType]
) -> Iterator[tuple[_Binding, int]]:
    """The bindings of a body that pass the filters, with their numbers of copies (conditions 2 to 4)."""
    joined = _joined_variables(one.core.body)
    order = _atoms_first(one.core.body)
    for binding, copies in _Matcher(relations, joined).solve(order, 0, {}, 1):
        scalars = Scalars(types, binding)
        if all(scalars.truth(condition) for condition in one.filters):
            yield binding, copies


def _atoms_first(body: Sequence[Literal]) -> list[Literal]:
    """The body's literals, filters right behind what binds their variables; an equality binds only at the end.

    A variable of an atom keeps the stored value: `X = 1` matches 1.00 too, and does not make it 1.
    """
    waiting, order, known = list(body), list[Literal](), set[Term]()
    while waiting:
        ready = [
            one for one in waiting if not isinstance(one, Atom) and known.issuperset(variables_of([one]))
        ]
        atoms = [one for one in waiting if isinstance(one, Atom)]
        chosen: Literal | None
        if ready:
            chosen = ready[0]
        elif atoms:
            chosen = max(atoms, key=lambda atom: sum(_is_known(term, known) for term in atom.terms))
        else:
            equal = (one for one in waiting if isinstance(one, Comparison) and one.operator == "=")
            chosen = next((e for e in equal if _is_known(e.left, known) or _is_known(e.right, known)), None)
        if chosen is None:
            raise ValueError("unsafe rule: a variable is never bound")
        waiting.remove(chosen)
        order.append(chosen)
        known.update(variables_of([chosen]))
    return order


def _is_known(term: Term, known: Container[Term]) -> bool:
    return isinstance(term, Constant) or term in known


def _joined_variables(body: Sequence[Literal]) -> frozenset[Variable]:
    places = Counter(term for literal in body if isinstance(literal, Atom) for term in literal.terms)
    return frozenset(t for t, number in places.items() if isinstance(t, Variable) and number > 1)


class _Matcher:
    """Matches bodies over bags; indexes are made once, when first needed."""

    def __init__(self, relations: _Bags, joined: frozenset[Variable]) -> None:
        self._relations = relations
        self._joined = joined
        self._indexes: dict[tuple[Predicate, tuple[int, ...]], dict[object, list[tuple[Row, int]]]] = {}

    def solve(
        self, order: Sequence[Literal], at: int, binding: _Binding, copies: int
    ) -> Iterator[tuple[_Binding, int]]:
        check()
        if at == len(order):
            yield binding, copies
            return
        match literal := order[at]:
            case Atom():
                for extended, more in self._matches(literal, binding):
                    yield from self.solve(order, at + 1, extended, copies * more)
            case Comparison(_, left, right) if (variable := unbound(literal, binding)) is not None:
                value = value_of(right if left == variable else left, binding)
                if value is not None:
                    yield from self.solve(order, at + 1, {**binding, variable: value}, copies)
            case _:
                if _holds(literal, binding):
                    yield from self.solve(order, at + 1, binding, copies)

    def _matches(self, atom: Atom, binding: _Binding) -> Iterator[tuple[_Binding, int]]:
        fixed = tuple(i for i, t in enumerate(atom.terms) if isinstance(t, Constant) or t in binding)
        wanted = tuple(_key(value_of(atom.terms[i], binding)) for i in fixed)
        for row, copies in self._index(atom.predicate, fixed).get(wanted, ()):
            extended = self._extend(atom, row, binding)
            if extended is not None:
                yield extended, copies

    def _extend(self, atom: Atom, row: Row, binding: _Binding) -> _Binding | None:
        extended = dict(binding)
        for term, value in zip(atom.terms, row, strict=True):
            if isinstance(term, Variable):
                if value is None and term in self._joined:  # condition 3
                    return None
                if _key(extended.setdefault(term, value)) != _key(value):
                    return None
        return extended

    def _index(self, predicate: Predicate, positions: tuple[int, ...]) -> dict[object, list[tuple[Row, int]]]:
        index = self._indexes.get((predicate, positions))
        if index is None:
            index = {}
            for row, copies in self._relations.get(predicate, Counter()).items():
                index.setdefault(tuple(_key(row[i]) for i in positions), []).append((row, copies))
            self._indexes[predicate, positions] = index
        return index


def _key(value: Value) -> tuple[str, Value]:
    return value_kind(value), value


def _holds(literal: Literal, binding: _Binding) -> bool:
    """Whether a comparison or null test is true, or not all of some are."""
    if isinstance(literal, Negation):
        return not all(_holds(one, binding) for one in literal.body)
    assert not isinstance(literal, Atom), "the core of a view negates no atom"
    scalars = Scalars({}, binding)
    if isinstance(literal, NullTest):
        return scalars.truth(IsNull(literal.term, literal.negated)) is True
    return scalars.truth(Compared(literal.operator, literal.left, literal.right)) is True
