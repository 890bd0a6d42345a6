"""Errors as other processes have them."""

from __future__ import annotations

import pickle

import pytest

from datalog.diagnostics import Diagnostic
from selfmaint.errors import Code, PassingError, QueryError, SelfmaintError, input_error

FOUND = Diagnostic(Code.QUERY, "no", hint="yes")


@pytest.mark.parametrize(
    "error",
    [input_error(Code.LAKE, "a", "b"), QueryError(FOUND, {"q": "select"}), PassingError([FOUND, FOUND])],
)
def test_an_error_is_the_same_in_another_process(error: SelfmaintError) -> None:
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - made here
    assert type(again) is type(error)
    assert (str(again), again.diagnostics) == (str(error), error.diagnostics)
    assert again.__dict__ == error.__dict__
