"""Changed groups brought into a stored table: by MERGE, or by statements where rows may be equal.

    MERGE INTO v AS old USING (SELECT g, n, ..., is_there FROM ...) AS changes ON old.g = changes.g
    WHEN MATCHED AND changes.is_there = 0 THEN DELETE
    WHEN MATCHED THEN UPDATE SET n = changes.n, ...
    WHEN NOT MATCHED AND changes.is_there = 1 THEN INSERT (...) VALUES (...)

Groups with null are equal where a column may hold null; else they are compared by `=`.

The changes are a query in steps, relations that are made of tables and of each other, each a common table expression:

    WITH gained_rows AS (...), gained AS (SELECT ... FROM gained_rows GROUP BY ...), ... SELECT ... FROM gained ...
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from sqlglot import exp

from datalog.copies import replace
from datalog.model import Predicate, Program, Version, ViewDefinition
from datalog.sql.definitions import select, select_view
from datalog.sql.names import casefolded, identifier, unique
from datalog.sql.tables import Table, read_set
from datalog.sql.unions import in_front

_CHANGES = "changes"


def merge(target: Table, keys: Sequence[int], measures: Sequence[int], changes: exp.Query) -> exp.Merge:
    """The statement that brings a table of groups up to date.

    Args:
        target: the stored table, columns in the view's order.
        keys: for each group column its 0-based position in the target.
        measures: the positions of the other columns that are aggregates.
        changes: the new rows, with a last column such as `is_there`: 0 for groups that are gone.
    """
    columns = target.columns
    there = _column(changes.named_selects[-1], _CHANGES)
    gone = exp.EQ(this=there.copy(), expression=exp.Literal.number(0))
    stays = exp.EQ(this=there.copy(), expression=exp.Literal.number(1))
    update = exp.Update(
        expressions=[
            exp.EQ(this=exp.column(columns[c], quoted=True), expression=_column(columns[c], _CHANGES))
            for c in measures
        ]
    )
    insert = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(c, quoted=True) for c in columns]),
        expression=exp.Tuple(expressions=[_column(c, _CHANGES) for c in columns]),
    )
    whens = [exp.When(matched=True, condition=gone, then=exp.var("DELETE"))]
    if measures:
        whens.append(exp.When(matched=True, then=update))
    whens.append(exp.When(matched=False, condition=stays, then=insert))
    alias = exp.TableAlias(this=exp.to_identifier(_CHANGES, quoted=True))
    return exp.Merge(
        this=target.tree("old"),
        using=exp.Subquery(this=changes, alias=alias),
        on=_same(target, keys, "old", _CHANGES),
        whens=exp.Whens(expressions=whens),
    )


def merge_rows(target: Table, rows: Table) -> exp.Merge:
    """The statement that deletes rows of a table, every copy, and adds others, each as often as it stands.

        MERGE INTO v AS old USING v_changes AS changes ON changes.is_lost AND old.a <=> changes.a AND ...
        WHEN MATCHED THEN DELETE WHEN NOT MATCHED AND NOT changes.is_lost THEN INSERT (...) VALUES (...)

    `rows` have the target's columns, and last whether a row is lost; a lost one stands once.
    """
    *columns, flag = rows.columns
    is_lost = _column(flag, _CHANGES)
    same = _same(replace(target, columns=tuple(columns)), range(len(columns)), "old", _CHANGES)
    insert = exp.Insert(
        this=exp.Tuple(expressions=[exp.column(c, quoted=True) for c in columns]),
        expression=exp.Tuple(expressions=[_column(c, _CHANGES) for c in columns]),
    )
    whens = [
        exp.When(matched=True, then=exp.var("DELETE")),
        exp.When(matched=False, condition=exp.Not(this=is_lost.copy()), then=insert),
    ]
    return exp.Merge(
        this=target.tree("old"),
        using=rows.tree(_CHANGES),
        on=exp.and_(is_lost, same, copy=False),
        whens=exp.Whens(expressions=whens),
    )


def insert_rows(target: Table, rows: Table) -> exp.Insert:
    """The statement that adds rows to a table, which stand in columns as the target's; the last one is left out."""
    *columns, _flag = rows.columns
    query = exp.Select(expressions=[_column(name, _CHANGES) for name in columns])
    query.set("from_", exp.From(this=rows.tree(_CHANGES)))
    return exp.Insert(this=_schema(target, columns), expression=query)


def _column(name: str, table: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True), table=exp.to_identifier(table, quoted=True))


def _same(target: Table, keys: Sequence[int], *aliases: str) -> exp.Expr:
    """Whether some columns of two relations are equal, null being equal to null."""
    tests: list[exp.Expr] = []
    for column in keys:
        kind = exp.EQ if column in target.not_null else exp.NullSafeEQ
        left, right = (_column(target.columns[column], alias) for alias in aliases)
        tests.append(kind(this=left, expression=right))
    return exp.and_(*tests, copy=False) if tests else exp.true()


def counted_view(bag: Table, counted: Table) -> exp.Create:
    """The temporary view of a table's distinct rows with their numbers of copies.

        CREATE OR REPLACE TEMPORARY VIEW v_counted AS SELECT a, b, count(*) AS copies FROM v GROUP BY a, b
        CREATE TABLE v_changes AS SELECT a, b, ... AS copies, ... AS is_there FROM ... v_counted ...
        DELETE FROM v WHERE EXISTS (SELECT 1 FROM v_changes AS changes WHERE changes.a IS NOT DISTINCT FROM v.a AND ...)
        INSERT INTO v SELECT a, b FROM v_changes AS changes JOIN LATERAL explode(sequence(1, changes.copies)) ...

    MERGE can neither add nor remove some of several equal rows. So the rows that change are deleted, all copies, and
    inserted again as often as they stand afterwards; what they are must be held in a table meanwhile.

    Its columns are the table's, and one for the number of copies.
    """
    columns = [_column(name, bag.name[-1]) for name in bag.columns]
    copies = exp.alias_(exp.Count(this=exp.Star()), counted.columns[-1], quoted=True)
    query = exp.Select(expressions=[*(c.copy() for c in columns), copies])
    query.set("from_", exp.From(this=bag.tree(bag.name[-1])))
    query.set("group", exp.Group(expressions=columns))
    return temporary_view(counted, query)


def temporary_view(made: Table, query: exp.Query) -> exp.Create:
    """The temporary view of a query's rows, whose columns are the table's."""
    temporary = exp.Properties(expressions=[exp.TemporaryProperty()])
    return exp.Create(
        this=made.tree(made.name[-1]), kind="VIEW", replace=True, expression=query, properties=temporary
    )


def held_table(held: Table, query: exp.Query) -> exp.Cache:
    """The statement that holds a query's rows, whose columns are the table's: `CACHE TABLE v_by_a AS SELECT ...`."""
    return exp.Cache(this=held.tree(held.name[-1]), expression=query)


def changes_table(changes: Table, query: exp.Query) -> exp.Create:
    """The table of the rows that change, each with a 0 at the end if there are none of it afterwards."""
    return exp.Create(this=changes.tree(changes.name[-1]), kind="TABLE", expression=query)


def delete_changed(bag: Table, changes: Table) -> exp.Delete:
    """Deletes every copy of the rows that change.

    In the subquery a column stands before the name of the table around.
    """
    alias = unique(bag.name[-1], casefolded(changes.columns))
    rows = exp.Select(expressions=[exp.Literal.number(1)])
    rows.set("from_", exp.From(this=changes.tree(_CHANGES)))
    same = _same(bag, range(len(bag.columns)), _CHANGES, alias)
    rows.set("where", exp.Where(this=same))
    return exp.Delete(this=bag.tree(alias), where=exp.Where(this=exp.Exists(this=rows)))


def insert_copies(bag: Table, changes: Table) -> exp.Insert:
    """Inserts each row that changes as often as it stands afterwards."""
    copies = changes.columns[-2]
    found = insert_changed(bag, changes)
    numbers = exp.GenerateSeries(start=exp.Literal.number(1), end=_column(copies, _CHANGES))
    alias = exp.TableAlias(
        this=exp.to_identifier("each", quoted=True), columns=[exp.to_identifier("copy", quoted=True)]
    )
    found.expression.append("joins", exp.Join(this=exp.Lateral(this=exp.Explode(this=numbers), alias=alias)))
    return found


def insert_changed(target: Table, changes: Table) -> exp.Insert:
    """Inserts each row that changes, and is there afterwards, once."""
    rows = exp.Select(expressions=[_column(name, _CHANGES) for name in target.columns])
    rows.set("from_", exp.From(this=changes.tree(_CHANGES)))
    there = _column(changes.columns[-1], _CHANGES)
    rows.set("where", exp.Where(this=exp.EQ(this=there, expression=exp.Literal.number(1))))
    return exp.Insert(this=_schema(target, target.columns), expression=rows)


def _schema(target: Table, columns: Sequence[str]) -> exp.Schema:
    names = [exp.to_identifier(name, quoted=True) for name in columns]
    return exp.Schema(this=target.tree(target.name[-1]), expressions=names)


Steps = Iterable[tuple[Predicate, Program | ViewDefinition, tuple[str, ...]]]
"""Relations in an order in which each is made of tables and of those before it; with the names of their columns."""


def select_in_steps(steps: Steps, result: ViewDefinition, tables: Mapping[Predicate, Table]) -> exp.Query:
    """The query whose rows are a definition's, over relations that are made in steps.

    Raises:
        EmissionError: a relation without a table, or unsafe rules.
    """
    known, names, queries = dict(tables), [], []
    taken = set(casefolded([table.name[-1] for table in tables.values()]))
    for predicate, made, columns in steps:
        if isinstance(made, Program):
            queries.append(select(made, predicate, known, columns=columns))
        else:
            queries.append(select_view(made, known))
        plain = predicate.name if predicate.version is Version.STEP else identifier(str(predicate))
        names.append(unique(plain, taken))
        taken.add(names[-1].casefold())
        known[predicate] = Table((names[-1],), columns)
    query = select_view(result, known)
    waiting, operands = in_front(queries, names)
    ctes = [
        exp.CTE(this=operand, alias=exp.TableAlias(this=exp.to_identifier(name, quoted=True)))
        for name, operand in zip(names, operands, strict=True)
    ]
    unmade = {expression.alias for expression in (*waiting, *ctes)}
    expressions: list[exp.CTE] = []
    for step in (None, *ctes):
        if step is not None:
            expressions.append(step)
            unmade.discard(step.alias)
        for one in waiting:  # each after those before it, and after the steps that it reads
            if one.alias in unmade and unmade.isdisjoint(name[-1] for name in read_set(one.this)):
                expressions.append(one)
                unmade.discard(one.alias)
    query.set("with_", exp.With(expressions=expressions))
    return query
