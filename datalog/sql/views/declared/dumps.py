"""What dumps of PostgreSQL's schemas hold beside Spark's SQL: it is passed over, or read as Spark's SQL has it.

Definitions of tables that only another database understands are read without what says nothing of types and keys.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sqlglot.tokenizer_core import Token, TokenType

_DUMP = re.compile(r"^-- PostgreSQL database (?:cluster )?dump$", re.MULTILINE)
_HEAD = 1000
"""Characters in which a dump says that it is one."""
_SECTION = re.compile(r"^-- (?:Data for )?Name: [^\n]*; Type: ([A-Z ]+); Schema: [^\n]*$", re.MULTILINE)
_OF_TABLES = frozenset({"TABLE", "TABLE ATTACH", "CONSTRAINT", "FK CONSTRAINT", "TYPE", "DOMAIN"})
_OWNED = re.compile(r"^(?:ALTER [A-Z ]+ [^\n;]+ OWNER TO|SET) [^\n]+;$", re.MULTILINE)
_SHOWN = re.compile(r"[^\n]")
_NO_COLUMN = ("check", "exclude")
_VALUES = ("default", "generated", "check", "storage", "compression", "comment", "auto_increment", "on")
_PROMISES = ("not", "primary", "unique", "references", "constraint", "collate")
_CLIENT = re.compile(r"^\\(?:un)?restrict [A-Za-z0-9]+$", re.MULTILINE)
_SETTING = re.compile(r"select\s+pg_catalog\s*\.\s*set_config\b", re.IGNORECASE)
_NAME = r"(?:\w+|`[^`]+`|\"[^\"]+\")"
NAMES = rf"({_NAME}(?:\.{_NAME})*)"
_DOMAIN = re.compile(
    rf"create\s+domain\s+{NAMES}\s+as\s+(.+?)(?:\s+(?:constraint|check|not\s+null|null|default|collate)\b.*)?$",
    re.IGNORECASE | re.DOTALL,
)
_COLLATED = re.compile(
    r"\bcollate\s+(?!(?:pg_catalog\.)?[\"`]?(?:C|POSIX|default|ucs_basic|utf8_binary)\b)", re.IGNORECASE
)
_ENUMERATION = re.compile(rf"create\s+type\s+{NAMES}\s+as\s+enum\b", re.IGNORECASE)
_ATTACHES = re.compile(
    rf"alter\s+table\s+(?:only\s+)?{NAMES}\s+attach\s+partition\s+{NAMES}\s", re.IGNORECASE
)
_ALTERS = rf"alter\s+table\s+(?:if\s+exists\s+)?(?:only\s+)?{NAMES}\s"
_DROPS = re.compile(rf"{_ALTERS}.*\bdrop\s+(?!default\b|identity\b|expression\b)", re.IGNORECASE | re.DOTALL)
_INHERITS = re.compile(rf"{_ALTERS}+inherit\s+{NAMES}", re.IGNORECASE)
_WITHOUT_ZONE = ("without", "time", "zone")


def is_dump(text: str) -> bool:
    """Whether a text is what `pg_dump` writes."""
    return _DUMP.search(text, 0, _HEAD) is not None


def of_tables(text: str) -> str:
    r"""A dump with blanks for all that defines no table and no type: views, functions, rows, rights; other texts whole.

    What is in it of views is the database's own, and may use all of its SQL. Lines that are for PostgreSQL's own client
    are blank in any text.

    >>> of_tables("\\restrict x1\nselect 1")
    '            \nselect 1'
    """
    text = _CLIENT.sub(lambda line: " " * len(line[0]), text)
    if not is_dump(text):
        return text
    heads = [*_SECTION.finditer(text)]
    ends = [*(one.start() for one in heads[1:]), len(text)]
    pieces = [_SHOWN.sub(" ", text[: heads[0].start() if heads else len(text)])]
    for head, end in zip(heads, ends, strict=False):
        piece = text[head.start() : end]
        kept = head[1] in _OF_TABLES
        pieces.append(_OWNED.sub(_blank, piece) if kept else _SHOWN.sub(" ", piece))
    return "".join(pieces)


def _blank(found: re.Match[str]) -> str:
    return _SHOWN.sub(" ", found[0])


def named_type(text: str) -> tuple[tuple[str, ...], str] | None:
    """The name that a statement gives a type, its last part first, and the type; None of others.

    Of texts of a collation of their own the type is the name itself, which means none.

    >>> named_type("create type s.mood as enum ('sad')"), named_type("create domain s.Code as text not null")
    ((('mood', 's'), 'string'), (('Code', 's'), 'text'))
    """
    found = _ENUMERATION.match(text) or _DOMAIN.match(text)
    if found is None:
        return None
    kind = "string" if found.re is _ENUMERATION else found[2].strip()
    return parts_of(found[1]), parts_of(found[1])[0] if _COLLATED.search(text) else kind


def attached(text: str) -> tuple[str, ...]:
    """The parts of the name of a table that a statement makes a partition of another one.

    >>> attached("alter table only a.t attach partition a.t_1 for values in (1)")
    ('t_1', 'a')
    """
    found = _ATTACHES.match(text)
    return () if found is None else parts_of(found[2])


def columns_alone(chunk: list[Token]) -> list[Token]:
    """A CREATE TABLE without what says nothing of types and keys: values, checks, what only its own database reads."""
    depth, item = 0, list[Token]()
    found, items, between = list[Token](), list[list[Token]](), list[Token]()
    for position, token in enumerate(chunk):
        opens, closes = token.token_type is TokenType.L_PAREN, token.token_type is TokenType.R_PAREN
        if depth == 0:
            found.append(token)
            depth += opens
        elif depth == 1 and (closes or token.token_type is TokenType.COMMA):
            if its := _column_alone(item):
                items.append(its)
                between.append(token)
            item = []
            if closes and not items:
                return chunk
            if closes:
                parts = zip(items, [*between[:-1], token], strict=True)
                return [*found, *(one for its, sep in parts for one in (*its, sep)), *chunk[position + 1 :]]
        else:
            item.append(token)
            depth += opens - closes
    return chunk


def _column_alone(item: list[Token]) -> list[Token]:
    words = [token.text.lower() for token in item]
    if words[:1] == ["constraint"]:
        words = words[2:]
    if words[:1] and words[0] in _NO_COLUMN:
        return []
    found, depth, skips = list[Token](), 0, False
    for position, token in enumerate(item):
        word = token.text.lower()
        if depth == 0 and position > 1:
            if word in _VALUES and item[position - 1].text.lower() not in ("delete", "update", "references"):
                skips = True
            elif word in _PROMISES and not (skips and item[position - 1].text.lower() in _VALUES):
                skips = False
            elif word == "varying" and item[position - 1].text.lower() == "bit":
                continue
        depth += (token.token_type is TokenType.L_PAREN) - (token.token_type is TokenType.R_PAREN)
        is_type = position == 1 or (position > 1 and item[position - 1].token_type is TokenType.DOT)
        if is_type and token.token_type is TokenType.STRING and depth == 0:
            # A type's name in double quotes, a text to Spark.
            token = Token(TokenType.VAR, token.text, token.line, token.col, token.start, token.end)  # noqa: PLW2901
        if not skips:
            found.append(token)
    return found


def is_setting(text: str) -> bool:
    """Whether a query only sets something for the statements behind it."""
    return _SETTING.match(text) is not None


def adds_no_keys(chunk: Sequence[Token]) -> bool:
    """Whether a statement alters something without adding constraints, or makes a domain, in whatever dialect."""
    if [token.text.lower() for token in chunk[:2]] == ["create", "domain"]:
        return True
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


def inherited_by_altering(text: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The parts of the names of a table and of its child that a statement makes another one; None of others.

    >>> inherited_by_altering("alter table t inherit b.p")
    (('p', 'b'), ('t',))
    """
    found = _INHERITS.match(text)
    return None if found is None else (parts_of(found[2]), parts_of(found[1]))


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
