"""Diagnostics: how they are shown, and that each code has a page and a golden that raises it."""

from __future__ import annotations

import os
import pickle
import re
from enum import Enum
from pathlib import Path

import pytest

from datalog.analysis import diagnose
from datalog.diagnostics import Code, ContextSpan, Diagnostic, ProgramError, Severity, in_text_order, render
from datalog.errors import DatalogError
from datalog.model import Span
from datalog.sql.views import SqlText, read_sql
from datalog.syntax import parse_program

ROOT = Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests" / "golden" / "diagnostics"
PAGES = ROOT / "docs" / "codes"
UPDATE = os.environ.get("UPDATE_GOLDENS") == "1"
CASES = sorted(path.name for path in GOLDENS.iterdir() if path.is_dir())
CODES = [code.value for code in Code]


def found_in(text: str, source: str, language: str = "datalog") -> tuple[Diagnostic, ...]:
    try:
        if language == "sql":
            return read_sql([SqlText(text, source)]).warnings
        return diagnose(parse_program(text, source))
    except ProgramError as error:
        return error.diagnostics


def program_of(case: str) -> tuple[str, str, str]:
    """A golden's text, its name, and its language."""
    (path,) = (GOLDENS / case).glob("program.*")
    return path.read_text(encoding="utf-8"), path.name, "sql" if path.suffix == ".sql" else "datalog"


# ------------------------------------------------------------------------------------------ goldens, pages


@pytest.mark.parametrize("case", CASES)
def test_golden(case: str) -> None:
    text, name, language = program_of(case)
    found = found_in(text, name, language)
    shown = "\n\n".join(render(diagnostic, {name: text}) for diagnostic in found) + "\n"
    expected = GOLDENS / case / "expected.txt"
    if UPDATE:
        expected.write_text(shown, encoding="utf-8")
    assert expected.is_file(), f"no golden; UPDATE_GOLDENS=1 writes it:\n{shown}"
    assert shown == expected.read_text(encoding="utf-8")
    # A case is called after the code that it raises, with a suffix if the code has several.
    assert case.split("-", maxsplit=1)[0] in {diagnostic.code.value for diagnostic in found}


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_golden(code: str) -> None:
    assert code in {case.split("-")[0] for case in CASES}


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_page_whose_example_raises_it(code: str) -> None:
    page = (PAGES / f"{code}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# {code}: ")
    examples = re.findall(r"^```(datalog|sql)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    (language, bad), (other, good) = examples
    assert language == other
    assert {diagnostic.code.value for diagnostic in found_in(bad, "page", language)} == {code}
    assert found_in(good, "page", language) == ()


def test_no_page_without_a_code() -> None:
    assert {path.stem for path in PAGES.glob("DL*.md")} == set(CODES)


# -------------------------------------------------------------------------------------------------- values


def test_messages_follow_the_house_style() -> None:
    for case in CASES:
        text, _, language = program_of(case)
        for diagnostic in found_in(text, "p", language):
            texts = [diagnostic.message, diagnostic.label, diagnostic.note or "", diagnostic.hint or ""]
            texts += [context.label for context in diagnostic.context]
            for said in filter(None, texts):
                assert said.count("`") % 2 == 0, said
                # Quoted text may hold anything; what is around it starts low and does not stop.
                assert not said.endswith((". ", " ")), said
                assert not said.endswith("."), said
                assert not said[0].isupper() or said.split()[0].isupper(), said


def test_another_packages_codes_fit() -> None:
    class Other(Enum):
        THING = "SM999"

    assert render(Diagnostic(code=Other.THING, message="a thing"), {}) == "error[SM999]: a thing"


def test_text_order_drops_duplicates_and_puts_the_placeless_first() -> None:
    late, early = (Diagnostic(Code.RECURSION, "x", Span(line, 1)) for line in (2, 1))
    nowhere = Diagnostic(Code.RECURSION, "x")
    assert in_text_order([late, early, late, nowhere]) == (nowhere, early, late)


def test_program_error_carries_its_diagnostics_through_pickling() -> None:
    error = ProgramError([Diagnostic(Code.RECURSION, "`p`", Span(1, 2, 3, "f"))])
    assert isinstance(error, DatalogError)
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - it was pickled in this line
    assert again.diagnostics == error.diagnostics
    assert str(again) == "f:1:2: error[DL301]: `p`"


# ------------------------------------------------------------------------------------------------- showing


def shown(span: Span, text: str, label: str = "here", **more: object) -> list[str]:
    diagnostic = Diagnostic(Code.RECURSION, "m", span, label, **more)  # type: ignore[arg-type]
    return render(diagnostic, {"f": text}).split("\n")


def test_render_shows_place_note_and_hint() -> None:
    assert shown(Span(2, 3, 2, "f"), "one\nabcde\n", note="n", hint="h") == [
        "error[DL301]: m",
        "  --> f:2:3",
        "   | abcde",
        "   |   ^^ here",
        "   = note: n",
        "   = hint: h",
    ]


def test_render_warning_without_a_place() -> None:
    diagnostic = Diagnostic(Code.NULL_COMPARISON, "m", severity=Severity.WARNING)
    assert render(diagnostic, {}) == "warning[DL114]: m"


def test_render_without_the_source_says_the_place_and_label() -> None:
    assert shown(Span(2, 3, 2, "g"), "one") == ["error[DL301]: m", "  --> g:2:3", "   | here"]


def test_render_beyond_the_text_says_the_place() -> None:
    assert shown(Span(9, 1, 1, "f"), "one", "") == ["error[DL301]: m", "  --> f:9:1"]


def test_render_at_the_end_of_a_line_points_behind_it() -> None:
    assert shown(Span(1, 4, 1, "f"), "one\r\ntwo")[2:] == ["   | one", "   |    ^ here"]


def test_render_context_on_the_same_line_repeats_nothing() -> None:
    context = (ContextSpan(Span(1, 1, 1, "f"), "same line"), ContextSpan(Span(2, 1, 1, "f"), "other line"))
    assert shown(Span(1, 3, 1, "f"), "a b\nc", context=context)[1:] == [
        "  --> f:1:3",
        "   | a b",
        "   |   ^ here",
        "   | - same line",
        "  ::: f:2:1",
        "   | c",
        "   | - other line",
    ]


def test_render_keeps_carets_under_tabs_and_wide_characters() -> None:
    assert shown(Span(1, 2, 1, "f"), "\tx")[2:] == ["   | \tx", "   | \t^ here"]
    assert shown(Span(1, 3, 2, "f"), "注文注文")[2:] == ["   | 注文注文", "   |     ^^^^ here"]
    assert shown(Span(1, 3, 1, "f"), "e\u0301x")[2:] == ["   | e\u0301x", "   |  ^ here"]


def test_render_shows_no_control_characters() -> None:
    diagnostic = Diagnostic(Code.RECURSION, "a\x1b[31m\nb", Span(1, 1, 1, "f"), "c\rd", hint="e\x00f")
    assert not set(render(diagnostic, {"f": "x\x1b[2Jy"})) & set("\x1b\r\x00")
    assert "\x1b" not in str(diagnostic)


def test_render_clips_long_lines_around_the_span() -> None:
    text = "a" * 1000 + "bad" + "c" * 1000
    _, place, line, marks = shown(Span(1, 1001, 3, "f"), text)
    assert place == "  --> f:1:1001"
    assert len(line) < 200
    start = line.index("bad")
    assert marks[start:] == "^^^ here"
    assert marks[:start].strip() == "|"


def test_render_clips_a_long_span() -> None:
    _, _, line, marks = shown(Span(1, 1, 1000, "f"), "a" * 1000)
    assert len(line) < 200
    assert len(marks) < 200
