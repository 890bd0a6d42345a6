"""The pages of the diagnostics' codes."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from datalog.diagnostics import Code as ProgramCode
from selfmaint.errors import Code, input_error
from selfmaint.warehouse.near import near_miss

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
