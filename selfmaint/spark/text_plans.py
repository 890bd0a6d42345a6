"""What Spark's own parser and analysis find in a query that is only text, before anything of it runs.

The text was read by sqlglot before, but it is Spark that runs it: where the two understand a text differently, Spark is
asked. Parsing and analysing a query starts nothing; only what is on the lists is run.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql import SparkSession

from datalog.sql.views.kept.text_allowed import TEXT_FUNCTIONS

_CLAUSES = frozenset(
    """
    Aggregate CTERelationRef Distinct Except Filter Generate GlobalLimit Intersect Join LateralJoin LocalLimit
    LocalRelation Offset OneRowRelation Pivot Project Repartition RepartitionByExpression Sort SubqueryAlias Union
    UnresolvedHaving UnresolvedHint UnresolvedInlineTable UnresolvedQualify UnresolvedRelation
    UnresolvedSubqueryColumnAliases UnresolvedWith Unpivot WithWindowDefinition
    """.split()  # noqa: SIM905
)
"""Kinds of nodes of a plan that is parsed: what a query does."""
_EXPRESSIONS = frozenset(
    """
    MultiAlias UnresolvedAlias UnresolvedAttribute UnresolvedExtractValue UnresolvedOrdinal UnresolvedStar
    UnresolvedStarExceptOrReplace UnresolvedStarExcept UnresolvedWindowExpression
    """.split()  # noqa: SIM905
)
"""Kinds of expressions that the analysis resolves to columns, beside functions, which have names."""
_OPERATORS = "org.apache.spark.sql.catalyst.expressions."
"""The package of what the grammar has a syntax of its own for; functions are not resolved yet."""
_HINTS = frozenset(
    """
    broadcast broadcastjoin mapjoin merge shuffle_merge mergejoin shuffle_hash shuffle_replicate_nl coalesce rebalance
    repartition repartition_by_range
    """.split()  # noqa: SIM905
)
_VALUES = frozenset(
    """
    AttributeReference CommonExpressionRef CumeDist CurrentRow$ Exists LateralSubquery ListQuery Literal
    NamedLambdaVariable OuterReference ResolvedCollation RowNumber ScalarSubquery UnboundedFollowing$
    UnboundedPreceding$ UnspecifiedFrame$
    """.split()  # noqa: SIM905
)
"""Kinds of leaves of expressions that are analysed: columns, constants, subqueries, and what windows count from."""


def refused_when_parsed(spark: SparkSession, text: str) -> str | None:
    """The first thing in a text, as Spark's parser sees it, that is not allowed; None if all is.

    Raises:
        ParseException: it is no SQL.
    """
    state: Any = spark._jsparkSession.sessionState()
    return next(_refused(state.sqlParser().parsePlan(text)), None)


def refused_when_analysed(plan: Any) -> str | None:
    """The first value in an analysed plan that comes from anything but columns and constants: a moment, a user."""
    for leaf in _leaves(plan):
        if leaf not in _VALUES:
            return f"`{leaf}`"
    return None


def _refused(node: Any) -> Iterator[str]:
    """Everything that is not allowed in a parsed plan."""
    kind = _kind(node)
    if kind not in _CLAUSES:
        yield f"`{kind}`"
        return
    if kind == "UnresolvedRelation" and node.multipartIdentifier().length() != 1:
        yield f"`{'.'.join(items(node.multipartIdentifier()))}`"
    if kind == "UnresolvedHint" and str(node.name()).lower() not in _HINTS:
        yield f"the hint `{node.name()}`"
    for below in (*items(node.children()), *items(node.innerChildren())):
        yield from _refused(below)
    for expression in items(node.expressions()):
        yield from _refused_within(expression)
    if kind == "WithWindowDefinition":
        for window in items(node.windowDefinitions().values().toSeq()):
            yield from _refused_within(window)


def _refused_within(node: Any) -> Iterator[str]:
    name = str(node.getClass().getName())
    kind = name.rpartition(".")[2]
    match kind:
        case "UnresolvedFunction":
            parts = [str(part) for part in items(node.nameParts())]
        case "UnresolvedGenerator":
            parts = str(node.name().unquotedString()).split(".")
        case _:
            parts = []
    if parts and (len(parts) > 1 or parts[0].casefold() not in TEXT_FUNCTIONS):
        yield f"the function `{'.'.join(parts)}`"
    elif not parts and kind not in _EXPRESSIONS and not name.startswith(_OPERATORS):
        yield f"`{kind}`"
    if kind in _SUBQUERIES:
        yield from _refused(node.plan())
    elif kind.endswith("Subquery") and kind != "InSubquery":
        yield f"`{kind}`"
    for below in items(node.children()):
        yield from _refused_within(below)


_SUBQUERIES = frozenset({"Exists", "LateralSubquery", "ListQuery", "ScalarSubquery"})


def _leaves(plan: Any) -> Iterator[str]:
    """The kinds of the leaves of all expressions of an analysed plan, but of what a temporary view stands for."""
    if _kind(plan) == "View":
        return
    for expression in items(plan.expressions()):
        yield from (_kind(leaf) for leaf in items(expression.collectLeaves()))
    for below in (*items(plan.children()), *items(plan.subqueries())):
        yield from _leaves(below)


def _kind(node: Any) -> str:
    return str(node.getClass().getName()).rpartition(".")[2]


def items(sequence: Any) -> Iterator[Any]:
    """The elements of a sequence of Scala."""
    for position in range(sequence.length()):
        yield sequence.apply(position)
