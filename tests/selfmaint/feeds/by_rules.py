"""The net effect of changes by Datalog rules, evaluated: the oracle of the statements over windows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from datalog.diagnostics import Diagnostic
from datalog.evaluate import Evaluator
from datalog.model import Atom, Comparison, Constant, Negation, Predicate, Program, Row, Rule, Term, Variable
from selfmaint.errors import InputError
from selfmaint.feeds.changes import Change
from selfmaint.feeds.condense import SHOWN, Finding, Problem, diagnostic
from selfmaint.feeds.table import FeedTable

_CHANGE = Predicate("change")
_DELETED = Predicate("deleted")
_INSERTED = Predicate("inserted")
INSERTED_TWICE = Predicate("inserted_twice")
DELETED_TWICE = Predicate("deleted_twice")
OTHER_ROW = Predicate("other_row")
UNKNOWN_BEFORE = Predicate("unknown_before")

_N, _M, _L = Variable("N"), Variable("M"), Variable("L")
_DELETE, _INSERT = Constant("delete"), Constant("insert")
_EARLIER, _LATER, _APART = Predicate("earlier"), Predicate("later"), Predicate("apart")
_REMOVED, _ADDED = Predicate("removed"), Predicate("added")
_PROMISES: Mapping[Predicate, Problem] = {
    INSERTED_TWICE: Problem.INSERTED_TWICE,
    DELETED_TWICE: Problem.DELETED_TWICE,
    OTHER_ROW: Problem.OTHER_ROW,
    UNKNOWN_BEFORE: Problem.UNKNOWN_BEFORE,
}


@dataclass(frozen=True, slots=True)
class NetEffect:
    """What a batch amounts to: rows of before it that are gone, and rows of after it that are new.

    Attributes:
        deleted: the former.
        inserted: the latter.
        events: how many events there were, repetitions not counted.
    """

    deleted: frozenset[Row]
    inserted: frozenset[Row]
    events: int


def net_effect(changes: Iterable[Change], table: FeedTable) -> NetEffect:
    """The net effect of a batch.

    Args:
        changes: all changes of the relation, in any order.
        table: the relation.

    Raises:
        InputError: SM602 null where it must not be; SM603 changes of a key that nothing orders; SM604 changes that
            cannot follow each other; SM605 a row that goes, of which only the key is known.

    Complexity:
        Cubic in the number of changes of a key.
    """
    distinct = _distinct(list(changes), table)
    numbered = sorted(distinct, key=_order)
    problems = [
        *_problem(Problem.NULL, table, [c for c in numbered if _has_null(c, table)]),
        *_problem(Problem.UNORDERED, table, list(_unordered(numbered, table))),
    ]
    if problems:
        raise InputError(problems)
    facts = {_CHANGE: frozenset((*c.row, n, c.kind.name.lower(), c.partial) for n, c in enumerate(numbered))}
    promises = Evaluator(_promise_rules(table), facts)
    for goal, problem in _PROMISES.items():
        broken = sorted(row[-1] for row in promises.extension(goal) if isinstance(row[-1], int))
        problems += _problem(problem, table, [numbered[n] for n in broken], _previous(numbered, table))
    if problems:
        raise InputError(problems)
    found = Evaluator(_net_effect_rules(table), facts)
    leading = [c for c in distinct if c.leads]
    return NetEffect(found.extension(_DELETED), found.extension(_INSERTED), len(leading))


def _distinct(changes: Sequence[Change], table: FeedTable) -> list[Change]:
    """The changes without repetitions: a log holds one event at a position, which may be delivered again."""
    found: dict[object, Change] = {}
    for number, change in enumerate(changes):
        same = (change.position, change.kind, change.row, change.partial, change.leads)
        is_event = change.scale.is_exact and table.key is not None
        known = found.setdefault(same if is_event else number, change)
        if (change.file or "", change.line) < (known.file or "", known.line):
            found[same] = change
    return list(found.values())


def _order(change: Change) -> tuple[object, ...]:
    return change.position, change.file or "", change.line, change.kind


def _groups(numbered: Sequence[Change], table: FeedTable) -> Iterator[list[Change]]:
    """The changes of each key, in order."""
    found: dict[Row, list[Change]] = {}
    for change in numbered:
        found.setdefault(tuple(change.row[i] for i in table.identity), []).append(change)
    yield from found.values()


def _has_null(change: Change, table: FeedTable) -> bool:
    needed = table.not_null & set(table.identity) if change.partial else table.not_null
    return any(change.row[i] is None for i in needed)


def _unordered(numbered: Sequence[Change], table: FeedTable) -> Iterator[Change]:
    """The changes of which nothing says that they come behind the one before them, of the same key."""
    for group in _groups(numbered, table):
        for earlier, later in pairwise(group):
            same_event = (earlier.file, earlier.line) == (later.file, later.line)
            same_file = earlier.file is not None and earlier.file == later.file
            if earlier.position == later.position:
                if earlier.kind == later.kind if same_event else not same_file:
                    yield later
            elif later.scale.follows_lines and same_file and earlier.line > later.line:
                yield later


def _previous(numbered: Sequence[Change], table: FeedTable) -> Callable[[Change], Row | None]:
    """The row of the change before a given one, of the same key."""
    before: dict[int, Row] = {}
    for group in _groups(numbered, table):
        before |= {id(later): earlier.row for earlier, later in pairwise(group)}
    return lambda change: before.get(id(change))


def _problem(
    problem: Problem,
    table: FeedTable,
    changes: Sequence[Change],
    previous: Callable[[Change], Row | None] = lambda _change: None,
) -> Iterator[Diagnostic]:
    if changes:
        shown = [Finding(c.row, c.position, c.file, c.line, previous(c)) for c in changes[:SHOWN]]
        scale = changes[0].scale
        yield diagnostic(problem, table, scale, shown, len(changes))


def _net_effect_rules(table: FeedTable) -> Program:
    """The rules of `deleted` and `inserted`: the condense operator.

    With `change(C..., N, K, P)`, one fact for each change: its row, its number in the order, `'delete'` or
    `'insert'`, and whether only the key of its row is known. For a relation `r(id, a)` with the key `id`:

        earlier(Id, N) :- change(Id, _, N, _, _), change(Id, _, M, _, _), M < N.
        later(Id, N) :- change(Id, _, N, _, _), change(Id, _, M, _, _), N < M.
        removed(Id, A) :- change(Id, A, N, 'delete', false), not earlier(Id, N).
        added(Id, A) :- change(Id, A, N, 'insert', _), not later(Id, N).
        deleted(Id, A) :- removed(Id, A), not added(Id, A).
        inserted(Id, A) :- added(Id, A), not removed(Id, A).
    """
    row, key = _row(table), _key(table)
    return Program(
        (
            Rule(Atom(_EARLIER, (*key, _N)), (_other(table, _N), _other(table, _M), Comparison("<", _M, _N))),
            Rule(Atom(_LATER, (*key, _N)), (_other(table, _N), _other(table, _M), Comparison("<", _N, _M))),
            Rule(
                Atom(_REMOVED, row),
                (
                    Atom(_CHANGE, (*row, _N, _DELETE, Constant(False))),
                    Negation((Atom(_EARLIER, (*key, _N)),)),
                ),
            ),
            Rule(
                Atom(_ADDED, row),
                (Atom(_CHANGE, (*row, _N, _INSERT, Variable("_P"))), Negation((Atom(_LATER, (*key, _N)),))),
            ),
            Rule(Atom(_DELETED, row), (Atom(_REMOVED, row), Negation((Atom(_ADDED, row),)))),
            Rule(Atom(_INSERTED, row), (Atom(_ADDED, row), Negation((Atom(_REMOVED, row),)))),
        )
    )


def _promise_rules(table: FeedTable) -> Program:
    """The rules for what no complete, ordered feed holds; each names the change that cannot be, `(C..., N)`.

    apart(Id, N, M) :- N, L and M are changes of the key, N < L, L < M.
    inserted_twice(Id, A, M) :- change(Id, _, N, 'insert', _), change(Id, A, M, 'insert', _), N < M,
                                not apart(Id, N, M).
    deleted_twice(Id, A, M) :- the same for deletions.
    other_row(Id, A, M) :- change(Id, _, N, 'insert', _), change(Id, A, M, 'delete', false), N < M,
                           not apart(Id, N, M), not change(Id, A, N, 'insert', _).
    unknown_before(Id, A, N) :- change(Id, A, N, 'delete', true), not earlier(Id, N).
    """
    row, key = _row(table), _key(table)
    apart = Negation((Atom(_APART, (*key, _N, _M)),))
    in_order = Comparison("<", _N, _M)
    same = Negation((Atom(_CHANGE, (*row, _N, _INSERT, Variable("_S"))),))
    whole = Atom(_CHANGE, (*row, _M, _DELETE, Constant(False)))
    unknown = Atom(_CHANGE, (*row, _N, _DELETE, Constant(True)))
    earlier = _net_effect_rules(table).rules_for(_EARLIER)
    return Program(
        (
            *earlier,
            Rule(
                Atom(_APART, (*key, _N, _M)),
                (
                    *(_other(table, number) for number in (_N, _L, _M)),
                    Comparison("<", _N, _L),
                    Comparison("<", _L, _M),
                ),
            ),
            *(
                Rule(
                    Atom(goal, (*row, _M)),
                    (
                        _other(table, _N, kind),
                        Atom(_CHANGE, (*row, _M, kind, Variable("_P"))),
                        in_order,
                        apart,
                    ),
                )
                for goal, kind in ((INSERTED_TWICE, _INSERT), (DELETED_TWICE, _DELETE))
            ),
            Rule(Atom(OTHER_ROW, (*row, _M)), (_other(table, _N, _INSERT), whole, in_order, apart, same)),
            Rule(Atom(UNKNOWN_BEFORE, (*row, _N)), (unknown, Negation((Atom(_EARLIER, (*key, _N)),)))),
        )
    )


def _row(table: FeedTable) -> tuple[Term, ...]:
    return tuple(Variable(f"C{i}") for i in range(len(table.columns)))


def _key(table: FeedTable) -> tuple[Term, ...]:
    return tuple(Variable(f"C{i}") for i in table.identity)


def _other(table: FeedTable, number: Variable, kind: Term | None = None) -> Atom:
    """Some change of the same key with that number."""
    columns = [
        Variable(f"C{i}") if i in table.identity else Variable(f"_{number.name}{i}")
        for i in range(len(table.columns))
    ]
    unnamed = Variable(f"_K{number.name}")
    return Atom(_CHANGE, (*columns, number, kind or unnamed, Variable(f"_P{number.name}")))
