"""The star and the TPC-H warehouse in SQL: the rules that they become are equivalent to those in `views.dl`.

Oracles: the reference evaluator, which gives both the same rows on random databases; and the decision on the rules as
they are written in Datalog, over the same declarations.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from random import Random

import pytest

from datalog.evaluate import Evaluator
from datalog.model import Declaration, Predicate, Program, Row, TypeName
from datalog.rewrite import guard_joins
from datalog.syntax import parse_program
from selfmaint.api.file.programs import catalog_of_path
from selfmaint.api.file.warehouse_file import read_warehouse_file
from selfmaint.api.update import Update
from selfmaint.api.warehouse import Warehouse
from selfmaint.audit.matrix import audited
from selfmaint.audit.search import Search
from selfmaint.countermodel.databases import Evaluation, satisfies, updated
from selfmaint.decide.procedure import check
from selfmaint.decide.verdict import SelfMaintainable
from selfmaint.engine.memory import MemoryEngine
from selfmaint.warehouse.catalog import Catalog, catalog
from selfmaint.warehouse.situation import Situation

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WORDS = {"food", "gold", "EUROPE", "BUILDING", "other"}
Database = dict[str, frozenset[Row]]


def in_sql(name: str) -> Catalog:
    return catalog_of_path(EXAMPLES / name / "views.sql")


def in_rules(name: str, declared: Catalog | None = None) -> Catalog:
    """The rules of `views.dl`, over its own declarations or those of another catalog."""
    path = EXAMPLES / name / "views.dl"
    program = parse_program(path.read_text(encoding="utf-8"), str(path))
    if declared is not None:
        bases = [d for d in declared.program.declarations if d.name in declared.relations]
        program = Program(program.rules, tuple(bases))
    return catalog(program)


def row(random: Random, declaration: Declaration) -> Row:
    def value(kind: TypeName) -> object:
        match kind:
            case TypeName.STRING:
                return random.choice(sorted(WORDS))
            case TypeName.DECIMAL:
                return Decimal(random.randrange(3))
            case TypeName.DATE:
                return dt.date(2026, 12, random.randrange(1, 3))
            case _:
                return random.choice([0, 1, 2, 12])

    return tuple(value(column.type.name) for column in declaration.columns)  # type: ignore[return-value]


def database(random: Random, schema: Catalog) -> Database:
    """Random rows; keys are kept, and foreign keys."""
    found: Database = {}
    for declaration in schema.program.declarations:
        if declaration.name in schema.relations:
            key = [declaration.column_names.index(name) for name in declaration.key or ()]
            rows = [row(random, declaration) for _ in range(random.randrange(6))]
            found[declaration.name] = frozenset({tuple(r[i] for i in key): r for r in rows}.values())
    for _ in range(3):
        for name in found:
            for reference in schema.relations[name].references:
                there = {tuple(r[i] for i in reference.target_columns) for r in found[reference.target]}
                kept = (r for r in found[name] if tuple(r[i] for i in reference.columns) in there)
                found[name] = frozenset(kept)
    return found


def changed(random: Random, schema: Catalog, old: Database) -> Database:
    """Another state: some rows of two relations are others, with the same key, or with another one."""
    new = dict(old)
    for name in random.sample(sorted(old), 2):
        declaration = schema.program.declaration(name)
        assert declaration is not None
        key = [declaration.column_names.index(column) for column in declaration.key or ()]
        rows = {tuple(r[i] for i in key): r for r in old[name]}
        for identity, its in list(rows.items()):
            other = row(random, declaration)
            if random.random() < 0.6:
                rows[identity] = tuple(its[i] if i in key else v for i, v in enumerate(other))
        more = row(random, declaration)
        rows.setdefault(tuple(more[i] for i in key), more)
        new[name] = frozenset(rows.values())
    return new


@pytest.mark.parametrize("name", ["star", "tpch"])
@pytest.mark.parametrize("seed", range(20))
def test_sql_and_rules_give_the_same_rows(name: str, seed: int) -> None:
    sql, rules = in_sql(name), in_rules(name)
    assert not sql.limited_views
    held = database(Random(seed), sql)
    facts = {Predicate(n): rows for n, rows in held.items()}
    assert [v.name for v in sql.views] == [v.name for v in rules.views]
    assert [v.columns for v in sql.views] == [v.columns for v in rules.views]
    one, other = (Evaluator(Program(tuple(map(guard_joins, c.program.rules))), facts) for c in (sql, rules))
    for view in sql.views:
        assert one.extension(view.predicate) == other.extension(view.predicate), view.name


@pytest.mark.parametrize("name", ["star", "tpch"])
def test_a_batch_has_the_same_verdicts(name: str) -> None:
    sql = in_sql(name)
    rules = in_rules(name, None if name == "star" else sql)
    seen = set()
    for seed in range(80):
        random = Random(seed)
        old = database(random, sql)
        new = changed(random, sql, old)
        inserted, deleted = ({n: a[n] - b[n] for n in old} for a, b in ((new, old), (old, new)))
        after = updated(old, inserted, deleted)
        if not satisfies(sql, after):
            continue
        verdicts = []
        for schema in (sql, rules):
            contents = {n: frozenset(rows) for n, rows in Evaluation(schema).contents(old).items()}
            made = Warehouse(schema, MemoryEngine(), contents)
            given = made.given(Update(inserted, deleted, effective=True))
            found = check(made.decision.knowledge(made.engine, *given), schema.views)
            verdicts.append({n: type(verdict).__name__ for n, verdict in found.items()})
        assert verdicts[0] == verdicts[1], seed
        seen |= {*verdicts[0].values()}
    assert seen >= {SelfMaintainable.__name__, "NotSelfMaintainable"}


@pytest.mark.parametrize("name", ["star", "tpch"])
def test_the_warehouse_file_takes_either(name: str, tmp_path: Path) -> None:
    text = (EXAMPLES / name / "warehouse.toml").read_text(encoding="utf-8")
    assert 'program = "views.dl"' in text
    (tmp_path / "views.sql").write_text((EXAMPLES / name / "views.sql").read_text(encoding="utf-8"))
    (tmp_path / "w.toml").write_text(text.replace("views.dl", "views.sql"), encoding="utf-8")
    assert [v.name for v in read_warehouse_file(tmp_path / "w.toml").catalog.views]


def test_the_star_is_audited_alike() -> None:
    one, other = (
        audited(Search(c, Situation(effective=True), quick=True)).words()
        for c in (in_sql("star"), in_rules("star"))
    )
    assert one == other
