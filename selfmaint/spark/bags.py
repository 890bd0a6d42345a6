"""Bags in DataFrames: rows that may stand several times, and counted rows, each once with its number of copies."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from selfmaint.spark.failures import translated
from selfmaint.spark.frames import by_row, positional
from selfmaint.spark.statements import union_all


def counted(bag: DataFrame, names: Sequence[str]) -> DataFrame:
    """The counted rows of a bag.

    Args:
        bag: rows, equal ones any number of times; nulls are equal.
        names: the names of the bag's columns, and of the last column, which holds the number of copies (bigint).
    """
    plain = positional(bag)
    return by_row(plain, plain.columns, copies=f.count(f.lit(1))).toDF(*names)


class FrameBags:
    """`Bags` over DataFrames."""

    def recounted(self, parts: Sequence[tuple[DataFrame, int]]) -> DataFrame:
        """The sum of some bags, each with 1 or -1."""
        signed = []
        for rows, sign in parts:
            plain = positional(rows)
            *columns, copies = plain.columns
            signed.append(plain.select(*columns, (plain[copies] * sign).cast("bigint").alias(copies)))
        together = union_all(signed)
        *columns, copies = together.columns
        found = by_row(together, columns, copies=f.sum(copies)).where(f.col("copies") > 0)
        return found.toDF(*parts[0][0].columns)

    def copies(self, data: DataFrame) -> int:
        """The sum of the last column.

        Raises:
            InputError: SM103 or SM104, stored contents that turn out to be unreadable.
        """
        plain = positional(data)
        with translated():
            found = plain.agg(f.sum(plain.columns[-1])).first()
        return 0 if found is None or found[0] is None else int(found[0])

    def expanded(self, data: DataFrame) -> DataFrame:
        """Each row as many times as its last column says."""
        plain = positional(data)
        *columns, copies = plain.columns
        each = f.explode(f.sequence(f.lit(1).cast("bigint"), plain[copies]))
        return plain.select(*columns, each).select(*columns).toDF(*data.columns[:-1])

    def matching(self, data: DataFrame, columns: Sequence[int], keys: DataFrame) -> DataFrame:
        """The rows whose values in some columns are a row of `keys`."""
        rows, wanted = positional(data), keys.toDF(*(f"k{i}" for i in range(len(keys.columns))))
        same = reduce(
            and_, (rows[f"c{c}"].eqNullSafe(wanted[f"k{i}"]) for i, c in enumerate(columns)), f.lit(True)
        )
        return rows.join(wanted, same, "left_semi").toDF(*data.columns)

    def numbered(self, data: DataFrame, sign: int, name: str) -> DataFrame:
        """The rows with their numbers among equal ones."""
        plain = positional(data)
        equal = Window.partitionBy(*plain.columns).orderBy(f.lit(0))
        number = (f.row_number().over(equal) * sign).cast("bigint")
        return plain.select(*plain.columns, number).toDF(*data.columns, name)

    def together(self, parts: Sequence[DataFrame]) -> DataFrame:
        """All rows of some DataFrames."""
        return union_all([positional(one) for one in parts]).toDF(*parts[0].columns)
