"""Keeps a data warehouse's views up to date without asking the base tables, and says when that is possible.

    from selfmaint import apply, check, load, maintain, read_update

    with load("warehouse.toml") as warehouse:
        update = read_update(warehouse, "update")
        print(check(warehouse, update))
        apply(warehouse, maintain(warehouse, update))

Importing this package needs neither Spark nor Java; they are started when data is first needed.
"""

from selfmaint.api.apply import apply
from selfmaint.api.audit import audit
from selfmaint.api.build import build
from selfmaint.api.check import check
from selfmaint.api.explain import explain
from selfmaint.api.feed import update_from_feed
from selfmaint.api.load import load
from selfmaint.api.maintain import maintain
from selfmaint.api.update import read_update, update_from
from selfmaint.api.warehouse import Update, Warehouse
from selfmaint.decide.verdict import NotSelfMaintainable, SelfMaintainable, Undecided
from selfmaint.errors import SelfmaintError

__all__ = [
    "NotSelfMaintainable",
    "SelfMaintainable",
    "SelfmaintError",
    "Undecided",
    "Update",
    "Warehouse",
    "apply",
    "audit",
    "build",
    "check",
    "explain",
    "load",
    "maintain",
    "read_update",
    "update_from",
    "update_from_feed",
]
