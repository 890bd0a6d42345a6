"""Column types and declared constraints of base relations."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from enum import Enum, unique

from msgspec import Struct

from datalog.copies import replace
from datalog.model.spans import Placed, Span
from datalog.model.terms import Value, value_kind


@unique
class TypeName(Enum):
    """The column types of a declaration."""

    __hash__ = object.__hash__  # members are one of a kind; Enum's own hashes the name, in Python

    BOOLEAN = "boolean"
    TINYINT = "tinyint"
    SMALLINT = "smallint"
    INT = "int"
    BIGINT = "bigint"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    DATE = "date"
    TIMESTAMP = "timestamp"
    """An instant; as a plain value what the session's clock shows."""
    TIMESTAMP_NTZ = "timestamp_ntz"
    """What a clock shows, in no zone: the hour that a change of clocks leaves out is one of them."""
    ANY = "any"
    """Not declared: every value of every family, and as many of them as needed."""

    @property
    def bits(self) -> int | None:
        """How many bits an integer type has; None of the others."""
        return _BITS.get(self)

    @property
    def digits(self) -> int | None:
        """How many digits the numbers of an integer type have at most; None of the others."""
        return _DIGITS.get(self)

    @property
    def is_integer(self) -> bool:
        """Whether its values are the whole numbers of so many bits."""
        return self in _BITS

    @property
    def is_floating(self) -> bool:
        """Whether its values are binary floating-point numbers: sums of them depend on the order."""
        return self in (TypeName.FLOAT, TypeName.DOUBLE)

    @property
    def has_signed_zeros(self) -> bool:
        """Whether equal values of it may be two: 0.0 and -0.0. Of what is not declared they may."""
        return self.is_floating or self is TypeName.ANY


_BITS = {TypeName.TINYINT: 8, TypeName.SMALLINT: 16, TypeName.INT: 32, TypeName.BIGINT: 64}
_DIGITS = {name: len(str(2 ** (bits - 1))) for name, bits in _BITS.items()}
MAX_PRECISION = 38
"""The most digits that a decimal can have."""
_DEFAULT_DECIMAL = (10, 0)
_DOUBLE_DIGITS, _DOUBLE_BITS = 15, 53
"""Decimals of so many digits are as many doubles, in the same order; so are whole numbers of so many bits."""

_FAMILY = {
    TypeName.BOOLEAN: "boolean",
    TypeName.STRING: "string",
    TypeName.DATE: "date",
    TypeName.TIMESTAMP: "timestamp",
    TypeName.TIMESTAMP_NTZ: "timestamp_ntz",
    TypeName.ANY: "any",
}


class ColumnType(Struct, frozen=True):
    """A type, with precision and scale for `decimal`."""

    name: TypeName
    precision: int | None = None
    scale: int | None = None

    @property
    def family(self) -> str:
        """`number`, `string`, `boolean`, `date`, `timestamp`, `timestamp_ntz` or `any`: what it compares with."""
        return _FAMILY.get(self.name, "number")

    @property
    def is_finite(self) -> bool:
        """Whether the type has so few values that a fresh one cannot be counted on."""
        return self.name is TypeName.BOOLEAN

    @property
    def is_open(self) -> bool:
        """Whether it leaves the type of a stored column open: `any`, or a decimal without a size."""
        return self.name is TypeName.ANY or (self.name is TypeName.DECIMAL and self.precision is None)

    @property
    def decimal_size(self) -> tuple[int, int]:
        """Precision and scale of a decimal; Spark's default where none is declared."""
        return _DEFAULT_DECIMAL if self.precision is None else (self.precision, self.scale or 0)

    def is_found_by(self, other: ColumnType) -> bool:
        """Whether a value of another type equals one of this type at most: several numbers may be one as doubles."""
        if self == other or (self.name.is_integer and other.name.is_integer):
            return True
        if self.family != "number" or other.family != "number":
            return False
        if self.name.is_floating:  # the other is compared as such a number
            return True
        if other.name.is_floating:
            return other.name is TypeName.DOUBLE and self.has_one_near(math.inf)
        sizes = [one.decimal_size if one.name is TypeName.DECIMAL else (20, 0) for one in (self, other)]
        scale = max(scale for _, scale in sizes)
        return max(digits - its for digits, its in sizes) + scale <= MAX_PRECISION

    def has_one_near(self, number: float) -> bool:
        """Whether no two numbers of a type that is no floating-point one are the same double, near a double."""
        if self.name is TypeName.DECIMAL:
            return (self.precision or MAX_PRECISION) <= _DOUBLE_DIGITS
        return (self.name.bits or 0) <= _DOUBLE_BITS or abs(number) < 2**_DOUBLE_BITS

    def accepts(self, value: Value) -> bool:
        """Whether a constant may stand in a column of this type."""
        return value is None or self.family in ("any", value_kind(value))

    def __str__(self) -> str:
        if self.precision is None:
            return self.name.value
        return f"{self.name.value}({self.precision}{'' if self.scale is None else f',{self.scale}'})"


ANY = ColumnType(TypeName.ANY)


class Unmodelled(Struct, frozen=True):
    """A type of a table that no type here stands for: its equal values may differ, or it has no equality.

    Attributes:
        text: the type as it is written.
    """

    text: str
    hint: str

    @property
    def is_text(self) -> bool:
        """Whether its values are texts, some of which are equal and differ."""
        return self.hint in (PADDED_HINT, BINARY_HINT)


BINARY_COLLATION = "utf8_binary"
"""The collation in which only the same strings are equal."""
PADDED_HINT = (
    "give the column the type `string`, which is not padded with blanks; where a dump declares it, by"
    " `ALTER TABLE t ALTER COLUMN c TYPE string` in a file beside it"
)
BINARY_HINT = "give the column the collation UTF8_BINARY, in which only the same strings are equal"
OTHER_HINT = "store what views need of it in columns of numbers, strings, booleans, dates or timestamps"
UNKNOWN_HINT = "declare it by a type that its values have: `string` for an enumeration"
"""What to do about types that nothing here stands for."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a declared relation. Columns of a key are not null whatever `not_null` says.

    Attributes:
        not_null: whether it is declared so.
        unmodelled: the type that its table gives it, if no type here stands for that.
    """

    name: str
    type: ColumnType = ANY
    not_null: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)
    unmodelled: Unmodelled | None = field(default=None, compare=False)


class ForeignKey(Placed, frozen=True):
    """`foreign(columns) references target(target_columns)`."""

    columns: tuple[str, ...]
    target: str
    target_columns: tuple[str, ...]
    span: Span | None = None


NUMBER = "copy#"
"""The last column of a table that may hold a row twice: see `datalog.rewrite.numbered`."""


class Declaration(Placed, frozen=True):
    """`.decl name(column: type [not null], ...) [key(...)] [unique(...)]... [foreign(...) references t(...)]...`.

    Attributes:
        unread: columns of the table that are none of the relation: their types are not modelled.
    """

    name: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] | None = None
    unique: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    span: Span | None = None
    unread: tuple[Column, ...] = ()

    @property
    def arity(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def is_numbered(self) -> bool:
        """Whether equal rows are told apart by a last column that no query knows of."""
        return self.column_names[-1:] == (NUMBER,)

    def modelled(self) -> Declaration:
        """The relation of the columns that types here stand for, the others unread; itself, if there are none of them.

        A key with one of the others is none of this relation, and may leave it without one.
        """
        unread = tuple(one for one in self.columns if one.unmodelled is not None)
        columns = tuple(one for one in self.columns if one.unmodelled is None)
        if not unread or not columns:
            return self
        lost = {one.name for one in unread}
        return replace(
            self,
            columns=columns,
            key=None if self.key is None or not lost.isdisjoint(self.key) else self.key,
            unique=tuple(one for one in self.unique if lost.isdisjoint(one)),
            foreign_keys=tuple(one for one in self.foreign_keys if lost.isdisjoint(one.columns)),
            unread=unread,
        )

    def is_not_null(self, position: int) -> bool:
        """Whether the 0-based column can never hold null."""
        column = self.columns[position]
        return column.not_null or (self.key is not None and column.name in self.key)
