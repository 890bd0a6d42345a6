"""What was found for branches of unions, and for what views with LEFT JOINs are made of, as what it says of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from datalog.model import Predicate, Version
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided, Verdict, Verdicts
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.maintain import Delta
from selfmaint.warehouse.branches import as_shown
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.computed_columns import completed
from selfmaint.warehouse.outer_joins import recombined


def of_unions(catalog: Catalog, verdicts: Mapping[str, Verdict]) -> Verdicts:
    """The verdicts on views, from those on the branches of unions and on the other views.

    A union is determined if and only if every branch is: see `datalog.rewrite.branches`; a view with LEFT JOINs if and
    only if all that it is made of is: see `datalog.sql.views.outer.outer_joins`.
    """
    found = {name: [verdicts[part] for part in parts] for name, parts in _grouped(catalog, verdicts).items()}
    return Verdicts({n: _joined(n, its) if n in catalog.unions else its[0] for n, its in found.items()})


def _grouped(catalog: Catalog, names: Mapping[str, object]) -> dict[str, list[str]]:
    """The names by the views that they are of."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(catalog.whole(name), []).append(name)
    return found


def _joined(name: str, parts: Sequence[Verdict]) -> Verdict:
    witnesses = tuple(w for part in parts if not isinstance(part, SelfMaintainable) for w in part.witnesses)
    shown = [part for part in parts if isinstance(part, NotSelfMaintainable)]
    if shown:
        tested = tuple(witness for part in shown for witness in part.witnesses)
        found = (part.databases for part in shown if part.databases is not None)
        return NotSelfMaintainable(name, tested, databases=None if tested else next(found, None))
    open_parts = [part for part in parts if isinstance(part, Undecided)]
    if open_parts:
        reasons = dict.fromkeys(reason for part in open_parts for reason in part.reasons)
        return Undecided(name, tuple(reasons), witnesses, is_cut=any(part.is_cut for part in open_parts))
    sure = [part for part in parts if isinstance(part, SelfMaintainable)]
    remarks = dict.fromkeys(remark for part in sure for remark in part.remarks)
    return SelfMaintainable(name, tuple(remarks), exact=all(part.exact for part in sure))


def deltas_of_unions(
    catalog: Catalog, engine: Engine[D], facts: Facts[D], deltas: Mapping[str, Delta[D]]
) -> dict[str, Delta[D]]:
    """The changes of views, from those of the branches of unions and of the other views.

    Each row is gained, or lost, by every branch whose selection it satisfies, or by none: the sides stay disjoint.
    """
    found = {}
    for name, parts in _grouped(catalog, deltas).items():
        if name in catalog.outer:
            found[name] = _recombined(catalog, engine, facts, name, deltas)
            continue
        if name not in catalog.unions:
            (found[name],) = (deltas[part] for part in parts)
            continue
        its = _as_shown(catalog, engine, name, {part: deltas[part] for part in parts})
        stored = facts.relations[catalog.view(name).predicate]
        sides = ([one.gained for one in its], [one.lost for one in its])
        gained, lost = (engine.keep(engine.like(engine.union(side), stored)) for side in sides)
        found[name] = Delta(gained, lost)
    return found


def _as_shown(
    catalog: Catalog, engine: Engine[D], name: str, deltas: Mapping[str, Delta[D]]
) -> list[Delta[D]]:
    """The changes of branches, with what the union shows of them: casts that a number does not fit are errors."""
    found = []
    for branch, part in catalog.unions[name].items():
        change = deltas[part.name]
        if branch.shown:
            rows = Predicate(part.name, Version.STEP)
            made, types = as_shown(branch, part, rows, catalog.relations)
            sides = (change.gained, change.lost)
            change = Delta(
                *(engine.evaluate_view(made, Facts({rows: engine.keep(side)}), types) for side in sides)
            )
        found.append(change)
    return found


def _recombined(
    catalog: Catalog, engine: Engine[D], facts: Facts[D], name: str, deltas: Mapping[str, Delta[D]]
) -> Delta[D]:
    """The change of a view with LEFT JOINs, or with columns that are computed from its others."""
    view, outer = catalog.view(name), catalog.outer[name]
    program, before, after = recombined(name, outer)
    parts = [part.name for part in catalog.parts(view)]
    given = {Predicate(part, Version.GAINED): deltas[part].gained for part in parts}
    given |= {Predicate(part, Version.LOST): deltas[part].lost for part in parts}
    stored = facts.relations[view.predicate]
    columns = {before: view.columns, after: outer.plain_names}
    rows = engine.evaluate_all(program, columns, facts.extended(given))
    if outer.computed:
        every, types = completed(name, outer, after, catalog.relations)
        rows = {**rows, after: engine.evaluate_view(every, Facts({after: engine.keep(rows[after])}), types)}
    old, new = (engine.keep(engine.like(rows[one], stored)) for one in (before, after))
    return Delta(engine.keep(engine.minus(new, old)), engine.keep(engine.minus(old, new)))
