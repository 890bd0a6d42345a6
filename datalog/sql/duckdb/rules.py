"""The rules of one predicate as one query for DuckDB, with the types of its columns.

Tables hold the rows of all other predicates: a program is evaluated predicate by predicate, so that the sizes of what
is read are known and nothing is computed twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count

from msgspec import Struct
from sqlglot import exp

from datalog.copies import replace
from datalog.model import (
    ANY,
    Atom,
    ColumnType,
    Comparison,
    Constant,
    Literal,
    Negation,
    NullTest,
    Predicate,
    Program,
    Rule,
    Term,
    Variable,
    apply_atom,
    apply_literal,
    variables_of,
)
from datalog.rewrite.inline import inline
from datalog.rewrite.nesting import spark_shaped
from datalog.sql.block import Place
from datalog.sql.conditions import Block, Writer
from datalog.sql.duckdb.relations import numbered_items
from datalog.sql.duckdb.types import SqlType, cast, common, value_type
from datalog.sql.tables import Table

Types = Mapping[Predicate, Sequence[SqlType]]


class Derived(Struct, frozen=True):
    """The rows that rules derive.

    Attributes:
        queries: one a rule that derives anything, columns `c0`, `c1`, ... (one, always true, of a head without terms).
        types: of the columns of the head.
        not_null: the columns that are never null.
    """

    queries: tuple[exp.Select, ...]
    types: tuple[SqlType, ...]
    not_null: frozenset[int] = frozenset()

    def query(self, *, distinct: bool = True) -> exp.Query:
        """All rows, each once; or as often as the rules derive it, if not `distinct`."""
        if not self.queries:
            return nothing(self.types)
        if len(self.queries) > 1:
            return exp.union(*self.queries, distinct=distinct, copy=False)
        (only,) = self.queries
        if distinct and only.args.get("from_") is not None:
            only.set("distinct", exp.Distinct())
        return only


def derived(rules: Sequence[Rule], tables: Mapping[Predicate, Table], types: Types) -> Derived:
    """What the rules of one predicate derive.

    Raises:
        UnlikeSparkError: DuckDB would compare otherwise than Spark.
        EmissionError: an unsafe rule, or a predicate without a table.
    """
    goal, arity = rules[0].head.predicate, rules[0].head.arity
    typed = tuple(kept_apart(without_void(rule, types), types) for rule in rules)
    normal = inline(Program(typed), goal).get(goal, ())
    writer = Writer(tables)
    made: list[tuple[Block, tuple[Term, ...], list[SqlType]]] = []
    for rule in normal:
        require_comparable(rule.body, types, {})
        block = writer.block(spark_shaped(rule.body))
        made.append((block, rule.head.terms, [term_type(block, term, types) for term in rule.head.terms]))
    united = tuple(common(kinds[i] for _, _, kinds in made) for i in range(arity))
    queries = tuple(_query(block, terms, kinds, united) for block, terms, kinds in made)
    known = (i for i in range(arity) if all(block.frame.is_known(terms[i]) for block, terms, _ in made))
    return Derived(queries, united, frozenset(known))


def _query(
    block: Block, terms: Sequence[Term], kinds: Sequence[SqlType], united: Sequence[SqlType]
) -> exp.Select:
    values: list[exp.Expr] = []
    for term, kind, wanted in zip(terms, kinds, united, strict=True):
        tree = block.frame.tree(term)
        # A constant's own type in DuckDB follows what it meets.
        values.append(cast(tree, wanted) if kind != wanted or isinstance(term, Constant) else tree)
    return block.query(numbered_items(values), distinct=False, hint=False, once=True)


def kept_apart(rule: Rule, types: Types) -> Rule:
    """A rule in which no number stands for another one that is only equal to it as a double: 2**53 and the next."""
    found = {
        term: kind
        for atom in _atoms(rule.body)
        for term, kind in zip(atom.terms, types.get(atom.predicate, ()), strict=False)
        if isinstance(term, Variable) and isinstance(kind, ColumnType)
    }
    return replace(rule, body=_kept_apart(rule.body, found))


def _atoms(body: Sequence[Literal]) -> Iterator[Atom]:
    for literal in body:
        if isinstance(literal, Atom):
            yield literal
        elif isinstance(literal, Negation):
            yield from _atoms(literal.body)


def _kept_apart(body: Sequence[Literal], types: Mapping[Variable, ColumnType]) -> tuple[Literal, ...]:
    made: list[Literal] = []
    for literal in body:
        match literal:
            case Negation(inner):
                made.append(replace(literal, body=_kept_apart(inner, types)))
            case Comparison("=", Variable() as left, Variable() as right) if left in types and right in types:
                one, other = types[left], types[right]
                is_one = one.is_found_by(other) and other.is_found_by(one)
                made += (
                    [literal]
                    if is_one
                    else [replace(literal, operator="<="), replace(literal, operator=">=")]
                )
            case _:
                made.append(literal)
    return tuple(made)


def nothing(types: Sequence[SqlType]) -> exp.Query:
    """No rows, of columns of some types."""
    values = [cast(exp.Null(), kind) for kind in types]
    return exp.select(*numbered_items(values)).where(exp.false(), copy=False)


def term_type(block: Block, term: Term, types: Types) -> SqlType:
    """The type of the tree that stands for a term of a body."""
    if isinstance(term, Constant):
        return value_type(term.value)
    place = block.frame.place(term)
    return ANY if place is None else _place_type(block, place, types)


def _place_type(block: Block, place: Place, types: Types) -> SqlType:
    source = block.joins.sources[place.source]
    return types[source.atom.predicate][source.table.columns.index(place.column)]


def require_comparable(
    body: Sequence[Literal], types: Types, around: Mapping[Variable, SqlType]
) -> dict[Variable, SqlType]:
    """The types of a body's variables, if whatever meets in it compares in DuckDB as it does in Spark.

    Raises:
        UnlikeSparkError: it does not.
    """
    found = dict(around)
    for literal in body:
        if isinstance(literal, Atom):
            for term, kind in zip(literal.terms, types[literal.predicate], strict=True):
                if isinstance(term, Variable):
                    found[term] = common([found.get(term, ANY), kind])
                else:
                    common([value_type(term.value), kind])
    for literal in body:
        if isinstance(literal, Comparison):
            sides = (literal.left, literal.right)
            common(found.get(t, ANY) if isinstance(t, Variable) else value_type(t.value) for t in sides)
        elif isinstance(literal, Negation):
            require_comparable(literal.body, types, found)
    return found


# ----------------------------------------------------------------------------------------------- columns of nulls


def without_void(rule: Rule, types: Types) -> Rule:
    """The rule with null for every variable that a column of nothing but nulls binds: it is of no type.

    Before: `p(X, Y) :- r(X, Y), s(X).`  (the first column of `r` is void)
    After:  `p(null, Y) :- r(_, Y), s(null).`
    """
    names = (Variable(f"void#{number}") for number in count())
    body, nulls = _without_void(rule.body, types, frozenset(), names)
    return replace(rule, head=apply_atom(nulls, rule.head), body=body)


def _without_void(
    body: Iterable[Literal], types: Types, around: frozenset[Variable], names: Iterator[Variable]
) -> tuple[tuple[Literal, ...], dict[Variable, Term]]:
    body = tuple(body)
    null = Constant(None)
    void = dict.fromkeys(
        term
        for atom in body
        if isinstance(atom, Atom)
        for term, kind in zip(atom.terms, types.get(atom.predicate, ()), strict=False)
        if kind == ANY
    )
    nulls: dict[Variable, Term] = {t: null for t in void if isinstance(t, Variable) and t not in around}
    inner = around | frozenset(variables_of([li for li in body if not isinstance(li, Negation)]))
    result: list[Literal] = [NullTest(term, negated=False) for term in void if term not in nulls]
    for literal in body:
        if isinstance(literal, Negation):
            negated, _ = _without_void(literal.body, types, inner, names)
            result.append(apply_literal(nulls, replace(literal, body=negated)))
        elif isinstance(literal, Atom):
            kinds = types.get(literal.predicate, ())
            terms = [
                next(names) if i < len(kinds) and kinds[i] == ANY else term
                for i, term in enumerate(literal.terms)
            ]
            result.append(apply_atom(nulls, Atom(literal.predicate, tuple(terms), literal.span)))
        else:
            result.append(apply_literal(nulls, literal))
    return tuple(result), nulls
