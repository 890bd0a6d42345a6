"""Commits of Delta tables that belong together: what each says of it, and what is done about those that have not ended.

A process that dies leaves tables that are ahead of the journal. Each commit says on which state it was made, and which
tables are changed with it: if all of them are, only the row of the journal is missing, and it is written; if not, those
that are ahead are restored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct

from datalog.copies import replace
from selfmaint.errors import Code, InputError, input_error
from selfmaint.store.delta import LogEntry, delta_table, log_entries
from selfmaint.store.delta_journal import DeltaJournal, Entry, failures
from selfmaint.store.stored_tables import Commit

_MARK = "selfmaint"


class Mark(Struct, frozen=True):
    """What a commit of a table says that it belongs to.

    Attributes:
        store: the id of the store.
        after: the snapshot that it is made on.
        snapshot: the number of the one that it makes.
        tables: the tables that are changed with it.
        by: what tells the attempt at it from others.
        lost: how many rows the commit is to delete; None if it does something else.
        is_undone: whether it puts back what was ahead.
    """

    store: str
    after: int
    snapshot: int
    tables: tuple[str, ...]
    said: str
    by: str
    lost: int | None = None
    is_undone: bool = False

    def properties(self) -> Any:
        """What Delta commits with it: at once or not at all, and known again by the store's id and the snapshot."""
        import deltalake  # noqa: PLC0415 - only where there are Delta tables

        said = {"store": self.store, "after": self.after, "snapshot": self.snapshot}
        said |= {"tables": [*self.tables], "said": self.said, "by": self.by}
        said |= {"lost": self.lost, "is_undone": self.is_undone}
        return deltalake.CommitProperties(
            custom_metadata={_MARK: json.dumps(said)},
            max_commit_retries=0,
            app_transactions=[deltalake.Transaction(self.store, self.snapshot)],
        )

    @classmethod
    def read(cls, marks: Mapping[str, Any], store: str) -> Mark | None:
        """The mark of a commit; None if it has none of this store."""
        try:
            found = json.loads(marks[_MARK])
            mark = cls(
                found["store"],
                int(found["after"]),
                int(found["snapshot"]),
                tuple(found["tables"]),
                found["said"],
                found["by"],
                found["lost"],
                bool(found["is_undone"]),
            )
        except (KeyError, TypeError, ValueError):
            return None
        return mark if mark.store == store else None


class Ahead(Struct, frozen=True):
    """The versions of a table after the one that a state has.

    Attributes:
        version: the last one before others changed the table.
        used: the highest snapshot that the table's log names.
        mark: what its rows belong to then; None if they are those of the state.
        foreign: the commit of others that changed it, if there is one.
    """

    last: int
    version: int
    used: int
    mark: Mark | None
    foreign: LogEntry | None


def is_half_done(journal: DeltaJournal) -> bool:
    """Whether a table is at another version than the journal has, by a commit that has not ended or by others."""
    with failures(journal.place, "cannot be read"):
        return any(
            int(delta_table(journal.place.table(name)).version()) != version
            for name, version in journal.last().versions.items()
        )


def recover(journal: DeltaJournal) -> None:
    """Brings tables and journal together again; a table that others have changed stays for writers to refuse.

    Raises:
        InputError: SM405.
    """
    with failures(journal.place, "cannot be put right"):
        before = journal.last()
        every = {name: ahead(journal, name, version) for name, version in before.versions.items()}
        found = {name: one for name, one in every.items() if one.last != before.versions[name]}
        if not found:
            return
        versions = {**before.versions, **{name: one.version for name, one in found.items()}}
        number = 1 + max(before.snapshot, *(one.used for one in found.values()))
        ours = {name: one.mark for name, one in found.items() if one.mark is not None}
        mark = next(iter(ours.values()), None)
        said = None
        if mark is not None and mark.after == before.snapshot and {*mark.tables} <= ours.keys():
            said, number = Commit.read(mark.said), mark.snapshot
        else:
            versions |= _restored(journal, before, {name: found[name] for name in ours})
        if said is not None or versions != before.versions:
            now = datetime.now(UTC)
            entry = replace(before, snapshot=number, at=now, said=said, versions=versions, files=0, size=0)
            journal.append(before, entry)


def put_back(journal: DeltaJournal, before: Entry, by: str) -> None:
    """Restores what an attempt at a commit has changed, unless the journal has it.

    Raises:
        InputError: SM405.
    """
    with failures(journal.place, "cannot be put right"):
        if journal.newest() == before.snapshot:
            every = {name: ahead(journal, name, version) for name, version in before.versions.items()}
            _restored(journal, before, {n: one for n, one in every.items() if one.mark and one.mark.by == by})


def _restored(journal: DeltaJournal, before: Entry, found: Mapping[str, Ahead]) -> dict[str, int]:
    """Restores tables to the versions of a state, but for those that others have changed; the versions for it."""
    versions = {}
    for name, one in found.items():
        versions[name] = before.versions[name]
        if one.foreign is None:
            number = 1 + max(before.snapshot, one.used)
            back = Mark(journal.id, before.snapshot, number, (name,), "", "", is_undone=True)
            table = delta_table(journal.place.table(name))
            table.restore(versions[name], commit_properties=back.properties())
            versions[name] = one.last + 1
    return versions


def ahead(journal: DeltaJournal, name: str, base: int) -> Ahead:
    """What a table's versions after one are."""
    path = journal.place.table(name)
    table = delta_table(path)
    last, used = int(table.version()), table.transaction_version(journal.id) or 0
    mark, version = None, base
    for one in log_entries(path, base, last):
        found = Mark.read(one.marks, journal.id)
        if found is not None and found.is_undone and one.restored != base:
            found = None
        if found is not None:
            mark = None if found.is_undone else found if _is_right(one, found) else replace(found, after=-1)
        elif one.changes_data:
            return Ahead(last, version, used, mark, one)
        version = one.version
    return Ahead(last, version, used, mark, None)


def _is_right(entry: LogEntry, mark: Mark) -> bool:
    """Whether a commit deleted as many rows as it was to; else it is never finished, but put back."""
    deleted = entry.marks.get("operationMetrics", {}).get("num_target_rows_deleted", 0)
    return mark.lost in (None, int(deleted))


def conflict(name: str, path: Path, entry: LogEntry) -> InputError:
    """What to say of a table that somebody else has changed."""
    return input_error(
        Code.CONFLICT,
        f"somebody else has changed the Delta table `{path}`: its version {entry.version} is a {entry.operation}",
        f"`selfmaint import WAREHOUSE.toml --view {name}` computes the view anew; with `--from {name}={path}` it takes "
        "what is there now",
        "nothing was written",
    )
