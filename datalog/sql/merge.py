"""MERGE of changed groups into a stored table.

    MERGE INTO v AS old USING (
      WITH gained AS (...), lost AS (...),
      net AS (SELECT coalesce(gained.g, lost.g), ... FROM gained FULL OUTER JOIN lost ON gained.g = lost.g),
      beside AS (SELECT net.g, old.n, ... FROM net LEFT JOIN v AS old ON old.g = net.g)
      SELECT g, old.n + gained.n - lost.n AS n, ... FROM beside
    ) AS changes ON old.g = changes.g
    WHEN MATCHED AND changes.is_there = 0 THEN DELETE
    WHEN MATCHED THEN UPDATE SET n = changes.n, ...
    WHEN NOT MATCHED AND changes.is_there = 1 THEN INSERT (...) VALUES (...)

Groups with null are equal where a column may hold null; else they are compared by `=`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from datalog.model import Predicate, ViewDefinition
from datalog.sql.definitions import select_view
from datalog.sql.names import casefolded, unique
from datalog.sql.tables import Table, read_set
from datalog.sql.unions import in_front

_COUNTS = 2
"""A part has its number of rows, then a value and a count for each measure."""
_CHANGES = "changes"


@dataclass(frozen=True)
class Changes:
    """What a MERGE is made of.

    Attributes:
        target: the stored table, columns in the view's order.
        keys: for each group column its 0-based position in the target.
        measures: the positions of the other columns that are aggregates.
        rows: the queries of the core rows gained and lost, by `gained` and `lost`; one may be missing.
        part: what is computed from core rows, over the predicate `rows_of`.
        rows_of: the predicate of core rows.
        rows_columns: their columns.
        changes: the new rows with a last column `is_there`, over the predicate `beside_of`.
        open: the groups whose new rows are not determined, over the predicate `beside_of`.
        beside_of: the predicate of groups with their old rows and parts side by side.
    """

    target: Table
    keys: tuple[int, ...]
    measures: tuple[int, ...]
    rows: Mapping[str, exp.Query]
    part: ViewDefinition
    rows_of: Predicate
    rows_columns: tuple[str, ...]
    changes: ViewDefinition
    open: ViewDefinition
    beside_of: Predicate


def merge(given: Changes) -> exp.Merge:
    """The statement that brings a table of groups up to date.

    Args:
        given: what it is made of.
    """
    return _statement(given, changed_groups(given))


def changed_groups(given: Changes) -> exp.Query:
    """The new rows of the groups that change, with a last column `is_there`: 0 for those that are gone.

    Args:
        given: what it is made of.
    """
    return _over_beside(given, given.changes)


def open_groups(given: Changes) -> exp.Query:
    """The groups that `merge` has no right values for.

    Args:
        given: what both are made of.
    """
    return _over_beside(given, given.open)


def _over_beside(given: Changes, definition: ViewDefinition) -> exp.Query:
    """A definition over the groups with their old rows and parts side by side."""
    width = 1 + _COUNTS * len(given.measures)
    columns = [f"x{i}" for i in range(len(given.keys))]
    at = _names(given)
    expressions, queries = in_front(given.rows.values(), at.values())
    steps: dict[str, exp.Query] = {}
    for side, query in zip(given.rows, queries, strict=True):
        steps[f"{side}_rows"] = query
        steps[side] = _part(given, at[f"{side}_rows"], columns, width)
    steps["net"] = _net(given, at, columns, width)
    steps["beside"] = _beside(given, at, columns, width)
    beside = Table((at["beside"],), (*columns, "o", *(f"b{c}" for c in given.measures), *_sides(width)))
    result = select_view(definition, {given.beside_of: beside})
    for step, query in steps.items():
        alias = exp.TableAlias(this=exp.to_identifier(at[step], quoted=True))
        expressions.append(exp.CTE(this=query, alias=alias))
    result.set("with_", exp.With(expressions=expressions))
    return result


def _names(given: Changes) -> Mapping[str, str]:
    """What each step is called: none hides a table that is read."""
    stored = [given.target.name, *(name for query in given.rows.values() for name in read_set(query))]
    taken = casefolded([name[-1] for name in stored])
    names = [f"{side}{what}" for side in given.rows for what in ("_rows", "")]
    return {name: unique(name, taken) for name in (*names, "net", "beside")}


def _sides(width: int) -> list[str]:
    return [f"{side[0]}{i}" for side in ("gained", "lost") for i in range(width)]


def _column(name: str, table: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))


def _named(tree: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(tree, name, quoted=True)


def _from(at: Mapping[str, str], step: str) -> exp.From:
    return exp.From(this=Table((at[step],), ()).tree(step))


def _part(given: Changes, source: str, names: Sequence[str], width: int) -> exp.Query:
    """Groups and aggregates of core rows, named as the steps name them."""
    columns = (*names, *(f"p{i}" for i in range(width)))
    definition = ViewDefinition(given.part.name, columns, given.part.blocks)
    return select_view(definition, {given.rows_of: Table((source,), given.rows_columns)})


def _net(given: Changes, at: Mapping[str, str], names: Sequence[str], width: int) -> exp.Query:
    """The full outer join of what is gained and what is lost; a missing part has no rows."""
    both = [side for side in ("gained", "lost") if side in given.rows]
    items: list[exp.Expr] = []
    for name in names:
        given_by = [_column(name, side) for side in both]
        found = given_by[0] if len(both) == 1 else exp.Coalesce(this=given_by[0], expressions=given_by[1:])
        items.append(_named(found, name))
    for side in ("gained", "lost"):
        for i in range(width):
            value: exp.Expr = _column(f"p{i}", side) if side in both else exp.null()
            if i == 0 or i % _COUNTS == 0:  # a number of rows, or of operands
                value = exp.Coalesce(this=value, expressions=[exp.Literal.number(0)])
            items.append(_named(value, f"{side[0]}{i}"))
    query = exp.Select(expressions=items)
    query.set("from_", _from(at, both[0]))
    if len(both) > 1:
        on = _same(given, [(_column(n, both[0]), _column(n, both[1])) for n in names])
        there = Table((at[both[1]],), ()).tree(both[1])
        query.append("joins", exp.Join(this=there, side="FULL", kind="OUTER", on=on))
    return query


def _beside(given: Changes, at: Mapping[str, str], names: Sequence[str], width: int) -> exp.Query:
    """Each group of the net change with its old row."""
    target = [
        exp.column(exp.to_identifier(c, quoted=True), table="old", quoted=True) for c in given.target.columns
    ]
    mark = exp.Select(expressions=[_named(exp.Literal.number(1), "o"), exp.Star()])
    mark.set("from_", exp.From(this=given.target.tree("old")))
    items = [_named(_column(n, "net"), n) for n in names]
    zero = exp.Literal.number(0)
    items.append(_named(exp.Coalesce(this=_column("o", "old"), expressions=[zero]), "o"))
    items += [_named(target[c].copy(), f"b{c}") for c in given.measures]
    items += [_named(_column(n, "net"), n) for n in _sides(width)]
    query = exp.Select(expressions=items)
    query.set("from_", _from(at, "net"))
    on = _same(given, [(target[c].copy(), _column(n, "net")) for c, n in zip(given.keys, names, strict=True)])
    there = exp.Subquery(this=mark, alias=exp.TableAlias(this=exp.to_identifier("old", quoted=True)))
    query.append("joins", exp.Join(this=there, side="LEFT", on=on))
    return query


def _same(given: Changes, pairs: Sequence[tuple[exp.Expr, exp.Expr]]) -> exp.Expr:
    """Whether groups are equal, null being equal to null."""
    tests: list[exp.Expr] = []
    for (left, right), column in zip(pairs, given.keys, strict=True):
        kind = exp.EQ if column in given.target.not_null else exp.NullSafeEQ
        tests.append(kind(this=left, expression=right))
    return exp.and_(*tests, copy=False) if tests else exp.true()


def _statement(given: Changes, source: exp.Query) -> exp.Merge:
    columns = given.target.columns
    pairs = [(_column(columns[c], "old"), _column(columns[c], "changes")) for c in given.keys]
    there = _column("is_there", "changes")
    gone = exp.EQ(this=there.copy(), expression=exp.Literal.number(0))
    stays = exp.EQ(this=there.copy(), expression=exp.Literal.number(1))
    update = exp.Update(
        expressions=[
            exp.EQ(this=exp.column(columns[c], quoted=True), expression=_column(columns[c], "changes"))
            for c in given.measures
        ]
    )
    insert = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(c, quoted=True) for c in columns]),
        expression=exp.Tuple(expressions=[_column(c, "changes") for c in columns]),
    )
    whens = [exp.When(matched=True, condition=gone, then=exp.var("DELETE"))]
    if given.measures:
        whens.append(exp.When(matched=True, then=update))
    whens.append(exp.When(matched=False, condition=stays, then=insert))
    alias = exp.TableAlias(this=exp.to_identifier("changes", quoted=True))
    return exp.Merge(
        this=given.target.tree("old"),
        using=exp.Subquery(this=source, alias=alias),
        on=_same(given, pairs),
        whens=exp.Whens(expressions=whens),
    )


def counted_view(bag: Table, counted: Table) -> exp.Create:
    """The temporary view of a table's distinct rows with their numbers of copies.

        CREATE OR REPLACE TEMPORARY VIEW v_counted AS SELECT a, b, count(*) AS copies FROM v GROUP BY a, b
        CREATE TABLE v_changes AS SELECT a, b, ... AS copies, ... AS is_there FROM ... v_counted ...
        DELETE FROM v WHERE EXISTS (SELECT 1 FROM v_changes AS changes WHERE changes.a IS NOT DISTINCT FROM v.a AND ...)
        INSERT INTO v SELECT a, b FROM v_changes AS changes JOIN LATERAL explode(sequence(1, changes.copies)) ...

    MERGE can neither add nor remove some of several equal rows. So the rows that change are deleted, all copies, and
    inserted again as often as they stand afterwards; what they are must be held in a table meanwhile.

    Args:
        bag: the table.
        counted: the view's name; its columns are the table's, and one for the number of copies.
    """
    columns = [_column(name, bag.name[-1]) for name in bag.columns]
    copies = exp.alias_(exp.Count(this=exp.Star()), counted.columns[-1], quoted=True)
    query = exp.Select(expressions=[*(c.copy() for c in columns), copies])
    query.set("from_", exp.From(this=bag.tree(bag.name[-1])))
    query.set("group", exp.Group(expressions=columns))
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(
        this=counted.tree(counted.name[-1]), kind="VIEW", replace=True, expression=query, properties=temporary
    )


def changes_table(changes: Table, query: exp.Query) -> exp.Create:
    """The table of the rows that change, each with its new number of copies, and a 0 at the end if there are none."""
    return exp.Create(this=changes.tree(changes.name[-1]), kind="TABLE", expression=query)


def delete_changed(bag: Table, changes: Table) -> exp.Delete:
    """Deletes every copy of the rows that change.

    In the subquery a column stands before the name of the table around.
    """
    alias = unique(bag.name[-1], casefolded(changes.columns))
    rows = exp.Select(expressions=[exp.Literal.number(1)])
    rows.set("from_", exp.From(this=changes.tree(_CHANGES)))
    same = []
    for i, name in enumerate(bag.columns):
        kind = exp.EQ if i in bag.not_null else exp.NullSafeEQ
        same.append(kind(this=_column(name, _CHANGES), expression=_column(name, alias)))
    rows.set("where", exp.Where(this=exp.and_(*same, copy=False)))
    return exp.Delete(this=bag.tree(alias), where=exp.Where(this=exp.Exists(this=rows)))


def insert_copies(bag: Table, changes: Table) -> exp.Insert:
    """Inserts each row that changes as often as it stands afterwards."""
    *_, copies, there = changes.columns
    rows = exp.Select(expressions=[_column(name, _CHANGES) for name in bag.columns])
    rows.set("from_", exp.From(this=changes.tree(_CHANGES)))
    numbers = exp.GenerateSeries(start=exp.Literal.number(1), end=_column(copies, _CHANGES))
    alias = exp.TableAlias(
        this=exp.to_identifier("each", quoted=True), columns=[exp.to_identifier("copy", quoted=True)]
    )
    rows.append("joins", exp.Join(this=exp.Lateral(this=exp.Explode(this=numbers), alias=alias)))
    rows.set("where", exp.Where(this=exp.EQ(this=_column(there, _CHANGES), expression=exp.Literal.number(1))))
    names = exp.Schema(
        this=bag.tree(bag.name[-1]),
        expressions=[exp.to_identifier(name, quoted=True) for name in bag.columns],
    )
    return exp.Insert(this=names, expression=rows)
