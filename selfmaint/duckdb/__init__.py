"""DuckDB, embedded: an engine for one machine, without a Java process. The only importer of `duckdb`."""

from selfmaint.duckdb.engine import DuckEngine
from selfmaint.duckdb.relation import Relation

__all__ = ["DuckEngine", "Relation"]
