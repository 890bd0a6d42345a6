"""Is what is given possible at all? The checks of `canonical.consistency`, run, with the culprits' rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from datalog.diagnostics import Diagnostic
from datalog.model import Constant, Predicate, Row
from datalog.syntax import show
from selfmaint.api.warehouse import Warehouse
from selfmaint.canonical import all_contributions
from selfmaint.canonical.consistency import check_program, checks
from selfmaint.canonical.consistency_check import Check
from selfmaint.engine.protocol import D, Facts
from selfmaint.errors import Code, InputError
from selfmaint.warehouse.situation import Situation

SHOWN_ROWS = 5
"""How many culprits an error names."""


def require_possible(
    warehouse: Warehouse[D],
    facts: Facts[D],
    situation: Situation,
    files: Mapping[Predicate, str] | None = None,
    *,
    full: bool = False,
) -> None:
    """Refuses views, partial copies and updates that contradict each other.

    Args:
        warehouse: the warehouse.
        facts: everything known.
        situation: the kinds of it.
        files: where parts of the update are from, for the message.
        full: also ask whether any database explains all views, at the cost of recomputing them.

    Raises:
        InputError: SM201, SM202 a view's rows do not fit its rule; SM203 the views contradict each other or a
            partial copy; SM301 a row inserted and deleted; SM302 an effective update that cannot be;
            SM303 an update that breaks a key or foreign key.
    """
    engine = warehouse.engine
    facts = replace(facts, not_null={})  # what is promised is what is checked
    wanted = checks(warehouse.catalog, situation, warehouse.decision.contributions, full=full)
    kept = tuple(all_contributions(warehouse.catalog)) if full else warehouse.decision.contributions
    budget_s = warehouse.decision.budget_s
    program = check_program(warehouse.catalog, situation, kept, wanted, full=full, budget_s=budget_s)
    asked = {check.goal: check for check in wanted if program.rules_for(check.goal)}
    broken = engine.nonempty(program, tuple(asked), facts)
    found = []
    both = {
        check.subject for goal, check in asked.items() if goal in broken and check.code is Code.BOTH_CHANGED
    }
    for goal, check in asked.items():
        # A row that is inserted and deleted breaks a promise either way: saying so is enough.
        if goal in broken and not (check.code is Code.CONTRADICTS and check.subject in both):
            rows = engine.sample(engine.evaluate(program, goal, facts, check.columns), SHOWN_ROWS)
            found.append(
                Diagnostic(
                    code=check.code,
                    message=f"{check.message}: {shown_rows(check.columns, rows)}",
                    note=_files_note(check, files or {}),
                    hint=check.hint,
                )
            )
    if found:
        raise InputError(found)


def _files_note(check: Check, files: Mapping[Predicate, str]) -> str | None:
    """The files of the update that a check's culprits are in."""
    read = {atom.predicate for rule in check.rules for atom in rule.atoms}
    found = sorted(path for part, path in files.items() if part in read)
    return f"in {' and '.join(f'`{path}`' for path in found)}" if found else None


def shown_rows(columns: tuple[str, ...], rows: list[Row]) -> str:
    """A few rows in words, values as the language writes them."""
    return "; ".join(
        "(" + ", ".join(f"{c}={show(Constant(v))}" for c, v in zip(columns, row, strict=True)) + ")"
        for row in sorted(rows, key=repr)
    )
