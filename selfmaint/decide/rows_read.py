"""What a view reads of base relations: which rows, and which of their columns.

    berlin(Key, Name) :- customer(Key, Name, 'B', Phone), not closed(Key).
    of `customer` the rows with 'B', and of these Key and Name; of `closed` all rows, and of these Key

Conditions of soundness:

1. A view is a query over what it reads: it stays as it is where that does, as a bag for each occurrence of a relation
   in it. A row counts only where it has the constants of a subgoal and satisfies what the conjunction that the subgoal
   stands in says of its variables alone, and holds no null where it is joined; behind `not` every row counts. A column
   does not that a variable stands in which stands nowhere else but in such conditions: they hold of all rows that
   count.
2. A condition that is a disjunction makes several kinds of rows, each with columns of its own. With a key among these
   the rows of all kinds together are told by those of each.
3. Of a view of which only the text is known that is read off its operators (`datalog.sql.affected.seen`), where these
   are known, and have one result: an aggregate that depends on the order of rows may read what the plan does not show.
   Else all rows, and all columns, are taken as read.
4. A row that no row of another relation references is not read where these are joined, nor behind `not`.
5. What is put together of parts (`Catalog.unions`) changes where one of these does. Where it is not known what a name
   means, or nothing is found that a definition reads, everything is taken as read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from datalog.analysis import atoms_of
from datalog.copies import replace
from datalog.model import (
    ANY,
    Atom,
    Block,
    Comparison,
    Condition,
    Constant,
    Literal,
    Negation,
    NullTest,
    OpaqueView,
    Predicate,
    Term,
    TextQuery,
    Variable,
    ViewDefinition,
    apply_literal,
    variables_of,
    walk,
)
from datalog.rewrite import alternatives
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.constraints import Reference
from selfmaint.warehouse.views import Outside

_MOST_KINDS = 8
"""A view that reads more kinds of rows of one relation is taken to read all of them."""


class Part(Struct, frozen=True):
    """What a view reads of a base relation.

    Attributes:
        atom: matches the rows; over the constants that they have, and `X0`, `X1`, ... for the other columns.
        tests: what they satisfy besides.
        columns: the 0-based positions of the columns that are read of them.
        referenced: foreign keys of relations, by their names, that reference them.
    """

    atom: Atom
    tests: tuple[Literal, ...]
    columns: frozenset[int]
    referenced: frozenset[tuple[str, Reference]] = frozenset()

    @property
    def every_row(self) -> Part:
        """The same of all rows, with what tells those that it is of."""
        terms = self.atom.terms
        asked = {terms.index(v) for v in variables_of(self.tests)}
        asked |= {i for i, term in enumerate(terms) if isinstance(term, Constant)}
        return Part(_any_row(self.atom.predicate, len(terms)), (), self.columns | asked, self.referenced)


def rows_read(catalog: Catalog, view: View) -> Mapping[str, tuple[Part, ...]]:
    """What a view reads, by base relation."""
    return catalog.once("rows read", view, lambda: _rows_read(catalog, view))


def _rows_read(catalog: Catalog, view: View) -> Mapping[str, tuple[Part, ...]]:
    found: dict[str, list[Part]] = {}
    views = {one.name: [one] for one in catalog.views}
    views |= {name: list(parts.values()) for name, parts in catalog.unions.items()}
    parts = list(_parts(catalog, view))
    is_known = bool(parts or view.always_empty or view.always_one)
    for part in parts:
        name = part.atom.predicate.name
        if name in catalog.relations:
            found.setdefault(name, []).append(part)
            continue
        for one in views.get(name, ()):
            for below, its in rows_read(catalog, one).items():
                found.setdefault(below, []).extend(its)
        is_known = is_known and name in views
    if not is_known:
        return {name: (_whole(name, relation.arity),) for name, relation in catalog.relations.items()}
    return {name: tuple(_together(its)) for name, its in found.items()}


def _together(parts: Sequence[Part], *, apart: bool = True) -> Iterator[Part]:
    """Parts with one for each kind of rows, if these are not too many; those that others reference apart, or not."""
    kinds: dict[tuple[object, ...], Part] = {}
    for part in parts:
        kind = part.atom, part.tests, part.referenced if apart else ()
        same = kinds.setdefault(kind, part)
        columns, referenced = same.columns | part.columns, same.referenced & part.referenced
        kinds[kind] = replace(part, columns=columns, referenced=referenced)
    if len(kinds) > _MOST_KINDS:
        return _together([part.every_row for part in kinds.values()], apart=False)
    return iter(kinds.values())


def _parts(catalog: Catalog, view: View) -> Iterator[Part]:
    """What a definition reads of each relation and view in it."""
    match view.definition:
        case OpaqueView(query=TextQuery() as query):
            yield from _parts_of_text(catalog, query)
        case OpaqueView():
            yield from (_whole(name, one.arity) for name, one in catalog.relations.items())
        case ViewDefinition(blocks=blocks):
            for block in blocks:
                yield from _parts_of_block(catalog, block)
        case _ if view.limitation is None or view.limitation.kind is Outside.PROJECTION:
            yield from _parts_of_body(catalog, (*view.body, *view.filters), view.head.terms)
        case _:
            # A branch of a union is in no program: its rule is its own.
            for rule in [r for r in catalog.program.rules if r.head.predicate == view.predicate] or [
                view.rule
            ]:
                yield from _parts_of_body(catalog, rule.body, rule.head.terms)


def _parts_of_block(catalog: Catalog, block: Block) -> Iterator[Part]:
    said = [one for one in block.filters if alternatives([one]) is not None]
    ways = alternatives(said)
    unsaid: Sequence[Condition] = (
        block.filters if ways is None else [f for f in block.filters if f not in said]
    )
    above = (*block.outputs, *(block.groups or ()), *block.having, *unsaid)
    used = [leaf for one in above for leaf in walk(one) if isinstance(leaf, Variable)]
    for tests in ways or [()]:
        yield from _parts_of_body(catalog, (*block.core.body, *tests), used)


def _parts_of_body(catalog: Catalog, body: Sequence[Literal], above: Iterable[Term]) -> Iterator[Part]:
    """What a conjunction reads of which some terms are used above."""
    atoms = [atom for literal in body for atom in atoms_of(literal)]
    tests = [one for one in body if isinstance(one, Comparison | NullTest)]
    times = Counter(term for atom in atoms for term in atom.terms)
    used = frozenset(above)
    for atom in atoms:
        own = [t for t in tests if atom in body and set(variables_of([t])).issubset(atom.terms)]
        rest = frozenset(term for one in body if one not in own for term in _tested(one))
        every = _any_row(atom.predicate, atom.arity).terms
        pairs = list(zip(atom.terms, every, strict=True))
        pattern = tuple(t if isinstance(t, Constant) and t != Constant(None) else c for t, c in pairs)
        first = {term: column for term, column in reversed(pairs) if isinstance(term, Variable)}
        columns = frozenset(
            i
            for i, (term, shown) in enumerate(zip(atom.terms, pattern, strict=True))
            if shown is not term and (term in used or term in rest or times[term] > 1 or term not in first)
        )
        others = [one for one in body if isinstance(one, Atom) and one is not atom]
        compared = (t for t in tests if isinstance(t, Comparison) and t not in own)
        not_null = _joined(catalog, atom, [*others, *compared]) if atom in body else ()
        said = tuple(apply_literal(dict(first), test) for test in (*own, *not_null))
        referenced = frozenset(pair for other in others for pair in _references(catalog, other, atom))
        yield Part(Atom(atom.predicate, pattern), said, columns, referenced)


def _joined(catalog: Catalog, atom: Atom, others: Sequence[Literal]) -> Iterator[Literal]:
    """That a subgoal has no null where it is joined or compared with others."""
    relation, shared = catalog.relations.get(atom.predicate.name), frozenset(variables_of(others))
    nullable = frozenset[int]() if relation is None else relation.nullable
    yield from (NullTest(t) for i, t in enumerate(atom.terms) if t in shared and i in nullable)


def _references(catalog: Catalog, one: Atom, other: Atom) -> Iterator[tuple[str, Reference]]:
    """The foreign keys by which rows of an atom reference those of another one that they are joined with."""
    relation, target = (catalog.relations.get(atom.predicate.name) for atom in (one, other))
    if relation is None or target is None:
        return
    for reference in (one for one in relation.references if one.target == target.name):
        mine, its = reference.key_of(one), tuple(other.terms[i] for i in reference.target_columns)
        is_plain = not any(target.types[i].name.has_signed_zeros for i in reference.target_columns)
        if mine == its and is_plain and all(isinstance(term, Variable) for term in its):
            yield relation.name, reference


def _tested(literal: Literal) -> tuple[Term, ...]:
    """The terms of which a literal that is no subgoal says something."""
    match literal:
        case Comparison(left=left, right=right):
            return left, right
        case NullTest(term=term):
            return (term,)
        case Negation(body=body):
            return tuple(t for one in body for t in _tested(one))
        case _:
            return ()


def _any_row(predicate: Predicate, arity: int) -> Atom:
    return Atom(predicate, tuple(Variable(f"X{i}") for i in range(arity)))


def _whole(name: str, arity: int) -> Part:
    return Part(_any_row(Predicate(name), arity), (), frozenset(range(arity)))


def _parts_of_text(catalog: Catalog, query: TextQuery) -> Iterator[Part]:
    from datalog.sql.affected import (  # noqa: PLC0415 - only where there is SQL
        Table,
        UnknownShapeError,
        has_one_result_by_keys,
        plan_of_text,
        seen,
        selection,
    )
    from datalog.sql.views.kept.one_result import has_one_result  # noqa: PLC0415 - see above

    relations, views = catalog.relations, {one.name: one.stored_columns for one in catalog.views}
    views |= {name: next(iter(parts.values())).stored_columns for name, parts in catalog.unions.items()}
    views |= {name: outer.names for name, outer in catalog.outer.items()}
    known = {name: relations[name] for name in query.relations if name in relations}
    tables = {
        name: Table(name, one.columns, one.types, one.nullable, one.keys) for name, one in known.items()
    }
    for name in query.relations:
        if name not in known:
            its = views.get(name, ())
            tables[name] = Table(name, its, (ANY,) * len(its), frozenset(range(len(its))))
    try:
        occurrences = seen(plan_of_text(query, tables))
    except UnknownShapeError:
        occurrences = ()
    if not occurrences or not (has_one_result(query) or has_one_result_by_keys(query, tables)):
        yield from (_whole(name, len(table.columns)) for name, table in tables.items())
        return
    for one in occurrences:
        arity = len(tables[one.table.name].columns)
        definition = selection(one) if one.table.name in known else None
        if definition is None:
            yield _whole(one.table.name, arity)
            continue
        referenced = frozenset(
            (name, reference)
            for mine, name, its in one.matched
            for reference in (relations[name].references if name in relations else ())
            if reference == Reference((its,), one.table.name, (mine,))
        )
        for block in definition.blocks:
            for part in _parts_of_block(catalog, block):
                more = _any_row(Predicate(one.table.name), arity).terms[part.atom.arity :]
                atom = Atom(Predicate(one.table.name), (*part.atom.terms, *more))
                yield replace(part, atom=atom, referenced=referenced)
