"""The log followed with Spark. Oracle: the views' own SQL, run by PostgreSQL."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.follow.shops import HARD, Writer, logged_shop


@pytest.mark.usefixtures("spark")
def test_the_views_follow_the_log_on_spark(tmp_path: Path, postgres: str) -> None:
    with logged_shop(tmp_path, postgres, HARD) as shop:
        shop.made()
        writer = Writer(shop, 5)
        for _ in range(8):
            writer.transaction()
        writer.close()
        steps = shop.steps("--engine", "spark", "--transactions", "4")
        assert len(steps) == 2
        assert shop.stored() == shop.expected()
