"""What Spark calls what other databases' dialects have: hints for SQL that was not written for Spark."""

from __future__ import annotations

import re

from sqlglot import exp

_CALLED: dict[str, str] = {
    "age": "months_between(a, b)",
    "array_length": "size(list)",
    "array_to_string": "array_join(list, ', ')",
    "date_bin": "date_trunc('hour', time)",
    "date_from_parts": "make_date(year, month, day)",
    "datefromparts": "make_date(year, month, day)",
    "datetime_trunc": "date_trunc('month', time)",
    "div0": "try_divide(a, b)",
    "epoch": "unix_timestamp(time)",
    "epoch_ms": "unix_millis(time)",
    "format_date": "date_format(day, 'yyyy-MM')",
    "format_datetime": "date_format(time, 'yyyy-MM')",
    "format_timestamp": "date_format(time, 'yyyy-MM')",
    "generate_series": "explode(sequence(first, last))",
    "group_concat": "listagg(x, ', ') WITHIN GROUP (ORDER BY x)",
    "iff": "if(condition, a, b)",
    "json_agg": "to_json(collect_list(x))",
    "json_build_object": "to_json(named_struct('name', x))",
    "json_extract_path_text": "get_json_object(text, '$.name')",
    "json_extract_string": "get_json_object(text, '$.name')",
    "json_value": "get_json_object(text, '$.name')",
    "jsonb_agg": "to_json(collect_list(x))",
    "jsonb_build_object": "to_json(named_struct('name', x))",
    "jsonb_extract_path_text": "get_json_object(text, '$.name')",
    "list": "collect_list(x)",
    "list_contains": "array_contains(list, x)",
    "list_distinct": "array_distinct(list)",
    "list_sort": "sort_array(list)",
    "parse_date": "to_date(text, 'yyyy-MM-dd')",
    "quantile": "percentile(x, 0.5)",
    "quantile_cont": "percentile(x, 0.5)",
    "regexp_match": "regexp_extract(text, 'pattern', 0)",
    "regexp_matches": "text rlike 'pattern'",
    "regexp_split_to_array": "split(text, 'pattern')",
    "regexp_split_to_table": "explode(split(text, 'pattern'))",
    "safe_divide": "try_divide(a, b)",
    "str_split": "split(text, 'pattern')",
    "strftime": "date_format(time, 'yyyy-MM')",
    "string_split": "split(text, 'pattern')",
    "string_to_array": "split(text, 'pattern')",
    "strpos": "instr(text, part)",
    "strptime": "to_timestamp(text, 'yyyy-MM-dd')",
    "timestamp_trunc": "date_trunc('month', time)",
    "to_timestamp_tz": "to_timestamp(text)",
    "try_strptime": "try_to_timestamp(text, 'yyyy-MM-dd')",
    "unnest": "explode(list)",
}
"""By the name of a function elsewhere, how Spark writes it."""
_PARTS: dict[str, str] = {
    "century": "ceil(year(time) / 100)",
    "decade": "floor(year(time) / 10)",
    "epoch": "unix_timestamp(time)",
    "isodow": "weekday(time) + 1",
    "isoyear": "extract(yearofweek FROM time)",
    "microseconds": "extract(second FROM time) * 1000000",
    "millennium": "ceil(year(time) / 1000)",
    "milliseconds": "extract(second FROM time) * 1000",
}
"""By parts of times that Spark does not know, how it writes them."""
_LETTERS: dict[str, str] = {
    "YYYY": "yyyy",
    "YY": "yy",
    "Month": "MMMM",
    "Mon": "MMM",
    "Day": "EEEE",
    "Dy": "EEE",
    "DDD": "DDD",
    "DD": "dd",
    "HH24": "HH",
    "HH12": "hh",
    "HH": "hh",
    "MI": "mm",
    "MS": "SSS",
    "SS": "ss",
    "AM": "a",
}
"""By letters of PostgreSQL's patterns of times, those of Spark's; what begins another one comes behind it."""
_PATTERN = re.compile("|".join(_LETTERS))
_FOREIGN = re.compile("Y|HH24|HH12|MI|Mon|Day|Dy")
"""What no pattern of times has in Spark."""
_NUMERIC = re.compile("[ 09.,DGSLBPRMI$]*")
"""A pattern of numbers, which are Spark's as well."""
_WRITTEN: dict[type[exp.Expr], tuple[str, str]] = {
    exp.AtTimeZone: (
        "AT TIME ZONE",
        "Spark's is `from_utc_timestamp(time, 'zone')` of a time with a zone, and `to_utc_timestamp` of one without",
    ),
    exp.RegexpILike: ("`~*`", "Spark's is `text rlike '(?i)pattern'`"),
    exp.SimilarTo: ("SIMILAR TO", "Spark's is `text rlike '^(pattern)$'`, with `.*` for `%`"),
}
"""Operators that Spark does not have."""


def called_in_spark(function: str) -> str | None:
    """How Spark writes what a function of another dialect does, as a hint; None if that is not known.

    >>> called_in_spark("IFF")
    "Spark's is `if(condition, a, b)`"
    """
    found = _CALLED.get(function.lower())
    return None if found is None else f"Spark's is `{found}`"


def otherwise_in_spark(node: exp.Expr) -> tuple[str, str] | None:
    """What is called as a function or operator of Spark is, and is none: what it is, and what to write.

    >>> from sqlglot import parse_one
    >>> otherwise_in_spark(parse_one("extract(epoch from (a - b))", read="spark"))
    ('`epoch` of a time', "Spark's is `unix_timestamp(a) - unix_timestamp(b)`, in whole seconds")
    >>> otherwise_in_spark(parse_one("to_char(a, 'YYYY-MM')", read="spark"))
    ("`to_char` with the pattern 'YYYY-MM'", "Spark's is `date_format(a, 'yyyy-MM')`")
    """
    match node:
        case exp.Extract(this=part, expression=value):
            return _part(part.name, value)
        case exp.Anonymous(this=str(name), expressions=[exp.Literal() as part, value]) if name.lower() in (
            "date_part",
            "datepart",
        ):
            return _part(part.name, value)
        case exp.ToChar():
            return _shown(node.this, node.text("format"))
        case exp.JSONExtractScalar() if node.meta.get("start") is None:
            return "`->>`", "Spark's is `get_json_object(text, '$.name')`"
        case exp.Bracket() if isinstance(node.this.unnest(), exp.SplitPart):
            return "an element of a text", "`split_part(text, ',', 1)` is the first part itself"
        case _:
            return _WRITTEN.get(type(node))


def _shown(value: exp.Expr, pattern: str) -> tuple[str, str] | None:
    """What to write for `to_char` with a pattern of another dialect."""
    written = _PATTERN.sub(lambda found: _LETTERS[found[0]], pattern)
    if not _FOREIGN.search(pattern) or _NUMERIC.fullmatch(pattern):
        return None
    of = f"{value.sql('spark')}, '{written}'"
    return f"`to_char` with the pattern '{pattern}'", f"Spark's is `date_format({of})`"


def _part(name: str, value: exp.Expr) -> tuple[str, str] | None:
    """What to write for a part of a time."""
    name, value = name.lower(), value.unnest()
    found = _PARTS.get(name)
    if found is None:
        return None
    if name == "epoch":
        sides = [value.this, value.expression] if isinstance(value, exp.Sub) else [value]
        found = " - ".join(f"unix_timestamp({one.sql('spark')})" for one in sides)
    return f"`{name}` of a time", f"Spark's is `{found}`{', in whole seconds' if name == 'epoch' else ''}"


def is_distinct_on(node: exp.Expr) -> bool:
    """Whether it is a SELECT with DISTINCT ON."""
    distinct = node.args.get("distinct")
    return isinstance(distinct, exp.Distinct) and distinct.args.get("on") is not None


def in_spark(select: exp.Expr) -> str:
    """What to write in place of DISTINCT ON, as a hint.

    >>> from sqlglot import parse_one
    >>> in_spark(parse_one("select distinct on (a) a, b from r order by a, b desc", read="spark"))
    'write `QUALIFY row_number() OVER (PARTITION BY a ORDER BY b DESC NULLS LAST) = 1`, or NULLS FIRST'
    """
    on = [one.sql("spark") for one in select.args["distinct"].args["on"].expressions]
    order = select.args.get("order")
    items = [] if order is None else order.expressions
    by = [
        f"{one.this.sql('spark')}{' DESC' if one.args.get('desc') else ''} NULLS LAST"
        for one in items
        if one.this.sql("spark") not in on
    ]
    window = f"PARTITION BY {', '.join(on)} ORDER BY {', '.join(by) or '..'}"
    return f"write `QUALIFY row_number() OVER ({window}) = 1`{', or NULLS FIRST' if by else ''}"
