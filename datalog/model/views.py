"""What a view is, beyond one rule: duplicates, computed columns, aggregates.

A `ViewDefinition` is a union of blocks. A block is a conjunctive core, filters that no literal can state,
perhaps grouping, and one expression for each column:

    core rows  ->  filters  ->  groups and aggregates  ->  having  ->  outputs  ->  union of the blocks

Semantics, everywhere in this package:

1. Relations are bags: a base relation without a declared key may hold a row twice.
2. The core is a *bag*: one row for each way of matching its body, times the copies of the matched rows. Its
   head has the variables that filters, groups, aggregates and outputs use, in order of first appearance. Where
   base relations are sets, the core with all body variables in its head is a set.
3. The body has SQL's join semantics: a variable at two places of the body's atoms is never null.
4. A filter, and a `having`, lets a row or group pass where it is true (not where it is unknown).
5. `groups` is None for a block without grouping. Else each group of core rows with equal values of these
   expressions (null equals null) makes one row; with no expressions at all there is one group, even over no
   core rows. Outputs and `having` are then made of grouping expressions, constants and aggregates.
6. The blocks' rows are added up (UNION ALL). With `Semantics.SET` each row then stands once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum, unique

from msgspec import Struct

from datalog.copies import replace
from datalog.model.expressions import Aggregate, Condition, Expression, aggregates_of, expression_variables
from datalog.model.literals import Atom, Literal, Negation
from datalog.model.predicates import Predicate, Version
from datalog.model.rules import Rule
from datalog.model.spans import Span
from datalog.model.substitution import apply_literal, variables_of
from datalog.model.terms import Constant, Term, Variable


@unique
class Semantics(Enum):
    """Whether a view's rows stand once, or as often as they are derived."""

    SET = "set"
    BAG = "bag"


class Block(Struct, frozen=True):
    """One SELECT of a view; make it by `block`, which names the core's head.

    Attributes:
        core: the conjunctive part; its head's predicate is `view@core_i`, i the number of the block.
        filters: conditions over core variables that no literal of the body can state.
        outputs: one expression for each column of the view.
        groups: grouping expressions, without constants and aggregates; None without grouping.
    """

    core: Rule
    outputs: tuple[Expression, ...]
    filters: tuple[Condition, ...] = ()
    groups: tuple[Expression, ...] | None = None
    having: tuple[Condition, ...] = ()

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        """The distinct aggregates of outputs and having, in order."""
        return aggregates_of((*self.outputs, *self.having))

    @property
    def variables(self) -> tuple[Variable, ...]:
        """The variables of the core's head: those that anything above the core uses."""
        return tuple(term for term in self.core.head.terms if isinstance(term, Variable))

    @property
    def is_plain(self) -> bool:
        """Whether outputs are just variables and constants, over the core alone."""
        terms = all(isinstance(output, Variable | Constant) for output in self.outputs)
        return terms and not self.filters and self.groups is None

    @property
    def is_constant(self) -> bool:
        """Whether it reads no relation: its rows are written in it."""
        return not any(isinstance(literal, Atom | Negation) for literal in self.core.body)


@dataclass(frozen=True, slots=True)
class ViewDefinition:
    """A view: its columns, and the blocks that its rows come from.

    Attributes:
        columns: its columns' names, in order.
        blocks: at least one, each with as many outputs as there are columns.
        semantics: whether equal rows of the result stand once.
        text: the SQL query that it was read from, if it was.
        span: where it is defined.
        is_split: whether the blocks are one query's rows with partners in its LEFT JOINs, and those without; or it is
            one of these.
    """

    name: str
    columns: tuple[str, ...]
    blocks: tuple[Block, ...]
    semantics: Semantics = Semantics.BAG
    text: str | None = field(default=None, compare=False, repr=False)
    span: Span | None = field(default=None, compare=False, repr=False)
    is_split: bool = field(default=False, repr=False)

    @property
    def predicate(self) -> Predicate:
        """The predicate of its stored rows."""
        return Predicate(self.name)

    @property
    def reads(self) -> tuple[Predicate, ...]:
        """The predicates of its bodies' atoms, in order of first appearance."""
        return tuple(dict.fromkeys(a.predicate for b in self.blocks for a in b.core.atoms))

    @property
    def is_grouped(self) -> bool:
        """Whether some block groups."""
        return any(one.groups is not None for one in self.blocks)


def with_flag(columns: Sequence[str]) -> tuple[str, ...]:
    """The columns, and behind them one that says whether a row is there: 1 or 0.

    >>> with_flag(["a"]), with_flag(["Is_There"])
    (('a', 'is_there'), ('Is_There', 'is_there_'))
    """
    flag = "is_there"
    while flag in {name.casefold() for name in columns}:
        flag += "_"
    return *columns, flag


class TextRead(Struct, frozen=True):
    """A place in a query's text where the name of a relation stands.

    Attributes:
        start: the 0-based offset of the name in the text.
        end: the offset behind it.
        of: the base relation or stored view that the name means, or the query that stands for it.
        alias: what the rest of the query calls it, if the text does not say that behind the name.
    """

    start: int
    end: int
    of: str | TextQuery
    alias: str | None = None


class TextQuery(Struct, frozen=True):
    """A query as text, and everything that it reads.

    Attributes:
        text: the query in Spark SQL.
        reads: the places of all names of relations, in order.
        columns: names for its columns that are given apart from it; none if they are the query's own.
        refused: why it is not to be run all the same.
        named: the names of the columns that it may use, in lower case; None if any.
    """

    text: str
    reads: tuple[TextRead, ...]
    columns: tuple[str, ...] = ()
    refused: NotToRun | None = None
    named: frozenset[str] | None = None

    @property
    def relations(self) -> tuple[str, ...]:
        """The base relations and stored views that it reads, also through the queries within."""
        found = ((r.of,) if isinstance(r.of, str) else r.of.relations for r in self.reads)
        return tuple(dict.fromkeys(name for names in found for name in names))


@dataclass(frozen=True, slots=True)
class NotToRun:
    """Why a query of which only the text is known is not to be run; `hint` is what to do about it, if that is known."""

    why: str
    hint: str | None = None
    span: Span | None = field(default=None, compare=False, repr=False)


class OuterSide(Struct, frozen=True):
    """What one LEFT JOIN adds to the rows of the side that is kept, as a view of inner joins.

    Attributes:
        definition: the kept side joined with it, each row once.
        columns: for each of its columns, the 0-based column of the view that it is.
        own: the columns of the view that have its values.
        defaults: what these hold in a row without a partner.
        told: what of a row's columns, `branches.column(i)`, says that it has a partner.
        shown: what it is called.
    """

    definition: ViewDefinition
    columns: tuple[int, ...]
    own: tuple[int, ...]
    defaults: tuple[Constant, ...]
    told: Literal
    shown: str


class FullJoin(Struct, frozen=True):
    """That a view has all rows of what is joined, too, not only those with a partner on the kept side.

    Attributes:
        own: the columns of the view that have values of the kept side alone.
        defaults: what these hold in a row without one of the kept side.
        told: what of a row's columns says that it has one.
        shown: what the kept side is called.
        pairs: the columns of the view that the join makes equal, of the kept side and of the other one.
    """

    own: tuple[int, ...]
    defaults: tuple[Constant, ...]
    told: Literal
    shown: str
    pairs: tuple[tuple[int, int], ...]


class ComputedColumn(Struct, frozen=True):
    """A column of a view that is computed from other columns of its rows.

    Attributes:
        place: which column it is, 0-based.
        value: what it is, over `branches.column(i)`, the columns of what the view is made of.
    """

    place: int
    name: str
    value: Expression


class OuterJoin(Struct, frozen=True):
    """A view with LEFT JOINs as the views of inner joins that its rows tell, and that it is made of.

    Or, without any, one whose rows are those of another view with more columns, computed from that one's.

    Attributes:
        kept: the side of which every row stands in the view, with or without partners; each row once.
        columns: for each of its columns, the 0-based column of the view that it is.
        sides: what is joined, in order: a side may join with those before it.
        computed: the view's columns that show no column of the kept side or of what is joined as it is: computed from
            these, or from one at their own place, which they tell.
        key: of `columns` those that tell the rows of the kept side apart; sides have these; none where all do.
        full: of a FULL JOIN, in which the one side is alone, and not what it and the kept one have in common.
    """

    kept: ViewDefinition
    columns: tuple[int, ...]
    sides: tuple[OuterSide, ...] = ()
    computed: tuple[ComputedColumn, ...] = ()
    key: tuple[int, ...] = ()
    full: FullJoin | None = None

    @property
    def parts(self) -> tuple[tuple[ViewDefinition, tuple[int, ...]], ...]:
        """What it is made of, each with the columns of the view that its columns are."""
        sides = ((side.definition, side.columns) for side in self.sides)
        return (self.kept, self.columns), *sides

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the view's columns."""
        named = {i: name for part, places in self.parts for i, name in zip(places, part.columns, strict=True)}
        named |= {one.place: one.name for one in self.computed}
        return tuple(named[i] for i in range(len(named)))

    @property
    def plain(self) -> tuple[int, ...]:
        """The places of the columns of what it is made of."""
        return tuple(sorted({i for _, places in self.parts for i in places}))

    @property
    def plain_names(self) -> tuple[str, ...]:
        """The names of these columns."""
        return tuple(self.names[i] for i in self.plain)

    def over(self, change: Callable[[ViewDefinition], ViewDefinition]) -> OuterJoin:
        """The same with the definitions changed."""
        sides = (replace(side, definition=change(side.definition)) for side in self.sides)
        return replace(self, kept=change(self.kept), sides=tuple(sides))


class AntiJoin(Struct, frozen=True):
    """A view of the rows of one relation that have no match in another one.

    Attributes:
        kept: the view without that condition, over the one relation.
        barred: the values that have a match, none of them null: what the other relation's rows that count hold.
        join: for each column of `barred`, the 0-based column of the view that is compared with it.
        key: the view's columns that are a key of the kept relation, and in the same order which of its they are.
        by_key: whether `join` are the columns of `key`, in some order.
        references: whether the columns of `barred` are a foreign key that references that key.
        once: whether no two rows of the other relation have the same values there.
    """

    kept: ViewDefinition
    barred: ViewDefinition
    join: tuple[int, ...]
    key: tuple[tuple[int, int], ...]
    by_key: bool
    references: bool
    once: bool

    @property
    def definition(self) -> ViewDefinition | None:
        """The view as one definition, by `not` some atoms; None where it is computed what has a match."""
        (one,), (other,) = self.kept.blocks, self.barred.blocks
        compared = [one.outputs[i] for i in self.join]
        pairs = dict(zip(other.outputs, compared, strict=True))
        if other.filters or len(pairs) < len(self.join) or not _are_variables([*pairs, *compared]):
            return None
        inside = variables_of(other.core.body)
        image: dict[Variable, Term] = {v: Variable(f"Other{i}") for i, v in enumerate(inside)}
        image |= {b: a for b, a in pairs.items() if isinstance(a, Variable) and isinstance(b, Variable)}
        denied = Negation(tuple(apply_literal(image, literal) for literal in other.core.body))
        core = replace(one.core, body=(*one.core.body, denied))
        return replace(self.kept, blocks=(replace(one, core=core),))

    def over(self, change: Callable[[ViewDefinition], ViewDefinition]) -> AntiJoin:
        """The same with the definitions changed."""
        return replace(self, kept=change(self.kept), barred=change(self.barred))


def _are_variables(outputs: Iterable[Expression]) -> bool:
    return all(isinstance(one, Variable) for one in outputs)


@dataclass(frozen=True, slots=True)
class OpaqueView:
    """A view whose query is known only as text: it can be recomputed, and nothing more is known of it.

    Attributes:
        text: its query in Spark SQL.
        reasons: why it could not be read, in words.
        columns: its columns' names, where they are known.
        span: where it is defined.
        query: the text with all that it reads, or why it is not to be run.
        parts: of one that groups over a UNION ALL: the same over each of its queries alone.
        outer: of one with LEFT JOINs whose rows tell what they are made of: that.
        anti: of one of rows that have no match: that.
    """

    name: str
    text: str
    reasons: tuple[str, ...]
    columns: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)
    query: TextQuery | NotToRun = field(
        default=NotToRun("its query is not at hand"), compare=False, repr=False
    )
    parts: tuple[ViewDefinition, ...] = field(default=(), compare=False, repr=False)
    outer: OuterJoin | None = field(default=None, compare=False, repr=False)
    anti: AntiJoin | None = field(default=None, compare=False, repr=False)

    @property
    def refused(self) -> NotToRun | None:
        """Why its query is not to be run, if it is not."""
        return self.query if isinstance(self.query, NotToRun) else self.query.refused

    @property
    def by_rules(self) -> ViewDefinition | None:
        """What is known of it besides its text: of rows that have no match, that they have none."""
        return None if self.anti is None else self.anti.definition


def block(
    view: str,
    number: int,
    body: Iterable[Literal],
    outputs: Iterable[Expression],
    *,
    filters: Iterable[Condition] = (),
    groups: Iterable[Expression] | None = None,
    having: Iterable[Condition] = (),
) -> Block:
    """A block, with the core's head made from what the rest uses.

    >>> from datalog.model.terms import Variable
    >>> x, y = Variable("X"), Variable("Y")
    >>> made = block("v", 0, [Atom(Predicate("r"), (x, y))], [y])
    >>> str(made.core.head.predicate), made.core.head.terms, made.is_plain
    ('v@core_0', (Variable(name='Y'),), True)
    """
    above = (tuple(filters), tuple(outputs), None if groups is None else tuple(groups), tuple(having))
    used = expression_variables((*above[1], *(above[2] or ()), *above[3], *above[0]))
    head = Atom(Predicate(view, Version.CORE, (number,)), used)
    return Block(Rule(head, tuple(body)), above[1], above[0], above[2], above[3])


def implied_groups(outputs: Iterable[Expression]) -> tuple[Expression, ...]:
    """The grouping that outputs suggest: those that hold variables, and no aggregate; each once."""
    return tuple(dict.fromkeys(o for o in outputs if expression_variables([o]) and not aggregates_of([o])))
