"""What Spark calls what other databases' dialects have: hints for SQL that was not written for Spark."""

from __future__ import annotations

from sqlglot import exp

_CALLED: dict[str, str] = {
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
    "json_extract_string": "get_json_object(text, '$.name')",
    "json_value": "get_json_object(text, '$.name')",
    "list": "collect_list(x)",
    "list_contains": "array_contains(list, x)",
    "list_distinct": "array_distinct(list)",
    "list_sort": "sort_array(list)",
    "parse_date": "to_date(text, 'yyyy-MM-dd')",
    "quantile": "percentile(x, 0.5)",
    "quantile_cont": "percentile(x, 0.5)",
    "regexp_matches": "text rlike 'pattern'",
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


def called_in_spark(function: str) -> str | None:
    """How Spark writes what a function of another dialect does, as a hint; None if that is not known.

    >>> called_in_spark("IFF")
    "Spark's is `if(condition, a, b)`"
    """
    found = _CALLED.get(function.lower())
    return None if found is None else f"Spark's is `{found}`"


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
