"""Containment mappings; containment and minimisation of conjunctive queries and their unions."""

from datalog.containment.conjunctive import contained_in, minimise, union_contained_in
from datalog.containment.mapping import containment_mapping, mappings
from datalog.containment.orders import contained_in_union

__all__ = [
    "contained_in",
    "contained_in_union",
    "containment_mapping",
    "mappings",
    "minimise",
    "union_contained_in",
]
