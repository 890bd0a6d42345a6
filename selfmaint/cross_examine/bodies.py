"""Bodies of rules, as written, in the solver's language."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from datalog.model import (
    Atom,
    ColumnType,
    Comparison,
    Condition,
    Constant,
    Expression,
    Literal,
    Negation,
    NullTest,
    Term,
    Variable,
    expression_variables,
    variables_of,
)
from selfmaint.cross_examine.question import Question
from selfmaint.cross_examine.symbols import NULL, Symbols


class NotEncodableError(Exception):
    """What has no place in the program, in words."""


class Body(Struct, frozen=True):
    """A body at one time.

    Attributes:
        variables: how the program calls the body's variables, in order.
        helpers: rules that the literals need.
        match: what tells matches apart: the variables, and of rows that are counted which copy is matched.
    """

    literals: tuple[str, ...]
    variables: Mapping[Variable, str]
    helpers: tuple[str, ...] = ()
    match: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The conjunction; never empty."""
        return ", ".join(self.literals) or "0 = 0"


class Derived(Struct, frozen=True):
    """The atoms of a view's rows.

    Attributes:
        number: the view's number.
        hidden: how many places behind the columns tell copies apart.
    """

    number: int
    hidden: int


class Bodies(Struct):
    """Encodes bodies.

    Attributes:
        question: for types and views.
        symbols: the numbers of values.
        relations: the numbers of the base relations.
        derived: the views whose rows the program has as atoms.
    """

    question: Question
    symbols: Symbols
    relations: Mapping[str, int]
    derived: dict[str, Derived] = field(default_factory=dict)
    _negations: int = 0

    def of(self, body: Sequence[Literal], time: str) -> Body:
        """A body with SQL's join semantics: a variable at two places of its atoms is never null.

        Raises:
            NotEncodableError: it reads what the program has not.
        """
        atoms = [li for li in body if isinstance(li, Atom)]
        names = {v: f"V{n}" for n, v in enumerate(variables_of([li for li in body if not _is_not(li)]))}
        copies: list[str] = []
        literals = [self._atom(atom, names, time, copies) for atom in atoms]
        places = Counter(t for atom in atoms for t in atom.terms if isinstance(t, Variable))
        literals += [f"{names[v]} != {NULL}" for v, number in places.items() if number > 1]
        literals += self._tests(body, names, set(places))
        helpers: list[str] = []
        for literal in (li for li in body if isinstance(li, Negation)):
            text, rules = self._negated(literal, names, time, literals)
            literals.append(text)
            helpers += rules
        return Body(tuple(literals), names, tuple(helpers), (*names.values(), *copies))

    def value(self, expression: Expression, body: Body, types: Mapping[Variable, ColumnType]) -> str:
        """The program's term for the value of an expression without aggregates."""
        if isinstance(expression, Variable | Constant):
            return self._term(expression, body.variables)
        variables = expression_variables([expression])
        name = self.symbols.named(expression, variables, types)
        return f"@computed({','.join([str(name), *(body.variables[v] for v in variables)])})"

    def test(self, condition: Condition, body: Body, types: Mapping[Variable, ColumnType]) -> str:
        """The literal for a condition without aggregates."""
        variables = expression_variables([condition])
        name = self.symbols.named(condition, variables, types)
        return f"@holds({','.join([str(name), *(body.variables[v] for v in variables)])}) = 1"

    def of_group(
        self,
        its: Expression | Condition,
        inputs: Mapping[Expression, str],
        types: Mapping[Variable, ColumnType],
        *,
        is_test: bool = False,
    ) -> str:
        """The program's term for an expression over a group, or the literal for a condition on it.

        Args:
            its: the expression, or the condition.
            inputs: how the program calls what the group is by, and its aggregates.
            types: the types of variables.
            is_test: whether it is a condition.
        """
        if isinstance(its, Constant):
            return self._term(its, {})
        if not is_test and its in inputs:
            return inputs[its]  # type: ignore[index]
        name = self.symbols.named(its, tuple(inputs), types, of_group=True)
        called = f"({','.join([str(name), *inputs.values()])})"
        return f"@holds{called} = 1" if is_test else f"@computed{called}"

    def _atom(
        self, atom: Atom, names: Mapping[Variable, str], time: str, copies: list[str] | None = None
    ) -> str:
        """An atom; what tells copies apart is added to `copies`, where that matters."""
        name = atom.predicate.name
        arguments = [self._term(term, names) for term in atom.terms]
        if name in self.relations:
            return f"{time}{self.relations[name]}({','.join(arguments)})"
        if name in self.derived:
            its = self.derived[name]
            hidden = ["_"] * its.hidden
            if copies is not None:
                hidden = [f"H{len(copies) + i}" for i in range(its.hidden)]
                copies += hidden
            return f"v{time}{its.number}({','.join([*arguments, *hidden])})"
        raise NotEncodableError(f"it reads `{name}`, whose rows are not encoded")

    def _term(self, term: Term, names: Mapping[Variable, str]) -> str:
        return str(self.symbols.of(term.value)) if isinstance(term, Constant) else names[term]

    def _tests(
        self, body: Sequence[Literal], names: Mapping[Variable, str], bound: set[Variable]
    ) -> Iterator[str]:
        """Equalities that give a variable its value first, as far as they go; then what is tested of values."""
        waiting = [li for li in body if isinstance(li, Comparison)]
        while waiting:
            giving = next((c for c in waiting if c.operator == "=" and self._gives(c, bound)), None)
            if giving is None:
                break
            waiting.remove(giving)
            bound.update(variables_of([giving]))
            left, right = (self._term(t, names) for t in (giving.left, giving.right))
            yield f"{left} = {right}"
            yield f"{left} != {NULL}"
        for one in waiting:
            left, right = (self._term(t, names) for t in (one.left, one.right))
            if one.operator in ("=", "!="):  # of values as of their numbers, which the solver joins by
                yield f"{left} {one.operator} {right}"
                yield from (f"{side} != {NULL}" for side in (left, right))
                continue
            yield f'@compares("{one.operator}",{left},{right}) = 1'
        for test in (li for li in body if isinstance(li, NullTest)):
            yield f"{self._term(test.term, names)} {'!=' if test.negated else '='} {NULL}"

    @staticmethod
    def _gives(comparison: Comparison, bound: set[Variable]) -> bool:
        sides = [isinstance(t, Constant) or t in bound for t in (comparison.left, comparison.right)]
        return sides[0] != sides[1]

    def _negated(
        self, literal: Negation, names: Mapping[Variable, str], time: str, around: Sequence[str]
    ) -> tuple[str, list[str]]:
        """`not` a helper predicate of the variables that stand outside as well; inside, null is a value.

        What stands around it gives the values of variables that only a negation inside it has.
        """
        self._negations += 1
        name = f"n{time}{self._negations}"
        plain = [li for li in literal.body if not _is_not(li)]
        inner = {v: names.get(v, f"W{self._negations}_{n}") for n, v in enumerate(variables_of(plain))}
        atoms = [li for li in literal.body if isinstance(li, Atom)]
        further = [v for v in variables_of([literal]) if v in names and v not in inner]
        if any(v not in {t for atom in atoms for t in atom.terms} for v in inner):
            raise NotEncodableError("it compares inside a negation")
        texts = [self._atom(atom, inner, time) for atom in atoms]
        texts += self._tests(literal.body, inner, set(inner))
        shared = [*(v for v in inner if v in names), *further]
        if further:
            texts += around
            inner |= {v: names[v] for v in further}
        rules: list[str] = []
        for nested in (li for li in literal.body if isinstance(li, Negation)):
            text, more = self._negated(nested, inner, time, list(texts))
            texts.append(text)
            rules += more
        head = f"{name}({','.join(['0', *(inner[v] for v in shared)])})"
        return f"not {head}", [*rules, f"{head} :- {', '.join(texts)}."]


def _is_not(literal: Literal) -> bool:
    return isinstance(literal, Negation)
