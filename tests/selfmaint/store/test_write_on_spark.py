"""Staged writes on real files: whatever fails, wherever the process dies, all paths are old or all are new.

A crash is simulated by letting the n-th rename and every later one fail: what the process would have undone
stays undone, as after a kill. Then `recover` runs, as at the next start.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from selfmaint.errors import Code, SelfmaintError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from selfmaint.store.write import StagedWrites

OLD, NEW = [1, 2], [2, 3]
RENAMES = 4  # two for each of two views


@pytest.fixture(scope="module")
def old_contents(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("old") / "contents"
    numbers(spark, OLD).write.parquet(f"file://{path}")
    return path


@pytest.fixture
def views(old_contents: Path, tmp_path: Path) -> list[Path]:
    """Two views with old contents, in two directories."""
    paths = [tmp_path / "a" / "v one", tmp_path / "b" / "w"]
    for path in paths:
        shutil.copytree(old_contents, path)
    return paths


def numbers(spark: SparkSession, values: list[int]) -> DataFrame:
    import pyarrow as pa

    return spark.createDataFrame(pa.table({"n": pa.array(values, pa.int64())})).coalesce(1)


def contents(spark: SparkSession, path: Path) -> list[int]:
    from selfmaint.spark.formats import spark_path

    return sorted(row.n for row in spark.read.parquet(spark_path(str(path))).collect())


def staged(spark: SparkSession, views: list[Path]) -> StagedWrites:
    """Entered, everything written, not switched."""
    from selfmaint.spark.formats import writing
    from selfmaint.store.write import StagedWrites

    writes = StagedWrites(views).__enter__()
    for path in views:
        writes.add(path, writing(numbers(spark, NEW)))
    return writes


def leftovers(views: list[Path]) -> list[str]:
    known = {path.name for path in views}
    return sorted(p.name for v in views for p in v.parent.iterdir() if p.name not in known)


def failing_rename(first: int, last: int | None = None) -> Callable[..., None]:
    """A rename whose calls from the `first` to the `last` fail."""
    real, calls = os.rename, iter(range(1, 1000))

    def rename(source: object, target: object) -> None:
        call = next(calls)
        if first <= call and (last is None or call <= last):
            raise OSError(28, "no space left on device")
        real(source, target)  # type: ignore[arg-type]

    return rename


def test_all_views_are_switched_together(spark: SparkSession, views: list[Path]) -> None:
    from selfmaint.spark.formats import writing
    from selfmaint.store.write import StagedWrites, recover

    with StagedWrites(views) as writes:
        for path in views:
            old = spark.read.parquet(f"file://{path}")
            writes.add(path, writing(old.where("n <> 1").union(numbers(spark, [3]))))
        assert [contents(spark, path) for path in views] == [OLD, OLD]
        writes.switch()
    assert [contents(spark, path) for path in views] == [NEW, NEW]
    assert leftovers(views) == []
    assert recover(views) == []


@pytest.mark.parametrize("call", range(1, RENAMES + 1))
def test_a_failing_rename_puts_every_old_contents_back(
    call: int, spark: SparkSession, views: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = staged(spark, views)
    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", failing_rename(call, call))
        with pytest.raises(SelfmaintError, match="no space left") as failed:
            writes.switch()
    writes.__exit__(None, None, None)
    assert failed.value.diagnostics[0].code is Code.WRITE_FAILED
    assert [contents(spark, path) for path in views] == [OLD, OLD]
    assert leftovers(views) == []


@pytest.mark.parametrize("call", range(1, RENAMES + 2))
def test_a_crash_before_a_rename_is_undone_at_the_next_start(
    call: int, spark: SparkSession, views: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from selfmaint.store.journal import Journal, Outcome, State
    from selfmaint.store.write import recover

    record = Journal.record

    def record_until_done(journal: Journal, state: State) -> None:
        if state is State.DONE:  # the crash after the last rename, before it counts
            raise OSError(28, "no space left on device")
        record(journal, state)

    writes = staged(spark, views)
    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", failing_rename(call))
        patched.setattr(Journal, "record", record_until_done)
        with pytest.raises(SelfmaintError):
            writes.switch()
    writes.__exit__(None, None, None)
    assert {path.exists() for path in views} == ({True} if call in (1, 3, 5) else {True, False})
    outcomes = recover(views)
    # Before the first rename there is nothing that a rename must undo: the dying process still tidies up.
    assert [o.outcome for o in outcomes] == ([] if call == 1 else [Outcome.UNDONE])
    assert [contents(spark, path) for path in views] == [OLD, OLD]
    assert leftovers(views) == []
    assert recover(views) == []


@pytest.mark.parametrize("call", range(1, RENAMES + 1))
def test_a_crash_during_recovery_is_recovered_from(
    call: int, spark: SparkSession, views: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from selfmaint.store.write import recover

    writes = staged(spark, views)
    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", failing_rename(RENAMES))
        with pytest.raises(SelfmaintError):
            writes.switch()
    writes.__exit__(None, None, None)
    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", failing_rename(call))
        if call <= 3:  # two to undo the first view, one to undo the second
            with pytest.raises(SelfmaintError, match="cannot be put right"):
                recover(views)
        else:
            recover(views)
    recover(views)
    assert [contents(spark, path) for path in views] == [OLD, OLD]
    assert leftovers(views) == []


def test_a_crash_after_everything_was_switched_is_completed(
    spark: SparkSession, views: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from selfmaint.store.journal import Journal, Outcome
    from selfmaint.store.write import recover

    writes = staged(spark, views)
    with monkeypatch.context() as patched:
        patched.setattr(Journal, "complete", lambda _: ())
        writes.switch()
    writes.__exit__(None, None, None)
    assert any(".old-" in name for name in leftovers(views))
    assert [(o.outcome, o.paths) for o in recover(views)] == [(Outcome.COMPLETED, tuple(views))]
    assert [contents(spark, path) for path in views] == [NEW, NEW]
    assert leftovers(views) == []


def test_a_crash_while_writing_leaves_nothing_after_the_next_start(
    spark: SparkSession, views: list[Path]
) -> None:
    from selfmaint.spark.formats import writing
    from selfmaint.store.write import StagedWrites

    writes = StagedWrites(views).__enter__()
    writes.add(views[0], writing(numbers(spark, NEW)))
    writes._journal = None  # the process is gone: nobody undoes, and its lock ends
    writes.__exit__(None, None, None)
    assert len(leftovers(views)) == 2
    with StagedWrites(views):
        pass
    assert [contents(spark, path) for path in views] == [OLD, OLD]
    assert leftovers(views) == []


def test_recovery_finds_views_that_were_moved_since(
    spark: SparkSession, views: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from selfmaint.store.write import recover

    writes = staged(spark, views)
    with monkeypatch.context() as patched:
        patched.setattr(os, "rename", failing_rename(RENAMES))
        with pytest.raises(SelfmaintError, match="cannot be put back"):
            writes.switch()
    writes.__exit__(None, None, None)
    moved = [tmp_path / "moved" / path.relative_to(tmp_path) for path in views]
    (tmp_path / "moved").mkdir()
    for directory in ("a", "b"):
        (tmp_path / directory).rename(tmp_path / "moved" / directory)
    recover(moved)
    assert [contents(spark, path) for path in moved] == [OLD, OLD]
    assert leftovers(moved) == []


def test_leaving_without_a_switch_changes_nothing(spark: SparkSession, views: list[Path]) -> None:
    from selfmaint.spark.formats import writing
    from selfmaint.store.write import StagedWrites

    def fail_midway() -> None:
        with StagedWrites(views) as writes:
            writes.add(views[0], writing(numbers(spark, NEW)))
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_midway()
    with StagedWrites(views) as writes:
        writes.add(views[0], writing(numbers(spark, NEW)))
        with pytest.raises(ValueError, match="nothing was written"):
            writes.switch()
    assert [contents(spark, path) for path in views] == [OLD, OLD]
    assert leftovers(views) == []


def test_first_contents_are_put_in_place_or_not_at_all(
    spark: SparkSession, views: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path / "c" / "new"  # sorted after the others, so that undoing meets it first
    writes = staged(spark, [*views, first])
    with monkeypatch.context() as patched:
        patched.setattr("selfmaint.store.write.sync", lambda path: (path / "gone").stat())
        with pytest.raises(SelfmaintError):
            writes.switch()
    writes.__exit__(None, None, None)
    assert not first.exists()
    assert [contents(spark, path) for path in views] == [OLD, OLD]
    writes = staged(spark, [first])
    writes.switch()
    writes.__exit__(None, None, None)
    assert contents(spark, first) == NEW
    assert leftovers([*views, first]) == []


def test_one_writer_at_a_time(views: list[Path]) -> None:
    from selfmaint.store.write import StagedWrites, recover

    with StagedWrites(views):
        with pytest.raises(SelfmaintError, match="another process"), StagedWrites(views[:1]):
            pass
        with pytest.raises(SelfmaintError, match="another process"):
            recover(views)
    assert recover(views) == []


def test_contents_keep_their_form(spark: SparkSession, tmp_path: Path) -> None:
    from selfmaint.spark.formats import writing
    from selfmaint.store.write import StagedWrites

    target, link = tmp_path / "elsewhere", tmp_path / "link"
    numbers(spark, OLD).write.json(f"file://{target}")
    link.symlink_to(target)
    file = tmp_path / "v.csv"
    file.write_text("n\n1\n2\n", encoding="utf-8")
    with StagedWrites([file, link]) as writes:
        writes.add(file, writing(numbers(spark, NEW)))
        writes.add(link, writing(numbers(spark, NEW)))
        writes.switch()
    assert file.read_text(encoding="utf-8") == "n\n2\n3\n"
    assert link.is_symlink()
    assert sorted(row.n for row in spark.read.json(f"file://{target}").collect()) == NEW
    assert sorted(p.name for p in tmp_path.iterdir()) == ["elsewhere", "link", "v.csv"]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_a_single_file_stays_one_however_the_rows_are_computed(
    spark: SparkSession, tmp_path: Path, suffix: str
) -> None:
    from selfmaint.spark.formats import spark_path, writing
    from selfmaint.store.write import StagedWrites

    file = tmp_path / f"v.{suffix}"
    parts = numbers(spark, OLD).union(numbers(spark, [3])).union(numbers(spark, [4]))
    with StagedWrites([file]) as writes:
        writes.add(file, writing(parts.coalesce(1)))
        writes.switch()
    if file.is_dir():  # as new contents are
        (part,) = file.glob("part-*")
        part.rename(tmp_path / "one")
        shutil.rmtree(file)
        (tmp_path / "one").rename(file)
    with StagedWrites([file]) as writes:
        writes.add(file, writing(parts))
        writes.switch()
    assert file.is_file()
    read = {
        "parquet": spark.read.parquet,
        "csv": spark.read.option("header", "true").csv,
        "jsonl": spark.read.json,
    }
    assert sorted(int(row.n) for row in read[suffix](spark_path(str(file))).collect()) == [1, 2, 3, 4]


def test_columns_of_nulls_and_no_rows_at_all_can_be_written(spark: SparkSession, tmp_path: Path) -> None:
    from datalog.model import ANY, ColumnType, TypeName
    from selfmaint.spark import SparkEngine
    from selfmaint.spark.formats import writing
    from selfmaint.spark.tables import read_contents
    from selfmaint.store.expected import Expected
    from selfmaint.store.write import StagedWrites

    engine = SparkEngine(spark)
    expected = Expected("v", ("x", "y"), (ANY, ColumnType(TypeName.INT)))
    rows = {
        tmp_path / f"{name}.{suffix}": found
        for name, found in (("empty", []), ("nulls", [(None, 1)]))
        for suffix in ("parquet", "csv", "jsonl")
    }
    with StagedWrites(rows) as writes:
        for path, found in rows.items():
            writes.add(path, writing(engine.load(found, expected.columns, expected.types)))
        writes.switch()
    for path, found in rows.items():
        assert engine.sample(read_contents(spark, str(path), expected), 9) == found, path.name


def test_null_in_a_csv_of_one_column_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    from datalog.model import ANY
    from selfmaint.spark import SparkEngine
    from selfmaint.spark.formats import writing
    from selfmaint.store.write import StagedWrites

    frame = SparkEngine(spark).load([(1,), (None,)], ["x"], [ANY])
    with (
        StagedWrites([tmp_path / "v.csv"]) as writes,
        pytest.raises(SelfmaintError, match="cannot hold null"),
    ):
        writes.add(tmp_path / "v.csv", writing(frame))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_cannot_be_written_to_is_reported(tmp_path: Path) -> None:
    from selfmaint.store.write import StagedWrites

    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(SelfmaintError) as failed, StagedWrites([tmp_path / "file" / "v"]):
        pass
    assert failed.value.diagnostics[0].code is Code.WRITE_FAILED


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_what_executors_elsewhere_wrote_is_counted(
    suffix: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a cluster whose executors share the folder, and one in which one of them does not."""
    from selfmaint.spark import formats
    from selfmaint.store.formats import data_files, format_of

    rows = spark.range(7, numPartitions=2).selectExpr(
        "id", "'two\nlines, \"quoted\"' AS text", "NULL AS nothing"
    )
    monkeypatch.setattr(formats, "is_on_this_machine", lambda _: False)
    formats.write_files(rows, tmp_path / "all", format_of(f"x.{suffix}"), "id")
    assert data_files(tmp_path / "all")
    saved = formats._saved

    def partly(frame: DataFrame, path: Path, *how: Any) -> None:
        saved(frame, path, *how)
        data_files(path)[0].unlink()

    monkeypatch.setattr(formats, "_saved", partly)
    with pytest.raises(SelfmaintError, match=r"wrote 7 rows to .*, and [34] of them are there") as refused:
        formats.write_files(rows, tmp_path / "some", format_of(f"x.{suffix}"))
    assert refused.value.diagnostics[0].code is Code.WRITE_FAILED
