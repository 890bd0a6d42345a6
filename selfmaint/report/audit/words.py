"""Verdicts, examples and advice in words: what the table and the page say alike."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import assert_never

from datalog.model import Predicate, Row
from datalog.syntax import show
from selfmaint.audit.advice import Advice, Flip
from selfmaint.audit.changes import Kind
from selfmaint.audit.example import Always, Depends, Example, Outcome, Unclear
from selfmaint.audit.matrix import Line
from selfmaint.audit.needs import Loss, Need
from selfmaint.audit.proposals import NewForeignKey, NewKey, NewView, Proposal
from selfmaint.decide.verdict import sql_name
from selfmaint.report.values import shown_row
from selfmaint.warehouse.catalog import Catalog

MARKS = {"always": "✓", "depends": "?", "never": "✗", "undecided": "…"}
"""A sign for each verdict, so that colour is not the only one."""

CUT = "the budget was spent before all that could be added was tried (`--budget SECONDS` raises it)"
"""Said of advice that may lack something."""

HELPED = "to add: helpers, which tell its new rows; a lake keeps them (`helpers = true` in `[store]`)"
"""Said of a view that a lake could keep helpers for."""

HELPERS = "the lake keeps helpers, which tell its new rows"
"""Said of a view that a lake keeps helpers for."""

_CHANGES = {
    Kind.INSERT: "rows are inserted into",
    Kind.DELETE: "rows are deleted from",
    Kind.UPDATE: "rows are updated in",
    Kind.ANY: "anything happens to",
}


def proposal_text(proposal: Proposal) -> str:
    """A proposal as the language writes it."""

    def listed(names: tuple[str, ...]) -> str:
        return ", ".join(show(Predicate(name)) for name in names)

    match proposal:
        case NewKey():
            return f".decl {show(Predicate(proposal.relation))} ... key({listed(proposal.columns)})"
        case NewForeignKey():
            target = show(Predicate(proposal.target))
            return (
                f".decl {show(Predicate(proposal.relation))} ... foreign({listed(proposal.columns)}) "
                f"references {target}({listed(proposal.target_columns)})"
            )
        case NewView(rule=rule):
            return show(rule)
        case _:
            assert_never(proposal)


def proposal_lines(catalog: Catalog, proposal: Proposal) -> Iterator[str]:
    """A proposal in the language that the views are written in."""
    if not catalog.is_in_sql:
        yield proposal_text(proposal)
        return
    from selfmaint.api.printing.confirming import proposal_sql  # noqa: PLC0415 - which loads what reads SQL

    def listed(names: tuple[str, ...]) -> str:
        return ", ".join(map(sql_name, names))

    match proposal:
        case NewKey(relation, columns):
            kind = "UNIQUE" if catalog.relations[relation].keys else "PRIMARY KEY"
            yield f"CREATE TABLE {sql_name(relation)} (..., {kind} ({listed(columns)}))"
        case NewForeignKey(relation, columns, target, others):
            what = f"FOREIGN KEY ({listed(columns)}) REFERENCES {sql_name(target)} ({listed(others)})"
            yield f"CREATE TABLE {sql_name(relation)} (..., {what})"
        case NewView():
            name = sql_name(proposal.rule.head.predicate.name)
            if proposal.is_copy:
                declared = catalog.program.declaration(proposal.relation)
                every = "*" if declared is None or not declared.unread else listed(declared.column_names)
                yield f"CREATE VIEW {name} AS SELECT {every} FROM {sql_name(proposal.relation)}"  # noqa: S608 - to be read, not run
            else:
                yield f"CREATE VIEW {name} AS"
                yield from proposal_sql(catalog, proposal).splitlines()
        case _:
            assert_never(proposal)


def change_text(line: Line, kind: Kind) -> str:
    """A kind of change in words."""
    if line.relation is None:
        return "whatever changes, on all base relations at once"
    columns = f" ({', '.join(line.updated)})" if kind is Kind.UPDATE and line.updated else ""
    return f"when {_CHANGES[kind]} {line.relation}{columns}"


def reason(outcome: Outcome) -> str:
    """Why a verdict is what it is, in a sentence."""
    match outcome:
        case Always(tested=0):
            return "the definitions and constraints leave nothing in doubt"
        case Always(tested=tested):
            return f"{tested} ways of being in doubt are open, and no data that satisfies the constraints takes one"
        case Depends(unknown=unknown, is_never=is_never):
            facts = " and ".join(show(fact) for fact in unknown)
            which = (
                "whatever the data, each inserted row leaves it open whether" if is_never else "for some data"
            )
            return f"{which} {facts} may or may not exist"
        case Unclear(reasons=reasons):
            return "; ".join(reasons)
        case _:
            assert_never(outcome)


def needs_text(needs: tuple[Need, ...]) -> str:
    """The smallest sets of readable relations: `lineitem` or `part + supplier`."""
    return " or ".join(" + ".join(need.relations) for need in needs)


def example_lines(example: Example) -> Iterator[str]:
    """An example in a few lines."""
    contents = {name: list(rows.elements()) for name, rows in example.contents.items()}
    yield f"the views hold: {_rows_text(contents) or 'nothing'}"
    if example.present:
        yield f"known to be there: {_rows_text(example.present)}"
    changes = [f"+ {_rows_text(example.inserted)}"] if example.inserted else []
    changes += [f"- {_rows_text(example.deleted)}"] if example.deleted else []
    yield f"the update: {'; '.join(changes)}"
    names = dict.fromkeys((*example.first, *example.second))
    none: frozenset[Row] = frozenset()
    pairs = {name: (example.first.get(name, none), example.second.get(name, none)) for name in names}
    yield f"two databases explain that; both have: {_rows_text({n: a & b for n, (a, b) in pairs.items()}) or 'nothing'}"
    yield f"one has besides: {_rows_text({n: a - b for n, (a, b) in pairs.items()}) or 'nothing'}"
    yield f"the other has besides: {_rows_text({n: b - a for n, (a, b) in pairs.items()}) or 'nothing'}"
    rows = ", ".join(shown_row(row) for row in example.difference)
    yield f"so after the update `{example.view}` has {rows} in one case only"


def _rows_text(relations: Mapping[str, Collection[Row]]) -> str:
    return ", ".join(
        f"{name}{shown_row(row)}" for name, rows in relations.items() for row in sorted(rows, key=repr)
    )


def advice_lines(catalog: Catalog, advice: Advice) -> Iterator[str]:
    """What to add, and what it does."""
    yield from (line for proposal in advice.proposals for line in proposal_lines(catalog, proposal))
    yield effect_text(advice)


def effect_text(advice: Advice) -> str:
    """What a piece of advice turns to "always", and what it costs."""
    if advice.settles:
        others = sorted({flip.view for flip in advice.flips} - {advice.view})
        does = f"then `{advice.view}` is always self-maintainable"
        does += f", and more of {', '.join(others)}" if others else ""
    else:
        shown = ", ".join(flip_text(flip) for flip in advice.flips)
        does = f"then always: {shown}"
    rows = advice.stored_rows
    stores = "" if not rows else f"; stores at most {rows:,} rows"
    return does + stores


def flip_text(flip: Flip) -> str:
    """A verdict that becomes "always"."""
    return (
        f"{flip.view} after any change"
        if flip.relation is None
        else (f"{flip.view} after {flip.kind.value} on {flip.relation}")
    )


def loss_lines(loss: Loss) -> Iterator[str]:
    """Whether some relations can be lost."""
    lost = " and ".join(f"`{name}`" for name in loss.lost)
    if not loss.broken:
        yield f"without {lost}: nothing breaks; every view can always follow, the other relations readable"
        return
    if not loss.by_others:
        yield f"without {lost}: nothing breaks as long as it no longer changes (dropped, archived)"
    else:
        yield f"without {lost}: something breaks"
    for one in loss.broken:
        where = f"`{one.changed}`" if one.changed else "several relations at once"
        yield f"  `{one.view}` cannot always follow changes of {where}: {reason(one.outcome)}"
