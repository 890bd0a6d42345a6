"""What decides and maintains a view, as Spark SQL to ship with an ETL job. Needs neither data nor Spark.

The tables: a view's rows are in the table that the warehouse file names for it, else in one named like the
view; an update's rows in `RELATION_inserted` and `RELATION_deleted`; a partial copy's in `RELATION_present`
and `RELATION_absent`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from datalog.budget import BudgetSpentError, limit
from datalog.copies import replace
from datalog.model import Predicate, Program, Rule, Version, with_flag
from datalog.rewrite import drop_unreachable, drop_unused_columns, held_apart, minimised, simplify
from datalog.rewrite.lookups import Held
from datalog.sql import Query, Table, held_table, read_set, select, select_table, stands_alone, text
from datalog.sql.names import casefolded, plain_name, unique
from datalog.syntax import show
from selfmaint.api.file.toml_tables import dotted
from selfmaint.api.following.not_maintained import uncountable
from selfmaint.api.following.over_views import what_is_below
from selfmaint.api.following.shown_rows import UNSURE, shown_rows_of
from selfmaint.api.printing.group_statements import (
    bag_statements,
    counted_rows,
    group_statements,
    open_groups,
)
from selfmaint.api.printing.implied_tests import without_implied
from selfmaint.api.printing.over_statements import ITSELF, over_statements, tells_itself
from selfmaint.api.printing.part_statements import part_changes, part_statements
from selfmaint.api.printing.printed import Statement, StatementKind, Statements
from selfmaint.api.printing.shown_statements import UNLIKE, has_like_columns, shown_statements
from selfmaint.api.printing.unmatched_statements import unmatched_statements
from selfmaint.decide.anti_joins import UnmatchedRows, anti_join_of
from selfmaint.decide.decision import Decision
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.open_groups import UNCOUNTABLE
from selfmaint.decide.procedure import NO_TWO_DATABASES
from selfmaint.decide.selftest import DependsRules, compact_program
from selfmaint.engine.plans import demanded_apart
from selfmaint.fallback.probes import Probe, options, roughly
from selfmaint.maintain import gained, lost
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.near import require_known
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    from selfmaint.api.warehouse import Warehouse


def tables_of(catalog: Catalog, names: Mapping[str, str]) -> dict[Predicate, Table]:
    """Where the statements expect the rows of views, update and partial copies.

    Of a view that keeps duplicates the rows are those of `BAG`; its own predicate is the temporary view of counted rows
    that the first statements make, and `STEP` the table of its changes.
    """
    found = {}
    for view in catalog.views:
        name = _parts(names[view.name]) if view.name in names else (view.name,)
        at = view.predicate.of(Version.BAG) if view.is_counted else view.predicate
        found[at] = Table(name, view.stored_columns, catalog.not_null(view))
    taken = {table.name[-1].casefold() for table in found.values()}

    def unused(plain: str) -> tuple[str]:
        while plain.casefold() in taken:
            plain += "_"
        taken.add(plain.casefold())
        return (plain,)

    for view in catalog.views:
        if view.is_counted:
            more = catalog.not_null(view) | {len(view.stored_columns)}
            found[view.predicate] = Table(unused(f"{view.name}_counted"), view.columns, more)
            columns = with_flag(view.columns)
            found[view.predicate.of(Version.STEP)] = Table(unused(f"{view.name}_changes"), columns)
        elif not view.is_decided:
            columns = with_flag(view.stored_columns)
            found[view.predicate.of(Version.STEP)] = Table(unused(f"{view.name}_changes"), columns)
    for whole, parts in catalog.unions.items():
        for number, (branch, part) in enumerate(parts.items()):
            columns = branch.selection.columns
            found[part.predicate] = Table(unused(f"{whole}_{number}"), columns, catalog.not_null(part))
    for whole in catalog.unions:
        columns = with_flag(catalog.view(whole).columns)
        found[Predicate(whole, Version.STEP)] = Table(unused(f"{whole}_changes"), columns)
    for relation in catalog.relations.values():
        not_null = frozenset(range(relation.arity)) - relation.nullable
        for version in (Version.INSERTED, Version.DELETED, Version.PRESENT, Version.ABSENT):
            name = unused(f"{relation.name}_{version.value}")
            found[Predicate(relation.name, version)] = Table(name, relation.columns, not_null)
    return found


def _parts(name: str) -> tuple[str, ...]:
    """The parts of a table's name as Spark reads it: `catalog.database.table`, each perhaps in backticks."""
    pieces = re.findall(r"`((?:[^`]|``)*)`|([^`.]+)", name)
    return tuple(quoted.replace("``", "`") or plain for quoted, plain in pieces)


def printed(decision: Decision, view: str, situation: Situation, tables: Mapping[str, str]) -> Statements:
    """The statements of a view; the decision's budget bounds finding and writing them, too.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    chosen = decision.catalog.view(view)
    found: tuple[Statement, ...] = ()
    undecided = not_printed(decision.catalog, chosen, situation)
    try:
        with limit(decision.budget_s, f"writing the statements of `{view}`"):
            found = statements(decision, chosen, situation, tables_of(decision.catalog, tables))
    except BudgetSpentError as spent:
        undecided = str(spent)
    said = f"these changes do not change `{view}`" if undecided is None and not found else ""
    return Statements(view, found, undecided, chosen.unchanging or said)


def any_change(
    catalog: Catalog, inserted: Iterable[str], deleted: Iterable[str], known: Situation
) -> Situation:
    """The named changes, or any if none is named, with what is known besides.

    Raises:
        InputError: SM102 a misspelt relation.
    """
    gaining, losing = frozenset(inserted), frozenset(deleted)
    require_known(sorted(gaining | losing), catalog.relations, "base relation")
    if not gaining and not losing:
        gaining = losing = frozenset(catalog.relations)
    return replace(known, inserted=gaining, deleted=losing)


def statements(
    decision: Decision, view: View, situation: Situation, tables: Mapping[Predicate, Table]
) -> tuple[Statement, ...]:
    """The test, probe and maintenance statements of a view in a situation.

    Returns:
        Tests, then probes, then the rows gained and lost, or what changes the view's table; only those that can have
        a row. Before them what counts the rows of the views that keep duplicates and that they read.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    catalog = decision.catalog
    if not_printed(catalog, view, situation) is not None:
        return ()
    is_limited = any(not part.is_decided for part in catalog.parts(view))
    if is_limited and (below := what_is_below(catalog, view)):
        return _with_rows(
            catalog.apart, tuple(over_statements(catalog, view, below, situation, tables)), tables
        )
    if is_limited and (shown := shown_rows_of(catalog, view)):
        return tuple(shown_statements(view, shown, situation, tables))
    if view.name in catalog.unions:
        found = _of_parts(Decision(catalog.apart, decision.budget_s), view, situation, tables)
        return _with_rows(catalog.apart, tuple(found), tables)
    anti = anti_join_of(view)
    if anti is not None:
        return tuple(unmatched_statements(UnmatchedRows(catalog, view, anti), situation, tables))
    asked = [*_tests(decision, view, situation), *_probes(decision, view, situation)]
    changes: tuple[Statement, ...] = ()
    if isinstance(view, GroupedView):
        change = bag_statements if view.is_counted else group_statements
        changes = tuple(change(decision, view, situation, tables))
    else:
        asked += _deltas(decision, view, situation)
    return _with_rows(catalog, (*_queries(view, asked, tables), *changes), tables)


def _of_parts(
    decision: Decision, view: View, situation: Situation, tables: Mapping[Predicate, Table]
) -> Iterator[Statement]:
    """The statements of a view that is made of parts: the tests of these, then what changes its table."""
    parts = decision.catalog.unions[view.name].values()
    asked = [one for part in parts for one in _tests(decision, part, situation)]
    asked += [one for part in parts for one in _probes(decision, part, situation)]
    yield from _queries(view, asked, tables)
    for part in parts:
        if isinstance(part, GroupedView):
            yield from open_groups(decision, part, situation, tables)
    yield from part_changes(decision, view, situation, tables)


def _with_rows(
    catalog: Catalog, found: tuple[Statement, ...], tables: Mapping[Predicate, Table]
) -> tuple[Statement, ...]:
    """The statements, before them what makes rows readable that they read, and that are stored in other tables."""
    read = {name for statement in found for name in statement.reads}
    parts = [made for name, made in part_statements(catalog, tables).items() if name in read]
    bags = [v for v in catalog.views if v.is_counted and dotted(tables[v.predicate].name) in read]
    return (*parts, *(counted_rows(bag, tables) for bag in bags), *found)


def not_printed(catalog: Catalog, view: View, situation: Situation) -> str | None:
    """Why no statements for a view would be right in a situation; None if there are some."""
    if anti_join_of(view) is not None:
        return None if situation.effective else UNCOUNTABLE
    parts = catalog.parts(view)
    limited = next((part for part in parts if not part.is_decided), None)
    if limited is None:
        return UNCOUNTABLE if uncountable(parts, situation) and not view.always_empty else None
    if (below := what_is_below(catalog, view)) is not None:
        return ITSELF if tells_itself(catalog, view, below) else None
    if (shown := shown_rows_of(catalog, view)) is not None:
        if shown.table.name in situation.deleted and not situation.effective:
            return UNSURE
        return None if has_like_columns(view, shown) else UNLIKE
    if view.name in catalog.summands or view.name in catalog.grouped_summands:
        return f"{limited.limitation}: `check` decides each of its queries for itself, which is not printed"
    return f"{limited.limitation}; its deltas cannot be computed from the views alone"


class _Asked(Struct, frozen=True):
    """A query before it is written: see `Statement`; `columns` are the names of its own, if its goal has any."""

    kind: StatementKind
    goal: Predicate
    about: str
    program: Program
    columns: tuple[str, ...]
    exact: bool | None = None


def _tests(decision: Decision, view: View, situation: Situation) -> Iterator[_Asked]:
    every = decision.depends(view, situation)
    doubts = {rules.goal: _doubts(decision, view, situation, rules.new_facts) for rules in every}
    needed = without_implied(every, [not doubts[rules.goal] for rules in every])
    program = minimised(compact_program(decision.support(situation), needed))
    asked = [rules for rules in needed if program.rules_for(rules.goal)]
    exact = not any(doubts[rules.goal] for rules in asked)
    for rules in asked:
        doubt = doubts[rules.goal]
        names = tuple(variable.name.lower() for variable in rules.new_facts.bound)
        about = f"{_unknown(rules)}; {_rows_mean(view, doubt, exact=exact)}"
        yield _Asked(StatementKind.TEST, rules.goal, about, program, names, not doubt)


def _doubts(decision: Decision, view: View, situation: Situation, new_facts: NewFacts) -> tuple[str, ...]:
    """Why rows of the test of one J do not prove that the view is not self-maintainable."""
    if decision.catalog.grouped_views and situation.effective:
        return ("`selfmaint check` asks the stored groups for more",)
    found = decision.doubts(view, situation, [new_facts])
    return found or ((NO_TWO_DATABASES,) if decision.half_known.forced else ())


def _rows_mean(view: View, doubt: tuple[str, ...], *, exact: bool) -> str:
    """What rows of a test say, where the others have none; `exact` if no test of the view is in doubt."""
    if exact:
        return f"{view.shown} is self-maintainable iff no test has rows"
    rows = f"rows of this one do not settle it: {'; '.join(doubt)}" if doubt else "it is not if this one has"
    if_none = "no test has rows" + (" and no group is open" if isinstance(view, GroupedView) else "")
    return f"{view.shown} is self-maintainable if {if_none}; {rows}"


def _unknown(rules: DependsRules) -> str:
    """What a row of a test says."""
    facts = [show(rules.new_facts.instance.body[j]) for j in rules.new_facts.subgoals]
    return f"rows for which nobody knows {' and '.join(facts)}"


def _probes(decision: Decision, view: View, situation: Situation) -> Iterator[_Asked]:
    """For each base relation and key, the keys that some failing test would have looked up.

    Where views group, rows of a test do not settle it: there may be more keys, and the statements are shorter.
    """
    support, every = decision.support(situation), decision.depends(view, situation)
    rough = bool(decision.catalog.grouped_views) and situation.effective
    test = Program() if rough else decision.test(view, situation)
    wanted: dict[Predicate, tuple[Probe, list[Rule]]] = {}
    for rules in every if rough else (r for r in every if test.rules_for(r.goal)):
        for probe in options(decision.catalog, rules):
            for rule in probe.program.rules:
                more = roughly(rules, rule.head) if rough else [rule]
                wanted.setdefault(probe.keys, (probe, []))[1].extend(more)
    for keys, (probe, asked) in wanted.items():
        if rough:
            made = map(support.unfolded, dict.fromkeys(asked))
            program = minimised(support.program([rule for rule in made if rule is not None], [keys]))
        else:
            program = simplify(Program((*asked, *test.rules)), [keys, *(rules.goal for rules in every)])
        if not program.rules_for(keys):
            continue
        columns = decision.catalog.relations[probe.relation].columns
        names = tuple(columns[i] for i in probe.columns)
        shown = ", ".join(f"`{name}`" for name in names)
        about = f"values of {shown} to look up in `{probe.relation}`, if a test has rows"
        yield _Asked(StatementKind.PROBE, keys, about, program, names)


def _deltas(decision: Decision, view: View, situation: Situation) -> Iterator[_Asked]:
    program = decision.maintenance(view, situation)
    for kind, goal, about in (
        (StatementKind.GAINED, gained(view), f"rows that `{view.name}` gains, if it is self-maintainable"),
        (StatementKind.LOST, lost(view), f"rows that `{view.name}` loses, if it is self-maintainable"),
    ):
        if program.rules_for(goal):
            yield _Asked(kind, goal, about, program, view.columns)


def _queries(view: View, asked: Sequence[_Asked], tables: Mapping[Predicate, Table]) -> Iterator[Statement]:
    """The statements; where some are more than one query each, what several of them look up is held before."""
    programs: Sequence[Program] = [demanded_apart(one.program, one.goal) for one in asked]
    queries = []
    for one, program in zip(asked, programs, strict=True):
        queries.append(_query(one, drop_unused_columns(program, [one.goal]), tables))
        if not stands_alone(queries[-1]):
            held, programs = held_apart([(p, other.goal) for p, other in zip(programs, asked, strict=True)])
            known = dict(tables)
            for rows in held:
                yield _held(view, rows, known)
            queries = [_query(other, p, known) for p, other in zip(programs, asked, strict=True)]
            break
    for one, query in zip(asked, queries, strict=True):
        whole = drop_unreachable(one.program, [one.goal])
        yield Statement(one.kind, str(one.goal), one.about, whole, text(query), _reads(query), one.exact)


def _query(asked: _Asked, program: Program, tables: Mapping[Predicate, Table]) -> Query:
    return select(program, asked.goal, tables, columns=asked.columns or None)


def _held(view: View, held: Held, known: dict[Predicate, Table]) -> Statement:
    """What holds some rows; their table is known from then on."""
    taken = casefolded([table.name[-1] for table in known.values()])
    rows = plain_name(held.rows)
    query, table = select_table(held.program, held.rows, known)
    keys = [table.columns[c] for c in held.by]
    words = [
        *(() if f"{rows}_".startswith(f"{view.name}_") else (view.name,)),
        rows,
        *(("by", *keys) if keys else ()),
    ]
    known[held.rows] = table = replace(table, name=(unique("_".join(words), taken),))
    by = f" by {', '.join(f'`{key}`' for key in keys)}" if keys else ""
    about = f"rows of `{rows}`{by}, for statements that follow; drop it at the end"
    made = text(held_table(table, query))
    return Statement(StatementKind.HELD, table.name[-1], about, held.whole, made, _reads(query))


def _reads(query: Query) -> tuple[str, ...]:
    return tuple(sorted(dotted(name) for name in read_set(query)))


def statements_of(
    warehouse: Warehouse[Any],
    view: str,
    inserted: Iterable[str],
    deleted: Iterable[str],
    effective: bool | None,
    budget_s: float | None,
) -> Statements:
    """See `Warehouse.sql`."""
    catalog = warehouse.catalog
    require_known([view], [view.name for view in catalog.views], "view")
    certain = warehouse.effective if effective is None else effective
    known = Situation(
        present=frozenset(warehouse.present), absent=frozenset(warehouse.absent), effective=certain
    )
    change = any_change(catalog, inserted, deleted, known)
    decision = warehouse.decision_within(budget_s)
    whole = Decision(catalog, decision.budget_s) if catalog.unions else decision  # only tables that are there
    return printed(whole, view, change, warehouse.tables)
