"""Whether a source is right after the update, right before it, or in neither state, by the rows that it gave.

Reads of base relations are sets of rows: equal rows of a table without a key are numbered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from datalog.diagnostics import Diagnostic
from datalog.model import NUMBER, Atom, Negation, Predicate, Program, Rule, Variable, Version
from selfmaint.canonical import row_atom
from selfmaint.decide.knowledge import Knowledge
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import Code, SourceError
from selfmaint.sources.between import Between
from selfmaint.sources.protocol import Read, Source
from selfmaint.warehouse.catalog import BaseRelation
from selfmaint.warehouse.situation import Situation

_BEFORE = frozenset({"new rows missing", "old rows there"})
"""Signs of a source that is not in the state after the update."""


CLASH = "it has other rows with the keys of inserted ones, and the update does not delete them"
"""What is said of a source that has them: it has moved, or the update lacks their deletion."""


OTHERS = "it has other rows with the keys of deleted ones, which the update does not insert"
"""The same of deleted rows, which were all that there were of their keys."""


def others_of_deleted(situation: Situation, relation: BaseRelation) -> Iterator[tuple[Atom | Negation, ...]]:
    """For each key bodies that rows found satisfy which have a deleted row's key, and are neither it nor inserted.

    There is none before an effective update, and none after it.
    """
    if not situation.effective or relation.name not in situation.deleted or relation.is_numbered:
        return
    row = row_atom(relation, Version.FOUND)
    known = [Version.DELETED, *([Version.INSERTED] if relation.name in situation.inserted else [])]
    for key in relation.keys:
        terms = tuple(t if i in key else Variable(f"Gone{i}") for i, t in enumerate(row.terms))
        gone = Atom(Predicate(relation.name, Version.DELETED), terms)
        yield (gone, row, *(Negation((row_atom(relation, version),)) for version in known))


def is_before(signs: frozenset[str]) -> bool:
    """Whether signs are of a source that is not in the state after the update."""
    return not signs.isdisjoint(_BEFORE)


def twins_of_deleted(signs: frozenset[str], situation: Situation) -> bool | None:
    """Whether each deleted row of a table without a key that was asked for has an equal one; None if none was.

    A deleted row that is not there tells nothing if the update may not be effective.
    """
    if "old copies missing" in signs and situation.effective:
        return False
    return True if "old copies there" in signs else None


def signs_of_state(known: Knowledge[D], relation: BaseRelation, asked: Sequence[Atom] = ()) -> frozenset[str]:
    """What the rows that a source gave (`Version.FOUND`) say of its state, in words.

    `asked` are the keys that were asked for, over the terms of its rows; none if all rows were.
    """
    row = row_atom(relation, Version.FOUND)
    rules: list[Rule] = []
    words: dict[Predicate, str] = {}

    def add(what: str, *body: Atom | Negation) -> None:
        goal = Predicate(relation.name, Version.PROBLEM, (len(rules),))
        words[goal] = what
        rules.append(Rule(Atom(goal, ()), (*asked, *body)))

    old: tuple[Negation, ...] = ()
    if relation.name in known.situation.deleted:
        gone = row_atom(relation, Version.DELETED)
        for body in others_of_deleted(known.situation, relation):
            add("others there", *body)
        add("old rows there", gone, row)
        add("old rows missing", gone, Negation((row,)))
        old = (Negation((gone,)),)
        if relation.is_numbered:  # the numbers of deleted rows are no source's
            copy = Atom(row.predicate, (*row.terms[:-1], Variable("Copy")))
            add("old copies missing", gone, Negation((copy,)))
            add("old copies there", gone, copy)
    if relation.name in known.situation.inserted:
        new = row_atom(relation, Version.INSERTED)
        add("new rows missing", new, Negation((row,)))
        add("new rows there", new, row)
        for key in relation.keys:
            terms = tuple(t if i in key else Variable(f"Other{i}") for i, t in enumerate(row.terms))
            other = Atom(row.predicate, terms)
            there = Atom(Predicate(relation.name, Version.DELETED), other.terms)
            kept = (Negation((there,)),) if old else ()
            add("a clash", new, Negation((row,)), other, *kept)
    found = known.engine.nonempty(Program(tuple(rules)), list(words), known.facts)
    return frozenset(words[goal] for goal in found)


def rows_after(
    known: Knowledge[D],
    relation: BaseRelation,
    signs: frozenset[str],
    of_keys: Callable[[D], D] = lambda rows: rows,
) -> D:
    """The rows that a source gave (`Version.FOUND`) as they are after the update.

    `of_keys` gives of some rows those that have the keys that were asked for.

    Raises:
        SourceError: SM402 the source is neither right before nor right after the update.
    """
    name, relations, situation = relation.name, known.facts.relations, known.situation
    rows = relations[Predicate(name, Version.FOUND)]
    if not is_before(signs) and "others there" not in signs:
        return rows
    _require_before(relation, situation, signs)
    if name in situation.deleted:
        rows = known.engine.minus(rows, relations[Predicate(name, Version.DELETED)])
    if name in situation.inserted:
        new = of_keys(relations[Predicate(name, Version.INSERTED)])
        rows = known.engine.union([rows, new])
    return rows


def found_after(
    held: Knowledge[D],
    relation: BaseRelation,
    columns: Sequence[int],
    keys: Predicate | None,
    earlier: frozenset[str],
) -> tuple[D, frozenset[str]]:
    """The rows found for some keys (`Version.FOUND`; all rows, if for none) as they are after the update.

    `earlier` are the signs that other reads of the source gave.

    Returns:
        The rows, and all signs so far.

    Raises:
        SourceError: SM402 the source is neither right before nor right after the update.
    """
    situation, engine, row = held.situation, held.engine, row_atom(relation, Version.FOUND)
    if relation.name not in situation.inserted | situation.deleted:
        return held.facts.relations[row.predicate], earlier
    asked = () if keys is None else (Atom(keys, tuple(row.terms[i] for i in columns)),)
    signs = signs_of_state(held, relation, asked) | earlier

    def of_keys(rows: D) -> D:
        return rows if keys is None else engine.bags.matching(rows, columns, held.facts.relations[keys])

    return engine.keep(rows_after(held, relation, signs, of_keys)), signs


def moved(relation: BaseRelation, why: str, note: str) -> SourceError:
    """That a source is in another state than the one after the update (SM402)."""
    return SourceError(
        [
            Diagnostic(
                code=Code.SOURCE_MOVED,
                message=f"`{relation.name}` is not in the state after the update: {why}",
                note=note,
                hint="read from a snapshot at the update's position, or include the later changes in the update; "
                "an earlier update that is missing comes first",
            )
        ]
    )


def _require_before(relation: BaseRelation, situation: Situation, signs: frozenset[str]) -> None:
    """Refuses a source that is not after the update, unless it is right before it."""
    gone = "old copies missing" if relation.is_numbered else "old rows missing"
    both = situation.effective and signs & {"new rows there", gone}
    if not both and signs.isdisjoint({"a clash", "others there"}) and relation.keys:
        return
    why = "some rows of the update are in it, and some are not"
    if "a clash" in signs:
        why = CLASH
    elif "others there" in signs:
        why = OTHERS
    elif not both:
        why = "the update is not in it, and without a key its rows may have twins"
    raise moved(
        relation,
        why,
        "a view is recomputed from its sources in the state right after the update, or right before it",
    )


def rows_of(
    engine: Engine[D], relation: BaseRelation, source: Source[D], key_columns: Sequence[str], keys: D | None
) -> tuple[D, Read]:
    """What a source gives of a base relation: see `Source.read`, and `datalog.rewrite.numbered` for the numbers.

    Rows that are equal but for their numbers are all read, or none: no source knows of the numbers.
    """
    if not relation.is_numbered:
        return source.read(relation.name, key_columns, keys)
    names = [name for name in key_columns if name != NUMBER]
    asked = keys
    if keys is not None and len(names) < len(key_columns):
        asked = _without_number(engine, keys, key_columns) if names else None
    rows, read = source.read(relation.name, names if asked is not None else [], asked)
    found = engine.keep(engine.bags.numbered(rows, 1, NUMBER))
    if keys is not None and asked is not keys:
        places = [relation.columns.index(name) for name in key_columns]
        found = engine.keep(engine.bags.matching(found, places, keys))
    return found, read


def rows_between(
    engine: Engine[D], relation: BaseRelation, source: Source[D], asked: Between
) -> tuple[D, Read]:
    """The same of rows with a value in some spans, or more: see `Source.read_between`."""
    rows, read = source.read_between(relation.name, asked)
    return (engine.keep(engine.bags.numbered(rows, 1, NUMBER)) if relation.is_numbered else rows), read


def _without_number(engine: Engine[D], keys: D, columns: Sequence[str]) -> D:
    """Keys without the numbers among them, each once."""
    terms = tuple(Variable(f"K{i}") for i in range(len(columns)))
    kept = [term for term, name in zip(terms, columns, strict=True) if name != NUMBER]
    given, goal = Predicate("numbered_keys"), Predicate("keys")
    rule = Rule(Atom(goal, tuple(kept)), (Atom(given, terms),))
    names = [name for name in columns if name != NUMBER]
    return engine.keep(
        engine.evaluate(Program((rule,)), goal, Facts({given: keys}, {}, frozenset({given})), names)
    )
