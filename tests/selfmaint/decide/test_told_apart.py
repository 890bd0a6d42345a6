"""Unions whose rows tell their rules apart are decided exactly: held against brute force on random small cases.

Cases are those of `tests.oracle.strategies`, with some rules of theirs taken apart: by comparisons of a column of the
head, by constants in its place, or by a column of constants.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from datalog.diagnostics import ProgramError
from selfmaint.conformance.cases import case_of
from selfmaint.conformance.run import Outcome, run_case
from selfmaint.engine.memory import MemoryEngine
from tests.large_engine import LargeEngine
from tests.oracle.bruteforce import Case, solve
from tests.oracle.program import parse_program
from tests.oracle.rules import Atom, Comparison, Rule, Value, Variable, contents
from tests.oracle.strategies import NUMBERS, TEXTS, Limits, Situation, situations, spelled

patient = settings(suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow])
LIMITS = Limits(views=2, nulls=False)


def kind_of(case: Case, hidden: dict[str, list[list[Value]]], rule: Rule, variable: Variable) -> type | None:
    """Whether a variable is of numbers or of texts, if that can be seen."""
    for atom in rule.body:
        for i, term in enumerate(atom.terms):
            if term == variable:
                values = [row[i] for row in (*hidden[atom.name], *case.get("insert", {}).get(atom.name, []))]
                if values:
                    return str if isinstance(values[0], str) else int
    return None


def taken_apart(random: Random, rule: Rule, variable: Variable, *, numbers: bool) -> list[Rule]:
    """Two rules, or three, in place of one."""
    values = random.sample(NUMBERS if numbers else TEXTS, 3)
    match random.randrange(4):
        case 0:
            tests = [Comparison(variable, "=", value) for value in values[: random.choice([2, 3])]]
        case 1:
            tests = [Comparison(variable, "=", values[0]), Comparison(variable, "!=", values[1])]
        case 2 if numbers:
            low, high = sorted(values[:2])
            signs = random.choice([("<", ">="), ("<=", ">="), ("<", ">")])
            tests = [Comparison(variable, signs[0], low), Comparison(variable, signs[1], high)]
        case _:
            heads = [Atom(rule.head.name, (*rule.head.terms, value)) for value in values[:2]]
            return [Rule.of(head, rule.body) for head in heads]
    return [Rule.of(rule.head, rule.body, (test,)) for test in tests]


def with_unions(drawn: Situation, random: Random) -> Case | None:
    """The case with unions; None if no view can be taken apart, or the rows of one become too many."""
    rules, found = parse_program(drawn.case["program"]), []
    for rule in rules:
        variables = [t for t in rule.head.terms if isinstance(t, Variable)]
        if not variables or (found and random.random() < 0.4):
            found.append(rule)
            continue
        variable = random.choice(variables)
        kind = kind_of(drawn.case, drawn.hidden, rule, variable)
        if kind is None:
            found.append(rule)
            continue
        parts = taken_apart(random, rule, variable, numbers=kind is int)
        if len(parts[0].head.terms) > len(rule.head.terms) and random.random() < 0.5:
            other = next((one for one in rules if len(one.head.terms) == len(rule.head.terms)), rule)
            terms = (*other.head.terms, parts[1].head.terms[-1])
            parts[1] = Rule.of(Atom(rule.head.name, terms), other.body)
        found.extend(parts)
    if len(found) == len(rules):
        return None
    case: Case = {**drawn.case, "program": "\n".join(map(spelled, found))}
    return with_contents(case, drawn.hidden)


def outcomes(case: Case, engine: MemoryEngine) -> list[Outcome]:
    """What is decided against what brute force says; texts are not compared by size, nor are columns of two types."""
    try:
        answers = solve(case)
        assert answers is not None
        expected = {
            name: {k: v for k, v in answer.items() if k != "witness"} for name, answer in answers.items()
        }
        return list(run_case(case_of({"id": "random", **case, "expected": expected}), engine))
    except (ValueError, ProgramError):
        assume(False)
        raise


def mixed_up(case: Case, random: Random) -> Case:
    """The case with the constants of heads drawn again: rows may be of several rules."""
    rules = []
    for rule in parse_program(case["program"]):
        *terms, last = rule.head.terms
        shared = [t for t in terms if isinstance(t, Variable)]
        again = last if isinstance(last, Variable) else random.choice([last, TEXTS[0], *shared])
        rules.append(Rule.of(Atom(rule.head.name, (*terms, again)), rule.body, rule.comparisons))
    return {**case, "program": "\n".join(map(spelled, rules))}


def with_contents(case: Case, hidden: dict[str, list[list[Value]]]) -> Case:
    """The case with what its views hold on a database."""
    database = {name: frozenset(map(tuple, rows)) for name, rows in hidden.items()}
    rules = parse_program(case["program"])
    views = {
        name: sorted(map(list, contents([r for r in rules if r.head.name == name], database)), key=repr)
        for name in dict.fromkeys(rule.head.name for rule in rules)
    }
    return {**case, "views": views}


@given(drawn=situations(LIMITS), random=st.randoms(use_true_random=False))
@settings(patient, max_examples=settings().max_examples)
def test_rows_of_several_rules_never_make_a_wrong_yes(drawn: Situation, random: Random) -> None:
    case = with_unions(drawn, random)
    assume(case is not None)
    assert case is not None
    case = with_contents(mixed_up(case, random), drawn.hidden)
    for outcome in outcomes(case, MemoryEngine()):
        assert outcome.disagreement is None, (case, outcome)


@pytest.mark.parametrize("engine", [MemoryEngine, LargeEngine])
@given(drawn=situations(LIMITS), random=st.randoms(use_true_random=False))
@settings(patient, max_examples=settings().max_examples)
def test_verdict_and_state_are_those_of_brute_force(
    engine: type[MemoryEngine], drawn: Situation, random: Random
) -> None:
    case = with_unions(drawn, random)
    assume(case is not None)
    assert case is not None
    for outcome in outcomes(case, engine()):
        assert outcome.disagreement is None, (case, outcome)
        assert outcome.verdict != "undecided", case
