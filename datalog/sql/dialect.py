"""Spark's SQL as Spark reads it since 4.0: a quote that stands twice in a text is one of its characters.

    'it''s'     it's        (in sqlglot's dialect, as before 4.0, the texts `it` and `s` one behind the other)
    'it' 's'    its

Texts of raw strings (r'a') are read as sqlglot reads them.
"""

from __future__ import annotations

from typing import ClassVar

from sqlglot.dialects.spark import Spark


class SparkSql(Spark):
    """What texts of queries are read as."""

    class Tokenizer(Spark.Tokenizer):
        """See `SparkSql`."""

        STRING_ESCAPES: ClassVar[list[str]] = ["\\", "'", '"']


class OtherTables(SparkSql):
    """What definitions of tables are read as that have types of other databases: `citext`, `public.mood`."""

    SUPPORTS_USER_DEFINED_TYPES = True


SPARK = SparkSql()
"""The dialect to read by; what is written by sqlglot's own is read as it was meant."""
OTHER_TABLES = OtherTables()
"""See `OtherTables`."""
