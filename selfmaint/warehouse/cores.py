"""The cores of views whose rows are groups, and which views have one that changes can be added to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from datalog.analysis.expression_types import expression_type
from datalog.copies import replace
from datalog.evaluate import EvaluationError, evaluate_view
from datalog.model import (
    AggregateFunction,
    Atom,
    Block,
    ColumnType,
    Constant,
    Predicate,
    Rule,
    Term,
    TypeName,
    Variable,
    Version,
    ViewDefinition,
    expression_variables,
    variables_of,
)
from selfmaint.warehouse.alike import ADDING, Met, unlike
from selfmaint.warehouse.base_relations import BaseRelation, determined_terms, variable_types
from selfmaint.warehouse.definitions import limited_view, without_references
from selfmaint.warehouse.grouped import Grouped, Measure, core_rule, grouped
from selfmaint.warehouse.having import LEFT_OUT, NOT_TOLD, asks_plainly, shows_nonzero_sums
from selfmaint.warehouse.views import GroupedView, Limitation, Outside, View

_DOES = {
    Outside.AGGREGATE: "groups",
    Outside.BAG: "removes duplicates",
    Outside.COMPUTED: "has a computed column, or a condition on one",
}
"""What views that are more than rules do; those of which counted rows are stored keep duplicates."""


def core_rules(beyond: Mapping[str, View]) -> dict[str, Rule]:
    """The rules of the cores of views whose rows are groups, by view."""
    made = {n: core_rule(view.grouping) for n, view in beyond.items() if view.grouping is not None}
    return {name: rule for name, rule in made.items() if rule is not None}


def with_core(
    view: View, written: Rule | None, core: View | None, relations: Mapping[str, BaseRelation], met: Met
) -> View:
    """The view with its core, or with what is in the way of maintaining it as its limitation."""
    if written is None or core is None or view.grouping is None or view.limitation is None:
        return view
    kind, is_counted = view.limitation.kind, len(view.columns) < len(view.grouping.columns)
    if core.always_empty:
        return _over_no_rows(view, view.grouping, core.always_empty, relations)
    does = "keeps duplicates" if is_counted else _DOES[kind]
    otherwise = unlike(view.grouping, written, core, relations, met)
    written, core = _needed(view.grouping, written, core, relations)
    found = otherwise or _grouped(view.grouping, kind, written, core, relations)
    if isinstance(found, str):
        return replace(view, limitation=Limitation(kind, f"`{view.name}` {does}, and {found}"))
    if found.block.having:
        every = {m.column for m in found.measures}
        why = NOT_TOLD if shows_nonzero_sums(found.block.having, found.measures, every) else LEFT_OUT
        limited = replace(view, limitation=Limitation(kind, f"`{view.name}` {does}, and {why}"))
        return replace(limited, shown_groups=_shown_groups(limited, core, found, relations))
    if kind is Outside.AGGREGATE:
        functions = dict.fromkeys(m.aggregate.function.value for m in found.measures)
        does = f"groups ({', '.join(functions) or 'no aggregate'})"
    limited = replace(view, limitation=Limitation(kind, f"`{view.name}` {does}"))
    made = GroupedView.of(limited, core, found)
    if is_counted:
        return _counted(made)
    doubtful = replace(found, inexact=found.inexact | _unknown_sums(made, relations))
    if_inexact = replace(made, grouped=doubtful)
    if not found.inexact:
        return replace(made, if_inexact=if_inexact) if doubtful.inexact else made
    text = f"`{view.name}` groups, and `{view.columns[min(found.inexact)]}` {_adds_up(made, relations)}"
    return replace(view, limitation=Limitation(kind, text), if_inexact=if_inexact)


def _needed(
    definition: ViewDefinition, written: Rule, core: View, relations: Mapping[str, BaseRelation]
) -> tuple[Rule, View]:
    """A view's core, as written and as it is, without what references say of each match and nothing is used of."""
    if core.limitation is not None:
        return written, core
    (block,) = definition.blocks
    used = expression_variables([*block.outputs, *(block.groups or ()), *block.filters, *block.having])
    terms = dict(zip(written.head.terms, core.head.terms, strict=True))
    less = without_references(core, [terms[v] for v in used], relations)
    left = {*variables_of(less.body), *(t for t in core.head.terms if isinstance(t, Constant))}
    kept = [i for i, term in enumerate(core.head.terms) if term in left]
    heads = (replace(h, terms=tuple(h.terms[i] for i in kept)) for h in (written.head, core.head))
    written_head, head = heads
    rule = replace(written, head=written_head)
    return rule, replace(less, rule=rule, head=head)


def _over_no_rows(
    view: View, definition: ViewDefinition, reason: str, relations: Mapping[str, BaseRelation]
) -> View:
    """A view whose core can have no rows: without rows itself, or with the one of what aggregates them all."""
    types = {Predicate(relation.name): relation.types for relation in relations.values()}
    try:
        rows = tuple(evaluate_view(definition, {}, types))
    except EvaluationError:
        return view
    made = replace(view, body=(), limitation=None)
    if not rows:
        made = replace(
            made, always_empty=reason
        )  # a bag is kept as one, for it may have rows on another date
        return _counted(made) if len(view.columns) < len(definition.columns) else made
    head = Atom(view.predicate, tuple(map(Constant, rows[0])))
    text = f"`{view.name}` has one row, whatever the database: {reason.partition(': ')[2]}"
    return replace(made, head=head, always_one=text)


def _grouped(
    definition: ViewDefinition,
    kind: Outside,
    written: Rule,
    core: View,
    relations: Mapping[str, BaseRelation],
) -> Grouped | str:
    """What the columns of a view are, or what is in the way of maintaining it."""
    obstacle = _obstacle(definition, core, relations)
    if obstacle is not None:
        return obstacle
    is_total = kind is Outside.AGGREGATE and not definition.blocks[0].groups
    if kind is not Outside.AGGREGATE:  # no condition of the user's
        definition = replace(definition, blocks=(replace(definition.blocks[0], having=()),))
    found = grouped(definition, written, core.head)
    if isinstance(found, str):
        return found
    single = _is_single(core, found.group_terms.values(), relations)
    inexact = _inexact(found, core, relations)
    averages = (m for m in found.measures if m.aggregate.function is AggregateFunction.AVG)
    alone = frozenset(m.column for m in averages if not _has_parts(m, found, core))
    return replace(found, is_single=single, inexact=inexact, alone=alone, is_total=is_total)


def _shown_groups(
    view: View, core: View, found: Grouped, relations: Mapping[str, BaseRelation]
) -> GroupedView | None:
    """The groups that a HAVING lets through; None where what it asks for cannot be kept up exactly."""
    made = GroupedView.of(view, core, replace(found, is_hidden=True))
    is_exact = not (found.inexact or _unknown_sums(made, relations))
    types = _types_of(found, core, relations)
    is_plain = all(asks_plainly(one, found.groups, types) for one in found.block.having)
    return made if is_exact and is_plain else None


def _counted(view: View) -> View:
    """A view that keeps duplicates, with the head and columns of its counted rows."""
    assert view.grouping is not None
    head = Atom(view.predicate, tuple(Variable(f"C{i}") for i, _ in enumerate(view.grouping.columns)))
    rule = replace(view.rule, head=head)
    return replace(view, head=head, rule=rule, columns=view.grouping.columns, is_counted=True)


def without_core(view: View) -> View:
    """A view that is decided by what it is made of, as one that is not decided by its core, or counted rows."""
    if not (view.is_counted or isinstance(view, GroupedView)) or not (view.definition and view.limitation):
        return view
    return limited_view(view.definition, view.stored_columns, view.limitation)


def _adds_up(view: GroupedView, relations: Mapping[str, BaseRelation]) -> str:
    """What is inexact about a view's first inexact column, and what to do."""
    column = min(view.grouped.inexact)
    kind = _added_types(view.grouped, view.core, relations)[column].name
    if kind.is_floating:
        return (
            "adds up doubles, whose sum depends on their order: use a decimal type, or allow `inexact_sums`"
        )
    if kind is TypeName.BIGINT:
        return (
            "is an average of bigints, which Spark adds up as doubles, whose sum depends on their order: "
            "average them as decimals, store their sum and count alone, or allow `inexact_sums`"
        )
    return (
        "is an average of a column without a declared type, and of bigints and doubles it depends on the order of "
        "adding: declare the type, store the sum and count alone, or allow `inexact_sums`"
    )


def _inexact(found: Grouped, core: View, relations: Mapping[str, BaseRelation]) -> frozenset[int]:
    """The columns that add up doubles, as Spark does for an average of bigints too, or may do so for one."""
    every = (*found.measures, *found.tested)
    averages = {m.column for m in every if m.aggregate.function is AggregateFunction.AVG}
    return frozenset(
        c
        for c, its in _added_types(found, core, relations).items()
        if its.name.is_floating or (c in averages and (its.name is TypeName.BIGINT or its.is_open))
    )


def _unknown_sums(view: GroupedView, relations: Mapping[str, BaseRelation]) -> frozenset[int]:
    """The columns that are sums of which no declaration tells the type."""
    return frozenset(c for c, its in _added_types(view.grouped, view.core, relations).items() if its.is_open)


def _added_types(found: Grouped, core: View, relations: Mapping[str, BaseRelation]) -> dict[int, ColumnType]:
    """The types of what is added up, by column."""
    types = _types_of(found, core, relations)
    adding = [m for m in (*found.measures, *found.tested) if m.aggregate.function in ADDING]
    given = {m.column: expression_type(m.aggregate.operand, types) for m in adding if m.aggregate.operand}
    return {c: one for c, one in given.items() if one is not None}


def output_types(view: GroupedView, relations: Mapping[str, BaseRelation]) -> tuple[ColumnType | None, ...]:
    """The types of the columns of a view with a core.

    Returns:
        `any`, or a decimal without a size, where the types of base columns do not tell; None of what is always null.
    """
    types = _types_of(view.grouped, view.core, relations)
    return tuple(expression_type(output, types) for output in view.grouped.block.outputs)


def _types_of(
    found: Grouped, core: View, relations: Mapping[str, BaseRelation]
) -> dict[Variable, ColumnType]:
    """The types of a definition's variables, as far as they are known."""
    types = variable_types(core.body, relations)
    return {v: types[t] for v, t in found.terms.items() if isinstance(t, Variable) and t in types}


def _has_parts(average: Measure, found: Grouped, core: View) -> bool:
    """Whether a view stores the sum and the count that an average is made of."""
    same = [m for m in found.measures if m.aggregate.operand == average.aggregate.operand]
    functions = {m.aggregate.function for m in same}
    never_null = found.is_never_null(average, core.certain | core.not_null)
    counted = AggregateFunction.COUNT in functions or (never_null and found.count_column is not None)
    return AggregateFunction.SUM in functions and counted


def projected(view: View, relations: Mapping[str, BaseRelation]) -> View:
    """A view of one rule that projects, as one that groups by its columns and has no aggregate."""
    if view.limitation is None or view.limitation.kind is not Outside.PROJECTION:
        return view
    every = variables_of(view.body)
    groups = tuple(dict.fromkeys(t for t in view.head.terms if isinstance(t, Variable)))
    head = Atom(Predicate(view.name, Version.CORE, (0,)), every)
    rule = Rule(head, (*view.body, *view.filters), view.rule.span)
    columns = tuple(f"c{i}" for i in range(len(every)))
    core = replace(view, head=head, rule=rule, columns=columns, limitation=None, definition=None)
    block = Block(rule, view.head.terms, groups=groups)
    places = tuple(view.head.terms.index(group) for group in groups)
    single = _is_single(core, groups, relations)
    return GroupedView.of(view, core, Grouped(block, places, (), {v: v for v in every}, is_single=single))


def _is_single(core: View, terms: Iterable[Term], relations: Mapping[str, BaseRelation]) -> bool:
    """Whether the values of some terms determine a row of the core."""
    return determined_terms(terms, core.body, relations).issuperset(variables_of(core.body))


def _obstacle(definition: ViewDefinition, core: View, relations: Mapping[str, BaseRelation]) -> str | None:
    if core.limitation is not None:
        return str(core.limitation)
    if definition.text is not None:
        for atom in core.body:
            if not relations[atom.predicate.name].is_set:
                return f"reads `{atom.predicate.name}`, which has no key: a row of it may have a twin"
    if set(variables_of(core.body)) - set(core.head.terms):
        return "projects"
    return None
