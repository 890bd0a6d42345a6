"""The canonical database: what every database that explains the warehouse must contain."""

from selfmaint.canonical.references import row_atom
from selfmaint.canonical.rules import Contribution, after_rules, all_contributions, contributions, known_rules

__all__ = ["Contribution", "after_rules", "all_contributions", "contributions", "known_rules", "row_atom"]
