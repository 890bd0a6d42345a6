"""What the helpers of views cost: the rows that a store keeps of them beside the views."""

from __future__ import annotations

from msgspec import Struct

from datalog.model import Variable
from selfmaint.warehouse.catalog import Catalog, GroupedView, View
from selfmaint.warehouse.reads import reads


class Helper(Struct, frozen=True):
    """A view that a store keeps so that another one can be followed.

    Attributes:
        of: the view that it helps.
        columns: the names of its columns.
        groups: what it has a row for each combination of values of; none if it has one row in all, None if it has a
            row for each one of a join of what it reads.
        reads: the base relations and views that it is made from.
    """

    name: str
    of: str
    columns: tuple[str, ...]
    groups: tuple[str, ...] | None
    reads: tuple[str, ...]

    def __str__(self) -> str:
        """What it keeps: so many columns, and which rows."""
        width = f"{len(self.columns)} column{'s' * (len(self.columns) != 1)}"
        if self.groups is None:
            rows = f"a row for each of {' joined with '.join(f'`{name}`' for name in self.reads)}, or fewer"
        elif self.groups:
            rows = f"a row for each {', '.join(f'`{name}`' for name in self.groups)} that there is"
        else:
            rows = "one row"
        return f"`{self.name}` has {width}, and {rows}"


def helpers(catalog: Catalog) -> tuple[Helper, ...]:
    """The helpers of a catalog, in order of definition."""
    read = reads(catalog)
    return tuple(
        Helper(
            view.name,
            catalog.helpers[view.name],
            view.stored_columns,
            _groups(view),
            tuple(sorted(read[view.name])),
        )
        for view in catalog.views
        if view.name in catalog.helpers
    )


def _groups(view: View) -> tuple[str, ...] | None:
    if not isinstance(view, GroupedView) or not view.grouped.measures or view.is_counted:
        return None
    its = zip(view.grouped.groups, view.grouped.columns, strict=True)
    return tuple(one.name.lower() if isinstance(one, Variable) else view.columns[i] for one, i in its)
