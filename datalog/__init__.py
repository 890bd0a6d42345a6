"""Safe, non-recursive Datalog with negation: syntax, analysis, containment, rewriting, evaluation, SQL."""
