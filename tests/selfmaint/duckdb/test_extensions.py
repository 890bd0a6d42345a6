"""DuckDB's extensions: no file is loaded whose signature was not checked, whatever was loaded before."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from selfmaint.duckdb import loading
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.loading import extension_file


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the notes of this test are; nothing is known of any file."""
    monkeypatch.setattr(loading, "_checked", {})
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "selfmaint"


def load(file: Path) -> None:
    loading.load(Database().run, file)


def test_a_file_is_checked_once_and_again_when_it_has_changed(tmp_path: Path) -> None:
    name = "sqlite_scanner"
    good = extension_file(name)
    data = bytearray(good.read_bytes())
    copy = tmp_path / good.name
    copy.write_bytes(data)
    data[len(data) // 2] ^= 1
    spoilt = tmp_path / "spoilt" / good.name
    spoilt.parent.mkdir()
    spoilt.write_bytes(data)
    with pytest.raises(duckdb.Error, match="signature"):
        load(spoilt)
    load(copy)
    load(copy)
    assert list(loading._checked) == [copy]
    with pytest.raises(duckdb.Error, match="signature"):
        load(spoilt)
    spoilt.replace(copy)  # not written over: it is mapped into this process
    with pytest.raises(duckdb.Error, match="signature"):
        load(copy)


def test_what_is_checked_ahead_is_checked_where_it_is_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = extension_file("sqlite_scanner")
    spoilt = tmp_path / good.name
    spoilt.write_bytes(good.read_bytes()[:-1] + b"x")
    monkeypatch.setattr(loading, "extension_file", {"good": good, "spoilt": spoilt}.__getitem__)
    loading.check_ahead(["spoilt", "good"])
    load(good)
    assert list(loading._checked) == [good]
    with pytest.raises(duckdb.Error, match="signature"):
        load(spoilt)


@pytest.mark.parametrize("is_kept", [True, False])
def test_the_next_process_does_not_check_a_file_that_is_as_it_was(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_kept: bool
) -> None:
    if not is_kept:
        cache.parent.touch()  # no folder
    good = extension_file("sqlite_scanner")
    copy = tmp_path / good.name
    copy.write_bytes(good.read_bytes())
    checks, connect = [], duckdb.connect

    def counted(place: str, config: dict[str, object]) -> duckdb.DuckDBPyConnection:
        checks.append(config is loading.SETTINGS)
        return connect(place, config=config)

    monkeypatch.setattr(duckdb, "connect", counted)
    load(copy)
    load(copy)
    assert sum(checks) == 1
    loading._checked.clear()
    load(copy)
    assert sum(checks) == (1 if is_kept else 2)
    loading._checked.clear()
    copy.touch()
    load(copy)
    assert sum(checks) == (2 if is_kept else 3)
    assert [note.name.split(".")[0] for note in cache.parent.rglob("*.signed")] == [
        "sqlite_scanner"
    ] * is_kept
