"""Rows of one table that have no match in another one: NOT EXISTS, NOT IN, EXCEPT, and LEFT JOIN ... IS NULL.

    SELECT o.id, o.customer FROM orders o WHERE NOT EXISTS (SELECT 1 FROM payment p WHERE p.order_id = o.id)
        kept:   SELECT o.id, o.customer FROM orders o
        barred: SELECT p.order_id FROM payment p

Conditions of soundness:

1. The view shows a key of the kept table, and the columns that are compared: a row of it comes from one row, and tells
   what would be a match.
2. A match is equality of columns of one type, no doubles, and conditions on the other table alone.
3. `NOT IN` and `EXCEPT` are read so only where no null is compared: what `NOT EXISTS` makes of nulls is something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from sqlglot import exp

from datalog.copies import replace
from datalog.model import (
    AntiJoin,
    Atom,
    Compared,
    Condition,
    Declaration,
    Expression,
    NullTest,
    Term,
    Variable,
    ViewDefinition,
    expression_variables,
    variables_of,
)
from datalog.sql.views.blocks import named_block
from datalog.sql.views.conditions import condition, conjuncts
from datalog.sql.views.expressions import Reader
from datalog.sql.views.joins import Piece
from datalog.sql.views.limits import parts_of
from datalog.sql.views.nested.innermost import innermost
from datalog.sql.views.outer.outer_sources import NotToldError
from datalog.sql.views.outside import report_outside
from datalog.sql.views.query import QueryReader
from datalog.sql.views.scope import Draft, Variables
from datalog.sql.views.select import conditions_of, is_grouped, items_of, with_conditions
from datalog.sql.views.source import UnreadableError

_OTHERS = ("limit", "offset", "having", "group", "qualify", "laterals", "windows", "joins")


class _Barred(Struct, frozen=True):
    """The other table.

    Attributes:
        source: it, as it stands in FROM.
        on: the condition of a match, about both.
        pairs: what is compared besides, a value of the kept table and one of the other.
        may_be_null: whether nulls are compared as NOT EXISTS does.
    """

    source: exp.Expr
    on: exp.Expr | None
    pairs: tuple[tuple[exp.Expr, exp.Expr], ...] = ()
    may_be_null: bool = True


def anti_join(
    reader: QueryReader, tree: exp.Expr, view: str, columns: Sequence[str]
) -> tuple[tuple[str, ...], AntiJoin] | None:
    """The names of the columns of a view of rows that have no match, and what it is made of; None of another view.

    The reader's problems are not to be shown: what is not read here stays as it was.

    Raises:
        NotToldError: a condition of soundness does not hold.
    """
    try:
        tree, reader = innermost(tree, reader)
        apart = _except(tree) if isinstance(tree, exp.Except) else _apart(tree)
        if apart is None or any(apart[0].args.get(part) for part in _OTHERS) or is_grouped(apart[0]):
            return None
        select, barred = apart
        compared = [value.copy() for pair in barred.pairs for value in pair]
        matching = exp.select("1", *compared).from_(barred.source.copy())
        for part in (select, matching if barred.on is None else matching.where(barred.on.copy())):
            report_outside(part, reader.problems)
        if reader.problems.found:
            return None
        return _read(reader, select, barred, view, tuple(columns))
    except UnreadableError:
        return None


def _apart(tree: exp.Expr) -> tuple[exp.Select, _Barred] | None:
    """A SELECT without the condition that a row has no match, and that condition; None if it has not one such."""
    if not isinstance(tree, exp.Select) or tree.args.get("from_") is None:
        return None
    where, joins = tree.args.get("where"), tree.args.get("joins") or []
    parts = [] if where is None else list(parts_of(where.this, exp.And))
    select = tree.copy()
    found = [part for part in parts if _denied(part) is not None]
    if not joins and len(found) == 1:
        rest = [part.copy() for part in parts if part is not found[0]]
        select.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
        barred = _denied(found[0])
        return None if barred is None else (select, barred)
    if len(joins) != 1 or joins[0].side != "LEFT" or joins[0].args.get("using") or joins[0].method:
        return None
    if any(isinstance(one, exp.Star) for one in tree.expressions):  # shows the other table's columns, too
        return None
    tests = [part for part in parts if isinstance(part, exp.Is) and isinstance(part.expression, exp.Null)]
    alias = joins[0].this.alias_or_name
    tests = [one for one in tests if isinstance(one.this, exp.Column) and one.this.table == alias]
    if len(tests) != 1 or found:
        return None
    rest = [part.copy() for part in parts if part is not tests[0]]
    select.set("where", exp.Where(this=exp.and_(*rest)) if rest else None)
    select.set("joins", None)
    return select, _Barred(joins[0].this, joins[0].args.get("on"), ((tests[0].this, tests[0].this),))


def _denied(part: exp.Expr) -> _Barred | None:
    """What a condition says has no match."""
    while isinstance(part, exp.Paren):
        part = part.this
    inner = part.this if isinstance(part, exp.Not) else None
    while isinstance(inner, exp.Paren):
        inner = inner.this
    query = inner.args.get("query") if isinstance(inner, exp.In) else getattr(inner, "this", None)
    while isinstance(query, exp.Subquery | exp.Paren):
        query = query.this
    if (
        not isinstance(inner, exp.Exists | exp.In)
        or not isinstance(query, exp.Select)
        or not _is_plain(query)
    ):
        return None
    where = query.args.get("where")
    on, source = None if where is None else where.this, query.args["from_"].this
    if isinstance(inner, exp.Exists):
        return _Barred(source, on)
    items = [item.unalias() for item in query.expressions]
    return _Barred(source, on, ((inner.this, items[0]),), may_be_null=False) if len(items) == 1 else None


def _is_plain(query: exp.Select) -> bool:
    others = (*_OTHERS, "with_", "distinct")
    return (
        query.args.get("from_") is not None
        and not any(query.args.get(p) for p in others)
        and not is_grouped(query)
    )


def _except(tree: exp.Except) -> tuple[exp.Select, _Barred] | None:
    left, right = tree.this, tree.expression
    parts = {name for name, value in tree.args.items() if value}
    if not {"distinct"} <= parts <= {"this", "expression", "distinct", "order"} or not isinstance(
        left, exp.Select
    ):
        return None
    if (
        not isinstance(right, exp.Select)
        or not _is_plain(right)
        or len(left.expressions) != len(right.expressions)
    ):
        return None
    where = right.args.get("where")
    pairs = zip(
        (i.unalias() for i in left.expressions), (i.unalias() for i in right.expressions), strict=True
    )
    on = None if where is None else where.this
    return left, _Barred(right.args["from_"].this, on, tuple(pairs), may_be_null=False)


def _read(
    reader: QueryReader, select: exp.Select, barred: _Barred, view: str, given: tuple[str, ...]
) -> tuple[tuple[str, ...], AntiJoin] | None:
    kept, other = (_one(reader, tree) for tree in (select.args["from_"].this, barred.source))
    if kept is None or other is None:
        raise NotToldError("compare the rows of one table with those of one other")
    (piece, mine), (there, its) = kept, other
    variables, problems = reader.variables, reader.problems
    items, _ = items_of(select, Reader(piece.scope, variables, problems))
    outputs, names = [what for _, what, *_ in items], given or tuple(name for name, *_ in items)
    where = select.args.get("where")
    tests = [*piece.conditions]
    tests += [] if where is None else conditions_of(Reader(piece.scope, variables, problems), where.this)
    inside = Reader(replace(there.scope, around=piece.scope), variables, problems)
    on = list(
        conjuncts([*there.conditions, *([condition(inside, barred.on)] if barred.on is not None else [])])
    )
    pairs = _pairs(on, mine, its)
    rest = [one for one in on if not set(expression_variables([one])) & set(mine.terms)]
    one, two = (reader.relations.declared(atom.predicate.name) for atom in (mine, its))
    if problems.found or len(names) != len(outputs) or one is None or two is None:
        return None
    if pairs is None:
        raise NotToldError("compare the two tables by `=` of their columns alone")
    for left, right in barred.pairs:
        b = inside.expression(right)
        if left is right:  # LEFT JOIN: null where there is no match, and only there
            if b not in its.terms or not (_is_not_null(b, its, two) or any(b == value for _, value in pairs)):
                shown = ", ".join(f"`{two.column_names[its.terms.index(value)]}`" for _, value in pairs)
                raise NotToldError(f"ask whether a column that is compared is null: {shown}")
            continue
        a = Reader(piece.scope, variables, problems).expression(left)
        if not (isinstance(a, Variable) and isinstance(b, Variable) and a in mine.terms and b in its.terms):
            raise NotToldError("compare columns, and nothing that is computed from them")
        if not (_is_not_null(a, mine, one) and _is_not_null(b, its, two)):
            raise NotToldError("declare the columns that are compared not null, or write NOT EXISTS")
        pairs.append((a, b))
    if problems.found:
        return None
    key = _require_told(pairs, outputs, variables, mine, one)
    if mine.predicate == its.predicate:
        raise NotToldError("compare the rows of one table with those of another one")
    join = [outputs.index(a) for a, _ in pairs]
    draft = with_conditions(Draft(piece.draft.body, tuple(outputs), piece.draft.filters), tests, variables)
    values = [b for _, b in pairs]
    others = Draft((*there.draft.body, *map(NullTest, values)), tuple(values), there.draft.filters)
    columns = tuple(f"k{i}" for i in range(len(pairs)))
    return names, AntiJoin(
        ViewDefinition(f"{view}#0", names, (named_block(f"{view}#0", 0, draft),)),
        ViewDefinition(
            f"{view}#1", columns, (named_block(f"{view}#1", 0, with_conditions(others, rest, variables)),)
        ),
        tuple(join),
        key,
        by_key={outputs[i] for i in join} == {outputs[i] for i, _ in key} and len(join) == len(key),
        references=_references(pairs, mine, its, one, two),
        once=any(set(k) <= {its.terms.index(b) for _, b in pairs} for k in _keys(two)),
    )


def _require_told(
    pairs: Sequence[tuple[Variable, Variable]],
    outputs: Sequence[Expression],
    variables: Variables,
    mine: Atom,
    table: Declaration,
) -> tuple[tuple[int, int], ...]:
    """The columns of a view that are a key of its table, each with which of its it is: conditions 1 and 2."""

    def named(terms: Iterable[Term]) -> str:
        names = (table.column_names[mine.terms.index(term)] for term in terms)
        return ", ".join(f"`{name}`" for name in dict.fromkeys(names))

    if not pairs:
        raise NotToldError("compare the two tables by `=` of their columns")
    if not all(variables.are_one_where_equal(a, b) for a, b in pairs):
        raise NotToldError("compare columns of one declared type, neither float nor double")
    keys = _keys(table)
    if not keys:
        raise NotToldError(f"declare a key of `{table.name}`, and show it")
    missing = [a for a, _ in pairs if a not in outputs]
    if missing:
        raise NotToldError(f"show the columns that are compared: {named(missing)}")
    for key in keys:
        if all(mine.terms[i] in outputs for i in key):
            return tuple((outputs.index(mine.terms[i]), i) for i in key)
    raise NotToldError(f"show a key of `{table.name}`: {named(mine.terms[i] for i in keys[0])}")


def _one(reader: QueryReader, tree: exp.Expr) -> tuple[Piece, Atom] | None:
    """A table, perhaps with conditions, and its atom; None if it is not one table."""
    (piece, *others) = reader.source(tree)
    atoms = [literal for literal in piece.draft.body if isinstance(literal, Atom)]
    if others or piece.distinct or piece.draft.groups is not None or len(atoms) != 1:
        return None
    different = len({*atoms[0].terms}) == atoms[0].arity and set(variables_of(atoms)) == {*atoms[0].terms}
    is_base = reader.relations.declared(atoms[0].predicate.name) is not None
    return (piece, atoms[0]) if different and is_base else None


def _pairs(on: Iterable[Condition], mine: Atom, its: Atom) -> list[tuple[Variable, Variable]] | None:
    """The columns that a match makes equal, the kept table's first; None if it asks for more of that than equality."""
    found = []
    for one in on:
        if not set(expression_variables([one])) & set(mine.terms):
            continue
        match one:
            case Compared("=", Variable() as a, Variable() as b) if a in mine.terms and b in its.terms:
                found.append((a, b))
            case Compared("=", Variable() as b, Variable() as a) if a in mine.terms and b in its.terms:
                found.append((a, b))
            case _:
                return None
    return found


def _is_not_null(variable: Expression, atom: Atom, table: Declaration | None) -> bool:
    return table is not None and table.is_not_null(atom.terms.index(variable))


def _keys(table: Declaration) -> list[tuple[int, ...]]:
    """The positions of the columns of each key without nulls."""
    places: Mapping[str, int] = {name: i for i, name in enumerate(table.column_names)}
    found = [tuple(places[name] for name in key) for key in (table.key, *table.unique) if key]
    return [key for key in found if all(map(table.is_not_null, key))]


def _references(
    pairs: Iterable[tuple[Variable, Variable]],
    mine: Atom,
    its: Atom,
    one: Declaration | None,
    two: Declaration | None,
) -> bool:
    """Whether a foreign key of the other table says what is compared."""
    if one is None or two is None:
        return False
    compared = {(its.terms.index(b), mine.terms.index(a)) for a, b in pairs}
    for key in two.foreign_keys:
        if key.target.casefold() == one.name.casefold():
            targets = key.target_columns or one.key or ()
            places = [
                (two.column_names.index(name), one.column_names.index(target))
                for name, target in zip(key.columns, targets, strict=True)
                if name in two.column_names and target in one.column_names
            ]
            if set(places) == compared and len(places) == len(key.columns):
                return True
    return False
