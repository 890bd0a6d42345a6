"""DuckDB, embedded: an engine for one machine, without a Java process. The only importer of `duckdb`."""

from selfmaint.duckdb.database import Relation
from selfmaint.duckdb.engine import DuckEngine

__all__ = ["DuckEngine", "Relation"]
