"""The canonical database: what every database that explains the warehouse must contain."""

from selfmaint.canonical.contributions import Contribution, all_contributions, contributions, copied, untold
from selfmaint.canonical.rules import after_rules, known_rules
from selfmaint.warehouse.base_relations import row_atom

__all__ = [
    "Contribution",
    "after_rules",
    "all_contributions",
    "contributions",
    "copied",
    "known_rules",
    "row_atom",
    "untold",
]
