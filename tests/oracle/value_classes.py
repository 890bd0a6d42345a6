"""Which values can matter in which columns.

Two columns, of relations or views, are in one *class* if a variable of a rule, a
comparison or a foreign key connects them, be it through others. Values of different
classes never meet. So an injection of the values of a class that keeps the constants of
that class, the types, and, where values of the class are compared by size, the order,
takes a database to one that is as consistent, and whose views are the same but for
renamed values: *isomorphic*. Hence a search may do with the constants of the class, the
values it has put in the class so far, and one new value: any, if there is no order, and
else one in each gap between those (in `column_types.between`, more than one in a gap that
might get crowded).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from .column_types import between, in_order, unused
from .problem import Problem
from .rules import Constant, Rule, Value, Variable

Node = tuple[object, object]
"""A column (name, position) of a relation or view, or (rule, variable)."""
_NUMBERS = frozenset({"integer", "number"})


@dataclass(frozen=True, slots=True)
class ValueClass:
    """The columns that share values."""

    number: int
    constants: frozenset[Constant]
    """Those that the case or a rule has in these columns."""
    ordered: bool
    kinds: frozenset[str]

    def new_values(self, kind: str, used: Collection[Constant], room: int) -> list[Constant]:
        """Values that are not used: all that can matter, up to isomorphism.

        Without an order, one of each kind in the class: a column of another type may have to have it too.
        """
        if not self.ordered:
            return list(dict.fromkeys(value for its in sorted(self.kinds) for value in unused(its, used)))
        ends: list[Constant | None] = [None, *in_order(used), None]
        discrete = not self.kinds.isdisjoint({"integer", "date"})
        gaps = (between(low, high, kind, room, discrete=discrete) for low, high in pairwise(ends))
        return [value for gap in gaps for value in gap]


class ValueClasses:
    """The classes of all columns and variables of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._parents: dict[Node, Node] = {}
        self._constants: list[tuple[Node, Value]] = []
        self._compared: list[Node] = []
        for rules in problem.rules.values():
            for rule in rules:
                self._read(rule)
        for key in problem.constraints.foreign_keys:
            for column, target in zip(key.columns, key.targets, strict=True):
                self._connect((key.child, column), (key.parent, target))
        self._read_rows()

    def _read(self, rule: Rule) -> None:
        for atom in (rule.head, *rule.body):
            for position, term in enumerate(atom.terms):
                if isinstance(term, Variable):
                    self._connect((atom.name, position), (rule, term))
                else:
                    self._constants.append(((atom.name, position), term))
        for comparison in rule.comparisons:
            first, *others = ((rule, variable) for variable in comparison.variables)
            for other in others:
                self._connect(first, other)
            constants = (comparison.left, comparison.right)
            self._constants += [(first, c) for c in constants if not isinstance(c, Variable)]
            if comparison.operator not in ("=", "!="):
                self._compared.append(first)

    def _read_rows(self) -> None:
        problem = self.problem
        rows = [(name, row) for name, rows in problem.views.items() for row in rows]
        rows += problem.inserted | problem.deleted | problem.present | problem.absent
        rows += [(name, row) for name, rows in problem.readable.items() for row in rows]
        self._constants += [((n, i), value) for n, row in rows for i, value in enumerate(row)]
        for name, domains in problem.domains.items():
            self._constants += [((name, i), v) for i, values in enumerate(domains) for v in values]

    def _root(self, node: Node) -> Node:
        while (parent := self._parents.get(node, node)) != node:
            node = parent
        return node

    def _connect(self, first: Node, second: Node) -> None:
        self._parents[self._root(first)] = self._root(second)

    @cached_property
    def _classes(self) -> Mapping[Node, ValueClass]:
        """The class of each root."""
        constants: dict[Node, set[Constant]] = {}
        for node, value in self._constants:
            its = constants.setdefault(self._root(node), set())
            if value is not None:
                its.add(value)
        types: dict[Node, set[str]] = {}
        for column in self.problem.columns():
            types.setdefault(self._root(column), set()).add(self.problem.kind(*column))
        compared = set(map(self._root, self._compared))
        roots = sorted({*constants, *types, *compared, *map(self._root, self._parents)}, key=repr)
        return {
            root: _value_class(number, constants.get(root, set()), types.get(root, set()), root in compared)
            for number, root in enumerate(roots)
        }

    def of_column(self, name: str, position: int) -> ValueClass:
        """The class of a column of a relation or a view."""
        return self._classes[self._root((name, position))]

    def of_variable(self, rule: Rule, variable: Variable) -> ValueClass:
        """The class of a variable of a rule."""
        return self._classes[self._root((rule, variable))]

    def kind(self, name: str, position: int) -> str:
        """The kind of a relation's column: as declared, else what its class has."""
        kind = self.problem.kind(name, position)
        if kind != "any":
            return kind
        kinds = self.of_column(name, position).kinds
        return next(iter(kinds)) if len(kinds) == 1 else "number" if kinds == _NUMBERS else "any"

    def all(self) -> Iterator[ValueClass]:
        """All classes."""
        yield from self._classes.values()


def _value_class(number: int, constants: set[Constant], kinds: set[str], compared: bool) -> ValueClass:
    """Make a class; what has no declared type has that of the others, or of the constants."""
    declared = kinds - {"any"}
    if not declared and (compared or constants):
        texts = {isinstance(constant, str) for constant in constants}
        declared = {"any"} if len(texts) > 1 else {"string" if True in texts else "number"}
    if "boolean" in declared:
        constants = constants | {False, True}
    if compared and "string" in declared:
        constants = constants | {""}
    if (compared and not (len(declared) == 1 or declared <= _NUMBERS)) or (compared and "any" in declared):
        raise ValueError(f"values of {sorted(declared)} are compared by size")
    return ValueClass(number, frozenset(constants), compared, frozenset(declared or {"any"}))
