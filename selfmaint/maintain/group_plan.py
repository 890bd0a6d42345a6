"""What is computed for a view that groups, as rules and definitions that any engine evaluates and that are printed.

rows (core rows)                     -> part: group, number, a value and a count for each measure
parts, old rows                      -> group, parts and old row side by side
group, parts and old row             -> new rows, and the groups that stay open

Side by side is a full outer join (`side_by_side.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from msgspec import Struct

from datalog.analysis.expression_types import expression_type, sum_type
from datalog.copies import replace
from datalog.model import (
    ANY,
    Aggregate,
    AggregateFunction,
    AnyOf,
    Atom,
    Case,
    ColumnType,
    Condition,
    Constant,
    Expression,
    Negation,
    Predicate,
    Program,
    Rule,
    Term,
    TypeName,
    Variable,
    Version,
    ViewDefinition,
    apply_atom,
    block,
    with_flag,
)
from selfmaint.maintain.conditions import is_never, negation
from selfmaint.maintain.exact_numbers import summand
from selfmaint.maintain.group_values import (
    FALSE,
    ZERO,
    GroupValues,
    Part,
    part,
    variables,
)
from selfmaint.maintain.nonzero_sums import NonzeroSums
from selfmaint.maintain.shown_groups import ShownGroups
from selfmaint.maintain.side_by_side import Side, Step, joined
from selfmaint.warehouse.base_relations import BaseRelation, variable_types
from selfmaint.warehouse.catalog import GroupedView, View
from selfmaint.warehouse.grouped import SOME_ROWS, Grouped, Measure
from selfmaint.warehouse.having import shows_nonzero_sums

ROWS, OLD, WIDE, BESIDE, DROPPED, GONE = (
    Predicate(n, Version.STEP) for n in ("rows", "old", "wide", "beside", "dropped", "gone")
)
PARTS = {name: Predicate(name, Version.STEP) for name in ("gained", "lost", "known")}
"""The parts that a group may have, and the predicates of their rows."""


class Told(Struct, frozen=True):
    """What other views tell of the old groups (`told_groups.py`): a relation of groups and aggregates.

    Attributes:
        predicate: what it is called.
        measures: the aggregates, with columns behind the view's own.
    """

    predicate: Predicate
    measures: tuple[Measure, ...]


class GroupPlan(Struct, frozen=True, dict=True):
    """The definitions for one view that groups.

    Attributes:
        relations: the base relations, for their columns' types.
        parts: which of `PARTS` a group may have: some core rows are gained, lost, or asked for as known to be there.
        dropped: what tells the groups that lose all rows (`dropped_groups.py`), over the core's terms.
        told: what other views tell of the old groups.
    """

    view: GroupedView
    relations: Mapping[str, BaseRelation]
    parts: tuple[str, ...] = tuple(PARTS)
    dropped: tuple[Atom, ...] = ()
    told: tuple[Told, ...] = ()

    def of(self, parts: Iterable[str]) -> GroupPlan:
        """The plan for groups with some parts only."""
        return replace(self, parts=tuple(parts))

    @property
    def core(self) -> View:
        """The view's core."""
        return self.view.core

    @cached_property
    def grouped(self) -> Grouped:
        """What the view's columns are, and the aggregates that are told besides."""
        own = self.view.grouped
        more = [m for told in self.told for m in told.measures if m not in own.measures]
        return replace(own, measures=(*own.measures, *more)) if more else own

    @cached_property
    def measures(self) -> tuple[Measure, ...]:
        """What is aggregated of core rows: the view's aggregates, those told besides, and what HAVING asks for."""
        known = self.grouped.measures
        return (*known, *(one for one in self.view.grouped.tested if one not in known))

    @cached_property
    def keys(self) -> tuple[Variable, ...]:
        """A variable for each grouping expression."""
        return variables("G", len(self.grouped.groups))

    @cached_property
    def types(self) -> dict[Variable, ColumnType]:
        """The types of the core's variables, as the definition names them."""
        of_core = variable_types(self.core.body, self.relations)
        return {v: of_core.get(t, ANY) for v, t in self.grouped.terms.items() if isinstance(t, Variable)}

    @property
    def column_types(self) -> list[ColumnType]:
        """The types of core rows' columns."""
        written = self.core.rule.head.terms
        return [self.types.get(t, ANY) if isinstance(t, Variable) else ANY for t in written]

    def own(self, name: str) -> tuple[Variable, ...]:
        """The columns of a part, as variables."""
        return part(name[0].upper(), self.measures)[0]

    def part(self, rows: Predicate = ROWS) -> ViewDefinition:
        """The part that some core rows are."""
        outputs: list[Expression] = [*self.grouped.groups, Aggregate(AggregateFunction.COUNT)]
        for measure in self.measures:
            outputs += _part_of(measure, self.sums.get(measure.column))
        return self._over_rows(rows, "part", tuple(f"c{i}" for i in range(len(outputs))), outputs)

    @property
    def anew(self) -> ViewDefinition:
        """The view's rows from all core rows of some groups."""
        block = self.grouped.block
        return self._over_rows(ROWS, "anew", self.view.columns, block.outputs, block.having)

    def _over_rows(
        self,
        rows: Predicate,
        name: str,
        columns: tuple[str, ...],
        outputs: Sequence[Expression],
        having: tuple[Condition, ...] = (),
    ) -> ViewDefinition:
        body = [Atom(rows, self.core.rule.head.terms)]
        filters, groups = self.grouped.block.filters, self.grouped.groups
        made = block(
            name, 0, body, outputs, filters=filters, groups=groups, having=(*self.some_rows, *having)
        )
        return ViewDefinition(name, columns, (made,))

    @property
    def some_rows(self) -> tuple[Condition, ...]:
        """What keeps the one group of a view of constants from being there without rows."""
        return () if self.grouped.groups or self.grouped.is_total else (SOME_ROWS,)

    @property
    def steps(self) -> tuple[Step, ...]:
        """What puts the parts of each group and its old row, read before as `OLD`, side by side: `beside`."""
        first, *others = (self._side(name) for name in self.parts)
        found: list[Step] = []

        def beside(side: Side, named: Predicate) -> None:
            nonlocal first
            steps, first = joined(named, self.keys, first, side)
            found.extend(steps)

        for side in others:
            beside(
                side, Predicate(f"{first.atom.predicate.name}_and_{side.atom.predicate.name}", Version.STEP)
            )
        row = Atom(OLD, self._row)
        stays = (Negation((atom,)) for atom in self._dropped)
        rule = Rule(row, (first.atom, Atom(self.view.predicate, self._row), *stays))
        found.append(Step(OLD, Program((rule,)), self.view.columns))
        measures = tuple(self._row[m.column] for m in self.view.grouped.measures)
        told = [(t.predicate, variables(t.predicate.name, len(t.measures))) for t in self.told]
        if self.told and not self.leaves_out:
            measures = (*measures, *(v for _, its in told for v in its))
            those = (Atom(predicate, (*self.keys, *its)) for predicate, its in told)
            wide = Atom(WIDE, (*self.keys, *measures))
            names = tuple(f"c{i}" for i in range(wide.arity))
            found.append(Step(WIDE, Program((Rule(wide, (row, *those)),)), names))
            row = wide
        every = [(row, measures, self._old)]
        if self.leaves_out:
            atoms = (Atom(predicate, (*self.keys, *its)) for predicate, its in told)
            every += [(a, its, named) for a, (_, its), named in zip(atoms, told, self._told, strict=True)]
        for number, (atom, its, named) in enumerate(every, 1):
            missing = (Constant(0), *(Constant(None) for _ in its))
            last = BESIDE if number == len(every) else Predicate(f"beside{number}_", Version.STEP)
            beside(Side(atom, (Constant(1), *its), missing, named), last)
        return tuple(found)

    @cached_property
    def _row(self) -> tuple[Variable, ...]:
        """A stored row."""
        keys = dict(zip(self.grouped.columns, self.keys, strict=True))
        return tuple(keys.get(i, Variable(f"O{i}")) for i in range(self.view.head.arity))

    @property
    def _dropped(self) -> Iterator[Atom]:
        """What tells the groups that are dropped, over a stored row."""
        terms = {t: self._row[column] for column, t in self.grouped.group_terms.items()}
        shown: dict[Variable, Term] = {t: v for t, v in terms.items() if isinstance(t, Variable)}
        return (apply_atom(shown, atom) for atom in self.dropped)

    @property
    def old_dropped(self) -> Step:
        """The stored rows of the groups that are dropped."""
        row = Atom(DROPPED, self._row)
        rules = (Rule(row, (atom, Atom(self.view.predicate, self._row))) for atom in self._dropped)
        return Step(DROPPED, Program(tuple(rules)), self.view.columns)

    @property
    def gone(self) -> Step:
        """The stored rows of the groups that are dropped and gain nothing, read after `DROPPED` and the parts."""
        again = [Negation((self._side("gained").atom,))] if "gained" in self.parts else []
        rule = Rule(Atom(GONE, self._row), (Atom(DROPPED, self._row), *again))
        return Step(GONE, Program((rule,)), self.view.columns)

    def _side(self, name: str) -> Side:
        own = self.own(name)
        missing = (Constant(0), *(c for _ in self.measures for c in (Constant(None), Constant(0))))
        return Side(Atom(PARTS[name], (*self.keys, *own)), own, missing, own)

    @property
    def _old(self) -> tuple[Variable, ...]:
        """Whether a group had a row, and its old measures."""
        return Variable("O"), *self._old_values.values()

    @property
    def _old_values(self) -> dict[int, Variable]:
        """Its old measures by column; where not all groups are stored, without those that are told."""
        measures = self.view.grouped.measures if self.leaves_out else self.grouped.measures
        return {m.column: Variable(f"B{m.column}") for m in measures}

    @property
    def leaves_out(self) -> bool:
        """Whether a HAVING leaves groups out: then other views tell of groups that have no row, too."""
        return bool(self.view.grouped.block.having)

    @property
    def _told(self) -> list[tuple[Variable, ...]]:
        """Of each other view whether it has a row of a group, and the old measures that it tells."""
        return [
            (Variable(f"T{at}"), *(Variable(f"T{at}B{m.column}") for m in one.measures))
            for at, one in enumerate(self.told if self.leaves_out else ())
        ]

    @cached_property
    def beside(self) -> Atom:
        """Group, parts, whether it had a row, and its old measures."""
        parts = (v for name in self.parts for v in self.own(name))
        return Atom(BESIDE, (*self.keys, *parts, *self._old, *(v for its in self._told for v in its)))

    @cached_property
    def values(self) -> GroupValues | NonzeroSums | ShownGroups:
        """The new values over `beside`."""
        measures = self.measures
        nothing = {m.column: Constant(None) for m in measures}
        parts = dict.fromkeys(PARTS, Part(ZERO, nothing, dict.fromkeys(nothing, ZERO)))
        parts |= {name: part(name[0].upper(), measures)[1] for name in self.parts}
        told = [(its[0], _by_column(one, its[1:])) for its, one in zip(self._told, self.told, strict=False)]
        values = GroupValues(
            self.grouped,
            Variable("O"),
            {**{c: v for _, its in told for c, v in its.items()}, **self._old_values},
            **parts,
            never_null=self.never_null,
            averages=self.averages,
            sums=self.sums,
            operands=self.operands,
        )
        if not self.leaves_out:
            return values
        shown = self.view.grouped.measures
        if shows_nonzero_sums(self.view.grouped.block.having, shown, self.never_null):
            return NonzeroSums(values, shown)
        by_group = dict(zip(self.grouped.groups, self.keys, strict=True))
        return ShownGroups(values, measures, self.grouped.block.having, by_group, told)

    @property
    def outputs(self) -> list[Expression]:
        """The view's columns over `beside`, where they are determined."""
        by_group: dict[Expression, Expression] = dict(zip(self.grouped.groups, self.keys, strict=True))
        at = {m.column: self.values.new(m) for m in self.grouped.measures}
        columns = enumerate(self.grouped.block.outputs)
        return [at[i] if i in at else by_group.get(output, output) for i, output in columns]

    @property
    def new(self) -> ViewDefinition:
        """The new rows of the groups that are there and determined."""
        settled = [self.values.exists, negation(self.values.is_open)]
        made = block("new", 0, [self.beside], self.outputs, filters=settled)
        return ViewDefinition("new", self.view.columns, (made,))

    @property
    def open(self) -> ViewDefinition:
        """The groups that are not determined, with a 1 behind their values."""
        columns = (*(self.view.columns[c] for c in self.grouped.columns), "is_open")
        outputs: list[Expression] = [*self.keys, Constant(1)]
        made = block("open", 0, [self.beside], outputs, filters=[self.values.is_open])
        return ViewDefinition("open", columns, (made,))

    @property
    def unsettled(self) -> ViewDefinition:
        """The groups that are not determined, as `open`, and with a 0 those that cannot be: see `is_overdrawn`."""
        columns = (*(self.view.columns[c] for c in self.grouped.columns), "can_be")
        overdrawn = self.values.is_overdrawn if "lost" in self.parts else FALSE
        outputs: list[Expression] = [*self.keys, Case(((overdrawn, Constant(0)),), Constant(1))]
        either = AnyOf((self.values.is_open, overdrawn))
        made = block("unsettled", 0, [self.beside], outputs, filters=[either])
        return ViewDefinition("unsettled", columns, (made,))

    @cached_property
    def may_be_open(self) -> bool:
        """Whether some group may be open, as far as the condition alone tells."""
        return not is_never(self.values.is_open)

    @property
    def may_be_unsettled(self) -> bool:
        """Whether `unsettled` may have a row: a group may be open, or lose more rows than it has."""
        return "lost" in self.parts or self.may_be_open

    @property
    def changes(self) -> ViewDefinition:
        """The new rows of all touched groups, with 1 in a last column for those that are there, 0 for those gone."""
        blocks = []
        if self.parts:
            there = Case(((self.values.exists, Constant(1)),), Constant(0))
            blocks.append(block("changes", 0, [self.beside], [*self.outputs, there]))
        if self.dropped:
            gone = Atom(GONE, self._row)
            blocks.append(block("changes", len(blocks), [gone], [*self._row, Constant(0)]))
        return ViewDefinition("changes", with_flag(self.view.columns), tuple(blocks))

    @property
    def never_null(self) -> frozenset[int]:
        """The columns of measures whose operand is never null."""
        certain = self.core.certain | self.core.not_null
        return frozenset(m.column for m in self.measures if self.grouped.is_never_null(m, certain))

    @cached_property
    def operands(self) -> dict[int, ColumnType]:
        """The types of what is aggregated."""
        given = {m.column: m.aggregate.operand for m in self.measures}
        found = {c: expression_type(o, self.types) for c, o in given.items() if o is not None}
        return {c: t for c, t in found.items() if t is not None}

    @cached_property
    def sums(self) -> dict[int, ColumnType]:
        """The types of sums, and of those that averages are made of."""
        adding = (AggregateFunction.SUM, AggregateFunction.AVG)
        adds = {m.column for m in self.measures if m.aggregate.function in adding}
        return {c: sum_type(t) for c, t in self.operands.items() if c in adds}

    @cached_property
    def averages(self) -> dict[int, ColumnType]:
        """The types of the averages of decimals."""
        found = {
            m.column: expression_type(m.aggregate, self.types)
            for m in self.measures
            if m.aggregate.function is AggregateFunction.AVG
        }
        return {
            c: t for c, t in found.items() if t is not None and t.name is TypeName.DECIMAL and t.precision
        }


def _by_column(told: Told, values: Sequence[Variable]) -> dict[int, Variable]:
    return {m.column: v for m, v in zip(told.measures, values, strict=True)}


def _part_of(measure: Measure, kind: ColumnType | None) -> tuple[Expression, Expression]:
    """What a part holds for a measure: a value, and the number of operands that are not null."""
    function, operand = measure.aggregate.function, measure.aggregate.operand
    count = Aggregate(AggregateFunction.COUNT, operand)
    match function:
        case AggregateFunction.COUNT:
            return count, count
        case AggregateFunction.SUM | AggregateFunction.AVG if operand is not None:
            return Aggregate(AggregateFunction.SUM, summand(operand, kind)), count
        case _:
            return Aggregate(function, operand), count
