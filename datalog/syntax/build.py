"""From lark's parse tree to the model's values, with spans.

What the grammar cannot say is checked here, and collected: escapes, dates, versions, reserved words.
The tree is walked from the top, since an anonymous variable's name depends on the whole rule.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from difflib import get_close_matches
from typing import cast

from lark import Token

from datalog.diagnostics import Code
from datalog.model.literals import Atom, Comparison, Literal, Negation, NullTest, Operator
from datalog.model.predicates import Predicate, Version
from datalog.model.rules import Program, Rule
from datalog.model.schema import Declaration
from datalog.model.spans import Span
from datalog.model.terms import Constant, Term, Value, Variable
from datalog.syntax.anonymous import fresh_names
from datalog.syntax.build_parts import ExpressionBuilder, build_declaration
from datalog.syntax.build_view import Clause, Heading, build_heading, sorted_clauses
from datalog.syntax.constants import read_constant
from datalog.syntax.limits import DEEPEST_NEGATION
from datalog.syntax.places import Node, Places
from datalog.syntax.quoting import RESERVED, EscapeError, read_name, read_quoted, report_escape, unquote

_VERSION = re.compile(r"@([a-z_]+?)((?:_[0-9]{1,9})*)")
_MOST_SHOWN = 60
"""So many letters of a name tell which one is meant."""

_CONSTANT_HINTS = {
    "date": "a date is written `date '2026-01-31'`",
    "timestamp": "a timestamp is written `timestamp '2026-01-31 23:59:00'`",
    "timestamp_ntz": "a timestamp without a zone is written `timestamp_ntz '2026-01-31 23:59:00'`",
    "decimal": "a decimal is written `decimal '12.50'`, or just `12.50`",
    "double": "a double is written `double '1.5'`, or just `1.5e0`",
}


def build_program(tree: Node, places: Places) -> Program:
    """The program that a parse tree stands for; problems are reported to `places`."""
    clauses: list[Clause] = []
    declarations: list[Declaration] = []
    headings: list[Heading] = []
    for statement in tree.children:
        node = cast(Node, statement)
        match node.data:
            case "rule":
                clauses.append(RuleBuilder(node, places).clause(node))
            case "view":
                headings.append(build_heading(node, places))
            case _:
                declarations.append(build_declaration(node, places))
    rules, views = sorted_clauses(clauses, headings, places)
    return Program(rules, tuple(declarations), views)


def build_rule(tree: Node, places: Places) -> Rule:
    """The rule that a parse tree stands for; problems are reported to `places`."""
    clause = RuleBuilder(tree, places).clause(tree)
    rule = clause.as_rule()
    if rule is None:
        places.report(
            Code.UNEXPECTED_TEXT,
            "a rule by itself computes nothing",
            clause.span,
            "an aggregate, an expression or a condition on them",
            hint="read it as a program: it is a view then",
        )
        return Rule(Atom(clause.predicate, ()), clause.body, clause.span)
    return rule


class RuleBuilder:
    """Builds one rule; it knows the names that the rule's anonymous variables get."""

    def __init__(self, tree: Node, places: Places) -> None:
        self._places = places
        self._fresh: Iterator[str] = fresh_names(set(_underscored_names(tree)))
        self._depth = 0

    def clause(self, node: Node) -> Clause:
        """A rule with all that its head may compute."""
        head, *rest = (cast(Node, child) for child in node.children)
        parts = {part.data: part.children for part in rest}
        predicate = self._predicate(cast(Node, head.children[0]))
        read = ExpressionBuilder(self._term, self._places)
        outputs = tuple(read.expression(child) for child in head.children[1:])
        body = tuple(self._literal(cast(Node, child)) for child in parts.get("body", ()))
        filters = tuple(read.condition(cast(Node, child)) for child in parts.get("where", ()))
        groups = None
        if "group" in parts:
            groups = tuple(read.expression(child) for child in parts["group"])
        having = tuple(read.condition(cast(Node, child)) for child in parts.get("having", ()))
        spans = (self._places.span(head), self._places.span(node))
        return Clause(predicate, outputs, body, filters, groups, having, *spans)

    def _literal(self, node: Node) -> Literal:
        span = self._places.span(node)
        match node.data:
            case "atom":
                return self._atom(node)
            case "negation":
                return self._negation(node, span)
            case "comparison":
                left, operator, right = (cast(Token, child) for child in node.children)
                return Comparison(_operator(operator), self._term(left), self._term(right), span)
            case "is_null" | "is_not_null":
                term = self._term(cast(Token, node.children[0]))
                return NullTest(term, node.data == "is_not_null", span)
            case _:
                raise AssertionError(f"no literal: {node.data}")

    def _negation(self, node: Node, span: Span | None) -> Negation:
        if not node.children:
            return Negation((), span)
        inner = cast(Node, node.children[0])
        if inner.data == "atom":
            return Negation((self._atom(inner),), span)
        if self._depth == DEEPEST_NEGATION:
            _report_too_deep(span, self._places)
            return Negation((), span)
        self._depth += 1
        body = tuple(self._literal(cast(Node, child)) for child in inner.children)
        self._depth -= 1
        return Negation(body, span)

    def _atom(self, node: Node) -> Atom:
        predicate = self._predicate(cast(Node, node.children[0]))
        terms = tuple(
            self._term(cast(Token, child))
            for part in node.children[1:]
            for child in cast(Node, part).children
        )
        return Atom(predicate, terms, self._places.span(node))

    def _predicate(self, node: Node) -> Predicate:
        name = read_name(cast(Token, node.children[0]), self._places)
        if len(node.children) == 1:
            return Predicate(name)
        return _with_version(Predicate(name), cast(Token, node.children[1]), self._places)

    def _term(self, token: Token) -> Term:
        span = self._places.span(token)
        match token.type:
            case "ANONYMOUS":
                return Variable(next(self._fresh), span)
            case "VARIABLE":
                if token.lower() in RESERVED:
                    _report_reserved(token, span, self._places)
                return Variable(str(token), span)
            case "QUOTED_VARIABLE":
                return Variable(read_quoted(token, self._places, 1), span)
            case _:
                return Constant(_constant(token, span, self._places), span)


def _underscored_names(tree: Node) -> Iterator[str]:
    """The names that begin with an underscore and are spelled out in a rule."""
    for subtree in tree.iter_subtrees():
        for token in subtree.children:
            if not isinstance(token, Token):
                continue
            if token.type == "VARIABLE" and token.startswith("_"):
                yield str(token)
            elif token.type == "QUOTED_VARIABLE":
                # A bad escape is reported where the variable is built.
                with suppress(EscapeError):
                    yield unquote(token[1:])


def _operator(token: Token) -> Operator:
    sign = str(token)
    return "!=" if sign == "<>" else cast(Operator, sign)


def _with_version(predicate: Predicate, token: Token, places: Places) -> Predicate:
    """The predicate in the version that `@version` or `@version_0_2` names."""
    found = _VERSION.fullmatch(token)
    versions = {version.value: version for version in Version}
    if found is None or found[1] not in versions:
        name = token[1:] if found is None else found[1]
        near = get_close_matches(name.lower(), versions, 1)
        places.report(
            Code.UNKNOWN_VERSION,
            f"no version `{name[:_MOST_SHOWN]}` of a relation",
            places.span(token),
            "unknown version",
            note="a version is a word such as `inserted`, `deleted` or `before`, in lower case",
            hint=f"did you mean `@{near[0]}`?" if near else "a name that has `@` in it stands in backticks",
        )
        return predicate
    columns = tuple(int(column) for column in found[2].split("_")[1:])
    return predicate.of(versions[found[1]], columns)


def _constant(token: Token, span: Span | None, places: Places) -> Value:
    try:
        return read_constant(token.type, str(token))
    except EscapeError as error:
        report_escape(token, token.index(error.escape), error.escape, places)
    except ValueError as error:
        kind = re.split(r"\W", str(token), maxsplit=1)[0] if token.type == "TYPED" else "number"
        places.report(
            Code.BAD_CONSTANT, f"bad {kind}: {error}", span, f"no such {kind}", hint=_CONSTANT_HINTS.get(kind)
        )
    return None


def _report_too_deep(span: Span | None, places: Places) -> None:
    places.report(
        Code.TOO_DEEP,
        f"more than {DEEPEST_NEGATION} negations inside one another",
        span,
        "one too many",
        hint="give an inner one a rule of its own, and negate its head",
    )


def _report_reserved(token: Token, span: Span | None, places: Places) -> None:
    places.report(
        Code.RESERVED_WORD,
        f"reserved word `{token}` used as a variable",
        span,
        "this would be a variable",
        hint=f"write `{token.lower()}` in lower case, or choose another name",
    )
