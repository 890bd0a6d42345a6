"""What depends on the clock of Spark's session: this process computes on that of UTC alone."""

from __future__ import annotations

import datetime as dt

from pyspark.sql import SparkSession

from datalog.model import Call, Cast, Constant, Rule, TypeName, ViewDefinition, terms_of, walk
from datalog.model.times import CLOCK_CALLS
from selfmaint.spark.frames import session_zone

_UTC = ("UTC", "Etc/UTC", "Z", "GMT", "+00:00")
"""Names of time zones on whose clocks an instant is shown as it is counted."""


def is_on_utc(spark: SparkSession) -> bool:
    """Whether the session's clock is that of UTC."""
    return session_zone(spark) in _UTC


def names_time(rule: Rule) -> bool:
    """Whether a rule names a time, which may be another instant on another clock."""
    terms = (term for literal in (rule.head, *rule.body) for term in terms_of(literal))
    return any(isinstance(term, Constant) and isinstance(term.value, dt.datetime) for term in terms)


def names_instants(definition: ViewDefinition) -> bool:
    """Whether a definition names times, or makes instants of what has no zone."""
    return any(
        names_time(block.core)
        or any(
            (isinstance(one, Cast) and one.type.name is TypeName.TIMESTAMP)
            or (isinstance(one, Constant) and isinstance(one.value, dt.datetime))
            or (isinstance(one, Call) and one.function in CLOCK_CALLS)
            for value in (*block.outputs, *block.filters, *(block.groups or ()), *block.having)
            for one in walk(value)
        )
        for block in definition.blocks
    )
