"""The rules of one predicate as one query."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from datalog.model import Constant, Rule, Term
from datalog.sql.conditions import Block, Writer
from datalog.sql.constants import constant
from datalog.sql.names import unique_columns
from datalog.sql.nesting import spark_shaped
from datalog.sql.tables import Table

UNIT_COLUMN = "_"
"""The one column, always true, of a predicate without terms."""

_FACTS = "facts"


@dataclass(frozen=True, slots=True)
class Branch:
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


@dataclass(frozen=True, slots=True)
class Union:
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
