"""The net effect of a relation's changes as statements over windows, the same for every engine.

Per key, in the order of the changes, the first and the last are all that matters. A relation's columns are `c0`,
`c1`, ... throughout; within a statement the further ones have names:

    changes   c0, ... the row; kind (0 it goes, 1 it comes), partial, position, scale, file, line, leads
    judged    c0, ...; first_c0, ... the key's first row; before_c0, ... the row of the change before; `JUDGED`

Positions are texts that are in the order of the positions. Which rules this computes says `selfmaint.feeds`.
"""

from __future__ import annotations

# ruff: noqa: S608 - columns are named here, and relations are in quotes
from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import sqlglot
from msgspec import Struct
from sqlglot import exp

Query: TypeAlias = exp.Query
Changes: TypeAlias = Callable[[Sequence[str]], str]
"""The text of a query for changes over relations of given names."""

PLACE = ("kind", "partial", "position", "scale", "file", "line", "leads")
JUDGED = ("kind", "first_kind", "position", "scale", "file", "line", "leads", "times", "is_last", "problem")
POSITION_DIGITS = 19

_ORDER = ("position", "file", "line", "kind")

_REMOVED, _ADDED = "is_last AND first_kind = 0", "is_last AND kind = 1"
_UNORDERED = """
    before_kind IS NOT NULL AND CASE
        WHEN before_position = position THEN CASE
            WHEN before_file IS NOT DISTINCT FROM file AND before_line = line THEN before_kind = kind
            ELSE NOT COALESCE(before_file = file, FALSE)
        END
        ELSE follows_lines AND COALESCE(before_file = file, FALSE) AND before_line > line
    END
"""
"""Nothing says that a change comes behind the one before it, of the same key."""


class Shape(Struct, frozen=True):
    """What the statements depend on.

    Attributes:
        width: the number of a row's columns.
        identity: the columns that tell rows apart.
        not_null: those that never hold null.
        exact: the scales in which equal changes at an equal position are one change, delivered again.
        follows_lines: the scales in which later lines of a file must be later positions.
    """

    width: int
    identity: Sequence[int]
    not_null: Iterable[int]
    exact: Sequence[str]
    follows_lines: Sequence[str]


def events(width: int) -> Changes:
    """Changes as they are stored: all columns in order."""
    return lambda names: _named(names[0], [*_row(width), *PLACE])


def versions(width: int, added: Iterable[str], scale: str, after: int | None, upto: int | None) -> Changes:
    """Rows with a change type and a version behind them, as changes of that version, within a range."""
    comes = f"CASE WHEN {_one_of('change', added)} THEN 1 ELSE 0 END"
    digits = f"LPAD(CAST(version AS TEXT), {POSITION_DIGITS}, '0')"
    shown = _listed([*_row(width), _place(comes, digits, scale)])

    def query(names: Sequence[str]) -> str:
        rows = _named(names[0], [*_row(width), "change", "version"])
        return f"SELECT {shown} FROM ({rows}) AS feed WHERE {_inside(after, upto)}"

    return query


def sets(width: int, kinds: Sequence[int], scale: str) -> Changes:
    """Relations of rows that go, or come, as changes without a position."""
    shown = [_listed([*_row(width), _place(str(kind), "''", scale)]) for kind in kinds]
    return lambda names: " UNION ALL ".join(
        f"SELECT {columns} FROM {_quoted(name)}" for name, columns in zip(names, shown, strict=True)
    )


def misfits(
    name: str, width: int, change_types: Iterable[str], after: int | None, upto: int | None
) -> exp.Query:
    """What does not fit, of rows with a change type and a version behind them.

    How many have none of the change types, one of their types, how many have no version or one below 0, and how many
    lie outside a range.
    """
    unknown = f"NOT COALESCE({_one_of('change', change_types)}, FALSE)"
    found = [
        _number_of(unknown),
        f"MAX(CASE WHEN {unknown} THEN change END)",
        _number_of("version IS NULL OR version < 0"),
        _number_of(f"NOT ({_inside(after, upto)})"),
    ]
    rows = _named(name, [*_row(width), "change", "version"])
    return _parsed(f"SELECT {_numbered(found)} FROM ({rows}) AS feed")


def judged(changes: str, shape: Shape) -> exp.Query:
    """The changes without repetitions, each with the row before, the key's first, and what is wrong with it."""
    row = _row(shape.width)
    alike = f"PARTITION BY {_listed([*row, 'kind', 'partial', 'position', 'scale', 'leads'])}"
    number, number_of = (
        f"ROW_NUMBER() OVER ({alike} ORDER BY {_in_order(['file', 'line'])})",
        f"COUNT(*) OVER ({alike})",
    )
    if not shape.exact:
        number, number_of = "1", "CAST(1 AS BIGINT)"
    once = f"""SELECT *, {_one_of("scale", shape.exact)} AS is_exact,
        {_one_of("scale", shape.follows_lines)} AS follows_lines, {number} AS number, {number_of} AS number_of
        FROM ({changes}) AS changes"""
    rest = [c for i, c in enumerate(row) if i not in shape.identity]  # so that messages are always the same
    key = f"PARTITION BY {_listed(row[i] for i in shape.identity)} ORDER BY {_in_order([*_ORDER, *rest])}"
    shown = [
        "CASE WHEN is_exact THEN number_of ELSE 1 END AS times",
        *(f"LAG({c}) OVER ({key}) AS before_{c}" for c in (*row, "kind", "position", "file", "line")),
        *(f"FIRST_VALUE({c}) OVER ({key}) AS first_{c}" for c in (*row, "kind")),
        f"LEAD(kind) OVER ({key}) IS NULL AS is_last",
    ]
    placed = f"SELECT *, {_listed(shown)} FROM ({once}) AS once WHERE number = 1 OR NOT is_exact"
    *known, _ = _judged_names(shape.width)
    return _parsed(f"SELECT {_numbered([*known, _problem(shape)])} FROM ({placed}) AS placed")


def _problem(shape: Shape) -> str:
    """The name of what is wrong with a change, or null."""
    never = (
        f"c{i} IS NULL{'' if i in shape.identity else ' AND NOT partial'}" for i in sorted(shape.not_null)
    )
    wrong = {
        "NULL": " OR ".join(never) or "FALSE",
        "UNORDERED": _UNORDERED,
        "INSERTED_TWICE": "kind = 1 AND before_kind = 1",
        "DELETED_TWICE": "kind = 0 AND before_kind = 0",
        "OTHER_ROW": f"kind = 0 AND before_kind = 1 AND NOT partial AND NOT ({_alike('before_', shape.width)})",
        "UNKNOWN_BEFORE": "before_kind IS NULL AND kind = 0 AND partial",
    }
    return " ".join(["CASE", *(f"WHEN {test} THEN '{name}'" for name, test in wrong.items()), "END"])


def measures(name: str, width: int, problems: Sequence[str]) -> exp.Query:
    """What judged changes amount to.

    How many events there are, and how many that repeat another; the last position; the first and the last name of a
    scale; how many changes have each problem.
    """
    found = [
        "CAST(COALESCE(SUM(CASE WHEN leads THEN times END), 0) AS BIGINT)",
        "CAST(COALESCE(SUM(CASE WHEN leads THEN times - 1 END), 0) AS BIGINT)",
        *("MAX(position)", "MIN(scale)", "MAX(scale)"),
        *(_number_of(_one_of("problem", [problem])) for problem in problems),
    ]
    return _of_judged(name, width, found)


def deleted(name: str, width: int) -> exp.Query:
    """Of judged changes: the rows of before the batch that are gone."""
    return _unless_carried_over(name, width, [f"first_{c}" for c in _row(width)], _REMOVED, _ADDED)


def inserted(name: str, width: int) -> exp.Query:
    """Of judged changes: the rows of after the batch that were not there before."""
    return _unless_carried_over(name, width, _row(width), _ADDED, _REMOVED)


def wrong(name: str, width: int, problem: str, most: int) -> exp.Query:
    """Of judged changes: the first ones with a problem: the row, the row before, position, file, line and kind."""
    names = [*_row(width), *(f"before_{c}" for c in _row(width)), *_ORDER]
    ordered = _in_order([*_ORDER, *_row(width)])
    behind = f"WHERE {_one_of('problem', [problem])} ORDER BY {ordered} LIMIT {most}"
    return _of_judged(name, width, names, behind)


def _unless_carried_over(name: str, width: int, columns: Sequence[str], there: str, unless: str) -> exp.Query:
    """Some columns where something holds, but not with something else for the same row."""
    carried_over = f"{unless} AND {_alike('first_', width)}"
    return _of_judged(name, width, columns, f"WHERE {there} AND NOT ({carried_over})")


def _of_judged(name: str, width: int, columns: Iterable[str], behind: str = "") -> exp.Query:
    rows = _named(name, _judged_names(width))
    return _parsed(f"SELECT {_numbered(columns)} FROM ({rows}) AS judged {behind}")


def _judged_names(width: int) -> list[str]:
    return [*(f"{part}{c}" for part in ("", "first_", "before_") for c in _row(width)), *JUDGED]


def _alike(part: str, width: int) -> str:
    """Whether a change has the row of another, nulls equal."""
    return " AND ".join(f"{part}{c} IS NOT DISTINCT FROM {c}" for c in _row(width)) or "TRUE"


def _inside(after: int | None, upto: int | None) -> str:
    tests = [] if after is None else [f"version > {after}"]
    tests += [] if upto is None else [f"version <= {upto}"]
    return " AND ".join(tests) or "TRUE"


def _place(kind: str, position: str, scale: str) -> str:
    values = (
        f"CAST({kind} AS INT)",
        "FALSE",
        position,
        f"'{scale}'",
        "CAST(NULL AS TEXT)",
        "CAST(0 AS BIGINT)",
        "TRUE",
    )
    return _listed(f"{value} AS {name}" for value, name in zip(values, PLACE, strict=True))


def _in_order(names: Iterable[str]) -> str:
    return _listed(f"{name} NULLS FIRST" for name in names)


def _one_of(name: str, values: Iterable[str]) -> str:
    found = _listed(exp.Literal.string(value).sql() for value in values)
    return f"{name} IN ({found})" if found else "FALSE"


def _number_of(condition: str) -> str:
    """How many rows fulfil a condition."""
    return f"COUNT(CASE WHEN {condition} THEN 1 END)"


def _numbered(items: Iterable[str]) -> str:
    """A selection whose columns are `c0`, `c1`, ..."""
    return _listed(f"{item} AS c{i}" for i, item in enumerate(items))


def _named(name: str, names: Sequence[str]) -> str:
    """A relation's columns under names."""
    return f"SELECT {_listed(f'c{i} AS {label}' for i, label in enumerate(names))} FROM {_quoted(name)}"


def _parsed(query: str) -> exp.Query:
    """A query whose parts say no more where they stood in a text: copying that takes longer than copying them."""
    found = sqlglot.parse_one(query)
    assert isinstance(found, exp.Query)
    for node in found.walk():
        node._meta = None
    return found


def _quoted(name: str) -> str:
    return exp.to_identifier(name, quoted=True).sql()


def _listed(items: Iterable[str]) -> str:
    return ", ".join(items)


def _row(width: int) -> list[str]:
    return [f"c{i}" for i in range(width)]
