"""Views of which only the text is known: the user's own SQL, over temporary views of what it reads.

Conditions of soundness:

1. The text is run as it was written; only the names of the relations that it reads are others.
2. What Spark's analysis says that it reads is what was bound for it: a name that was overlooked is refused.
3. Its values are the same when they are stored.
4. It uses nothing but clauses and functions that are on a list, as Spark's parser and analysis see them: so running
   it writes nothing, starts nothing, and gives the same rows whenever it is done.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import lit

from datalog.model import NUMBER, OpaqueView, Predicate, TextQuery
from datalog.sql import bound_text
from selfmaint.engine.guard import refusal, require_allowed
from selfmaint.engine.protocol import Facts
from selfmaint.errors import Code, InputError, input_error
from selfmaint.spark.column_types import unmodelled
from selfmaint.spark.failures import first_line, translated
from selfmaint.spark.text_plans import items, refused_when_analysed, refused_when_parsed

_WITHOUT_DATA = frozenset({"OneRowRelation", "LocalRelation", "Range", "CTERelationRef", "UnionLoopRef"})
"""Leaves of a plan that read nothing stored."""


def text_rows(spark: SparkSession, view: OpaqueView, facts: Facts[DataFrame], like: DataFrame) -> DataFrame:
    """The rows of a view's query, not computed yet, with the columns of `like`, by name; if it has none, its own.

    Raises:
        InputError: SM404 Spark cannot run the query; SM104 it gives other columns than are stored.
        ReadRefusedError: SM403 the query reads what was not bound for it.
    """
    assert isinstance(view.query, TextQuery)
    batch = uuid.uuid4().hex
    names: dict[str, tuple[str, ...]] = {}
    try:
        for number, relation in enumerate(view.query.relations):
            name = f"selfmaint_{batch}_{number}"
            # As in `Statements.bound`: the filter makes the view's plan another one than a kept relation's.
            # No query knows of the numbers of equal rows.
            facts.relations[Predicate(relation)].where(lit(True)).drop(NUMBER).createTempView(name)
            names[relation] = (name,)
        text = bound_text(view.query, names)
        _require_allowed(view, refused_when_parsed(spark, text))
        with translated():
            found = spark.sql(text)
        _require_bound(found, [name for (name,) in names.values()])
        _require_allowed(view, refused_when_analysed(found._jdf.queryExecution().analyzed()))
    except (AnalysisException, ParseException) as failure:
        raise _refused(view, failure) from failure
    finally:
        for (name,) in names.values():
            spark.catalog.dropTempView(name)
    _require_storable(view, found)
    named = found.toDF(*view.query.columns) if view.query.columns else found
    return _arranged(view, named, like.columns) if like.columns else named  # of `SELECT *` nothing is told


def _require_allowed(view: OpaqueView, refused: str | None) -> None:
    """Condition 4."""
    if refused is not None:
        message = f"the view `{view.name}` cannot be recomputed: Spark finds {refused} in its query"
        note = "that is not among what a view that is run as text may use; nothing of it was run"
        raise input_error(Code.NOT_MAINTAINED, message, "compute its value when the rows are loaded", note)


def _require_storable(view: OpaqueView, found: DataFrame) -> None:
    """Refuses columns whose values are other ones when they are stored: strings of a collation, intervals, lists."""
    for field in found.schema.fields:
        kind = unmodelled(field)
        if kind is not None:
            message = f"the view `{view.name}` cannot be recomputed: its column `{field.name}` is of type "
            raise input_error(Code.NOT_MAINTAINED, f"{message}`{kind.text}`", kind.hint)


def _refused(view: OpaqueView, failure: Exception) -> InputError:
    return input_error(
        Code.NOT_MAINTAINED,
        f"the view `{view.name}` cannot be recomputed: Spark refuses its query: {first_line(failure)}",
        "correct the query, or the declarations of the tables that it reads",
    )


def _arranged(view: OpaqueView, found: DataFrame, columns: Sequence[str]) -> DataFrame:
    given = [name.casefold() for name in found.columns]
    wanted = [name.casefold() for name in columns]
    if sorted(given) != sorted(wanted) or len(set(given)) < len(given):
        raise input_error(
            Code.COLUMNS_DIFFER,
            f"the query of `{view.name}` gives other columns than are stored",
            note=f"given: {', '.join(found.columns)}; stored: {', '.join(columns)}",
            hint="store the view with the columns of its query",
        )
    placed = found.toDF(*(f"c{i}" for i in range(len(given))))
    return placed.select(*(placed[f"c{given.index(name)}"] for name in wanted)).toDF(*columns)


def _require_bound(found: DataFrame, allowed: Collection[str]) -> None:
    """Condition 2: refuses a plan that reads anything but some temporary views."""
    read = list(read_by(found))
    other = sorted({name for name, is_view in read if not is_view})
    if other:
        raise refusal(f"a view's query reads {', '.join(f'`{name}`' for name in other)}")
    require_allowed({(name,) for name, _ in read}, {(name,) for name in allowed})


def read_by(found: DataFrame) -> Iterator[tuple[str, bool]]:
    """What a query reads, as Spark's analysis has it: names, and whether each is a temporary view's."""
    return _read(found._jdf.queryExecution().analyzed())


def _read(plan: Any) -> Iterator[tuple[str, bool]]:
    kind = str(plan.getClass().getSimpleName())
    if kind == "View" and plan.isTempView():
        yield str(plan.desc().identifier().table()), True
        return
    below = [*items(plan.children()), *items(plan.subqueries())]
    if not below and kind not in _WITHOUT_DATA:
        yield kind, False
    for one in below:
        yield from _read(one)
