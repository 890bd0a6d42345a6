"""Tables without a key, as sets: a last column numbers the rows that are equal.

Before: `.view v(a) bag.   v(A) :- log(A, B).`      `log` may hold a row twice
After:  `v(A) :- log(A, B, N).`                     its rows are told apart by `N`

A bag and the sets of numbered rows that are this bag without their numbers are the same thing, whatever the numbers
are, as long as equal rows have different ones: no view shows them, and each database over bags is one over such sets.
So what is proved of these, for all numbers or for those that are convenient, holds for tables without keys:

1. The rows that a source gives are numbered from 1 on, among equal ones. A source is right after the update, so
2. inserted rows have the numbers from 1 on, too: these are rows of the source;
3. deleted rows, which are in no source, have the numbers from -1 down.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from datalog.copies import replace
from datalog.diagnostics import Code, Diagnostic, ProgramError
from datalog.model import (
    NUMBER,
    Atom,
    Block,
    Column,
    ColumnType,
    Declaration,
    Literal,
    Negation,
    TypeName,
    Variable,
    ViewDefinition,
    variables_of,
)


def numbered(declaration: Declaration) -> Declaration:
    """A base table: one without a key has a last column for the numbers of its rows."""
    if _has_key(declaration) or not declaration.columns or declaration.is_numbered:
        return declaration
    number = Column(NUMBER, ColumnType(TypeName.BIGINT), not_null=True)
    return replace(declaration, columns=(*declaration.columns, number))


def require_unnumbered(declarations: Iterable[Declaration]) -> None:
    """Refuses columns that are called as the numbers are.

    Raises:
        ProgramError: DL011.
    """
    found = [
        Diagnostic(
            Code.RESERVED_WORD,
            f"a column of `{one.name}` is called `{column.name}`, as the numbers of equal rows are",
            column.span or one.span,
            hint="give it another name",
        )
        for one in declarations
        for column in one.columns
        if column.name.casefold() == NUMBER
    ]
    if found:
        raise ProgramError(found)


def as_written(declaration: Declaration) -> Declaration:
    """A table without the column for the numbers of its rows."""
    return replace(declaration, columns=tuple(c for c in declaration.columns if c.name != NUMBER))


def over_numbered(definition: ViewDefinition, tables: Mapping[str, Declaration]) -> ViewDefinition:
    """A definition over tables some of which have numbered rows: their subgoals have a variable for the number."""
    numbers = count()
    blocks = []
    for block in definition.blocks:
        taken = {variable.name for variable in variables_of([block.core.head, *block.core.body])}
        fresh = (Variable(name) for i in numbers if (name := f"Copy{i}") not in taken)
        body = tuple(_with_number(literal, tables, fresh) for literal in block.core.body)
        blocks.append(replace(block, core=replace(block.core, body=body)))
    return replace(definition, blocks=tuple[Block, ...](blocks))


def _with_number(literal: Literal, tables: Mapping[str, Declaration], fresh: Iterator[Variable]) -> Literal:
    match literal:
        case Atom(predicate, terms) if predicate.name in tables:
            missing = tables[predicate.name].arity - len(terms)
            return replace(literal, terms=(*terms, *(next(fresh) for _ in range(missing))))
        case Negation(body):
            return replace(literal, body=tuple(_with_number(one, tables, fresh) for one in body))
        case _:
            return literal


def _has_key(declaration: Declaration) -> bool:
    if declaration.key is not None:
        return True
    never_null = {c.name for i, c in enumerate(declaration.columns) if declaration.is_not_null(i)}
    return any(never_null.issuperset(columns) for columns in declaration.unique)
