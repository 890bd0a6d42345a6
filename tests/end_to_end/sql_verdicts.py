"""The product's answers on views in SQL, held against every database over small domains.

A "yes" is right if all databases that explain what is known give the view one new state, and the view's change leads to
that one; a "no" if two of them give it different ones, or the two that `explain` shows do. That a view is undecided is
never wrong: how often its new state is determined in the small domains all the same is counted. And whatever is
followed from base rows, by keys or recomputed, is what the view holds after the update.

    python -m tests.end_to_end.sql_verdicts --seconds 1800 --seed 1

tries random cases for so long, prints how they came out by shape, and the first wrong answer. Some of the questions, or
all with `--cross-examined 1`, are cross-examined: nothing may contradict what the databases confirm.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any, ClassVar, TypeAlias

import duckdb
import pyarrow as pa

import selfmaint
from datalog.model import ANY, ColumnType, OpaqueView, TypeName, ViewDefinition
from selfmaint.api.audit import AuditOptions, audit_catalog
from selfmaint.api.columns import columns_of
from selfmaint.api.file.programs import catalog_of
from selfmaint.api.maintain import new_contents
from selfmaint.api.platforms.platform import platform_of, with_counts
from selfmaint.api.warehouse import Warehouse
from selfmaint.cross_examine.examine import Outcome
from selfmaint.decide.verdict import Verdict, VerdictKind
from selfmaint.duckdb import DuckEngine, Relation
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import Code
from selfmaint.warehouse.catalog import Catalog, View
from selfmaint.warehouse.situation import Situation
from tests.keyed_queries import Held
from tests.large_engine import LargeEngine
from tests.oracle.sql_databases import Everything, Question
from tests.oracle.sql_engines import COUNT_TRUE, NOT_SQLITE, evaluated, in_duckdb, state_of
from tests.oracle.sql_schemas import TYPED, names_read, tables
from tests.oracle.sql_shapes import SHAPES, views
from tests.oracle.sql_tables import Row, Rows, State, bag, is_sound, minus, updated

DATABASES, BY_DUCKDB = 500, 100
"""How many databases are listed at most; the second where DuckDB runs the views, a hundred times slower."""

Engines: TypeAlias = Sequence[type[DuckEngine] | type[MemoryEngine]]
ENGINES: Engines = (DuckEngine, DuckEngine, MemoryEngine, MemoryEngine, LargeEngine)
"""DuckDB takes ten times as long for a question, and is the one that follows what is undecided."""

_KINDS = {
    TypeName.INT: pa.int32(),
    TypeName.BIGINT: pa.int64(),
    TypeName.DOUBLE: pa.float64(),
    TypeName.STRING: pa.string(),
    TypeName.BOOLEAN: pa.bool_(),
    TypeName.DATE: pa.date32(),
    TypeName.TIMESTAMP: pa.timestamp("us", "UTC"),
}
_DUCKDB = {
    "INTEGER": pa.int32(),
    "BIGINT": pa.int64(),
    "HUGEINT": pa.int64(),
    "DECIMAL(38,0)": pa.int64(),
    "DOUBLE": pa.float64(),
    "VARCHAR": pa.string(),
    "BOOLEAN": pa.bool_(),
    "DATE": pa.date32(),
    "TIMESTAMP": pa.timestamp("us", "UTC"),
}
AUDITED, AUDIT_S = 0.15, 5.0
"""How many cases are audited, too, and how long that may take."""
CROSS_EXAMINED = 0.1
"""How many questions are cross-examined, too."""
BUDGET = {"seconds": 4.0, "candidates": 100}
DIGITS = 5
"""Digits before the point, where DuckDB has more than Spark: enough for the values here."""


@dataclass(frozen=True)
class Answered:
    """What the product said of one view.

    Attributes:
        verdict: the verdict.
        is_determined: whether the new state is, in the small domains.
        how: how it was followed.
        setting: where the rows are, `large` if they are taken for many; and `helpers` if there are some.
    """

    verdict: VerdictKind
    is_determined: bool
    how: str
    setting: str


class Case:
    """A random schema with its databases, and the warehouse over it.

    Attributes:
        examined: how many verdicts came out how, cross-examined.
    """

    examined: ClassVar[Counter[str]] = Counter()

    def __init__(
        self,
        random: Random,
        shape: str,
        *,
        effort: int = 1,
        engines: Engines = ENGINES,
        share: float = CROSS_EXAMINED,
    ) -> None:
        texts = views(random, shape)
        slow = any(map(NOT_SQLITE.search, texts.values())) or {*names_read(texts.values())} & {*TYPED}
        its = tables(random, texts.values(), (BY_DUCKDB if slow else DATABASES) * effort)
        self.program = "\n".join(
            [*(t.declared for t in its), *(f"create view {n} as {v};" for n, v in texts.items())]
        )
        self.engine = random.choice(engines)()
        # What becomes of helpers' views is a business of engines that run texts.
        helpers = isinstance(self.engine, DuckEngine) and random.random() < 0.6
        self.catalog = catalog_of(self.program, helpers=helpers)
        stored = {
            view.name: texts.get(view.name) or _helper(self.catalog, view.name) for view in self.catalog.views
        }
        self.every = Everything(its, stored)
        self.is_audited = random.random() < AUDITED
        self.chance, self.share = Random(random.random()), share

    @cached_property
    def schemas(self) -> Mapping[str, pa.Schema]:
        """The columns of tables and views, as the product takes them."""
        found = {}
        with duckdb.connect() as plain:
            plain.execute(COUNT_TRUE)
            for table in self.every.tables:
                columns = ", ".join(map(" ".join, zip(table.columns, table.types, strict=True)))
                plain.execute(f"create table {table.name} ({columns})")
            for name, text in self.every.views.items():
                plain.execute(f"create view {name} as {in_duckdb(text)}")
            known = columns_of(self.catalog)
            for name in [*known]:
                its = plain.sql(f"from {name}")
                kinds = [_kind(str(kind)) for kind in its.types]
                told = [ANY] * len(kinds) if known[name].open else known[name].types
                found[name] = pa.schema(
                    [
                        (column, kind if its == ANY else _told(its))
                        for column, kind, its in zip(its.columns, kinds, told, strict=True)
                    ]
                )
        return found

    def frame(self, name: str, rows: Iterable[Row]) -> pa.Table:
        """Rows of a view or a table."""
        schema, given = self.schemas[name], list(rows)
        return pa.Table.from_arrays(
            [pa.array([_of(f.type, row[i]) for row in given], f.type) for i, f in enumerate(schema)],
            schema=schema,
        )

    def warehouse(self, question: Question) -> Warehouse[Any]:
        """With what is known before, none of its relations readable."""
        copies = [
            {n: self.relation(n, rows) for n, rows in its.items()}
            for its in (question.present, question.absent)
        ]
        if isinstance(self.engine, DuckEngine):
            contents = {
                name: self.relation(name, Counter(dict(state)).elements())
                for name, state in question.contents.items()
            }
            stored = with_counts(platform_of(self.engine), self.catalog, contents)
            return Warehouse(self.catalog, self.engine, stored, *copies)
        found = {}
        for name, state in question.contents.items():
            kinds, is_counted = self.schemas[name].types, self.catalog.view(name).is_counted
            rows = {tuple(map(_of, kinds, row)): copies for row, copies in state}
            found[name] = frozenset((*row, copies) if is_counted else row for row, copies in rows.items())
        return Warehouse(self.catalog, self.engine, found, *copies)

    def relation(self, name: str, rows: Iterable[Row]) -> Any:
        """Rows of a table, or a view that keeps no duplicates apart, as the engine takes them."""
        if not isinstance(self.engine, DuckEngine):
            return frozenset(rows)
        return platform_of(self.engine).fit_rows(self.frame(name, rows), columns_of(self.catalog)[name])

    def update(self, warehouse: Warehouse[Any], question: Question) -> selfmaint.Update[Any]:
        """As it is given."""
        sides: list[Mapping[str, Any]] = [question.inserted, question.deleted]
        if not isinstance(self.engine, DuckEngine):
            sets = ({n: frozenset(rows) for n, rows in side.items()} for side in sides)
            return selfmaint.Update(*sets, effective=question.is_effective)
        frames = [{n: self.frame(n, rows) for n, rows in side.items()} for side in sides]
        return selfmaint.Update.from_frames(warehouse, *frames, effective=question.is_effective)

    def readable(self, rows: Mapping[str, Rows]) -> dict[str, selfmaint.Readable[Relation]]:
        """Sources in which the base relations have these rows."""
        assert isinstance(self.engine, DuckEngine)
        held = {n: self.relation(n, its) for n, its in rows.items() if n in self.catalog.relations}
        return dict.fromkeys(held, selfmaint.Readable(Held(self.engine, held)))

    def state(self, view: View, rows: Any) -> State:
        """Rows of a view that the product gives."""
        if not isinstance(self.engine, DuckEngine):
            return state_of(r for row in rows for r in ([row[:-1]] * row[-1] if view.is_counted else [row]))
        expanded = pa.table(self.engine.bags.expanded(rows) if view.is_counted else rows)
        return state_of(tuple(row.values()) for row in expanded.to_pylist())

    # -------------------------------------------------------------------------------------------- answers

    def answers(self, question: Question) -> dict[str, Answered]:
        """What the product says of each view.

        Raises:
            AssertionError: it is wrong.
        """
        if not self.can_hold(question):
            return {}
        warehouse = self.warehouse(question)
        update = self.update(warehouse, question)
        verdicts = warehouse.check(update)
        for name, verdict in verdicts.items():
            self.judge(warehouse, update, question, verdict, name)
            if self.is_audited and question.is_effective:
                self.require(
                    len(question.states[name]) == 1 or not self.is_always(question, name),
                    f"a wrong always on {name}",
                    question,
                )
        self.cross_examine(warehouse, update, question)
        setting = "helpers" if self.catalog.helpers else self.engine.name
        how = self.followed(warehouse, update, question, verdicts)
        return {n: Answered(v.kind, len(question.states[n]) == 1, how, setting) for n, v in verdicts.items()}

    def cross_examine(
        self, warehouse: Warehouse[Any], update: selfmaint.Update[Any], question: Question
    ) -> None:
        """Nothing may contradict an answer that is right: what databases over small domains say is known here."""
        if self.chance.random() >= self.share:
            return
        with tempfile.TemporaryDirectory() as folder:
            budget = selfmaint.CrossExamination(**BUDGET, folder=Path(folder))
            for name, one in warehouse.check(update, cross_examine=budget).examined.items():
                self.examined[one.outcome.value] += one.because != "it is undecided"
                text = "" if one.file is None else one.file.read_text(encoding="utf-8")
                is_wrong = one.outcome is Outcome.CONTRADICTS
                self.require(not is_wrong, f"{name} is contradicted: {one.because}\n{text}", question)

    @cached_property
    def words(self) -> Mapping[tuple[str, str, str], str]:
        """What the audit says of effective updates."""
        options = AuditOptions(advise=False, budget_s=AUDIT_S)
        return audit_catalog(self.catalog, Situation(effective=True), options).audit.words()

    def is_always(self, question: Question, name: str) -> bool:
        """Whether the audit says that a view is always self-maintainable for such changes."""
        sides = {"insert": question.inserted, "delete": question.deleted}
        changed = {relation for side in sides.values() for relation, rows in side.items() if rows}
        kinds = [kind for kind, side in sides.items() if any(side.values())]
        asked = [(name, "*", "any"), *((name, r, "any") for r in changed if len(changed) == 1)]
        asked += [(name, r, kind) for r in changed for kind in kinds if len(changed) == len(kinds) == 1]
        return any(self.words.get(one) == "always" for one in asked)

    def can_hold(self, question: Question) -> bool:
        """Whether the engine can hold what the views hold: sets of rows have none twice that is not counted."""
        bags = [
            v.name for v in self.catalog.views if not v.is_counted and not isinstance(self.engine, DuckEngine)
        ]
        states = [state for n in bags for state in (question.contents[n], *question.states[n])]
        changes = (*question.inserted.values(), *question.deleted.values())
        if not isinstance(self.engine, DuckEngine) and any(len({*rows}) < len(rows) for rows in changes):
            return False
        return all(copies == 1 for state in states for _, copies in state)

    def judge(
        self,
        warehouse: Warehouse[Any],
        update: selfmaint.Update[Any],
        question: Question,
        verdict: Verdict,
        name: str,
    ) -> None:
        """Holds a verdict against all databases."""
        states = question.states[name]
        if verdict.kind is VerdictKind.YES:
            self.require(len(states) == 1, f"a wrong yes on {name}", question)
        elif verdict.kind is VerdictKind.NO and len(states) == 1:
            self.require(
                self.differ(warehouse, update, question, name), f"a no on {name} without proof", question
            )

    def differ(
        self, warehouse: Warehouse[Any], update: selfmaint.Update[Any], question: Question, name: str
    ) -> bool:
        """Whether the two databases that are shown for a "no" explain what is known, and give different new states."""
        shown = warehouse.explain(update, name).counterexample
        if shown is not None and not shown.complete:
            # Of large data only what is near the update is shown: where it is small there are whole databases.
            engine, self.engine = self.engine, MemoryEngine()
            whole = self.warehouse(question)
            shown = whole.explain(self.update(whole, question), name).counterexample
            self.engine = engine
        if shown is None:
            return False
        found = []
        none: dict[str, Rows] = {t.name: frozenset() if t.key else () for t in self.every.tables}
        changes = [tuple({**none, **side}.values()) for side in (question.inserted, question.deleted)]
        for second in (False, True):
            rows = shown.database(second, after=False).items()
            # Of a table without a key a last column numbers the rows.
            its = {n: found if none[n] != () else bag(row[:-1] for row in found) for n, found in rows}
            before = tuple({**none, **its}.values())
            after = updated(before, *changes, is_effective=question.is_effective)
            if after is None or not all(
                is_sound(self.every.tables, self.every.named(one)) for one in (before, after)
            ):
                return False
            held = evaluated(self.every.tables, self.every.views, [before, after])
            if any(held[view][0] != state for view, state in question.contents.items()):
                return False
            its = self.every.named(before)
            if any(minus(rows, its[n]) for n, rows in question.present.items()):
                return False
            if any(minus(rows, its[n]) != rows for n, rows in question.absent.items()):
                return False
            found.append(held[name][1])
        return found[0] != found[1]

    def followed(
        self,
        warehouse: Warehouse[Any],
        update: selfmaint.Update[Any],
        question: Question,
        verdicts: selfmaint.Verdicts,
    ) -> str:
        """How the views followed, their new rows being right: what "yes" says, or those over one of the databases."""
        database = next(iter(question.states["v"].values()))
        if not verdicts:
            if not isinstance(self.engine, DuckEngine):
                return "not tried"
            warehouse.readable = self.readable(self.every.named(self.after(question, database)))
        try:
            found = warehouse.maintain(update, recompute=not verdicts)
        except selfmaint.InputError as error:
            # DuckDB is not known to compute what Spark does, and sets of rows have nothing that runs texts.
            refusal = Code.ENGINE_DIFFERS if isinstance(self.engine, DuckEngine) else Code.NOT_MAINTAINED
            self.require({d.code for d in error.diagnostics} == {refusal}, str(error), question)
            return "refused"
        right = self.every.states(self.after(question, database))
        for view in self.catalog.views:
            its = self.state(view, new_contents(warehouse, view, found.every[view.name]))
            said = "a change that is not what yes says" if verdicts.get(view.name) else "wrong rows"
            self.require(its == right[view.name], f"{said} of {view.name}: {sorted(its, key=repr)}", question)
        self.require(not (verdicts and found.reads), "base rows are read for what is decided", question)
        return "recomputed" if "v" in found.recomputed else "followed"

    def after(self, question: Question, database: tuple[Rows, ...]) -> tuple[Rows, ...]:
        """A database after the update."""
        names = [table.name for table in self.every.tables]
        sides = [[side.get(n, ()) for n in names] for side in (question.inserted, question.deleted)]
        found = updated(database, *sides, is_effective=question.is_effective)
        assert found is not None
        return found

    def require(self, holds: bool, otherwise: str, question: Question) -> None:
        """Tells all that was asked where an answer is wrong."""
        if not holds:
            raise AssertionError("\n".join([otherwise, self.program, shown(question)]))


def _kind(text: str) -> pa.DataType:
    """A type of DuckDB's, as narrow as Spark's."""
    found = re.fullmatch(r"DECIMAL\((\d+),([1-9]\d*)\)", text)
    if found is None:
        return _DUCKDB[text]
    precision, scale = map(int, found.groups())
    return pa.decimal128(min(precision, DIGITS + scale), scale)


def _told(its: ColumnType) -> pa.DataType:
    if its.name is TypeName.DECIMAL and its.precision is not None:
        return pa.decimal128(its.precision, its.scale or 0)
    return _KINDS[its.name]


def _helper(catalog: Catalog, name: str) -> str:
    definition = catalog.view(name).definition
    assert isinstance(definition, ViewDefinition | OpaqueView)
    return (definition.text or "").replace("`", '"')


def _of(kind: pa.DataType, value: Any) -> Any:
    """SQLite has no booleans, and no decimals."""
    if value is None:
        return None
    if isinstance(value, float) and not pa.types.is_floating(kind):
        return Decimal(str(value)) if pa.types.is_decimal(kind) else int(value)
    return bool(value) if pa.types.is_boolean(kind) else value


def shown(question: Question) -> str:
    """What was known, and for each view up to two new states with a database that gives it."""
    lines = ["an effective update" if question.is_effective else "an update"]
    lines += [f"  + {n}{row}" for n, rows in question.inserted.items() for row in rows]
    lines += [f"  - {n}{row}" for n, rows in question.deleted.items() for row in rows]
    lines += [f"  known to be there: {n}{row}" for n, rows in question.present.items() for row in rows]
    lines += [f"  known not to be there: {n}{row}" for n, rows in question.absent.items() for row in rows]
    lines += [f"{name} holds {sorted(state, key=repr)}" for name, state in question.contents.items()]
    lines.append(f"explained by {len(question.databases)} databases")
    for name, states in question.states.items():
        for state, database in [*states.items()][:2]:
            lines.append(
                f"{name} becomes {sorted(state, key=repr)} of {[sorted(r, key=repr) for r in database]}"
            )
    return "\n".join(lines)


def answered(
    seed: str,
    shape: str,
    questions: int,
    *,
    effort: int = 1,
    engines: Engines = ENGINES,
    share: float = CROSS_EXAMINED,
) -> list[Answered]:
    """What the product says of the view of a random case, all of it being right."""
    random = Random(f"{shape}.{seed}")
    case = Case(random, shape, effort=effort, engines=engines, share=share)
    found = []
    for _ in range(questions):
        chances = random.random() < 0.85, random.random() < 0.2
        question = case.every.question(random, is_effective=chances[0], with_copies=chances[1])
        if question is not None:
            found += [one for name, one in case.answers(question).items() if name == "v"]
    return found


def table(found: Mapping[str, Sequence[Answered]]) -> str:
    """How the answers came out by shape; of the share that is decided, where data are not taken for large ones."""
    lines = [
        "| view | asked | yes | no | undecided | decided, of determined | with helpers | recomputed, of followed |",
        "|---|---|---|---|---|---|---|---|",
    ]
    every = [one for its in found.values() for one in its]
    for shape, its in [*found.items(), ("all", every)]:
        kinds = Counter(one.verdict for one in its)
        ways = Counter(one.how for one in its)
        counts = [len(its), *(kinds[kind] for kind in VerdictKind)]
        told = [
            _share([o for o in its if o.setting in names]) for names in (("duckdb", "memory"), ("helpers",))
        ]
        ran = f"{ways['recomputed']} of {ways['recomputed'] + ways['followed']}"
        lines.append(f"| {' | '.join([shape, *map(str, counts), *told, ran])} |")
    return "\n".join(lines)


def _share(answers: Sequence[Answered]) -> str:
    determined = [one for one in answers if one.is_determined]
    decided = sum(one.verdict is VerdictKind.YES for one in determined)
    return f"{decided} of {len(determined)}"


def main() -> int:
    """Tries random cases for some time."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--effort", type=int, default=3)
    parser.add_argument("--questions", type=int, default=6)
    parser.add_argument("--only", nargs="*", default=list(SHAPES))
    parser.add_argument("--engines", nargs="*", default=[engine.name for engine in ENGINES])
    parser.add_argument("--cross-examined", type=float, default=CROSS_EXAMINED)
    given = parser.parse_args()
    engines = [engine for name in given.engines for engine in {*ENGINES} if engine.name == name]
    end, number, wrong = time.monotonic() + given.seconds, given.seed * 1_000_000, 0
    found: dict[str, list[Answered]] = defaultdict(list)
    while time.monotonic() < end and wrong < 20:
        for shape in given.only:
            try:
                its = answered(
                    str(number),
                    shape,
                    given.questions,
                    effort=given.effort,
                    engines=engines,
                    share=given.cross_examined,
                )
                found[shape] += its
            except Exception as error:  # noqa: BLE001 - a crash is wrong, too
                wrong += 1
                print(f"{shape}.{number}: {type(error).__name__}: {error}\n", flush=True)
        number += 1
    print(table(found))
    print(f"{number - given.seed * 1_000_000} rounds; cross-examined: {dict(Case.examined)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
