"""The language's text: reading programs and showing them; `parse_program(show(p)) == p`."""

from typing import TYPE_CHECKING

from datalog.syntax.show import show

if TYPE_CHECKING:
    from datalog.syntax.parse import parse_program, parse_rule

__all__ = ["parse_program", "parse_rule", "show"]


def __getattr__(name: str) -> object:
    # Lark, by which rules are read, is loaded where some are: programs of SQL have none.
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from datalog.syntax import parse  # noqa: PLC0415 - see above

    return getattr(parse, name)
