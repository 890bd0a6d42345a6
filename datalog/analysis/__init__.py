"""What can be said of a program without data: evaluation order, safety, arities, types."""

from datalog.analysis.dependency import atoms_of, dependency_graph, evaluation_order
from datalog.analysis.keys import determined
from datalog.analysis.safety import bound_variables
from datalog.analysis.types import (
    are_kept_apart,
    column_types,
    common_type,
    constant_type,
    head_types,
    term_type,
    united_type,
    variable_types,
)
from datalog.analysis.validate import diagnose, validate

__all__ = [
    "are_kept_apart",
    "atoms_of",
    "bound_variables",
    "column_types",
    "common_type",
    "constant_type",
    "dependency_graph",
    "determined",
    "diagnose",
    "evaluation_order",
    "head_types",
    "term_type",
    "united_type",
    "validate",
    "variable_types",
]
