"""Comparisons of values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from datalog.model import Operator, Value, value_kind

COMPARISONS: Mapping[Operator, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
"""What each operator is between values of one family, none of them null."""


def compares(sign: Operator, left: Value, right: Value) -> bool:
    """Whether a comparison holds; not if a side is null, and values of two families are just different."""
    if left is None or right is None:
        return False
    if value_kind(left) != value_kind(right):
        return sign == "!="
    return COMPARISONS[sign](left, right)
