"""The FROM of a query: its sources side by side, and the conditions that joins make."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from itertools import product

from msgspec import Struct
from sqlglot import exp

from datalog.copies import replace
from datalog.diagnostics import Code
from datalog.model import Atom, Compared, Condition, Declaration, Term, Variable
from datalog.sql.views.conditions import condition, conjuncts
from datalog.sql.views.expressions import Reader
from datalog.sql.views.near import near
from datalog.sql.views.outside import JOIN_HINT
from datalog.sql.views.scope import Draft, Meaning, Scope, Source, Typed
from datalog.sql.views.source import Problems, UnreadableError

MOST_BLOCKS = 32
"""How many blocks a view may have: a union inside a join multiplies them."""


class Piece(Struct, frozen=True):
    """Some sources joined: a draft without outputs, what its names mean, and conditions still to apply.

    Attributes:
        beside: of a grouped query that is joined with other tables, the places of these tables' atoms in the body.
    """

    draft: Draft
    scope: Scope
    conditions: tuple[Condition, ...] = ()
    distinct: bool = False
    beside: tuple[int, ...] = ()


ReferencingPair = tuple[Term, Term, bool]
"""A column of a foreign key, that of the other table which it equals, and whether the first is never null."""

ReadSource = Callable[[exp.Expr], list[Piece]]
"""Reads one table or subquery of FROM: its alternatives, more than one for a union."""

Declared = Callable[[str], Declaration | None]
"""What is declared of a base relation."""

Either = Callable[[Piece, Piece, Piece, Declared, Reader], list[Piece]]
"""Makes alternatives of a LEFT JOIN, given its sides, the two joined, and what is declared: see `partners.py`."""


def joined(
    first: exp.Expr,
    joins: list[exp.Join],
    read: ReadSource,
    declared: Declared,
    reader: Reader,
    either: Either | None = None,
) -> list[Piece]:
    """The alternatives of a FROM: for each choice of one alternative a source, the sources joined.

    A LEFT JOIN along a declared foreign key whose columns are never null is an inner join: each row has its partner.
    `either` makes several alternatives of another LEFT JOIN, or none where it cannot be read.

    Raises:
        UnreadableError: what is wrong is among the problems.
    """
    trees = [first, *(join.this for join in joins)]
    alternatives = [read(tree) for tree in trees]
    if len(trees) > 1:
        grouped = [one for one in alternatives if any(piece.draft.groups is not None for piece in one)]
        is_one = len(grouped) == 1 and len(grouped[0]) == 1 and bool(grouped[0][0].draft.groups)
        for tree, found in zip(trees, alternatives, strict=True):
            _require_joinable(tree, found, reader.problems, may_group=is_one and found is grouped[0])
    _require_plain_commas(joins, reader.problems)
    if any(join.side and len(found) > 1 for join, found in zip(joins, alternatives[1:], strict=True)):
        either = None  # a row without a partner would be one without any in each
    choices = list(product(*alternatives))
    if len(choices) > MOST_BLOCKS:
        raise reader.problems.outside(
            f"a join of unions with {len(choices)} combinations", first, "make each union a view of its own"
        )
    found = [one for choice in choices for one in _join_all(choice, joins, declared, reader, either)]
    if len(found) > MOST_BLOCKS:
        raise reader.problems.outside(f"{len(found)} ways to have partners", first, JOIN_HINT)
    return found


def _require_joinable(tree: exp.Expr, found: list[Piece], problems: Problems, *, may_group: bool) -> None:
    what = None
    if not may_group and any(piece.draft.groups is not None for piece in found):
        what = "grouping"
    elif any(piece.distinct for piece in found):
        what = "DISTINCT"
    if what is not None:
        raise problems.outside(
            f"{what} inside a join", tree, "make it a materialized view of its own, and join that"
        )


def _require_plain_commas(joins: list[exp.Join], problems: Problems) -> None:
    """A comma binds more loosely than NATURAL and USING, which the tree does not show: refuse the mix."""
    named = next((j for j in joins if j.args.get("using") or j.method == "NATURAL"), None)
    if named is None:
        return
    for join in joins[: joins.index(named)]:
        if join.kind == "CROSS" and _has_comma(join, problems):
            raise problems.outside(
                "a comma together with NATURAL or USING", named.this, "write `cross join` for the comma"
            )


def _has_comma(join: exp.Join, problems: Problems) -> bool:
    """Whether a cross join is written with a comma, or could be."""
    place = next((n.meta for n in join.walk() if n.meta.get("start") is not None), None)
    before = "" if place is None else problems.source.text[: place["start"]].rstrip(" \t\r\n(`").lower()
    return not before.endswith("cross join")


def _join_all(
    choice: tuple[Piece, ...],
    joins: list[exp.Join],
    declared: Declared,
    reader: Reader,
    either: Either | None,
) -> list[Piece]:
    """One choice of alternatives joined: one piece, or one for each choice of what `either` makes of LEFT JOINs."""
    pieces = [choice[0]]
    for join, right in zip(joins, choice[1:], strict=True):
        before, pieces = pieces, []
        for piece in before:
            found = join_pair(piece, right, join, reader)
            if not join.side or has_partner(piece, right, found, declared):
                pieces.append(found)
                continue
            more = either(piece, right, found, declared, reader) if either and join.side == "LEFT" else []
            if not more:
                what = "LEFT JOIN" if join.kind != "OUTER" else "LEFT OUTER JOIN"
                raise reader.problems.outside(what, join.this, JOIN_HINT)
            pieces += more
    return pieces if len(choice) == 1 else [_with_groups(piece, choice) for piece in pieces]


def _with_groups(piece: Piece, choice: Sequence[Piece]) -> Piece:
    """Sources joined, grouped as the one of them that is."""
    grouped = next((one for one in choice if one.draft.groups is not None), None)
    if grouped is None:
        return piece
    beside, start = list[int](), 0
    for one in choice:
        atoms = (i for i, literal in enumerate(one.draft.body) if isinstance(literal, Atom))
        beside += [start + i for i in (one.beside if one is grouped else atoms)]
        start += len(one.draft.body)
    draft = replace(piece.draft, groups=grouped.draft.groups, having=grouped.draft.having)
    return replace(piece, draft=draft, beside=tuple(beside))


def has_partner(left: Piece, right: Piece, both: Piece, declared: Declared) -> bool:
    """Whether each row of the left side of a join has a partner: the join is along a foreign key without nulls."""
    keys = foreign_keys_of(left, right, both, declared)
    return any(all(is_never_null for _, _, is_never_null in pairs) for pairs in keys)


def foreign_keys_of(
    left: Piece, right: Piece, both: Piece, declared: Declared
) -> list[frozenset[ReferencingPair]]:
    """The foreign keys that a join is along, and by nothing else; more than one of the same columns."""
    match right.draft:
        case Draft(body=(Atom() as target,), filters=(), groups=None) if not right.conditions and _is_whole(
            target
        ):
            made = list(conjuncts(both.conditions[len(left.conditions) :]))
        case _:
            return []
    pairs = {
        frozenset((one.left, one.right)) for one in made if isinstance(one, Compared) and one.operator == "="
    }
    along = (key for one in left.draft.body if isinstance(one, Atom) for key in _along(one, target, declared))
    found = [key for key in along if {frozenset((mine, its)) for mine, its, _ in key} == pairs]
    return found if len(pairs) == len(made) else []


def _is_whole(atom: Atom) -> bool:
    """Whether an atom stands for all rows of its table: equal columns would be one variable."""
    return len(set(atom.terms)) == atom.arity and all(isinstance(term, Variable) for term in atom.terms)


def _along(atom: Atom, target: Atom, declared: Declared) -> Iterator[frozenset[ReferencingPair]]:
    """For each foreign key from one table to another, the pairs of columns that it makes equal."""
    one, other = declared(atom.predicate.name), declared(target.predicate.name)
    if one is None or other is None:
        return
    places, others = ({name.casefold(): i for i, name in enumerate(its.column_names)} for its in (one, other))
    for key in one.foreign_keys:
        columns = [places.get(name.casefold()) for name in key.columns]
        targets = [others.get(name.casefold()) for name in key.target_columns or other.key or ()]
        if key.target.casefold() != other.name.casefold() or len(columns) != len(targets):
            continue
        if None not in columns and None not in targets:
            yield frozenset(
                (atom.terms[i], target.terms[j], one.is_not_null(i))
                for i, j in zip(columns, targets, strict=True)
                if i is not None and j is not None
            )


def join_pair(left: Piece, right: Piece, join: exp.Join, reader: Reader) -> Piece:
    """Two sources joined, the conditions of the join behind theirs."""
    problems = reader.problems
    if right.scope.merged:
        raise problems.outside(
            "NATURAL or USING in parentheses on the right", join.this, "join one table after the other"
        )
    merged, equal = merged_columns(left.scope, right.scope, join, problems)
    scope = Scope((*left.scope.sources, *right.scope.sources), merged)
    _require_aliases(left.scope, right.scope, join, problems)
    conditions = [*left.conditions, *right.conditions, *equal]
    on = join.args.get("on")
    if on is not None:
        with contextlib.suppress(UnreadableError):  # what is wrong is noted: read on, to note the rest
            conditions.append(condition(reader.within(scope), on))
    body = (*left.draft.body, *right.draft.body)
    filters = (*left.draft.filters, *right.draft.filters)
    return Piece(Draft(body, filters=filters), scope, tuple(conditions))


def _require_aliases(left: Scope, right: Scope, join: exp.Join, problems: Problems) -> None:
    """Two sources of one name are refused, as their columns cannot be told apart."""
    for source in right.sources:
        if source.alias and any(other.alias and other.alias == source.alias for other in left.sources):
            problems.error(
                Code.SQL_AMBIGUOUS,
                f"`{source.alias[0]}` occurs twice in FROM",
                join.this,
                "the second one",
                hint="give each of them an alias of its own",
            )


def merged_columns(
    left: Scope, right: Scope, join: exp.Join, problems: Problems
) -> tuple[dict[str, Typed], list[Condition]]:
    """The columns that USING or NATURAL makes one of, the latter as the left side has them; and the equalities."""
    using = [identifier.name for identifier in join.args.get("using") or ()]
    if join.method == "NATURAL":
        theirs = {name.casefold() for name, _ in right.star()}
        using = [name for name, _ in left.star() if name.casefold() in theirs]
    merged: dict[str, Typed] = {}
    equal: list[Condition] = []
    for name in using:
        one, kind = _side(left, name, join, problems)
        other, _ = _side(right, name, join, problems)
        merged[name.casefold()] = (name, (one, kind))
        equal.append(Compared("=", one, other, problems.source.span_of(join.this)))
    kept = {n: column for n, column in left.merged.items() if n not in merged}
    kept |= {n: column for n, column in right.merged.items() if n not in merged}
    return {**merged, **kept}, equal


def _side(scope: Scope, name: str, join: exp.Join, problems: Problems) -> Meaning:
    folded = name.casefold()
    if folded in scope.merged:
        return scope.merged[folded][1]
    found = [what for source in scope.sources for what in source.named(name)]
    if len(found) == 1:
        return found[0]
    known = [column for column, _ in scope.star()]
    if found:
        raise problems.error(
            Code.SQL_AMBIGUOUS, f"column `{name}` is ambiguous", join.this, f"{len(found)} tables have one"
        )
    raise problems.error(
        Code.SQL_UNKNOWN_COLUMN,
        f"unknown column `{name}` in USING",
        join.this,
        "one side of the join has no such column",
        hint=near(name, known, "column"),
    )


def renamed(piece: Piece, alias: str, names: Sequence[str]) -> Piece:
    """The piece under an alias, as one source with columns of these names."""
    its = [meaning for _, meaning in piece.scope.typed_star()]
    pairs = tuple((name, what) for name, (what, _) in zip(names, its, strict=True))
    types = tuple(kind for _, kind in its)
    return replace(piece, scope=Scope((Source((alias,) if alias else (), pairs, types),)))


def column_names(piece: Piece) -> Iterator[str]:
    """The names of the columns of a FROM."""
    for name, _ in piece.scope.star():
        yield name
