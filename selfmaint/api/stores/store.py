"""The store of a warehouse: opened at a snapshot, and committed to; which definitions its rows are of.

Where views were edited, their stored rows are of another definition than the one that is read now. Conditions of
soundness:

1. Of a store's rows it is known which definitions they are of: `init` and `import` say so, and `maintain` of those that
   nothing was said of before.
2. Nothing is concluded from rows of another definition, nor from those of a view that others went on without.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from datalog.diagnostics import Diagnostic
from selfmaint.api.platforms.platform import Platform, platform_of
from selfmaint.engine.protocol import D
from selfmaint.errors import Code, InputError, input_error
from selfmaint.store.place import Place
from selfmaint.store.stored_tables import Commit, TableFiles
from selfmaint.warehouse.catalog import Catalog
from selfmaint.warehouse.reads import reads
from selfmaint.warehouse.row_key import row_key
from selfmaint.warehouse.written import written

if TYPE_CHECKING:
    from selfmaint.api.update import Update
    from selfmaint.api.warehouse import Warehouse
    from selfmaint.duckdb.store import Change, Committed, Store
    from selfmaint.store.log_position import LogPosition

Told = Callable[[str], None]

_ANOTHER = (
    "if its rows come once more, having gone since or into a table without a key, "
    "give it an id (`--id` of `maintain`)"
)


class OpenStore(Struct, eq=False):
    """A store, and the snapshot that a warehouse's contents are of."""

    store: Store
    version: int

    @classmethod
    def at(cls, platform: Platform[Any], place: Place) -> OpenStore:
        """A store at the snapshot that its place names, or the newest.

        Raises:
            InputError: SM408 there is none, or it has no such snapshot, or no views yet there.
        """
        from selfmaint.duckdb.store import opened  # noqa: PLC0415 - DuckDB only where there is a store

        return cls.over(opened(platform.store_database, place))

    @classmethod
    def over(cls, store: Store) -> OpenStore:
        """A store at the snapshot that its place names, or the newest; what a process left that died is put right."""
        place = store.place
        if place.version is None and store.is_half_done():
            # What is read is whole in any case: so nobody waits for who writes just now, or needs to write here.
            with contextlib.suppress(InputError), place.writing("recover"):
                store.recover()
        version = store.catalog.version()
        if place.version is not None:
            _require_filled(store, version)
        return cls(store, version)

    def table(self, name: str) -> TableFiles:
        """A table of the store, at the snapshot."""
        return self.store.catalog.table(name, self.version)

    def commits(self) -> list[tuple[int, Commit]]:
        """What made up the contents: what was committed and not undone, oldest first, with the snapshots."""
        upto: dict[int, list[tuple[int, Commit]]] = {-1: []}
        for version, said in self.store.commits():
            if version > self.version:
                break
            if said.kind == "undo":  # its id is the snapshot that was returned to
                upto[version] = upto[max(v for v in upto if v <= int(said.update or 0))]
            else:
                upto[version] = [*upto[max(upto)], (version, said)]
        return upto[max(upto)]

    def positions(self) -> dict[str, str]:
        """Where the change feeds ended that the contents follow: by relation, under "" that of several."""
        return next((said.positions for _, said in reversed(self.commits()) if said.positions), None) or {}

    def log_position(self) -> LogPosition | None:
        """Which transactions of a server's log the contents have; None if they follow none."""
        return next((said.log for _, said in reversed(self.commits()) if said.log), None)

    def moment(self) -> datetime | None:
        """Of definitions that read the current date or time, the moment that the contents are of."""
        return next((said.moment for _, said in reversed(self.commits()) if said.moment), None)

    def definitions(self) -> dict[str, str | None]:
        """By view, the definition that its rows are of; None of one that was left out since; none if nobody said."""
        return {name: text for _, said in self.commits() for name, text in (said.definitions or {}).items()}

    def program(self) -> str | None:
        """The digest of the program whose definitions the rows of all its views are of, if the last commit says it."""
        return next((said.program for _, said in reversed(self.commits())), None)

    def committed(self, update: Update[Any]) -> int | None:
        """The snapshot in which an update was committed; None if it was not, or nobody can tell.

        Raises:
            InputError: SM409 its rows are those of an earlier update, and nothing says whether it is that one sent
                again; or its id is that of an update of other rows.
        """
        if update.id is None and update.digest is None:
            return None
        commits = self.commits()
        if update.id is not None:
            found = next(((v, said) for v, said in reversed(commits) if said.update == update.id), None)
            if (
                found is not None
                and None not in (found[1].digest, update.digest)
                and found[1].digest != update.digest
            ):
                message = f"the id `{update.id}` is that of an update of other rows, in snapshot {found[0]}"
                raise input_error(Code.COMMITTED, message, "give this one another id", "nothing was done")
            return None if found is None else found[0]
        same = next((version for version, said in reversed(commits) if said.digest == update.digest), None)
        if same is not None and same != commits[-1][0]:
            raise input_error(
                Code.COMMITTED,
                f"the same rows were committed as an update before, in snapshot {same}, and others since",
                f"if it was sent again, leave it; {_ANOTHER}",
                "nothing was done",
            )
        return same


def _require_filled(store: Store, version: int) -> None:
    """Refuses a snapshot of a lake that was still being made."""
    first = min((found for found, _ in store.commits()), default=version)
    if version < first:
        message = f"at snapshot {version} the {store.place.kind} `{store.place.folder}` had no views yet"
        hint = f"its first state is snapshot {first}: `selfmaint history` lists all"
        raise input_error(Code.LAKE, message, hint)


def snapshot_of(store: Store, wanted: int | str) -> int:
    """A snapshot: itself, that of the last update with an id, or of the one that the history shows so.

    Raises:
        InputError: SM408 no update of that id was committed, or several are shown so.
    """
    if isinstance(wanted, int):
        return wanted
    commits = [(version, said) for version, said in store.commits() if said.kind == "maintain"]
    known = {said.update: version for version, said in commits}
    if wanted in known:
        return known[wanted]
    shown = [version for version, said in commits if wanted in _names(said)]
    if len(shown) != 1:
        where = f"the {store.place.kind} `{store.place.folder}`"
        message = f"no update `{wanted}` was committed to {where}"
        if shown:
            message = f"several updates `{wanted}` were committed to {where}: snapshots {', '.join(map(str, shown))}"
        raise input_error(Code.LAKE, message, "`selfmaint history` lists the updates and the snapshots")
    return shown[0]


def _names(said: Commit) -> set[str]:
    """What an update may be called: as the history shows it, or by the last name of its folder or file."""
    place = PurePath(said.about)
    folder = place.parent if place.suffix else place
    return {said.about, place.name, str(folder), folder.name} - {"", "."}


def no_snapshots(who: str) -> InputError:
    """The error for a state of views that are in no store."""
    message = f"{who} keeps its views in places of their own, which have no snapshots"
    return input_error(Code.WAREHOUSE_FILE, message, 'keep them in a store: `[store]` with `kind = "lake"`')


@contextlib.contextmanager
def changing(open_: OpenStore, what: str) -> Iterator[Path]:
    """Holds the store to write to it, still at the snapshot that was read; a folder for files on the way.

    Raises:
        InputError: SM405 somebody else writes, or has written since; SM410 a table was changed by others.
    """
    place = open_.store.place
    place.require_writable()
    with place.writing(what):
        open_.store.recover()
        place.require_newest(open_.store.catalog.newest(), open_.version)
        with place.staging() as folder:
            yield folder


def commit_changes(
    warehouse: Warehouse[D],
    changes: Mapping[str, tuple[D | None, D | None]],
    update: Update[D],
    moment: datetime | None = None,
) -> Committed:
    """Commits what tables gain and lose, and the update, as one; the warehouse goes on with the new snapshot.

    `moment` is that which the views are of then, where it is another one than before.

    Raises:
        InputError: SM405 see `changing`; SM409 the update was committed before; SM608 the views follow a log, and it
            is not from there.
    """
    from selfmaint.duckdb.store import Change  # noqa: PLC0415 - DuckDB only where there is a store

    open_ = warehouse.store
    assert open_ is not None
    store, platform = open_.store, platform_of(warehouse.engine)
    before = open_.committed(update)
    if before is not None:
        raise input_error(
            Code.COMMITTED,
            f"this update was committed before, in snapshot {before}",
            f"if it was sent again, leave it; {_ANOTHER}",
            "nothing was written",
        )
    relations = warehouse.catalog.relations
    keys = {view.name: row_key(view, relations) for view in warehouse.catalog.views}
    # Without a key of fewer columns nobody knows that what is stored stands once.
    sets = {view.name for view in warehouse.catalog.views if len(keys[view.name]) < len(view.stored_columns)}
    if update.log is None and (followed := open_.log_position()) is not None:
        message = f"the views follow the log of the slot `{followed.slot}`: other updates would come twice"
        raise input_error(
            Code.LOG, message, "`selfmaint follow` brings them up to date", "nothing was written"
        )
    with changing(open_, "maintain") as folder:
        made: dict[str, Change] = {}
        sizes: dict[str, tuple[int, int]] = {}
        for number, (name, sides) in enumerate(changes.items()):
            rows = [
                None if side is None else platform.in_store(store, side, folder / f"{number}-{i}")
                for i, side in enumerate(sides)
            ]
            gaining, losing = rows
            made[name] = Change(gaining, losing, keys.get(name, ()), is_bag=name not in sets)
            gained, lost = (0 if one is None else one.stored.known_rows or 0 for one in rows)
            sizes[name] = (lost, gained)
        said = _said(warehouse, update, sizes, moment)
        done = store.commit(made, said, after=open_.version)
        open_.version = done.version
    return done


def _said(
    warehouse: Warehouse[D], update: Update[D], sizes: dict[str, tuple[int, int]], moment: datetime | None
) -> Commit:
    """What is said of the state that an update makes."""
    open_ = warehouse.store
    assert open_ is not None
    positions = {**open_.positions(), **update.positions} if update.positions else None
    known = not_said(warehouse.catalog, open_.definitions())
    given = _given(update, moment)
    program = program_of(warehouse.catalog)
    return Commit(
        "maintain", update.id, positions, sizes, update.digest, given, update.log, moment, known, program
    )


def program_of(catalog: Catalog) -> str | None:
    """The digest of the program of a catalog, if its definitions change as time goes on."""
    return None if catalog.clock is None else catalog.clock.digest


def _given(update: Update[Any], moment: datetime | None) -> str:
    """What an update was given as: its file, or the folder of its files; the end of its feed; frames; a date alone."""
    if update.feed is not None:
        ends = (f"{relation} up to {end}" for relation, end in update.positions.items())
        return f"feed {', '.join(ends)}".replace("  ", " ").strip()
    files = sorted(set(update.files.values()))
    if not files and moment is not None and update.digest is None:
        return f"the date, {moment:%Y-%m-%d}"
    if len(files) <= 1:
        return files[0] if files else "frames"
    folders = {str(Path(file).parent) for file in files}
    return folders.pop() if len(folders) == 1 else ", ".join(files)


_SHOWN = 300
"""How much of a definition an error shows."""


def edited(catalog: Catalog, known: Mapping[str, str | None]) -> dict[str, str]:
    """For each view whose stored rows are not of its definition, what they are of, in words.

    A view that was left out since is known as None.
    """
    now = written(catalog)
    found = {}
    for name, text in now.items():
        if name in known and known[name] != text:
            was = known[name]
            found[name] = (
                "the warehouse was maintained without it"
                if was is None
                else "they are of `{}`; it is `{}` now".format(*_both_shown(was, text))
            )
    return found


def require_unedited(catalog: Catalog, store: OpenStore, names: Iterable[str] | None = None) -> None:
    """Refuses definitions that are not those that the stored rows are of.

    Raises:
        InputError: SM411.
    """
    known = store.definitions()
    is_same = names is None and catalog.clock is not None and catalog.clock.digest == store.program()
    if not known or is_same:  # definitions at another moment take long to read
        return
    wrong = edited(catalog, known)
    shown = [name for name in wrong if names is None or name in set(names)]
    if not shown:
        return
    views = " ".join(f"--view {name}" for name in shown)
    hint = (
        f"`selfmaint import WAREHOUSE.toml {views}` brings its rows in anew, from sources as they were before the "
        "updates that wait: else maintain these by the old definition first, or import all views and leave these out; "
        "with `--keep` in place of `--view` the rows stay, if they are those of the new definition, too"
    )
    raise InputError(
        [
            Diagnostic(
                Code.EDITED,
                f"the stored rows of `{name}` are not those of its definition",
                catalog.view(name).rule.span,
                note=wrong[name],
                hint=hint,
            )
            for name in shown
        ]
    )


def said_of(catalog: Catalog, names: Collection[str]) -> dict[str, str | None]:
    """The definitions of some views, as a commit says them."""
    return {name: text for name, text in written(catalog).items() if name in names}


def not_said(catalog: Catalog, known: Mapping[str, str | None]) -> dict[str, str | None] | None:
    """What a commit that maintains has to say: views of which nothing is known, and those that it leaves out."""
    every = {view.name for view in catalog.views}
    new = said_of(catalog, every - known.keys()) if every - known.keys() else {}
    return {**new, **{name: None for name, text in known.items() if text and name not in every}} or None


def above(catalog: Catalog, names: Collection[str]) -> frozenset[str]:
    """Some views, and those that read them."""
    below = reads(catalog)
    return frozenset(view.name for view in catalog.views if {view.name, *below[view.name]} & set(names))


def _both_shown(one: str, other: str) -> tuple[str, str]:
    """Two texts, long ones from a little before where they differ.

    >>> before = "x" * 400
    >>> _both_shown(f"{before} > 1", f"{before} > 2")[0].endswith("x > 1")
    True
    """
    texts = " ".join(one.split()), " ".join(other.split())
    apart = next((i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    start = max(apart - _SHOWN // 3, 0) if max(map(len, texts)) > _SHOWN else 0
    return _shown(texts[0], start), _shown(texts[1], start)


def _shown(text: str, start: int) -> str:
    end = start + _SHOWN
    return ("... " if start else "") + text[start:end] + (" ..." if end < len(text) else "")
