"""The errors that this package raises, besides those of programs that are wrong (`diagnostics`)."""

from __future__ import annotations


class DatalogError(Exception):
    """Base class: bad programs, or a broken invariant of this package."""


class EvaluationError(DatalogError):
    """A value that an expression does not have: a division by zero, a cast of what does not fit."""


class EmissionError(DatalogError):
    """A program that no query says: unsafe, recursive, or over what has no table or literal."""
