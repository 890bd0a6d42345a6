"""An explanation: for people as text and tables, for machines as objects, and as an SQL script."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from datalog.analysis import atoms_of
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    OpaqueView,
    Predicate,
    Program,
    Row,
    Rule,
    ViewDefinition,
)
from datalog.sql import select, select_above, text
from datalog.syntax import show
from selfmaint.api.explanation import Explanation, Supply, Tested
from selfmaint.decide.pairs import Counterexample
from selfmaint.decide.verdict import SelfMaintainable, Undecided, unknown_facts
from selfmaint.report.values import Json, cell, json_row, json_rows, shown_row, table
from selfmaint.report.verdicts import because
from selfmaint.warehouse.catalog import View


def explanation_sql(explanation: Explanation) -> str:
    """The counterexample as Spark SQL that needs no table; a comment where there is none."""
    found = explanation.counterexample
    if found is None:
        return f"-- no counterexample: the verdict is {explanation.verdict.kind}"
    return script(explanation, found)


def render(explanation: Explanation, *, verbose: bool = False) -> Group:
    """The explanation for a terminal; with every reason if `verbose`."""
    name, semantics = _named(explanation.view), explanation.verdict.semantics
    kind = "" if semantics is None else f", as a {semantics.value}"
    parts: list[RenderableType] = [
        cell(f"{name}: {_HEADLINES[explanation.verdict.kind]}{kind}", "bold"),
        cell(_defined(explanation)),
        Text(),
    ]
    if explanation.view.unchanging:
        return Group(*parts, cell(explanation.view.unchanging))
    if isinstance(explanation.verdict, SelfMaintainable) and explanation.verdict.is_computed:
        return Group(*parts, cell(explanation.verdict.computed_from))
    is_text = isinstance(explanation.view.definition, OpaqueView)
    if isinstance(explanation.verdict, SelfMaintainable) and is_text and explanation.verdict.remarks:
        return Group(*parts, *map(cell, explanation.verdict.remarks))
    if isinstance(explanation.verdict, Undecided):
        parts += [cell(because(explanation.verdict, verbose=verbose)), Text()]
    if explanation.counterexample is not None:
        parts += [*_counterexample(explanation, explanation.counterexample), Text()]
    if explanation.settled_by:
        parts += [
            cell(f"one of these reads would settle {_in_question(explanation)}:", "bold"),
            *_reads(explanation),
            Text(),
        ]
    if explanation.is_searched:
        parts.append(cell("found by a search among all databases that explain what is known", "bold"))
    if explanation.verdict.near is not None:
        parts.append(cell(f"the search looked at {explanation.verdict.near}"))
    else:
        parts += [*_ruled_out(explanation)]
        if explanation.tested or not (explanation.is_searched or isinstance(explanation.verdict, Undecided)):
            parts += _tested(explanation.tested)
    if explanation.supplies:
        parts += [Text(), _supplies(explanation)]
    return Group(*parts)


def _in_question(explanation: Explanation) -> str:
    """What a read settles: the witness whose databases are shown, or what may or may not be there."""
    verdict = explanation.verdict
    first = () if isinstance(verdict, SelfMaintainable) else next(iter(unknown_facts(verdict.witnesses)), ())
    if explanation.counterexample is not None or not first:
        return "the first witness"
    return f"whether there is {' and '.join(show(fact) for fact in first)}"


def _named(view: View) -> str:
    return view.name if view.rule_of is None else f"{view.rule_of[0]}, {view.part}"


def _defined(explanation: Explanation) -> str:
    """The rules of a view, its definition, or its text where that alone is known, or is what it is computed by."""
    view, verdict = explanation.view, explanation.verdict
    is_text = isinstance(view.definition, OpaqueView) or (
        isinstance(verdict, SelfMaintainable) and verdict.is_computed
    )
    if is_text and view.definition is not None and view.definition.text:
        return view.definition.text.strip()
    if isinstance(view.definition, ViewDefinition) and (view.is_more_than_rules or view.unchanging):
        return show(view.definition).strip()
    if len(explanation.rules) > 1:
        return "\n".join(show(rule).strip() for rule in explanation.rules)
    return show(Rule(Atom(view.stored_in, view.rule.head.terms), view.rule.body)).strip()


_HEADLINES = {
    "yes": "self-maintainable: every database that explains what is known gives one new state",
    "no": "not self-maintainable: two databases explain what is known and give different new states",
    "undecided": "undecided",
}


def _counterexample(explanation: Explanation, found: Counterexample) -> Iterator[RenderableType]:
    scope = "the two databases, whole" if found.complete else "the facts of the two databases that matter"
    none: frozenset[Row] = frozenset()
    rows = (
        (
            name,
            _rows(found.first.get(name, none)),
            _second(found.first.get(name, none) - found.removed.get(name, none), found.added.get(name, none)),
            _change(found, name),
        )
        for name in dict.fromkeys((*found.first, *found.added, *found.inserted, *found.deleted))
    )
    yield table(scope, ["relation", "first database", "second database", "the update"], [], rows, lines=True)
    row = found.row[:-1] if explanation.view.is_counted else found.row
    yield cell(
        f"after the update, `{explanation.view.stored_in.name}` has the row {shown_row(row)} on the second "
        "database, and not on the first; both were evaluated again"
    )


def _second(kept: frozenset[Row], added: frozenset[Row]) -> Text:
    return Text("\n").join([cell(_rows(kept))] * bool(kept) + [cell(_rows(added), "bold")] * bool(added))


def _rows(rows: Iterable[Row]) -> str:
    return "\n".join(sorted(shown_row(row) for row in rows))


def _change(found: Counterexample, name: str) -> str:
    inserted = [f"+ {shown_row(row)}" for row in found.inserted.get(name, ())]
    deleted = [f"- {shown_row(row)}" for row in found.deleted.get(name, ())]
    return "\n".join([*sorted(inserted), *sorted(deleted)])


def _reads(explanation: Explanation) -> Iterator[RenderableType]:
    for relation, columns in explanation.settled_by:
        keys = f"for keys ({', '.join(columns)})" if columns else "whole"
        yield cell(f"  {relation}, {keys}")


def _ruled_out(explanation: Explanation) -> Iterator[RenderableType]:
    if explanation.ruled_out:
        yield cell("what cannot be unknown, whatever the data:", "bold")
    for entry in explanation.ruled_out:
        facts = [show(a) for a in entry.subgoals]
        facts += [f"a referenced row {show(a)}" for a in entry.referenced]
        yield cell(f"  {' and '.join(facts)}: {entry.view.shown} would have a row that it does not store")


def _tested(tested: Iterable[Tested]) -> Iterator[RenderableType]:
    entries = list(tested)
    if not entries:
        yield cell("nothing was left to ask of the data: the rules alone decide", "bold")
        return
    yield cell("what could be unknown, as far as the rules tell, and what the data says:", "bold")
    for entry in entries:
        columns = ", ".join(f"{v.variable} in `{v.relation}.{v.column}`" for v in entry.fresh)
        fresh = f" (with any value for {columns})" if columns else ""
        facts = " and ".join(map(show, entry.subgoals))
        yield cell(f"  {facts}{fresh}: {'possible' if entry.fails else 'impossible'}")


def _supplies(explanation: Explanation) -> Table:
    rows = (
        (shown_row(row), "\n".join(show(s.fact) for s in found), "\n".join(_sources(s) for s in found))
        for row, found in explanation.supplies.items()
    )
    title = "gained rows, and where their facts come from"
    return table(title, ["gained row", "fact", "known from"], [], rows, lines=True)


def _sources(supply: Supply) -> str:
    return ", ".join(show(atom) for atom in supply.sources[:1])


def _part(view: View) -> dict[str, Json]:
    """Which rule of a union, or what part of a view with LEFT JOINs, it is about."""
    match view.rule_of:
        case None:
            return {}
        case (_, int() as number):
            return {"rule": number}
        case (_, part):
            return {"part": part}


def explanation_json(explanation: Explanation) -> Json:
    """`{view, rule, verdict, reasons, counterexample, settled_by, ruled_out, tested, gained}`."""
    found = explanation.counterexample
    verdict = explanation.verdict
    return {
        "view": explanation.view.stored_in.name,
        **_part(explanation.view),
        "verdict": verdict.kind.value,
        "reasons": list(verdict.reasons) if isinstance(verdict, Undecided) else [],
        "counterexample": None if found is None else _counterexample_json(explanation, found),
        "settled_by": [{"relation": r, "keys": list(columns)} for r, columns in explanation.settled_by],
        "ruled_out": [
            {
                "subgoals": [show(a) for a in entry.subgoals],
                "referenced": [show(a) for a in entry.referenced],
                "view": entry.view.stored_in.name,
            }
            for entry in explanation.ruled_out
        ],
        "tested": [
            {
                "subgoals": [show(a) for a in entry.subgoals],
                "fresh": [
                    {"variable": v.variable.name, "relation": v.relation, "column": v.column}
                    for v in entry.fresh
                ],
                "test": show(entry.test),
                "fails": entry.fails,
            }
            for entry in explanation.tested
        ],
        "gained": [
            {
                "row": json_row(row),
                "facts": [{"fact": show(s.fact), "from": [show(a) for a in s.sources]} for s in found_],
            }
            for row, found_ in (explanation.supplies if isinstance(verdict, SelfMaintainable) else {}).items()
        ],
    }


def _counterexample_json(explanation: Explanation, found: Counterexample) -> Json:
    def tables(rows: Mapping[str, frozenset[Row]]) -> Json:
        return {name: json_rows(part) for name, part in rows.items()}

    return {
        "row": json_row(found.row),
        "complete": found.complete,
        "first": tables(found.first),
        "added": tables(found.added),
        "removed": tables(found.removed),
        "inserted": tables(found.inserted),
        "deleted": tables(found.deleted),
        "sql": script(explanation, found),
    }


def script(explanation: Explanation, found: Counterexample) -> str:
    """Four queries that need no table: each carries its database's rows.

    The first two give the same rows, those that the warehouse stores; the last two differ.
    """
    if not explanation.rules and not explanation.definitions and explanation.view.is_more_than_rules:
        return "-- the query of the view, or of one that it reads, is kept as text: it is not printed over these rows"
    parts = []
    for after in (False, True):
        for second in (False, True):
            when, which = ("after" if after else "before"), ("second" if second else "first")
            parts.append(f"-- the view {when} the update, on the {which} database")
            parts.append(f"{_query(explanation, found.database(second, after))};")
    return "\n".join(parts)


def _query(explanation: Explanation, database: Mapping[str, frozenset[Row]]) -> str:
    view = explanation.view
    if explanation.definitions:
        return _of_definitions(explanation.definitions, database)
    rules = explanation.rules or (Rule(Atom(view.stored_in, view.head.terms), (*view.body, *view.filters)),)
    program = Program(rules)
    relations = {atom.predicate: atom.arity for rule in program.rules for atom in rule.atoms}
    facts = (rule for predicate, arity in relations.items() for rule in _facts(predicate, arity, database))
    return text(select(Program((*program.rules, *facts)), view.stored_in, {}, columns=view.columns))


def _of_definitions(definitions: Sequence[ViewDefinition], database: Mapping[str, frozenset[Row]]) -> str:
    """The last of some views, over those before it and the rows of tables."""
    names = {one.name for one in definitions}
    literals = [literal for one in definitions for block in one.blocks for literal in block.core.body]
    atoms = [atom for literal in literals for atom in atoms_of(literal) if atom.predicate.name not in names]
    arities = {atom.predicate: atom.arity for atom in atoms}
    facts = {one: Program(tuple(_facts(one, arity, database))) for one, arity in arities.items()}
    return text(select_above(definitions, facts))


def _facts(predicate: Predicate, arity: int, database: Mapping[str, frozenset[Row]]) -> Iterator[Rule]:
    """A relation's rows as facts; an empty one as a rule that never holds."""
    rows = sorted(database.get(predicate.name, frozenset()), key=repr)
    for row in rows:
        yield Rule(Atom(predicate, tuple(Constant(value) for value in row)))
    if not rows:
        never = Comparison("=", Constant(1), Constant(0))
        yield Rule(Atom(predicate, tuple(Constant(None) for _ in range(arity))), (never,))
