"""Several queries as one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct
from sqlglot import exp

from datalog.errors import EmissionError
from datalog.model import Constant, Rule, Term
from datalog.rewrite.nesting import spark_shaped
from datalog.sql.conditions import Block, Writer
from datalog.sql.names import casefolded, constant, unique, unique_columns
from datalog.sql.tables import Table, read_set

UNIT_COLUMN = "_"
"""The one column, always true, of a predicate without terms."""

_FACTS = "facts"


class Branch(Struct, frozen=True):
    """A rule in SQL: its body and the terms of its head."""

    block: Block
    head: tuple[Term, ...]

    def items(self, columns: Iterable[str] | None = None) -> list[exp.Expr]:
        """What is selected, with aliases where a column's name is not its own."""
        trees = [self.block.frame.tree(term) for term in self.head] or [exp.true()]
        if columns is None:
            return trees
        named = zip(trees, columns, strict=True)
        return [
            tree
            if isinstance(tree, exp.Column) and tree.name == name
            else exp.alias_(tree, name, quoted=True)
            for tree, name in named
        ]

    def names(self) -> tuple[str, ...]:
        """The columns that the head's terms come from; `c` with a number for constants."""
        trees = (self.block.frame.tree(term) for term in self.head)
        return tuple(t.name if isinstance(t, exp.Column) else f"c{n}" for n, t in enumerate(trees))


class Union(Struct, frozen=True):
    """The rules of one predicate, in normal form, of which there is at least one.

    Attributes:
        branches: its rules, without the facts if there are several.
        facts: the rows of its facts if there are several, each once.
        columns: names of the result's columns.
        hints: whether to hint at broadcasts.
    """

    branches: tuple[Branch, ...]
    facts: tuple[tuple[Constant, ...], ...]
    columns: tuple[str, ...]
    hints: bool

    @classmethod
    def of(cls, rules: Sequence[Rule], writer: Writer, columns: Sequence[str] | None) -> Union:
        """The union of some rules, columns named as asked or after the first rule's."""
        heads = tuple(dict.fromkeys(row for rule in rules if (row := _fact(rule)) is not None))
        facts = heads if len(heads) > 1 else ()
        branches = tuple(
            Branch(writer.block(spark_shaped(rule.body)), rule.head.terms)
            for rule in rules
            if not facts or _fact(rule) is None
        )
        names = tuple(columns or unique_columns(branches[0].names() if branches else _numbered(facts[0])))
        return cls(branches, facts, names or (UNIT_COLUMN,), writer.hints)

    def table(self, name: str) -> Table:
        """The result as a table that others can read."""
        not_null = (p for p in range(len(self._heads()[0])) if all(self._is_not_null(p)))
        columns = self.columns if self._heads()[0] else ()
        return Table((name,), columns, frozenset(not_null))

    def query(self, *, distinct: bool) -> exp.Query:
        """All rows; with `distinct` each once."""
        alone = len(self.branches) + bool(self.facts) == 1
        queries: list[exp.Query] = [
            branch.block.query(
                branch.items(self.columns if number == 0 and not self.facts else None),
                distinct=distinct and alone,
                hint=self.hints and len(branch.block.joins.sources) > 1,
                once=distinct,
            )
            for number, branch in enumerate(self.branches)
        ]
        if self.facts:
            queries.insert(0, _values(self.facts, self.columns))
        return queries[0] if alone else exp.union(*queries, distinct=distinct, copy=False)

    def _heads(self) -> list[tuple[Term, ...]]:
        return [*self.facts, *(branch.head for branch in self.branches)]

    def _is_not_null(self, position: int) -> Iterable[bool]:
        yield from (fact[position].value is not None for fact in self.facts)
        yield from (branch.block.frame.is_known(branch.head[position]) for branch in self.branches)


def _fact(rule: Rule) -> tuple[Constant, ...] | None:
    """The row of a fact with terms."""
    row = tuple(term for term in rule.head.terms if isinstance(term, Constant))
    return row if row and not rule.body and len(row) == rule.head.arity else None


def _numbered(row: Sequence[Constant]) -> tuple[str, ...]:
    return tuple(f"c{position}" for position in range(len(row)))


def _values(rows: Sequence[Sequence[Constant]], columns: Sequence[str]) -> exp.Select:
    tuples = [exp.Tuple(expressions=[constant(term.value) for term in row]) for row in rows]
    alias = exp.TableAlias(
        this=exp.to_identifier(_FACTS, quoted=True),
        columns=[exp.to_identifier(column, quoted=True) for column in columns],
    )
    items = [exp.column(column, table=_FACTS, quoted=True) for column in columns]
    return exp.select(*items).from_(exp.Values(expressions=tuples, alias=alias), copy=False)


def union_all(queries: Sequence[exp.Query]) -> exp.Query:
    """One query with the rows of all, duplicates kept.

    Common table expressions move to the front: equal ones become one, different ones of one name are renamed.

    The first query names the columns.

    Raises:
        EmissionError: there is no query.

    >>> from sqlglot import parse_one
    >>> one = parse_one('with "a" as (select 1 as x) select x from "a"')
    >>> other = parse_one('with "a" as (select 2) select * from "a"')
    >>> union_all([one, other]).sql()
    'WITH "a" AS (SELECT 1 AS x), "a2" AS (SELECT 2) SELECT x FROM "a" UNION ALL SELECT * FROM "a2" AS "a"'
    """
    if not queries:
        raise EmissionError("a union of no queries has no columns")
    expressions, operands = in_front(queries, ())
    union = (
        exp.union(*map(_closed, operands), distinct=False, copy=False) if len(operands) > 1 else operands[0]
    )
    if expressions:
        union.set("with_", exp.With(expressions=expressions))
    return union


def in_front(queries: Iterable[exp.Query], taken: Iterable[str]) -> tuple[list[exp.CTE], list[exp.Query]]:
    """The common table expressions of some queries, to stand before all of them, and the queries without them.

    Equal ones become one, different ones of one name are renamed: so are those that hide a table that another reads.

    No query has such expressions further in, and none of these gets a name that is `taken`.
    """
    every = list(queries)
    used = set(casefolded([*taken, *(name[-1] for query in every for name in read_set(query))]))
    found: dict[exp.CTE, exp.CTE] = {}
    operands: list[exp.Query] = []
    for query in every:
        operand = query.copy()
        with_ = operand.args.get("with_")
        operand.set("with_", None)
        names: dict[str, str] = {}
        for expression in with_.expressions if with_ else ():
            _rename(names, expression)
            if expression not in found:
                name = unique(expression.alias, used)
                used.add(name.casefold())
                found[expression] = _named(expression, name)
            names[expression.alias] = found[expression].alias
        _rename(names, operand)
        operands.append(operand)
    return list(found.values()), operands


def _named(expression: exp.CTE, name: str) -> exp.CTE:
    new = expression.copy()
    new.args["alias"].set("this", exp.to_identifier(name, quoted=True))
    return new


def _closed(query: exp.Query) -> exp.Query:
    """The query in parentheses, if what follows could be read as a part of it."""
    is_open = isinstance(query, exp.SetOperation) or query.args.get("limit") or query.args.get("order")
    return query.subquery(copy=False) if is_open else query


def _rename(names: Mapping[str, str], tree: exp.Expr) -> None:
    """Make the references to common table expressions refer to their new names, all at once."""
    for table in tree.find_all(exp.Table):
        old = table.name
        if not table.db and names.get(old, old) != old:
            if not table.alias:
                table.set("alias", exp.TableAlias(this=exp.to_identifier(old, quoted=True)))
            table.set("this", exp.to_identifier(names[old], quoted=True))
