"""Rewrites: programs to programs that mean the same."""

from datalog.rewrite.comparisons import propagate_equalities, simplify_comparisons, simplify_rule
from datalog.rewrite.demand import demand
from datalog.rewrite.guards import guard_joins, guarded_variables
from datalog.rewrite.lookups import held_apart
from datalog.rewrite.negations import drop_implied_negations, without_given
from datalog.rewrite.pipeline import SIMPLIFY, minimised, simplify
from datalog.rewrite.plain_views import Beyond, MoreThanRules, alternatives, plain_rules, undetermined
from datalog.rewrite.reachable import drop_empty, drop_subsumed, drop_unreachable
from datalog.rewrite.unfold import is_plain, unfold, unfold_negation, unfold_single_rules
from datalog.rewrite.unused_columns import drop_unused_columns

__all__ = [
    "SIMPLIFY",
    "Beyond",
    "MoreThanRules",
    "alternatives",
    "demand",
    "drop_empty",
    "drop_implied_negations",
    "drop_subsumed",
    "drop_unreachable",
    "drop_unused_columns",
    "guard_joins",
    "guarded_variables",
    "held_apart",
    "is_plain",
    "minimised",
    "plain_rules",
    "propagate_equalities",
    "simplify",
    "simplify_comparisons",
    "simplify_rule",
    "undetermined",
    "unfold",
    "unfold_negation",
    "unfold_single_rules",
    "without_given",
]
