"""The rules behind one query: what one rule defines is unfolded into its users, and every body is in normal form.

Before: `d(Z) :- v2(Y, Z), not t(Z).   t(C) :- v1(A, B, C), not s(A).`
After:  `d(Z) :- v2(Y, Z), not (v1(A', B', Z), not s(A')).`

What several rules define, or one that cannot be put in place of its head anywhere, stays a predicate of its own; one
without a satisfiable rule is empty. The steps of a demand transformation are put in place by `in_place.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from datalog.analysis.dependency import atoms_of, evaluation_order
from datalog.diagnostics import ProgramError
from datalog.errors import EmissionError
from datalog.model import Predicate, Program, Rule
from datalog.rewrite.in_place import STEPS, in_place
from datalog.rewrite.normal_form import normal_rule
from datalog.rewrite.reachable import drop_empty, drop_unreachable, predicates_of
from datalog.rewrite.unfold import is_unfoldable, unfold


def inline(program: Program, goal: Predicate) -> dict[Predicate, tuple[Rule, ...]]:
    """The rules in normal form of the goal and of the predicates that it is left to use, the goal's last.

    Raises:
        EmissionError: the program is recursive.
    """
    reached = drop_unreachable(program, [goal])
    try:
        order = evaluation_order(reached)
    except ProgramError as error:
        raise EmissionError(f"predicate `{goal}` is recursive") from error
    found: dict[Predicate, tuple[Rule, ...]] = {}
    once: dict[Predicate, Rule] = {}
    empty: set[Predicate] = set()
    for predicate in order:
        rules = reached.rules_for(predicate)
        _require_one_arity(rules, found)
        unfolded = unfold(drop_empty(Program(rules), empty), once).rules if once or empty else rules
        normal = (normal_rule(rule) for rule in unfolded)
        made = found[predicate] = tuple(dict.fromkeys(rule for rule in normal if rule is not None))
        if not made:
            empty.add(predicate)
        elif len(made) == 1 and is_unfoldable(made[0]) and predicate.version not in STEPS:
            once[predicate] = made[0]
    found = in_place(found, goal)
    needed = {goal}
    for predicate in reversed(found):
        if predicate in needed:
            needed.update(p for rule in found[predicate] for p in predicates_of(rule.body))
    return {p: rules for p, rules in found.items() if p in needed}


def _require_one_arity(rules: Iterable[Rule], defined: Mapping[Predicate, Sequence[Rule]]) -> None:
    for atom in (atom for rule in rules for literal in rule.body for atom in atoms_of(literal)):
        for other in defined.get(atom.predicate, ()):
            if other.head.arity != atom.arity:
                said = f"predicate `{atom.predicate}` has arity {other.head.arity}, not {atom.arity}"
                raise EmissionError(said)
