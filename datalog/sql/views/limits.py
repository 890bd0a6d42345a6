"""How deep and long SQL may be: the parser and whatever walks over its trees are recursive."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

MOST_CHARACTERS = 10_000_000
"""Of one text: a whole dbt project in one file."""
MOST_TOKENS = 100_000
"""Of one statement."""
MOST_DIGITS = 38
"""Of a number: Spark's decimals hold no more, and it refuses a longer one."""
DEEPEST_BRACKETS = 64
"""How many brackets, CASE and the like may stand inside one another."""
DEEPEST_TREE = 128
"""How many nodes of a tree may stand inside one another; a chain of AND, OR or UNION is one."""

_OPEN = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSE = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_APART = frozenset(
    {TokenType.COMMA, TokenType.AND, TokenType.OR, TokenType.UNION, TokenType.FROM, TokenType.WHERE}
    | {TokenType.WHEN, TokenType.THEN, TokenType.ELSE, TokenType.ON, TokenType.USING}
)
"""What ends a run of operators: the parser goes on from there without going deeper."""
_OPERANDS = frozenset(
    {TokenType.VAR, TokenType.IDENTIFIER, TokenType.NUMBER, TokenType.STRING}
    | {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.END}
)
_SIGNS = frozenset({TokenType.DASH, TokenType.PLUS})
_RECURSIVE = frozenset(
    {TokenType.NOT, TokenType.DASH, TokenType.PLUS, TokenType.TILDE, TokenType.LT, TokenType.INTERVAL}
    | {TokenType.ARROW, TokenType.BETWEEN, TokenType.ARRAY, TokenType.STRUCT, TokenType.MAP}
    | {TokenType.CREATE, TokenType.DISTINCT, TokenType.WITH, TokenType.PIPE, TokenType.CONNECT_BY}
)
"""After these the parser reads the rest inside them."""
_JOIN = 5
"""What a join counts whose ON is not seen yet: the parser looks twice at each of them, and so at what is inside."""
_CHAINED = (exp.And, exp.Or, exp.SetOperation)


def too_deep(tokens: Sequence[Token]) -> Token | None:
    """The first token at which the parser would be too deep inside others; looked for before it begins.

    What is counted is at least the parser's depth: brackets that are open, and in each the operators that read
    what is behind them, since the last comma or the like.
    """
    runs = [0]
    before = None
    for token in tokens:
        kind = token.token_type
        previous, before = before, kind
        if kind in _OPEN:
            runs.append(runs[-1] + 1)
        elif kind in _CLOSE:
            if len(runs) > 1:
                runs.pop()
        elif kind is TokenType.JOIN and previous not in (TokenType.CROSS, TokenType.NATURAL):
            runs[-1] += _JOIN
        elif kind in _RECURSIVE and not (kind in _SIGNS and previous in _OPERANDS):
            runs[-1] += 1
        elif kind in _APART:
            runs[-1] = runs[-2] + 1 if len(runs) > 1 else 0
        if runs[-1] > DEEPEST_BRACKETS:
            return token
    return None


def deep_node(tree: exp.Expr) -> exp.Expr | None:
    """The first node too deep inside others; None if there is none."""
    waiting: list[tuple[exp.Expr, int]] = [(tree, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST_TREE:
            return node
        for child in node.iter_expressions():
            chained = isinstance(node, _CHAINED) and type(child) is type(node)
            waiting.append((child, depth if chained else depth + 1))
    return None


def chain(node: exp.Expr) -> Iterator[exp.Expr]:
    """What a chain of AND, of OR, or of UNION connects, in order: the tree of a long one is deep."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if type(one) is type(node):
            waiting += (one.expression, one.this)
        else:
            yield one


def parts_of(node: exp.Expr, kind: type[exp.Expr]) -> Iterator[exp.Expr]:
    """What a chain of AND or of OR connects, in order, without the parentheses in and around it."""
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, exp.Paren):
            waiting.append(one.this)
        elif isinstance(one, kind):
            waiting += [one.expression, one.this]
        else:
            yield one


def long_number(tokens: Sequence[Token]) -> Token | None:
    """The first number with more digits than can be held."""
    for token in tokens:
        if token.token_type is TokenType.NUMBER and _digits(token.text) > MOST_DIGITS:
            return token
    return None


def _digits(text: str) -> int:
    """How many digits a decimal type has that holds a number; 0 of a double."""
    whole, _, rest = text.partition(".")
    return 0 if "e" in text.lower() else len(whole.lstrip("0")) + len(rest)
