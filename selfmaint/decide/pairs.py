"""Two databases at hand that agree with everything known and give a view different new states: by the definition alone.

The first completes the canonical database D^, the second D^ and the new facts of one witness. What foreign keys and
stored groups ask for is made up; the views are evaluated on both, and what they hold is compared with what is known.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, permutations, zip_longest

from datalog.evaluate import evaluate
from datalog.evaluate.order import with_one_nan
from datalog.model import (
    ANY,
    ColumnType,
    Comparison,
    Constant,
    OpaqueView,
    Predicate,
    Program,
    Row,
    Value,
    Variable,
    Version,
    apply_atom,
    ground,
    value_kind,
    variables_of,
)
from datalog.order import assign, constants_compare
from selfmaint.countermodel.completion import explaining
from selfmaint.countermodel.databases import Rows
from selfmaint.countermodel.model_check import Given
from selfmaint.countermodel.values import NUMBER, fresh_value
from selfmaint.decide.knowledge import Knowledge
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.positions import Above, At, Below, Position, in_one_gap, substitution
from selfmaint.decide.verdict import Witness
from selfmaint.engine.protocol import D
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog

ATTEMPTS = 3
"""How many choices of fresh values are tried."""

AT_HAND_ROWS = 400
"""Two databases are made and shown whole if no relation has more rows."""

_CONFIRMED_WITNESSES = 8
"""How many witnesses of a doubtful verdict are tried, one of each J first."""

COMPLETE_ROWS = 60
"""A canonical database with at most so many rows in each relation is shown whole."""


@dataclass(frozen=True)
class Counterexample:
    """Two databases, before the update, that explain everything known and give a view different new states.

    Attributes:
        witness: the witness it was made from; None if both were found by search.
        row: the row that the view has after the update on the second database, and not on the first.
        first: rows of the canonical database by relation; all of them if `complete`, else those that matter.
        added: what the second database has besides.
        removed: what it lacks of the first one: rows of which only the key is known, with other values there.
        inserted: the update's inserted rows; all of them if `complete`, else those that the row uses.
        deleted: the update's deleted rows, if `complete`.
        complete: whether `first` is the whole canonical database, and the update is whole too.
    """

    witness: Witness | None
    row: Row
    first: Mapping[str, frozenset[Row]]
    added: Mapping[str, frozenset[Row]]
    inserted: Mapping[str, frozenset[Row]]
    deleted: Mapping[str, frozenset[Row]]
    complete: bool
    removed: Mapping[str, frozenset[Row]] = field(default_factory=dict)

    def database(self, second: bool, after: bool) -> dict[str, frozenset[Row]]:
        """One of the two databases, before or after the update; the relations that have rows in any of them."""
        names = dict.fromkeys((*self.first, *self.added, *self.inserted))
        rows = {n: self.first.get(n, frozenset()) for n in names}
        if second:
            rows = {
                n: found - self.removed.get(n, frozenset()) | self.added.get(n, frozenset())
                for n, found in rows.items()
            }
        if not after:
            return rows
        return {
            n: found - self.deleted.get(n, frozenset()) | self.inserted.get(n, frozenset())
            for n, found in rows.items()
        }


def given(known: Knowledge[D]) -> Given | None:
    """Everything known, or None if some relation has more than `AT_HAND_ROWS` rows."""
    rows: dict[Predicate, frozenset[Row]] = {}
    for predicate, data in known.facts.relations.items():
        found = known.engine.sample(data, AT_HAND_ROWS + 1)
        if len(found) > AT_HAND_ROWS:
            return None
        rows[predicate] = frozenset(found)
    return given_rows(known, rows)


def given_rows(known: Knowledge[D], rows: Mapping[Predicate, frozenset[Row]]) -> Given:
    """Everything known, with the canonical database that it proves."""
    rows = {predicate: with_one_nan(its) for predicate, its in rows.items()}
    program = Program(known.decision.known(known.situation))
    proved = {
        name: evaluate(program, Predicate(name, Version.KNOWN), rows) for name in known.catalog.relations
    }
    repeated = (
        view.name
        for view in known.catalog.views
        if isinstance(view.definition, OpaqueView) and not _is_set(known, view.predicate, rows)
    )
    return Given(known.catalog, known.situation, rows, proved, frozenset(repeated))


def _is_set(known: Knowledge[D], stored: Predicate, rows: Mapping[Predicate, frozenset[Row]]) -> bool:
    """Whether no two of the rows of a view that are at hand are stored equal."""
    data = known.facts.relations.get(stored)
    return data is not None and known.engine.count(data) == len(rows.get(stored, ()))


def confirmed(known: Knowledge[D], witnesses: Sequence[Witness]) -> bool | None:
    """Whether two databases can be shown for one of some witnesses, by the definition alone.

    Returns:
        None where the data is too large to be at hand, or there is no witness.
    """
    at_hand = given(known) if witnesses else None
    if at_hand is None:
        return None
    tried = islice(_in_turns(witnesses), _CONFIRMED_WITNESSES)
    return any(two_databases(at_hand, witness) is not None for witness in tried)


def _in_turns(witnesses: Sequence[Witness]) -> Iterator[Witness]:
    """The first witness of each J, then the second ones, and so on."""
    by_set: dict[int, list[Witness]] = {}
    for witness in witnesses:
        by_set.setdefault(witness.new_facts.number, []).append(witness)
    for turn in zip_longest(*by_set.values()):
        yield from (witness for witness in turn if witness is not None)


def two_databases(known: Given, witness: Witness) -> Counterexample | None:
    """The first database completes the canonical database; the second one has the new facts as well.

    Where views group, both have rows made up for the stored groups besides: two ways of making them up will do.
    """
    view = witness.new_facts.view
    firsts = list(islice(explaining(known, {}), 6))
    if not firsts:
        return None
    seconds = (
        (values, second)
        for values in _assignments(known, witness)
        for second in islice(explaining(known, ground_facts(witness, values)), 3)
    )
    for values, second in seconds:
        row = row_of(witness, values)
        new = known.state(view, known.after(second))
        for first in firsts:
            old = known.state(view, known.after(first))
            if new is not None and old is not None and row in new and row not in old:
                return shown(known, witness, row, first, second)
    for first, second in permutations(firsts if known.catalog.grouped_views else (), 2):
        old, new = (known.state(view, known.after(each)) for each in (first, second))
        if new is not None and old is not None and new - old:
            return shown(known, witness, min(new - old, key=repr), first, second)
    return None


def shown(known: Given, witness: Witness | None, row: Row, first: Rows, second: Rows) -> Counterexample:
    """A counterexample of two databases that are at hand whole."""
    names = known.catalog.relations
    complete = all(len(rows) <= COMPLETE_ROWS for rows in (*first.values(), *second.values()))
    return Counterexample(
        witness,
        row,
        {n: first[n] for n in names if first[n] or complete},
        {n: more for n in names if (more := second[n] - first[n])},
        {n: rows for n in names if (rows := known.of(n, Version.INSERTED))},
        {n: rows for n in names if (rows := known.of(n, Version.DELETED))},
        complete=True,
        removed={n: less for n in names if (less := first[n] - second[n])},
    )


def _assignments(known: Given, witness: Witness) -> Iterator[dict[Variable, Value]]:
    """Values for all variables of the new facts, those that are compared in their place."""
    new_facts = witness.new_facts
    for attempt in range(ATTEMPTS):
        values = {**chosen_values(witness), **fresh_values(known.catalog, new_facts, attempt)}
        for placed in placed_values(known.catalog, known.every_row, new_facts, values):
            yield {**values, **placed}


def row_of(witness: Witness, values: Mapping[Variable, Value]) -> Row:
    """The view's row that a witness's facts give."""
    new_facts = witness.new_facts
    chosen = substitution(dict(new_facts.positions))
    head = apply_atom(chosen, apply_atom(new_facts.instance.substitution, new_facts.view.head))
    return ground(head.terms, values)


def chosen_values(witness: Witness) -> dict[Variable, Value]:
    """What the witness binds."""
    return dict(witness.binding)


def ground_facts(witness: Witness, values: Mapping[Variable, Value]) -> dict[str, frozenset[Row]]:
    """The facts that a witness assumes, by relation."""
    rows: dict[str, set[Row]] = {}
    for atom in witness.unknown:
        rows.setdefault(atom.predicate.name, set()).add(ground(atom.terms, values))
    return {name: frozenset(found) for name, found in rows.items()}


def placed_values(
    catalog: Catalog, rows: Iterable[Row], new_facts: NewFacts, values: Mapping[Variable, Value]
) -> Iterator[dict[Variable, Value]]:
    """Values of the variables that have a position: beside all values at hand, or those of comparisons, or anywhere.

    No value of `rows` may lie between a landmark and what is just above it.
    """
    positions = dict(new_facts.positions)
    free = [v for v, p in positions.items() if not isinstance(p, At)]
    if not free:
        yield {}
        return
    types = _fresh_types(catalog, new_facts)
    compared = _compared(catalog, values, new_facts)
    at_hand = list(dict.fromkeys([*compared, *_at_hand(catalog, rows)]))
    order = list(in_one_gap(positions))
    mine = [c for c in new_facts.instance.comparisons if not set(free).isdisjoint((c.left, c.right))]
    bound = {v: values[v] for v in variables_of(mine) if v in values and v not in free}
    for beside in (at_hand, compared, []):
        wanted = [*order, *mine]
        for v in free:
            its = types.get(v, ANY)
            here = _of_family(its, beside)
            wanted.extend(side(v, its, positions[v], values, here))
            wanted.extend(Comparison("!=", v, c) for c in at_hand if c not in here)
        found = assign(free, wanted, bound, types)
        if found is not None:
            yield found


def _of_family(its: ColumnType, at_hand: Sequence[Constant]) -> list[Constant]:
    """The values that one of a type compares with; of a type that is not declared, the numbers if there are any."""
    kinds = {value_kind(c.value) for c in at_hand}
    family = its.family if its != ANY else "number" if "number" in kinds else "string"
    return [c for c in at_hand if value_kind(c.value) == family]


def _compared(catalog: Catalog, values: Mapping[Variable, Value], new_facts: NewFacts) -> list[Constant]:
    """The constants of comparisons, and the values of the bound variables."""
    terms = [t for view in catalog.views for c in view.comparisons for t in (c.left, c.right)]
    found = [t for t in terms if isinstance(t, Constant)]
    found += [Constant(values[v]) for v in new_facts.bound if values.get(v) is not None]
    return list(dict.fromkeys(found))


def _at_hand(catalog: Catalog, rows: Iterable[Row]) -> list[Constant]:
    terms = (t for view in catalog.views for atom in view.body for t in atom.terms)
    constants = (t.value for t in terms if isinstance(t, Constant))
    return [Constant(x) for x in {*(x for row in rows for x in row), *constants} - {None}]


def side(
    variable: Variable,
    its: ColumnType,
    position: Position,
    values: Mapping[Variable, Value],
    at_hand: Sequence[Constant],
) -> Iterator[Comparison]:
    """What a position demands of a variable: no value at hand lies between its landmark and it."""
    match position:
        case Above(landmark):
            low = landmark if isinstance(landmark, Constant) else Constant(values[landmark])
            yield Comparison(">", variable, low)
            yield from (Comparison("<", variable, c) for c in at_hand if constants_compare(">", c, low))
        case Below():
            yield from (Comparison("<", variable, c) for c in _of_family(its, at_hand))
        case At():
            return


def fresh_values(catalog: Catalog, new_facts: NewFacts, attempt: int) -> dict[Variable, Value]:
    """A value for each fresh variable of new facts, pairwise different; any order is as good as another.

    A value is only likely to be fresh: the counterexample is evaluated again with it, and another value is tried if
    it turns out to be known.

    Each `attempt`, from 0, gives other values.
    """
    types = _fresh_types(catalog, new_facts)
    return {
        v: fresh_value(t, number + attempt * len(types))
        for number, (v, t) in enumerate(sorted(types.items(), key=lambda item: item[0].name), 1)
    }


def _fresh_types(catalog: Catalog, new_facts: NewFacts) -> dict[Variable, ColumnType]:
    """The type of each fresh variable."""
    types = variable_types(new_facts.atoms, catalog.relations)
    found = {v: its for v, its in types.items() if v in new_facts.fresh}
    for atom in new_facts.atoms:
        for i, term in enumerate(atom.terms):
            if term in found and (atom.predicate.name, i) in catalog.number_columns:
                assert isinstance(term, Variable)
                found[term] = NUMBER
    return found
