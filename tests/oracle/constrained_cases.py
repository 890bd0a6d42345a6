"""Random cases with constraints, with comparisons, or with both.

Like those of `strategies`, a case is drawn around a hidden database, which satisfies the
constraints before and after the update; so every case has an explanation. The form is that of the recorded
cases, and besides, where needed:

    nullable  {relation: [position]}     columns that may hold NULL; no others do
    not_null  {relation: [position]}     columns that do not, whatever ``nullable`` says
    unique    {relation: [[position]]}   unique constraints
    types     {relation: [type]}         a type per column; without, numbers are a dense order

Dates are texts such as 2024-01-31 in rows, and ``date '2024-01-31'`` in rules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from hypothesis import strategies as st

from datalog.copies import replace

from .problem import Case
from .random_rules import RuleLimits, draw_views
from .random_schemas import (
    DATE,
    DECIMAL,
    INTEGER,
    NUMBER,
    TEXT,
    Domain,
    Rows,
    Schema,
    draw_database,
    draw_schema,
)
from .random_updates import draw_update
from .rules import Row, Rule, Value, contents, ordered
from .strategies import Situation, spelled

ORDINARY = RuleLimits()


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the cases have, and how large they are."""

    constraints: bool = False
    nulls: bool = False
    typed: bool = False
    """Whether columns have types."""
    domains: tuple[Domain, ...] = (TEXT,)
    """Of which the columns' are drawn."""
    arity: int = 3
    several: bool = False
    """Whether relations have, mostly, several keys."""
    rows: int = 3
    effective: bool | None = True
    """None: sometimes."""
    knowledge: bool = True
    """Whether there may be readable relations, present and absent rows."""
    rules: RuleLimits = ORDINARY


CONSTRAINTS = Wanted(constraints=True)
CONSTRAINTS_WITH_NULLS = Wanted(constraints=True, nulls=True)
SEVERAL_KEYS = replace(CONSTRAINTS, several=True)
SEVERAL_KEYS_WITH_NULLS = replace(CONSTRAINTS_WITH_NULLS, several=True)
COMPARISONS = Wanted(domains=(NUMBER,), effective=None, rules=RuleLimits(comparisons=2))
TYPED_COMPARISONS = Wanted(
    domains=(INTEGER, DECIMAL, DATE, TEXT), typed=True, effective=None, rules=RuleLimits(comparisons=2)
)
BOTH = replace(CONSTRAINTS, domains=(NUMBER,), rules=RuleLimits(comparisons=2))
TYPED_BOTH = replace(TYPED_COMPARISONS, constraints=True, effective=True)


def constrained_cases(wanted: Wanted = CONSTRAINTS) -> st.SearchStrategy[Case]:
    """Consistent random cases."""
    return constrained_situations(wanted).map(lambda situation: situation.case)


def constrained_situations(wanted: Wanted = CONSTRAINTS) -> st.SearchStrategy[Situation]:
    """Consistent random cases, each with the database that it was made from."""
    randoms = st.one_of(st.randoms(use_true_random=False), st.integers(0, 2**32).map(Random))
    return randoms.map(lambda random: random_situation(random, wanted))


def random_situation(random: Random, wanted: Wanted = CONSTRAINTS) -> Situation:
    """Draw a case and the database that it is made from."""
    schema = draw_schema(
        random,
        wanted.domains,
        constraints=wanted.constraints,
        nulls=wanted.nulls,
        arity=wanted.arity,
        several=wanted.several,
    )
    hidden = draw_database(random, schema, wanted.rows)
    effective = random.choice((False, True)) if wanted.effective is None else wanted.effective
    insert, delete = draw_update(random, schema, hidden, effective=effective)
    views = draw_views(random, schema, wanted.rules)
    return situation_of(random, schema, hidden, (insert, delete), views, effective=effective, wanted=wanted)


def situation_of(
    random: Random,
    schema: Schema,
    hidden: Rows,
    update: tuple[Rows, Rows],
    views: Mapping[str, Sequence[Rule]],
    *,
    effective: bool,
    wanted: Wanted,
) -> Situation:
    """The case of a database, an update (inserted and deleted rows) and views, with some more knowledge."""
    insert, delete = update
    case: Case = {
        "relations": {name: len(columns) for name, columns in schema.columns.items()},
        "program": "\n".join(spelled(rule) for rules in views.values() for rule in rules),
        "views": {name: ordered(contents(rules, hidden)) for name, rules in views.items()},
        "insert": _listed(insert),
        "delete": _listed(delete),
        "effective": effective,
    }
    _add_constraints(random, case, schema)
    if wanted.typed:
        case["types"] = {
            name: [column.domain.type for column in columns] for name, columns in schema.columns.items()
        }
    if wanted.knowledge:
        _add_knowledge(random, case, schema, hidden)
    return Situation(case, {name: ordered(rows) for name, rows in hidden.items()})


def _add_constraints(random: Random, case: Case, schema: Schema) -> None:
    """Write the constraints; a column without NULL is sometimes nullable and not null."""
    if schema.keys:
        case["keys"] = {name: [*key] for name, key in schema.keys.items()}
    if schema.unique:
        case["unique"] = {name: [[*one] for one in several] for name, several in schema.unique.items()}
    if schema.foreign_keys:
        keys = schema.foreign_keys
        case["foreign_keys"] = [(k.child, [*k.columns], k.parent, [*k.targets]) for k in keys]
    nullable = {name: schema.nullable(name) for name in schema.columns}
    if any(nullable.values()):
        case["nullable"] = {name: at for name, at in nullable.items() if at}
        if random.choice((False, True)):
            case["nullable"] = {name: [*range(len(columns))] for name, columns in schema.columns.items()}
            case["not_null"] = {
                name: [i for i in range(len(columns)) if i not in nullable[name]]
                for name, columns in schema.columns.items()
            }


def _add_knowledge(random: Random, case: Case, schema: Schema, hidden: Rows) -> None:
    """Add to the case, sometimes, what else is known of the hidden database."""
    names = sorted(schema.columns)
    if random.randint(0, 5) == 0:
        chosen = random.sample(names, random.randint(1, len(names)))
        case["access"] = {name: ordered(hidden[name]) for name in sorted(chosen)}
    if random.randint(0, 5) == 0:
        present = {name: _some(random, hidden[name]) for name in names}
        case["present"] = _listed(present)
    if random.randint(0, 5) == 0:
        absent: Rows = {}
        for name, columns in schema.columns.items():
            drawn = [[random.choice(c.values(newcomers=False)) for c in columns] for _ in range(2)]
            absent[name] = {*map(tuple, drawn)} - hidden[name]
        case["absent"] = _listed(absent)


def _some(random: Random, rows: Collection[Row]) -> set[Row]:
    return {*random.sample(sorted(rows, key=repr), min(len(rows), random.randint(0, 2)))}


def _listed(relations: Mapping[str, Collection[Row]]) -> dict[str, list[list[Value]]]:
    return {name: ordered(rows) for name, rows in relations.items() if rows}
