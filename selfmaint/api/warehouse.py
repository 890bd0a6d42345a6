"""A warehouse with its data, and what can be asked of it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

from datalog.budget import DEFAULT_S
from datalog.copies import replace
from datalog.model import Predicate, Program
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.update import Update
from selfmaint.decide.decision import Decision
from selfmaint.decide.search_budget import DEFAULT_SEARCH, SearchBudget
from selfmaint.engine.protocol import D, Engine, Facts
from selfmaint.errors import Code, input_error
from selfmaint.feeds.settings import FeedSettings
from selfmaint.sources.protocol import close_sources
from selfmaint.warehouse.catalog import Catalog, View, with_inexact_sums
from selfmaint.warehouse.near import require_known
from selfmaint.warehouse.situation import Situation

if TYPE_CHECKING:
    import pyarrow as pa

    from datalog.sql.views import SqlViews
    from selfmaint.api.apply import Written
    from selfmaint.api.audit import AuditReport
    from selfmaint.api.explanation import Explanation
    from selfmaint.api.maintained import Maintained
    from selfmaint.api.printing.printed import Statements
    from selfmaint.api.stores.store import OpenStore
    from selfmaint.cross_examine.examine import CrossExamination
    from selfmaint.decide.verdict import Verdicts
    from selfmaint.fallback.settle import Readable


# ruff: noqa: PLC0415 - each method loads what it needs: who asks for one thing does not wait for the others' modules


@dataclass(eq=False, repr=False)
class Warehouse(Generic[D]):
    """Materialized views over base relations that live elsewhere.

    Use it as a context manager, or `close` it, which ends connections and lets go of what the engine holds.

    Attributes:
        catalog: the views' definitions and the base relations' declarations.
        engine: where the data is, and what evaluates programs over it.
        contents: each view's rows before the update, columns in the order of its rule's head; of a view that keeps
            duplicates (`View.is_counted`) each row once, with its number of copies as a last column.
        present: partial copies: rows known to be in a base relation before the update.
        absent: partial copies: rows known not to be in a base relation before the update.
        readable: base relations that may be read, if need be; in the state right after the update.
        locations: where each view's contents are stored, for those that are files.
        tables: the names of the tables of a catalog that hold views.
        copy_locations: those of partial copies' files, by relation and `PRESENT` or `ABSENT`.
        effective: whether updates are effective unless they say otherwise.
        fingerprints: what the stored files looked like when they were last read.
        feeds: how change feeds of the base relations are to be read.
        budget_s: how many seconds a search may take for one view, unless a call says otherwise.
        search: how much a search near the update may take, where the data is too large to be searched whole.
        store: where the contents are kept, if in a store, and which of its states they are.
    """

    catalog: Catalog
    engine: Engine[D]
    contents: Mapping[str, D]
    present: Mapping[str, D] = field(default_factory=dict)
    absent: Mapping[str, D] = field(default_factory=dict)
    readable: Mapping[str, Readable[D]] = field(default_factory=dict)
    locations: Mapping[str, str] = field(default_factory=dict)
    copy_locations: Mapping[Predicate, str] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)
    effective: bool = False
    fingerprints: Mapping[str, str] = field(default_factory=dict)
    feeds: FeedSettings = field(default_factory=FeedSettings)
    budget_s: float = DEFAULT_S
    search: SearchBudget = DEFAULT_SEARCH
    store: OpenStore | None = None

    def check(
        self,
        update: Update[D],
        views: Sequence[str] | None = None,
        *,
        full: bool = False,
        budget_s: float | None = None,
        cross_examine: bool | CrossExamination = False,
    ) -> Verdicts:
        """The verdict on each view, from the views, partial copies and the update alone.

        Args:
            update: the change of the base relations, as a whole.
            views: names of the views to decide; all by default.
            full: also check that the views explain each other, at the cost of recomputing them.
            budget_s: how many seconds the search for what a view depends on may take, and again its test on the data;
                by default as the warehouse says. A view for which it is spent is undecided.
            cross_examine: whether a solver that shares no code with the decision looks for databases that contradict
                the verdicts, and within which budget: see `Verdicts.examined`.

        Returns:
            For each view's name a `SelfMaintainable`, `NotSelfMaintainable` or `Undecided`, in order of definition. A
            verdict is true if it is the first of these; all together are if each one is. One that is contradicted
            is undecided (`Verdicts.examined`).

        Raises:
            InputError: SM101 a budget that is not positive; SM102 an unknown name; SM2xx, SM3xx contradictions
                in what is given.

        Semantics:
            Sets; null is one stored value that never joins; contents and partial copies are before-images.

        Source:
            Huyn, Multiple-View Self-Maintenance in Data Warehousing Environments, VLDB 1997, sections 2-4 and 6.
        """
        from selfmaint.api.check import check

        return check(self, update, views, full=full, budget_s=budget_s, cross_examine=cross_examine)

    def maintain(  # noqa: PLR0913 - each is a choice of its own
        self,
        update: Update[D],
        *,
        strict: bool = False,
        verify: bool = False,
        full: bool = False,
        recompute: bool = False,
        most_keys: int = 1_000_000,
        budget_s: float | None = None,
        cross_examine: bool | CrossExamination = False,
        progress: Callable[[str], None] = lambda _message: None,
    ) -> Maintained[D]:
        """The deltas of all views, computed from the old state of all of them. Nothing is written.

        Args:
            update: the change of the base relations, as a whole.
            strict: never read a base relation; a view that is not self-maintainable is then an error.
            verify: recompute every view from its sources and compare, both ways.
            full: first check that the views explain each other, at the cost of recomputing them.
            recompute: recompute from its sources, right before or right after the update, what can be followed in no
                other way.
            most_keys: how many keys of base rows may be asked for, to follow what is not decided; 0 for none.
            budget_s: how many seconds a search may take for one view, as in `check`.
            cross_examine: as in `check`; a view whose verdict is contradicted is followed as one that is undecided.
            progress: told of each step.

        Returns:
            Verdicts, reads and deltas. Relations of Spark's engine are DataFrames; those of DuckDB's offer an Arrow
            stream (`pyarrow.table(delta.gained)`).

        Raises:
            InputError: SM101 a budget that is not positive; SM102 an unknown name; SM103 a base relation without a
                source, to verify with; SM2xx, SM3xx contradictions in what is given; SM404 recomputing in strict
                mode, or a query that cannot be run.
            SourceError: SM401 a source that does not answer; SM402 one that has moved past the update.
            NotMaintainedError: SM404 a view stays undetermined.

        Source:
            Huyn (VLDB 1997), Algorithm 3.1 and section 6.
        """
        from selfmaint.api.maintain import maintain

        options: dict[str, Any] = {"strict": strict, "verify": verify, "full": full, "recompute": recompute}
        options |= {"most_keys": most_keys, "budget_s": budget_s, "cross_examine": cross_examine}
        return maintain(self, update, **options, progress=progress)

    def apply(self, maintained: Maintained[D]) -> tuple[Written, ...]:
        """Writes the new contents of the views that changed, and of the partial copies of the changed relations.

        In a store that is one transaction; files are written beside the old contents, and switched to only after all
        are. A partial copy follows the update too, else it would be out of date for the next one: what was deleted
        leaves `present` and joins `absent`, and what was inserted the other way round.

        Args:
            maintained: what `maintain` returned, since the last `apply`.

        Returns:
            What was written, views in order of definition, then partial copies; nothing if nothing changed.

        Raises:
            InputError: SM404 recomputing has shown differences; SM405 something that changes is no local file or
                directory, another process has written since the warehouse was loaded, or what is given was computed
                from an earlier state; SM409 the store has the update already. Nothing was written.
            SelfmaintError: SM405 writing or switching failed; every old contents is in place.

        Semantics:
            The warehouse goes on with the new contents: it is ready for the next update. Sources are connected to
            anew when they are next read, and are expected to be in the state after that update.
        """
        from selfmaint.api.apply import apply

        return apply(self, maintained)

    def explain(self, update: Update[D], view: str, *, budget_s: float | None = None) -> Explanation:
        """The certificate of a verdict, evaluated again before it is returned.

        Args:
            update: the change of the base relations, as a whole.
            view: the view's name.
            budget_s: as in `check`.

        Raises:
            InputError: SM101 a budget that is not positive; SM102 an unknown name; SM2xx, SM3xx contradictions
                in what is given.
        """
        from selfmaint.api.explain import explain

        return explain(self, update, view, budget_s=budget_s)

    def audit(
        self,
        *,
        views: Iterable[str] | None = None,
        without: Iterable[str] = (),
        advise: bool = True,
        effective: bool | None = None,
        budget_s: float | None = None,
    ) -> AuditReport:
        """The verdict on each view for every kind of change, whatever the data: always, depends, never, or undecided.

        Of the warehouse's data nothing is read.

        Args:
            views: names of the views to audit; all by default.
            without: base relations that can no longer be read: what breaks then.
            advise: whether to look for keys, foreign keys and views that would turn verdicts to "always".
            effective: whether updates are effective; by default as the warehouse says.
            budget_s: how many seconds one verdict may take, by default as the warehouse says; then it is undecided.

        Returns:
            The verdicts, with an example for each that is not "always"; the advice; and what breaks.

        Raises:
            InputError: SM101 a budget that is not positive; SM102 an unknown name.

        Semantics:
            Partial copies count as present with any rows. "Always" is exact for the views that the decision is exact
            for: see `selfmaint.audit.search`.

        Source:
            Huyn, Multiple-View Self-Maintenance in Data Warehousing Environments, VLDB 1997; Quass, Gupta, Mumick,
            Widom, Making Views Self-Maintainable for Data Warehousing, PDIS 1996, for the auxiliary views.
        """
        from selfmaint.api.audit import audit

        options: dict[str, Any] = {"without": without, "advise": advise, "effective": effective}
        return audit(self, views=views, budget_s=budget_s, **options)

    def sql(
        self,
        view: str,
        *,
        inserted: Iterable[str] | None = None,
        deleted: Iterable[str] | None = None,
        effective: bool | None = None,
        budget_s: float | None = None,
    ) -> Statements:
        """A view's test, probe and maintenance statements as Spark SQL, to ship with an ETL job. No data is read.

        Args:
            view: the view's name.
            inserted: base relations that gain rows. Without it and `deleted`: any change of any of them.
            deleted: base relations that lose rows.
            effective: whether updates are effective, by default as the warehouse says.
            budget_s: how many seconds it may take, by default as the warehouse says.

        Returns:
            The statements, as `str` a script; none where the budget is spent, which is in `undecided`.

        Raises:
            InputError: SM101 a budget that is not positive; SM102 an unknown name.
            EmissionError: a name that Spark cannot take.
        """
        from selfmaint.api.printing.statements import statements_of

        return statements_of(self, view, inserted or (), deleted or (), effective, budget_s)

    def __repr__(self) -> str:
        return f"Warehouse({', '.join(view.name for view in self.catalog.views)}; {self.engine.name})"

    def __enter__(self) -> Warehouse[D]:
        """The warehouse."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def close(self) -> None:
        """Ends the connections of the sources, and lets go of what the engine holds for this warehouse."""
        self.engine.release()
        close_sources(entry.source for entry in self.readable.values())

    def __post_init__(self) -> None:
        names = [view.name for view in self.catalog.views]
        missing = ", ".join(f"`{name}`" for name in names if name not in self.contents)
        if missing:
            hint = "the decision needs the stored rows of every view of the program"
            raise input_error(Code.MISSING_CONTENTS, f"the contents of {missing} are not given", hint)
        require_known(self.contents, names, "view")
        for given in (self.present, self.absent, self.readable):
            require_known(given, self.catalog.relations, "base relation")

    @cached_property
    def decision(self) -> Decision:
        """The symbolic side of deciding, made once."""
        return Decision(self.catalog.apart, self.budget_s, self.search)

    def define(self, catalog: Catalog) -> None:
        """Goes on with other definitions of the same views."""
        self.catalog = replace(catalog, loose=self.catalog.loose)
        self.__dict__.pop("decision", None)

    def decision_within(self, budget_s: float | None, patience: float = 1) -> Decision:
        """The same, from now on with a budget, the warehouse's if None, and a patience (see `Decision`).

        Raises:
            InputError: SM101 a budget that is not positive.
        """
        its, seconds = self.decision, self.budget_s if budget_s is None else budget_s
        if not seconds > 0:
            raise input_error(Code.WAREHOUSE_FILE, f"`budget_s` is {seconds}", "give seconds, or `math.inf`")
        its.within(seconds, self.search, patience)
        return its

    def view(self, name: str) -> View:
        """A view by name.

        Raises:
            InputError: SM102 no such view.
        """
        require_known([name], [view.name for view in self.catalog.views], "view")
        return self.catalog.view(name)

    def read(self, view: str) -> D:
        """The rows of a view, each as often as it stands, in the state that the warehouse is in.

        Raises:
            InputError: SM102 no such view.
        """
        found = self.view(view)
        rows = self.contents[found.name]
        return self.engine.bags.expanded(rows) if found.is_counted else rows

    def query(self, sql: str, *, as_of: int | str | None = None) -> pa.Table:
        """What a SELECT over the views gives, all of them in one state: an Arrow table, instants in UTC.

        Args:
            sql: as DuckDB reads it, or on Spark's engine Spark; or only a view's name, for its rows.
            as_of: a snapshot of the store, or the id of the update that made it; by default the warehouse's state.

        Raises:
            InputError: SM101 there is no store; SM102 it reads what is no view; SM108 it is no SELECT, or cannot be
                run; SM408 no such snapshot.
        """
        from selfmaint.api.query import query

        return query(self, sql, as_of)

    def given(self, update: Update[D]) -> tuple[Facts[D], Situation]:
        """Everything that is known, as facts, and the kinds of it; parts of the update without rows are left out.

        Raises:
            InputError: SM102 the update changes something that is no base relation.
        """
        from selfmaint.api.check import given

        return given(self, update)


def build(
    program: str | Program | SqlViews,
    contents: Mapping[str, D],
    engine: Engine[D],
    *,
    present: Mapping[str, D] | None = None,
    absent: Mapping[str, D] | None = None,
    readable: Mapping[str, Readable[D]] | None = None,
    inexact_sums: bool = False,
) -> Warehouse[D]:
    """A warehouse from rules and relations that are at hand.

    Args:
        program: view rules and declarations, or SQL, as text or parsed.
        contents: for each view its rows; of a view that keeps duplicates each row once, its number of copies last.
        engine: evaluates programs over relations of this kind.
        present: partial copies of base relations, rows known to be there.
        absent: rows known not to be there.
        readable: base relations that may be read if need be.
        inexact_sums: whether sums of doubles are maintained, though recomputing may give other last digits.

    Raises:
        ProgramError: the program is not valid.
        InputError: SM102 a name that is no view or base relation; SM103 a view without contents.
    """
    schema = with_inexact_sums(catalog_of(program)) if inexact_sums else catalog_of(program)
    return Warehouse(schema, engine, contents, present or {}, absent or {}, readable or {})
