"""The moment that definitions are of."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime
from pathlib import Path

import pytest

from selfmaint.api.file.programs import catalog_of_path

PROGRAM = """
create table r (a int not null primary key, b int, day date);
create view fresh as select a, b from r where day >= current_date - 7;
create view plain as select b, count(distinct a) as n from r group by b;
"""


def test_a_copy_for_another_process_knows_its_moment_alone(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(PROGRAM, encoding="utf-8")
    moment = datetime(2026, 11, 27, tzinfo=UTC)
    here = catalog_of_path(tmp_path / "views.sql", moment=moment)
    there = pickle.loads(pickle.dumps(here))  # noqa: S301 - its own
    assert here.clock is not None
    assert there.clock == here.clock
    assert here.clock.at(moment).program == here.program
    with pytest.raises(ValueError, match="2026-11-27"):
        there.clock.at(moment)
