"""From the model's values back to text; reading what was shown gives the same values.

Soundness of `parse_program(show(p)) == p`:

1. every name and string that is not plain is quoted, with what cannot be printed escaped (`quoting`);
2. a constant's text has the form that its Python type alone has (`constants`);
3. a variable is shown as `_` only where reading gives it its name again (`anonymous`);
4. each literal's text is closed: a negation of anything but one atom stands in parentheses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import assert_never

from datalog.model.expressions import (
    Aggregate,
    AllOf,
    AnyOf,
    Arithmetic,
    Call,
    Case,
    Cast,
    Compared,
    Condition,
    Expression,
    Holds,
    IsNull,
    Minus,
    walk,
)
from datalog.model.literals import Atom, Comparison, Literal, Negation, NullTest
from datalog.model.predicates import Predicate, Version
from datalog.model.rules import Program, Rule
from datalog.model.schema import Column, Declaration, ForeignKey, TypeName
from datalog.model.substitution import terms_of
from datalog.model.terms import Constant, Term, Variable
from datalog.model.views import Block, ViewDefinition, implied_groups
from datalog.syntax.anonymous import shown_as_anonymous
from datalog.syntax.constants import show_constant
from datalog.syntax.quoting import is_plain_name, is_plain_variable, quote

_LINE_WIDTH = 100


def show(value: Program | Declaration | Rule | ViewDefinition | Literal | Term | Predicate) -> str:
    """The text of a program or a part of one.

    Returns:
        A program ends with a line feed; a rule and a declaration end with a full stop.

    Semantics:
        `parse_program(show(p)) == p` and `parse_rule(show(r)) == r`, whatever names and values hold. The
        exceptions are not-a-number, which equals nothing and is no constant of the language, and negations
        nested deeper than the language allows.

    >>> show(Rule(Atom(Predicate("Big Sales"), (Variable("X"), Variable("_1"))),
    ...           (Atom(Predicate("sale"), (Variable("X"), Constant("it's"))),)))
    "`Big Sales`(X, _) :- sale(X, 'it''s')."
    """
    match value:
        case Program():
            return _show_program(value)
        case Declaration():
            return _show_declaration(value)
        case Rule():
            return _show_rule(value)
        case ViewDefinition():
            return _show_view(value)
        case Atom() | Comparison() | NullTest() | Negation():
            return _show_literal(value, shown_as_anonymous(terms_of(value)))
        case Variable() | Constant():
            return _show_term(value, ())
        case Predicate():
            return _show_predicate(value)
        case _:
            assert_never(value)


def _show_program(program: Program) -> str:
    declarations = "".join(f"{_show_declaration(declaration)}\n" for declaration in program.declarations)
    rules = "".join(f"{_show_rule(rule)}\n" for rule in program.rules)
    views = "\n".join(f"{_show_view(view)}\n" for view in program.views)
    return "\n".join(part for part in (declarations, rules, views) if part)


def _show_view(view: ViewDefinition) -> str:
    columns = f"({_show_names(view.columns)})" if view.columns else ""
    heading = f".view {_show_name(view.name)}{columns} {view.semantics.value}.\n"
    return heading + "\n".join(_show_block(view.name, one) for one in view.blocks)


def _show_block(name: str, one: Block) -> str:
    above = (*one.outputs, *one.filters, *(one.groups or ()), *one.having)
    body = [term for literal in one.core.body for term in terms_of(literal)]
    # The order of the text: outputs, body, then the rest.
    written = [leaf for output in one.outputs for leaf in walk(output)]
    written += [*body, *(leaf for part in above[len(one.outputs) :] for leaf in walk(part))]
    terms = [leaf for leaf in written if isinstance(leaf, Variable | Constant)]
    anonymous = shown_as_anonymous(terms)
    head = _show_name(name)
    if one.outputs:
        head += f"({', '.join(_show_expression(o, _term_shower(anonymous)) for o in one.outputs)})"
    literals = [_show_literal(literal, anonymous) for literal in one.core.body]
    parts = []
    if one.filters:
        parts.append("where " + _show_conditions(one.filters, anonymous))
    if one.groups is not None and (not one.aggregates or one.groups != implied_groups(one.outputs)):
        shown = ", ".join(_show_expression(group, _term_shower(anonymous)) for group in one.groups)
        parts.append(f"group {shown or '()'}")
    if one.having:
        parts.append("having " + _show_conditions(one.having, anonymous))
    line = " ".join([head, *([":-", ", ".join(literals)] if literals else []), *parts]) + "."
    if len(line) <= _LINE_WIDTH:
        return line
    broken = " :-\n    " + ",\n    ".join(literals) if literals else ""
    return head + broken + "".join(f"\n    {part}" for part in parts) + "."


def _show_conditions(conditions: Iterable[Condition], anonymous: Collection[str]) -> str:
    return ", ".join(_show_condition(condition, _term_shower(anonymous)) for condition in conditions)


def _term_shower(anonymous: Collection[str]) -> Callable[[Term], str]:
    return lambda term: _show_term(term, anonymous)


def _show_rule(rule: Rule) -> str:
    terms = [*rule.head.terms, *(term for literal in rule.body for term in terms_of(literal))]
    anonymous = shown_as_anonymous(terms)
    head = _show_literal(rule.head, anonymous)
    if not rule.body:
        return f"{head}."
    literals = [_show_literal(literal, anonymous) for literal in rule.body]
    line = f"{head} :- {', '.join(literals)}."
    if len(line) <= _LINE_WIDTH:
        return line
    return f"{head} :-\n    " + ",\n    ".join(literals) + "."


def _show_literal(literal: Literal, anonymous: Collection[str]) -> str:
    match literal:
        case Atom():
            name = _show_predicate(literal.predicate)
            terms = ", ".join(_show_term(term, anonymous) for term in literal.terms)
            return f"{name}({terms})" if literal.terms else name
        case Comparison():
            left, right = _show_term(literal.left, anonymous), _show_term(literal.right, anonymous)
            return f"{left} {literal.operator} {right}"
        case NullTest():
            return f"{_show_term(literal.term, anonymous)} is {'not ' if literal.negated else ''}null"
        case Negation((Atom() as atom,)):
            return f"not {_show_literal(atom, anonymous)}"
        case Negation():
            return f"not ({', '.join(_show_literal(inner, anonymous) for inner in literal.body)})"
        case _:
            assert_never(literal)


def _show_term(term: Term, anonymous: Collection[str]) -> str:
    match term:
        case Constant():
            return show_constant(term.value)
        case Variable():
            if term.name in anonymous:
                return "_"
            return term.name if is_plain_variable(term.name) else f"?{quote(term.name, '`')}"
        case _:
            assert_never(term)


def _show_predicate(predicate: Predicate) -> str:
    name = _show_name(predicate.name)
    if predicate.version is Version.STORED and not predicate.columns:
        return name
    return f"{name}@{predicate.version.value}" + "".join(f"_{column}" for column in predicate.columns)


def _show_name(name: str) -> str:
    return name if is_plain_name(name) else quote(name, "`")


def _show_declaration(declaration: Declaration) -> str:
    columns = ", ".join(_show_column(column) for column in declaration.columns)
    parts = [f".decl {_show_name(declaration.name)}({columns})"]
    if declaration.key is not None:
        parts.append(f"key({_show_names(declaration.key)})")
    parts += [f"unique({_show_names(names)})" for names in declaration.unique]
    parts += [_show_foreign_key(foreign_key) for foreign_key in declaration.foreign_keys]
    return " ".join(parts) + "."


def _show_column(column: Column) -> str:
    type_text = "" if column.type.name is TypeName.ANY else f": {column.type}"
    return f"{_show_name(column.name)}{type_text}{' not null' if column.not_null else ''}"


def _show_foreign_key(foreign_key: ForeignKey) -> str:
    columns, target_columns = _show_names(foreign_key.columns), _show_names(foreign_key.target_columns)
    return f"foreign({columns}) references {_show_name(foreign_key.target)}({target_columns})"


def _show_names(names: Iterable[str]) -> str:
    return ", ".join(_show_name(name) for name in names)


def _show_expression(expression: Expression, term: Callable[[Term], str]) -> str:
    """An expression.

    >>> _show_expression(Minus(Arithmetic("*", Variable("X"), Constant(-1))), lambda t: str(t))
    '-(X * -1)'
    """
    match expression:
        case Variable() | Constant():
            return term(expression)
        case Arithmetic(operator, left, right):
            return f"{_operand(left, term)} {operator} {_operand(right, term)}"
        case Minus(operand):
            return f"-({_show_expression(operand, term)})"
        case Cast(operand, column_type, safe=safe):
            return f"{'try_cast' if safe else 'cast'}({_show_expression(operand, term)} as {column_type})"
        case Call(function, arguments):
            return f"{function}({', '.join(_show_expression(argument, term) for argument in arguments)})"
        case Case(branches, otherwise):
            shown = " ".join(
                f"when {_show_condition(test, term)} then {_show_expression(result, term)}"
                for test, result in branches
            )
            return f"case {shown} else {_show_expression(otherwise, term)} end"
        case Aggregate(function, operand, distinct):
            inner = "*" if operand is None else _show_expression(operand, term)
            return f"{function.value}({'distinct ' if distinct else ''}{inner})"
        case _:
            assert_never(expression)


def _show_condition(condition: Condition, term: Callable[[Term], str]) -> str:
    """A condition; see `_show_expression`."""
    match condition:
        case Compared(operator, left, right):
            return f"{_show_expression(left, term)} {operator} {_show_expression(right, term)}"
        case IsNull(operand, negated):
            return f"{_show_expression(operand, term)} is {'not ' if negated else ''}null"
        case Holds(operand, negated):
            return f"{'not ' if negated else ''}holds({_show_expression(operand, term)})"
        case AllOf(conditions):
            return f"all({', '.join(_show_condition(one, term) for one in conditions)})"
        case AnyOf(conditions):
            return f"any({', '.join(_show_condition(one, term) for one in conditions)})"
        case _:
            assert_never(condition)


def _operand(expression: Expression, term: Callable[[Term], str]) -> str:
    shown = _show_expression(expression, term)
    return f"({shown})" if isinstance(expression, Arithmetic) else shown
