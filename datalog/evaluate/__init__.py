"""Naive evaluation over sets of rows: the reference for everything else, and the engine for small things."""

from datalog.errors import EvaluationError
from datalog.evaluate.evaluator import Evaluator, evaluate
from datalog.evaluate.views import evaluate_view

__all__ = ["EvaluationError", "Evaluator", "evaluate", "evaluate_view"]
