"""What the search for one database looks at: for a first database, and for one on which a view differs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from datalog.evaluate import Evaluator
from datalog.model import (
    Atom,
    Comparison,
    Constant,
    NullTest,
    Predicate,
    Program,
    Row,
    Rule,
    Term,
    Variable,
    Version,
)
from datalog.order import constants_compare
from selfmaint.countermodel.model_check import Given
from selfmaint.possible.cut import Cut
from selfmaint.possible.labelled_nulls import (
    Choice,
    Fact,
    Instance,
    Part,
    Test,
    fact_of,
    facts_of,
    given_facts,
    matched,
    may_hold,
)
from selfmaint.possible.queries import Queries, Query
from selfmaint.possible.value_classes import ValueClasses


class Way(Struct, frozen=True):
    """A way for a view to have a row too many: a match of a rule after the update.

    Attributes:
        binding: what is told of its variables.
        anchor: the subgoal whose fact is an inserted row; None for a match of a stored row.
    """

    query: Query
    binding: Mapping[Variable, Part]
    anchor: int | None


class Goal(Struct, frozen=True):
    """A match after the update that may be aimed at, under a name."""

    name: str
    atoms: tuple[Fact, ...]


class Wanted(Struct):
    """A database on which a view has another state than a given one.

    Attributes:
        ways: the ways to a row too many that are looked at.
        goals: the same as parts of a program.
    """

    view: str
    state: frozenset[Row]
    ways: tuple[Way, ...]
    goals: list[Goal] = field(default_factory=list)


def instance(
    known: Given, queries: Queries, wanted: Wanted | None = None, cut: Cut | None = None
) -> Instance:
    """The facts that a database may have: of all that explain what is known, and differ as wanted."""
    more = {} if wanted is None else {wanted.view: wanted.state}
    made = Instance(known, ValueClasses(known, queries, more), cut=cut)
    certain = _certain(known, queries)
    for name, rows in certain.items():
        for row in sorted(rows, key=repr):
            made.facts.append(Fact(name, tuple(map(Constant, row)), ""))
    _add_options(made, certain)
    derived = _derived(queries, certain)
    for view, rules in queries.items():
        for row in sorted(known.of(view, Version.STORED) - derived[view], key=repr):
            _add_row(made, view, rules, row)
    if wanted is not None:
        wanted.goals = [_goal(made, way) for way in wanted.ways]
    made.add_partners()
    return made


def _certain(known: Given, queries: Queries) -> dict[str, set[Row]]:
    """Facts that every database has: what is known to be there, and what a row proves that one rule alone gives."""
    found = {name: set(known.known.get(name, ())) for name in known.catalog.relations}
    for fact in given_facts(known):
        assert fact.row is not None
        found[fact.relation].add(fact.row)
    for view, rules in queries.items():
        for row in known.of(view, Version.STORED):
            ways = list(_ways(known, rules, row))
            if len(ways) == 1:
                query, binding = ways[0]
                for atom in query.body:
                    if all(isinstance(t, Constant) or t in binding for t in atom.terms):
                        told = fact_of(atom, binding, "").row
                        assert told is not None
                        found[atom.predicate.name].add(told)
    return found


def _derived(queries: Queries, certain: Mapping[str, set[Row]]) -> dict[str, frozenset[Row]]:
    """The rows of each view that some facts derive."""
    rules = [
        Rule(Atom(Predicate(q.view), q.head), (*q.body, *q.filters)) for its in queries.values() for q in its
    ]
    evaluator = Evaluator(
        Program(tuple(rules)), {Predicate(name): frozenset(rows) for name, rows in certain.items()}
    )
    return {view: frozenset(evaluator.extension(Predicate(view))) for view in queries}


def _ways(known: Given, rules: Sequence[Query], row: Row) -> Iterator[tuple[Query, dict[Variable, Part]]]:
    """The rules that may give a row, with what it tells of their variables."""
    for query in rules:
        binding = matched(query.head, row)
        if binding is not None and _may_match(known, query, binding):
            yield query, binding


def _may_match(known: Given, query: Query, binding: Mapping[Variable, Part]) -> bool:
    """Whether the values of a binding that are told pass the filters, and the columns can hold them."""
    if any(_value_of(f, binding) is False for f in query.filters):
        return False
    relations = known.catalog.relations
    return all(
        may_hold(relations[atom.predicate.name], i, part)
        for atom in query.body
        for i, term in enumerate(atom.terms)
        if (part := _told(term, binding)) is not None
    )


def _value_of(test: NullTest | Comparison, binding: Mapping[Variable, Part]) -> bool | None:
    """Whether a test holds; None if that is not told."""
    terms = (test.term,) if isinstance(test, NullTest) else (test.left, test.right)
    values = [_told(t, binding) for t in terms]
    if isinstance(test, NullTest):
        return None if values[0] is None else (values[0].value is None) != test.negated
    if any(v is not None and v.value is None for v in values):
        return False
    left, right = values
    return None if left is None or right is None else constants_compare(test.operator, left, right)


def _told(term: Term, binding: Mapping[Variable, Part]) -> Constant | None:
    part = term if isinstance(term, Constant) else binding.get(term)
    return part if isinstance(part, Constant) else None


def _add_options(made: Instance, certain: Mapping[str, set[Row]]) -> None:
    """Rows of the update that may have been there, and what inserted rows reference."""
    known = made.known
    for name in known.catalog.relations:
        inserted, deleted = (known.of(name, v) for v in (Version.INSERTED, Version.DELETED))
        for row in sorted(inserted, key=repr):
            made.facts.append(Fact(name, tuple(map(Constant, row)), "", is_inserted=True))
        for row in sorted((inserted | deleted) - certain[name], key=repr):
            if not known.situation.effective:
                option = made.name("o")
                made.options[option] = ""
                made.facts.append(Fact(name, tuple(map(Constant, row)), option))


def _add_row(made: Instance, view: str, rules: Sequence[Query], row: Row) -> None:
    """A choice between the rules that may give a stored row, and the facts of a match of each."""
    ways = list(_ways(made.known, rules, row))
    if not ways:
        made.unexplained = made.unexplained or (view, row)
        return
    names = [made.name("u") for _ in ways] if len(ways) > 1 else [""]
    if len(ways) > 1:
        made.choices.append(Choice(tuple(names)))
    for (query, binding), name in zip(ways, names, strict=True):
        whole = made.bind(query, binding, name)
        made.tests.append(Test(query, whole, name))
        for fact in facts_of(query, whole, name):
            made.facts.append(fact)


def ways(known: Given, queries: Queries, view: str, state: frozenset[Row]) -> Iterator[Way]:
    """Matches after the update: from each inserted row, and of each stored row that is not in the given state."""
    for query in queries[view]:
        for row in sorted(known.of(view, Version.STORED) - state, key=repr):
            binding = matched(query.head, row)
            if binding is not None and _may_match(known, query, binding):
                yield Way(query, binding, None)
        for at, atom in enumerate(query.body):
            for row in sorted(known.of(atom.predicate.name, Version.INSERTED), key=repr):
                binding = matched(atom.terms, row)
                if binding is not None and _may_match(known, query, binding):
                    yield Way(query, binding, at)


def _goal(made: Instance, way: Way) -> Goal:
    name = made.name("g")
    whole = made.bind(way.query, way.binding, name)
    made.tests.append(Test(way.query, whole, name))
    facts = tuple(facts_of(way.query, whole, name))
    for at, fact in enumerate(facts):
        if fact.relation in made.known.situation.readable:
            made.asked.append(fact)
        elif at != way.anchor:
            option = made.name("o")
            made.options[option] = name
            made.facts.append(Fact(fact.relation, fact.parts, option))
    return Goal(name, facts)
