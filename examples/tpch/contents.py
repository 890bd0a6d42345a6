"""The views' contents, computed by DuckDB or Spark from the base relations' Parquet files."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
from data import SCHEMAS

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ORDER = {
    "customers": "customer_key",
    "building_orders": "order_key",
    "same_day_orders": "order_key",
    "order_lines": "order_key",
    "sales": "order_key",
}
"""The column that a view is stored in order of: the key that the changes carry."""

GROUP_ROWS = 30_000
"""Small row groups: what is looked up by that key is found without reading much else."""
STATEMENTS = Path(__file__).with_name("contents.sql")


def statements() -> dict[str, str]:
    """The SQL query of each view."""
    pieces = re.split(r"^-- view: (\w+)$", STATEMENTS.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {name: text.strip().rstrip(";") for name, text in zip(pieces[::2], pieces[1::2], strict=True)}


def store(base: Path, folder: Path, *, ordered: bool = True) -> None:
    """Writes each view as Parquet to a directory of its own, in the order of `ORDER` or as it comes."""
    with duckdb.connect() as database:
        for name in SCHEMAS:
            database.read_parquet(str(base / f"{name}.parquet")).create_view(name)
        for name, query in statements().items():
            rows = database.sql(query)
            if ordered and name in ORDER:
                rows = rows.order(ORDER[name])
            (folder / name).mkdir(parents=True, exist_ok=True)
            rows.to_parquet(str(folder / name / "part-0.parquet"), row_group_size=GROUP_ROWS)


def views(spark: SparkSession, base: Path) -> dict[str, DataFrame]:
    """Each view as a query of Spark over the files in `base`."""
    for name in SCHEMAS:
        spark.read.parquet(str(base / f"{name}.parquet")).createOrReplaceTempView(name)
    try:
        return {name: spark.sql(text) for name, text in statements().items()}
    finally:
        for name in SCHEMAS:
            spark.catalog.dropTempView(name)


if __name__ == "__main__":
    store(Path(sys.argv[1]), Path(sys.argv[2]), ordered=False)
