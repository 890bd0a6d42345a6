"""Finding the value in a text file that is not of its column's type; Spark is not needed for that."""

from __future__ import annotations

from pathlib import Path

import pytest

from datalog.model import ColumnType, TypeName
from selfmaint.store.bad_values import (
    REMEMBERED,
    SCANNED_BYTES,
    BadValue,
    TextReading,
    bad_values,
    holds,
    placed,
    remember,
)
from selfmaint.store.formats import Format

INT, STRING = ColumnType(TypeName.INT), ColumnType(TypeName.STRING)
TYPES = {"n": INT, "s": STRING}


@pytest.mark.parametrize(
    ("type_", "good", "bad"),
    [
        ("tinyint", ["-128", "+7", "127"], ["128", "1.0", "", " 1", "1e2"]),
        ("bigint", ["-9223372036854775808"], ["9223372036854775808", "9" * 5000]),
        (
            "double",
            ["1", "1e5", "1d", "NaN", "-Inf", "Infinity", "-.5", " 1"],
            ["1,5", "x", "--1", "nan", "1_0", "\u0667"],
        ),
        ("boolean", ["true", "FALSE"], ["t", "1", "yes"]),
        ("date", ["2024-02-29", "2024-1-2", "2024-01-02T00:00:00", "20240102"], ["2023-02-29", "x"]),
        (
            "timestamp",
            ["2024-01-02 03:04:05.1Z", "2024-01-02", "2024-01-02T3"],
            ["2024-01-02 25:00:00", "now"],
        ),
        ("string", ["", "x"], []),
        ("any", ["", "x"], []),
    ],
)
def test_what_a_type_may_hold(type_: str, good: list[str], bad: list[str]) -> None:
    declared = ColumnType(TypeName(type_))
    assert [text for text in good if not holds(declared, text)] == []
    assert [text for text in bad if holds(declared, text)] == []


def test_a_decimal_is_never_rounded() -> None:
    declared = ColumnType(TypeName.DECIMAL, 5, 2)
    good = ["123.45", "-0", "1e2", "100", "0.10000", "999.99"]
    bad = ["1.239", "1000", "x", "1_0", " 1", "NaN", "1e-3"]
    assert [text for text in good if not holds(declared, text)] == []
    assert [text for text in bad if holds(declared, text)] == []
    assert holds(ColumnType(TypeName.DECIMAL), "1.23456")
    assert holds(ColumnType(TypeName.DECIMAL, 38, 0), "9" * 38)
    assert not holds(ColumnType(TypeName.DECIMAL, 38, 0), "9" * 39)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("n,s\n1,a\n,b\n", None),
        ("n,s\n1,a\n\n2,b\n", None),
        ("s,n\na,1\nbc,two\n", BadValue(3, "n", "two", position=4)),
        ('s,n\n"a,b",two\n', BadValue(2, "n", "two", position=7)),
        ('s,n\n"a\nb",two\n', BadValue(2, "n", "two")),
        ('s,n\n"a\n\nb",1\nc,two\n', BadValue(5, "n", "two", position=3)),
        ("n,s\n1\n", BadValue(2, None, "1", "it has 1 values, and the header 2")),
        ('s,n\n"a, ""b""",two\n', BadValue(2, "n", "two", position=12)),
        ('s,n\n"a","two"\n', BadValue(2, "n", "two", position=6)),
        ("\ufeffn,s\nx,a\n", BadValue(2, "n", "x", position=1)),
    ],
)
def test_the_bad_values_of_a_csv_file(text: str, found: BadValue | None, tmp_path: Path) -> None:
    file = tmp_path / "v.csv"
    file.write_text(text, encoding="utf-8", newline="")
    assert bad_values(file, TYPES, is_json=False, limit=1) == (() if found is None else (found,))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"n": 1, "s": "a"}\n\n{"s": null, "more": []}\n', None),
        ('{"s": "two", "n": "two"}\n', BadValue(1, "n", "two", position=20)),
        ('{"n": 1}\n{"n": true}\n', BadValue(2, "n", "true", position=7)),
        ('{"n": [1]}\n', BadValue(1, "n", "[1]", position=7)),
        ('{"n": "1"}\n', BadValue(1, "n", "1", position=8)),
        ('{"n": 1.0}\n', BadValue(1, "n", "1.0", position=7)),
        ('{"n": 1e2}\n', BadValue(1, "n", "1e2", position=7)),
        ("[1]\n", BadValue(1, None, "[1]", "no JSON object")),
        ('{"n": 1}\n{"n": \n', BadValue(2, None, '{"n":', "no JSON", position=6)),
    ],
)
def test_the_bad_values_of_json_lines(text: str, found: BadValue | None, tmp_path: Path) -> None:
    file = tmp_path / "v.jsonl"
    file.write_text(text, encoding="utf-8")
    assert bad_values(file, TYPES, is_json=True, limit=1) == (() if found is None else (found,))


def test_several_bad_values_are_found_up_to_a_limit(tmp_path: Path) -> None:
    file = tmp_path / "v.csv"
    file.write_text("n,s\nx,a\n1,b\ny,c\nz,d\n", encoding="utf-8")
    found = bad_values(file, TYPES, is_json=False, limit=2)
    assert [(value.line, value.text) for value in found] == [(2, "x"), (4, "y")]


@pytest.mark.parametrize(
    ("type_", "text", "hint"),
    [
        ("double", "nan", "write it as `NaN`"),
        ("double", "+inf", "write it as `Infinity`"),
        ("double", "-infinity", "write it as `-Infinity`"),
        ("double", "none", "leave the field empty for null"),
        ("double", "1.234.567", "write it with a point and no other mark, as `1234.5`"),
        ("int", "1.5", "write a whole number, as `1234`"),
        ("int", "99999999999", "correct the value"),
        ("boolean", "yes", "such a value is written `true` or `false`"),
        ("date", "yesterday", "such a value is written `2026-01-31`"),
    ],
)
def test_how_a_value_of_a_type_is_written(type_: str, text: str, hint: str, tmp_path: Path) -> None:
    file = tmp_path / "v.csv"
    file.write_text(f"x\n{text}\n")
    remember(str(file), TextReading("v", {"x": ColumnType(TypeName(type_))}, Format.CSV))
    (found,) = placed(str(file))
    more = "" if "write it as" in hint else "; or declare `x` with another type"
    assert found.hint == hint + more


def test_of_what_cannot_be_read_here_nothing_is_said(tmp_path: Path) -> None:
    file = tmp_path / "v.csv"
    assert bad_values(file, TYPES, is_json=False, limit=1) == ()
    file.write_bytes(b"n,s\n\xff,a\n")
    assert bad_values(file, TYPES, is_json=False, limit=1) == ()
    with file.open("wb") as huge:
        huge.write(b"n,s\nx,a\n")
        huge.truncate(SCANNED_BYTES + 1)  # sparse
    assert bad_values(file, TYPES, is_json=False, limit=1) == ()


def test_a_place_is_that_of_the_latest_reading(tmp_path: Path) -> None:
    folder = tmp_path / "v 1.csv"
    folder.mkdir()
    (folder / "part.csv").write_text(f"n,s\n{'9' * 200},a\n", encoding="utf-8")
    assert placed(str(folder)) == ()
    remember(str(folder), TextReading("v", {"n": STRING}, Format.CSV))
    assert placed(str(folder)) == ()
    remember(str(folder), TextReading("v", TYPES, Format.CSV))
    (found,) = placed(f"file://{folder}/part.csv".replace(" ", "%20"))
    assert (found,) == placed(str(folder))
    assert found.message == f"column `n` of `v` is `int`, which cannot hold `{'9' * 80}...`"
    assert str(found.span) == f"{folder}/part.csv:2:1"
    for number in range(REMEMBERED):
        remember(str(tmp_path / str(number)), TextReading("v", TYPES, Format.CSV))
    assert placed(str(folder)) == ()
    assert placed("s3://bucket/v.csv") == ()
