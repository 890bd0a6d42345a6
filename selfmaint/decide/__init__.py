"""The decision: DIFF and INCON, the surviving sets J, TEST, verdicts and counterexamples."""
