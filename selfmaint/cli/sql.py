"""`selfmaint sql`: a view's test, probe and maintenance statements, to ship with an ETL job.

@@@Statements, as Datalog or objects for JSON, and what a view in SQL became.

That is rules, or a definition that is more than rules; with the query that recomputes it.
"""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence

from datalog.model import OpaqueView, Predicate, Program
from datalog.sql import Table, select_view, text
from datalog.syntax import show
from selfmaint.api.file.warehouse_file import read_warehouse_file
from selfmaint.api.following.moved import dated
from selfmaint.api.printing.printed import Statement, one_line
from selfmaint.api.printing.statements import any_change, printed
from selfmaint.cli.options import BUDGET, EFFECTIVE, FORMAT, WAREHOUSE, option, repeatable, switch
from selfmaint.cli.output import Format, print_json, print_note, print_text, print_warnings, reporting
from selfmaint.decide.decision import Decision
from selfmaint.decide.table1 import diff_program, incon_program
from selfmaint.report.values import Json, cell
from selfmaint.report.verdicts import SOME_UNDECIDED
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.near import require_known
from selfmaint.warehouse.situation import Situation

OPTIONS = (
    WAREHOUSE,
    option("view", metavar="VIEW", help="The view."),
    repeatable("--insert-into", metavar="REL", help="A base relation that gains rows."),
    repeatable("--delete-from", metavar="REL", help="A base relation that loses rows."),
    *EFFECTIVE,
    switch("--datalog", help="Print rules instead of SQL; first what a view in SQL became."),
    switch("--table1", help="Print Huyn's DIFF and INCON for the view."),
    BUDGET,
    FORMAT,
)


def sql(given: Namespace) -> int:
    """Prints a view's test, probe and maintenance statements as Spark SQL.

    They hold for any insertions and deletions on any base relation, or, with --insert-into and --delete-from,
    for those alone: then they are smaller. A view's rows are in the table that the warehouse file names, or
    in one named like the view; an update's rows in REL_inserted and REL_deleted. Needs neither data nor
    Spark. What rows of a test mean is said before it (in JSON `exact`). Exit status: 0 printed; 2 bad usage
    or input; 3 no statements would be right: the view is outside the class that is decided exactly, or groups
    and the update is not effective, or the budget is spent; of one in SQL the query that recomputes it is printed then.
    """
    view: str = given.view
    format_: Format = given.format
    with reporting(format_):
        file = read_warehouse_file(given.warehouse)
        require_known([view], [v.name for v in file.catalog.views], "view")
        print_warnings(file.catalog.warnings_of([view]), format_)
        if file.catalog.clock is not None and view in dated(file.catalog):
            print_note(format_, file.catalog.clock.note)
        chosen = file.catalog.view(view)
        known = file.known(given.effective)
        situation = any_change(file.catalog, given.insert_into, given.delete_from, known)
        decision = Decision(file.catalog, file.budget_s if given.budget is None else given.budget)
        if given.table1 and chosen.limitation is None:
            _print_table1(decision, view, situation, format_)
            return 0
        names = {name: place.text for name, place in file.views.items() if place.is_table}
        found = printed(decision, view, situation, names)
    if given.datalog and chosen.definition is not None and format_ is not Format.JSON:
        print_text(definition_datalog(chosen, file.catalog.program))
    if format_ is Format.JSON:
        print_json({"view": view, "undecided": found.undecided, "statements": statements_json(found)})
    elif found.unchanging:
        print_text(cell(f"{'%' if given.datalog else '--'} nothing to do: {found.unchanging}"))
    elif found.undecided is None:
        print_text(statements_datalog(found) if given.datalog else str(found))
    elif chosen.definition is not None and not given.datalog:
        print_text(recomputing_sql(chosen, file.catalog))
    if found.undecided is not None:
        sys.stderr.write(f"undecided: {found.undecided}\n")
        return SOME_UNDECIDED
    return 0


def _print_table1(decision: Decision, view: str, situation: Situation, format_: Format) -> None:
    catalog, kept = decision.catalog, decision.contributions
    diff = show(diff_program(catalog, situation, kept, catalog.view(view)))
    incon = show(incon_program(catalog, situation, kept))
    if format_ is Format.JSON:
        print_json({"view": view, "diff": diff, "incon": incon})
    else:
        print_text(f"% DIFF: a database that changes the view's new state\n{diff}")
        print_text(f"% INCON: a database that contradicts what is known\n{incon}")


def statements_datalog(found: Sequence[Statement]) -> str:
    """The rules of each query, with a comment before."""
    return "\n".join(f"% {one_line(f'{s.kind.value}: {s.about}')}\n{show(s.program)}" for s in found)


def statements_json(found: Sequence[Statement]) -> Json:
    """A list of `{kind, name, about, reads, sql, datalog}`; of tests and open groups also `exact`."""
    return [
        {
            "kind": statement.kind.value,
            "name": statement.name,
            "about": statement.about,
            "reads": list(statement.reads),
            "sql": statement.sql,
            "datalog": show(statement.program),
            **({} if statement.exact is None else {"exact": statement.exact}),
        }
        for statement in found
    ]


def definition_datalog(view: View, program: Program) -> str:
    """The rules that a view is, or its definition; the text of one that could not be read, as a comment."""
    rules = program.rules_for(view.predicate)
    if rules:
        return f"% view: {view.name}\n" + show(Program(rules))
    if isinstance(view.definition, OpaqueView):
        lines = [f"view, as text: {view.name}", *view.definition.text.splitlines()]
        return "\n".join(f"% {line}" for line in lines) + "\n"
    return "" if view.definition is None else f"% view: {view.name}\n{show(view.definition)}\n"


def recomputing_sql(view: View, catalog: Catalog) -> str:
    """The query that recomputes a view from its base relations, as a script; empty for a view of rules.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    if isinstance(view.definition, OpaqueView):
        query = view.definition.text
    elif view.definition is not None:
        tables = {Predicate(r.name): Table((r.name,), r.columns) for r in catalog.relations.values()}
        tables |= {other.predicate: Table((other.name,), other.stored_columns) for other in catalog.views}
        query = text(select_view(view.definition, tables))
    else:
        return ""
    return f"-- recomputes {' '.join(view.name.split())} from what it reads\n{query};\n"
