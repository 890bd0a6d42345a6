"""The functions of the first release, each with what takes its place. They go with the next release."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from selfmaint.api import apply as _apply
from selfmaint.api import audit as _audit
from selfmaint.api import check as _check
from selfmaint.api import explain as _explain
from selfmaint.api import feed as _feed
from selfmaint.api import maintain as _maintain
from selfmaint.api import update_rows as _update_rows
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.engine.protocol import D

P = ParamSpec("P")
R = TypeVar("R")


def _alias(name: str, instead: str, function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    def alias(*args: P.args, **kwargs: P.kwargs) -> R:
        message = f"`selfmaint.{name}` goes with the next release: use `{instead}`"
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return function(*args, **kwargs)

    return alias


def _read_update(
    warehouse: Warehouse[D], directory: str | Path, *, effective: bool | None = None
) -> Update[D]:
    """See `Update.from_files`."""
    return Update.from_files(warehouse, directory, effective=effective)


apply = _alias("apply", "warehouse.apply(maintained)", _apply.apply)
audit = _alias("audit", "warehouse.audit()", _audit.audit)
check = _alias("check", "warehouse.check(update)", _check.check)
explain = _alias("explain", "warehouse.explain(update, view)", _explain.explain)
maintain = _alias("maintain", "warehouse.maintain(update)", _maintain.maintain)
read_update = _alias("read_update", "Update.from_files(warehouse, directory)", _read_update)
update_from = _alias(
    "update_from", "Update.from_frames(warehouse, inserted, deleted)", _update_rows.update_from
)
update_from_feed = _alias("update_from_feed", "Update.from_feed(warehouse, feed)", _feed.update_from_feed)
