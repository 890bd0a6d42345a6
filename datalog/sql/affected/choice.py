"""The columns by which a view is followed, and the base rows that rows with given values there depend on.

The key is some of the view's columns. Its values lead to rows of base relations, these rows to rows of others, step by
step; read backwards, a changed row leads to the values of the key for which anything may be different.

Conditions of soundness:

1. The steps make a tree with the key at its root, so cutting each occurrence by its step is sound (`demands.py`).
2. A changed row that no step, backwards, leads to a value k of the key from, in the state before or after the
   update, is in neither of the two sets of rows that the view's rows of k depend on. So where no changed row leads
   to k, these sets are the same, and so are the rows.

Rows follow from a key that a view does not show (`differing`), too:

    SELECT id, amount - lag(amount) OVER (PARTITION BY customer ORDER BY day, id) AS more FROM sale

The query is run over the base rows of the customers that change, as they were and as they are, and what differs is what
the view loses and gains. The key is a column of an operator of which each row makes rows of the view by itself.

    SELECT s.id, c.name FROM sale s FULL JOIN customer c ON s.customer = c.id      the key is the first known of the two

Conditions of soundness are those 1 and 4 of `additive.py`: a row with a key that no change leads to comes out the same
both times, and nothing depends on the order of rows. Rows are counted: nothing above the key's operator makes several
rows one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count

from msgspec import Struct
from sqlglot import exp

from datalog.sql.affected.demands import Demands, Link, Place
from datalog.sql.affected.determined import is_determined
from datalog.sql.affected.periods import Period, periods_of
from datalog.sql.affected.plan import (
    Aggregate,
    Filter,
    Join,
    Limited,
    Plan,
    Project,
    Query,
    Scan,
    column,
    equalities,
    every,
)


class Step(Struct, frozen=True):
    """Which rows of an occurrence matter: those that have the values of one of its sources.

    Attributes:
        columns: 0-based positions of the columns that are cut.
        sources: occurrences with positions of their columns, in the same order; None is the key.
        period: what the key shows of the one column, if it is not the column's values.
    """

    scan: int
    relation: str
    columns: tuple[int, ...]
    sources: tuple[tuple[int | None, tuple[int, ...]], ...]
    period: Period | None = None


class Keyed(Struct, frozen=True):
    """How a view is followed by keys.

    Attributes:
        key: 0-based positions of the view's columns.
        steps: each behind those of its sources.
        whole: relations of which some occurrence is needed whole.
        looks_up: whether a value of the key finds a single row of some relation.
        finds_many: whether many rows may be found of one, as of an instrument its results.
    """

    key: tuple[int, ...]
    steps: tuple[Step, ...]
    whole: tuple[str, ...] = ()
    looks_up: bool = False
    finds_many: bool = False


class NotKeyed(Struct, frozen=True):
    """Why a view is not followed by keys, in words that go on "...: "."""

    why: str


def keyed(query: Query, changed: Collection[str]) -> Keyed | NotKeyed:
    """The best key of a view under a change of some relations, as far as the query tells."""
    found = keys_of_changes(query, changed)
    return found if isinstance(found, NotKeyed) else found[0]


def keys_of_changes(query: Query, changed: Collection[str]) -> tuple[Keyed, ...] | NotKeyed:
    """The keys of a view under a change of some relations, the best first as far as the query tells.

    Occurrences of relations that change have to be found by the key. Which of the keys leads to the fewest rows, only
    the data tell; of those that begin at the same occurrences it is the widest, and no others are among them.
    """
    demands = Demands(query.plan)
    options = _options(demands)
    reached = [_Choice(demands, places, options) for places in _candidates(demands, query)]
    possible = [one for one in reached if not one.missing & set(changed)]
    if not possible:
        return NotKeyed(_why(query.plan, reached, changed))
    best, *others = sorted(possible, key=lambda one: one.price)
    alike = [one for one in others if one.missing == best.missing]
    widest = [one for one in alike if not any(one.is_part_of(more) for more in (best, *alike))]
    return tuple(one.made() for one in (best, *widest))


def keyed_by_periods(query: Query, changed: Collection[str]) -> tuple[Keyed, ...]:
    """The same by columns that show the days, months or years of base columns, without others: see `periods.py`."""
    demands = Demands(query.plan)
    options = _options(demands)
    shown = periods_of(demands, query.plan, [number for _, number in query.outputs])
    found = [
        (its.ahead, _Choice(demands, dict.fromkeys(key, places), options, its)) for key, its, places in shown
    ]
    possible = [(ahead, one) for ahead, one in found if not one.missing & set(changed)]
    return tuple(
        one.made() for _, one in sorted(possible, key=lambda pair: (pair[1].price[0], pair[0], pair[1].key))
    )


def _candidates(demands: Demands, query: Query) -> Iterable[Mapping[int, frozenset[Place]]]:
    """Sets of outputs, each with the places that it is in: those that an occurrence has, and parts of these."""
    outputs = [(i, demands.of(query.plan, number)) for i, (_, number) in enumerate(query.outputs)]
    by_scan: dict[int, dict[int, int]] = {}
    for i, places in outputs:
        for scan, position in sorted(places):
            by_scan.setdefault(scan, {}).setdefault(i, position)
    sets = {frozenset([i]) for i, places in outputs if places}
    for scan, positions in by_scan.items():
        sets.add(frozenset(positions))
        for key in demands.scans[scan].table.keys:
            inside = frozenset(i for i, position in positions.items() if position in key)
            if {positions[i] for i in inside} == set(key):
                sets.add(inside)
    known = dict(outputs)
    return [{i: known[i] for i in sorted(some)} for some in sorted(sets, key=sorted)]


class _Choice:
    """The steps from one key."""

    def __init__(
        self,
        demands: Demands,
        places: Mapping[int, frozenset[Place]],
        options: Sequence[Step],
        period: Period | None = None,
    ) -> None:
        self.key = tuple(places)
        self.steps: list[Step] = []
        self._demands = demands
        self._period = period
        if all(demands.alike(its) for its in places.values()):
            self._start(list(places.values()))
            self._follow(options)
        done = {step.scan for step in self.steps}
        self.missing = {one.table.name for n, one in demands.scans.items() if n not in done}
        found = sum(map(self._finds_one, self.steps))
        direct = sum(step.sources[0][0] is None for step in self.steps)
        width = len(self.key) if self.looks_up else -len(self.key)
        self.price = (len(demands.scans) - len(done), -found, -direct, width, self.key)

    @property
    def looks_up(self) -> bool:
        """Whether the key's own values find single rows."""
        return any(map(self._finds_one, self._roots))

    def made(self) -> Keyed:
        """How the view is followed by it."""
        many = not all(map(self._finds_one, self.steps))
        return Keyed(self.key, tuple(self.steps), tuple(sorted(self.missing)), self.looks_up, many)

    def is_part_of(self, other: _Choice) -> bool:
        """Whether another key has all columns of this one and more, and begins at the same occurrences."""
        starts = [{step.scan for step in one._roots} for one in (self, other)]
        return set(self.key) < set(other.key) and starts[0] == starts[1]

    @property
    def _roots(self) -> list[Step]:
        return [step for step in self.steps if step.sources[0][0] is None]

    def _start(self, places: Sequence[frozenset[Place]]) -> None:
        """The occurrences that have all columns of the key."""
        every = tuple(range(len(places)))
        for scan, one in sorted(self._demands.scans.items()):
            columns = [min((p for s, p in its if s == scan), default=None) for its in places]
            given = tuple(column for column in columns if column is not None)
            if len(given) == len(places):
                self.steps.append(Step(scan, one.table.name, given, ((None, every),), self._period))

    def _follow(self, options: Sequence[Step]) -> None:
        """Those that these lead to: rows that are found by a key before others."""
        while True:
            done = {step.scan for step in self.steps}
            possible = [
                one
                for one in options
                if one.scan not in done and all(source in done for source, _ in one.sources)
            ]
            if not possible:
                return
            self.steps.append(min(possible, key=self._cost))

    def _finds_one(self, step: Step) -> bool:
        """Whether a value finds a single row."""
        return step.period is None and _is_key(self._demands.scans[step.scan], step.columns)

    def _cost(self, step: Step) -> tuple[bool, int, int]:
        return (not _is_key(self._demands.scans[step.scan], step.columns), -len(step.columns), step.scan)


def _is_key(scan: Scan, columns: Sequence[int]) -> bool:
    return any(set(key) <= set(columns) for key in scan.table.keys)


def _options(demands: Demands) -> list[Step]:
    """All steps from occurrences to others: links of one operator between the same two together."""
    links = [link for link in demands.links() if link.target[0] not in {s for s, _ in link.sources}]
    found = []
    together: dict[tuple[int, int, int], dict[int, int]] = {}
    for link in links:
        if len(link.sources) == 1:
            ((source, position),) = link.sources
            between = together.setdefault((link.node, source, link.target[0]), {})
            between.setdefault(link.target[1], position)
        else:
            found.append(_of_several(demands, link))
    for (_, source, target), columns in together.items():
        name = demands.scans[target].table.name
        found.append(Step(target, name, tuple(columns), ((source, tuple(columns.values())),)))
    return found


def _of_several(demands: Demands, link: Link) -> Step:
    sources = tuple((scan, (position,)) for scan, position in sorted(link.sources))
    return Step(link.target[0], demands.scans[link.target[0]].table.name, (link.target[1],), sources)


def _why(plan: Plan, reached: Sequence[_Choice], changed: Collection[str]) -> str:
    """Why no key leads to all that changes."""
    top = plan
    while isinstance(top, Filter | Project):
        top = top.input
    if isinstance(top, Limited):
        return "its LIMIT chooses rows by looking at all of them"
    if isinstance(top, Aggregate) and not top.groups:
        return "it aggregates all rows into one"
    if isinstance(top, Aggregate) and not top.common:
        return "it has a row of all rows (ROLLUP, CUBE or GROUPING SETS)"
    if not reached:
        return "no column of it is one of a base relation's, by whose values rows could be read"
    missing = min((sorted(one.missing & set(changed)) for one in reached), key=len)
    return f"a change of `{missing[0]}` may change any row: no column leads from its rows to the view's by equality"


def differing(query: Query, changed: Collection[str]) -> Keyed | NotKeyed:
    """The best key, shown or not, of rows that the view's rows are made of one by one."""
    why = NotKeyed("its rows are made of several")
    above: list[Plan] = []
    plan = query.plan
    while True:
        found = keyed(_shown(plan), changed)
        if isinstance(found, Keyed):
            if is_determined(plan, above):
                return found
            return NotKeyed("its rows may depend on the order in which others come")
        why = found
        if not isinstance(plan, Filter | Project) or plan.inner:
            return why
        above.append(plan)
        plan = plan.input


def _shown(plan: Plan) -> Query:
    """A plan with all its columns as outputs, and of a FULL JOIN the first known of each two that are joined."""
    numbers = count(1 + max((n for one in every(plan) for n in one.columns), default=0))
    merged = tuple(
        (next(numbers), exp.Coalesce(this=column(a), expressions=[column(b)])) for a, b in _full(plan)
    )
    shown = Project(plan, merged, extends=True) if merged else plan
    return Query(shown, tuple((f"c{number}", number) for number in shown.columns))


def _full(plan: Plan) -> Iterator[tuple[int, int]]:
    """The pairs of columns by which a FULL JOIN, under filters, joins."""
    while isinstance(plan, Filter):
        plan = plan.input
    if isinstance(plan, Join) and plan.kind == "full":
        yield from (pair for pair in equalities(plan.tests) if set(pair) <= set(plan.columns))
