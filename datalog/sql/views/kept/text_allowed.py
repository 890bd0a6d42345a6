"""What a query that only Spark understands may use, so that running it does nothing but compute rows.

A list of what is allowed: functions whose value depends on their arguments alone, and clauses that read nothing and
start nothing. Whatever is not listed is refused by its name, new functions of new versions of Spark too.
"""

from __future__ import annotations

from sqlglot import exp

from datalog.sql.dialect import SPARK
from datalog.sql.views.kept.other_dialects import (
    called_in_spark,
    in_spark,
    is_distinct_on,
    otherwise_in_spark,
)
from datalog.sql.views.outside import unknown

AGGREGATES = frozenset(
    """
    any any_value approx_count_distinct approx_percentile array_agg avg bit_and bit_or bit_xor bool_and bool_or
    collect_list collect_set corr count count_if covar_pop covar_samp every first first_value grouping grouping_id
    kurtosis last last_value listagg max max_by mean median min min_by mode percentile percentile_approx
    percentile_cont percentile_disc regr_avgx regr_avgy regr_count regr_intercept regr_r2 regr_slope regr_sxx
    regr_sxy regr_syy skewness some std stddev stddev_pop stddev_samp string_agg sum try_avg try_sum var_pop
    var_samp variance
    """.split()  # noqa: SIM905
)
"""Of these those that aggregate rows."""
TEXT_FUNCTIONS = AGGREGATES.union(
    """
    abs acos acosh asin asinh atan atan2 atanh bit_count bit_get bround cbrt ceil ceiling conv cos cosh cot csc degrees
    e exp expm1 factorial floor getbit greatest hypot least ln log log10 log1p log2 mod negative pi pmod positive pow
    power radians rint round sec shiftleft shiftright shiftrightunsigned sign signum sin sinh sqrt tan tanh try_add
    try_divide try_mod try_multiply try_subtract width_bucket
    ascii base64 bit_length btrim char char_length character_length chr concat concat_ws contains crc32 decode elt
    encode endswith find_in_set format_number format_string hex initcap instr lcase left len length levenshtein
    like ilike locate lower lpad ltrim luhn_check mask md5 octet_length overlay parse_url position printf quote regexp
    regexp_count regexp_extract regexp_extract_all regexp_instr regexp_like regexp_replace regexp_substr repeat
    replace reverse right rlike rpad rtrim sentences sha sha1 sha2 soundex space split split_part startswith substr
    substring substring_index to_binary to_char to_number to_varchar translate trim try_to_binary try_to_number
    ucase unbase64 unhex upper url_decode url_encode
    add_months convert_timezone date_add date_diff date_format date_from_unix_date date_part date_sub date_trunc
    dateadd datediff datepart day dayname dayofmonth dayofweek dayofyear extract from_unixtime from_utc_timestamp hour
    last_day make_date make_dt_interval make_interval make_timestamp make_timestamp_ltz make_timestamp_ntz
    make_ym_interval minute month monthname months_between next_day quarter second timestamp_micros timestamp_millis
    timestamp_seconds timestampadd timestampdiff to_date to_timestamp to_timestamp_ltz to_timestamp_ntz
    to_unix_timestamp to_utc_timestamp trunc try_to_date try_to_timestamp unix_date unix_micros unix_millis
    unix_seconds unix_timestamp weekday weekofyear year
    bigint binary boolean cast date decimal double float int smallint string timestamp tinyint try_cast
    and between case coalesce equal_null if ifnull isnan isnotnull isnull nanvl not nullif nullifzero nvl nvl2 or typeof
    when zeroifnull assert_true
    cume_dist dense_rank lag lead nth_value ntile percent_rank rank row_number
    aggregate array array_append array_compact array_contains array_distinct array_except array_insert
    array_intersect array_join array_max array_min array_position array_prepend array_remove array_repeat array_size
    array_sort array_union arrays_overlap arrays_zip cardinality element_at exists explode explode_outer filter
    flatten forall get inline inline_outer map map_concat map_contains_key map_entries map_filter map_from_arrays
    map_from_entries map_keys map_values map_zip_with named_struct posexplode posexplode_outer reduce sequence size
    slice sort_array stack str_to_map struct transform transform_keys transform_values try_element_at zip_with
    from_csv from_json get_json_object json_array_length json_object_keys json_tuple schema_of_csv schema_of_json
    to_csv to_json hash xxhash64
    """.split()  # noqa: SIM905
)
"""The functions of Spark that a query may call; all others are refused."""

_WRITTEN_OTHERWISE = {
    *(exp.And, exp.Or, exp.Cast, exp.TryCast, exp.Case, exp.If, exp.Exists, exp.Extract, exp.Trim),
    *(exp.Substring, exp.Overlay, exp.StrPosition, exp.RegexpLike, exp.Transform, exp.Array, exp.Chr),
    *(exp.Ceil, exp.Floor, exp.Initcap, exp.ArgMax, exp.ArgMin, exp.Quantile, exp.ApproxQuantile, exp.Decode),
    *(exp.DecodeCase, exp.GroupConcat, exp.JSONExtract, exp.TsOrDsToDate, exp.TimeStrToTime, exp.Interval),
}
"""Functions and operators of which sqlglot keeps no name as it is written."""

_CLAUSES = {
    *(exp.Select, exp.From, exp.Join, exp.Table, exp.TableAlias, exp.Identifier, exp.Subquery, exp.Where),
    *(
        exp.Group,
        exp.Having,
        exp.Qualify,
        exp.Distinct,
        exp.Union,
        exp.Intersect,
        exp.Except,
        exp.With,
        exp.CTE,
    ),
    *(exp.Values, exp.Tuple, exp.Order, exp.Ordered, exp.Sort, exp.Cluster, exp.Distribute, exp.Limit),
    *(exp.Offset, exp.Rollup, exp.Cube, exp.GroupingSets, exp.Lateral, exp.Pivot, exp.PivotAlias),
    *(exp.UnpivotColumns, exp.Hint, exp.Window, exp.WindowSpec, exp.WithinGroup, exp.Filter, exp.IgnoreNulls),
    *(exp.RespectNulls, exp.Column, exp.Star, exp.Alias, exp.Aliases, exp.Literal, exp.Boolean, exp.Null),
    *(exp.Paren, exp.HexString, exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ),
    *(exp.NullSafeNEQ, exp.Is, exp.In, exp.Not, exp.Between, exp.Like, exp.ILike, exp.Escape, exp.Any),
    *(exp.All, exp.Add, exp.Sub, exp.Mul, exp.Div, exp.Mod, exp.IntDiv, exp.Neg, exp.BitwiseAnd),
    *(exp.BitwiseOr, exp.BitwiseXor, exp.BitwiseNot, exp.DPipe, exp.Collate, exp.Bracket, exp.Dot),
    *(exp.Lambda, exp.PropertyEQ, exp.ColumnDef, exp.DataType, exp.DataTypeParam, exp.Var, exp.JSONPath),
    *(exp.JSONPathRoot, exp.JSONPathKey, exp.JSONPathSubscript, exp.IntervalSpan),
}


def _is_compared(node: exp.Expr) -> bool:
    """Whether a value is a side of a comparison, which is the same whichever of several equal texts it is."""
    above = node.parent
    while isinstance(above, exp.Paren):
        above = above.parent
    return isinstance(above, exp.Predicate)


def refused_in(tree: exp.Expr, text: str) -> tuple[exp.Expr, str, str] | None:
    """The first thing in a query that is not allowed: where it stands, what it is, and what to do.

    >>> from sqlglot import parse_one
    >>> text = "select upper(a), reflect('java.lang.System', 'exit', 1) from t"
    >>> refused_in(parse_one(text, read="spark"), text)[1:]
    ('the function `reflect`', 'compute its value when the rows are loaded')
    """
    for node in tree.walk(prune=lambda one: isinstance(one, exp.Hint)):
        if is_distinct_on(node):
            return node.args["distinct"], "DISTINCT ON", in_spark(node)
        if (other := otherwise_in_spark(node)) is not None:
            return node, *other
        if isinstance(node, exp.Collate) and not _is_compared(node):
            return (
                node,
                "a value of a collation that is not compared at once",
                "compare it: `a COLLATE c = b`",
            )
        if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
            return node, f"the function `{node.sql(SPARK)}`", "call Spark's function, by its name alone"
        place = node.meta.get("start") if isinstance(node, exp.Func) else None
        if place is not None:
            name = text[place : node.meta["end"] + 1].strip("`").casefold()
            if name not in TEXT_FUNCTIONS:
                return node, f"the function `{name}`", called_in_spark(name) or unknown(node)[1]
        elif type(node) not in _WRITTEN_OTHERWISE | _CLAUSES:
            return node, *unknown(node)
    return None
