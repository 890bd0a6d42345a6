"""What dumps of PostgreSQL's schemas hold beside tables: it is passed over, or read as Spark's SQL has it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

_CLIENT = re.compile(r"^\\(?:un)?restrict [A-Za-z0-9]+$", re.MULTILINE)
_SETTING = re.compile(r"select\s+pg_catalog\s*\.\s*set_config\b", re.IGNORECASE)
_NAME = r"(?:\w+|`[^`]+`|\"[^\"]+\")"
NAMES = rf"({_NAME}(?:\.{_NAME})*)"
_ALTERS = rf"alter\s+table\s+(?:if\s+exists\s+)?(?:only\s+)?{NAMES}\s"
_DROPS = re.compile(rf"{_ALTERS}.*\bdrop\s+(?!default\b|identity\b|expression\b)", re.IGNORECASE | re.DOTALL)
_INHERITS = re.compile(rf"{_ALTERS}+inherit\s+{NAMES}", re.IGNORECASE)
_WITHOUT_ZONE = ("without", "time", "zone")


def without_client_lines(text: str) -> str:
    r"""A text with blanks for the lines that are for PostgreSQL's own client.

    >>> without_client_lines("\\restrict x1\nselect 1")
    '            \nselect 1'
    """
    return _CLIENT.sub(lambda line: " " * len(line[0]), text)


def is_setting(text: str) -> bool:
    """Whether a query only sets something for the statements behind it."""
    return _SETTING.match(text) is not None


def adds_no_keys(chunk: Sequence[Token]) -> bool:
    """Whether a statement alters something without adding constraints, in whatever dialect: owners, defaults."""
    return chunk[0].token_type is TokenType.ALTER and all(
        token.token_type is not TokenType.CONSTRAINT for token in chunk
    )


def altered_by_dropping(text: str) -> tuple[str, ...]:
    """The parts of the name, the last one first, of a table of which a statement drops something; none of others.

    >>> altered_by_dropping("alter table only b.t drop constraint k")
    ('t', 'b')
    """
    found = _DROPS.match(text)
    return () if found is None else parts_of(found[1])


def inherited_by_altering(text: str) -> tuple[str, ...]:
    """The same of a table whose child a statement makes another one.

    >>> inherited_by_altering("alter table t inherit b.p")
    ('p', 'b')
    """
    found = _INHERITS.match(text)
    return () if found is None else parts_of(found[2])


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a name as it is written, the last one first."""
    return tuple(part.strip('`"') for part in re.findall(_NAME, name)[::-1])


def with_types_of_spark(chunk: list[Token]) -> list[Token]:
    """A CREATE TABLE with `timestamp_ntz` for `timestamp without time zone`; any other statement as it is."""
    if [token.token_type for token in chunk[:2]] != [TokenType.CREATE, TokenType.TABLE]:
        return chunk
    found = list[Token]()
    i = 0
    while i < len(chunk):
        token, behind = chunk[i], i + 1
        if behind + 2 < len(chunk) and chunk[behind].token_type is TokenType.L_PAREN:
            behind += 3  # how many digits behind the second
        said = tuple(one.text.lower() for one in chunk[behind : behind + len(_WITHOUT_ZONE)])
        if token.text.lower() == "timestamp" and said == _WITHOUT_ZONE:
            kind = TokenType.TIMESTAMPNTZ
            found.append(Token(kind, token.text, token.line, token.col, token.start, token.end))
            i = behind + len(_WITHOUT_ZONE)
        else:
            found.append(token)
            i += 1
    return found
