"""A program as one query: common table expressions for unions that are used, then the goal.

Duplicates: whoever reads a common table expression tests existence or removes duplicates itself, so these are
UNION ALL without DISTINCT; only the goal's own query removes duplicates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from datalog.model import Atom, Constant, NullTest, Predicate, Program, Rule, Variable, Version
from datalog.sql.conditions import Writer
from datalog.sql.errors import EmissionError
from datalog.sql.inline import inline
from datalog.sql.names import casefolded, identifier, unique
from datalog.sql.tables import Table
from datalog.sql.unions import Union

_DECLARED = (
    Version.STORED,
    Version.INSERTED,
    Version.DELETED,
    Version.BEFORE,
    Version.KNOWN,
    Version.AFTER,
    Version.GAINED,
    Version.LOST,
)
"""Versions whose rows are rows of the relation, so that its declaration names their columns."""


def select(
    program: Program,
    goal: Predicate,
    tables: Mapping[Predicate, Table],
    *,
    columns: Sequence[str] | None = None,
    hints: bool = False,
    distinct: bool = True,
) -> exp.Query:
    """The query whose rows are a predicate's extension.

    Args:
        program: safe, non-recursive rules.
        goal: the predicate asked for, one with rules or with a table.
        tables: where the rows of the predicates without rules are; a predicate with rules is never read.
        columns: names of the result's columns, one for each term of the goal (for a goal without terms, one:
            its only column is TRUE). By default those of the goal's declaration, else of the columns that
            the first rule takes them from.
        hints: whether to hint at broadcasts of the tables marked so.
        distinct: whether each row is to come once; else equal rows may come several times.

    Returns:
        A query with one column for each term, in order.

    Raises:
        EmissionError: the program is recursive or unsafe, or a predicate has neither rules nor a table.

    Semantics:
        Sets: no row twice, whatever duplicates the tables hold. Null is a value (equal to itself) where a
        variable occurs in several atoms; a comparison is false on null.

    Complexity:
        Linear in the program's size after inlining, which replaces each atom of a predicate that one rule
        defines by that rule's body.

    >>> from datalog.model import Atom, Negation
    >>> from datalog.sql.text import text
    >>> r, s, p = Predicate("r"), Predicate("s"), Predicate("p")
    >>> x = Variable("X")
    >>> rule = Rule(Atom(p, (x,)), (Atom(r, (x,)), Negation((Atom(s, (x,)),))))
    >>> here = {r: Table(("r",), ("a",), frozenset({0})), s: Table(("s",), ("b",))}
    >>> text(select(Program((rule,)), p, here), pretty=False)
    'SELECT DISTINCT `r`.`a` FROM `r` WHERE NOT EXISTS(SELECT 1 FROM `s` WHERE `s`.`b` = `r`.`a`)'
    """
    definitions = inline(program, goal) if goal in program.heads else {goal: (_stored(goal, tables),)}
    arity = (program.rules_for(goal) or definitions[goal])[0].head.arity
    if columns is not None and len(columns) != max(arity, 1):
        raise EmissionError(f"predicate `{goal}` has arity {arity}, not {len(columns)} columns")
    rules = definitions.pop(goal) or (_nothing(goal, arity),)
    known, expressions = _expressions(program, definitions, tables, hints=hints)
    names = columns or _declared(program, goal, arity)
    result = Union.of(rules, Writer(known, hints), names).query(distinct=distinct)
    for name, query in expressions.items():
        result = result.with_(exp.to_identifier(name, quoted=True), as_=query, copy=False)
    return result


def _expressions(
    program: Program,
    definitions: Mapping[Predicate, tuple[Rule, ...]],
    tables: Mapping[Predicate, Table],
    *,
    hints: bool,
) -> tuple[Mapping[Predicate, Table], Mapping[str, exp.Query]]:
    """Common table expressions of some predicates, by name, and the tables with them among it."""
    known = dict(tables)
    taken = set(casefolded([table.name[-1] for table in tables.values()]))
    expressions: dict[str, exp.Query] = {}
    for predicate, rules in definitions.items():
        names = _declared(program, predicate, rules[0].head.arity)
        union = Union.of(rules, Writer(known, hints), names)
        name = unique(identifier(str(predicate)), taken)
        taken.add(name.casefold())
        known[predicate] = union.table(name)
        expressions[name] = union.query(distinct=False)
    return known, expressions


def _stored(goal: Predicate, tables: Mapping[Predicate, Table]) -> Rule:
    """A rule for all rows of a table."""
    if goal not in tables:
        raise EmissionError(f"predicate `{goal}` has neither rules nor a table")
    atom = Atom(goal, tuple(Variable(f"X{position}") for position in range(len(tables[goal].columns))))
    return Rule(atom, (atom,))


def _nothing(goal: Predicate, arity: int) -> Rule:
    """A rule that derives nothing."""
    return Rule(Atom(goal, (Constant(None),) * arity), (NullTest(Constant(None)),))


def _declared(program: Program, predicate: Predicate, arity: int) -> tuple[str, ...] | None:
    """The declared names of the columns, if the predicate's rows are rows of the relation."""
    declaration = program.declaration(predicate.name)
    if declaration is None or declaration.arity != arity or predicate.version not in _DECLARED:
        return None
    return declaration.column_names or None
