"""Texts with something wrong: tokens lost, doubled, swapped, from elsewhere; numbers and depth beyond reason."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

_TOKEN = re.compile(r"\w+|\s+|'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`|:-|[<>!=]=|<>|.", re.DOTALL)
_PIECES = {
    "rules": r"""
        not is null true false , . ( ) :- = != < <= > >= _ X Y Z 'a' -1 0 1.5 1e5 @ ? ` ' % # & ! + - * /
        .decl .view r@deleted r@inserted r@before @before_0_1 key(a) unique(a) int decimal(30,c)
        decimal(9,2) set bag where group having count(*) sum(X) avg(X) min(X) max(X) cast(X as date) case
        when then else end date'2026-02-30' timestamp'x' decimal'nan' double'inf' holds( all( any( distinct
        coalesce(X, foreign references abs(X) substring(X,1,2) like r(X) r(X,Y)""",
    "sql": r"""
        select from where group by having union all distinct join natural using on left full cross lateral
        as with create table view temporary ; , . ( ) * = <> < <=> is null not in between and or case when
        then else end cast( count(*) sum( avg( min( max( coalesce( extract( interval except intersect order
        limit window over partition rows values t.* true false 'a' " ' ` /*+ /* */ -- é 1 -1 0.5 1e9 1L
        primary key references unique int string group decimal(30,c) decimal(9,2) array<int> struct<a:int>
        using(a) recursive tablesample pivot nullif(a,b) year(a) substring(a,1) a::int try_cast(a""",
}
_PIECES |= dict.fromkeys(
    ("csv", "jsonl"),
    """ , " "" ; : { } [ ] null NULL NaN true 1 -0.0 1e5 0x10 1_000 1,5 .5 5. +7 2026-02-30 24:00 2026-01-31T12:00
        infinity epoch id name g a at 9223372036854775808 1d 1L \\ ' # \\u0000 1.005 2026-1-1 -0044-03-15""",
)
_WORDS = {kind: text.split() for kind, text in _PIECES.items()}
_STRANGE = [
    "\u00e9", "\u4e2d", "\U0001f600", "\u0000", "\u200b", "\ufeff", "\u2028", "\u00a0", "\r", "\t", "\x7f", "\u0660",
    "\u00b2", "\u0130", "\u00df", "e\u0301", "\udc80", "\u202e", "\\", "${x}", "%s", "{}",
]  # fmt: skip
_NUMBERS = [
    "9" * 5000, "9" * 400, "-1", "0", "1e400", "1e-400", "0." + "0" * 500 + "1", "9223372036854775808", "-0", "00",
    "1e999999999", "1.", "4294967296", "99999999999999999999999999999999999999.9", "NaN", "Infinity",
]  # fmt: skip
_DEEP = (2, 10, 60, 200, 1500, 12_000)

Mutator = Callable[[list[str], Random, str, Sequence[str]], list[str]]


def mutated(text: str, random: Random, kind: str, others: Sequence[str]) -> str:
    """The text with one to four mutations."""
    tokens = _TOKEN.findall(text)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        tokens = random.choice(_MUTATORS)(tokens, random, kind, others)
        if random.random() < 0.5:
            tokens = _TOKEN.findall("".join(tokens))
    return "".join(tokens)


def _at(tokens: Sequence[str], random: Random) -> int:
    return random.randrange(len(tokens)) if tokens else 0


def _delete(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    at = _at(tokens, random)
    return tokens[:at] + tokens[at + random.choice((1, 1, 1, 2, 5, 20)) :]


def _double(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    at = _at(tokens, random)
    piece = tokens[at : at + random.choice((1, 1, 2, 5, 20))]
    return tokens[:at] + piece * random.choice((2, 2, 2, 3, 40)) + tokens[at + len(piece) :]


def _swap(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    if not tokens:
        return tokens
    found = list(tokens)
    one, other = _at(found, random), _at(found, random)
    found[one], found[other] = found[other], found[one]
    return found


def _move(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    start, to = _at(tokens, random), _at(tokens, random)
    piece = tokens[start : start + random.choice((1, 2, 5, 20))]
    rest = tokens[:start] + tokens[start + len(piece) :]
    return rest[:to] + piece + rest[to:]


def _rename(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    """One word becomes another word of the text, in one place or everywhere: columns and tables meet."""
    words = [token for token in tokens if token[:1].isalnum()]
    if not words:
        return tokens
    old, new = random.choice(words), random.choice(words)
    if random.random() < 0.5:
        return [new if token == old else token for token in tokens]
    at = random.choice([i for i, token in enumerate(tokens) if token == old])
    return [*tokens[:at], new, *tokens[at + 1 :]]


_CLASSES = [
    re.compile(p)
    for p in (r"[A-Z]\w*", r"\d+", r"[a-z_]\w*", r"['\"`].*", r":-|[<>!=]=|<>|[<>=+*/-]", r"[(),.@&|]")
]


def _like(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    """A token becomes another one of its class, of this text or of another: most of what comes is no syntax error."""
    places = [i for i, token in enumerate(tokens) if not token.isspace()]
    if not places:
        return tokens
    at = random.choice(places)
    its = next((c for c in _CLASSES if c.fullmatch(tokens[at])), None)
    source = tokens if random.random() < 0.7 else _TOKEN.findall(random.choice(others))
    same = [token for token in source if its is not None and its.fullmatch(token)]
    return [*tokens[:at], random.choice(same), *tokens[at + 1 :]] if same else tokens


def _statement(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    """Another text behind this one: relations and views are defined twice, or with other columns."""
    other = _TOKEN.findall(random.choice(others))
    return [*tokens, ";" if kind == "sql" else "", "\n", *other]


def _word(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    at = _at(tokens, random)
    words = _WORDS.get(kind, _WORDS["rules"] if random.random() < 0.5 else _WORDS["sql"])
    kept = random.choice((0, 1))
    return [*tokens[:at], f" {random.choice(words)} ", *tokens[at + kept :]]


def _splice(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    other = _TOKEN.findall(random.choice(others))
    at, start = _at(tokens, random), _at(other, random)
    piece = other[start : start + random.choice((1, 3, 10, 40, 200))]
    return tokens[:at] + piece + tokens[at + random.choice((0, 0, len(piece))) :]


def _truncate(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    at = _at(tokens, random)
    return tokens[:at] if random.random() < 0.7 else tokens[at:]


def _strange(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    at = _at(tokens, random)
    if tokens and random.random() < 0.5:
        inside = random.randrange(len(tokens[at]) + 1)
        return [
            *tokens[:at],
            tokens[at][:inside] + random.choice(_STRANGE) + tokens[at][inside:],
            *tokens[at + 1 :],
        ]
    return [*tokens[:at], random.choice(_STRANGE), *tokens[at:]]


def _number(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    places = [i for i, token in enumerate(tokens) if token.isdigit()]
    if places and random.random() < 0.8:
        at = random.choice(places)
        return [*tokens[:at], random.choice(_NUMBERS), *tokens[at + 1 :]]
    at = _at(tokens, random)
    return [*tokens[:at], random.choice(_NUMBERS), *tokens[at:]]


_NESTED = {
    "rules": [
        ("(", ")"), ("not (", ")"), ("not ", ""), ("-", ""), ("abs(", ")"), ("case when X = 1 then ", " else 0 end"),
        ("all(", ")"), ("any(", ")"), ("X + ", ""), ("r(X), ", ""), ("X, ", ""), ("X = 1 & ", ""), ("holds(", ")"),
        ("", " + 1"), ("coalesce(X, ", ")"), ("v(X) :- r(X).\n", ""), ("'", "'"), ("cast(", " as int)"),
    ],
    "sql": [
        ("(", ")"), ("not ", ""), ("- ", ""), ("abs(", ")"), ("case when a = 1 then ", " else 0 end"), ("a + ", ""),
        ("a = 1 and ", ""), ("a = 1 or ", ""), ("(select ", ")"), ("select 1 union ", ""), ("select * from (", ") t"),
        ("a, ", ""), ("t join ", ""), ("coalesce(a, ", ")"), ("a || ", ""), ("with x as (", ") select * from x"),
        ("/* ", " */"), ("array<", ">"), ("struct<a:", ">"), ("if(a, ", ", 1)"), ("(a = 1 and (b = 2 or ", "))"),
        ("exists (", ")"), ("cast(", " as int)"), ("a in (", ")"), ("a between 1 and ", ""), ("", " is null"),
        ("", "::int"), ("", "[0]"), ("", ".a"), ("", " union all select 1"), ("select 1;\n", ""), ("~", ""),
        ("create view v as ", ""), ("explain ", ""), ("x -> ", ""), ("interval ", ""), ("lateral view explode(", ")"),
    ],
    "json": [("[", "]"), ('{"a": ', "}"), ("[", ""), ("1, ", ""), ('"', '"')],
    "csv": [('"', '"'), ("a,", ""), ("\n", ""), ("", ",1")],
    "toml": [("[", "]"), ("{a = ", "}"), ("a.", ""), ("[[", "]]"), ("[a.", "]"), ("# ", ""), ('"""', '"""')],
}  # fmt: skip


def _nest(tokens: list[str], random: Random, kind: str, others: Sequence[str]) -> list[str]:
    """A piece of the text inside very many parentheses, negations, ..."""
    language = dict.fromkeys(("manifest", "feed", "cases", "baseline", "jsonl"), "json") | {
        "warehouse": "toml"
    }
    before, after = random.choice(_NESTED[language.get(kind, kind)])
    times = random.choice(_DEEP)
    at = _at(tokens, random)
    piece = tokens[at : at + random.choice((1, 1, 2, 6))]
    return [*tokens[:at], before * times, *piece, after * times, *tokens[at + len(piece) :]]


_MUTATORS: list[Mutator] = [
    _like, _like, _like, _like, _like, _like, _like, _rename, _rename, _rename, _delete, _double, _swap, _move,
    _word, _word, _splice, _truncate, _strange, _number, _nest, _statement,
]  # fmt: skip


# ------------------------------------------------------------------------------------------------ values


def mutated_value(value: Any, random: Random, others: Sequence[Any]) -> Any:
    """A JSON value with one to three of its parts gone, of another type, or from another value."""
    found = json.loads(json.dumps(value))
    for _ in range(random.choice((1, 1, 2, 3))):
        places = list(_places(found))
        if not places:
            return _another(found, random, others)
        holder, key = random.choice(places)
        match random.randrange(6):
            case 0:
                del holder[key]
            case 1 if isinstance(holder, dict):
                holder[str(random.choice([*_STRANGE, key.upper(), f"{key} ", ""]))] = holder.pop(key)
            case 2 if isinstance(holder, list):
                holder.append(holder[key])
            case _:
                holder[key] = _another(holder[key], random, others)
    return found


def _places(value: Any) -> list[tuple[Any, Any]]:
    found: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        one = waiting.pop()
        items = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        for key, inner in items:
            found.append((one, key))
            waiting.append(inner)
    return found


def _another(value: Any, random: Random, others: Sequence[Any]) -> Any:
    simple = [
        None,
        True,
        False,
        0,
        -1,
        1.5,
        10**30,
        1e300,
        "",
        "x",
        "1",
        [],
        {},
        [None],
        {"a": 1},
        [[1, 2]],
        "\udc80",
    ]
    match random.randrange(5):
        case 0:
            return [value]
        case 1:
            return {"a": value}
        case 2 if others:
            other = json.loads(json.dumps(random.choice(others)))
            places = _places(other)
            holder, key = random.choice(places) if places else ([other], 0)
            return holder[key]
        case _:
            return random.choice(simple)
