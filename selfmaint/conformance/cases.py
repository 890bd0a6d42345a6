"""The recorded case format: JSON lines, one case a line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct

from datalog.copies import replace
from datalog.model import Column, ColumnType, Declaration, ForeignKey, Predicate, Program, Row, Version
from datalog.syntax import parse_program
from selfmaint.errors import Code, input_error


class Expected(Struct, frozen=True):
    """The recorded answer for one view; `state` is the new contents of a self-maintainable one."""

    self_maintainable: bool
    state: frozenset[Row] | None


class Case(Struct, frozen=True):
    """One case.

    Attributes:
        program: the view rules, with a declaration of every relation (the format has no null).
        contents: rows of the views, the update's parts, partial copies and readable relations.
        effective: whether the update is effective.
        expected: the answer for each view.
    """

    name: str
    program: Program
    contents: Mapping[Predicate, frozenset[Row]]
    effective: bool
    expected: Mapping[str, Expected]


_NO_CASE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What comes of taking apart a record of another form."""
_MOST_COLUMNS = 1000
_PARTS = {
    "insert": Version.INSERTED,
    "delete": Version.DELETED,
    "access": Version.BEFORE,
    "present": Version.PRESENT,
    "absent": Version.ABSENT,
}


def read_cases(path: Path, limit: int | None = None) -> Iterator[Case]:
    """The cases of a file, in order.

    Raises:
        InputError: SM103 no such file, SM101 a line that is no case.
    """
    if not path.is_file():
        raise input_error(Code.MISSING_CONTENTS, f"no file `{path}`", hint="give the path of a .jsonl file")
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, 1):
            if limit is not None and number > limit:
                return
            try:
                record = json.loads(line)
                case = case_of(record)
            except _NO_CASE as error:
                raise input_error(
                    Code.WAREHOUSE_FILE, f"`{path}` line {number} is not a case: {error}"
                ) from error
            yield case


def case_of(record: Mapping[str, Any]) -> Case:
    """One parsed line as a case.

    Besides the recorded format's own, these keys are read, each by relation: `nullable`, the columns that may hold
    null (else none does), `not_null`, columns that do not all the same; `unique`, sets of columns; `types`, a
    type for each column.
    """
    rules = parse_program(record["program"], source=_name(record["id"]))
    contents = {Predicate(name): _rows(rows) for name, rows in record["views"].items()}
    for part, version in _PARTS.items():
        for name, rows in record.get(part, {}).items():
            contents[Predicate(name, version)] = _rows(rows)
    return Case(
        name=record["id"],
        program=replace(rules, declarations=(*rules.declarations, *_declarations(record))),
        contents=contents,
        effective=bool(record.get("effective", False)),
        expected={
            name: Expected(answer["self_maintainable"], _rows(answer["state"]) if "state" in answer else None)
            for name, answer in record["expected"].items()
        },
    )


def _rows(rows: list[list[Any]]) -> frozenset[Row]:
    return frozenset(tuple(row) for row in rows)


def _declarations(record: Mapping[str, Any]) -> Iterator[Declaration]:
    for name, arity in record["relations"].items():
        key = record.get("keys", {}).get(name)
        nullable = set(record.get("nullable", {}).get(name, ())) - set(
            record.get("not_null", {}).get(name, ())
        )
        if not 0 <= arity <= _MOST_COLUMNS:
            raise ValueError(f"`{name}` with {arity} columns")
        types = record.get("types", {}).get(name) or ["any"] * arity
        yield Declaration(
            name,
            tuple(Column(f"c{i}", _type(types[i]), not_null=i not in nullable) for i in range(arity)),
            key=None if key is None else _columns(key),
            unique=tuple(_columns(columns) for columns in record.get("unique", {}).get(name, ())),
            foreign_keys=tuple(
                ForeignKey(_columns(columns), _name(target), _columns(targets))
                for source, columns, target, targets in record.get("foreign_keys", ())
                if source == name
            ),
        )


def _name(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"`{value}` is no name")
    return value


def _columns(positions: Sequence[int]) -> tuple[str, ...]:
    return tuple(f"c{i}" for i in positions)


@lru_cache(maxsize=1_000)
def _type(text: str) -> ColumnType:
    return parse_program(f".decl t(c: {text}).").declarations[0].columns[0].type
