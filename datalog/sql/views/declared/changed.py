"""Statements that change what others define, or what SQL means: to pass them over would be to read something else.

    CREATE VIEW v AS SELECT a FROM t;  ALTER VIEW v AS SELECT b FROM t        SET spark.sql.ansi.enabled = false
    CREATE TABLE d AS SELECT a FROM t;  INSERT INTO d SELECT b FROM u
    CREATE TEMPORARY FUNCTION upper(s STRING) RETURNS STRING RETURN s

They are errors.
"""

from __future__ import annotations

import re

from datalog.diagnostics import Code, Diagnostic
from datalog.model.schema import BINARY_COLLATION
from datalog.sql.views.catalogue import Catalogue
from datalog.sql.views.declared.dumps import NAMES, parts_of
from datalog.sql.views.kept.text_allowed import TEXT_FUNCTIONS
from datalog.sql.views.source import Statement
from datalog.sql.views.written_out.as_written import without_comments
from datalog.sql_settings import SQL_SETTINGS, TIME_ZONE, UTC

_KEYS = "constraint|primary|unique|foreign|check|key|index|generated|partition"
_COLUMN = r"(?:column\s+)?(?:if\s+exists\s+)?([\w`\"]+)"
_ALTER = (
    rf"alter\s+(?:(?:materialized\s+|streaming\s+)?view|table)\s+(?:if\s+exists\s+)?(?:only\s+)?{NAMES}\s+"
)
_ALTERED = re.compile(rf"{_ALTER}(.+)", re.IGNORECASE | re.DOTALL)
_RETYPED = re.compile(
    rf"{_ALTER}alter\s+{_COLUMN}\s+(?:set\s+data\s+)?type\s+([^,;]+?(?:\([\d\s,]+\))?)(?:\s+using\b(?:[^,()]|\([^()]*\))*)?$",
    re.IGNORECASE | re.DOTALL,
)
_SAME = re.compile(
    rf"(?:owner|unset|cluster|enable|disable|replica|attach|detach|validate|comment|recover|compact|force|no\s|reset|inherit"
    r"|set\s*$|set\s+(?:tblproperties|serde|owner|schema|tags|location|statistics|storage|tablespace|access|(?:un)?logged)"
    r"|(?:engine|auto_increment)\b|(?:add|alter|drop)\s+schedule\b|add\s+(?:fulltext|spatial)\b"
    rf"|add\s+(?:if\s+not\s+exists\s+)?(?:{_KEYS})\b|rename\s+(?:constraint|index|partition)\b|partition\b"
    r"|drop\s+(?:if\s+exists\s+)?(?:constraint|primary|foreign|unique|check|index|key|partition)\b"
    rf"|alter\s+{_COLUMN}\s+(?:set\s*$|set\s+(?:default|statistics|storage|compression|not\s+null|tags|mask)|drop\b|comment\b|add\b|unset\b)"
    r")",
    re.IGNORECASE,
)
_DROPPED = re.compile(
    rf"drop\s+(?:table|(?:materialized\s+)?view)\s+(?:if\s+exists\s+)?{NAMES}", re.IGNORECASE
)
_FUNCTION = re.compile(
    rf"create\s+(?:or\s+replace\s+)?(?:temp(?:orary)?\s+)?(?:aggregate\s+)?(?:function|macro)\s+(?:if\s+not\s+exists\s+)?{NAMES}",
    re.IGNORECASE,
)
_COLLATED = re.compile(
    r"create\s+(?:schema|database)\b.*\bdefault\s+collation\s+`?(\w+)", re.IGNORECASE | re.DOTALL
)
_WRITES = re.compile(
    r"(?:insert|replace|merge|upsert|update|delete|truncate|copy|load|(?:with|from)\b.*\binsert)\b",
    re.IGNORECASE | re.DOTALL,
)
_TARGETS = re.compile(
    r"\b(?:insert\s+(?:or\s+\w+\s+)?(?:ignore\s+|all\s+)?(?:into\s+|overwrite\s+)?|into\s+|update\s+|truncate\s+"
    r"|(?:replace|merge|copy)\s+(?:into\s+)?|delete\s+(?:from\s+)?)"
    rf"(?:table\s+)?(?:if\s+exists\s+)?(?:only\s+)?({NAMES}(?:\s*,\s*{NAMES})*)",
    re.IGNORECASE,
)
_NOT_WRITTEN = re.compile(
    r"execute\b|(?:alter|drop|insert|merge|update|delete)\b.*?\bidentifier\s*\(", re.IGNORECASE
)
_TEXT = re.compile(r"'(?:[^'\\]|\\.)*'|\"[^\"]*\s[^\"]*\"")
_WITHIN = re.compile(r"'(?:[^'\\]|\\.)*'|\([^()]*\)")
_FILLED = re.compile(
    r"(?:insert|with|from)\b.*\b(?:select|from|\S+\s+table\s+[\w.`]+$)|merge\b", re.IGNORECASE | re.DOTALL
)
_SET = re.compile(r"set\s+(?:(time\s+zone)\s|([\w.`]+)\s*=)\s*(.+)", re.IGNORECASE | re.DOTALL)
_MEANT = {name.casefold(): (name, value) for name, value in {**SQL_SETTINGS, TIME_ZONE: UTC[0]}.items()}


def changing(statement: Statement, catalogue: Catalogue) -> Diagnostic | None:
    """The error of a statement that changes what is defined before it, or what SQL means; None of others."""
    text = plain(statement)
    if setting := _set(text):
        name, value, means = setting
        what = f"`{name}` is set to `{value}`, under which SQL means something else than is read here"
        hint = f"leave it out: `{name}` is `{means}` here; a time zone is said in the warehouse file, in `[engine]`"
        return _error(statement, what, hint)
    function = _FUNCTION.match(text)
    if function and (name := parts_of(function[1])[0].casefold()) in TEXT_FUNCTIONS:
        what = f"a function of its own is named `{name}`, as one of Spark's, for which the views' calls are taken"
        return _error(statement, what, "give it another name, there and in the views")
    collated = _COLLATED.match(text)
    if collated and collated[1].casefold() != BINARY_COLLATION:
        what = f"a schema is given the collation `{collated[1]}`, which its tables' columns then have"
        return _error(statement, what, "say the collation at the columns: `name STRING COLLATE ..`")
    if _NOT_WRITTEN.match(text):
        hint = "write the statement and the name, instead of `EXECUTE` and `IDENTIFIER(..)`"
        return _error(statement, "a statement does not say in words what it changes", hint)
    found = _DROPPED.match(text) or _ALTERED.match(text)
    if found is None or (found.re is _ALTERED and all(map(_SAME.match, _actions(found[2])))):
        return None
    views, bases = catalogue.meant(parts_of(found[1]))
    if not views and not bases:
        return None
    what = f"a statement `{_word(text)}` changes `{parts_of(found[1])[0]}`, which is defined before it"
    return _error(statement, what, "write the CREATE statement as it is to be, and leave this one out")


def _error(statement: Statement, what: str, hint: str) -> Diagnostic:
    return Diagnostic(Code.SQL_SKIPPED, what, statement.span, "it cannot be passed over", hint=hint)


def _word(text: str) -> str:
    return text.split(maxsplit=1)[0].lower()


def retyped(text: str) -> tuple[tuple[str, ...], str, str] | None:
    """The table whose column a statement gives another type, its last part first, the column, and the type."""
    found = _RETYPED.match(text)
    return None if found is None else (parts_of(found[1]), found[2].strip('`"'), found[3])


def writes(text: str) -> bool:
    """Whether a statement writes rows of a table."""
    return _WRITES.match(text) is not None and _NOT_WRITTEN.match(text) is None


def altered(text: str) -> tuple[str, ...]:
    """The parts of the name, the last one first, of what a statement alters; none of others."""
    found = _ALTERED.match(text)
    return () if found is None else parts_of(found[1])


def writing(statement: Statement, catalogue: Catalogue) -> Diagnostic | None:
    """The error of one that writes rows of what is a view, or fills a table by a query; None of others.

    The catalogue has all that is defined, also behind the statement, whose place among several texts says nothing.
    """
    text = _TEXT.sub("''", plain(statement))
    word = _word(text)
    lists = (found[1] for found in _TARGETS.finditer(text))
    for written in (parts_of(name) for listed in lists for name in listed.split(",")):
        views, bases = catalogue.meant(written)
        if views:
            what = f"a statement `{word}` writes rows of `{written[0]}`, which a query defines"
            hint = "define all its rows by one query, for example with UNION ALL, and leave the statement out"
        elif bases and _FILLED.match(text):
            what = f"a statement `{word}` fills `{written[0]}` by a query: it is no base table then"
            hint = "define it by `CREATE TABLE .. AS SELECT`; leave the statement out if its own changes are given"
        else:
            continue
        return _error(statement, what, hint)
    return None


def _actions(text: str) -> list[str]:
    """What an ALTER does, one thing after another."""
    while (shorter := _WITHIN.sub(" ", text)) != text:
        text = shorter
    return [one.strip() for one in text.split(",")]


def plain(statement: Statement) -> str:
    """A statement's text without comments, its names written together."""
    return re.sub(r" ?\. ?", ".", without_comments(statement.text))


def _set(text: str) -> tuple[str, str, str] | None:
    """The setting that a statement sets to another value than it has here: its name, that value, and the one here."""
    found = _SET.match(text)
    if found is None:
        return None
    name, means = _MEANT.get(TIME_ZONE.casefold() if found[1] else found[2].strip("`").casefold(), (None, ""))
    value = found[3].replace(" ", "").strip("'\"")
    same = UTC if name == TIME_ZONE else (means,)
    return None if name is None or value.casefold() in map(str.casefold, same) else (name, value, means)
