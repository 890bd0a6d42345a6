"""The read guard: a statement runs only if everything that it reads was bound for it.

That no base table is read is thus enforced, not hoped: a program reaches a base relation only through a fact,
and a fact only through a name that was made for this one statement.
"""

from __future__ import annotations

from collections.abc import Collection

from datalog.diagnostics import Diagnostic
from selfmaint.errors import Code, ReadRefusedError


def require_allowed(read_set: Collection[tuple[str, ...]], allowed: Collection[tuple[str, ...]]) -> None:
    """Refuses a statement that reads a name that was not bound for it.

    Args:
        read_set: the qualified names that the statement reads, computed from its tree.
        allowed: the qualified names bound for it.

    Raises:
        ReadRefusedError: SM403, naming everything outside the allowance.
    """
    refused = sorted(set(read_set) - set(allowed))
    if refused:
        raise refusal("a statement reads " + ", ".join(f"`{'.'.join(name)}`" for name in refused))


def refusal(message: str) -> ReadRefusedError:
    """The error for a read outside the allowance."""
    note = "a statement may read only the facts that it is given"
    return ReadRefusedError([Diagnostic(code=Code.READ_REFUSED, message=message, note=note)])
