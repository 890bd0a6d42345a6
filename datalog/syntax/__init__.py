"""The language's text: reading programs and showing them; `parse_program(show(p)) == p`."""

from datalog.syntax.parse import parse_program, parse_rule
from datalog.syntax.show import show

__all__ = ["parse_program", "parse_rule", "show"]
