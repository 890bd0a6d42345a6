"""The moment that definitions are of."""

from __future__ import annotations

import pickle
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from selfmaint.api.file.programs import catalog_of_path
from selfmaint.warehouse import clock
from selfmaint.warehouse.clock import Clock

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


def test_definitions_of_a_moment_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "views.sql").write_text(PROGRAM, encoding="utf-8")
    moment = datetime(2026, 11, 27, tzinfo=UTC)
    here = catalog_of_path(tmp_path / "views.sql", moment=moment)
    assert here.clock is not None
    later = here.clock.at(moment + timedelta(days=1))
    assert later.clock is not None
    assert later.clock.began == moment
    assert later.clock.at(moment) is here
    assert here.clock.at(moment + timedelta(days=1)) is later


NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("began", "contents", "current"),
    [
        (timedelta(seconds=3), timedelta(days=1), timedelta(seconds=3)),
        (timedelta(seconds=61), timedelta(days=1), timedelta()),  # a process that lives long
        (timedelta(seconds=3), timedelta(seconds=2), timedelta()),  # another one wrote in between
        (timedelta(seconds=-5), timedelta(days=1), timedelta()),  # a clock that was set back
        (None, timedelta(days=1), timedelta()),
    ],
)
def test_now_is_when_the_definitions_were_read_if_that_is_a_moment_ago(
    began: timedelta | None, contents: timedelta, current: timedelta, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "now", lambda: NOW)
    made = Clock(NOW - contents, True, clock._no_other, None if began is None else NOW - began)
    assert made.current() == NOW - current
