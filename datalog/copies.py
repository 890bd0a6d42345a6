"""Values of the classes here, structs and dataclasses alike: copies with some fields changed, and what is in them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any, TypeVar

from msgspec import Struct, structs

T = TypeVar("T")


def replace(value: T, /, **changes: Any) -> T:
    """A copy; a field that it does not have is a TypeError (`copy.replace` of Python 3.13).

    >>> class Point(Struct, frozen=True):
    ...     x: int
    ...     y: int
    >>> replace(Point(1, 2), y=3)
    Point(x=1, y=3)
    """
    if isinstance(value, Struct):
        return structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)  # type: ignore[type-var]


def contents(value: object) -> Iterator[object]:
    """What a struct's or a dataclass's fields hold, in order; nothing of any other value.

    >>> list(contents(1))
    []
    """
    if isinstance(value, Struct):
        yield from (getattr(value, name) for name in value.__struct_fields__)
    elif dataclasses.is_dataclass(value):
        yield from (getattr(value, field.name) for field in dataclasses.fields(value))
