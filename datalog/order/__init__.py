"""The theory of `=`, `!=`, `<`, `<=`, `>`, `>=` between variables and constants, over typed domains."""

from datalog.order.domains import Types, family_of
from datalog.order.implication import (
    NormalForm,
    closure,
    constants_compare,
    implies,
    normalise,
    satisfiable,
    strongest,
)
from datalog.order.points import Point, point_of, precedes, value_of
from datalog.order.solve import Solution, assign, solve

__all__ = [
    "NormalForm",
    "Point",
    "Solution",
    "Types",
    "assign",
    "closure",
    "constants_compare",
    "family_of",
    "implies",
    "normalise",
    "point_of",
    "precedes",
    "satisfiable",
    "solve",
    "strongest",
    "value_of",
]
