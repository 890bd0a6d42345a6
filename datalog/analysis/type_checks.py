"""Type errors: values that never meet, in columns, comparisons and rules of one relation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from datalog.analysis.dependency import atoms_of
from datalog.analysis.relations import declarations_by_name, declared_columns
from datalog.analysis.types import TypesOfPredicates, column_types, term_type, variable_types
from datalog.diagnostics import Code, ContextSpan, Diagnostic, Severity
from datalog.model.literals import Atom, Comparison, Literal, Negation
from datalog.model.predicates import Predicate
from datalog.model.rules import Program, Rule
from datalog.model.schema import ColumnType, Declaration
from datalog.model.spans import Span
from datalog.model.terms import Constant, Term, Variable, value_kind

_FAMILIES_NOTE = "values of different families are never equal and have no order"
_HOW_TO_WRITE = {
    "date": "`date '2026-01-31'`",
    "timestamp": "`timestamp '2026-01-31 23:59:00'`",
    "timestamp_ntz": "`timestamp_ntz '2026-01-31 23:59:00'`",
}


def check_types(program: Program) -> list[Diagnostic]:
    """DL110 to DL113 for values that never meet, DL114 as a warning for comparisons with null."""
    checker = _Checker(column_types(program), declarations_by_name(program))
    found: list[Diagnostic] = []
    for rule in program.rules:
        found += checker.rule(rule)
    return [*found, *checker.heads(program)]


class _Use(Struct, frozen=True):
    """Where a variable stands: the family of the column, its name, and the place."""

    family: str
    column: str
    span: Span | None


class _Checker(Struct, frozen=True):
    """The column types of all predicates, and what is declared."""

    types: TypesOfPredicates
    declarations: dict[str, Declaration]

    def rule(self, rule: Rule) -> Iterator[Diagnostic]:
        yield from self._constants(rule.head)
        for literal in rule.body:
            for atom in atoms_of(literal):
                yield from self._constants(atom)
        yield from self._joins(rule.body, {}, rule.head)
        yield from self._comparisons(rule.body, {})

    def heads(self, program: Program) -> Iterator[Diagnostic]:
        """DL113: rules that give one column of an undeclared relation different families."""
        first: dict[tuple[Predicate, int], tuple[str, Rule]] = {}
        reported: set[tuple[Predicate, int]] = set()
        for rule in program.rules:
            if declared_columns(rule.head.predicate, self.declarations) is not None:
                continue
            variables = variable_types(rule.body, self.types)
            for position, term in enumerate(rule.head.terms):
                place = (rule.head.predicate, position)
                family = _family(term_type(term, variables))
                if family is None or place in reported:
                    continue
                earlier_family, earlier = first.setdefault(place, (family, rule))
                if earlier_family != family and (rule.body or earlier.body):
                    reported.add(place)
                    yield _head_diagnostic(rule, position, family, earlier, earlier_family)

    def _constants(self, atom: Atom) -> Iterator[Diagnostic]:
        yield from (_zone_diagnostic(term, atom.span) for term in atom.terms if _has_zone(term))
        for position, (term, column_type) in enumerate(self._columns(atom)):
            if isinstance(term, Constant) and not column_type.accepts(term.value):
                kind = value_kind(term.value)
                wanted = _HOW_TO_WRITE.get(column_type.family)
                yield Diagnostic(
                    Code.CONSTANT_TYPE,
                    f"{kind} in column {self._column(atom, position)} of type `{column_type}`",
                    term.span or atom.span,
                    f"a {kind}",
                    self._declared_at(atom, position),
                    note=_FAMILIES_NOTE,
                    hint=None if wanted is None else f"a {column_type.family} is written {wanted}",
                )

    def _joins(
        self, body: Sequence[Literal], outer: Mapping[Variable, _Use], head: Atom | None = None
    ) -> Iterator[Diagnostic]:
        """DL111 in a body; a variable that only a negation holds is a different one outside of it."""
        uses = dict(outer)
        for atom in (literal for literal in (*body, head) if isinstance(literal, Atom)):
            for position, (term, column_type) in enumerate(self._columns(atom)):
                family = _family(column_type)
                if family is None or not isinstance(term, Variable):
                    continue
                use = _Use(family, self._column(atom, position), term.span or atom.span)
                earlier = uses.setdefault(term, use)
                if earlier.family != family:
                    yield _variable_diagnostic(term, use, earlier)
        for negation in (literal for literal in body if isinstance(literal, Negation)):
            yield from self._joins(negation.body, uses)

    def _comparisons(
        self, body: tuple[Literal, ...], outer: Mapping[Variable, ColumnType]
    ) -> Iterator[Diagnostic]:
        variables = {**variable_types(body, self.types), **outer}
        for literal in body:
            if isinstance(literal, Negation):
                yield from self._comparisons(literal.body, variables)
            elif isinstance(literal, Comparison):
                yield from _comparison(literal, variables)

    def _columns(self, atom: Atom) -> Iterator[tuple[Term, ColumnType]]:
        return zip(atom.terms, self.types.get(atom.predicate, ()), strict=False)

    def _column(self, atom: Atom, position: int) -> str:
        columns = declared_columns(atom.predicate, self.declarations)
        return f"{position + 1} of `{atom.predicate}`" if columns is None else f"`{columns[position].name}`"

    def _declared_at(self, atom: Atom, position: int) -> tuple[ContextSpan, ...]:
        columns = declared_columns(atom.predicate, self.declarations)
        return () if columns is None else _context(columns[position].span, "declared here")


def _comparison(comparison: Comparison, variables: Mapping[Variable, ColumnType]) -> Iterator[Diagnostic]:
    sides = (comparison.left, comparison.right)
    if any(isinstance(side, Constant) and side.value is None for side in sides):
        yield _null_comparison(comparison)
        return
    yield from (_zone_diagnostic(side, comparison.span) for side in sides if _has_zone(side))
    left, right = (_family(term_type(side, variables)) for side in sides)
    if left is not None and right is not None and left != right:
        yield _comparison_diagnostic(comparison, left, right)


def _variable_diagnostic(variable: Variable, use: _Use, earlier: _Use) -> Diagnostic:
    return Diagnostic(
        Code.VARIABLE_TYPE,
        f"variable `{variable}` is a {earlier.family} and a {use.family}",
        use.span,
        f"a {use.family} in column {use.column}",
        _context(earlier.span, f"a {earlier.family} in column {earlier.column}"),
        note=_FAMILIES_NOTE,
    )


def _null_comparison(comparison: Comparison) -> Diagnostic:
    negated = "not " if comparison.operator == "!=" else ""
    return Diagnostic(
        Code.NULL_COMPARISON,
        "comparison with null is never true",
        comparison.span,
        "never true",
        note="a comparison is false when a side is null, as in SQL",
        hint=f"write `is {negated}null`",
        severity=Severity.WARNING,
    )


def _comparison_diagnostic(comparison: Comparison, left: str, right: str) -> Diagnostic:
    with_constant = isinstance(comparison.left, Constant) or isinstance(comparison.right, Constant)
    wanted = [family for family in (left, right) if with_constant and family in _HOW_TO_WRITE]
    return Diagnostic(
        Code.COMPARISON_TYPE,
        f"comparison of a {left} with a {right}",
        comparison.span,
        f"a {left} `{comparison.operator}` a {right}",
        note=_FAMILIES_NOTE,
        hint=f"a {wanted[0]} is written {_HOW_TO_WRITE[wanted[0]]}" if wanted else None,
    )


def _has_zone(term: Term) -> bool:
    return (
        isinstance(term, Constant) and isinstance(term.value, dt.datetime) and term.value.tzinfo is not None
    )


def _zone_diagnostic(term: Term, around: Span | None) -> Diagnostic:
    return Diagnostic(
        Code.CONSTANT_TYPE,
        "a timestamp that names its zone",
        term.span or around,
        "a zone",
        note="timestamps are read in the session's time zone, which is not known when rules are read",
        hint="write the time in that zone, without naming it: `timestamp '2026-01-31 23:59:00'`",
    )


def _head_diagnostic(
    rule: Rule, position: int, family: str, earlier: Rule, earlier_family: str
) -> Diagnostic:
    term, earlier_term = rule.head.terms[position], earlier.head.terms[position]
    return Diagnostic(
        Code.HEAD_TYPE,
        f"rules for `{rule.head.predicate}` put a {earlier_family} and a {family} into column {position + 1}",
        term.span or rule.head.span,
        f"a {family} here",
        _context(earlier_term.span or earlier.head.span, f"a {earlier_family} here"),
        note="the rules of a relation are a union: a column has one type family",
    )


def _family(column_type: ColumnType | None) -> str | None:
    """The type family, or none if it is not known."""
    return None if column_type is None or column_type.family == "any" else column_type.family


def _context(span: Span | None, label: str) -> tuple[ContextSpan, ...]:
    return () if span is None else (ContextSpan(span, label),)
