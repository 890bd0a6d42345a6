"""What the tests and constraints of a dbt project promise of its relations: keys, foreign keys, columns without null.

A test with a `where`, or one that only warns, promises nothing and is passed over (see `dbt_tests.py`), and so are
constraints that dbt does not check.

    stg_orders: SELECT id AS order_id, customer FROM raw.orders      tested: order_id, which is a key of the source

Projects test their staging models. What is tested of a model that shows each row of one table, and no others, is so of
that table: a column that it shows has the same values there, each as often.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct, field

from datalog.copies import replace
from datalog.model import Atom, Declaration, ForeignKey, Semantics, Variable, ViewDefinition
from selfmaint.api.file.dbt_nodes import Node, are_checked, kind, parts
from selfmaint.api.file.dbt_tests import arguments, owner, promises, target


class Constraints(Struct):
    """What tests and constraints say of one relation."""

    not_null: set[str] = field(default_factory=set)
    unique: list[tuple[str, ...]] = field(default_factory=list)
    key: tuple[str, ...] | None = None
    foreign: list[ForeignKey] = field(default_factory=list)

    def applied(self, to: Declaration) -> Declaration:
        """The declaration with these constraints; what names a column that it has not is left out."""
        names = {name.casefold(): name for name in to.column_names}
        not_null = {one.casefold() for one in self.not_null}

        def own(columns: tuple[str, ...]) -> tuple[str, ...] | None:
            """Columns as they are called here: tests may write their names otherwise."""
            found = [names[one.casefold()] for one in columns if one.casefold() in names]
            return tuple(found) if len(found) == len(columns) else None

        columns = tuple(replace(c, not_null=c.not_null or c.name.casefold() in not_null) for c in to.columns)
        unique = [u for given in dict.fromkeys(self.unique) if (u := own(given)) is not None]
        key = None if self.key is None else own(self.key)
        if key is None:
            key = next((u for u in unique if not_null.issuperset(map(str.casefold, u))), None)
        foreign = tuple(
            replace(f, columns=its)
            for f in dict.fromkeys(self.foreign)
            if (its := own(f.columns)) is not None
        )
        return replace(
            to,
            columns=columns,
            key=to.key or key,
            unique=(*to.unique, *(u for u in unique if u != key)),
            foreign_keys=(*to.foreign_keys, *foreign),
        )


class Shown(Struct, frozen=True):
    """That a model has the rows of a relation, each once.

    Attributes:
        of: the relation's unique id.
        columns: by the model's column in lower case the relation's, of those that it shows as they are.
    """

    of: str
    columns: Mapping[str, str]

    def below(self, names: Iterable[str]) -> tuple[str, ...] | None:
        """The relation's columns of some of the model's; None if it does not show all of them so."""
        found = [self.columns.get(name.casefold()) for name in names]
        return tuple(one for one in found if one is not None) if None not in found else None

    def apart(self, names: Iterable[str]) -> tuple[str, ...] | None:
        """As `below`; None, too, where two of them show one column."""
        found = self.below(names)
        return found if found is not None and len({*found}) == len(found) else None


def shown(
    definition: ViewDefinition, identifiers: Mapping[str, str], tables: Mapping[str, Declaration]
) -> Shown | None:
    """What a model shows of a base relation; None if it is another query. `identifiers` are the relations'."""
    if len(definition.blocks) != 1 or definition.semantics is not Semantics.BAG:
        return None
    (one,) = definition.blocks
    match one.core.body:
        case (Atom(predicate, terms),) if predicate.name in tables and predicate.name in identifiers:
            pass
        case _:
            return None
    is_whole = len(set(terms)) == len(terms) and all(isinstance(term, Variable) for term in terms)
    if not is_whole or one.filters or one.having or one.groups is not None:
        return None
    names = dict(zip(terms, tables[predicate.name].column_names, strict=True))
    columns = {
        name.casefold(): names[output]
        for name, output in zip(definition.columns, one.outputs, strict=True)
        if isinstance(output, Variable)
    }
    if len({name.casefold() for name in definition.columns}) < len(definition.columns):
        return None
    return Shown(identifiers[predicate.name], columns)


def carry_down(
    found: Mapping[str, Constraints], models: Mapping[str, Shown], names: Mapping[str, str]
) -> None:
    """Adds what is said of models to the relations whose rows they show, and leads references to these."""
    for model, its in models.items():
        mine, base = found[model], found[its.of]
        base.not_null.update(one for name in mine.not_null for one in its.below([name]) or ())
        unique = [columns for given in mine.unique if (columns := its.below(given)) is not None]
        base.unique += [tuple(dict.fromkeys(columns)) for columns in unique]  # two may show one column
        base.foreign += [
            replace(key, columns=columns)
            for key in mine.foreign
            if (columns := its.apart(key.columns)) is not None
        ]
    by_name = {names[model]: its for model, its in models.items()}
    for one in {id(one): one for one in found.values()}.values():
        one.foreign = [led for key in one.foreign if (led := _led(key, by_name, names)) is not None]


def _led(key: ForeignKey, models: Mapping[str, Shown], names: Mapping[str, str]) -> ForeignKey | None:
    its = models.get(key.target)
    if its is None:
        return key
    columns = its.apart(key.target_columns)
    return None if columns is None else replace(key, target=names[its.of], target_columns=columns)


class Promises(Struct):
    """Reads them.

    Attributes:
        nodes: of the manifest, by unique id.
        names: of relations, by unique id.
        same: of sources, the node that makes the same relation, if another does; else itself.
        own: the project's own macros: see `own_macros`.
    """

    nodes: Mapping[str, Node]
    names: Mapping[str, str]
    same: Mapping[str, str]
    own: Collection[str] = ()

    def found(self) -> dict[str, Constraints]:
        """What is said of each relation, by node."""
        found = {identifier: Constraints() for identifier in self.names}
        found |= {one: found[of] for one, of in self.same.items()}
        for identifier in found:
            node = self.nodes[identifier]
            if not are_checked(node):
                continue
            for one in node.get("constraints") or ():
                self._take(one, tuple(one.get("columns") or ()), found[identifier], node)
            for key, column in (node.get("columns") or {}).items():
                for one in column.get("constraints") or ():
                    self._take(one, (str(column.get("name", key)),), found[identifier], node)
        for node in self.nodes.values():
            if kind(node) == "test" and promises(node, self.own):
                self._take_test(node, found)
        return found

    def _take(self, one: Node, columns: tuple[str, ...], into: Constraints, owner: Node) -> None:
        if not columns or len({name.casefold() for name in columns}) < len(columns):
            return
        match one.get("type"):
            case "not_null":
                into.not_null.update(columns)
            case "unique":
                into.unique.append(columns)
            case "primary_key":
                into.key = columns
            case "foreign_key" if one.get("to") and one.get("to_columns"):
                target = self._named(str(one["to"]), owner)
                if target is not None and len(one["to_columns"]) == len(columns):
                    into.foreign.append(ForeignKey(columns, target, tuple(one["to_columns"])))
            case _:
                return

    def _named(self, relation_name: str, owner: Node) -> str | None:
        """The name of the relation that is called so beside another one: in its schema and database if it says none."""
        wanted = tuple(part.strip('`"').casefold() for part in reversed(relation_name.split(".")))
        around = tuple(part.casefold() for part in parts(owner)[len(wanted) :])
        for identifier, name in self.names.items():
            mine = tuple(part.casefold() for part in parts(self.nodes[identifier]))
            if mine == (*wanted, *around)[: len(mine)]:
                return name
        return None

    def _take_test(self, node: Node, found: Mapping[str, Constraints]) -> None:
        metadata = node.get("test_metadata") or {}
        given = arguments(node)
        column = given.get("column_name") or node.get("column_name")
        of = owner(node) or ""
        together, package = given.get("combination_of_columns"), metadata.get("namespace")
        is_combined = metadata.get("name") == "unique_combination_of_columns" and package in (
            None,
            "dbt_utils",
        )
        if of not in found:
            return
        if is_combined and isinstance(together, list) and together:
            columns = tuple(map(str, together))
            if len({name.casefold() for name in columns}) == len(columns):
                found[of].unique.append(columns)
        if not isinstance(column, str) or package not in (None, "dbt"):
            return
        match metadata.get("name"):
            case "not_null":
                found[of].not_null.add(column)
            case "unique":
                found[of].unique.append((column,))
            case "relationships" if given.get("field") and (other := target(node, of)):
                name = self.names.get(self.same.get(other, other))
                if name is not None:
                    found[of].foreign.append(ForeignKey((column,), name, (str(given["field"]),)))
            case _:
                return


def to_keys(declarations: Iterable[Declaration], views: Collection[str] = ()) -> tuple[Declaration, ...]:
    """The declarations without references to columns that no test says are unique: such a reference names no row.

    Of `views` that is not known yet. What is neither declared nor one of them is stored nowhere.
    """
    made = {one.name: one for one in declarations}
    return tuple(
        replace(d, foreign_keys=tuple(its for f in d.foreign_keys if (its := _kept(d, f, made, views))))
        for d in made.values()
    )


def _kept(
    of: Declaration, key: ForeignKey, made: Mapping[str, Declaration], views: Collection[str]
) -> ForeignKey | None:
    """A reference to columns as they are called in what is referenced; None where it is to be left out."""
    target = made.get(key.target)
    if target is None:
        return key if key.target in views else None
    names = {column.name.casefold(): column for column in target.columns}
    found = [names.get(name.casefold()) for name in key.target_columns]
    columns = [column for column in found if column is not None]
    uniques = [set(one) for one in (target.key, *target.unique) if one is not None]
    if len(columns) < len(found) or {column.name for column in columns} not in uniques:
        return None
    mine = {column.name: column.type for column in of.columns}
    for name, other in zip(key.columns, columns, strict=True):
        families = {mine[name].family, other.type.family}
        if len(families) > 1 and "any" not in families:  # dbt's test casts
            return None
    return replace(key, target_columns=tuple(column.name for column in columns))
