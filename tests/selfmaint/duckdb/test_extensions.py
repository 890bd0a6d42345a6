"""DuckDB's extensions: no file is loaded whose signature was not checked, whatever was loaded before."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from selfmaint.duckdb import loading
from selfmaint.duckdb.database import Database
from selfmaint.duckdb.loading import extension_file


def load(file: Path) -> None:
    loading.load(Database().run, file)


def test_a_file_is_checked_once_and_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_checked", {})
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
    assert list(loading._checked) == [str(copy)]
    with pytest.raises(duckdb.Error, match="signature"):
        load(spoilt)
    spoilt.replace(copy)  # not written over: it is mapped into this process
    with pytest.raises(duckdb.Error, match="signature"):
        load(copy)


def test_what_is_checked_ahead_is_checked_where_it_is_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_checked", {})
    good = extension_file("sqlite_scanner")
    spoilt = tmp_path / good.name
    spoilt.write_bytes(good.read_bytes()[:-1] + b"x")
    monkeypatch.setattr(loading, "extension_file", {"good": good, "spoilt": spoilt}.__getitem__)
    loading.check_ahead(["spoilt", "good"])
    load(good)
    assert list(loading._checked) == [str(good)]
    with pytest.raises(duckdb.Error, match="signature"):
        load(spoilt)
