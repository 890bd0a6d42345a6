"""What decides and maintains a view of rows that have no match, as Spark SQL: see `selfmaint.decide.anti_joins`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datalog.model import Atom, Negation, Predicate, Program, Rule, Variable, Version, ViewDefinition, block
from datalog.rewrite import drop_empty
from datalog.sql import Steps, Table, read_set, select_in_steps, text
from selfmaint.api.file.toml_tables import dotted
from selfmaint.api.printing.printed import Statement, StatementKind
from selfmaint.decide.anti_joins import GAINED, LOST, OPEN, UNMATCHED, UnmatchedRows
from selfmaint.engine.plans import in_one_query
from selfmaint.warehouse.situation import Situation

_MORE, _LESS = (Predicate(name, Version.STEP) for name in ("more", "less"))


def unmatched_statements(
    rows: UnmatchedRows, situation: Situation, tables: Mapping[Predicate, Table]
) -> Iterator[Statement]:
    """The test, and the rows gained and lost, in a situation that is effective; those that can have a row.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    view = rows.view
    changed = {Predicate(name, Version.INSERTED) for name in situation.inserted}
    changed |= {Predicate(name, Version.DELETED) for name in situation.deleted}
    given = rows.given(changed)
    program = rows.program(given)
    first = [(goal, made, made.columns) for goal, (_, made) in given.items()]
    row = tuple(Variable(f"C{i}") for i in range(len(view.columns)))
    more = drop_empty(
        Program(
            tuple(
                Rule(Atom(goal, row), (Atom(one, row), Negation((Atom(other, row),))))
                for goal, one, other in ((_MORE, GAINED, LOST), (_LESS, LOST, GAINED))
            )
        ),
        {GAINED, LOST} - set(program.heads),
    )
    whole = Program((*program.rules, *more.rules))
    compared = tuple(view.columns[i] for i in rows.anti.join)
    name = view.shown
    for kind, goal, columns, about, exact in (
        (
            StatementKind.TEST,
            OPEN,
            compared,
            f"values for which {UNMATCHED}; {name} is self-maintainable if there are none",
            False,
        ),
        (
            StatementKind.GAINED,
            _MORE,
            view.columns,
            f"rows that {name} gains, if it is self-maintainable",
            None,
        ),
        (
            StatementKind.LOST,
            _LESS,
            view.columns,
            f"rows that {name} loses, if it is self-maintainable",
            None,
        ),
    ):
        if not whole.rules_for(goal):
            continue
        steps: Steps = [*first, (goal, in_one_query(whole, goal), columns)]
        every = [Variable(f"C{i}") for i in range(len(columns))]
        result = ViewDefinition("found", columns, (block("found", 0, [Atom(goal, tuple(every))], every),))
        query = select_in_steps(steps, result, tables)
        reads = tuple(sorted(dotted(one) for one in read_set(query)))
        yield Statement(kind, f"{view.name}@{kind.value}", about, Program(), text(query), reads, exact)
