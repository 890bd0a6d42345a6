"""Rules as products: over the rows of their independent parts, which are put together only where that is needed."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence

from msgspec import Struct

from datalog.budget import DEFAULT_S, BudgetSpentError, left
from datalog.copies import replace
from datalog.model import Atom, Negation, Predicate, Rule, Version
from datalog.rewrite.independent import sifted
from datalog.sql import text
from datalog.sql.duckdb import relations as sql
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.extensions import Extension, Extensions, read_by

_LINKED_A_SECOND = 500_000
"""So many rows of parts that are linked are put together for a test, for each second of a view's budget."""


class TooManyJoinedError(Exception):
    """A join has more rows than are wanted."""


class Factored(Struct, frozen=True):
    """A rule over the rows of its independent parts, what it reads, and how many rows it has if nothing links these."""

    rule: Rule
    given: Mapping[Predicate, Extension]
    rows: int | None


def is_bare(part: Rule) -> bool:
    """Whether a part is the rows of one predicate, as they are but for the order of their columns."""
    only, terms = part.body[0], part.head.terms
    if len(part.body) > 1 or not isinstance(only, Atom):
        return False
    return len(only.terms) == len(terms) and {*only.terms} == {*terms}


def over_parts(
    rule: Rule,
    parts: Sequence[Rule],
    links: Sequence[Negation],
    found: Sequence[Extension],
    known: Mapping[Predicate, Extension],
) -> tuple[Rule, dict[Predicate, Extension]]:
    """A rule over the rows of its independent parts, and what it reads."""
    names = [Predicate("part", Version.STEP, (one.stored.number,)) for one in found]
    atoms = (Atom(name, part.head.terms) for name, part in zip(names, parts, strict=True))
    return replace(rule, body=(*atoms, *links)), {**known, **dict(zip(names, found, strict=True))}


def over_sifted(
    rules: Sequence[Rule],
    read: Extensions,
    many: int,
    table: Callable[[Sequence[Rule], Extensions], Extension],
) -> tuple[Sequence[Rule], Extensions]:
    """Rules whose joins may have many rows, over the rows that pass what is negated of one subgoal alone.

    An engine asks what is negated of all rows of a join, though the subgoal have fewer.
    """
    found = list[Rule]()
    for number, whole in enumerate(rules):
        rule = whole
        while math.prod(most_rows(read[atom.predicate]) for atom in rule.atoms) > many:
            both = sifted(rule, Predicate("sifted", Version.STEP, (number, len(read))))
            if both is None:
                break
            rule, own = both
            read = {**read, own.head.predicate: table([own], read)}
        found.append(rule)
    return found, read_by(found, read)


def most_rows(extension: Extension) -> int:
    """How many rows there are, as far as that is known; else one."""
    stored = extension.stored
    most = stored.layout.at_most if stored.rows is None else stored.rows
    return 1 if most is None else most


def require_few(rule: Rule, parts: Iterable[Extension], most: int | None) -> None:
    """Ends what takes too many combinations of the linked parts of a test.

    Raises:
        TooManyJoinedError: they are, and joins of more than `most` rows are to end so.
        BudgetSpentError: they are, and all are wanted.
    """
    seconds, rows = min(left(), DEFAULT_S), math.prod(map(most_rows, parts))
    if rule.head.predicate.version is Version.DEPENDS and rows > _LINKED_A_SECOND * seconds:
        if most is not None:
            raise TooManyJoinedError
        raise BudgetSpentError(f"putting together {rows:,} rows", seconds)


_SIFTED = 10
"""So many times as many rows may be put together on the way, before what is negated leaves some out."""


def require_few_joined(
    database: Database,
    queries: Iterable[sql.Query],
    names: Sequence[str],
    most: int,
    counted: MutableMapping[str, int],
) -> None:
    """Ends what takes a join of more than `most` rows: to leave rows out, an engine first makes all.

    `counted` keeps what was counted: the tests of several views join the same.

    Raises:
        TooManyJoinedError: one of the queries, which read relations of these names, is such a join.
    """
    for query in queries:
        for limit, negating in ((_SIFTED * most, False), (most, True)):
            counting = sql.joined_rows(query, limit + 1, negating=negating)
            asked = text(counting, dialect="duckdb")
            if asked not in counted:
                ((counted[asked],),) = database.plain_rows(counting, names)
            if counted[asked] > limit:
                raise TooManyJoinedError


_LEAST_MULTIPLIED, _TIMES = 1_000_000, 10
"""A join of more rows, and so many times as many as it joins, is one of rows that hardly share a value."""


def require_not_multiplied(
    database: Database,
    queries: Iterable[sql.Query],
    names: Sequence[str],
    rows: Sequence[int],
    counted: MutableMapping[str, int],
) -> None:
    """Ends what takes a join of far more rows than it joins, which are `rows` of each relation.

    What DuckDB expects is asked first, which costs a millisecond; what has far more is counted.

    Raises:
        TooManyJoinedError: see `require_few_joined`.
    """
    most = max(_LEAST_MULTIPLIED, _TIMES * sum(rows))
    if math.prod(rows) > most:
        many = [query for query in queries if database.expected_rows(query, names) > most]
        require_few_joined(database, many, names, most, counted)
