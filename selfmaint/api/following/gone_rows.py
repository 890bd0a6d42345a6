"""Verdicts and changes of views that lose the rows of what is deleted (`datalog/sql/affected/gone_rows.py`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from datalog.model import Atom, OpaqueView, Predicate, Program, Rule, TextQuery, Variable, Version
from datalog.sql.affected import Query, shown_key, tables_read
from selfmaint.api.columns import is_stored_as
from selfmaint.api.following.how_followed import as_written, query_of, tables_of
from selfmaint.api.following.over_views import gives_one_result
from selfmaint.api.platforms.platform import platform_of
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.verdict import SelfMaintainable, Undecided, Verdict
from selfmaint.engine.protocol import D, Facts
from selfmaint.maintain import Delta
from selfmaint.warehouse.catalog import Catalog, View

GONE = "each of its rows is of one row of a relation from which rows go, and shows its key"
"""Why there is one new state."""

_GIVEN, _KEYS = Predicate("given", Version.STEP), Predicate("keys", Version.STEP)


def with_gone_rows(known: Knowledge[D], verdicts: Mapping[str, Verdict]) -> dict[str, Verdict]:
    """The verdicts, where views are decided by the keys of what is deleted."""
    found, situation = dict(verdicts), known.situation
    if not situation.effective or not situation.deleted:
        return found
    for view in known.catalog.views:
        verdict = found.get(view.name)
        query = _query(known.catalog, view) if isinstance(verdict, Undecided) else None
        if query is None:
            continue
        changed = tables_read(query) & (situation.inserted | situation.deleted)
        keys = {name: shown_key(query, name) for name in sorted(changed - situation.inserted)}
        shown = {name: its for name, its in keys.items() if its is not None}
        if changed and shown.keys() == changed and _are_stored_alike(known, view, shown):
            delta = partial(_delta, known, view, shown)
            found[view.name] = SelfMaintainable(view.name, (GONE,), view.semantics, delta=delta)
    return found


def relations_shown(catalog: Catalog, view: View) -> frozenset[str]:
    """The relations of which a view that is not decided loses the rows of what is deleted."""
    query = _query(catalog, view)
    if query is None:
        return frozenset()
    return frozenset(name for name in tables_read(query) if shown_key(query, name) is not None)


def _query(catalog: Catalog, view: View) -> Query | None:
    """The query over base relations of a view that is not decided; None if its shape, or its result, is not one."""
    text = view.definition.query if isinstance(view.definition, OpaqueView) else None
    if view.is_decided or (isinstance(view.definition, OpaqueView) and not isinstance(text, TextQuery)):
        return None
    query = as_written(catalog, view, tables_of(catalog.relations)) or query_of(catalog, view)
    is_one = text is None or gives_one_result(catalog, text)
    return query if query is not None and is_one and tables_read(query) <= catalog.relations.keys() else None


def _places(known: Knowledge[D], view: View, key: Mapping[int, str]) -> dict[int, int]:
    """Where the columns of a key are stored, by their positions in the relation; without those that are not."""
    names = known.engine.columns(known.facts.relations[view.predicate])
    stored = {name.casefold(): place for place, name in enumerate(names)}
    return {position: stored[output] for position, output in key.items() if output in stored}


def _are_stored_alike(known: Knowledge[D], view: View, shown: Mapping[str, Mapping[int, str]]) -> bool:
    """Whether keys are stored as the relations have them."""
    found = [(known.catalog.relations[name].types, _places(known, view, key)) for name, key in shown.items()]
    if any(len(places) < len(key) for (_, places), key in zip(found, shown.values(), strict=True)):
        return False
    types = platform_of(known.engine).types(known.facts.relations[view.predicate])
    return all(
        is_stored_as(types[place], declared[position])
        for declared, places in found
        for position, place in places.items()
    )


def _delta(known: Knowledge[D], view: View, shown: Mapping[str, Mapping[int, str]]) -> Delta[D]:
    """The view's change, held by the engine: a row that goes for several reasons goes once."""
    engine, stored = known.engine, known.facts.relations[view.predicate]
    parts: list[D] = []
    earlier: list[tuple[list[int], D]] = []
    for name, key in shown.items():
        places = _places(known, view, key)
        keys = _keys(known, name, tuple(places))
        gone = engine.bags.matching(stored, list(places.values()), keys)
        for columns, others in earlier:
            gone = engine.minus_all(gone, engine.bags.matching(gone, columns, others))
        parts.append(gone)
        earlier.append((list(places.values()), keys))
    lost = parts[0] if len(parts) == 1 else engine.bags.together(parts)
    return Delta(engine.empty(stored), engine.keep(lost))


def _keys(known: Knowledge[D], name: str, key: tuple[int, ...]) -> D:
    """The keys of the rows that go."""
    engine, columns = known.engine, known.catalog.relations[name].columns
    terms = tuple(Variable(f"X{i}") for i in range(len(columns)))
    rule = Rule(Atom(_KEYS, tuple(terms[i] for i in key)), (Atom(_GIVEN, terms),))
    rows = known.facts.relations[Predicate(name, Version.DELETED)]
    return engine.keep(
        engine.evaluate(Program((rule,)), _KEYS, Facts({_GIVEN: rows}), [columns[i] for i in key])
    )
