"""Reading programs: text to `Program`, with diagnostics for what cannot be read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import cache
from importlib.resources import files
from typing import TypeVar

from lark import Lark, Token, Tree, UnexpectedInput, UnexpectedToken

from datalog.cache import cache_folder
from datalog.diagnostics import ProgramError
from datalog.model.rules import Program, Rule
from datalog.syntax.build import build_program, build_rule
from datalog.syntax.limits import report_size, require_readable
from datalog.syntax.places import Node, Places

_MOST_SYNTAX_ERRORS = 20

BuiltT = TypeVar("BuiltT")


def parse_program(text: str, source: str = "<program>") -> Program:
    """The program that a text stands for.

    `source` is the text's name for diagnostics, such as a file's path.

    Raises:
        ProgramError: with DL001 to DL014, all that were found.

    Semantics:
        Reading is not checking: `datalog.analysis.validate` says whether the program makes sense.

    Complexity:
        Linear in the text.

    >>> program = parse_program("v(X) :- r(X, _), not s(X), X < 3.  % cheap ones")
    >>> program.rules[0].body[2]
    Comparison(operator='<', left=Variable(name='X'), right=Constant(value=3))
    """
    return _read(text, source, "program", build_program)


def parse_rule(text: str, source: str = "<rule>") -> Rule:
    """The one rule or fact that a text stands for; its full stop may be missing.

    Raises:
        ProgramError: with DL001 to DL014, all that were found.

    >>> str(parse_rule("v(X) :- r(X), X != 3").head.predicate)
    'v'
    """
    return _read(text, source, "single_rule", _build_single_rule)


def _build_single_rule(tree: Node, places: Places) -> Rule:
    (rule,) = (child for child in tree.children if isinstance(child, Tree))
    return build_rule(rule, places)


@cache
def _parser() -> Lark:
    grammar = files("datalog.syntax").joinpath("grammar.lark").read_text(encoding="utf-8")
    folder = cache_folder()
    return Lark(
        grammar,
        parser="lalr",
        start=["program", "single_rule"],
        propagate_positions=True,
        maybe_placeholders=False,
        cache=str(folder / "grammar.pickle") if folder else False,
    )


def _accepted(text: str, error: UnexpectedInput, start: str) -> frozenset[str]:
    """The terminals that could have stood at an error."""
    if isinstance(error, UnexpectedToken):
        return _plain(error.accepts or error.expected)
    # The lexer's own list is that of the automaton's state, which says too much: ask at the place itself.
    attempt = _parser().parse_interactive(text[: error.pos_in_stream], start=start)
    attempt.exhaust_lexer()
    accepted: set[str] = attempt.accepts()  # type: ignore[no-untyped-call]  # lark has no annotation here
    return _plain(accepted)


def _plain(accepted: Iterable[str]) -> frozenset[str]:
    """The terminals without those of computed heads, which are no help to who writes rules."""
    found = frozenset(accepted)
    return found - {"LPAR"} if "FUNCTION" in found else found


def _read(text: str, source: str, start: str, build: Callable[[Node, Places], BuiltT]) -> BuiltT:
    require_readable(text, source)
    places = Places(source, text.split("\n"))
    tree = _tree(text, start, places)
    report_size(tree, places)
    if places.diagnostics:
        raise ProgramError(places.diagnostics)
    built = build(tree, places)
    if places.diagnostics:
        raise ProgramError(places.diagnostics)
    return built


def _tree(text: str, start: str, places: Places) -> Node:
    """The parse tree.

    After a syntax error the statements behind it are read too, so that all errors are reported at once;
    what was read already is blanked out, which keeps every line and column.
    """
    rest = text
    while True:
        try:
            tree: Tree[Token] = _parser().parse(rest, start=start)
        except UnexpectedInput as error:
            from datalog.syntax.explain import explain  # noqa: PLC0415 - only of what cannot be read

            diagnostic, resume = explain(error, rest, places, _accepted(rest, error, start))
            places.diagnostics.append(diagnostic)
            if resume is None or start != "program" or len(places.diagnostics) >= _MOST_SYNTAX_ERRORS:
                raise ProgramError(places.diagnostics) from None
            rest = re.sub(r"[^\n]", " ", rest[:resume]) + rest[resume:]
        else:
            if places.diagnostics:
                raise ProgramError(places.diagnostics)
            return tree
