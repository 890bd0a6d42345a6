"""Rewrites: programs to programs that mean the same, one file a rewrite."""

from datalog.rewrite.comparisons import simplify_comparisons, simplify_rule
from datalog.rewrite.demand import demand
from datalog.rewrite.emptiness import drop_empty
from datalog.rewrite.equalities import propagate_equalities
from datalog.rewrite.guards import guard_joins, guarded_variables
from datalog.rewrite.negations import drop_implied_negations, without_given
from datalog.rewrite.nulls import drop_null_tests
from datalog.rewrite.pipeline import SIMPLIFY, minimised, simplify
from datalog.rewrite.plain_views import Beyond, MoreThanRules, plain_rules
from datalog.rewrite.reachable import drop_unreachable
from datalog.rewrite.subsumption import drop_subsumed
from datalog.rewrite.unfold import is_plain, unfold, unfold_negation, unfold_single_rules
from datalog.rewrite.unused_columns import drop_unused_columns

__all__ = [
    "SIMPLIFY",
    "Beyond",
    "MoreThanRules",
    "demand",
    "drop_empty",
    "drop_implied_negations",
    "drop_null_tests",
    "drop_subsumed",
    "drop_unreachable",
    "drop_unused_columns",
    "guard_joins",
    "guarded_variables",
    "is_plain",
    "minimised",
    "plain_rules",
    "propagate_equalities",
    "simplify",
    "simplify_comparisons",
    "simplify_rule",
    "unfold",
    "unfold_negation",
    "unfold_single_rules",
    "without_given",
]
