"""The read guard: a statement runs only if everything that it reads was bound for it.

That no base table is read is thus enforced, not hoped: a program reaches a base relation only through a fact,
and a fact only through a name that was made for this one statement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from datalog.diagnostics import Diagnostic
from datalog.model import Predicate, Program
from datalog.rewrite.reachable import predicates_of
from selfmaint.errors import Code, ReadRefusedError


def require_allowed(read_set: Collection[tuple[str, ...]], allowed: Collection[tuple[str, ...]]) -> None:
    """Refuses a statement that reads a name that was not bound for it.

    Raises:
        ReadRefusedError: SM403, naming everything outside the allowance.
    """
    refused = sorted(set(read_set) - set(allowed))
    if refused:
        raise refusal("a statement reads " + ", ".join(f"`{'.'.join(name)}`" for name in refused))


def require_given(program: Program, given: Collection[Predicate]) -> None:
    """Refuses a program that reads a predicate of which it is given nothing.

    Raises:
        ReadRefusedError: SM403, naming all of them.
    """
    missing = ", ".join(f"`{p}`" for p in dict.fromkeys(undefined(program)) if p not in given)
    if missing:
        raise refusal(f"a program reads {missing}, of which it is given nothing")


def undefined(program: Program) -> Iterator[Predicate]:
    """The predicates that a program uses and does not define, each as often as it is used."""
    defined = set(program.heads)
    for rule in program.rules:
        yield from (predicate for predicate in predicates_of(rule.body) if predicate not in defined)


def refusal(message: str) -> ReadRefusedError:
    """The error for a read outside the allowance."""
    note = "a statement may read only the facts that it is given"
    return ReadRefusedError([Diagnostic(code=Code.READ_REFUSED, message=message, note=note)])
