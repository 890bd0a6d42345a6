"""The positions of free variables that matter: a free variable that is compared is no longer best left just fresh.

It must satisfy view k's comparisons and dodge the other views'. On a line, the values that do both form intervals, and
each interval begins below all values at hand, at one of them, or just above one. Such a value is a *landmark*: what
view k says the variable is at or above, or what another view says it must not be below.

Conditions of soundness and completeness:

1. In a dense order only lower ends of the allowed intervals are landmarks: single values that are forbidden end none
   that begins elsewhere, and what bounds an interval from above begins none. In a type with gaps, or with a least
   value, upper ends are landmarks too: between two of them there may be nothing.
2. Variables that are compared with each other share their landmarks. Those in one gap are tried in every order, and
   as equal.
3. Two variables that share their landmarks, above ones with different terms, assume that these differ in value; the
   other case is the one where both are above the first. Variables that share none assume nothing: wherever they are,
   there are different values for them.
4. Just above a value there is another one, below the next. In a type with gaps (whole numbers, dates, decimals,
   strings) that is checked for constants; for data it may fail, and then a failing test proves nothing.
5. Beyond a limit the comparisons of free variables are taken as satisfied, and those of other views as dodged.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import chain, combinations, islice, pairwise

from msgspec import Struct

from datalog.budget import check
from datalog.copies import replace
from datalog.graphs import components
from datalog.model import (
    ANY,
    MIRRORED,
    Atom,
    ColumnType,
    Comparison,
    Constant,
    Literal,
    NullTest,
    Operator,
    Term,
    Value,
    Variable,
    apply_atom,
    variables_of,
)
from datalog.order import constants_compare, satisfiable
from selfmaint.decide.inconsistency import Contradiction
from selfmaint.decide.new_facts import NewFacts
from selfmaint.decide.positions import (
    Above,
    At,
    Below,
    Position,
    Positions,
    gap_of,
    in_one_gap,
    rank_of,
    resolved,
)
from selfmaint.warehouse.base_relations import variable_types
from selfmaint.warehouse.catalog import Catalog

WIDE = 1_000
"""A gap between constants with so many steps is taken to hold a value that is not at hand."""

ARRANGEMENT_LIMIT = 3_000
"""At most so many arrangements are made of one set of new facts."""

_ABOVE: frozenset[Operator] = frozenset({">", ">="})
_BELOW: frozenset[Operator] = frozenset({"<", "<="})


class _Landmark(Struct, frozen=True):
    """A term, and the atom of known facts that binds it if it is no constant and no bound variable."""

    term: Term
    pattern: Atom | None = None


def arranged(catalog: Catalog, candidate: NewFacts) -> Iterator[NewFacts]:
    """The candidate with each arrangement of its free variables that may satisfy and dodge all comparisons."""
    if not candidate.instance.compares:
        yield candidate
        return
    mine = [c for c in candidate.instance.comparisons if candidate.fresh.intersection(variables_of([c]))]
    theirs = _theirs(candidate, mine)
    bound = [c for c in candidate.instance.comparisons if c not in mine]
    start = replace(candidate, conditions=(*candidate.conditions, *bound))
    if not mine and not theirs:
        yield start
        return
    found = list(islice(_arrangements(catalog, start, mine, theirs), ARRANGEMENT_LIMIT + 1))
    if len(found) <= ARRANGEMENT_LIMIT:
        yield from found
        return
    unordered = {v: Below(i) for i, v in enumerate(sorted(candidate.fresh, key=str))}
    yield replace(start, positions=tuple(unordered.items()), is_cut=True, dodges=True)


def _constants(group: Sequence[Variable], comparisons: Sequence[Comparison]) -> tuple[Constant, ...]:
    """The constants that variables of a group are compared with."""
    mine = (c for c in comparisons if not set(group).isdisjoint((c.left, c.right)))
    return tuple(dict.fromkeys(t for c in mine for t in (c.left, c.right) if isinstance(t, Constant)))


def _theirs(candidate: NewFacts, mine: Sequence[Comparison]) -> list[Contradiction]:
    """The contradictions that compare free variables, and may apply once those that have a position are placed."""
    fresh = candidate.fresh
    placed = fresh.intersection(variables_of(mine))
    found: list[Contradiction] = []
    while True:
        more = [
            c
            for c in candidate.instance.contradictions
            if c.applies(candidate.facts, fresh - placed)
            and c not in found
            and fresh.intersection(variables_of(c.comparisons))
        ]
        if not more:
            return found
        found.extend(more)
        placed |= fresh.intersection(variables_of([li for c in more for li in c.comparisons]))


def _arrangements(
    catalog: Catalog, start: NewFacts, mine: Sequence[Comparison], theirs: Sequence[Contradiction]
) -> Iterator[NewFacts]:
    groups = _groups(start.fresh, mine, theirs)
    every = [*mine, *(c for each in theirs for c in each.comparisons)]
    own = frozenset(v for group in groups for v in group)
    compared = _Compared(
        variable_types(start.instance.atoms, catalog.relations),
        {v: _constants(group, every) for group in groups for v in group},
        frozenset(
            v
            for group in groups
            if any(
                own.intersection(vs) and set(vs) - own
                for vs in (variables_of([c]) for c in every)
                if set(group) & set(vs)
            )
            for v in group
        ),
    )
    partial: Iterable[tuple[dict[Variable, Position], dict[Term, Atom]]] = [({}, {})]
    for number, group in enumerate(groups):
        gaps = not all(compared.is_dense(v) for v in group)
        landmarks = _landmarks(group, mine, theirs, f"P{number}_", gaps=gaps)
        partial = _placed(partial, group, landmarks, mine)
    for positions, patterns in partial:
        made = _made(start, positions, patterns, mine, compared, groups)
        if made is not None:
            yield made


def _groups(
    fresh: frozenset[Variable], mine: Sequence[Comparison], theirs: Sequence[Contradiction]
) -> list[list[Variable]]:
    """The variables to place, those together that are compared with each other (condition 2)."""
    together: list[list[Variable]] = []
    for comparison in (*mine, *(c for each in theirs for c in each.comparisons)):
        compared = [v for v in variables_of([comparison]) if v in fresh]
        together.append(compared)
    edges = [(compared[0], v) for compared in together for v in compared[1:]]
    groups = components(chain(*together), edges)
    return sorted((sorted(group, key=str) for group in groups), key=str)


def _landmarks(
    group: Sequence[Variable],
    mine: Sequence[Comparison],
    theirs: Sequence[Contradiction],
    prefix: str,
    *,
    gaps: bool,
) -> list[_Landmark]:
    """Condition 1; where the type has gaps (condition 4), every term that the variables are compared with."""
    found: dict[object, _Landmark] = {}

    def add(term: Term, residue: Sequence[Literal]) -> None:
        if isinstance(term, Constant) or term not in variables_of(residue):
            found.setdefault(term, _Landmark(term))
            return
        atom = next(li for li in residue if isinstance(li, Atom) and term in li.terms)
        # What r(X, X) binds is not all that r(X, Y) does.
        shape = tuple(t if isinstance(t, Constant) else atom.terms.index(t) for t in atom.terms)
        key = (atom.predicate, atom.terms.index(term), shape)
        if key not in found:
            names = {v: Variable(f"{prefix}{len(found)}_{i}") for i, v in enumerate(variables_of([atom]))}
            found[key] = _Landmark(names[term], apply_atom(names, atom))

    for variable in group:
        for comparison in mine:
            for operator, term in _seen_from(variable, comparison):
                if (gaps or operator in _ABOVE) and term not in group:
                    add(term, ())
        for contradiction in theirs:
            for comparison in contradiction.comparisons:
                for operator, term in _seen_from(variable, comparison):
                    if (gaps or operator in _BELOW or operator == "!=") and term not in group:
                        add(term, contradiction.residue)
    return list(found.values())


def _ordinal(value: Value) -> float:
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return float(value.toordinal())
    return float(value) if isinstance(value, (int, float, Decimal)) else 0.0


def is_number(value: Value) -> bool:
    """Whether a constant is a number."""
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _seen_from(variable: Variable, comparison: Comparison) -> Iterator[tuple[Operator, Term]]:
    if comparison.left == variable:
        yield comparison.operator, comparison.right
    elif comparison.right == variable:
        yield MIRRORED[comparison.operator], comparison.left


def _placed(
    partial: Iterable[tuple[dict[Variable, Position], dict[Term, Atom]]],
    group: Sequence[Variable],
    landmarks: Sequence[_Landmark],
    mine: Sequence[Comparison],
) -> Iterator[tuple[dict[Variable, Position], dict[Term, Atom]]]:
    for positions, patterns in partial:
        for placed in _ways(dict(positions), list(group), group, landmarks, mine):
            used = {p.landmark for p in placed.values() if isinstance(p, (At, Above))}
            more = {one.term: one.pattern for one in landmarks if one.pattern and one.term in used}
            yield placed, {**patterns, **more}


def _ways(
    positions: dict[Variable, Position],
    waiting: list[Variable],
    group: Sequence[Variable],
    landmarks: Sequence[_Landmark],
    mine: Sequence[Comparison],
) -> Iterator[dict[Variable, Position]]:
    """Every consistent way of placing the variables of one group."""
    check()
    if not waiting:
        yield positions
        return
    variable, *rest = waiting
    earlier = [v for v in group if v in positions and not isinstance(positions[v], At)]
    options: list[dict[Variable, Position]] = [
        {**positions, variable: At(landmark.term)} for landmark in landmarks
    ]
    options += ({**positions, variable: At(other)} for other in earlier)
    for gap in (None, *(landmark.term for landmark in landmarks)):
        inside = sorted(
            (v for v in earlier if gap_of(positions[v]) == gap), key=lambda v: rank_of(positions[v])
        )
        for at in range(len(inside) + 1):
            order = [*inside[:at], variable, *inside[at:]]
            ranked = {v: Below(i) if gap is None else Above(gap, i) for i, v in enumerate(order)}
            options.append({**positions, **ranked})
    for option in options:
        placed = set(option)
        ready = [c for c in mine if not _unplaced(c, group, placed)]
        if all(resolved(c, _followed(option)) is not None for c in ready):
            yield from _ways(option, rest, group, landmarks, mine)


def _unplaced(comparison: Comparison, group: Sequence[Variable], placed: set[Variable]) -> bool:
    return any(v in group and v not in placed for v in variables_of([comparison]))


def _followed(positions: Positions) -> dict[Variable, Position]:
    """The positions with a variable that equals another one at that one's landmark, or in its place."""
    result: dict[Variable, Position] = {}
    for variable, position in positions.items():
        found = position
        while isinstance(found, At) and isinstance(found.landmark, Variable):
            following = positions.get(found.landmark)
            if not isinstance(following, At):
                break
            found = following
        result[variable] = found
    return result


def _made(
    start: NewFacts,
    positions: dict[Variable, Position],
    patterns: Mapping[Term, Atom],
    mine: Sequence[Comparison],
    compared: _Compared,
    groups: Sequence[Sequence[Variable]],
) -> NewFacts | None:
    """The new facts with these positions, or None where constants alone rule them out."""
    placed = _followed(positions)
    conditions = list(start.conditions)
    for comparison in mine:
        demanded = resolved(comparison, placed)
        if demanded is None:
            return None
        conditions.extend(demanded)
    for group in groups:  # condition 3
        gaps = dict.fromkeys(p.landmark for v in group if isinstance(p := placed[v], Above))
        different = (Comparison("!=", one, other) for one, other in combinations(gaps, 2))
        conditions.extend(c for c in different if variables_of([c]))
    landmarks = (p.landmark for p in placed.values() if isinstance(p, (At, Above)))
    conditions.extend(NullTest(t) for t in landmarks if isinstance(t, Variable) and t not in start.fresh)
    together = frozenset([*mine, *_sides(placed, compared.constants)])
    types = frozenset((v, compared.types.get(v, ANY)) for v in variables_of(together))
    if not _is_satisfiable(together, types):
        return None
    return replace(
        start,
        positions=tuple(placed.items()),
        patterns=(*start.patterns, *patterns.values()),
        conditions=tuple(dict.fromkeys(conditions)),
        is_approximate=any(compared.has_gaps(v) for v, p in placed.items() if not isinstance(p, At)),
    )


@lru_cache(maxsize=10_000)
def _is_satisfiable(
    comparisons: frozenset[Comparison], types: frozenset[tuple[Variable, ColumnType]]
) -> bool:
    """Whether comparisons can hold together; the same ones come up for many sets of new facts."""
    return satisfiable(sorted(comparisons, key=str), dict(types))


def _sides(placed: Positions, constants: Mapping[Variable, tuple[Constant, ...]]) -> Iterator[Comparison]:
    """What the positions say of the constants on either side, and of each other in one gap."""
    for variable, position in placed.items():
        match position:
            case At(landmark):
                yield Comparison("=", variable, landmark)
            case Below():
                yield from (Comparison("<", variable, c) for c in constants[variable])
            case Above(landmark):
                yield Comparison(">", variable, landmark)
                if isinstance(landmark, Constant):
                    higher = (c for c in constants[variable] if constants_compare("<", landmark, c))
                    yield from (Comparison("<", variable, c) for c in higher)
    yield from in_one_gap(placed)


class _Compared(Struct, frozen=True):
    """What the free variables are compared with, and their types.

    Attributes:
        constants: for each free variable, those that its group is compared with.
        with_data: free variables in one group with a value of the data.
    """

    types: Mapping[Variable, ColumnType]
    constants: Mapping[Variable, tuple[Constant, ...]]
    with_data: frozenset[Variable]

    def is_dense(self, variable: Variable) -> bool:
        """Whether a variable's type is a dense order without ends."""
        its = self.types.get(variable, ANY)
        texts = any(not is_number(c.value) for c in self.constants[variable])
        return its.name.has_signed_zeros and not (its == ANY and texts)

    def has_gaps(self, variable: Variable) -> bool:
        """Condition 4: whether there may be no value just above or below the data for a variable."""
        if self.is_dense(variable):
            return False
        return variable in self.with_data or not self._has_room(variable)

    def _has_room(self, variable: Variable) -> bool:
        """Whether the gaps between the constants are wide: narrow ones may be filled by what is known."""
        its = self.types.get(variable, ANY)
        if its.family not in ("number", "date"):
            return True
        values = sorted(_ordinal(c.value) for c in self.constants[variable] if c.value is not None)
        return all(b - a >= WIDE for a, b in pairwise(values) if b != a)
