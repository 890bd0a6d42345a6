"""The net effect of a relation's changes as statements over windows, the same for every engine.

Per key, in the order of the changes, the first and the last are all that matters. A relation's columns are `c0`,
`c1`, ... throughout; within a statement the further ones have names:

    changes   c0, ... the row; kind (0 it goes, 1 it comes), partial, position, scale, file, line, leads
    judged    c0, ...; first_c0, ... the key's first row; before_c0, ... the row of the change before; `JUDGED`

Positions are texts that are in the order of the positions. Which rules this computes says `selfmaint.feeds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

Query: TypeAlias = exp.Query
Changes: TypeAlias = Callable[[Sequence[str]], exp.Query]
"""A query for changes over relations of given names."""

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


@dataclass(frozen=True, slots=True)
class Shape:
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

    def query(names: Sequence[str]) -> exp.Query:
        rows = _named(names[0], [*_row(width), "change", "version"])
        comes = exp.Case(ifs=[exp.If(this=_one_of("change", added), true="1")], default="0")
        digits = exp.Pad(
            this=exp.cast("version", "text"),
            expression=exp.Literal.number(POSITION_DIGITS),
            fill_pattern=exp.Literal.string("0"),
            is_left=True,
        )
        found = exp.select(*_row(width), *_place(comes, digits, scale))
        return found.from_(rows.subquery("feed")).where(_inside(after, upto))

    return query


def sets(width: int, kinds: Sequence[int], scale: str) -> Changes:
    """Relations of rows that go, or come, as changes without a position."""

    def query(names: Sequence[str]) -> exp.Query:
        each: list[exp.Query] = []
        for name, kind in zip(names, kinds, strict=True):
            place = _place(exp.Literal.number(kind), exp.Literal.string(""), scale)
            each.append(exp.select(*_row(width), *place).from_(_table(name)))
        return exp.union(*each, distinct=False) if len(each) > 1 else each[0]

    return query


def misfits(
    name: str, width: int, change_types: Iterable[str], after: int | None, upto: int | None
) -> exp.Query:
    """What does not fit, of rows with a change type and a version behind them.

    How many have none of the change types, one of their types, how many have no version or one below 0, and how many
    lie outside a range.
    """
    rows = _named(name, [*_row(width), "change", "version"])
    unknown = exp.Not(this=exp.Coalesce(this=_one_of("change", change_types), expressions=[exp.false()]))
    outside = exp.Not(this=exp.Paren(this=_inside(after, upto)))
    found = [
        _number_of(unknown),
        exp.Max(this=exp.Case(ifs=[exp.If(this=unknown.copy(), true=exp.column("change"))])),
        _number_of(exp.condition("version IS NULL OR version < 0")),
        _number_of(outside),
    ]
    return _numbered(found).from_(rows.subquery("feed"))


def judged(changes: exp.Query, shape: Shape) -> exp.Query:
    """The changes without repetitions, each with the row before, the key's first, and what is wrong with it."""
    row, partition = _row(shape.width), "PARTITION BY {}".format
    alike = partition(", ".join([*row, "kind", "partial", "position", "scale", "leads"]))
    again = [
        f"ROW_NUMBER() OVER ({alike} ORDER BY {_in_order(['file', 'line'])})",
        f"COUNT(*) OVER ({alike})",
    ]
    number, number_of = again if shape.exact else ("1", "CAST(1 AS BIGINT)")
    once = exp.select(
        "*",
        exp.alias_(_one_of("scale", shape.exact), "is_exact"),
        exp.alias_(_one_of("scale", shape.follows_lines), "follows_lines"),
        f"{number} AS number",
        f"{number_of} AS number_of",
    ).from_(changes.subquery("changes", copy=False), copy=False)
    rest = [c for i, c in enumerate(row) if i not in shape.identity]  # so that messages are always the same
    key = f"{partition(', '.join(row[i] for i in shape.identity))} ORDER BY {_in_order([*_ORDER, *rest])}"
    placed = exp.select(
        "*",
        "CASE WHEN is_exact THEN number_of ELSE 1 END AS times",
        *(f"LAG({c}) OVER ({key}) AS before_{c}" for c in (*row, "kind", "position", "file", "line")),
        *(f"FIRST_VALUE({c}) OVER ({key}) AS first_{c}" for c in (*row, "kind")),
        f"LEAD(kind) OVER ({key}) IS NULL AS is_last",
    )
    placed = placed.from_(once.subquery("once", copy=False), copy=False)
    placed = placed.where("number = 1 OR NOT is_exact", copy=False)
    *known, _ = (exp.column(name) for name in _judged_names(shape.width))
    found = _numbered([*known, _problem(shape)])
    return _bare(found.from_(placed.subquery("placed", copy=False), copy=False))


def _problem(shape: Shape) -> exp.Expr:
    """The name of what is wrong with a change, or null."""
    nulls = [
        exp.condition(f"c{i} IS NULL" if i in shape.identity else f"c{i} IS NULL AND NOT partial")
        for i in sorted(shape.not_null)
    ]
    other_row = exp.and_(
        "kind = 0 AND before_kind = 1 AND NOT partial", exp.not_(_alike("before_", shape.width))
    )
    wrong = {
        "NULL": exp.or_(*nulls) if nulls else exp.false(),
        "UNORDERED": exp.condition(_UNORDERED),
        "INSERTED_TWICE": exp.condition("kind = 1 AND before_kind = 1"),
        "DELETED_TWICE": exp.condition("kind = 0 AND before_kind = 0"),
        "OTHER_ROW": other_row,
        "UNKNOWN_BEFORE": exp.condition("before_kind IS NULL AND kind = 0 AND partial"),
    }
    return exp.Case(ifs=[exp.If(this=test, true=exp.Literal.string(name)) for name, test in wrong.items()])


def measures(name: str, width: int, problems: Sequence[str]) -> exp.Query:
    """What judged changes amount to.

    How many events there are, and how many that repeat another; the last position; the first and the last name of a
    scale; how many changes have each problem.
    """
    found = [
        _whole(exp.Sum(this=exp.condition("CASE WHEN leads THEN times END"))),
        _whole(exp.Sum(this=exp.condition("CASE WHEN leads THEN times - 1 END"))),
        exp.Max(this=exp.column("position")),
        exp.Min(this=exp.column("scale")),
        exp.Max(this=exp.column("scale")),
        *(_number_of(_one_of("problem", [problem])) for problem in problems),
    ]
    return _bare(_of_all(_numbered(found), name, width))


def deleted(name: str, width: int) -> exp.Query:
    """Of judged changes: the rows of before the batch that are gone."""
    return _of_judged(name, width, [f"first_{c}" for c in _row(width)], _REMOVED, _ADDED)


def inserted(name: str, width: int) -> exp.Query:
    """Of judged changes: the rows of after the batch that were not there before."""
    return _of_judged(name, width, _row(width), _ADDED, _REMOVED)


def wrong(name: str, width: int, problem: str, most: int) -> exp.Query:
    """Of judged changes: the first ones with a problem: the row, the row before, position, file, line and kind."""
    names = [*_row(width), *(f"before_{c}" for c in _row(width)), *_ORDER]
    query = _of_all(_numbered(map(exp.column, names)), name, width)
    ordered = _in_order([*_ORDER, *_row(width)]).split(", ")
    query = query.where(_one_of("problem", [problem]), copy=False).order_by(*ordered, copy=False)
    return _bare(query.limit(most, copy=False))


def _of_judged(name: str, width: int, columns: Sequence[str], there: str, unless: str) -> exp.Query:
    """Some columns where something holds, but not with something else for the same row."""
    carried_over = exp.and_(unless, _alike("first_", width))
    query = _of_all(_numbered(map(exp.column, columns)), name, width)
    return _bare(query.where(there, exp.not_(carried_over), copy=False))


def _of_all(query: exp.Select, name: str, width: int) -> exp.Select:
    """A selection from all judged changes."""
    return query.from_(_named(name, _judged_names(width)).subquery("judged", copy=False), copy=False)


def _judged_names(width: int) -> list[str]:
    return [*(f"{part}{c}" for part in ("", "first_", "before_") for c in _row(width)), *JUDGED]


def _alike(part: str, width: int) -> exp.Expr:
    """Whether a change has the row of another, nulls equal."""
    pairs = (exp.NullSafeEQ(this=exp.column(f"{part}{c}"), expression=exp.column(c)) for c in _row(width))
    return exp.and_(*pairs)


def _inside(after: int | None, upto: int | None) -> exp.Expr:
    tests: list[exp.Expr] = [exp.true()]
    if after is not None:
        tests.append(exp.GT(this=exp.column("version"), expression=exp.Literal.number(after)))
    if upto is not None:
        tests.append(exp.LTE(this=exp.column("version"), expression=exp.Literal.number(upto)))
    return exp.and_(*tests)


def _place(kind: exp.Expr, position: exp.Expr, scale: str) -> list[exp.Expr]:
    values = {
        "kind": exp.cast(kind, "int"),
        "partial": exp.false(),
        "position": position,
        "scale": exp.Literal.string(scale),
        "file": exp.cast(exp.Null(), "text"),
        "line": exp.cast(exp.Literal.number(0), "bigint"),
        "leads": exp.true(),
    }
    return [exp.alias_(values[name], name) for name in PLACE]


def _in_order(names: Iterable[str]) -> str:
    return ", ".join(f"{name} NULLS FIRST" for name in names)


def _one_of(name: str, values: Iterable[str]) -> exp.Expr:
    found = [exp.Literal.string(value) for value in values]
    return exp.In(this=exp.column(name), expressions=found) if found else exp.false()


def _number_of(condition: exp.Expr) -> exp.Expr:
    """How many rows fulfil a condition."""
    return exp.Count(this=exp.Case(ifs=[exp.If(this=condition, true=exp.Literal.number(1))]))


def _whole(total: exp.Expr) -> exp.Expr:
    return exp.cast(exp.Coalesce(this=total, expressions=[exp.Literal.number(0)]), "bigint")


def _numbered(items: Iterable[exp.Expr]) -> exp.Select:
    """A selection whose columns are `c0`, `c1`, ..."""
    return exp.select(*(exp.alias_(item, f"c{i}", copy=False) for i, item in enumerate(items)), copy=False)


def _named(name: str, names: Sequence[str]) -> exp.Select:
    """A relation's columns under names."""
    items = (exp.alias_(exp.column(f"c{i}"), label, copy=False) for i, label in enumerate(names))
    return exp.select(*items, copy=False).from_(_table(name), copy=False)


def _bare(query: exp.Select) -> exp.Select:
    """A query whose parts say no more where they stood in a text: copying that takes longer than copying them."""
    for node in query.walk():
        node._meta = None
    return query


def _table(name: str) -> exp.Table:
    return exp.Table(this=exp.to_identifier(name, quoted=True))


def _row(width: int) -> list[str]:
    return [f"c{i}" for i in range(width)]
