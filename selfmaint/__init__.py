"""Keeps a data warehouse's views up to date without asking the base tables, and says when that is possible.

    import selfmaint
    from selfmaint import Update

    with selfmaint.load("warehouse.toml") as warehouse:
        update = Update.from_files(warehouse, "update")
        print(warehouse.check(update))
        warehouse.apply(warehouse.maintain(update))

What this package offers is loaded when it is first used: importing it takes no time, and needs neither Spark nor Java
nor DuckDB.
"""

import sys as _sys
from importlib import import_module as _import_module
from types import ModuleType as _ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datalog.diagnostics import Diagnostic as Diagnostic
    from selfmaint.api.aliases import apply as apply
    from selfmaint.api.aliases import audit as audit
    from selfmaint.api.aliases import check as check
    from selfmaint.api.aliases import explain as explain
    from selfmaint.api.aliases import maintain as maintain
    from selfmaint.api.aliases import read_update as read_update
    from selfmaint.api.aliases import update_from as update_from
    from selfmaint.api.aliases import update_from_feed as update_from_feed
    from selfmaint.api.apply import Written as Written
    from selfmaint.api.audit import AuditReport as AuditReport
    from selfmaint.api.build import build as build
    from selfmaint.api.explanation import Explanation as Explanation
    from selfmaint.api.explanation import FreeValue as FreeValue
    from selfmaint.api.explanation import RuledOut as RuledOut
    from selfmaint.api.explanation import Supply as Supply
    from selfmaint.api.explanation import Tested as Tested
    from selfmaint.api.following.not_maintained import NotMaintainedError as NotMaintainedError
    from selfmaint.api.load import load as load
    from selfmaint.api.log.follow import follow as follow
    from selfmaint.api.log.follower import Followed as Followed
    from selfmaint.api.log.follower import FollowOptions as FollowOptions
    from selfmaint.api.maintained import Maintained as Maintained
    from selfmaint.api.printing.printed import Statement as Statement
    from selfmaint.api.printing.printed import StatementKind as StatementKind
    from selfmaint.api.printing.printed import Statements as Statements
    from selfmaint.api.stores.store_upkeep import compact as compact
    from selfmaint.api.stores.store_upkeep import history as history
    from selfmaint.api.stores.store_upkeep import init as init
    from selfmaint.api.stores.store_upkeep import undo as undo
    from selfmaint.api.update import Update as Update
    from selfmaint.api.verify import Difference as Difference
    from selfmaint.api.verify import Verified as Verified
    from selfmaint.api.warehouse import Warehouse as Warehouse
    from selfmaint.audit.advice import Advice as Advice
    from selfmaint.audit.example import Always as Always
    from selfmaint.audit.example import Depends as Depends
    from selfmaint.audit.example import Unclear as Unclear
    from selfmaint.audit.matrix import Audit as Audit
    from selfmaint.audit.matrix import ViewAudit as ViewAudit
    from selfmaint.audit.needs import Broken as Broken
    from selfmaint.audit.needs import Loss as Loss
    from selfmaint.cross_examine.examine import CrossExamination as CrossExamination
    from selfmaint.cross_examine.examine import Examined as Examined
    from selfmaint.decide.pairs import Counterexample as Counterexample
    from selfmaint.decide.search_budget import SearchBudget as SearchBudget
    from selfmaint.decide.verdict import NotSelfMaintainable as NotSelfMaintainable
    from selfmaint.decide.verdict import SelfMaintainable as SelfMaintainable
    from selfmaint.decide.verdict import Undecided as Undecided
    from selfmaint.decide.verdict import Verdict as Verdict
    from selfmaint.decide.verdict import VerdictKind as VerdictKind
    from selfmaint.decide.verdict import Verdicts as Verdicts
    from selfmaint.decide.verdict import Way as Way
    from selfmaint.decide.verdict import Witness as Witness
    from selfmaint.duckdb import Relation as Relation
    from selfmaint.errors import Code as Code
    from selfmaint.errors import InputError as InputError
    from selfmaint.errors import SelfmaintError as SelfmaintError
    from selfmaint.errors import SourceError as SourceError
    from selfmaint.fallback.settle import Readable as Readable
    from selfmaint.feeds.changes import FeedReport as FeedReport
    from selfmaint.feeds.changes import RelationReport as RelationReport
    from selfmaint.maintain import Delta as Delta
    from selfmaint.sources.protocol import Read as Read
    from selfmaint.sources.protocol import Source as Source
    from selfmaint.store.frames import ArrowStream as ArrowStream
    from selfmaint.store.stored_tables import Occupied as Occupied
    from selfmaint.store.stored_tables import Rewritten as Rewritten
    from selfmaint.store.stored_tables import Snapshot as Snapshot
    from selfmaint.warehouse.catalog import Catalog as Catalog
    from selfmaint.warehouse.views import View as View

_FROM = {
    "datalog.diagnostics": "Diagnostic",
    "selfmaint.api.aliases": "apply audit check explain maintain read_update update_from update_from_feed",
    "selfmaint.api.apply": "Written",
    "selfmaint.api.audit": "AuditReport",
    "selfmaint.api.build": "build",
    "selfmaint.api.explanation": "Explanation FreeValue RuledOut Supply Tested",
    "selfmaint.api.log.follow": "follow",
    "selfmaint.api.log.follower": "FollowOptions Followed",
    "selfmaint.store.frames": "ArrowStream",
    "selfmaint.api.stores.store_upkeep": "compact history init undo",
    "selfmaint.api.load": "load",
    "selfmaint.api.maintained": "Maintained",
    "selfmaint.api.following.not_maintained": "NotMaintainedError",
    "selfmaint.api.printing.printed": "Statement StatementKind Statements",
    "selfmaint.api.update": "Update",
    "selfmaint.api.verify": "Difference Verified",
    "selfmaint.api.warehouse": "Warehouse",
    "selfmaint.audit.advice": "Advice",
    "selfmaint.audit.needs": "Broken Loss",
    "selfmaint.audit.matrix": "Audit ViewAudit",
    "selfmaint.audit.example": "Always Depends Unclear",
    "selfmaint.cross_examine.examine": "CrossExamination Examined",
    "selfmaint.decide.pairs": "Counterexample",
    "selfmaint.decide.search_budget": "SearchBudget",
    "selfmaint.decide.verdict": "NotSelfMaintainable SelfMaintainable Undecided Verdict VerdictKind Verdicts Way "
    "Witness",
    "selfmaint.duckdb": "Relation",
    "selfmaint.errors": "Code InputError SelfmaintError SourceError",
    "selfmaint.fallback.settle": "Readable",
    "selfmaint.feeds.changes": "FeedReport RelationReport",
    "selfmaint.maintain": "Delta",
    "selfmaint.sources.protocol": "Read Source",
    "selfmaint.store.stored_tables": "Occupied Rewritten Snapshot",
    "selfmaint.warehouse.catalog": "Catalog",
    "selfmaint.warehouse.views": "View",
}
_MODULES = {name: module for module, names in _FROM.items() for name in names.split()}

__all__ = sorted(_MODULES)  # noqa: PLE0605 - the table above says them once


def __getattr__(name: str) -> object:
    """What is offered, loaded when it is first asked for."""
    if name not in _MODULES:
        message = f"module 'selfmaint' has no attribute {name!r}"
        raise AttributeError(message)
    found = globals()[name] = getattr(_import_module(_MODULES[name]), name)
    return found


def __dir__() -> list[str]:
    return [*globals(), *__all__]


class _Package(_ModuleType):
    """Two of the functions that go have the names of packages, whose import would put these in their place."""

    def __setattr__(self, name: str, value: object) -> None:
        if not (name in {"audit", "maintain"} and isinstance(value, _ModuleType)):
            super().__setattr__(name, value)


_sys.modules[__name__].__class__ = _Package
