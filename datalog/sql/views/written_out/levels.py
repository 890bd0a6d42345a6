"""A query that groups as two that group: by more, and what these groups come to together.

    SELECT a, count(DISTINCT b) AS n, avg(c) AS m FROM r GROUP BY ROLLUP (a)

    SELECT a AS group_1, b AS group_2, sum(c) AS sum_1, count(c) AS count_1, count(*) AS rows_1 FROM r GROUP BY a, b
    SELECT group_1 AS a, count(DISTINCT group_2) AS n, ... FROM helper GROUP BY ROLLUP (group_1)

Of ROLLUP and its kin, and of numbers of different values, nobody can tell the new ones; of finer groups everybody can.

Conditions of soundness:

1. Each group of the query is made of whole groups of the helper: these are by all columns that any set of groups is by,
   and by the values that are counted once.
2. A sum of sums, of counts, of least and of largest values is that of all rows; sums are exact numbers, and have the
   type that the query's sum has. A count of no rows is 0.
3. An average is the quotient of sum and count: of whole numbers as doubles, of decimals rounded to the digits that the
   average has, with so many digits before that rounding twice is rounding once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from datalog.analysis.expression_types import DIGITS_OF_COUNTS, expression_type
from datalog.model import MAX_PRECISION, Arithmetic, ColumnType, TypeName, Variable
from datalog.sql.text import text as sql_text
from datalog.sql.views.split.written_parts import NOT_SPLIT, Clauses, NoSplitError, Split, quoted
from datalog.sql.views.written_out.as_written import parsed, with_parts

Types = Callable[[str], Sequence[ColumnType] | None]
"""The types of a query's columns, if they are known."""

_PARTS = frozenset({"with_", "expressions", "from_", "joins", "where", "group", "having", "order"})
_CALLS: Mapping[type[exp.Expr], str] = {
    exp.Sum: "sum",
    exp.Count: "count",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
}
_SETS = (exp.GroupingSets, exp.Rollup, exp.Cube)
_MORE_OF_SUM, _MORE_OF_AVERAGE = 10, 4


def split_levels(text: str, types: Types) -> Split | None:
    """A query that groups as a helper with finer groups and a query over it; None if it is no such query."""
    try:
        return _Levels(text, types).split()
    except NOT_SPLIT:
        return None


class _Levels:
    def __init__(self, text: str, types: Types) -> None:
        self.its, self.types = Clauses(text, _PARTS), types
        self.groups: dict[str, str] = {}
        self.texts: dict[str, str] = {}
        self.columns: dict[str, str] = {}

    def split(self) -> Split:
        tree = self.its.tree
        if any(
            one.find(exp.Window, exp.Query, exp.Filter)
            for one in (*tree.expressions, tree.args.get("having"))
            if one
        ):
            raise NoSplitError
        by = self._by(tree.args.get("group"))
        for one in (*tree.expressions, tree.args.get("having")):
            for call in one.find_all(*_CALLS) if one is not None else ():
                self._note(call)
        if not self.columns:
            raise NoSplitError
        query = self._finer()
        known = self.types(query)
        if known is None:
            raise NoSplitError
        self.kinds = dict(zip([*self.groups.values(), *self.columns.values()], known, strict=True))
        items = [f"{self._over(item.unalias())} AS {quoted(_name(item))}" for item in tree.expressions]
        having = tree.args.get("having")
        behind = f" HAVING {self._over(having.this)}" if having is not None else ""
        return Split(query, f"SELECT {', '.join(items)} FROM ", f"{by}{behind}")  # noqa: S608

    def _by(self, group: exp.Group | None) -> str:
        """What the query over the helper is grouped by."""
        if group is None:
            return ""
        sets = [one for part in ("rollup", "cube", "grouping_sets") for one in group.args.get(part) or ()]
        sets += [one for one in group.expressions if isinstance(one, _SETS)]
        if group.args.get("all") or group.args.get("totals") or len(sets) > 1:
            raise NoSplitError
        if sets and any(one is not sets[0] for one in group.expressions):
            raise NoSplitError
        leaves = list(sets[0].find_all(exp.Column)) if sets else group.expressions
        texts = [leaf.sql("spark") for leaf in leaves] if sets else self.its.groups()
        if len(texts) != len(leaves):
            raise NoSplitError
        if not sets:
            meant = [self._meant(leaf) for leaf in leaves]
            pairs = zip(leaves, meant, texts, strict=True)
            texts = [text if its is leaf else its.sql("spark") for leaf, its, text in pairs]
            leaves = meant
        for leaf, text in zip(leaves, texts, strict=True):
            if leaf.find(exp.Column) is None or leaf.find(exp.Query, exp.AggFunc):
                raise NoSplitError
            self.texts[leaf.sql()] = text
            self.groups.setdefault(leaf.sql(), f"group_{len(self.groups) + 1}")
        if not sets:
            return f" GROUP BY {', '.join(self.groups[leaf.sql()] for leaf in leaves)}"
        made = sets[0].copy()
        if not made.expressions:
            raise NoSplitError
        return f" GROUP BY {sql_text(made.transform(self._renamed), pretty=False)}"

    def _meant(self, leaf: exp.Expr) -> exp.Expr:
        """What is grouped by: a place of the select list, or a name of it that no column has, is what stands there."""
        items = self.its.tree.expressions
        if isinstance(leaf, exp.Literal) and leaf.is_int and 0 < int(leaf.name) <= len(items):
            found: exp.Expr = items[int(leaf.name) - 1].unalias()
            return found
        named = [item for item in items if isinstance(item, exp.Alias) and item.alias == leaf.name]
        if not isinstance(leaf, exp.Column) or leaf.table or len(named) != 1:
            return leaf
        behind = (TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY)
        query, _ = self.its.selecting([leaf.sql("spark")], without=behind)
        return leaf if self.types(query) is not None else named[0].this

    def _renamed(self, node: exp.Expr) -> exp.Expr:
        return exp.column(self.groups[node.sql()]) if isinstance(node, exp.Column) else node

    def _note(self, call: exp.Expr) -> None:
        """What the helper has to show for an aggregate."""
        inside = call.this
        more = [value for part, value in call.args.items() if part not in ("this", "big_int") and value]
        if more or inside is None or inside.find(*_CALLS):
            raise NoSplitError
        if isinstance(inside, exp.Distinct):
            if not isinstance(call, exp.Count) or len(inside.expressions) != 1:
                raise NoSplitError
            value = inside.expressions[0]
            self.texts.setdefault(value.sql(), value.sql("spark"))
            self.groups.setdefault(value.sql(), f"group_{len(self.groups) + 1}")
        elif isinstance(call, exp.Avg | exp.Sum):
            self._column(exp.Sum(this=inside.copy()))
            self._column(exp.Count(this=inside.copy()))
        else:
            self._column(call)
        self._column(exp.Count(this=exp.Star()))

    def _column(self, call: exp.Expr) -> str:
        plain = f"{_CALLS[type(call)]}({call.this.sql('spark')})"
        return self.columns.setdefault(plain, f"{_CALLS[type(call)]}_{len(self.columns) + 1}")

    def _finer(self) -> str:
        """The helper's query: condition 1. FROM and WHERE are the query's own text."""
        groups = [(self.texts[sql], name) for sql, name in self.groups.items()]
        shown = [f"{sql} AS {name}" for sql, name in (*groups, *self.columns.items())]
        behind = (TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY)
        by = ", ".join(sql for sql, _ in groups)
        query, made = self.its.selecting(shown, without=behind, behind=f" GROUP BY {by}" if by else "")
        wanted = [*self.groups, *(parsed(one).sql() for one in self.columns)]
        if [one.unalias().sql() for one in made.expressions] != wanted:
            raise NoSplitError
        return query

    def _over(self, node: exp.Expr) -> str:
        """An expression over the helper's columns."""
        return sql_text(self._changed(node), pretty=False)

    def _changed(self, node: exp.Expr) -> exp.Expr:
        if type(node) in _CALLS:
            return parsed(self._together(node))
        if node.sql() in self.groups:
            return exp.column(self.groups[node.sql()])
        if isinstance(node, exp.Column | exp.AggFunc | exp.Anonymous) and not isinstance(node, exp.Grouping):
            raise NoSplitError
        return with_parts(node, self._changed)

    def _together(self, call: exp.Expr) -> str:
        """What an aggregate is over the helper's groups (conditions 2 and 3)."""
        if isinstance(call.this, exp.Distinct):
            return f"count(DISTINCT {self.groups[call.this.expressions[0].sql()]})"
        if isinstance(call, exp.Count):
            return f"coalesce(sum({self._column(call)}), 0)"
        if isinstance(call, exp.Min | exp.Max):
            return f"{_CALLS[type(call)]}({self._column(call)})"
        name, count = (self._column(one(this=call.this.copy())) for one in (exp.Sum, exp.Count))
        kind = self.kinds[name]
        total = f"sum({name})"
        if kind.name is TypeName.DECIMAL:
            total = f"CAST({total} AS {kind})"
        elif kind.name is not TypeName.BIGINT:
            raise NoSplitError
        if isinstance(call, exp.Sum):
            return total
        mean = f"{total} / sum({count})"
        if kind.name is TypeName.DECIMAL:
            mean = f"CAST({mean} AS {_average_type(kind)})"
        return f"CASE WHEN sum({count}) > 0 THEN {mean} END"


def _average_type(total: ColumnType) -> ColumnType:
    """The type of an average, by that of the sum (condition 3)."""
    precision, scale = total.decimal_size
    found = ColumnType(
        TypeName.DECIMAL, precision - _MORE_OF_SUM + _MORE_OF_AVERAGE, scale + _MORE_OF_AVERAGE
    )
    names = Variable("S"), Variable("N")
    known = dict(zip(names, (total, ColumnType(TypeName.BIGINT)), strict=True))
    before = expression_type(Arithmetic("/", *names), known)
    assert before is not None
    if precision == MAX_PRECISION or (before.scale or 0) < scale + _MORE_OF_AVERAGE + DIGITS_OF_COUNTS:
        raise NoSplitError
    return found


def _name(item: exp.Expr) -> str:
    if not isinstance(item, exp.Alias | exp.Column) or item.is_star:
        raise NoSplitError
    return item.alias_or_name
