"""What reads texts that others write, each as one function: it returns, or raises one of the product's errors."""

from __future__ import annotations

import json
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from datalog.analysis import diagnose
from datalog.diagnostics import ProgramError, render
from datalog.evaluate import EvaluationError, evaluate_view
from datalog.evaluate.evaluator import Evaluator
from datalog.model import ANY, Predicate, Program, Row, TypeName, Value, ViewDefinition, WallClock
from datalog.sql.views import SqlText, read_sql
from datalog.syntax import parse_program, show
from selfmaint.api.check import check
from selfmaint.api.file.dbt_manifest import read_dbt_manifest
from selfmaint.api.file.programs import catalog_of_sql
from selfmaint.api.file.warehouse_file import read_warehouse_file
from selfmaint.api.load import load
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse, build
from selfmaint.audit.matrix import read_baseline
from selfmaint.conformance.cases import read_cases
from selfmaint.engine.memory import MemoryEngine
from selfmaint.errors import SelfmaintError
from selfmaint.feeds.settings import FeedSettings
from selfmaint.warehouse.catalog import Catalog, catalog
from tests.fuzz.corpus import Original, originals
from tests.fuzz.mutations import mutated, mutated_value
from tests.fuzz.stored import VIEWS, meant_for, parquet, recipe, warehouse_folder

Rows = frozenset[Row]
KINDS = ("rules", "sql", "warehouse", "manifest", "feed", "cases", "baseline", "csv", "jsonl", "parquet")
SECONDS = 10
"""For a case, of the process's own time: the machine may be busy."""
DECISION_SECONDS = 20
"""For the decision of what was accepted: it has a budget of its own, and its end is an answer."""
CODED = (ProgramError, SelfmaintError)


class TooSlowError(BaseException):
    """A case takes too long; no `except Exception` may take it."""


class SlowDecisionError(BaseException):
    """What was accepted takes too long to be decided."""


def case(kind: str, number: int) -> tuple[str, Original]:
    """A mutated text, and what it was made of."""
    random = Random(f"{kind} {number}")
    every = originals(kind)
    original = random.choice(every)
    if kind == "sql":
        # Most statements in the tests are read beside tables that stand elsewhere: refused before a mutation is met.
        original = next((one for one in random.sample(every, 6) if _is_readable(one.text)), original)
    if kind == "parquet":
        return recipe(random), original
    if kind in ("manifest", "feed", "cases", "baseline", "jsonl") and random.random() < 0.7:
        return _mutated_json(kind, original, random), original
    return mutated(original.text, random, kind, [one.text for one in every]), original


def _mutated_json(kind: str, original: Original, random: Random) -> str:
    """Each line of the text is a JSON value, or the whole text is one."""
    lines = original.text.splitlines() if kind in ("feed", "cases", "jsonl") else [original.text]
    values = []
    for line in lines:
        try:
            values.append(json.loads(line))
        except ValueError:
            continue
    if not values:
        return original.text
    at = random.randrange(len(values))
    values[at] = mutated_value(values[at], random, values)
    if kind == "feed" and random.random() < 0.3:
        random.shuffle(values)
    return "".join(json.dumps(value) + "\n" for value in values)


def run(kind: str, number: int, text: str, original: Original, folder: Path) -> str:
    """What comes of a text: `accepted`, or the first code.

    Raises:
        Exception: another than the product's own.
    """
    try:
        READERS[kind](text, original, Random(number), folder)
    except CODED as error:
        found = error.diagnostics
    else:
        return "accepted"
    for diagnostic in found:
        assert render(diagnostic, {"<fuzz>": text})
    return found[0].code.value


# ------------------------------------------------------------------------------------------- definitions


def _rules(text: str, original: Original, random: Random, folder: Path) -> None:
    program = parse_program(text, "<fuzz>")
    diagnose(program)
    found = catalog(program)
    assert parse_program(show(program)) == program, "another program when printed and read"
    _decide(found, random)


def _sql(text: str, original: Original, random: Random, folder: Path) -> None:
    found = read_sql([SqlText(text, "<fuzz>")], _undeclared(original.text))
    for warning in found.warnings:
        assert render(warning, {"<fuzz>": text})
    _decide(catalog_of_sql(found), random)


@cache
def _is_readable(text: str) -> bool:
    """Whether a statement is read as it stands, with no other file beside it."""
    try:
        read_sql([SqlText(text, "<fuzz>")], _undeclared(text))
    except CODED:
        return False
    return True


@cache
def _undeclared(text: str) -> tuple[Any, ...]:
    """Declarations for a text that has none: those of the first tables of the corpus."""
    if "create table" in text.lower():
        return ()
    return parse_program(
        ".decl r(a: int not null, b: int, c: string) key(a). .decl s(b: int not null, d: date) key(b)."
        ".decl t(a: int, e: decimal(9, 2)). .decl sale(id: int, item: string, price: decimal(9, 2)) key(id)."
    ).declarations


def _decide(found: Catalog, random: Random) -> None:
    """A small random database, and the decision on a small random update of it."""
    if sum(relation.arity for relation in found.relations.values()) > 60 or len(found.views) > 8:
        return
    _ = found.warnings
    base = {name: _some_rows(relation, random) for name, relation in found.relations.items()}
    contents = _contents(found, base)
    if contents is None:
        return
    warehouse = build(Program(), {}, MemoryEngine())
    warehouse = Warehouse(found, warehouse.engine, contents)
    names = [name for name, relation in found.relations.items() if relation.arity]
    if not names:
        return
    changed = random.sample(names, min(len(names), random.choice((1, 1, 2))))
    inserted = {n: _some_rows(found.relations[n], random) - base[n] for n in changed}
    deleted = {n: frozenset(sorted(base[n], key=repr)[:1]) for n in changed if random.random() < 0.4}
    given = {name: relation.given for name, relation in found.relations.items()}
    sides = (
        {n: frozenset(row[: given[n]] for row in rows) for n, rows in s.items()} for s in (inserted, deleted)
    )
    update = Update(*sides, effective=random.random() < 0.5)
    signal.setitimer(signal.ITIMER_PROF, DECISION_SECONDS)
    try:
        verdicts = check(warehouse, update)
    except TooSlowError:
        raise SlowDecisionError from None
    for name, verdict in verdicts.items():
        assert len(repr(verdict).replace(name, "")) < 4000, "the verdict's repr is long"


def _some_rows(relation: Any, random: Random) -> Rows:
    """Up to three rows, with different keys, of columns that hold few values."""
    rows: list[Row] = []
    for _ in range(random.choice((0, 1, 2, 2, 3))):
        row = tuple(
            None
            if i in relation.nullable and random.random() < 0.1
            else random.choice(_values(relation.types[i]))
            for i in range(relation.arity)
        )
        keys = [*relation.unique]
        if not any(all(row[i] == other[i] for i in key) for key in keys for other in rows):
            rows.append(row)
    return frozenset(rows)


def _values(type_: Any) -> list[Value]:
    import datetime as dt
    from decimal import Decimal

    name = type_.name
    if type_ == ANY or name in (TypeName.INT, TypeName.BIGINT, TypeName.SMALLINT, TypeName.TINYINT):
        return [1, 2, 3]
    return {
        TypeName.BOOLEAN: [True, False],
        TypeName.FLOAT: [1.5, -2.0],
        TypeName.DOUBLE: [1.5, -2.0],
        TypeName.DECIMAL: [Decimal(1), Decimal(2)],
        TypeName.STRING: ["a", "b", "2026-01-31"],
        TypeName.DATE: [dt.date(2026, 1, 31), dt.date(2024, 2, 29)],
        TypeName.TIMESTAMP: [dt.datetime(2026, 1, 31, 12), dt.datetime(2024, 2, 29)],
        TypeName.TIMESTAMP_NTZ: [WallClock(2026, 1, 31, 12), WallClock(2024, 2, 29)],
    }[name]


def _contents(found: Catalog, base: Mapping[str, Rows]) -> dict[str, Rows] | None:
    """Each view's rows; None where a view is more than can be computed here in a moment."""
    facts: dict[Predicate, Rows] = {Predicate(name): rows for name, rows in base.items()}
    types = {Predicate(name): relation.types for name, relation in found.relations.items()}
    contents: dict[str, Rows] = {}
    for view in found.views:
        definition = view.definition
        if isinstance(definition, ViewDefinition):
            if any(3 ** len(block.core.atoms) > 3**6 for block in definition.blocks):
                return None
            try:
                bag = evaluate_view(
                    definition, {p: Counter(facts.get(p, ())) for p in definition.reads}, types
                )
            except (
                ArithmeticError,
                ValueError,
                EvaluationError,
            ):  # a cast of these values: the query would fail there too
                return None
            rows = frozenset((*row, n) for row, n in bag.items()) if view.is_counted else frozenset(bag)
        elif definition is None:
            if len(view.body) > 6:
                return None
            rows = Evaluator(found.program, facts).extension(Predicate(view.name))
        else:
            rows = frozenset()
        contents[view.name] = facts[Predicate(view.name)] = rows
    return contents


# ------------------------------------------------------------------------------------------------- files


def _warehouse_file(text: str, original: Original, random: Random, folder: Path) -> None:
    place = _copied(original.folder, folder)
    path = place / "fuzzed.toml"
    if "catalog" in text:  # that would start Spark
        return
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    read_warehouse_file(path)


def _copied(source: Path | None, folder: Path) -> Path:
    assert source is not None
    place = folder / f"{source.parent.name} {source.name}"
    if not place.exists():
        place.mkdir()
        for path in source.rglob("*"):
            if path.suffix in (".dl", ".sql", ".json", ".toml") and path.stat().st_size < 100_000:
                (place / path.relative_to(source)).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, place / path.relative_to(source))
    return place


def _manifest(text: str, original: Original, random: Random, folder: Path) -> None:
    found = catalog_of_sql(read_dbt_manifest(_written(text, folder / "manifest.json")))
    _ = found.warnings


def _written(text: str, path: Path) -> Path:
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    return path


def _feed(text: str, original: Original, random: Random, folder: Path) -> None:
    warehouse = _fed(random.randrange(3))
    path = _written(text, folder / "feed.jsonl")
    known = list(warehouse.catalog.relations)
    feed = random.choice([path, {random.choice(known): path}, {known[0]: path}])
    format_ = random.choice([None, None, None, "debezium", "delta", "iceberg"])
    ends = random.choice([None, None, None, 3, "8", {known[0]: 7}, "x"])
    update = Update.from_feed(
        warehouse,
        feed,  # type: ignore[arg-type]
        format=format_,
        after=ends,
        upto=random.choice([None, 100]),
        initial_load=random.random() < 0.3,
    )
    check(warehouse, update)


@cache
def _fed(number: int) -> Warehouse[Rows]:
    """A warehouse whose relations fit the feeds of the corpus."""
    program = (
        ".decl r(id: bigint, name: string, day: date, price: decimal(10, 2), at: timestamp) key(id).\n"
        ".decl k(id: int not null, name: string not null, flag: boolean, x: double).\n"
        ".decl customer(id: int, name: string, city: string) key(id).\n"
        ".decl orders(id: int, customer: int, total: decimal(9,2)) key(id).\n"
        "v(I, N, D, P, T) :- r(I, N, D, P, T). w(I, N, F, X) :- k(I, N, F, X).\n"
        "x(I, N, C) :- customer(I, N, C). y(I, C, T) :- orders(I, C, T).\n"
    )
    settings = [
        FeedSettings(),
        FeedSettings(tables={"public.order_table": "orders"}, ignored=frozenset({"audit_log"})),
        FeedSettings(tables={"order_table": "orders", "public.r": "r"}, full_before_images=True),
    ][number]
    made = build(program, dict.fromkeys("vwxy", frozenset()), MemoryEngine())
    return Warehouse(made.catalog, made.engine, made.contents, feeds=settings)


def _cases(text: str, original: Original, random: Random, folder: Path) -> None:
    for one in read_cases(_written(text, folder / "cases.jsonl"), 3):
        catalog(one.program)


def _baseline(text: str, original: Original, random: Random, folder: Path) -> None:
    read_baseline(_written(text, folder / "baseline.json"))


def _stored(text: str, random: Random, folder: Path, suffix: str) -> None:
    """The file as a part of an update, or as a view's contents."""
    data = parquet(text) if suffix == "parquet" else text.encode("utf-8", errors="surrogatepass")
    place = warehouse_folder(folder)
    try:
        name = meant_for(text, random)
        if name in VIEWS:
            written = (place / "warehouse.toml").read_text().replace(f"{name}.parquet", f"fuzzed.{suffix}")
            (place / "warehouse.toml").write_text(written)
            (place / f"fuzzed.{suffix}").write_bytes(data)
        else:
            part = random.choice(("insert", "insert", "delete"))
            (place / "u" / f"{name}.{part}.{suffix}").write_bytes(data)
        with load(place / "warehouse.toml") as warehouse:
            update = Update.from_files(warehouse, place / "u")
            check(warehouse, update)
            warehouse.maintain(update)
    finally:
        shutil.rmtree(place)


READERS: Mapping[str, Callable[[str, Original, Random, Path], None]] = {
    "rules": _rules,
    "sql": _sql,
    "warehouse": _warehouse_file,
    "manifest": _manifest,
    "feed": _feed,
    "cases": _cases,
    "baseline": _baseline,
    "csv": lambda text, _, random, folder: _stored(text, random, folder, "csv"),
    "jsonl": lambda text, _, random, folder: _stored(text, random, folder, "jsonl"),
    "parquet": lambda text, _, random, folder: _stored(text, random, folder, "parquet"),
}
assert set(READERS) == set(KINDS)
