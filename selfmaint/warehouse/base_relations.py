"""Base relations: what their declarations say about their columns, keys and foreign keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from datalog.analysis import determined
from datalog.model import (
    ANY,
    NUMBER,
    Atom,
    ColumnType,
    Constant,
    Declaration,
    ForeignKey,
    Predicate,
    Program,
    Row,
    Rule,
    Term,
    Variable,
    Version,
)
from datalog.syntax import show
from selfmaint.warehouse.constraints import Reference


class BaseRelation(Struct, frozen=True):
    """A base relation: what is known about its columns.

    Attributes:
        name: its name in the rules.
        columns: column names, in order; `c0`, `c1`, ... where nothing is declared.
        types: column types, in order.
        nullable: 0-based positions that may hold null.
        unique: sets of columns (0-based positions) that identify a row, the primary key first.
    """

    name: str
    columns: tuple[str, ...]
    types: tuple[ColumnType, ...]
    nullable: frozenset[int]
    unique: tuple[tuple[int, ...], ...] = ()
    references: tuple[Reference, ...] = ()

    @property
    def arity(self) -> int:
        """The number of columns."""
        return len(self.columns)

    @property
    def keys(self) -> tuple[tuple[int, ...], ...]:
        """The sets of columns of `unique` that never hold null: rows that differ, differ there."""
        return tuple(columns for columns in self.unique if not self.nullable.intersection(columns))

    @property
    def is_numbered(self) -> bool:
        """Whether equal rows are told apart by a last column, which is in no file, source or query."""
        return self.columns[-1:] == (NUMBER,)

    @property
    def is_set(self) -> bool:
        """Whether no two rows of a table are equal."""
        return bool(self.keys) or self.is_numbered

    @property
    def given(self) -> int:
        """The number of columns that files, sources and queries know of: the first ones."""
        return self.arity - self.is_numbered

    def names(self, columns: Iterable[int]) -> str:
        """The names of some columns, in words."""
        return ", ".join(self.columns[i] for i in columns)

    def with_key(self, columns: Iterable[int]) -> tuple[int, ...] | None:
        """Some columns and a key, of which a change of rows can be projected to them: an effective one stays effective.

        Returns:
            Positions in ascending order; None if there is no key, or equal values there may be different ones.
        """
        if not self.keys:
            return None
        found = tuple(sorted({*columns, *self.keys[0]}))
        return None if any(self.types[i].name.has_signed_zeros for i in found) else found

    def can_differ(self, columns: Sequence[int]) -> bool:
        """Whether a row with given values in some columns can differ from all others in each key with more.

        That takes a column besides that references nothing and has many values, or a key around all of `columns`.
        """
        referencing = {i for reference in self.references for i in reference.columns}
        free = {i for i in range(self.arity) if i not in referencing and not self.types[i].is_finite}
        return all(set(columns) <= set(key) or free.difference(columns) & set(key) for key in self.unique)


def determined_terms(
    given: Iterable[Term], body: Iterable[Atom], relations: Mapping[str, BaseRelation]
) -> set[Term]:
    """The terms of a body over base relations, and others, that have one value where some have: see `determined`."""

    def keys(atom: Atom) -> tuple[tuple[int, ...], ...]:
        relation = relations.get(atom.predicate.name)
        return () if relation is None else relation.keys

    return determined(given, body, keys)


def certain_variables(atoms: Iterable[Atom], relations: Mapping[str, BaseRelation]) -> frozenset[Variable]:
    """The variables that stand in a base column that is never null."""
    return frozenset(
        term
        for atom in atoms
        if atom.predicate.name in relations
        for i, term in enumerate(atom.terms)
        if isinstance(term, Variable) and i not in relations[atom.predicate.name].nullable
    )


def row_atom(relation: BaseRelation, version: Version) -> Atom:
    """A version of a relation applied to distinct variables, one for each column."""
    return Atom(Predicate(relation.name, version), tuple(Variable(f"X{i}") for i in range(relation.arity)))


def variable_types(
    atoms: Iterable[Atom], relations: Mapping[str, BaseRelation]
) -> dict[Variable, ColumnType]:
    """The types of the columns that variables stand in: of several, one that is declared."""
    found: dict[Variable, ColumnType] = {}
    for atom in atoms:
        if atom.predicate.name in relations:
            types = relations[atom.predicate.name].types
            if atom.predicate.version is Version.EXISTS:  # of a row of which some columns are known
                types = tuple(types[i] for i in atom.predicate.columns)
            for term, its in zip(atom.terms, types, strict=True):
                if isinstance(term, Variable) and found.get(term, ANY) == ANY:
                    found[term] = its
    return found


def base_relations(
    program: Program, definitions: Mapping[str, list[tuple[Rule, Rule]]], views: set[str]
) -> dict[str, BaseRelation]:
    """The declared relations, and those that some subgoals of the views mention."""
    relations: dict[str, BaseRelation] = {}
    declarations = {declaration.name: declaration for declaration in program.declarations}
    for declaration in program.declarations:
        if declaration.name not in views:
            relations[declaration.name] = _declared(declaration, declarations, views)
    for rules in definitions.values():
        add_undeclared(relations, views, (a for _, plain in rules for a in plain.atoms))
    return relations


def add_undeclared(relations: dict[str, BaseRelation], views: set[str], atoms: Iterable[Atom]) -> None:
    """Adds the base relations of some subgoals that are not declared."""
    for atom in atoms:
        name, arity = atom.predicate.name, atom.arity
        if name not in relations and name not in views:
            columns = tuple(f"c{i}" for i in range(arity))
            relations[name] = BaseRelation(name, columns, (ANY,) * arity, frozenset(range(arity)))


def _declared(
    declaration: Declaration, declarations: Mapping[str, Declaration], views: set[str]
) -> BaseRelation:
    position = {name: i for i, name in enumerate(declaration.column_names)}

    def positions(names: Iterable[str]) -> tuple[int, ...]:
        return tuple(position[name] for name in names)

    return BaseRelation(
        declaration.name,
        declaration.column_names,
        tuple(column.type for column in declaration.columns),
        frozenset(i for i in range(declaration.arity) if not declaration.is_not_null(i)),
        tuple(positions(names) for names in (declaration.key, *declaration.unique) if names is not None),
        tuple(
            Reference(positions(key.columns), key.target, _referenced(key, declarations))
            for key in declaration.foreign_keys
            if key.target not in views
        ),
    )


def _referenced(key: ForeignKey, declarations: Mapping[str, Declaration]) -> tuple[int, ...]:
    names = declarations[key.target].column_names
    return tuple(names.index(name) for name in key.target_columns)


def shown_rows(columns: Sequence[str], rows: Iterable[Row]) -> str:
    """A few rows in words, values as the language writes them; equal rows of a table without a key once."""
    shown = (
        ", ".join(f"{c}={show(Constant(v))}" for c, v in zip(columns, row, strict=True) if c != NUMBER)
        for row in sorted(rows, key=repr)
    )
    return "; ".join(f"({values})" for values in dict.fromkeys(shown))
