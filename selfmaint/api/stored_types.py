"""Whether views that are known by their text are stored with the types that their queries give.

Files of texts have no types, and others may have any: numbers as texts, decimals as doubles. Such rows are put back as
they are where the view is computed anew, and tell nothing of other views.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Generic

from datalog.model import ANY, OpaqueView
from selfmaint.api.columns import is_stored_as
from selfmaint.api.over_views import tables_known
from selfmaint.api.platform import Platform
from selfmaint.engine.protocol import D
from selfmaint.warehouse.catalog import Catalog


@dataclass(eq=False)
class StoredTypes(Generic[D]):
    """Says of a view whether its rows are stored as other values than its query gives, or may be.

    Attributes:
        platform: what holds the contents.
        catalog: the views.
        contents: their rows.
        in_text: the views that are stored in files without types.
    """

    platform: Platform[D]
    catalog: Catalog
    contents: Mapping[str, D]
    in_text: frozenset[str]
    _found: dict[str, bool] = field(default_factory=dict)

    def __call__(self, name: str) -> bool:
        """Whether they are, or may be; found once for a view."""
        if name not in self._found:
            self._found[name] = self._differ(name)
        return self._found[name]

    def __reduce__(self) -> tuple[Callable[[], Callable[[str], bool]], tuple[()]]:
        """Another process, which gets a copy of the catalog, has none of the contents."""
        return _of_copies, ()

    def _differ(self, name: str) -> bool:
        if not isinstance(self.catalog.view(name).definition, OpaqueView):
            return False
        known, rows = tables_known(self.catalog).get(name), self.contents[name]
        if known is None:
            return name in self.in_text
        names = map(str.casefold, self.platform.engine.columns(rows))
        stored = dict(zip(names, self.platform.types(rows), strict=True))
        for column, kind in zip(known.columns, known.types, strict=True):
            its = stored.get(column.casefold())
            if name in self.in_text if kind == ANY else its is None or not is_stored_as(its, kind):
                return True
        return False


def _of_copies() -> Callable[[str], bool]:
    return _is_not_asked


def _is_not_asked(_name: str) -> bool:
    return False
