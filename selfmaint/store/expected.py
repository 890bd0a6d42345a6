"""The columns that some contents must have; where they are others, one error says which, and how to mend it."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from msgspec import Struct

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import ColumnType, Predicate, Span, TypeName, Unmodelled
from datalog.syntax import show
from selfmaint.engine.column_types import fits, is_wider_decimal, narrows
from selfmaint.errors import Code, InputError, input_error

_NO_NAME = re.compile(r"[+-]?\d")
"""What a value may start with and hardly a name: the first row of a CSV file without a header."""


INDEX = re.compile(r"__index_level_\d+__")
"""A column that pandas adds to Parquet files for an index without a name, as that of a filtered frame."""


StoredType: TypeAlias = ColumnType | Unmodelled
"""A stored column's type."""


class Expected(Struct, frozen=True):
    """The columns that some contents must have.

    Attributes:
        name: what the contents are of, for messages.
        columns: column names, in the order wanted.
        types: their types; with `ANY`, and a decimal without precision, the stored type is taken.
        place: where the columns are declared, or the rule that names them.
        naming: how a declaration would name the columns of a view that names none, such as `.decl {}.`.
        computed: positions of columns that a view computes: a wider decimal may hold their values.
        unread: columns that may be there, and are left out.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[ColumnType, ...]
    place: Span | None = None
    naming: str | None = None
    computed: frozenset[int] = frozenset()
    unread: frozenset[str] = frozenset()

    def given(self, stored: Sequence[StoredType]) -> Expected:
        """The same, with the stored types, in order, where those hold all that is computed there."""
        pairs = enumerate(zip(stored, self.types, strict=True))
        types = tuple(
            found
            if i in self.computed and isinstance(found, ColumnType) and is_wider_decimal(found, its)
            else its
            for i, (found, its) in pairs
        )
        return replace(self, types=types)


def nothing_stored(name: str, location: str) -> InputError:
    """The error for contents of which there is nothing."""
    hint = f"store the rows of `{name}` there, or correct the path"
    return input_error(Code.MISSING_CONTENTS, f"`{name}`: there is no `{location}`", hint)


def require_names(found: Sequence[str], expected: Expected, *, extra_allowed: bool = False) -> None:
    """Refuses contents whose columns are not the expected ones, in whatever order.

    Raises:
        InputError: SM104 a column is missing, not expected or there twice: one diagnostic for all.
    """
    read = [name for name in found if name not in expected.unread]
    wrong = list(_differences(read, expected.columns, extra_allowed=extra_allowed))
    if wrong:
        raise InputError([different_columns(found, expected, "; ".join(wrong))])


def different_columns(found: Sequence[str], expected: Expected, difference: str) -> Diagnostic:
    """SM104 for contents with other columns than expected."""
    return Diagnostic(
        Code.COLUMNS_DIFFER,
        f"the columns of `{expected.name}` do not fit: {difference}",
        expected.place,
        f"gives the columns {_listed(expected.columns)}",
        note=f"there are {_listed(found)}; expected are {_listed(expected.columns)}",
        hint=_hint(found, expected),
    )


def require_types(stored: Sequence[StoredType], expected: Expected) -> None:
    """Refuses contents whose columns, in the order expected, are of types that do not fit those declared.

    Integers and decimals may be of a wider type, as DuckDB, pandas and polars write them: a value that does not fit is
    an error where it is read.

    Raises:
        InputError: SM104 every difference.
    """
    columns = zip(expected.columns, stored, expected.types, strict=True)
    differences = [
        type_difference(expected.name, name, found, declared)
        for name, found, declared in columns
        if isinstance(found, Unmodelled) or not (fits(found, declared) or narrows(found, declared))
    ]
    if differences:
        raise InputError(differences)


_IN_PANDAS = {
    (TypeName.TIMESTAMP_NTZ, TypeName.DATE): ".dt.date",
    (TypeName.TIMESTAMP, TypeName.DATE): ".dt.date",
    (TypeName.TIMESTAMP_NTZ, TypeName.TIMESTAMP): ".dt.tz_localize(ZONE)",
    (TypeName.TIMESTAMP, TypeName.TIMESTAMP_NTZ): ".dt.tz_localize(None)",
}
"""How times become what is declared, in the library that has no other type of them."""


def type_difference(contents: str, column: str, stored: StoredType, declared: ColumnType) -> Diagnostic:
    """SM104 for a column of another type than declared."""
    shown = stored.text if isinstance(stored, Unmodelled) else str(stored)
    if isinstance(stored, Unmodelled):
        hint = stored.hint
    elif stored.name is TypeName.INT and stored.family != declared.family:  # as DuckDB writes nulls alone
        hint = f"store it as `{declared}`, by a cast if it is null everywhere, or declare `{column}` as `{shown}`"
    elif stored.name.is_floating and declared.name.is_integer:  # as pandas has whole numbers beside nulls
        hint = f"store it as `{declared}`, by a cast (in pandas `.astype('Int64')`)"
    elif stored.name.is_floating and not declared.name.is_floating:
        hint = f"store it as `{declared}`, by a cast, or declare `{column}` as `{shown}`, but no key and no money"
    elif (stored.name, declared.name) in _IN_PANDAS:
        how = _IN_PANDAS[stored.name, declared.name]
        hint = f"declare `{column}` as `{shown}`, or store it as `{declared}` (in pandas `{how}`)"
    elif fits(declared, stored):
        hint = f"declare `{column}` as `{shown}`, which is wider, or store it as `{declared}`"
    else:
        hint = f"declare `{column}` as `{shown}`, or store it as `{declared}`"
    return Diagnostic(
        code=Code.COLUMNS_DIFFER,
        message=f"column `{column}` of `{contents}` is `{shown}`, not `{declared}`",
        hint=hint,
    )


def is_by_position(found: Sequence[str], expected: Expected) -> bool:
    """Whether none of the names is one of those expected, and there are as many.

    Raises:
        InputError: SM104 none is, and there are more or fewer.
    """
    names = {name.casefold() for name in expected.columns}
    if any(name.casefold() in names for name in found) or len(set(found)) != len(found):
        return False
    if len(found) != len(expected.columns):
        difference = f"there are {len(found)}, not {len(expected.columns)}"
        raise InputError([different_columns(found, expected, difference)])
    return True


_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "`|`"}


def _differences(found: Sequence[str], expected: Sequence[str], *, extra_allowed: bool) -> Iterator[str]:
    missing = [name for name in expected if name not in found]
    more = [name for name in dict.fromkeys(found) if name not in expected and not INDEX.fullmatch(name)]
    extra = [] if extra_allowed else more
    twice = [name for name, times in Counter(found).items() if times > 1 and name in expected]
    if missing:
        yield f"{_listed(missing)} missing"
    if extra:
        yield f"{_listed(extra)} not expected"
    if twice:
        yield f"{_listed(twice)} there more than once"


def _hint(found: Sequence[str], expected: Expected) -> str:
    other = next((mark for mark in _SEPARATORS if len(found) == 1 and mark in found[0]), None)
    if other is not None and len(expected.columns) > 1:
        return f"a CSV file has commas between its columns, and this line has {_SEPARATORS[other]}: write it with `,`"
    renames = _renames(found, expected.columns)
    if not renames and not set(found) & set(expected.columns) and any(map(_NO_NAME.match, found)):
        return f"of a CSV file the first line names the columns: put `{','.join(expected.columns)}` above the rows"
    advice = [f"rename `{old}` to `{new}`" for new, old in renames.items()]
    if expected.naming is not None:
        suits = len(found) == len(expected.columns) and len(set(found)) == len(found)
        declaration = expected.naming.format(_named(expected.name, found if suits else expected.columns))
        advice.append(f"name the view's columns by a declaration, such as `{declaration}`")
    elif not advice:
        more = [name for name in found if name not in expected.columns]
        is_more = set(expected.columns) < set(found)
        advice.append(f"leave {_listed(more)} out" if is_more else "give these columns")
        advice.append("correct the declaration")
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
