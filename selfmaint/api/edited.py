"""Views that were edited: their stored rows are of another definition than the one that is read now.

Conditions of soundness:

1. Of a store's rows it is known which definitions they are of: `init` and `import` say so, and `maintain` of those that
   nothing was said of before.
2. Nothing is concluded from rows of another definition, nor from those of a view that others went on without.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from datalog.diagnostics import Diagnostic
from selfmaint.errors import Code, InputError
from selfmaint.warehouse.catalog import Catalog, reads
from selfmaint.warehouse.written import written

if TYPE_CHECKING:
    from selfmaint.api.store import OpenStore

_SHOWN = 300
"""How much of a definition an error shows."""


def edited(catalog: Catalog, known: Mapping[str, str | None]) -> dict[str, str]:
    """For each view whose stored rows are not of its definition, what they are of, in words.

    A view that was left out since is known as None.
    """
    now = written(catalog)
    found = {}
    for name, text in now.items():
        if name in known and known[name] != text:
            was = known[name]
            found[name] = (
                "the warehouse was maintained without it"
                if was is None
                else f"they are of `{_shown(was)}`; it is `{_shown(text)}` now"
            )
    return found


def require_unedited(catalog: Catalog, store: OpenStore, names: Iterable[str] | None = None) -> None:
    """Refuses definitions that are not those that the stored rows are of.

    Raises:
        InputError: SM411.
    """
    known = store.definitions()
    if not known:
        return
    wrong = edited(catalog, known)
    shown = [name for name in wrong if names is None or name in set(names)]
    if not shown:
        return
    views = " ".join(f"--view {name}" for name in shown)
    hint = (
        f"`selfmaint import WAREHOUSE.toml {views}` brings its rows in anew, from sources as they were before the "
        "updates that wait: else maintain these by the old definition first, or import all views and leave these out; "
        "with `--keep` in place of `--view` the rows stay, if they are those of the new definition, too"
    )
    raise InputError(
        [
            Diagnostic(
                Code.EDITED,
                f"the stored rows of `{name}` are not those of its definition",
                catalog.view(name).rule.span,
                note=wrong[name],
                hint=hint,
            )
            for name in shown
        ]
    )


def said_of(catalog: Catalog, names: Collection[str]) -> dict[str, str | None]:
    """The definitions of some views, as a commit says them."""
    return {name: text for name, text in written(catalog).items() if name in names}


def not_said(catalog: Catalog, known: Mapping[str, str | None]) -> dict[str, str | None] | None:
    """What a commit that maintains has to say: views of which nothing is known, and those that it leaves out."""
    every = {view.name for view in catalog.views}
    new = said_of(catalog, every - known.keys()) if every - known.keys() else {}
    return {**new, **{name: None for name, text in known.items() if text and name not in every}} or None


def above(catalog: Catalog, names: Collection[str]) -> frozenset[str]:
    """Some views, and those that read them."""
    below = reads(catalog)
    return frozenset(view.name for view in catalog.views if {view.name, *below[view.name]} & set(names))


def _shown(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _SHOWN else text[:_SHOWN] + " ..."
