"""Errors: the diagnostics with the lines that they are about, as objects for JSON, and the pages of their codes."""

from __future__ import annotations

import sysconfig
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from datalog.copies import replace
from datalog.diagnostics import Code as ProgramCode
from datalog.diagnostics import Diagnostic, ProgramError, Severity, render
from datalog.errors import DatalogError
from datalog.model import Span
from selfmaint.api.file.secrets import masked
from selfmaint.errors import Code, QueryError, SelfmaintError, input_error
from selfmaint.report.values import Json
from selfmaint.warehouse.near import near_miss

LONGEST_SHOWN_BYTES = 4 * 2**20
"""Of longer files, such as change feeds, the place is named, and the line not shown."""


def diagnostics_of(error: SelfmaintError | DatalogError) -> tuple[Diagnostic, ...]:
    """What an error holds; nothing for one without diagnostics."""
    return error.diagnostics if isinstance(error, SelfmaintError | ProgramError) else ()


def errors_text(error: SelfmaintError | DatalogError) -> str:
    """The error for people, with the lines of the files that it is about, passwords starred out; warnings first.

    Of SQL that is kept as text it is said in how many places: that is no error.
    """
    found = sorted(diagnostics_of(error), key=lambda one: one.severity is Severity.ERROR)
    if not found:
        return f"error: {error}"
    is_kept = [
        one.code is ProgramCode.SQL_UNSUPPORTED and one.severity is not Severity.ERROR for one in found
    ]
    others = [one for one, kept in zip(found, is_kept, strict=True) if not kept]
    text = diagnostics_text(others, error.sources if isinstance(error, QueryError) else {})
    return f"note: {kept_as_text(sum(is_kept))} (DL402)\n{text}" if any(is_kept) else text


def kept_as_text(number: int) -> str:
    """How often SQL is kept as text."""
    return f"SQL that is kept as text in {'one place' if number == 1 else f'{number} places'}"


def diagnostics_text(found: Sequence[Diagnostic], texts: Mapping[str, str] | None = None) -> str:
    """Diagnostics for people, with the lines of the files and texts that they are about, passwords starred out."""
    sources = {**_sources(found), **(texts or {})}
    return "\n".join(render(diagnostic, sources) for diagnostic in _hints_once(found))


def _hints_once(found: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Diagnostics of which those of one code and hint have the hint at the last."""
    last = {(one.code, one.hint): one for one in found}
    return [one if last[one.code, one.hint] is one else replace(one, hint=None) for one in found]


def errors_json(error: SelfmaintError | DatalogError) -> Json:
    """`{errors: [{code, severity, message, place, label, note, hint}]}`."""
    found = diagnostics_of(error)
    if not found:
        return {"errors": [{"code": None, "severity": "error", "message": str(error)}]}
    return {"errors": [_json(diagnostic) for diagnostic in found]}


def warnings_json(found: Sequence[Diagnostic]) -> Json:
    """`{warnings: [{code, severity, message, place, label, note, hint}]}`."""
    return {"warnings": [_json(diagnostic) for diagnostic in found]}


def _json(diagnostic: Diagnostic) -> Json:
    return {
        "code": diagnostic.code.value,
        "severity": diagnostic.severity.value,
        "message": diagnostic.message,
        "place": _place(diagnostic.span),
        "label": diagnostic.label or None,
        "note": diagnostic.note,
        "hint": diagnostic.hint,
    }


def _place(span: Span | None) -> Json:
    if span is None:
        return None
    return {"source": span.source, "line": span.line, "column": span.column, "length": span.length}


def _sources(found: Sequence[Diagnostic]) -> dict[str, str]:
    """The texts of the files that diagnostics point into."""
    texts = {}
    for name in {span.source for span in _spans(found)}:
        path = Path(name)
        try:
            if path.stat().st_size > LONGEST_SHOWN_BYTES:
                continue
            texts[name] = masked(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            continue
    return texts


def _spans(found: Iterable[Diagnostic]) -> Iterable[Span]:
    for diagnostic in found:
        if diagnostic.span is not None:
            yield diagnostic.span
        yield from (other.span for other in diagnostic.context)


_CHECKOUT = Path(__file__).resolve().parents[2] / "docs" / "codes"
_INSTALLED = Path(sysconfig.get_path("data")) / "share" / "selfmaint" / "codes"


def all_codes() -> tuple[str, ...]:
    """Every code, of programs and of warehouses."""
    return tuple(code.value for enum in (ProgramCode, Code) for code in enum)


def code_page(code: str) -> str:
    """The page of a code, in Markdown.

    Raises:
        InputError: SM103 no such code, or a page that is not installed.
    """
    if code not in all_codes():
        raise input_error(
            Code.MISSING_CONTENTS, f"there is no code `{code}`", near_miss(code, all_codes(), "code")
        )
    for folder in (_CHECKOUT, _INSTALLED):
        path = folder / f"{code}.md"
        if path.is_file():
            return path.read_text(encoding="utf-8")
    raise input_error(Code.MISSING_CONTENTS, f"the page of `{code}` is not installed")
