"""A feed's promise that a stored copy disproves."""

from __future__ import annotations

import pytest

from selfmaint.api.check import check
from selfmaint.api.update import Update
from selfmaint.api.warehouse import build
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import InputError

RULES = "v1(X, Y, Z) :- r(X, Y), s(Y, Z). v2(Y, Z) :- s(Y, Z)."


def test_an_effective_delete_of_a_row_that_a_copy_lacks_is_refused() -> None:
    contents = {"v1": frozenset[tuple[int, ...]](), "v2": frozenset({(1, 2)})}
    warehouse = build(RULES, contents, MemoryEngine())
    with pytest.raises(InputError, match=r"SM302.*`v2` lacks.*c0=3, c1=4"):
        check(warehouse, Update({}, {"s": frozenset({(3, 4)})}, effective=True))
    check(warehouse, Update({}, {"s": frozenset({(3, 4)})}, effective=False))
    check(warehouse, Update({}, {"s": frozenset({(1, 2)})}, effective=True))
