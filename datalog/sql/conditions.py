"""Literals as conditions of WHERE.

WHERE takes NULL for false, so a condition here may be NULL where its literal is false; a negation is never
pushed onto such a condition, only onto single tests in a form that is exactly the opposite.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import assert_never

from msgspec import Struct
from sqlglot import exp

from datalog.model import Atom, Comparison, Constant, Literal, Negation, NullTest, Predicate, Variable
from datalog.rewrite.normal_form import has_atom
from datalog.sql.block import Frame, Joins, join
from datalog.sql.tables import Table

OPERATORS: Mapping[str, type[exp.Binary]] = {
    "=": exp.EQ,
    "!=": exp.NEQ,
    "<": exp.LT,
    "<=": exp.LTE,
    ">": exp.GT,
    ">=": exp.GTE,
}
"""What each operator is in SQL."""
_OPPOSITES: Mapping[str, type[exp.Binary]] = {
    "=": exp.NEQ,
    "!=": exp.EQ,
    "<": exp.GTE,
    "<=": exp.GT,
    ">": exp.LTE,
    ">=": exp.LT,
}


class Block(Struct, frozen=True):
    """A body in SQL: what `SELECT` is put in front of."""

    joins: Joins
    where: tuple[exp.Expr, ...]

    @property
    def frame(self) -> Frame:
        """What the body's terms are."""
        return self.joins.frame

    def query(
        self, items: Iterable[exp.Expr], *, distinct: bool, hint: bool, once: bool = False
    ) -> exp.Select:
        """The query of some expressions over the body; `once`: how often it gives a row does not matter."""
        query = exp.Select(expressions=list(items))
        if distinct and self.joins.sources:
            query.set("distinct", exp.Distinct())
        asked = self._only_asked(query.expressions) if once else frozenset()
        for number, source in enumerate(self.joins.sources):
            tree = source.table.tree(source.alias)
            if number == 0:
                query.set("from_", exp.From(this=tree))
            else:
                on = list(self.joins.on.get(number, ()))
                query.append("joins", _joined(tree, on, "SEMI" if source.alias in asked else ""))
        if self.where:
            query.set("where", exp.Where(this=exp.and_(*self.where, copy=False)))
        small = [source.alias for source in self.joins.sources if source.table.broadcast]
        if hint and small:
            names = [exp.to_identifier(alias, quoted=True) for alias in small]
            query.set("hint", exp.Hint(expressions=[exp.JoinHint(this="BROADCAST", expressions=names)]))
        return query

    def _only_asked(self, items: Iterable[exp.Expr]) -> frozenset[str]:
        """The aliases of sources that are only asked whether they have a row, if there are several.

        Joined, they give each row as often as the product of the numbers of their rows.
        """
        joined = {self.joins.sources[n].alias: on for n, on in self.joins.on.items()}
        used = {column.table for tree in (*items, *self.where) for column in tree.find_all(exp.Column)}
        for alias, on in joined.items():
            used |= {c.table for tree in on for c in tree.find_all(exp.Column) if c.table != alias}
        asked = joined.keys() - used
        return frozenset(asked if len(asked) > 1 else ())


def _joined(tree: exp.Table, on: list[exp.Expr], kind: str) -> exp.Join:
    if not on:
        return exp.Join(this=tree, kind="CROSS")
    return exp.Join(this=tree, on=exp.and_(*on, copy=False), kind=kind)


class Writer(Struct, frozen=True):
    """Writes bodies over known tables.

    Attributes:
        tables: where each predicate's rows are.
        hints: whether to hint at broadcasts of small tables.
    """

    tables: Mapping[Predicate, Table]
    hints: bool = False

    def block(self, body: tuple[Literal, ...], around: Frame | None = None) -> Block:
        """A body, inside the query that `around` describes."""
        around = around or Frame()
        joins = join(body, around, self.tables)
        where = [*joins.where, *self._filters(body, joins.frame, around)]
        return Block(joins, tuple(dict.fromkeys(where)))

    def _filters(self, body: tuple[Literal, ...], frame: Frame, around: Frame) -> Iterator[exp.Expr]:
        negations = []
        for literal in body:
            if isinstance(literal, Negation):
                negations.append(literal)
            elif isinstance(literal, NullTest) and _is_implied(literal, frame, around):
                continue
            elif not isinstance(literal, Atom):
                yield self._condition(literal, frame)
        for negation in negations:
            yield self._condition(negation, frame)

    def _condition(self, literal: Literal, frame: Frame) -> exp.Expr:
        """True exactly where the literal holds."""
        match literal:
            case Comparison(operator, left, right):
                return OPERATORS[operator](this=frame.tree(left), expression=frame.tree(right))
            case NullTest(Constant(value), negated):
                return exp.Boolean(this=(value is None) != negated)
            case NullTest(term, negated):
                null = exp.Null()
                return exp.Is(this=frame.tree(term), expression=exp.Not(this=null) if negated else null)
            case Negation(body) if has_atom(body):
                return exp.Not(this=self._exists(body, frame))
            case Negation(body):
                return exp.or_(*(self._opposite(inner, frame) for inner in body), copy=False)
            case Atom():
                raise TypeError("an atom is a source, not a condition")
            case _:
                assert_never(literal)

    def _opposite(self, literal: Literal, frame: Frame) -> exp.Expr:
        """True exactly where the literal does not hold."""
        match literal:
            case Comparison():
                return self._opposite_comparison(literal, frame)
            case NullTest(term, negated):
                return self._condition(NullTest(term, not negated), frame)
            case Negation(body) if has_atom(body):
                return self._exists(body, frame)
            case Negation(body):
                return exp.and_(*(self._condition(inner, frame) for inner in body), copy=False)
            case Atom():
                raise TypeError("an atom is a source, not a condition")
            case _:
                assert_never(literal)

    def _opposite_comparison(self, literal: Comparison, frame: Frame) -> exp.Expr:
        left, right = frame.tree(literal.left), frame.tree(literal.right)
        known = [frame.is_known(literal.left), frame.is_known(literal.right)]
        if all(known):
            return _OPPOSITES[literal.operator](this=left, expression=right)
        if literal.operator == "=" and any(known):
            return exp.NullSafeNEQ(this=left, expression=right)
        holds = OPERATORS[literal.operator](this=left, expression=right)
        return exp.Not(this=exp.Coalesce(this=holds, expressions=[exp.false()]))

    def _exists(self, body: tuple[Literal, ...], frame: Frame) -> exp.Exists:
        block = self.block(body, frame)
        return exp.Exists(this=block.query([exp.Literal.number(1)], distinct=False, hint=self.hints))


def _is_implied(test: NullTest, frame: Frame, around: Frame) -> bool:
    """Whether a guard follows from the tables, the query around or a plain `=` between two places."""
    variable = test.term
    if not test.negated or not isinstance(variable, Variable):
        return False
    places = frame.places.get(variable, ())
    tied = len(places) > 1 or (len(places) == 1 and variable in frame.outer)
    return variable in around.known or tied or any(place.not_null for place in places)
