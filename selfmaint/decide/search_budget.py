"""How much a search near the update may take."""

from __future__ import annotations

import math
from dataclasses import dataclass

from selfmaint.errors import Code, input_error


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """What is spent on views that the tests leave undecided, where the data is too large to be searched whole.

    Attributes:
        seconds: after so many seconds for some views others are not searched for.
        rows: so many rows near the update are searched, the update's own included.

    Raises:
        InputError: SM101 a number that is not positive.
    """

    seconds: float = 1.0
    rows: int = 200

    def __post_init__(self) -> None:
        for name, value in (("seconds", self.seconds), ("rows", self.rows)):
            if not value > 0:
                raise input_error(Code.WAREHOUSE_FILE, f"`search.{name}` is {value}", "give a number above 0")

    @property
    def rows_per_value(self) -> int:
        """More rows with one value are left out."""
        return max(1, self.rows // 5)

    @property
    def labelled_nulls(self) -> int:
        """With more values that nothing tells there are too many possibilities to search."""
        return 3 * self.rows

    def larger(self, name: str) -> str:
        """What to raise if more than that is needed."""
        value = self.rows if name == "rows" else self.seconds
        shown = "" if math.isinf(value) else f", now {value:g}"
        return f"a larger budget may decide it: `--search-{name}`, or `{name}` of `[search]`{shown}"


DEFAULT_SEARCH = SearchBudget()
"""What is spent where nobody says."""
