"""What cannot be said in Spark SQL."""

from __future__ import annotations

from datalog.errors import DatalogError


class EmissionError(DatalogError):
    """A program that has no SQL: unsafe, recursive, or over what has no table or literal."""
