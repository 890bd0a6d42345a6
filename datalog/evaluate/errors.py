"""What cannot be evaluated."""

from __future__ import annotations

from datalog.errors import DatalogError


class EvaluationError(DatalogError):
    """A value that an expression does not have: a division by zero, a cast of what does not fit."""
