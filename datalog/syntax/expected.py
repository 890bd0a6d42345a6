"""What could have stood at a place, in plain words instead of the grammar's terminals."""

from __future__ import annotations

from collections.abc import Collection

_TERM = frozenset({"VARIABLE", "STRING"})
_TERM_WORDS = _TERM | {
    "ANONYMOUS",
    "QUOTED_VARIABLE",
    "INTEGER",
    "DECIMAL",
    "FLOAT",
    "TYPED",
    "TRUE",
    "FALSE",
    "NULL",
}
_COLUMN = frozenset({"NAME", "VARIABLE", "QUOTED_NAME"})
_SUBGOAL = frozenset({"NAME", "VARIABLE", "_NEGATION_SIGN"})

_WORDS = {
    "LPAR": "`(`",
    "COLON": "`:`",
    "NOT": "`not null`",
    "COMMA": "`,`",
    "RPAR": "`)`",
    "OPERATOR": "a comparison sign",
    "IS": "`is null`",
    "_ARROW": "`:-`",
    "_STOP": "`.`",
    "KEY": "`key`",
    "UNIQUE": "`unique`",
    "FOREIGN": "`foreign`",
    "REFERENCES": "`references`",
}


def expected_words(terminals: Collection[str]) -> str:
    """The terminals in plain words, joined by commas and `or`.

    Args:
        terminals: names of the grammar's terminals that could come next.

    Example:
        >>> expected_words({"COMMA", "AMPERSAND", "_STOP"})
        '`,` or `.`'
    """
    left = set(terminals)
    words: list[str] = []

    def take(needed: Collection[str], *phrases: str, taken: Collection[str] = ()) -> None:
        if left.issuperset(needed):
            left.difference_update(taken or needed)
            words.extend(phrases)

    take({"NAME", "_DECL"}, "a rule", "a declaration", taken={"NAME", "QUOTED_NAME", "_DECL", "$END"})
    take(_SUBGOAL, "a subgoal", taken={*_TERM_WORDS, *_SUBGOAL, "QUOTED_NAME", "NOT"})
    take(_TERM, "a variable", "a constant", taken=_TERM_WORDS)
    take(_COLUMN, "a column name", taken=_COLUMN | {"ANONYMOUS"})
    take({"NAME", "VARIABLE"}, "a column type")
    take({"NAME", "QUOTED_NAME"}, "a relation name")
    take({"INTEGER"}, "a whole number")
    take({"NULL", "NOT"}, "`null`", "`not null`")
    take({"NULL"}, "`null`")
    words += [phrase for terminal, phrase in _WORDS.items() if terminal in left]
    if not words:
        return "the end of the text"
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"
