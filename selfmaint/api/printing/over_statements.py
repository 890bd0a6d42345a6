"""What maintains a view that is computed from other stored views, as Spark SQL: its query, over their new rows.

Base relations that stored views copy are read from these. So the statement is run when all of them are as the update
leaves them, and after the statements of other views that read the rows before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from datalog.model import OpaqueView, Predicate, Program, TextQuery, Version
from datalog.rewrite import drop_unreachable
from datalog.rewrite.reachable import predicates_of
from datalog.sql import Query, Table, bound_text, read_set, select, select_view, text
from datalog.sql.anew import over_steps, overwrite
from datalog.sql.names import casefolded, unique
from selfmaint.api.file.toml_tables import dotted
from selfmaint.api.following.over_views import Below, computed_as
from selfmaint.api.printing.printed import Statement, StatementKind
from selfmaint.canonical import after_rules, copied
from selfmaint.decide.decision import Decision
from selfmaint.engine.plans import in_one_query
from selfmaint.fallback.recompute import rules_of
from selfmaint.warehouse.base_relations import row_atom
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.reads import reads
from selfmaint.warehouse.situation import Situation

ITSELF = "`check` and `maintain` compute it from its own rows before the update: that is not printed"
"""Why there is none."""


def over_statements(
    catalog: Catalog, view: View, below: Below, situation: Situation, tables: Mapping[Predicate, Table]
) -> Iterator[Statement]:
    """The statement that brings a view's table up to date; none if nothing changes what it reads.

    Raises:
        EmissionError: a name that Spark cannot take.
    """
    if reads(catalog)[view.name].isdisjoint(situation.inserted | situation.deleted):
        return
    decision = Decision(catalog.apart)
    taken = casefolded([table.name[-1] for table in tables.values()])
    steps = {name: Table((unique(name, taken),), catalog.relations[name].columns) for name in below.told}
    stored = {name: _stored(catalog, name, tables) for name in below.views}
    told = {table.name[0]: _told(decision, name, tables) for name, table in steps.items()}
    given, query = _query(catalog, computed_as(catalog, view), {**steps, **stored})
    columns = view.stored_columns
    made = overwrite(tables[view.predicate], columns, over_steps(query, columns, told, given))
    read = {name for rows in told.values() for name in read_set(rows)} | {t.name for t in stored.values()}
    copies = copied(catalog.apart)
    every = [*below.views, *(catalog.whole(one.name) for name in below.told for one in copies[name].stored)]
    up_to_date = ", ".join(f"`{name}`" for name in dict.fromkeys(every))
    about = (
        f"computes `{view.name}` anew from {up_to_date}: after their own statements, and after all statements of other "
        "views that are not `anew`"
    )
    names = tuple(sorted(map(dotted, read)))
    yield Statement(StatementKind.ANEW, f"{view.name}@anew", about, Program(), made, names)


def _query(catalog: Catalog, view: View, places: Mapping[str, Table]) -> tuple[Sequence[str], str]:
    """The names of the columns of a view's query, if it does not say them itself, and the query."""
    if isinstance(view.definition, OpaqueView):
        query = view.definition.query
        assert isinstance(query, TextQuery)
        return query.columns, bound_text(query, {name: table.name for name, table in places.items()})
    tables = {Predicate(name): table for name, table in places.items()}
    rules = rules_of(catalog, view)
    if rules.rules:
        program = in_one_query(rules, view.predicate)
        return (), text(select(program, view.predicate, tables, columns=view.stored_columns))
    definition = view.grouping if view.is_counted else view.definition
    assert definition is not None
    return (), text(select_view(definition, tables))


def _stored(catalog: Catalog, name: str, tables: Mapping[Predicate, Table]) -> Table:
    """The table of a view's rows, each as often as it is there."""
    view = catalog.view(name)
    return tables[view.predicate.of(Version.BAG) if view.is_counted else view.predicate]


def tells_itself(catalog: Catalog, view: View, below: Below) -> bool:
    """Whether its own rows tell those of a base relation: they cannot be read when they are replaced."""
    decision = Decision(catalog.apart)
    rules = (rule for name in below.told for rule in _program(decision, name).rules)
    return any(catalog.whole(p.name) == view.name for rule in rules for p in predicates_of(rule.body))


def _program(decision: Decision, name: str) -> Program:
    """How stored views tell a base relation's rows: those of its predicate after an update, when nothing changes."""
    goal, nothing = _goal(decision, name), Situation()
    rules = (*decision.known(nothing), *after_rules(decision.catalog, nothing))
    return in_one_query(drop_unreachable(Program(rules), [goal]), goal)


def _goal(decision: Decision, name: str) -> Predicate:
    return row_atom(decision.catalog.relations[name], Version.AFTER).predicate


def _told(decision: Decision, name: str, tables: Mapping[Predicate, Table]) -> Query:
    """A base relation's rows, as stored views tell them."""
    columns = decision.catalog.relations[name].columns
    return select(_program(decision, name), _goal(decision, name), tables, columns=columns)
