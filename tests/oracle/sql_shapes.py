"""Random views in SQL by shape, as users write them, over small tables.

What each view gives is told by its tables alone: orders of windows and of LIMIT leave no ties open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import TypeAlias

from tests.oracle.sql_schemas import COLUMNS, TYPED, names_read
from tests.oracle.typed_shapes import TYPED_SHAPES
from tests.oracle.warehouse_shapes import WAREHOUSE_SHAPES
from tests.random_queries import Maker

Views: TypeAlias = Mapping[str, str]
MOST_TABLES = 3


# ------------------------------------------------------------------------------------------------ the shapes


def _condition(random: Random, alias: str = "") -> str:
    """A condition over the columns of `r`."""
    a, b, c = (f"{alias}{column}" for column in "abc")
    return random.choice(
        [
            f"{c} = 1",
            f"{c} > 1",
            f"{b} <> 2",
            f"{c} in (1, 3)",
            f"{c} not in (2, 3)",
            f"{b} = 1 or {c} = 1",
            f"({b} = 1 and {c} > 1) or ({b} = 2 and {c} <= 1)",
            f"{c} between 1 and 2",
            f"{c} is null",
            f"{b} is not null and {c} > 1",
            f"not ({c} > 1)",
            f"case when {b} = 1 then {c} else 2 end > 1",
            f"coalesce({c}, 2) > 1",
            f"{b} = {c}",
            f"{b} < {c} or {c} is null",
            f"{a} + {c} > 2",
        ]
    )


def _where(random: Random, alias: str = "", often: float = 0.5) -> str:
    return f" where {_condition(random, alias)}" if random.random() < often else ""


def _items(random: Random, *items: str) -> str:
    """Some of some items, in order; at least one."""
    some = [item for item in items if random.random() < 0.65]
    return ", ".join(some or [random.choice(items)])


def _selection(random: Random) -> str:
    return f"select {_items(random, 'a', 'b', 'c')} from r where {_condition(random)}"


def _like(random: Random) -> str:
    pattern = random.choice(["'a%'", "'%b'", "'_'", "'a_'", "'%a%'"])
    test = f"n {random.choice(['', 'not '])}like {pattern}"
    test = random.choice([test, test, f"{test} or m > 1", f"{test} and m is not null"])
    return f"select {_items(random, 'k', 'n', 'm')} from w where {test}"


def _computed(random: Random) -> str:
    item = random.choice(
        [
            "b + c as z",
            "coalesce(c, 0) as z",
            "case when c > 1 then 1 when c is null then b else 0 end as z",
            "c * 2 as z",
            "b = c as z",
            "abs(c - 2) as z",
        ]
    )
    return f"select {_items(random, 'a', 'b')}, {item} from r{_where(random)}"


def _distinct(random: Random) -> str:
    items = random.choice(["b", "c", "b, c", "coalesce(b, 0) as z", "b + 1 as z"])
    return f"select distinct {items} from r{_where(random)}"


def _inner(random: Random) -> str:
    items = _items(random, "r.a", "r.b", "r.c", "s.f", "s.e", "s.d")
    on = random.choice(
        ["r.b = s.f", "r.b = s.f", "r.b = s.f", "r.b = s.d", "r.c = s.f", "r.b = s.f and r.c > s.e"]
    )
    distinct = random.choice(["", "", "", "distinct "])
    return f"select {distinct}{items} from r join s on {on}{_where(random, 'r.', 0.3)}"


def _self_join(random: Random) -> str:
    items = _items(random, "p.a", "q.a as z", "p.c", "q.c as y")
    on = random.choice(["p.b = q.b", "p.b = q.a", "p.b = q.b and p.a < q.a", "p.c > q.c"])
    return f"select {items} from r p join r q on {on}"


def _outer(kind: str) -> Callable[[Random], str]:
    def made(random: Random) -> str:
        items = _items(random, "r.a", "r.b", "r.c", "s.f", "s.e", "s.d")
        on = random.choice(["r.b = s.f", "r.b = s.f", "r.b = s.f", "r.b = s.d", "r.b = s.f and s.e > 1"])
        where = random.choice(["", "", "", " where s.f is null", " where r.a is not null", " where s.e = 1"])
        return f"select {items} from r {kind} join s on {on}{where}"

    return made


def _full(random: Random) -> str:
    """All rows of two tables, or groups of these, joined by `=` of columns that are shown mostly."""
    if random.random() < 0.5:
        b, f = random.choice([("b", "f"), ("b", "d"), ("a", "f"), ("c", "e")])
        keys = random.choice(
            [[f"r.{b}", f"s.{f}"], [f"coalesce(r.{b}, s.{f}) as k"], [f"r.{b} as k", f"s.{f} as l"]]
        )
        its = [
            "r.a as key_r",
            "s.f as key_s",
            "r.c as x",
            "coalesce(s.e, 0) as y",
            "r.c + 1 as z",
            "r.c + s.e as w",
        ]
        shown = [*keys, *(one for one in its if random.random() < 0.8)]
        left = random.choice(
            ["r", "r", "(select a, b, coalesce(c, 2) as c from r) r", "(select * from r where c > 1) r"]
        )
        return f"select {', '.join(shown)} from {left} full join s on r.{b} = s.{f}"
    left, right = random.choice(["b", "c", "a"]), random.choice(["d", "e", "f"])
    where, having = random.choice(["", " where c > 1"]), random.choice(["", " having count(*) > 1"])
    of = f"select {left} as k, count(*) as n, sum(c) as t, max(a) as x from r{where} group by {left}"
    to = f"select {right} as k, count(*) as m, min(f) as y from s group by {right}{having}"
    its = ["p.n", "coalesce(q.m, 0) as m", random.choice(["p.t", "coalesce(p.t, 0) as t"]), "p.x", "q.y"]
    its = [one for one in its if random.random() < 0.8] or its
    if len(its) > 3:
        its += [
            random.choice(["p.n - q.m as w", "coalesce(p.n, 0) + coalesce(q.m, 0) as v", "p.x + q.y as u"])
        ]
    on, key = random.choice(
        [("on p.k = q.k", "coalesce(p.k, q.k) as k"), ("on p.k = q.k", "p.k, q.k as l"), ("using (k)", "k")]
    )
    return f"select {key}, {', '.join(its)} from ({of}) p full join ({to}) q {on}"


def _looked_up(random: Random) -> str:
    """Rows with what one or two LEFT JOINs find for them, keys and what tells partners shown mostly."""
    on = [
        "r.b = s.f",
        "r.b = s.f",
        "r.b = s.d",
        "r.c = s.e",
        "r.b = s.f and s.e > 1",
        "r.b = s.f and (s.e > 1 or s.d = 1)",
    ]
    on = random.choice(on)
    its = ["s.f", *random.sample(["s.d", "s.e", "coalesce(s.e, 0) as z", "s.e + 1 as y", "s.d = 1 as u"], 2)]
    joins = f"left join s on {on}"
    if random.random() < 0.5:
        on = random.choice(["s.d = w.k", "r.c = w.k", "r.b = w.k", "s.d = w.k and r.c = w.m"])
        joins += f" {random.choice(['left join', 'left join', 'join'])} w on {on}"
        its += ["w.k", "w.m"]
    its = ["r.a", *(one for one in ("r.b", "r.c") if random.random() < 0.5), *its]
    if random.random() < 0.3:
        its = [one for one in its if one not in ("s.f", "w.k")]
    shown = [one for one in its if random.random() < 0.9] or its
    where = random.choice(
        ["", "", "", " where r.c > 1 or r.b = 1", " where s.e = 1", " where s.d is not null"]
    )
    return f"select {', '.join(shown)} from r {joins}{where}"


def _referenced(random: Random) -> str:
    """Rows, or groups, with what is computed from what foreign keys may lead to."""
    joins, its = "r left join s on r.b = s.f", ["coalesce(s.e, 7)", "s.e", "r.c + s.e", "s.d", "s.f"]
    its += ["case when s.f is null then 'none' when s.e > 1 then 'more' else 'one' end", "coalesce(s.d, r.c)"]
    if random.random() < 0.4:
        joins += f" {random.choice(['left join', 'left join', 'join'])} w on s.d = w.k"
        its += ["coalesce(w.n, '?')", "w.m", "coalesce(w.m, s.e)", "w.n"]
    where = random.choice(["", "", "", " where r.c > 1", " where s.e is null", " where coalesce(s.e, 2) > 1"])
    shown = random.sample(its, random.choice([1, 1, 2]))
    named = [f"{one} as z{i}" for i, one in enumerate(shown)]
    if random.random() < 0.5:
        keys = ["r.a", *(["r.b"] if random.random() < 0.3 else [])]
        return (
            f"select {random.choice(['', '', 'distinct '])}{', '.join([*keys, *named])} from {joins}{where}"
        )
    calls = [
        "count(*) as n",
        "sum(r.c) as t",
        "count(s.f) as k",
        "sum(s.e) as u",
        "max(r.a) as m",
        "count(r.c) as l",
    ]
    picked = random.sample(calls, random.choice([1, 2, 3]))
    return f"select {', '.join([*named, *picked])} from {joins}{where} group by {', '.join(shown)}"


def _totalled(random: Random) -> str:
    """Groups of what a LEFT JOIN finds for each row."""
    on = random.choice(["s.d = r.a", "s.e = r.a", "s.d = r.b", "s.f = r.b", "s.d = r.a and s.e > 1"])
    calls = [
        "count(s.f) as n",
        "sum(s.e) as z",
        "max(s.d) as y",
        "min(s.e) as u",
        "count(*) as k",
        "count(s.e) as h",
        "coalesce(sum(s.e), 0) as w",
        "coalesce(max(s.f), 7) as x",
        "cast(count(s.f) as decimal(12, 1)) as g",
        "round(coalesce(sum(s.e), 0), 1) as m",
    ]
    shown = ", ".join(one for one in calls if random.random() < 0.5) or "count(s.f) as n"
    by = random.choice(["r.a", "r.a", "r.a, r.c", "r.b"])
    where = random.choice(["", "", "", " where r.c > 1", " where s.e = 1"])
    return f"select {by}, {shown} from r left join s on {on}{where} group by {by}"


def _chained(random: Random) -> str:
    """Groups of what several LEFT JOINs find for each row, one behind the other mostly."""
    second, last = random.choice(
        [("t on t.x = s.f", "t.y"), ("w on w.m = s.f", "w.m"), ("t on t.y = s.d", "t.x")]
    )
    first = random.choice(
        ["s on s.d = r.a", "s on s.d = r.a and s.e > 1", "s on s.e = r.a", "s on s.d = r.b"]
    )
    if random.random() < 0.2:
        second = second.replace("s.f", "r.a")
    calls = [
        f"count({last})",
        f"sum({last})",
        f"max({last} + s.e)",
        f"coalesce(sum({last} * s.e), 0)",
        "max(s.e)",
    ]
    calls += [
        "count(distinct s.f)",
        "count(distinct s.f)",
        "min(s.d)",
        "count(*)",
        "sum(s.e)",
        f"sum({last}) * 2",
    ]
    picked = [f"{one} as z{i}" for i, one in enumerate(random.sample(calls, random.choice([1, 2, 2, 3])))]
    by = random.choice(["r.a", "r.a", "r.a, r.c", "r.c"])
    where = random.choice(["", "", "", " where r.c > 1"])
    return (
        f"select {by}, {', '.join(picked)} from r left join {first} left join {second}{where} group by {by}"
    )


def _unmatched(random: Random) -> str:
    """Rows without a match, their keys shown mostly; a foreign key may say what is compared."""
    kept, key, others, other, on, test = random.choice(
        [
            ("s", "s.f", ["s.d", "s.e"], "t", "t.x = s.f", "t.y > 1"),
            ("w", "w.k", ["w.n", "w.m"], "s", "s.d = w.k", "s.e > 1"),
            ("r", "r.a", ["r.b", "r.c"], "s", "s.d = r.a", "s.e = 1"),
            ("r", "r.a", ["r.b", "r.c"], "s", "s.f = r.b", "s.e > 1"),
            ("r", "r.a", ["r.b", "r.c"], "s", "s.f = r.c", "s.d is not null"),
            ("r", "r.a", ["r.b", "r.c"], "s", "s.f = r.b and s.d = r.a", "s.e > 1"),
        ]
    )
    test = random.choice(["", "", f" and {test}"])
    its = [key, *others] if random.random() < 0.7 else random.sample([key, *others], 2)
    where = random.choice(["", "", f"{others[1]} > 1 and ", f"{others[0]} is not null and "])
    if random.random() < 0.2:
        its = [one for one in its if one not in on.split(" = ")[0].split()]
        column = on.split(" and ")[0].split(" = ")[0]
        return f"select {', '.join(its)} from {kept} left join {other} on {on}{test} where {where}{column} is null"
    return f"select {', '.join(its)} from {kept} where {where}not exists (select 1 from {other} where {on}{test})"


def _reckoned(random: Random) -> str:
    """Groups with columns computed from their counts, sums and extrema, which are shown mostly."""
    source, by, value = random.choice(
        [("r", "b", "c"), ("r", "c", "a"), ("r", "b, c", "a"), ("r join s on r.b = s.f", "s.f, s.e", "r.c")]
    )
    calls = [f"{call} as {name}" for call, name in _calls(value)]
    over = [
        "count(*) > 1 as z",
        f"coalesce(sum({value}), 0) + count(*) as z",
        f"case when count({value}) = 0 then 'none' when max({value}) > 1 then 'many' else 'few' end as z",
        f"cast(sum({value}) as double) / count(*) as z",
        f"max({value}) - min({value}) as z",
        f"coalesce({by.split(', ')[0]}, 0) + 1 as z",
        f"round(sum({value}), 1) as z",
        f"cast(sum({value}) as decimal(12, 1)) as z",
        "cast(count(*) as int) as z",
        f"cast(min({value}) as bigint) as z",
    ]
    shown = [one for one in calls if random.random() < 0.8]
    its = [by, *shown, *random.sample(over, random.choice([1, 1, 2]))]
    its = [re.sub("as z$", f"as z{i}", one) for i, one in enumerate(its)]
    random.shuffle(its)
    having = random.choice(["", "", "", " having count(*) > 1"])
    return f"select {', '.join(its)} from {source}{_where(random, 'r.', 0.2)} group by {by}{having}"


def _calls(value: str) -> list[tuple[str, str]]:
    calls = [f"count({value})", f"sum({value})", f"min({value})", f"max({value})"]
    return [("count(*)", "n"), *((call, f"h{i}") for i, call in enumerate(calls))]


def _summed_up(random: Random) -> str:
    """Rows with what the groups of other rows come to, as models of customers with their orders have it."""
    kept, key, others, on = random.choice(
        [
            ("r", "r.a", ["r.b", "r.c"], ("s", "d", "e", "r.a")),
            ("r", "r.a", ["r.b", "r.c"], ("s", "f", "e", "r.b")),
            ("s", "s.f", ["s.d", "s.e"], ("r", "b", "c", "s.f")),
            ("w", "w.k", ["w.n", "w.m"], ("s", "d", "e", "w.k")),
        ]
    )
    table, by, value, at = on
    calls = [one for one in _calls(value) if random.random() < 0.6] or [("count(*)", "n")]
    if random.random() < 0.3:
        words = random.choice(["round({}, 1)", "cast({} as bigint)", "cast({} as decimal(12, 1))"])
        calls = [(words.format(call) if random.random() < 0.6 else call, name) for call, name in calls]
    where = random.choice(["", "", f" where {value} > 1"])
    having = random.choice(["", "", "", "", " having count(*) > 1"])
    inner = f"select {by} as g, {', '.join(f'{c} as {n}' for c, n in calls)} from {table}{where} group by {by}{having}"
    kind = random.choice(["join", "left join", "left join"])
    its = [key, *(one for one in others if random.random() < 0.6)]
    whole = random.choice(["{}", "{}", "{}", "round({}, 2)", "coalesce(round({}, 1), 0)", "coalesce({}, 0)"])
    its += [
        f"coalesce(x.n, 0) as y{i}"
        if n == "n" and random.random() < 0.5
        else f"{whole.format(f'x.{n}')} as y{i}"
        for i, (_, n) in enumerate(calls)
        if random.random() < 0.9
    ]
    name = random.choice(calls)[1]
    over = [
        f"case when x.{name} > 1 then 'many' when x.{name} = 1 then 'one' else 'none' end as z",
        f"coalesce(x.{name}, 0) + 1 as z",
        f"x.{name} is null as z",
        f"x.{name} + coalesce({key}, 0) as z",
    ]
    its += [random.choice(over)] if random.random() < 0.6 else []
    its += ["x.g as u"] if random.random() < 0.3 else []
    test = random.choice(["", "", "", f" where {others[1]} > 1", f" where x.{name} > 1"])
    if random.random() < 0.5:
        return f"with x as ({inner}) select {', '.join(its)} from {kept} {kind} x on x.g = {at}{test}"
    return f"select {', '.join(its)} from {kept} {kind} ({inner}) x on x.g = {at}{test}"


def _zero_for_none(random: Random) -> str:
    """Rows with nothing but sums of what is joined, 0 where there is none; and groups that sum up to something."""
    kept, key, table, by, value, at = random.choice(
        [
            ("r", "r.a", "s", "d", "e", "r.a"),
            ("r", "r.a", "s", "f", "e", "r.b"),
            ("s", "s.f", "r", "b", "c", "s.f"),
            ("w", "w.k", "s", "d", "e", "w.k"),
            ("w", "w.k", "r", "a", "c", "w.k"),
        ]
    )
    value, other = random.sample([value, f"{value} - 1", f"{value} - 2", f"coalesce({value}, 0) - 1"], 2)
    way = random.random()
    if way < 0.2:
        also = random.choice(["", "", f", sum(coalesce({other}, 0)) as u", ", count(*) as n"])
        value = value if random.random() < 0.5 else f"coalesce({value}, 0)"
        test = f"sum({value}) <> 0" + (f" or sum(coalesce({other}, 0)) <> 0" if " u" in also else "")
        shown = random.choice([f", sum({value}) as t{also}", f", sum({value}) as t{also}", "", also])
        return f"select {by}{shown} from {table} group by {by} having {test}"
    if way < 0.4:
        on = f"{table}.{by} = {at}"
        return f"select {key}, coalesce(sum({value}), 0) as t from {kept} left join {table} on {on} group by {key}"
    where, several = random.choice(["", "", f" where {value} > 0"]), random.random() < 0.4
    sums = f"sum({value}) as t" + (f", sum({other}) as u" if several else "")
    its = f"{key}, coalesce(x.t, 0) as t" + (", coalesce(x.u, 0) as u" if several else "")
    its += random.choice(
        ["", "", ", coalesce(x.t, 0) > 0 as y", ", coalesce(x.t, 0) + 1 as y", ", x.t + 1 as y"]
    )
    inner = f"select {by} as g, {sums} from {table}{where} group by {by}"
    again = random.random() < 0.3
    more = f" left join (select d as h, sum(e) as v from s group by d) z on z.h = {at}" if again else ""
    its += ", coalesce(z.v, 0) as z" if again else ""
    return f"select {its} from {kept} left join ({inner}) x on x.g = {at}{more}"


def _exists(word: str) -> Callable[[Random], str]:
    def made(random: Random) -> str:
        on = random.choice(
            [
                *("s.f = r.b", "s.f = r.b", "s.d = r.b", "s.d = r.b and s.e > 1", "s.f = r.b and s.e = r.c"),
                *(
                    "s.d = r.a and s.e is null",
                    "s.d = r.b and s.e in (1, 2)",
                    "s.d = r.a and (s.e = 1 or s.f > 1)",
                ),
            ]
        )
        more = f" and {_condition(random, 'r.')}" if random.random() < 0.2 else ""
        return f"select {_items(random, 'a', 'b', 'c')} from r where {word}exists (select 1 from s where {on}){more}"

    return made


def _among(word: str) -> Callable[[Random], str]:
    def made(random: Random) -> str:
        column, its = random.choice([("b", "f"), ("b", "d"), ("c", "d"), ("b", "e")])
        test = random.choice(["", "", " where e > 1", " where d is not null", " where e = 1"])
        items = _items(random, "a", "b", "c")
        return f"select {items} from r where {column} {word}in (select {its} from s{test})"

    return made


def _grouped(*calls: str, having: tuple[str, ...] = ("",)) -> Callable[[Random], str]:
    def made(random: Random) -> str:
        source, by, value = random.choice(
            [
                ("r", "b", "c"),
                ("r", "b", "c"),
                ("r", "c", "b"),
                ("r", "b, c", "a"),
                ("r join s on r.b = s.f", "s.f", "r.c"),
                ("r join s on r.b = s.f", "s.d", "r.c"),
            ]
        )
        call = random.choice(calls).format(value)
        also = random.choice(["", "", ", count(*) as n", f", count({value}) as n"])
        where = _where(random, "r." if "join" in source else "", 0.3)
        shown = f"{by}, " if random.random() < 0.9 else ""
        test = random.choice(having).format(value)
        return f"select {shown}{call} as z{also} from {source}{where} group by {by}{test}"

    return made


def _distinct_keys(random: Random) -> str:
    """Counts of keys, which stand once in their groups, or many times where rows are joined with several."""
    source, by, key, value = random.choice(
        [
            ("r", "b", "a", "c"),
            ("r", "c", "a", "b"),
            ("r join s on r.b = s.f", "s.d", "r.a", "r.c"),
            ("r join s on r.b = s.f", "s.d", "s.f", "r.c"),
            ("s left join r on r.b = s.f", "s.f", "r.a", "r.c"),
        ]
    )
    call = random.choice(
        [
            "count(distinct {0})",
            "sum(distinct {0})",
            "count(distinct case when {1} > 1 then {0} end)",
            "count(distinct {0}) filter (where {1} < 3)",
            "count(distinct nullif({0}, 2))",
        ]
    ).format(key, value)
    also = random.choice(["", ", count(*) as n", f", sum({value}) as n"])
    where = _where(random, "r." if "join" in source else "", 0.2)
    return f"select {by}, {call} as z{also} from {source}{where} group by {by}"


def _of_pairs(random: Random) -> str:
    by, one, other = random.choice([("b", "a", "c"), ("c", "b", "a"), ("a", "b", "c")])
    where = _where(random, "", 0.3)
    return f"select {by}, count(distinct {one}, {other}) as z, count(*) as n from r{where} group by {by}"


def _all_but(random: Random) -> str:
    left_out = random.choice(["a", "b", "c", "a, c"])
    where = _where(random, "", 0.5)
    return random.choice(
        [
            f"select * except ({left_out}) from r{where}",
            f"select distinct * except ({left_out}) from r{where}",
            f"select r.* except ({left_out}), s.d from r join s on r.b = s.f",
            f"select r.* except ({left_out}), s.d from r left join s on r.b = s.f",
            f"select * except ({left_out}), row_number() over (order by a, b, c) as n from r{where}",
            "select r.a, s.* except (f) from r full join s on r.b = s.f",
        ]
    )


def _of_several(random: Random) -> str:
    """Groups with aggregates of several columns: what one of them tells of a group, others need."""
    table, by, *values = random.choice(
        [
            ("r", "b", "c", "a", "c - 1", "a - 2", "coalesce(c, 0)", "a * c"),
            ("r", "b", "case when c = 1 then 1 else 0 end", "case when c > 1 then a end", "c - 2", "a - 1"),
            ("r", "c", "a", "b", "a - b", "a - 1", "case when b = 1 then a else 0 end", "b - 2"),
            ("r join s on r.b = s.f", "s.f", "r.c", "s.e", "r.c - s.e", "r.a - 1", "coalesce(s.d, 0)"),
            ("r join s on r.b = s.f", "s.d", "r.c", "s.e - 1", "r.a - 2", "coalesce(r.c, 0)", "s.f"),
        ]
    )
    some = random.sample(values, random.choice([2, 2, 3]))
    calls = [f"{random.choice(['sum', 'sum', 'sum', 'avg', 'min', 'max', 'count'])}({one})" for one in some]
    calls += ["count(*)"] if random.random() < 0.2 else []
    shown = ", ".join([by, *(f"{call} as z{i}" for i, call in enumerate(calls))])
    asked = random.choice(
        ["count(*) > 1", f"sum({random.choice(values)}) > 1", f"max({random.choice(values)}) > 1"]
    )
    having = f" having {asked}" if random.random() < 0.15 else ""
    return f"select {shown} from {table}{_where(random, 'r.', 0.15)} group by {by}{having}"


def _whole(random: Random) -> str:
    calls = ["count(*)", "sum(c)", "count(c)", "min(c)", "max(b)", "avg(c)", "count(distinct b)"]
    some = random.sample(calls, random.choice([1, 2, 3]))
    items = ", ".join(f"{call} as z{i}" for i, call in enumerate(some))
    return f"select {items} from r{_where(random, often=0.3)}"


def _sets(random: Random) -> str:
    by = random.choice(
        ["rollup (b)", "rollup (b, c)", "cube (b, c)", "grouping sets ((b), (c))", "grouping sets ((b), ())"]
    )
    shown = "b" if "c" not in by.replace("cube", "") else "b, c"
    call = random.choice(["count(*) as n", "sum(a) as n", "count(*) as n, sum(a) as z", "max(a) as n"])
    # Of no rows Spark has no row of all rows, and DuckDB one.
    return f"select {shown}, {call} from r group by {by} having count(*) > 0"


def _grouped_joined(random: Random) -> str:
    inner = random.choice(
        [
            "select b, count(*) as n from r group by b",
            "select b, sum(c) as n from r group by b",
            "select b, max(c) as n from r group by b having count(*) > 1",
            "select b, count(*) as n, min(c) as l from r where c > 0 group by b",
        ]
    )
    kind = random.choice(["join", "join", "left join"])
    if random.random() < 0.5:
        return f"select s.f, s.e, g.n from s {kind} ({inner}) g on g.b = s.f"
    return f"with g as ({inner}) select r.a, g.n from r {kind} g on g.b = r.b"


def _regrouped(random: Random) -> str:
    inner = random.choice(
        ["select b, count(*) as n from r group by b", "select b, c, sum(a) as n from r group by b, c"]
    )
    outer = random.choice(["n, count(*) as z", "max(n) as z", "sum(n) as z", "b, n + 1 as z"])
    by = " group by n" if outer.startswith("n,") else ""
    return f"select {outer} from ({inner}) g{by}"


def _first(random: Random) -> str:
    order = random.choice(["c desc nulls last, a", "a desc", "c nulls first, a desc", "a"])
    call = f"row_number() over (partition by b order by {order}) as n"
    top = random.choice(["n = 1", "n <= 1", "n <= 2"])
    rows = f"select a, b, c, {call} from r{_where(random, often=0.2)}"
    return f"select {_items(random, 'a', 'b', 'c')} from ({rows}) g where {top}"


def _ranked(random: Random) -> str:
    call = random.choice(["rank", "dense_rank"])
    over = f"{call}() over (partition by b order by r.c desc nulls last) as n"
    if random.random() < 0.4:
        return f"select a, {over} from r"
    return f"select a, b from (select a, b, {over} from r) g where n = 1"


def _windowed(random: Random) -> str:
    by = random.choice(["partition by b ", "partition by b ", "partition by c ", ""])
    order = random.choice(["order by a", "order by a desc", "order by c nulls first, a"])
    call = random.choice(
        [
            f"lag(c) over ({by}{order})",
            f"lead(a) over ({by}{order})",
            f"sum(c) over ({by}{order} rows between unbounded preceding and current row)",
            f"count(*) over ({by.strip()})",
            f"max(c) over ({by.strip()})",
            f"sum(a) over ({by.strip()})",
            f"first_value(a) over ({by}{order})",
        ]
    )
    return f"select {_items(random, 'a', 'b')}, {call} as z from r"


def _limited(random: Random) -> str:
    order = random.choice(["c desc nulls last, a", "a", "a desc", "b nulls first, a"])
    limit = random.choice([1, 1, 2])
    return f"select {_items(random, 'a', 'b', 'c')} from r{_where(random, often=0.3)} order by {order} limit {limit}"


def _groups_limited(random: Random) -> str:
    call = random.choice(["count(*)", "sum(c)", "max(c)"])
    return f"select b, {call} as z from r group by b order by {call} desc nulls last, b nulls first limit 1"


def _combined(word: str) -> Callable[[Random], str]:
    def made(random: Random) -> str:
        left, right = random.choice(
            [
                ("select b as z from r", "select d as z from s"),
                ("select b as z from r", "select f as z from s"),
                ("select a as z, c as y from r", "select f as z, e as y from s"),
                ("select a as z from r where c = 1", "select a as z from r where c > 1"),
                ("select a as z, b as y from r where c = 1", "select a as z, b as y from r where b = 1"),
                ("select b as z from r where c > 1", "select b as z from r where c <= 1"),
                ("select a as z, 1 as y from r", "select f as z, 2 as y from s"),
                ("select a as z, 1 as y, c + 1 as x from r", "select f as z, 2 as y, -e as x from s"),
                (
                    "select a as z, 1 as y, cast(c as bigint) as x from r",
                    "select f as z, 2 as y, e as x from s",
                ),
                ("select a as z, c + 1 as y from r", "select null as z, e as y from s"),
                (
                    "select r.a as z, 1 as y, s.f as x, r.c + s.e as w from r join s on r.b = s.f",
                    random.choice(["select f, 2, f, e * 2 from s", "select f, 2, d, e * 2 from s"]),
                ),
            ]
        )
        return f"{left} {word} {right}"

    return made


def _over_union(random: Random) -> str:
    """Groups over a UNION ALL, of two tables or of parts of one."""
    union = random.choice(
        [
            "select b as k, c as n from r union all select d as k, e as n from s",
            "select b as k, c as n, 1 as w from r union all select f as k, e as n, 2 as w from s",
            "select b as k, c as n from r where c = 1 union all select b as k, c as n from r where c > 1",
            "select r.b as k, s.e as n from r join s on r.b = s.f union all select d as k, e as n from s",
            "select b as k, c as n from r union select d as k, e as n from s",
            "select b as k, c as n, a - 1 as m from r union all select d as k, e as n, f as m from s",
            "select b as k, c as n, a as m from r where c = 1 union all select b as k, c as n, 0 as m from r",
        ]
    )
    its = ["count(*)", "sum(n)", "max(n)", "min(n)", "count(n)", "avg(n)"]
    its += (
        ["sum(m)", "sum(n - m)", "sum(case when m = 1 then 1 else 0 end)", "max(m)"] if " m " in union else []
    )
    calls = random.sample(its, random.choice([1, 2, 3]))
    by = random.choice([["k"], ["k"], ["n"], ["k", "w"], ["w", "n"], []])
    keys = [f"u.{name}" for name in by if name != "w" or " w " in union]
    items = [*keys, *(f"{call} as z{i}" for i, call in enumerate(calls))]
    where = random.choice(["", "", " where n > 1"])
    behind = f" group by {', '.join(keys)}" if keys else ""
    if random.random() < 0.4:
        return f"with u as ({union}) select {', '.join(items)} from u{where}{behind}"
    return f"select {', '.join(items)} from ({union}) as u{where}{behind}"


def _tagged(random: Random) -> str:
    """Groups of several queries, told apart by constants mostly, as a table of figures has them."""
    some = ["count(*)", "sum({})", "count({})", "max({})", "min({})", "avg({})"]
    some += ["cast(count(*) as decimal(12, 2))", "round(sum({}), 1)"]
    calls = random.sample(some, random.choice([1, 2]))
    tags = random.choice(
        [*[("'x'", "'y'", "'z'")] * 3, ("1", "2", "3"), ("'x'", "'x'", "'y'"), ("'x'", "null", "'z'")]
    )
    joined = ("r join s on r.b = s.f", "s.d", "r.c")
    sources = random.sample(
        [("r", "b", "c"), ("s", "d", "e"), joined, ("r", "c", "b")], random.choice([2, 2, 3])
    )
    has_key, queries = random.random() < 0.7, []
    for tag, (source, key, value) in zip(tags, sources, strict=False):
        items = [f"{tag} as tag", *([f"{key} as k"] if has_key else [])]
        items += [f"{call.format(value)} as z{i}" for i, call in enumerate(calls)]
        where = "" if source == "s" else _where(random, "r." if " " in source else "", 0.2)
        by = f" group by {key}" if has_key else ""
        queries.append(f"select {', '.join(items)} from {source}{where}{by}")
    if random.random() < 0.2:
        queries[-1] = f"select {tags[len(queries) - 1]} as tag, {'f as k, ' if has_key else ''}"
        queries[-1] += ", ".join(f"d as z{i}" for i in range(len(calls))) + " from s"
    return random.choice([" union all ", " union all ", " union "]).join(queries)


def _scalar(random: Random) -> str:
    value = random.choice(
        [
            "(select max(e) from s where s.f = r.b)",
            "(select count(*) from s where s.d = r.b)",
            "(select sum(e) from s)",
            "(select e from s where s.f = r.b)",
        ]
    )
    if random.random() < 0.5:
        return f"select {_items(random, 'a', 'b')}, {value} as z from r"
    return f"select {_items(random, 'a', 'b', 'c')} from r where c >= {value}"


def _scalars(random: Random) -> str:
    """Aggregates of the rows that belong to a row, counted ones mostly."""
    on = random.choice(
        ["s.d = r.b", "s.f = r.b", "d = r.b", "s.d = r.b and e > 1", "s.d = r.b and s.e = r.c"]
    )
    of = [
        f"(select count(*) from s where {on}) as n",
        f"coalesce((select sum(e) from s where {on}), 0) as t",
        f"(select min(f) from s where {on}) as m",
        f"(select count(*) from s where {on}) > 1 as many",
        f"(select max(e) + count(e) from s where {on}) as x",
    ]
    its = [one for one in of if random.random() < 0.5] or of[:1]
    keys = random.choice(["a, b", "r.a, r.b", "a, b, c", "r.a, r.c"])
    return f"select {keys}, {', '.join(its)} from r{_where(random, 'r.', 0.3)}"


def _of_three(random: Random) -> str:
    items = _items(random, "r.a", "r.c", "s.f", "s.e", "w.k", "w.n")
    on = random.choice(["s.d = w.k", "s.d = w.k", "s.e = w.k"])
    grouped = random.random() < 0.3
    where = random.choice(["", "", " where w.m > 1", " where w.n <> 'b'", " where r.c > 1 or w.m is null"])
    source = f"from r join s on r.b = s.f join w on {on}{where}"
    return (
        f"select w.n, count(*) as z, max(r.c) as y {source} group by w.n"
        if grouped
        else f"select {items} {source}"
    )


def _linked(random: Random) -> str:
    items = _items(random, "t.x", "t.y", "r.c", "s.e")
    on = random.choice(["t.x = r.a", "t.x = r.b"])
    distinct = random.choice(["", "distinct "])
    kind = random.choice(["join", "join", "left join"])
    return f"select {distinct}{items} from t join r on {on} {kind} s on t.y = s.f"


def _over_views(random: Random) -> Views:
    below, over = random.choice(
        [
            (
                "select b, count(*) as n, sum(c) as z from r group by b",
                [
                    "select b, z from u where n > 1",
                    "select sum(n) as n from u",
                    "select max(z) as z from u",
                    "select b, n from u order by n desc, b nulls first limit 1",
                    "select s.f, u.n from s left join u on u.b = s.f",
                ],
            ),
            (
                "select a, b, c from r where c > 0",
                [
                    "select b, count(*) as n from u group by b",
                    "select distinct b from u",
                    "select a from u where b = 1",
                    "select b, max(c) as z from u group by b",
                    "select u.a, s.e from u join s on u.b = s.f",
                    "select b, count(distinct c) as n from u group by b",
                ],
            ),
            (
                "select distinct b from r",
                [
                    "select count(*) as n from u",
                    "select s.f from s where s.f not in (select b from u where b is not null)",
                    "select b from u union select f from s",
                ],
            ),
        ]
    )
    return {"u": below, "v": random.choice(over)}


def _staged(random: Random) -> Views:
    """Columns cast to wider types mostly, beside a view over the same tables: what the casts tell, that may need."""

    def cast(name: str) -> str:
        kinds = ["{0}", "cast({0} as bigint)", "cast({0} as bigint)", "cast({0} as decimal(12,1))", "{0} + 1"]
        value = random.choice([*kinds, "cast({0} as int)", "cast({0} as double)", "round({0}, 1)"])
        return f"{value.format(name)} as {name}{random.choice(['', '', '1'])}"

    some = {"r": "abc", "s": "fde", "t": "xy"}
    table = random.choice([*some, "r", "s"])
    names = [name for name in some[table] if random.random() < 0.8] or [some[table][0]]
    items = ", ".join(dict.fromkeys(map(cast, names)))
    test = random.choice(["", "", f" where {names[-1]} > 1", f" where {names[0]} is not null"])
    staged = f"select {random.choice(['', '', '', 'distinct '])}{items} from {table}{test}"
    if random.random() < 0.25:
        items, joined = ", ".join(map(cast, random.sample(["a", "c", "f", "e"], 3))), "r join s on b = f"
        staged = f"select {items} from {joined}{random.choice(['', ' where c > 1'])}"
    others = [
        "select r.a, s.e from r join s on r.b = s.f",
        "select r.b, count(*) as z, sum(r.c) as y from r group by r.b",
        "select s.f, s.e, count(*) as z from r join s on r.b = s.f group by s.f, s.e",
        "select distinct s.d from s",
        "select r.a, r.c, s.e from r left join s on r.b = s.f",
        "select t.x, r.c from t join r on t.x = r.a",
        "select r.c from r where not exists (select 1 from s where s.f = r.b)",
    ]
    pair = [staged, random.choice(others)]
    random.shuffle(pair)
    return {"u": pair[0], "v": pair[1]} if random.random() < 0.7 else {"v": staged}


def _any(random: Random) -> str:
    maker = Maker(random)
    return maker.sums(2) if random.random() < 0.25 else maker.query(random.choice([1, 2, 2, 3]))


SHAPES: dict[str, Callable[[Random], str | Views]] = {
    "selection: IN, OR, CASE, BETWEEN": _selection,
    "selection: LIKE": _like,
    "computed columns": _computed,
    "DISTINCT": _distinct,
    "inner join": _inner,
    "self join": _self_join,
    "join over a link table": _linked,
    "join of three tables": _of_three,
    "LEFT JOIN": _outer("left"),
    "RIGHT JOIN": _outer("right"),
    "FULL JOIN": _outer("full"),
    "FULL JOINs that tell": _full,
    "LEFT JOINs that tell": _looked_up,
    "LEFT JOINs along foreign keys": _referenced,
    "rows without a match": _unmatched,
    "groups of a LEFT JOIN": _totalled,
    "groups of several LEFT JOINs": _chained,
    "columns computed from groups": _reckoned,
    "groups joined to rows": _summed_up,
    "sums, 0 for none": _zero_for_none,
    "EXISTS": _exists(""),
    "NOT EXISTS": _exists("not "),
    "IN (SELECT)": _among(""),
    "NOT IN (SELECT)": _among("not "),
    "scalar subquery": _scalar,
    "scalar subqueries that tell": _scalars,
    "COUNT, SUM": _grouped("count(*)", "sum({})", "count({})", "sum({}) + count(*)"),
    "aggregates of several columns": _of_several,
    "MIN, MAX": _grouped("min({})", "max({})"),
    "AVG": _grouped("avg({})"),
    "COUNT DISTINCT": _grouped("count(distinct {})", "sum(distinct {})"),
    "MEDIAN": _grouped("median({})", "median({0}) filter (where {0} > 0)", "median({0}) - min({0})"),
    "lists of values": _grouped(
        "listagg(cast({0} as string), ',') within group (order by cast({0} as string))",
        "listagg(distinct cast({0} as string), ',') within group (order by cast({0} as string) desc)",
    ),
    "COUNT DISTINCT of keys": _distinct_keys,
    "COUNT DISTINCT of several": _of_pairs,
    "GROUP BY ALL": lambda random: re.sub(
        r"(?<=group by) .*", " all", _grouped("sum({})", "max({})")(random)
    ),
    "* EXCEPT": _all_but,
    "FILTER": _grouped(
        "count(*) filter (where {} > 1)", "sum({0}) filter (where {0} > 1)", "max({0}) filter (where {0} < 3)"
    ),
    "COUNT_IF": _grouped("count_if({} > 1)", "count_if({} is null)"),
    "BOOL_AND, BOOL_OR": _grouped("bool_and({} > 1)", "bool_or({} = 1)"),
    "quotient of sums": _grouped(
        "cast(sum({}) as double) / count(*)", "cast(sum({0}) as double) / nullif(sum({0} - 1), 0)"
    ),
    "HAVING": _grouped(
        "count(*)",
        "sum({})",
        "max({})",
        having=(" having count(*) > 1", " having max({}) > 1", " having sum({}) > 2"),
    ),
    "GROUPING SETS, ROLLUP, CUBE": _sets,
    "aggregates of all rows": _whole,
    "grouped subquery joined": _grouped_joined,
    "grouped again": _regrouped,
    "ROW_NUMBER": _first,
    "RANK": _ranked,
    "LAG, running sums, other windows": _windowed,
    "ORDER BY LIMIT": _limited,
    "first groups": _groups_limited,
    "UNION": _combined("union"),
    "UNION ALL": _combined("union all"),
    "groups over UNION ALL": _over_union,
    "UNION ALL of groups": _tagged,
    "EXCEPT": _combined("except"),
    "EXCEPT ALL": _combined("except all"),
    "INTERSECT": _combined("intersect"),
    "INTERSECT ALL": _combined("intersect all"),
    "views over views": _over_views,
    "casts that tell": _staged,
    "random queries": _any,
    **WAREHOUSE_SHAPES,
    **TYPED_SHAPES,
}

_EVIDENCE = [
    "select f, d from s",
    "select f, d, e from s",
    "select f, e from s where d = 1",
    "select a, b from r",
    "select a, c from r where b = 1",
    "select b, count(*) as n from r group by b",
    "select distinct b from r",
    "select a, b, e from r join s on b = f",
    "select x, y from t where x = 1",
    "select k from w where n = 'ab'",
]


_TELLING = [
    "select * from {table}",
    "select {some} from {table}",
    "select distinct {some} from {table}",
    "select count(*) as copies from {table}",
    "select {column}, count(*) as copies from {table} group by {column}",
]


def _telling(random: Random, table: str) -> str:
    """A copy, a projection or a count of a table: what another view may need to be told."""
    columns, texts = COLUMNS[table], _TELLING
    if table in TYPED:
        columns, texts = tuple(random.sample(columns, 2)), _TELLING[1:]
    return random.choice(texts).format(
        table=table, some=_items(random, *columns), column=random.choice(columns)
    )


def in_parts(random: Random, table: str) -> list[str]:
    """Views each of which shows a part of a table's columns, mostly with a key, of all rows or some."""
    key, *rest = COLUMNS[table] if table != "t" else ("x, y",)
    random.shuffle(rest)
    cut, texts = random.randint(0, len(rest)), []
    for part in (rest[:cut], rest[cut:], *([rest] if random.random() < 0.2 else ())):
        also = random.sample(rest, 1) if rest and random.random() < 0.2 else []
        names = dict.fromkeys([*part, *also] if random.random() < 0.1 else [key, *part, *also])
        shown = ", ".join(names) or key
        tested = random.choice(rest or ["x"])
        where = (
            f" where {tested} {random.choice(['is not null', *(['> 1', '= 1'] if tested != 'n' else [])])}"
        )
        behind = where if random.random() < 0.25 else ""
        text = f"select {random.choice(['', '', 'distinct '])}{shown} from {table}{behind}"
        if table == "r" and random.random() < 0.25:
            text = f"select {shown}, s.e from r {random.choice(['', 'left '])}join s on r.b = s.f{behind}"
        elif len(numbers := [name for name in rest if name != "n"]) > 1 and random.random() < 0.2:
            one, other = random.sample(numbers, 2)
            text = f"select {key}, 1 as way, {one} as its from {table}"
            text += f" union all select {key}, 2, {other} from {table}{behind}"
        elif random.random() < 0.15:
            text = f"select {shown}, count(*) as copies from {table}{behind} group by {shown}"
        texts.append(text)
    return texts


def views(random: Random, shape: str) -> dict[str, str]:
    """The views of a shape, `v` the last of them; before it maybe others that tell more."""
    made = SHAPES[shape](random)
    found = {"v": made} if isinstance(made, str) else dict(made)
    names = names_read(found.values())
    more: list[str] = []
    pick = random.random()
    if pick < 0.2:
        fitting = [text for text in _EVIDENCE if set(names_read([text])) <= set(names)]
        more = random.sample(fitting, min(1, len(fitting)))
    elif pick < 0.4:
        other = SHAPES[random.choice([*SHAPES])](random)
        more = [other] if isinstance(other, str) else []
    elif pick < 0.7:
        more = [_telling(random, random.choice(names)) for _ in range(random.choice([1, 1, 2]))]
    elif pick < 0.85 and not {*TYPED} & {*names}:
        more = [text for name in names if random.random() < 0.7 for text in in_parts(random, name)]
    if len(names_read([*more, *found.values()])) <= MOST_TABLES:
        found = {**{f"e{i or ''}": text for i, text in enumerate(more)}, **found}
    return found
