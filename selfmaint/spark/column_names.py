"""Are the columns of some contents those that are expected? If not, one error says which, and how to mend it."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from datalog.diagnostics import Diagnostic
from datalog.model import Predicate, Span
from datalog.syntax import show
from selfmaint.errors import Code, InputError

_NO_NAME = re.compile(r"[+-]?\d")
"""What a value may start with and hardly a name: the first row of a CSV file without a header."""


class ExpectedNames(Protocol):
    """What is expected; see `tables.Expected`."""

    @property
    def name(self) -> str:
        """What the contents are of."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names wanted."""

    @property
    def place(self) -> Span | None:
        """Where they are declared, or the rule that names them."""

    @property
    def naming(self) -> str | None:
        """How a declaration would name them, such as `.decl {}.`, where the head of a view's rule makes them."""


def require_names(found: Sequence[str], expected: ExpectedNames, *, extra_allowed: bool = False) -> None:
    """Refuses contents whose columns are not the expected ones, in whatever order.

    Args:
        found: the columns that there are.
        expected: those wanted.
        extra_allowed: whether there may be others besides.

    Raises:
        InputError: SM104 a column is missing, not expected or there twice: one diagnostic for all.
    """
    wrong = list(_differences(found, expected.columns, extra_allowed=extra_allowed))
    if wrong:
        raise InputError([different_columns(found, expected, "; ".join(wrong))])


def different_columns(found: Sequence[str], expected: ExpectedNames, difference: str) -> Diagnostic:
    """SM104 for contents with other columns than expected.

    Args:
        found: the columns that there are.
        expected: those wanted.
        difference: in words, what the difference is.
    """
    return Diagnostic(
        Code.COLUMNS_DIFFER,
        f"the columns of `{expected.name}` do not fit: {difference}",
        expected.place,
        f"gives the columns {_listed(expected.columns)}",
        note=f"stored are {_listed(found)}; expected are {_listed(expected.columns)}",
        hint=_hint(found, expected),
    )


def _differences(found: Sequence[str], expected: Sequence[str], *, extra_allowed: bool) -> Iterator[str]:
    missing = [name for name in expected if name not in found]
    extra = [] if extra_allowed else [name for name in dict.fromkeys(found) if name not in expected]
    twice = [name for name, times in Counter(found).items() if times > 1 and name in expected]
    if missing:
        yield f"{_listed(missing)} missing"
    if extra:
        yield f"{_listed(extra)} not expected"
    if twice:
        yield f"{_listed(twice)} there more than once"


def _hint(found: Sequence[str], expected: ExpectedNames) -> str:
    renames = _renames(found, expected.columns)
    if not renames and not set(found) & set(expected.columns) and any(map(_NO_NAME.match, found)):
        return f"of a CSV file the first line names the columns: put `{','.join(expected.columns)}` above the rows"
    advice = [f"rename the stored `{old}` to `{new}`" for new, old in renames.items()]
    if expected.naming is not None:
        suits = len(found) == len(expected.columns) and len(set(found)) == len(found)
        declaration = expected.naming.format(_named(expected.name, found if suits else expected.columns))
        advice.append(f"name the view's columns by a declaration, such as `{declaration}`")
    elif not advice:
        advice.append("store these columns, or correct the declaration")
    return ", or ".join(advice)


def _renames(found: Sequence[str], expected: Sequence[str]) -> Mapping[str, str]:
    """For missing columns the stored one, not expected, that was probably meant; each once."""
    extra = {name.casefold(): name for name in found if name not in expected}
    renames = {}
    for name in expected:
        close = difflib.get_close_matches(name.casefold(), extra, n=1)
        if name not in found and close:
            renames[name] = extra.pop(close[0])
    return renames


def _named(view: str, columns: Sequence[str]) -> str:
    return f"{show(Predicate(view))}({', '.join(show(Predicate(name)) for name in columns)})"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
