"""What can be said of a program without data: evaluation order, safety, arities, types."""

from datalog.analysis.dependency import atoms_of, dependency_graph, evaluation_order
from datalog.analysis.keys import determined
from datalog.analysis.safety import bound_variables
from datalog.analysis.types import column_types, common_type, constant_type, term_type, variable_types
from datalog.analysis.validate import diagnose, validate

__all__ = [
    "atoms_of",
    "bound_variables",
    "column_types",
    "common_type",
    "constant_type",
    "dependency_graph",
    "determined",
    "diagnose",
    "evaluation_order",
    "term_type",
    "validate",
    "variable_types",
]
