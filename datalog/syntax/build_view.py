"""Rules that compute, and rules of declared views, as view definitions; the others stay rules."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from lark import Token
from msgspec import Struct

from datalog.diagnostics import Code
from datalog.model.expressions import Aggregate, Condition, Expression, aggregates_of
from datalog.model.literals import Atom, Literal
from datalog.model.predicates import Predicate, Version
from datalog.model.rules import Rule
from datalog.model.spans import Span
from datalog.model.terms import Constant, Variable
from datalog.model.views import Block, Semantics, ViewDefinition, block, implied_groups
from datalog.syntax.places import Node, Places
from datalog.syntax.quoting import read_name


class Clause(Struct, frozen=True):
    """A rule as written, with what its head computes."""

    predicate: Predicate
    outputs: tuple[Expression, ...]
    body: tuple[Literal, ...]
    filters: tuple[Condition, ...]
    groups: tuple[Expression, ...] | None
    having: tuple[Condition, ...]
    head_span: Span | None
    span: Span | None

    def as_rule(self) -> Rule | None:
        """The clause as a rule, if it computes nothing."""
        terms = tuple(term for term in self.outputs if isinstance(term, Variable | Constant))
        if len(terms) < len(self.outputs) or self.filters or self.having or self.groups is not None:
            return None
        return Rule(Atom(self.predicate, terms, self.head_span), self.body, self.span)

    def as_block(self, number: int) -> Block:
        """The clause as a block of its view; an aggregate implies grouping by the other columns."""
        groups = self.groups
        if groups is None and aggregates_of((*self.outputs, *self.having)):
            groups = implied_groups(self.outputs)
        return block(
            self.predicate.name,
            number,
            self.body,
            self.outputs,
            filters=self.filters,
            groups=groups,
            having=self.having,
        )


class Heading(Struct, frozen=True):
    """`.view name(columns) semantics`."""

    name: str
    columns: tuple[str, ...] | None
    semantics: Semantics
    span: Span | None


def build_heading(node: Node, places: Places) -> Heading:
    """The heading that a parse tree stands for; problems are reported to `places`."""
    name, *rest = (cast(Token, child) for child in node.children)
    words = [token for token in rest if token.type != "SEMANTICS"]
    semantics = [Semantics(str(token)) for token in rest if token.type == "SEMANTICS"]
    columns = tuple(read_name(word, places) for word in words)
    return Heading(
        read_name(name, places), columns or None, (*semantics, Semantics.SET)[0], places.span(node)
    )


def sorted_clauses(
    clauses: Sequence[Clause], headings: Iterable[Heading], places: Places
) -> tuple[tuple[Rule, ...], tuple[ViewDefinition, ...]]:
    """The rules, and the views: relations with a heading, or with a clause that computes.

    Problems are reported to `places`: a second heading (DL103), one without rules (DL101), a version of a relation
    that computes (DL001), another number of columns than named (DL102).
    """
    known: dict[str, Heading] = {}
    for heading in headings:
        if heading.name in known:
            places.report(Code.DECLARED_TWICE, f"view `{heading.name}` is declared twice", heading.span)
        known[heading.name] = heading
    computed = {clause.predicate.name for clause in clauses if clause.as_rule() is None}
    rules: list[Rule] = []
    views: dict[str, list[Clause]] = {name: [] for name in known}
    for clause in clauses:
        name, rule = clause.predicate.name, clause.as_rule()
        plain = clause.predicate.version is not Version.STORED or (name not in known and name not in computed)
        if rule is not None and plain:
            rules.append(rule)
        elif clause.predicate.version is not Version.STORED:
            message = f"`{clause.predicate}` computes, which only a view can"
            places.report(Code.UNEXPECTED_TEXT, message, clause.span, "a version of a relation")
        else:
            views.setdefault(name, []).append(clause)
    for name, mine in views.items():
        if not mine:
            hint = "define it by a rule"
            places.report(Code.UNKNOWN_RELATION, f"view `{name}` has no rule", known[name].span, hint=hint)
    made = (_view(name, mine, known.get(name), places) for name, mine in views.items() if mine)
    return tuple(rules), tuple(made)


def _view(name: str, clauses: Sequence[Clause], heading: Heading | None, places: Places) -> ViewDefinition:
    columns = default_columns(clauses[0].outputs)
    if heading is not None and heading.columns is not None:
        columns = heading.columns
    for clause in clauses:
        if len(clause.outputs) != len(columns):
            message = f"view `{name}` has {len(columns)} columns, not {len(clause.outputs)}"
            places.report(Code.ARITY_DIFFERS, message, clause.span, f"{len(clause.outputs)} here")
    blocks = tuple(clause.as_block(number) for number, clause in enumerate(clauses))
    semantics = Semantics.SET if heading is None else heading.semantics
    span = clauses[0].span if heading is None else heading.span
    return ViewDefinition(name, columns, blocks, semantics, span=span)


def default_columns(outputs: Iterable[Expression]) -> tuple[str, ...]:
    """Names for columns that have none: of the variable, of the aggregate, else of the position.

    >>> from datalog.model.expressions import AggregateFunction
    >>> default_columns([Variable("X"), Aggregate(AggregateFunction.SUM, Variable("X")), Constant(1)])
    ('x', 'sum_x', 'c2')
    """
    names: list[str] = []
    for position, output in enumerate(outputs):
        match output:
            case Variable(name):
                stem = name.lower()
            case Aggregate(function, Variable(name)):
                stem = f"{function.value}_{name.lower()}"
            case Aggregate(function, None):
                stem = function.value
            case _:
                stem = f"c{position}"
        names.append(stem if stem not in names else f"{stem}_{position}")
    return tuple(names)
