"""What a query sees of base relations: some of the rows, and of these some of the columns.

    SELECT c.segment, percentile(o.total, 0.5) FROM orders o JOIN customer c ON o.customer = c.id
    WHERE o.status = 'paid' GROUP BY c.segment
    of `orders` it sees `customer` and `total` of the rows that are paid; of `customer` it sees `id` and `segment`

Conditions of soundness:

1. A condition on the columns of one occurrence of a relation may be put to its rows first where every operator in
   between gives the same then. It is true of all rows that are left: what it asks for is not seen otherwise. What is
   compared is not null where that holds, and may be asked for so.
2. Of these rows the query is a function of the bag of what they hold in columns that some operator uses: for the
   result, to leave rows out, to join, group, order or count equal rows by. Each column has one number in the whole
   query, and so what a subquery uses of the rows around counts as well. The first rows by an order that is not known
   may use all columns.
3. Each occurrence of a relation is one of its own.
4. Rows that no row of another occurrence matches where they are joined are not seen, as demands are put down (condition
   2 of `demands.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from sqlglot import exp

from datalog.diagnostics import ProgramError
from datalog.model import ANY, Column, ColumnType, Declaration, ViewDefinition
from datalog.sql.affected.demands import Demands
from datalog.sql.affected.plan import (
    Aggregate,
    Combined,
    Distinct,
    Filter,
    Join,
    Limited,
    Plan,
    Project,
    Query,
    Scan,
    Series,
    Table,
    Windows,
    column,
    every,
    linked,
    number_of,
)
from datalog.sql.text import text
from datalog.sql.views.limits import parts_of
from datalog.sql.views.read import read_sql
from datalog.sql.views.source import SqlText
from datalog.sql.views.written_out.as_written import with_parts

_PLAIN = (
    *(exp.Column, exp.Literal, exp.Null, exp.Boolean, exp.Neg, exp.Paren, exp.Identifier),
    *(
        exp.And,
        exp.Or,
        exp.Not,
        exp.EQ,
        exp.NEQ,
        exp.LT,
        exp.LTE,
        exp.GT,
        exp.GTE,
        exp.Is,
        exp.In,
        exp.Between,
    ),
)
"""What a condition may be made of to be read as one of single rows; it is written as it was."""


class Seen(Struct, frozen=True):
    """What a query sees of one occurrence of a relation.

    Attributes:
        columns: the 0-based positions of the columns that it uses.
        tests: what is true of the rows that it sees; the column in position 3 is called `c3`.
        matched: of the rows that it sees a column holds a value that another relation's column holds: the position, and
            the relation's name and the position there.
    """

    table: Table
    columns: frozenset[int]
    tests: tuple[exp.Expr, ...] = ()
    matched: frozenset[tuple[int, str, int]] = frozenset()


def seen(query: Query) -> tuple[Seen, ...]:
    """What a query sees, by occurrence."""
    operators = list(every(query.plan))
    moved, down = set[int](), dict[int, list[exp.Expr]]()
    for test, found in _Down(_kinds(operators)).tests(operators):
        moved.add(id(test))
        for scan, its in found:
            if its not in down.setdefault(scan.number, []):
                down[scan.number].append(its)
    used = {number for _, number in query.outputs}
    before = -1
    while len(used) > before:
        before = len(used)
        for one in operators:
            used.update(_used(one, used, moved))
    scans = {one.number: one for one in operators if isinstance(one, Scan)}
    matched = {number: set[tuple[int, str, int]]() for number in scans}
    for link in Demands(query.plan).links():
        if len(link.sources) == 1:
            ((source, place),) = link.sources
            target, own = link.target
            matched[target].add((own, scans[source].table.name, place))
    return tuple(
        Seen(
            scan.table,
            frozenset(i for i, one in enumerate(scan.columns) if one in used),
            tuple(_renamed(test, scan.columns) for test in down.get(number, ())),
            frozenset(matched[number]),
        )
        for number, scan in scans.items()
    )


def _used(plan: Plan, above: set[int], moved: set[int]) -> Iterator[int]:
    """The columns that an operator uses, where those of `above` are."""
    match plan:
        case Filter(tests=tests) | Join(tests=tests):
            yield from _columns(test for test in tests if id(test) not in moved)
        case Project(items=items) | Windows(items=items):
            yield from _columns(tree for number, tree in items if number in above)
        case Series(_, _, first, last):
            yield from _columns([first, last])
        case Aggregate(groups=groups, items=items):
            yield from groups
            yield from _columns(tree for number, tree in items if number in above)
        case Distinct(input):
            yield from input.columns
        case Combined(kind, distinct, _, _, pairs):
            is_whole = distinct or kind != "union"
            yield from (n for own, *both in pairs if is_whole or own in above for n in both)
        case Limited(order=(_, *_) as order):
            yield from (number for number, _, _ in order)
        case Limited(input):  # whatever it orders by need not be shown
            yield from (number for one in every(input) if isinstance(one, Scan) for number in one.columns)
        case _:
            pass
    for sub in linked(plan):
        yield from () if sub.kind == "exists" else sub.plan.columns
        yield from _columns([] if sub.operand is None else [sub.operand])


def _columns(trees: Iterable[exp.Expr]) -> Iterator[int]:
    """The numbers of the columns that stand in trees."""
    found = (number_of(one) for tree in trees for one in tree.find_all(exp.Column) if one.name[:1] == "c")
    return (number for number in found if number is not None)


# -------------------------------------------------------------------------------------- where conditions may be put


def _kinds(operators: Sequence[Plan]) -> dict[int, ColumnType]:
    """The types of columns that hold base columns' values as they are."""
    found: dict[int, ColumnType] = {}
    for one in reversed(operators):  # what an operator is over stands behind it
        match one:
            case Scan(table, _, columns):
                found.update(zip(columns, table.types, strict=True))
            case Project(items=items):
                plain = ((number, number_of(tree)) for number, tree in items)
                found.update((number, found[n]) for number, n in plain if n in found)
            case Combined(pairs=pairs):
                same = ((own, {found.get(left), found.get(right)}) for own, left, right in pairs)
                found.update((own, kind) for own, (kind, *more) in same if kind is not None and not more)
            case _:
                pass
    return found


class _Down(Struct, frozen=True):
    """Puts tests down to the rows of base relations.

    Attributes:
        kinds: the types of columns that hold base columns' values as they are.
    """

    kinds: Mapping[int, ColumnType]

    def tests(self, operators: Iterable[Plan]) -> Iterator[tuple[exp.Expr, list[tuple[Scan, exp.Expr]]]]:
        """Each test that may be asked of rows of base relations alone, and as what of which."""
        for one in operators:
            match one:
                case Filter(input, tests):
                    below: tuple[Plan, ...] = (input,)
                case Join(kind, left, right, tests):
                    below = {"inner": (left, right), "semi": (left, right), "full": ()}.get(kind, (right,))
                case _:
                    continue
            names = {sub.name for sub in linked(one)}
            for test in tests:
                if names.isdisjoint(column.name for column in test.find_all(exp.Column)):
                    found = self._of_any(below, test)
                    if found is not None:
                        yield test, found
                        continue
                for told in _not_null(test):
                    found = self._of_any(below, told) or []
                    yield told, [(scan, its) for scan, its in found if not _is_told(scan, its)]

    def _of_any(self, plans: Iterable[Plan], test: exp.Expr) -> list[tuple[Scan, exp.Expr]] | None:
        return next((found for plan in plans if (found := self._of(plan, test)) is not None), None)

    def _of(self, plan: Plan, test: exp.Expr) -> list[tuple[Scan, exp.Expr]] | None:
        """The occurrences whose rows a test of a plan's rows may be asked of instead; None if there are none."""
        asked = set(_columns([test]))
        if not asked or not asked.issubset(plan.columns):
            return None
        match plan:
            case Scan():
                return [(plan, test)]
            case Filter(input) | Distinct(input):
                return self._of(input, test)
            case Project(input, items):
                own = ((number, number_of(tree)) for number, tree in items if number in asked)
                plain = {number: inside for number, inside in own if inside is not None}
                return self._of(input, _over(test, plain))
            case Join(kind, left, right):
                return self._of_any({"inner": (left, right), "full": ()}.get(kind, (left,)), test)
            case Aggregate(input, _, common):
                return self._of(input, test) if asked <= common else None
            case Windows(input, items):
                parts = [{number_of(one) for one in tree.args.get("partition_by") or ()} for _, tree in items]
                return self._of(input, test) if all(asked <= part for part in parts) else None
            case Combined(_, _, left, right, pairs) if asked <= self.kinds.keys():
                one = self._of(left, _over(test, {own: n for own, n, _ in pairs}))
                other = self._of(right, _over(test, {own: n for own, _, n in pairs}))
                return None if one is None or other is None else [*one, *other]
            case _:
                return None


def _not_null(test: exp.Expr) -> Iterator[exp.Expr]:
    """That what a test compares is not null, of columns that stand there alone."""
    if isinstance(test, exp.EQ | exp.NEQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        for side in (test.this, test.expression):
            if isinstance(side, exp.Column):
                yield exp.Not(this=exp.Is(this=side.copy(), expression=exp.Null()))


def _is_told(scan: Scan, test: exp.Expr) -> bool:
    """Whether the columns of a test are declared not to be null."""
    return scan.table.nullable.isdisjoint(scan.columns.index(number) for number in _columns([test]))


def _over(test: exp.Expr, image: Mapping[int, int]) -> exp.Expr:
    """A test of other columns."""

    def change(node: exp.Expr) -> exp.Expr:
        number = number_of(node) if isinstance(node, exp.Column) else None
        if number is not None:
            return column(image.get(number, number))
        return with_parts(node, change)

    return change(test)


def _renamed(test: exp.Expr, columns: Sequence[int]) -> exp.Expr:
    """A test whose columns are called by their positions."""
    return _over(test, {number: i for i, number in enumerate(columns)})


# ------------------------------------------------------------------------------------------------ as a definition


def selection(part: Seen) -> ViewDefinition | None:
    """What is seen, as a view; of tests that are not read as conditions of single rows the columns are shown too.

    Its relation is called `r`, and has the columns `c0`, `c1`, ...; None if it cannot be read.
    """
    tests = [one for test in part.tests for one in parts_of(test, exp.And)]
    types = part.table.types
    plain = [test for test in tests if _is_plain(test) and all(types[i] != ANY for i in _columns([test]))]
    found = _read(part, part.columns.union(_columns(t for t in tests if t not in plain)), plain)
    return _read(part, part.columns.union(_columns(tests)), []) if found is None and plain else found


def _is_plain(tree: exp.Expr) -> bool:
    return all(
        isinstance(node, _PLAIN)
        and not (isinstance(node, exp.Literal) and "\\" in node.this)
        and not (isinstance(node, exp.In) and (node.args.get("query") or node.args.get("unnest")))
        for node in tree.walk()
    )


def _read(part: Seen, shown: Iterable[int], tests: Sequence[exp.Expr]) -> ViewDefinition | None:
    columns = tuple(
        Column(f"c{i}", kind, not_null=i not in part.table.nullable)
        for i, kind in enumerate(part.table.types)
    )
    items: list[exp.Expr] = [column(i) for i in sorted(shown)] or [exp.Literal.number(1).as_("one")]
    tree = exp.select(*items).from_("r")
    query = tree.where(*(exp.Paren(this=test.copy()) for test in tests)) if tests else tree
    try:
        found = read_sql([SqlText(f"CREATE VIEW part AS {text(query)}")], [Declaration("r", columns)])
    except ProgramError:
        return None
    return found.views[0] if found.views else None
