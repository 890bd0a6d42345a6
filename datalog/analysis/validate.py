"""All checks of a program at once."""

from __future__ import annotations

from dataclasses import replace

from datalog.analysis.arity import check_relations
from datalog.analysis.constraints import check_declarations
from datalog.analysis.dependency import check_recursion
from datalog.analysis.emptiness import check_emptiness
from datalog.analysis.grouping import check_grouping
from datalog.analysis.safety import check_safety
from datalog.analysis.type_checks import check_types
from datalog.diagnostics import Diagnostic, ProgramError, Severity, in_text_order
from datalog.model.rules import Program

_CHECKS = (
    check_declarations,
    check_relations,
    check_types,
    check_emptiness,
    check_safety,
    check_grouping,
    check_recursion,
)


def diagnose(program: Program) -> tuple[Diagnostic, ...]:
    """Everything that the checks find in a program, errors and warnings, in the order of the text.

    Args:
        program: any program.

    Returns:
        Diagnostics DL101 to DL301; empty if there is nothing to say.

    Example:
        >>> from datalog.syntax import parse_program
        >>> [str(d) for d in diagnose(parse_program("v(X) :- r(X), X = null."))]
        ['<program>:1:15: warning[DL114]: comparison with null is never true']
    """
    cores = tuple(block.core for view in program.views for block in view.blocks)
    everything = replace(program, rules=(*program.rules, *cores))
    return in_text_order(diagnostic for check in _CHECKS for diagnostic in check(everything))


def validate(program: Program) -> None:
    """Refuse a program that is not safe, not recursion-free, or not well typed.

    Args:
        program: any program.

    Raises:
        ProgramError: with everything that was found (DL101 to DL301), if an error is among it.

    Semantics:
        A program that passes has one meaning on every database, and can be evaluated in `evaluation_order`.

    Example:
        >>> from datalog.syntax import parse_program
        >>> validate(parse_program("v(X) :- r(X, Y), Y < 3."))
    """
    found = diagnose(program)
    if any(diagnostic.severity is Severity.ERROR for diagnostic in found):
        raise ProgramError(found)
