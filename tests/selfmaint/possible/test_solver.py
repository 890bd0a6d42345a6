"""The solver's process: it answers, and whatever becomes of it nobody else falls with it."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from datalog.model import Row
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.decide.verdict import SelfMaintainable, Undecided
from selfmaint.engine.memory import MemoryEngine
from selfmaint.possible import solver
from selfmaint.possible.solver import Solver, SolverStoppedError

HARD = "1 { q(R, 1..11) } 1 :- R = 1..12. :- q(R, C), q(S, C), R < S. "
"""Twelve pigeons, eleven holes."""
LARGE = "a(1..3000). b(X, Y) :- a(X), a(Y). "


@pytest.fixture(autouse=True)
def new_process() -> None:
    """Each test has a process of its own."""
    solver._SOLVER.end()


def test_programs_are_answered_one_after_the_other_by_one_process() -> None:
    found = Solver(20)
    assert found.answer_set("a(1..2). b :- a(3).", ["a", "b"]) == {"a": {(1,), (2,)}, "b": frozenset()}
    first = solver._worker()
    assert found.answer_set("a. :- a.", ["a"]) is None
    assert solver._worker() is first


def test_what_takes_too_long_is_ended_and_the_next_is_answered() -> None:
    begin = time.monotonic()
    with pytest.raises(SolverStoppedError, match=r"did not end within 0\.5 s"):
        Solver(0.5).answer_set(HARD, ["q"])
    # Grinding rules out takes no notice of the time.
    with pytest.raises(SolverStoppedError, match=r"did not end within 0\.1 s"):
        Solver(0.1).answer_set(LARGE + "c(X, Y, Z) :- b(X, Y), a(Z), X < Y, Y < Z, X + Y > Z.", ["c"])
    assert time.monotonic() - begin < 20
    assert Solver(20).answer_set("a.", ["a"]) == {"a": {()}}


def test_without_memory_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solver, "MOST_MEMORY", 200 * 1024**2)
    with pytest.raises(SolverStoppedError, match=r"ran out of memory|ended (by signal|with status)"):
        Solver(60).answer_set(LARGE, ["b"])
    monkeypatch.undo()
    assert Solver(20).answer_set("a.", ["a"]) == {"a": {()}}


def test_killed_it_says_so_and_is_started_again() -> None:
    assert Solver(20).answer_set("a.", ["a"])
    process = solver._worker()
    threading.Timer(0.3, lambda: os.kill(process.pid, signal.SIGKILL)).start()
    with pytest.raises(SolverStoppedError, match="ended by signal 9"):
        Solver(30).answer_set(HARD, ["q"])
    assert Solver(20).answer_set("a.", ["a"]) == {"a": {()}}


def test_an_answer_that_nobody_waits_for_is_not_that_to_the_next_question() -> None:
    answers = solver._worker().answers(("a.", ("a",), 20.0), 20)
    next(answers)
    answers.close()
    assert Solver(20).answer_set("b.", ["b"]) == {"b": {()}}


def test_a_process_that_is_forked_asks_one_of_its_own() -> None:
    assert Solver(20).answer_set("a.", ["a"])
    first = solver._worker()
    child = os.fork()
    if not child:
        mine = Solver(20).answer_set("b.", ["b"]) == {"b": {()}} and solver._worker() is not first
        solver._worker().end()
        os._exit(0 if mine else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert Solver(20).answer_set("a.", ["a"]) == {"a": {()}}
    assert solver._worker() is first


def test_a_view_is_undecided_where_the_solver_dies(monkeypatch: pytest.MonkeyPatch) -> None:
    program = "v(X) :- r(X, Y). v(X) :- s(X). .decl r(a: int, b: int). .decl s(a: int)."
    here = build(program, {"v": frozenset[Row]({(1,), (2,)})}, MemoryEngine())
    update = Update({"s": frozenset[Row]({(1,)})}, {}, effective=False)
    assert isinstance(here.check(update)["v"], SelfMaintainable)
    monkeypatch.setattr(solver, "MOST_MEMORY", 1024**2)
    solver._SOLVER.end()
    verdict = build(program, {"v": frozenset[Row]({(1,), (2,)})}, MemoryEngine()).check(update)["v"]
    assert isinstance(verdict, Undecided)
    assert any("the solver" in reason for reason in verdict.reasons)
