"""A Spark session for many generated statements over a few rows each."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.ui.explainMode": "simple",
}
"""Compiling code for a few rows, planning anew after each stage, and writing plans down costs far more than running."""


@contextlib.contextmanager
def interpreting(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, which meanwhile compiles no code for its statements."""
    for name, value in INTERPRETED.items():
        spark.conf.set(name, value)
    try:
        yield spark
    finally:
        for name in INTERPRETED:
            spark.conf.unset(name)


def interpreting_session(spark: SparkSession) -> SparkSession:
    """A session of its own that does so."""
    session = spark.newSession()
    for name, value in INTERPRETED.items():
        session.conf.set(name, value)
    return session
