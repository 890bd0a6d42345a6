"""Following a view by keys: what changed tells which of its rows may differ, and these are computed anew.

    SELECT customer, count(*) FROM orders LEFT JOIN item ... GROUP BY customer
    changed orders and items  ->  their customers  ->  the orders and items of these  ->  the rows of these customers

The query itself is run, as it is written, over the base rows that matter; its rows with an affected key take the
place of the stored ones. Why that is right: `datalog/sql/affected/choice.py`.

Where the key is not shown, a view's change is what the query gives before and after the update:
see `datalog/sql/affected/choice.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from datalog.model import ANY, Predicate, Version
from datalog.sql.affected import Keyed, Step
from selfmaint.engine.protocol import D
from selfmaint.fallback.keyed_rows import KeyedDelta, KeyedRows, NotKnownError
from selfmaint.fallback.recompute import Recomputing
from selfmaint.fallback.states import moved
from selfmaint.maintain import Delta, difference
from selfmaint.warehouse.catalog import View


def follow(
    reader: KeyedRows[D],
    recomputing: Recomputing[D],
    view: View,
    how: Keyed,
    gives_one_result: Callable[[], bool] = lambda: True,
) -> KeyedDelta[D]:
    """A view's change.

    Where its query gives one result, the stored rows tell whether a source without a key has moved.

    Raises:
        TooManyKeysError: more keys would be read than are allowed.
        SourceError: a source that does not answer, or is in another state (SM402).
        InputError: SM404 a query that the engine refuses.
    """
    engine = reader.known.engine
    stored = reader.known.facts.relations[view.predicate]
    columns = engine.columns(stored) or view.columns
    names = tuple(columns[i] for i in how.key)
    keys = affected_keys(reader, how, names)
    if not engine.count(keys):
        return unchanged(reader, view, names)
    needed = needed_rows(reader, how, keys)
    new, old = (
        engine.keep(engine.bags.matching(rows, how.key, keys))
        for rows in (recomputing.evaluated(view, needed), stored)
    )
    if (untold := _untold(reader, how)) and gives_one_result():
        _, before = rows_both_times(reader, how, keys)
        was = engine.keep(engine.bags.matching(recomputing.evaluated(view, before), how.key, keys))
        other = difference(engine, view, was, old)
        if engine.count(other.gained) or engine.count(other.lost):
            why = f"what it has, without the update, does not give the stored rows of {view.shown}"
            relation = reader.known.catalog.relations[untold[0]]
            raise moved(relation, why, "without a key its rows may have twins")
    return by_keys(reader, view, how, keys, difference(engine, view, new, old))


def _untold(reader: KeyedRows[D], how: Keyed) -> list[str]:
    """The relations of whose sources stored rows tell the state: sums of doubles, hardly ever the same, do not."""
    relations = reader.known.catalog.relations
    read = {step.relation for step in how.steps}
    kinds = [kind for name in (*read, *how.whole) for kind in relations[name].types]
    is_exact = not any(kind == ANY or kind.name.is_floating for kind in kinds)
    return sorted(reader.untold & read) if is_exact else []


def unchanged(
    reader: KeyedRows[D], view: View, names: tuple[str, ...], of: str | None = None
) -> KeyedDelta[D]:
    """That nothing of a view changes, no key being affected."""
    nothing = reader.known.engine.empty(reader.known.facts.relations[view.predicate])
    return KeyedDelta(view.name, names, 0, (), (), Delta(nothing, nothing), of)


def by_keys(
    reader: KeyedRows[D], view: View, how: Keyed, keys: D, change: Delta[D], of: str | None = None
) -> KeyedDelta[D]:
    """A view's change with how it came about, for some affected keys."""
    engine = reader.known.engine
    relations = tuple(dict.fromkeys(step.relation for step in how.steps))
    names = tuple(
        dict.fromkeys(engine.columns(keys))
    )  # of columns that are equal, as of a join, one is named twice
    return KeyedDelta(view.name, names, engine.count(keys), relations, how.whole, change, of)


def affected_keys(reader: KeyedRows[D], how: Keyed, names: tuple[str, ...]) -> D:
    """The keys for which rows may differ, in columns of these names."""
    steps = {step.scan: step for step in how.steps}
    changed = reader.known.situation.inserted | reader.known.situation.deleted
    parts: list[D] = []
    for step in how.steps:
        if step.relation in changed:
            _back(reader, steps, step, reader.changed(step.relation), names, parts)
    if not parts:  # nothing changes that the view reads
        return reader.known.engine.load((), names, [ANY] * len(names))
    return reader.known.engine.keep(reader.known.engine.union(parts))


def _back(
    reader: KeyedRows[D],
    steps: Mapping[int, Step],
    step: Step,
    rows: D,
    names: tuple[str, ...],
    parts: list[D],
) -> None:
    """Adds the keys that lead to some rows of an occurrence."""
    for source, positions in step.sources:
        if source is None:
            parts.append(_key_of(reader, step, rows, names))
            continue
        before = steps[source]
        columns = reader.known.catalog.relations[before.relation].columns
        to = [columns[i] for i in positions]
        values = reader.values(step.relation, [rows], step.columns, to, known=True)
        found = reader.rows_of_either_state(before.relation, positions, values)
        _back(reader, steps, before, found, names, parts)


def _key_of(reader: KeyedRows[D], step: Step, rows: D, names: tuple[str, ...]) -> D:
    """The values of the key that some rows of an occurrence have."""
    if step.period is None:
        return reader.values(step.relation, [rows], step.columns, names, known=False)
    return reader.shown(step.relation, rows, step.columns[0], step.period, names)


def needed_rows(reader: KeyedRows[D], how: Keyed, keys: D, *, before: bool = False) -> dict[str, D]:
    """The rows after the update, or before it, that the view's rows of some keys depend on, by relation."""
    read = reader.rows_before if before else reader.rows
    found: dict[int, D] = {}
    relation_of = {step.scan: step.relation for step in how.steps}
    for step in how.steps:
        columns = reader.known.catalog.relations[step.relation].columns
        to = [columns[i] for i in step.columns]
        parts = [
            reader.renamed(keys, positions, to)
            if source is None
            else reader.values(relation_of[source], [found[source]], positions, to, known=True)
            for source, positions in step.sources
        ]
        asked = reader.known.engine.keep(reader.known.engine.union(parts)) if len(parts) > 1 else parts[0]
        found_by = step.columns
        if step.period is not None:
            found_by = step.columns[:1]
            asked = reader.within(step.relation, step.columns[0], step.period, asked)
        found[step.scan] = read(step.relation, found_by, asked)
    together: dict[str, list[D]] = {}
    for scan, rows in found.items():
        together.setdefault(relation_of[scan], []).append(rows)
    engine = reader.known.engine
    needed = {
        name: parts[0] if len(parts) == 1 else engine.keep(engine.union(parts))
        for name, parts in together.items()
    }
    return {**needed, **{name: reader.whole(name) for name in how.whole}}


def rows_both_times(reader: KeyedRows[D], how: Keyed, keys: D) -> tuple[dict[str, D], dict[str, D]]:
    """What rows of some keys depend on, after and before the update; what does not change is the same in both."""
    engine, changes = reader.known.engine, reader.known.facts.relations
    new, old = (needed_rows(reader, how, keys, before=before) for before in (False, True))
    situation = reader.known.situation
    for name in set(new) & (situation.inserted | situation.deleted):
        after, before = new[name], old[name]
        kept, stayed = after, before
        if name in situation.inserted:
            kept = engine.minus(after, changes[Predicate(name, Version.INSERTED)])
        if name in situation.deleted:
            stayed = engine.minus(before, changes[Predicate(name, Version.DELETED)])
        new[name] = engine.keep(engine.union([after, stayed]))
        old[name] = engine.keep(engine.union([before, kept]))
    same = set(new) - situation.inserted - situation.deleted
    both = {name: engine.keep(engine.union([new[name], old[name]])) for name in same}
    return {**new, **both}, {**old, **both}


def differ(reader: KeyedRows[D], recomputing: Recomputing[D], view: View, how: Keyed) -> KeyedDelta[D]:
    """A view's change.

    The update is effective, and the view keeps equal rows.

    Raises:
        NotKnownError: a row that goes is not stored as it is computed now.
        TooManyKeysError: more keys would be read than are allowed.
        SourceError: a source that does not answer, or is in another state (SM402).
        InputError: SM404 a query that the engine refuses.
    """
    engine = reader.known.engine
    root = next((step for step in how.steps if step.sources[0][0] is None), None)
    if root is None:
        return unchanged(reader, view, ())
    relation = reader.known.catalog.relations[root.relation]
    names = tuple(relation.columns[i] for i in root.columns)
    keys = affected_keys(reader, how, names)
    if not engine.count(keys):
        return unchanged(reader, view, names, root.relation)
    new, old = (
        engine.keep(recomputing.evaluated(view, needed)) for needed in rows_both_times(reader, how, keys)
    )
    change = difference(engine, view, new, old)
    stored = reader.known.facts.relations[view.predicate]
    if engine.count(engine.keep(engine.minus_all(change.lost, stored))):
        raise NotKnownError(
            "its stored rows are not those that its query gives now for the state before the update"
        )
    return by_keys(reader, view, how, keys, change, root.relation)
