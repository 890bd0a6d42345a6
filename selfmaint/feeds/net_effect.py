"""The net effect of a batch of changes as Datalog rules: the condense operator, and what a batch must not hold.

With `change(C..., N, K, P)`, one fact for each change: its row, its number in the order, `'delete'` or `'insert'`, and
whether only the key of its row is known. For a relation `r(id, a)` with the key `id`:

    earlier(Id, N) :- change(Id, _, N, _, _), change(Id, _, M, _, _), M < N.
    later(Id, N) :- change(Id, _, N, _, _), change(Id, _, M, _, _), N < M.
    removed(Id, A) :- change(Id, A, N, 'delete', false), not earlier(Id, N).
    added(Id, A) :- change(Id, A, N, 'insert', _), not later(Id, N).
    deleted(Id, A) :- removed(Id, A), not added(Id, A).
    inserted(Id, A) :- added(Id, A), not removed(Id, A).

First and last change of each key are all that matters: insert ... insert leaves the last row, insert ... delete
nothing, delete ... delete the first row's deletion, delete ... insert both (partial condense), and nothing if both
are the same row (a row that is carried over, or changed back).

Conditions of soundness:

1. The numbers order the changes of each key as the source made them.
2. No rule of `promise_rules` has a fact: then the first change of a key, if it deletes, deletes the row of before the
   batch, and if it inserts, there was none.
3. A key is in one row at a time. Without a declared key, the whole row is the key: each row occurs at most once.

Source: Zhou, Larson and Elmongui, Lazy Maintenance of Materialized Views (VLDB 2007), section 4, Table 1 and
"partial condense".
"""

from __future__ import annotations

from datalog.model import Atom, Comparison, Constant, Negation, Predicate, Program, Rule, Term, Variable
from selfmaint.feeds.table import FeedTable

CHANGE = Predicate("change")
DELETED = Predicate("deleted")
INSERTED = Predicate("inserted")
INSERTED_TWICE = Predicate("inserted_twice")
DELETED_TWICE = Predicate("deleted_twice")
OTHER_ROW = Predicate("other_row")
UNKNOWN_BEFORE = Predicate("unknown_before")

_N, _M, _L = Variable("N"), Variable("M"), Variable("L")
_DELETE, _INSERT = Constant("delete"), Constant("insert")
_EARLIER, _LATER, _APART = Predicate("earlier"), Predicate("later"), Predicate("apart")
_REMOVED, _ADDED = Predicate("removed"), Predicate("added")


def net_effect_rules(table: FeedTable) -> Program:
    """The rules of `deleted` and `inserted`, see the module's docstring."""
    row, key = _row(table), _key(table)
    return Program(
        (
            Rule(Atom(_EARLIER, (*key, _N)), (_other(table, _N), _other(table, _M), Comparison("<", _M, _N))),
            Rule(Atom(_LATER, (*key, _N)), (_other(table, _N), _other(table, _M), Comparison("<", _N, _M))),
            Rule(
                Atom(_REMOVED, row),
                (
                    Atom(CHANGE, (*row, _N, _DELETE, Constant(False))),
                    Negation((Atom(_EARLIER, (*key, _N)),)),
                ),
            ),
            Rule(
                Atom(_ADDED, row),
                (
                    Atom(CHANGE, (*row, _N, _INSERT, Variable("_P"))),
                    Negation((Atom(_LATER, (*key, _N)),)),
                ),
            ),
            Rule(Atom(DELETED, row), (Atom(_REMOVED, row), Negation((Atom(_ADDED, row),)))),
            Rule(Atom(INSERTED, row), (Atom(_ADDED, row), Negation((Atom(_REMOVED, row),)))),
        )
    )


def promise_rules(table: FeedTable) -> Program:
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
    same = Negation((Atom(CHANGE, (*row, _N, _INSERT, Variable("_S"))),))
    whole = Atom(CHANGE, (*row, _M, _DELETE, Constant(False)))
    unknown = Atom(CHANGE, (*row, _N, _DELETE, Constant(True)))
    earlier = net_effect_rules(table).rules_for(_EARLIER)
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
                        Atom(CHANGE, (*row, _M, kind, Variable("_P"))),
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
    return Atom(CHANGE, (*columns, number, kind or unnamed, Variable(f"_P{number.name}")))
