"""The values that each labelled null may have in the solver's program, and one naming of those that are no constants.

A place in a region of a class (`value_classes.py`) belongs to one null. Which of some equal nulls gives its place to
the others would be a choice without meaning: it is the first of them. So a null takes a place of its own, or one of a
null before it which has it itself. Where places are shared any null may take any.
"""

from __future__ import annotations

import operator as operators
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from datalog.model import MIRRORED, Comparison, Constant, Variable
from selfmaint.possible.candidates import Candidates
from selfmaint.possible.instances import Queries
from selfmaint.possible.labelled_nulls import Instance, LabelledNull
from selfmaint.possible.narrowing import narrowed
from selfmaint.possible.value_classes import NULL

_OPERATORS = {
    "=": operators.eq,
    "!=": operators.ne,
    "<": operators.lt,
    "<=": operators.le,
    ">": operators.gt,
    ">=": operators.ge,
}


@dataclass
class NullValues:
    """The values of labelled nulls, by number.

    Attributes:
        numbers: what each may have.
        borrowed: a null, the place of another one that it may take, and that other.
        shared: nulls whose places others may take.
    """

    numbers: dict[LabelledNull, list[int]] = field(default_factory=dict)
    borrowed: list[tuple[LabelledNull, int, LabelledNull]] = field(default_factory=list)
    shared: set[LabelledNull] = field(default_factory=set)


def values_of_nulls(instance: Instance, queries: Queries) -> NullValues:
    """What the labelled nulls of an instance, whose constants have numbers, may be."""
    narrowing = narrowed(instance, queries)
    candidates = Candidates(instance, queries, narrowing)
    tests = _tests(instance)
    found = NullValues()
    places: dict[LabelledNull, list[int]] = {}
    used: Counter[int] = Counter()
    for null in instance.nulls:
        its_class = null.value_class
        numbers = [NULL] if null.nullable and narrowing.admits(null, Constant(None)) else []
        numbers += candidates.constants(null)
        is_told = null in narrowing.left
        if null.may_be_fresh and its_class.is_shared and not is_told:
            numbers += sorted(its_class.places)
        elif null.may_be_fresh and not is_told:
            at = used[its_class.number]
            used[its_class.number] += 1
            places[null] = [region[at] for region in its_class.regions]
            for other in candidates.before(null):
                for number in places.get(other, ()):
                    numbers.append(number)
                    found.borrowed.append((null, number, other))
                    found.shared.add(other)
            numbers += places[null]
        found.numbers[null] = [n for n in numbers if all(_holds(n, *test) for test in tests[null])]
    return found


def _tests(instance: Instance) -> defaultdict[LabelledNull, list[tuple[str, int]]]:
    """What labelled nulls are compared with in the matches that they are of."""
    found: defaultdict[LabelledNull, list[tuple[str, int]]] = defaultdict(list)
    for test in instance.tests:
        for one in (f for f in test.query.filters if isinstance(f, Comparison)):
            ends = (one.left, one.operator, one.right), (one.right, MIRRORED[one.operator], one.left)
            for term, operator, other in ends:
                null = test.binding[term] if isinstance(term, Variable) else term
                told = test.binding[other] if isinstance(other, Variable) else other
                if isinstance(null, LabelledNull) and isinstance(told, Constant) and told.value is not None:
                    found[null].append((operator, null.value_class.constants[told]))
    return found


def _holds(number: int, operator: str, other: int) -> bool:
    """Whether a comparison of two values of a class holds; numbers follow their order where there is one."""
    return number != NULL and _OPERATORS[operator](number, other)
