"""Is what is given possible at all? The checks of `canonical.consistency`, run, with the culprits' rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from datalog.copies import replace
from datalog.diagnostics import Diagnostic
from datalog.model import ColumnType, Predicate, Version
from selfmaint.api.families import of_views, value_types
from selfmaint.api.file.file_settings import EngineKind
from selfmaint.api.platforms.platform import platform_of
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.canonical import all_contributions
from selfmaint.canonical.consistency import check_program, checks
from selfmaint.canonical.constraint_checks import Check
from selfmaint.engine.protocol import D, Facts
from selfmaint.errors import Code, InputError, input_error
from selfmaint.warehouse.base_relations import shown_rows
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    from selfmaint.api.verify import Difference

_GIVEN = {
    Version.INSERTED: "the update",
    Version.DELETED: "the update",
    Version.PRESENT: "the rows known to be there",
    Version.ABSENT: "the rows known to be absent",
    Version.FOUND: "its source",
}
"""Versions of a relation whose rows are given, and where they are."""

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

    `full` also asks whether any database explains all views, at the cost of recomputing them.

    Raises:
        InputError: SM201, SM202 a view's rows do not fit its rule; SM203 the views contradict each other or a
            partial copy; SM301 a row inserted and deleted; SM302 an effective update that cannot be;
            SM303 an update that breaks a key or foreign key.
    """
    engine = warehouse.engine
    require_alike(warehouse, facts)
    facts = replace(facts, not_null={}, dependencies={})  # what is promised is what is checked
    catalog, budget_s = warehouse.decision.catalog, warehouse.decision.budget_s
    wanted = checks(catalog, situation, warehouse.decision.contributions, full=full)
    kept = tuple(all_contributions(catalog)) if full else warehouse.decision.contributions
    program = check_program(catalog, situation, kept, wanted, full=full, budget_s=budget_s)
    asked = {check.goal: check for check in wanted if program.rules_for(check.goal)}
    broken = engine.nonempty(program, tuple(asked), facts)
    found, said = [], set[str | None]()
    both = {
        check.subject for goal, check in asked.items() if goal in broken and check.code is Code.BOTH_CHANGED
    }
    for goal, check in asked.items():
        # A row that is inserted and deleted breaks a promise either way: saying so is enough.
        is_said = check.once in said or (check.code is Code.CONTRADICTS and check.subject in both)
        if goal in broken and not is_said:
            said.update({check.once} - {None})
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


def require_explained(warehouse: Warehouse[D]) -> tuple[str, ...]:
    """Refuses views that contradict each other; gives those of which only a part of what they hold is compared.

    Compared whole are those that are decided exactly, and those of which other stored views tell all rows: these are
    computed from there.

    Raises:
        InputError: SM201 to SM203, see `require_possible`.
    """
    require_possible(warehouse, *warehouse.given(Update()), full=True)
    catalog, compared = warehouse.catalog, _compared_whole(warehouse)
    exact = {v.name for v in catalog.views if all(part.limitation is None for part in catalog.parts(v))}
    return tuple(v.name for v in catalog.views if v.name not in {*exact, *compared, *catalog.helpers})


def _compared_whole(warehouse: Warehouse[Any]) -> frozenset[str]:
    """The views of which others tell all rows; these are the stored ones."""
    from selfmaint.api.verify import contradictions  # noqa: PLC0415 - costs as much as recomputing

    differing, compared = contradictions(warehouse)
    if differing:
        raise InputError([_not_explained(warehouse.catalog, one) for one in differing])
    return compared


def _not_explained(catalog: Catalog, one: Difference) -> Diagnostic:
    columns = catalog.view(one.view).columns
    parts = [("lacks", one.missing), ("has", one.extra)]
    shown = "; ".join(f"it {verb} {shown_rows(columns, rows)}" for verb, rows in parts if rows)
    return Diagnostic(
        Code.NOT_EXPLAINED,
        f"the other views tell other rows of `{one.view}` than are stored: {shown}",
        hint="a view is stale or damaged: recompute the views that disagree from one state of the sources",
    )


def require_possible_update(
    warehouse: Warehouse[D], facts: Facts[D], situation: Situation, update: Update[D], *, full: bool = False
) -> None:
    """The same of an update, and refuses one that the store has already: no view may show a key that tells.

    Raises:
        InputError: those of `require_possible`; SM409.
    """
    require_new(warehouse, update)
    require_possible(warehouse, facts, situation, update.files, full=full)
    if full:
        _compared_whole(warehouse)


def require_new(warehouse: Warehouse[Any], update: Update[Any]) -> None:
    """Refuses an update that the store has already.

    Raises:
        InputError: SM409.
    """
    before = None if warehouse.store is None else warehouse.store.committed(update)
    if before is not None:
        raise input_error(
            Code.COMMITTED,
            f"this update was committed before, in snapshot {before}",
            "nothing is to be done; `as_of` (`--as-of`) looks at the state before it, `selfmaint history` lists them",
        )


def require_alike(warehouse: Warehouse[D], facts: Facts[D]) -> None:
    """Refuses rows whose types do not go together where none is declared: see `families`.

    Rows in memory have values of any type; of these, sums that depend on the order of adding are refused.

    Raises:
        InputError: SM104.
    """
    catalog, engine = warehouse.catalog, warehouse.engine
    if not any(kind.is_open for relation in catalog.relations.values() for kind in relation.types):
        return
    has_types = engine.name in set(EngineKind)

    def types(rows: Any, width: int) -> Sequence[ColumnType]:
        return platform_of(engine).types(rows) if has_types else value_types(rows, width)

    stored = {view.name: types(facts.relations[view.predicate], len(view.columns)) for view in catalog.views}
    found = of_views(catalog, stored)
    for predicate, rows in facts.relations.items():
        if predicate.version in _GIVEN:
            width = catalog.relations[predicate.name].arity
            found.add_rows(predicate.name, types(rows, width), _GIVEN[predicate.version])
    problems = found.problems if has_types else found.sums
    if problems:
        raise InputError(problems)


def _files_note(check: Check, files: Mapping[Predicate, str]) -> str | None:
    """The files of the update that a check's culprits are in."""
    read = {atom.predicate for rule in check.rules for atom in rule.atoms}
    found = sorted(path for part, path in files.items() if part in read)
    return f"in {' and '.join(f'`{path}`' for path in found)}" if found else None
