from __future__ import annotations

import gc

import pytest

from selfmaint.api.garbage import BETWEEN_COLLECTIONS, seldom_collected


@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [
        ((700, 10, 10), BETWEEN_COLLECTIONS),
        ((0, 10, 10), 0),
        ((5 * BETWEEN_COLLECTIONS, 3, 4), 5 * BETWEEN_COLLECTIONS),
    ],
)
def test_what_the_caller_has_set_is_set_again_and_never_made_more_often(
    before: tuple[int, int, int], meanwhile: int
) -> None:
    kept = gc.get_threshold()
    try:
        gc.set_threshold(*before)
        with seldom_collected():
            assert gc.get_threshold() == (meanwhile, *before[1:])
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*kept)
