"""How deep, long and wide a program may be: what walks over it is recursive, and reading it takes time."""

from __future__ import annotations

from lark import Tree

from datalog.diagnostics import Code, Diagnostic, ProgramError
from datalog.model.spans import Span
from datalog.syntax.places import Node, Places

DEEPEST = 128
"""How many nodes of a parse tree may stand inside one another."""
DEEPEST_NEGATION = 64
"""How many negations may stand inside one another."""
MOST_CHARACTERS = 250_000
"""Reading so many takes some seconds."""
MOST_SUBGOALS = 256
"""How many subgoals a body may have."""


def require_readable(text: str, source: str) -> None:
    """Refuses a text that is too long.

    Raises:
        ProgramError: DL014.
    """
    if len(text) > MOST_CHARACTERS:
        raise ProgramError(
            [
                Diagnostic(
                    Code.TOO_LARGE,
                    f"a program of {len(text)} characters: more than {MOST_CHARACTERS} are not read",
                    Span(1, 1, 1, source),
                    hint="make a warehouse of its own of views that have no relation in common",
                )
            ]
        )


def report_size(tree: Node, places: Places) -> None:
    """Reports what stands too deep inside something else (DL013), and bodies that are too long (DL014)."""
    waiting: list[tuple[Node, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            places.report(
                Code.TOO_DEEP,
                f"more than {DEEPEST} expressions inside one another",
                places.span(node),
                "one too many",
                hint="compute a part of it in a view of its own",
            )
            return
        if node.data == "body" and len(node.children) > MOST_SUBGOALS:
            places.report(
                Code.TOO_LARGE,
                f"a body of {len(node.children)} subgoals: more than {MOST_SUBGOALS} are not read",
                places.span(node.children[MOST_SUBGOALS]),
                "one too many",
                hint="give some of them a rule of their own",
            )
        inside = depth + (node.data not in ("negation", "body"))  # negations have a limit of their own
        waiting += [(child, inside) for child in node.children if isinstance(child, Tree)]
