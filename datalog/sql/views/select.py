"""One SELECT as drafts of blocks: conditions, grouping, outputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence

from sqlglot import exp

from datalog.analysis.expression_types import settled
from datalog.copies import replace
from datalog.diagnostics import Code
from datalog.model import (
    ANY,
    ColumnType,
    Compared,
    Comparison,
    Condition,
    Constant,
    Expression,
    IsNull,
    Literal,
    NullTest,
    TypeName,
    Variable,
    aggregates_of,
    expression_variables,
    has_one_value,
)
from datalog.sql.views.conditions import condition, conjuncts
from datalog.sql.views.declared.column_types import column_type
from datalog.sql.views.expressions import Reader
from datalog.sql.views.joins import Piece
from datalog.sql.views.limits import chain
from datalog.sql.views.moments import is_moment
from datalog.sql.views.scope import Draft, Meaning, Query, Variables
from datalog.sql.views.source import Problems, UnreadableError
from datalog.sql.views.written_out.current_time import without_moments

_LOOK_ALIKE = (TypeName.FLOAT, TypeName.DOUBLE)


def with_conditions(draft: Draft, given: Iterable[Condition], variables: Variables) -> Draft:
    """The draft with further conditions, all of which must hold; they are over the draft's variables.

    Two columns become one variable only where their types are the same and equal values look the same: not for
    doubles (0.0 and -0.0), nor for decimals of different scale. Otherwise the equality stays a comparison.
    """
    waiting = list(conjuncts(given))
    while waiting:
        one = waiting.pop(0)
        match one:
            case Compared("=", Variable() as left, Variable() as right) if left == right:
                draft = _with_literal(draft, NullTest(left, span=one.span))
            case Compared("=", Variable() as left, Variable() as right) if _same(left, right, variables):
                # The plainer name stays.
                plainer = left in variables.numbered and right not in variables.numbered
                change = {left: right} if plainer else {right: left}
                draft = draft.substituted(change)
                rest = Draft(filters=tuple(waiting)).substituted(change)
                waiting = list(rest.filters)
            case Compared(operator, (Variable() | Constant()) as left, (Variable() | Constant()) as right):
                draft = _with_literal(draft, Comparison(operator, left, right, one.span))
            case IsNull(Variable() as term, negated):
                draft = _with_literal(draft, NullTest(term, negated, one.span))
            case _:
                draft = Draft(draft.body, draft.outputs, (*draft.filters, one), draft.groups, draft.having)
    return draft


def _with_literal(draft: Draft, literal: Literal) -> Draft:
    body = draft.body if literal in draft.body else (*draft.body, literal)
    return Draft(body, draft.outputs, draft.filters, draft.groups, draft.having)


def _same(left: Variable, right: Variable, variables: Variables) -> bool:
    one, other = variables.types.get(left), variables.types.get(right)
    return one == other and (one is None or one.name not in _LOOK_ALIKE)


class GroupedUnionError(UnreadableError):
    """A SELECT that groups over a union: no block holds it.

    Attributes:
        columns: the names of its columns.
        drafts: the same over each alternative of its FROM alone, where each is read alike; none where not.
        select: where it stands.
    """

    def __init__(self, columns: tuple[str, ...], drafts: tuple[Draft, ...]) -> None:
        self.columns = columns
        self.drafts = drafts
        self.select: exp.Expr | None = None


_AGGREGATES = (exp.Count, exp.Sum, exp.Avg, exp.Min, exp.Max)


def select_query(select: exp.Select, pieces: Sequence[Piece], reader: Reader) -> Query:
    """A SELECT over the alternatives of its FROM.

    Raises:
        UnreadableError: what is wrong is among the problems; everything in the SELECT that can be is looked at.
    """
    grouped = is_grouped(select)
    if len(pieces) > 1 and grouped:
        apart = _grouped_apart(select, pieces, reader)
        reader.problems.outside(
            "grouping over a union", select, "make the union a view of its own, and group that"
        )
        raise apart
    made = [_draft(select, piece, reader, grouped=grouped) for piece in pieces]
    drafts = tuple(draft for draft, _ in made)
    is_distinct, items = _is_distinct(select, pieces, drafts, reader.problems), made[0][1]
    types = tuple(kind for *_, kind in items)
    return Query(_names(items), drafts, is_distinct, types)


def _grouped_apart(select: exp.Select, pieces: Sequence[Piece], reader: Reader) -> GroupedUnionError:
    """A SELECT over each alternative of its FROM.

    Equal columns have one declared type in all of them: what is computed from a value is the same whether it has
    become one of the union's type or not.
    """
    kinds = {tuple(reader.variables.type_of(what) for _, what in piece.scope.star()) for piece in pieces}
    same = len(kinds) == 1 and all(kind is not None and not kind.is_open for its in kinds for kind in its)
    plain = not any(piece.distinct or piece.draft.groups is not None for piece in pieces)
    before = len(reader.problems.found)
    if not same or not plain or select.args.get("distinct") is not None:
        return GroupedUnionError((), ())
    try:
        made = [_draft(select, piece, reader, grouped=True) for piece in pieces]
    except UnreadableError:
        del reader.problems.found[before:]
        return GroupedUnionError((), ())
    return GroupedUnionError(_names(made[0][1]), tuple(draft for draft, _ in made))


def is_grouped(select: exp.Select) -> bool:
    """Whether a SELECT groups: by GROUP BY, or because an aggregate stands in it, or HAVING does."""
    if select.args.get("group") is not None or select.args.get("having") is not None:
        return True
    return any(
        node.find_ancestor(exp.Select) is select
        for item in select.expressions
        for node in item.walk()
        if isinstance(node, _AGGREGATES) or is_moment(node)
    )


def _is_distinct(
    select: exp.Select, pieces: Sequence[Piece], drafts: Sequence[Draft], problems: Problems
) -> bool:
    """Whether equal rows stand once. DISTINCT below is kept only if every column of it is."""
    if select.args.get("distinct") is not None:
        only = drafts[0] if len(drafts) == 1 else None
        covered = only is not None and only.groups is not None and set(only.groups) <= set(only.outputs)
        return not covered
    if not any(piece.distinct for piece in pieces):
        return False
    for piece, draft in zip(pieces, drafts, strict=True):
        if draft.groups is not None and piece.draft.groups is None:
            raise problems.outside(
                "grouping over DISTINCT", select, "make the DISTINCT a materialized view, and group that"
            )
        kept = set(draft.outputs)
        if not all(isinstance(what, Constant) or what in kept for _, what in piece.scope.star()):
            raise problems.outside(
                "a column left out above DISTINCT", select, "select DISTINCT once, on the columns wanted"
            )
    return True


def _draft(select: exp.Select, piece: Piece, reader: Reader, *, grouped: bool) -> tuple[Draft, list[Item]]:
    """The block of one alternative of FROM, and its columns."""
    below = piece.draft.groups is not None
    if below and grouped:
        raise reader.problems.outside(
            "grouping over grouping", select, "make the inner one a materialized view, and group that"
        )
    items, aliases = items_of(select, reader.within(piece.scope, aggregates=grouped))
    where = select.args.get("where")
    tests = [*piece.conditions]
    if where is not None:
        tests += conditions_of(reader.within(piece.scope), where.this)
    named = replace(piece.scope, aliases=aliases)
    groups = groups_of(select, items, reader.within(named)) if grouped else None
    having: list[Condition] = []
    if select.args.get("having") is not None:
        inside = reader.within(replace(named, aliases_first=True), aggregates=True, inner=piece.scope)
        having = conditions_of(inside, select.args["having"].this)
    outputs = tuple(what for _, what, *_ in items)
    if reader.problems.found:
        raise UnreadableError
    if groups is not None:
        _check_grouped(select, items, having, groups, reader.problems)
    if piece.beside:
        from datalog.sql.views.nested.joined_groups import grouped_above  # noqa: PLC0415 - it reads conditions as this does

        draft = grouped_above(piece.draft, outputs, tests, reader.variables)
        return draft, items
    if below:
        draft = replace(piece.draft, outputs=outputs, having=(*piece.draft.having, *conjuncts(tests)))
        return draft, items
    draft = replace(piece.draft, outputs=outputs, groups=groups, having=tuple(conjuncts(having)))
    return with_conditions(draft, tests, reader.variables), items


Item = tuple[str, Expression, exp.Expr, ColumnType | None]
"""A column of a select list: its name, what it is, where it is written, and its type; None of what is always null."""


def items_of(select: exp.Select, reader: Reader) -> tuple[list[Item], dict[str, Meaning]]:
    """The columns of a select list, `*` written out; an item may use the names of those before it."""
    items: list[Item] = []
    aliases: dict[str, Meaning] = {}
    for node in select.expressions:
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            with contextlib.suppress(UnreadableError):
                items += _star(node, reader)
            continue
        inner = node.this if isinstance(node, exp.Alias) else node
        try:
            what = replace(reader, scope=replace(reader.scope, aliases=dict(aliases)), inner=reader.scope)
            read = what.expression(inner)
            kind = _type_of(inner.unnest(), read, what)
        except UnreadableError:
            continue
        name = node.alias if isinstance(node, exp.Alias) else default_name(node)
        items.append((name, read, node, kind))
        if isinstance(node, exp.Alias):
            # Where its name stands, a number that is written out has the digits of its type.
            is_other = isinstance(read, Constant) or kind != reader.variables.type_of(read)
            meaning = read, kind if is_other and kind is not None and not kind.is_open else None
            aliases.setdefault(node.alias.casefold(), meaning)
    return items, aliases


def _names(items: Sequence[Item]) -> tuple[str, ...]:
    return tuple(name for name, *_ in items)


def _type_of(node: exp.Expr, what: Expression, reader: Reader) -> ColumnType | None:
    """The type of a column of a select list: of one that is a source's as it is, that one's; of a cast what it says."""
    own = None
    if isinstance(node, exp.Cast) and isinstance(what, Constant):
        own = settled(column_type(node.to) or ANY)
    elif isinstance(node, exp.Column):
        _, own = reader.scope.meaning(node, reader.problems)
    return own or reader.variables.type_of(what)


def _star(node: exp.Expr, reader: Reader) -> list[Item]:
    qualifier = [part.name for part in reversed(node.parts[:-1])] if isinstance(node, exp.Column) else []
    if qualifier and not reader.scope.keeps_order(qualifier):
        # Spark puts the columns that NATURAL and USING join on first, in `t.*` too.
        raise reader.problems.outside("`t.*` beside NATURAL or USING", node, "list the columns")
    found: list[Item] = [
        (name, what, node, kind or reader.variables.type_of(what))
        for name, (what, kind) in reader.scope.typed_star(qualifier)
    ]
    if not found:
        shown = ".".join(reversed(qualifier)) or "FROM"
        reader.problems.error(Code.UNKNOWN_RELATION, f"`{shown}` has no columns here", node)
    names = [name.casefold() for name, *_ in found]
    unread = {name for source in reader.scope.sources for name in source.unread}
    for one in left_out(node):
        if not isinstance(one, exp.Column) or one.table or names.count(one.name.casefold()) > 1:
            raise reader.problems.outside("`EXCEPT` of this column", one, "list the columns")
        if one.name.casefold() not in unread.union(names):
            reader.problems.error(Code.UNKNOWN_COLUMN, f"`*` has no column `{one.name}` to leave out", one)
    out = {one.name.casefold() for one in left_out(node)}
    return [item for item in found if item[0].casefold() not in out]


def left_out(star: exp.Expr) -> list[exp.Expr]:
    """What `* EXCEPT (...)` and `t.* EXCEPT (...)` leave out."""
    inside = star.this if isinstance(star, exp.Column) else star
    return inside.args.get("except_") or []


def default_name(node: exp.Expr) -> str:
    """The name of a column without an alias: of the column it is, else its text, as Spark has it."""
    if isinstance(node, exp.Column):
        return node.name
    if type(node) is exp.Explode:
        return "col"
    plain = node.copy()
    for column in plain.find_all(exp.Column):
        column.set("table", None)
    if isinstance(plain, exp.Count) and isinstance(plain.this, exp.Star):
        return "count(1)"
    plain = without_moments(plain)
    text = plain.sql("spark", comments=False)
    return text.lower() if isinstance(plain, exp.Func) else text


def conditions_of(reader: Reader, node: exp.Expr) -> list[Condition]:
    """The conjuncts of a condition, each read by itself, so that all problems are found."""
    if isinstance(node, exp.And):
        return [one for part in chain(node) for one in conditions_of(reader, part)]
    if isinstance(node, exp.Paren):
        return conditions_of(reader, node.this)
    try:
        return list(conjuncts([condition(reader, node)]))
    except UnreadableError:
        return []


def groups_of(select: exp.Select, items: Sequence[Item], reader: Reader) -> tuple[Expression, ...]:
    """The grouping expressions that vary, each once."""
    group = select.args.get("group")
    found: list[Expression] = []
    is_read = len(items) >= len(select.expressions)
    for node in () if group is None else group.expressions:
        if isinstance(node, exp.Literal) and not is_read:  # which column it is is not known
            continue
        try:
            found.append(_group(node, items, reader))
        except UnreadableError:
            continue
    varying = tuple(dict.fromkeys(one for one in found if expression_variables([one])))
    if found and not varying:
        # Over no rows there is then no group, and not the one group that an empty list of expressions makes.
        raise reader.problems.outside("grouping by constants alone", group, "leave GROUP BY out")
    return varying


def _group(node: exp.Expr, items: Sequence[Item], reader: Reader) -> Expression:
    """A grouping expression: by position in the select list, or by itself."""
    if isinstance(node, exp.Literal) and not node.is_string:
        number = int(node.this) if str(node.this).isdigit() else 0
        if not 1 <= number <= len(items):
            raise reader.problems.error(
                Code.SQL_GROUPING, f"there is no column {node.this} to group by", node, "no such position"
            )
        found = items[number - 1][1]
    else:
        found = reader.expression(node)
    if aggregates_of([found]):
        raise reader.problems.error(
            Code.SQL_GROUPING, "grouping by an aggregate", node, "this is computed behind the grouping"
        )
    return found


def _check_grouped(
    select: exp.Select,
    items: Sequence[Item],
    having: Iterable[Condition],
    groups: tuple[Expression, ...],
    problems: Problems,
) -> None:
    for name, what, node, _ in items:
        if not has_one_value(what, groups):
            problems.error(
                Code.SQL_GROUPING,
                f"`{name}` is neither grouped nor aggregated",
                node,
                "has several values in a group",
                hint="add it to GROUP BY, or aggregate it",
            )
    if not all(has_one_value(one, groups) for one in having):
        problems.error(
            Code.SQL_GROUPING,
            "HAVING uses a column that is neither grouped nor aggregated",
            select.args["having"],
            "has several values in a group",
            hint="put conditions on single rows into WHERE",
        )
    if problems.found:
        raise UnreadableError
