"""Random cases of few columns and few values, in which subgoals crowd: they may be one fact in several ways.

Rules join a relation with itself, beside constants and comparisons of neighbouring values; relations have several keys
and foreign keys, also to themselves; mostly all views are empty, and so prohibit. The form is that of
`constrained_cases`.
"""

from __future__ import annotations

from random import Random

from .constrained_cases import Wanted, situation_of
from .constraints import ForeignKey, Positions
from .random_rules import VARIABLES, constant, draw_comparisons
from .random_schemas import RELATIONS, Column, Domain, Schema, draw_database
from .random_updates import draw_update
from .rules import Atom, Rule, Term, Variable
from .strategies import Situation

DOMAINS = (
    Domain("int", (3, 4, 5), 6, (2, 7)),
    Domain("int", (1, 3), 2, (0, 4)),
    Domain("date", ("2024-02-28", "2024-02-29"), "2024-03-01", ("2024-02-27", "2024-03-02")),
    Domain("decimal", (1, 1.5), 2, (0, 1.25)),
    Domain("string", ("a", "b"), "c", ("", "ab")),
)
FEW = Domain("boolean", (False, True), True, ())
Edge = tuple[int, int]
SHAPES: tuple[tuple[Edge, ...], ...] = (
    (),
    ((0, 0),),
    ((0, 1),),
    ((0, 1), (0, 1)),
    ((0, 1), (1, 2)),
    ((0, 1), (0, 2)),
    ((0, 1), (1, 1)),
)
"""Which relation refers to which, by number."""


def crowded_situation(random: Random) -> Situation:
    """Draw a case, in which a view with several subgoals reads an inserted row, and its hidden database."""
    while True:
        constrained = random.randint(0, 3) > 0
        schema = _schema(random, constrained=constrained)
        rows = random.choice((0, 0, 0, 0, 1, 2))
        hidden = draw_database(random, schema, rows) if rows else {name: set() for name in schema.columns}
        effective = random.randint(0, 4) > 0 if constrained else random.choice((False, True))
        insert, delete = draw_update(random, schema, hidden, effective=effective)
        views = {f"v{n}": [_rule(random, f"v{n}", schema)] for n in range(random.choice((1, 1, 2, 3)))}
        rules = [rule for rules in views.values() for rule in rules]
        if any(len(rule.body) > 1 and any(insert[atom.name] for atom in rule.body) for rule in rules):
            wanted = Wanted(typed=random.randint(0, 5) > 0 or not _is_plain(schema))
            return situation_of(
                random, schema, hidden, (insert, delete), views, effective=effective, wanted=wanted
            )


def _is_plain(schema: Schema) -> bool:
    """Whether types may be left out: what is compared is then taken to be a number."""
    return all(c.domain.type in ("int", "decimal") for columns in schema.columns.values() for c in columns)


def _schema(random: Random, *, constrained: bool) -> Schema:
    shape = random.choice(SHAPES) if constrained else ()
    names = RELATIONS[: max(random.choice((1, 1, 2)), *(1 + max(edge) for edge in (*shape, (0, 0))))]
    arities = {name: random.choice((1, 1, 2, 2, 3)) for name in names}
    keys: dict[str, Positions] = {}
    unique: dict[str, tuple[Positions, ...]] = {}
    for name, arity in arities.items() if constrained else ():
        sets = dict.fromkeys([(0,), (arity - 1,), tuple(range(min(arity, 2))), tuple(range(arity))])
        drawn = random.sample([*sets], min(random.choice((0, 1, 1, 2)), len(sets)))
        if drawn and random.randint(0, 3):
            keys[name] = drawn.pop()
        if drawn:
            unique[name] = tuple(drawn)
    foreign_keys = []
    for child, parent in ((names[a], names[b]) for a, b in shape):
        targets = [*unique.get(parent, ()), *([keys[parent]] if parent in keys else [])]
        fitting = [target for target in targets if len(target) <= arities[child]]
        if fitting:
            target = random.choice(fitting)
            columns = random.sample(range(arities[child]), len(target))
            foreign_keys.append(ForeignKey(child, tuple(columns), parent, target))
    return Schema(_columns(random, arities, keys, foreign_keys), keys, unique, tuple(foreign_keys))


def _columns(
    random: Random, arities: dict[str, int], keys: dict[str, Positions], foreign_keys: list[ForeignKey]
) -> dict[str, tuple[Column, ...]]:
    """One domain for all columns, but for some that no foreign key connects."""
    main = random.choice(DOMAINS)
    nulls, few = random.randint(0, 2) == 0, random.randint(0, 4) == 0
    connected = {(k.child, i) for k in foreign_keys for i in k.columns}
    connected |= {(k.parent, i) for k in foreign_keys for i in k.targets}
    return {
        name: tuple(
            Column(
                FEW if few and (name, i) not in connected and random.randint(0, 2) == 0 else main,
                nulls and i not in keys.get(name, ()) and random.choice((False, True)),
            )
            for i in range(arity)
        )
        for name, arity in arities.items()
    }


def _rule(random: Random, name: str, schema: Schema) -> Rule:
    """Draw a rule, mostly of subgoals of one relation; the more there are, the fewer comparisons."""
    relations = sorted(schema.columns)
    often = random.choice(relations)
    size = random.choice((2, 2, 3, 3)) if schema.foreign_keys else random.choice((1, 2, 3, 3, 4))
    variables = VARIABLES[: random.choice((1, 2, 2, 3, 3))]
    domains: dict[Variable, Domain] = {}
    body = []
    for _ in range(size):
        relation = often if random.randint(0, 2) else random.choice(relations)
        body.append(
            Atom(relation, tuple(_term(random, c, variables, domains) for c in schema.columns[relation]))
        )
    compared = {v: its for v, its in domains.items() if its != FEW}
    comparisons = draw_comparisons(random, compared, min(2, 4 - size)) if compared else ()
    return Rule.of(Atom(name, tuple(domains)), tuple(body), comparisons)


def _term(
    random: Random, column: Column, variables: tuple[Variable, ...], domains: dict[Variable, Domain]
) -> Term:
    """Draw a term, a variable first; a new variable's domain is noted."""
    unused = [v for v in variables if v not in domains]
    known = [v for v, its in domains.items() if its == column.domain]
    if not domains or (unused and random.randint(0, 2) == 0):
        domains[unused[0]] = column.domain
        return unused[0]
    if known and random.randint(0, 2):
        return random.choice(known)
    return constant(column.domain, random.choice(column.domain.constants))
