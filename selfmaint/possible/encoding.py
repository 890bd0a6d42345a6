"""The search for a database as an answer-set program: an answer set is a database that explains what is known.

    val(n, c)        labelled null n has the value number c
    b<r>(...)        relation number r has the row before the update, a<r>(...) after it
    u.., p.., o.., g..   choices: a rule for a stored row, a partner of a foreign key, an optional fact, a goal

Constraints: no view row that is not stored, nothing absent, what is readable exactly, keys and foreign keys before and
after the update. Of nulls that may have values of their own only one naming is looked at: a null takes its own value,
or that of a null before it which has its own.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from math import prod

from msgspec import Struct, field

from datalog.model import Atom, Comparison, Constant, NullTest, Term, Variable, Version, variables_of
from datalog.order import constants_compare
from selfmaint.possible.candidates import values_of_nulls
from selfmaint.possible.elimination import Joined, atom_text, body_text, eliminated, if_text
from selfmaint.possible.instances import Wanted
from selfmaint.possible.labelled_nulls import Fact, Instance, LabelledNull, Part
from selfmaint.possible.queries import Queries, Query
from selfmaint.possible.value_classes import NULL
from selfmaint.warehouse.catalog import BaseRelation

BEFORE, AFTER = "b", "a"
_TRUE, _FALSE = "1 = 1", "1 = 0"


MOST_GROUND_RULES = 400_000
"""A program with more is not given to the solver: making them all could not be stopped."""


class TooLargeError(Exception):
    """The program would be too large."""


class Encoding(Struct, dict=True):
    """A program, and what its atoms stand for.

    Attributes:
        instance: what it is made of.
        most: how many ground rules there may be, about.
        fixed: the numbers of the labelled nulls that have but one value.
        domains: the numbers that labelled nulls may have.
        sizes: how many facts there may be of each relation.
        values: how many values there may be in each column.
        cost: about how many ground rules there may be.
    """

    instance: Instance
    queries: Queries
    most: float = MOST_GROUND_RULES
    lines: list[str] = field(default_factory=list)
    fixed: dict[LabelledNull, int] = field(default_factory=dict)
    domains: dict[LabelledNull, list[int]] = field(default_factory=dict)
    sizes: Counter[str] = field(default_factory=Counter)
    values: defaultdict[tuple[str, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    cost: float = 0

    @property
    def text(self) -> str:
        """The program."""
        return "\n".join(self.lines)

    def __post_init__(self) -> None:
        self.instance.classes.number_constants(self.instance.numbers_of_nulls())
        relations = self.instance.known.catalog.relations
        self.numbers = {name: number for number, name in enumerate(relations)}
        self.views = {name: number for number, name in enumerate(self.queries)}
        self._parts_of_joins = (f"j{number}" for number in count(1))
        self._add_choices()
        self._add_nulls()
        self._add_facts()
        self._add_tests()
        self._add_prohibitions()
        for relation in relations.values():
            self._add_known(relation)
            self._add_update(relation)
            for version in (BEFORE, AFTER) if self._changes(relation.name) else (BEFORE,):
                self._add_keys(relation, version)
        self._add_references()

    # ------------------------------------------------------------------------------------ what may be there

    def _add_choices(self) -> None:
        for choice in self.instance.choices:
            self.lines.append(f"1 {{ {'; '.join(choice.names)} }} 1.")
        for name, where in self.instance.options.items():
            self.lines.append(f"{{ {name} }}{if_text([where])}.")

    def _add_nulls(self) -> None:
        """The values of labelled nulls."""
        found = values_of_nulls(self.instance, self.queries)
        self.domains = found.numbers
        self.fixed = {null: its[0] for null, its in found.numbers.items() if len(its) == 1}
        for null, its in found.numbers.items():
            if null not in self.fixed or null in found.shared:
                values = "; ".join(f"val({null.number},{n})" for n in its)
                self.lines.append(f"1 {{ {values} }} 1{if_text([null.where])}.")
        for null, number, owner in found.borrowed:
            self.lines.append(f":- val({null.number},{number}), not val({owner.number},{number}).")

    def _add_facts(self) -> None:
        """What may be there, and how many facts and values that makes at most."""
        for fact in dict.fromkeys(self.instance.facts):
            relation = self.instance.known.catalog.relations[fact.relation]
            nulls = {p for p in fact.parts if isinstance(p, LabelledNull)}
            number = prod(len(self.domains[null]) for null in nulls)
            self._spend(number)
            self.sizes[fact.relation] += number
            for i, part in enumerate(fact.parts):
                self.values[fact.relation, i].update(
                    self.domains[part]
                    if isinstance(part, LabelledNull)
                    else [self.instance.classes.number(fact.relation, i, part.value)]
                )
            if fact.is_inserted:
                continue
            body = [fact.where, *self._values(fact.parts)]
            body += [
                f"{self._part(p, fact.relation, i)} != {NULL}"
                for i, p in enumerate(fact.parts)
                if isinstance(p, LabelledNull) and p.nullable and i not in relation.nullable
            ]
            self.lines.append(f"{self._fact(fact, BEFORE)}{if_text(body)}.")

    def _add_tests(self) -> None:
        for test in self.instance.tests:
            for one in test.query.filters:
                terms = (one.term,) if isinstance(one, NullTest) else (one.left, one.right)
                parts = {t: test.binding[t] for t in terms if isinstance(t, Variable)}
                if not any(isinstance(p, LabelledNull) for p in parts.values()):
                    continue
                names = {t: self._part_in(test.query, t, p) for t, p in parts.items()}
                body = [test.where, *self._values(parts.values())]
                self.lines.append(f":- {body_text([*body, f'not {self._test(test.query, one, names)}'])}.")

    # ------------------------------------------------------------------------------------ what must not be

    def _add_prohibitions(self) -> None:
        """No view has a row that is not stored; where stored rows are left out, none that is certainly not (cut 2)."""
        known, classes = self.instance.known, self.instance.classes
        for view, rules in self.queries.items():
            for row in known.of(view, Version.STORED):
                self.lines.append(f"{atom_text(f's{self.views[view]}', classes.numbers(view, row))}.")
            for query in rules:
                head = self._head(query, f"s{self.views[view]}")
                match = body_text([*self._match(query, BEFORE), f"not {head}"])
                self.lines += [f":- {body_text([match, one])}." for one in self._covered(query)]

    def _covered(self, query: Query) -> Iterator[str]:
        """For a row of a query: that it would be at hand if it were stored, each way; an empty literal for always."""
        cut, view = self.instance.cut, query.view
        if cut is None or view in cut.whole:
            yield ""
            return
        terms = self._head_terms(query)
        for number, (columns, keys) in enumerate(cut.numbers(view, self.instance.classes)):
            name = f"c{self.views[view]}_{query.number}_{number}"
            self.lines += [f"{atom_text(name, key)}." for key in keys]
            yield atom_text(name, [terms[i] for i in columns])

    def _add_known(self, relation: BaseRelation) -> None:
        """Nothing that is known to be absent, nothing more than what was read."""
        known, name = self.instance.known, relation.name
        row = self._row(relation)
        absent = known.of(name, Version.ABSENT)
        if known.situation.effective:
            absent |= known.of(name, Version.INSERTED)
        for one in absent:
            self.lines.append(f":- {self._of(BEFORE, name, self.instance.classes.numbers(name, one))}.")
        regions = [r for r in known.situation.regions if r.name == name]
        if name not in known.situation.readable and not regions:
            return
        found = known.of(name, Version.BEFORE) if name in known.situation.readable else known.known[name]
        for one in found:
            self.lines.append(f"{self._of('k', name, self.instance.classes.numbers(name, one))}.")
        here = f"{self._of(BEFORE, name, row)}, not {self._of('k', name, row)}"
        if name in known.situation.readable:
            self.lines.append(f":- {here}.")
        for number, region in enumerate(regions):
            if not region.columns:
                self.lines.append(f":- {here}.")
                continue
            for key in known.rows.get(region, ()):
                numbers = self.instance.classes.numbers(name, key, region.columns)
                self.lines.append(f"{atom_text(f'e{self.numbers[name]}_{number}', numbers)}.")
            asked = atom_text(f"e{self.numbers[name]}_{number}", [row[i] for i in region.columns])
            self.lines.append(f":- {here}, {asked}.")

    def _changes(self, name: str) -> bool:
        situation = self.instance.known.situation
        return name in situation.inserted or name in situation.deleted

    def _add_update(self, relation: BaseRelation) -> None:
        """The relation after the update, if it changes."""
        known, classes, name = self.instance.known, self.instance.classes, relation.name
        if not self._changes(name):
            return
        row = self._row(relation)
        for one in known.of(name, Version.DELETED):
            self.lines.append(f"{self._of('d', name, classes.numbers(name, one))}.")
        for one in known.of(name, Version.INSERTED):
            self.lines.append(f"{self._of(AFTER, name, classes.numbers(name, one))}.")
        body = [self._of(BEFORE, name, row)]
        if known.of(name, Version.DELETED):
            body.append(f"not {self._of('d', name, row)}")
        self.lines.append(f"{self._of(AFTER, name, row)}{if_text(body)}.")

    def _add_keys(self, relation: BaseRelation, version: str) -> None:
        """No two rows agree on a key and differ elsewhere."""
        row = self._row(relation)
        for number, key in enumerate(relation.unique):
            here = [row[i] for i in key]
            tests = [f"{row[i]} != {NULL}" for i in key if i in relation.nullable]
            for column in range(relation.arity):
                if column in key:
                    continue
                name = f"{version}k{self.numbers[relation.name]}_{number}_{column}"
                body = [self._of(version, relation.name, row), *tests]
                self.lines.append(f"{atom_text(name, [*here, row[column]])}{if_text(body)}.")
                self.lines.append(
                    f":- {atom_text(name, [*here, 'V'])}, {atom_text(name, [*here, 'W'])}, V < W."
                )

    def _add_references(self) -> None:
        """Each row has the rows that it references, before the update and after it."""
        relations = self.instance.known.catalog.relations
        numbers = count(1)
        for relation in relations.values():
            for reference in relation.references:
                row, target = self._row(relation), relations[reference.target]
                keys = [row[i] for i in reference.columns]
                tests = [f"{row[i]} != {NULL}" for i in reference.columns if i in relation.nullable]
                changes = self._changes(relation.name) or self._changes(target.name)
                for version in (BEFORE, AFTER) if changes else (BEFORE,):
                    there, name = self._row(target), f"r{next(numbers)}"
                    found = atom_text(name, [there[i] for i in reference.target_columns])
                    self.lines.append(f"{found} :- {self._version(version, target.name, there)}.")
                    here = self._version(version, relation.name, row)
                    self.lines.append(f":- {body_text([here, *tests, f'not {atom_text(name, keys)}'])}.")

    # ----------------------------------------------------------------------------------------- what is wanted

    def want(self, wanted: Wanted) -> None:
        """Asks for a database on which a view has another state after the update."""
        classes = self.instance.classes
        for row in wanted.state:
            self.lines.append(f"{atom_text('state', classes.numbers(wanted.view, row))}.")
            self.lines.append(f"differs :- not {atom_text('now', classes.numbers(wanted.view, row))}.")
        for query in self.queries[wanted.view]:
            self.lines.append(f"{self._head(query, 'now')} :- {body_text(self._match(query, AFTER))}.")
        arity = len(self.queries[wanted.view][0].head)
        row_ = [f"X{i}" for i in range(arity)]
        more = f"differs :- {atom_text('now', row_)}, not {atom_text('state', row_)}"
        if self.instance.cut is None:
            self.lines.append(f"{more}.")
        else:  # cut 5
            for query in self.queries[wanted.view]:
                self.lines.append(f"{self._head(query, 'was')} :- {body_text(self._match(query, BEFORE))}.")
            self.lines.append(f"{more}, {atom_text(f's{self.views[wanted.view]}', row_)}.")
            self.lines.append(f"{more}, not {atom_text('was', row_)}.")
        self.lines.append(":- not differs.")
        if wanted.goals:
            self.lines.append(f"{{ {'; '.join(g.name for g in wanted.goals)} }} 1.")
        for goal in wanted.goals:
            for fact in goal.atoms:
                body = [goal.name, *self._values(fact.parts), f"not {self._fact(fact, AFTER)}"]
                self.lines.append(f":- {body_text(body)}.")

    # ------------------------------------------------------------------------------------------------- words

    def _match(self, query: Query, version: str) -> tuple[str, ...]:
        """Literals for the matches of a query's body, as far as its head asks for them."""
        names = _names(query)
        body, values = [], dict[str, int]()
        for atom in query.body:
            relation = atom.predicate.name
            for i, term in enumerate(atom.terms):
                if isinstance(term, Variable):
                    number = len(self.values[relation, i])
                    values[names[term]] = min(number, values.get(names[term], number))
            used = frozenset(names[t] for t in atom.terms if isinstance(t, Variable))
            text = self._version(version, relation, self._terms(atom, names))
            body.append(Joined(text, used, self.sizes[relation]))
        guarded = (v for v in variables_of(query.filters) if v in query.not_null)
        body += [Joined(f"{names[v]} != {NULL}", frozenset({names[v]})) for v in guarded]
        for one in query.filters:
            used = frozenset(names[v] for v in variables_of([one]))
            body.append(Joined(self._test(query, one, names), used))
        asked = {names[t] for t in query.head if isinstance(t, Variable)}
        found = eliminated(body, asked, values, self._parts_of_joins)
        self.lines.extend(found.rules)
        self._spend(found.cost)
        return found.body

    def _spend(self, ground_rules: float) -> None:
        self.cost += ground_rules
        if self.cost > self.most:
            raise TooLargeError

    def _head(self, query: Query, name: str) -> str:
        return atom_text(name, self._head_terms(query))

    def _head_terms(self, query: Query) -> list[str]:
        names = _names(query)
        return [
            names[t] if isinstance(t, Variable) else str(self.instance.classes.number(query.view, i, t.value))
            for i, t in enumerate(query.head)
        ]

    def _terms(self, atom: Atom, names: Mapping[Variable, str]) -> list[str]:
        name, classes = atom.predicate.name, self.instance.classes
        return [
            names[t] if isinstance(t, Variable) else str(classes.number(name, i, t.value))
            for i, t in enumerate(atom.terms)
        ]

    def _test(self, query: Query, test: NullTest | Comparison, names: Mapping[Variable, str]) -> str:
        if isinstance(test, NullTest):
            operator = "!=" if test.negated else "="
            return f"{self._term_in(query, test, test.term, names)} {operator} {NULL}"
        given = [t for t in (test.left, test.right) if isinstance(t, Constant)]
        if len(given) > 1 or any(t.value is None for t in given):
            holds = len(given) > 1 and constants_compare(test.operator, *given)
            return _TRUE if holds else _FALSE
        left, right = (self._term_in(query, test, t, names) for t in (test.left, test.right))
        return f"{left} {test.operator} {right}"

    def _term_in(
        self, query: Query, test: NullTest | Comparison, term: Term, names: Mapping[Variable, str]
    ) -> str:
        if isinstance(term, Variable):
            return names[term]
        if term.value is None or isinstance(test, NullTest):
            return str(NULL) if term.value is None else "1"
        other = next(t for t in (test.left, test.right) if isinstance(t, Variable))
        return str(self.instance.classes.of_variable(query, other).constants[term])

    def _null(self, null: LabelledNull) -> str:
        return str(self.fixed[null]) if null in self.fixed else f"N{null.number}"

    def _part_in(self, query: Query, variable: Variable, part: Part) -> str:
        if isinstance(part, LabelledNull):
            return self._null(part)
        if part.value is None:
            return str(NULL)
        return str(self.instance.classes.of_variable(query, variable).constants[part])

    def _part(self, part: Part, name: str, column: int) -> str:
        if isinstance(part, LabelledNull):
            return self._null(part)
        return str(self.instance.classes.number(name, column, part.value))

    def _values(self, parts: Iterable[Part]) -> Iterator[str]:
        """What gives the labelled nulls among some parts their values."""
        for null in dict.fromkeys(p for p in parts if isinstance(p, LabelledNull)):
            if null not in self.fixed:
                yield f"val({null.number},N{null.number})"

    def _fact(self, fact: Fact, version: str) -> str:
        parts = [self._part(p, fact.relation, i) for i, p in enumerate(fact.parts)]
        return self._version(version, fact.relation, parts)

    def _version(self, version: str, name: str, terms: Sequence[str]) -> str:
        """A relation before or after the update; one that does not change has but one version."""
        return self._of(version if self._changes(name) else BEFORE, name, terms)

    def _of(self, version: str, name: str, terms: Sequence[object]) -> str:
        return atom_text(f"{version}{self.numbers[name]}", terms)

    def _row(self, relation: BaseRelation) -> list[str]:
        return [f"X{i}" for i in range(relation.arity)]


def _names(query: Query) -> dict[Variable, str]:
    """How the program writes a query's variables."""
    return {v: f"V{i}" for i, v in enumerate(variables_of(query.body))}
