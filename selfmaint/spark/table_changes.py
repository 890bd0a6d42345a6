"""Tables of the catalog, changed by statements of their own format: one MERGE or INSERT a table, run by Spark.

The rows are computed before the first statement runs: they are read from the tables that change. No format has a
transaction over several tables, so each table changes by itself.
"""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence

from msgspec import Struct
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.sql import Table, insert_rows, merge_rows, text
from selfmaint.errors import Code, InputError, SelfmaintError
from selfmaint.spark.bags import FrameBags
from selfmaint.spark.failures import SPARK_ERRORS, first_line, translated
from selfmaint.spark.frames import once, positional
from selfmaint.spark.statements import union_all
from selfmaint.store.stored_tables import TableChange

_REFUSED = "Error occurred during query planning"
"""How EXPLAIN begins for a statement that a table does not take."""


class TableWrites(Struct, frozen=True):
    """Statements that are ready to run.

    Attributes:
        statements: by view, what is run.
        shown: by view, the same for people, who see names that tell what they are.
    """

    spark: SparkSession
    statements: dict[str, str]
    shown: dict[str, str]

    def run(self) -> None:
        """Changes one table after the other.

        Raises:
            SelfmaintError: SM405 a statement fails; which tables have changed is said.
        """
        done: list[str] = []
        for view, statement in self.statements.items():
            try:
                with translated():
                    self.spark.sql(statement).collect()
            except (*SPARK_ERRORS, InputError) as failure:
                reason = str(failure) if isinstance(failure, InputError) else first_line(failure)
                raise SelfmaintError([self._failed(view, reason, done)]) from failure
            done.append(view)

    def _failed(self, view: str, reason: str, done: Sequence[str]) -> Diagnostic:
        changed = ", ".join(f"`{name}`" for name in done)
        hint = f"bring {changed} back to the version before, or the others up to date" if done else None
        return Diagnostic(
            Code.WRITE_FAILED,
            f"the table of `{view}` cannot be changed: {reason}",
            note=f"changed already: {changed}" if done else "nothing was written",
            hint=hint,
        )


@contextlib.contextmanager
def table_writes(spark: SparkSession, changes: Sequence[TableChange[DataFrame]]) -> Iterator[TableWrites]:
    """The statements that change some tables; their rows are held meanwhile.

    Raises:
        InputError: SM405 a table whose format cannot do it, with the statements; nothing was written.
    """
    statements, shown, named = {}, {}, []
    try:
        for change in changes:
            rows = _rows(change)
            flag = rows.columns[-1]
            target = replace(change.table, columns=tuple(rows.columns[:-1]))
            name = f"selfmaint_{uuid.uuid4().hex}"
            with translated():
                rows.localCheckpoint(eager=True).createTempView(name)
            named.append(name)
            make = insert_rows if change.lost is None else merge_rows
            columns = (*target.columns, flag)
            statements[change.view] = text(make(target, Table((name,), columns)))
            named_so = Table((f"{change.view}_changes",), columns)
            shown[change.view] = text(make(target, named_so), pretty=False)
        writes = TableWrites(spark, statements, shown)
        _require_possible(writes)
        yield writes
    finally:
        for name in named:
            spark.catalog.dropTempView(name)


def _rows(change: TableChange[DataFrame]) -> DataFrame:
    """The rows to delete and to add, under the names of the table's columns, and whether a row is lost.

    Of rows that may stand several times all copies are deleted, and those that stay added again.
    """
    bags, gained, lost = FrameBags(), change.gained, change.lost
    if change.counted is not None:
        keys = None if lost is None else positional(lost).drop(positional(lost).columns[-1])
        if lost is not None and keys is not None:
            old = bags.matching(change.counted, range(len(keys.columns)), keys)
            stays = bags.recounted([(old, 1), (lost, -1)])
            gained = stays if gained is None else bags.recounted([(stays, 1), (gained, 1)])
        gained = None if gained is None else bags.expanded(gained)
        lost = keys
    sides = [(None if lost is None else once(lost), True), (gained, False)]
    flagged = [
        positional(rows).withColumn("is_lost", f.lit(flag)) for rows, flag in sides if rows is not None
    ]
    names = change.table.columns
    flag = "is_lost"
    while flag in {name.casefold() for name in names}:
        flag += "_"
    return union_all(flagged).toDF(*names, flag)


def _require_possible(writes: TableWrites) -> None:
    """Asks each table whether it takes its statement."""
    refused = {}
    for view, statement in writes.statements.items():
        try:
            plan = "\n".join(row[0] for row in writes.spark.sql(f"EXPLAIN {statement}").collect())
        except SPARK_ERRORS as failure:
            refused[view] = first_line(failure)
            continue
        if _REFUSED in plan:
            refused[view] = plan.strip().splitlines()[-1].partition(". Please")[0]
    if not refused:
        return
    every = " ".join(f"{statement};" for statement in writes.shown.values())
    said = f"nothing was written; to be run, with the rows that change in `VIEW_changes`: {every}"
    raise InputError(
        [
            Diagnostic(
                Code.WRITE_FAILED,
                f"the table of `{view}` does not take what changes it: {reason}",
                note=None if number else said,
                hint="keep the view in a format that deletes rows, such as Delta or Iceberg, or in a store",
            )
            for number, (view, reason) in enumerate(refused.items())
        ]
    )
