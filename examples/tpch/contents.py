"""The views' contents, computed by Spark from the base relations' Parquet files."""

from __future__ import annotations

import re
from pathlib import Path

from data import SCHEMAS
from pyspark.sql import DataFrame, SparkSession

ORDER = {
    "customers": "customer_key",
    "building_orders": "order_key",
    "same_day_orders": "order_key",
    "order_lines": "order_key",
    "sales": "order_key",
}
"""The column that a view is stored in order of: the key that the changes carry."""

IN_ORDER = {
    "parquet.block.size": 4 * 2**20,
    "parquet.page.row.count.limit": 2_000,
    "parquet.dictionary.page.size": 64 * 2**10,
}
"""Small row groups, pages and dictionaries: what is looked up by that key is found without reading much else."""
STATEMENTS = Path(__file__).with_name("contents.sql")


def statements() -> dict[str, str]:
    """The SQL query of each view."""
    pieces = re.split(r"^-- view: (\w+)$", STATEMENTS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {name: text.strip().rstrip(";") for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


def views(spark: SparkSession, base: Path) -> dict[str, DataFrame]:
    """Each view as a query over the files in `base`."""
    for name in SCHEMAS:
        spark.read.parquet(str(base / f"{name}.parquet")).createOrReplaceTempView(name)
    try:
        return {name: spark.sql(text) for name, text in statements().items()}
    finally:
        for name in SCHEMAS:
            spark.catalog.dropTempView(name)


def store(spark: SparkSession, base: Path, folder: Path, *, ordered: bool = True) -> None:
    """Writes each view as Parquet to a directory of its own, in the order of `ORDER` or as it comes."""
    for name, rows in views(spark, base).items():
        if ordered and name in ORDER:
            in_order = rows.repartitionByRange(ORDER[name]).sortWithinPartitions(ORDER[name])
            writer = in_order.write.options(**IN_ORDER)
        else:
            writer = rows.write
        writer.mode("overwrite").parquet(str(folder / name))
