"""Whether two databases show that a view's new state is not determined, by the definition alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from .problem import Case, Facts, Problem, Rows, facts_of, grouped
from .rules import contents

Claimed = Mapping[str, Rows]
"""A database before the update: the rows of each relation; one that is not named is empty."""


def objections(case: Case, view: str, first: Claimed, second: Claimed) -> list[str]:
    """What is wrong with a claimed counterexample; nothing if it is one.

    Both databases must be consistent with all that is known in the case, and the view must
    have different contents after the update of each.
    """
    problem = Problem.of(case)
    pair = {"first": facts_of(first), "second": facts_of(second)}
    found = [f"{which}: {what}" for which, facts in pair.items() for what in _wrong(problem, facts)]
    states = {contents(problem.rules[view], grouped(problem.updated(facts))) for facts in pair.values()}
    return found if len(states) == 2 else [*found, f"both give {view} the same state"]


def _wrong(problem: Problem, facts: Facts) -> Iterator[str]:
    """Where a database is not consistent."""
    for name, row in facts:
        if problem.arities.get(name) != len(row):
            yield f"there is no relation {name} with {len(row)} columns"
            return
    yield from (f"{fact} is missing" for fact in problem.present - facts)
    yield from (f"{fact} cannot be there" for fact in facts if problem.excluded(fact))
    for when, database in (("before", facts), ("after", problem.updated(facts))):
        relations = grouped(database)
        for name, row in database:
            if problem.constraints.twins(name, row, relations[name]):
                yield f"{when} the update, {name}{row} has a twin"
            for key, reference in problem.constraints.references(name, row):
                if not key.met(reference, relations.get(key.parent, ())):
                    yield f"{when} the update, {name}{row} refers to no row of {key.parent}"
    for name, rules in problem.rules.items():
        rows = contents(rules, grouped(facts))
        yield from (f"{name} has {row}" for row in rows - problem.views[name])
        yield from (f"{name} lacks {row}" for row in problem.views[name] - rows)
